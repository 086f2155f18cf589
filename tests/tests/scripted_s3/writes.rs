//! Creates whose answers are lost, late or wrong, and their read-backs (faults 1, 12 and 18;
//! DESIGN.md section 5).

use std::time::Duration;

use sealog_tests::s3::{Fault, Kind, Rule};
use sealog_tokio::{AckMode, Error};

use crate::log::{Log, key};
use crate::row::{Does, Row, Told, opened};
use crate::stage::{Stage, ensure, lasting, passing, status};

fn told(what: &str) -> Told {
    Row::told(format!("scripted_s3/{what}"), Log::Of(2), Does::Append)
}

fn put(fault: Fault) -> Rule {
    Rule::on(Kind::Put, fault)
}

fn get(fault: Fault) -> Rule {
    Rule::on(Kind::Get, fault)
}

pub(crate) fn rows() -> Vec<Row> {
    let lost = || put(Fault::Lost).first(1);
    vec![
        told("the answer to a create is lost").rule(lost()).asks(Kind::Put, 1, 1).into(),
        told("the answers to a create are lost twice, and the first never landed")
            .rule(put(Fault::Dropped).first(1))
            .rule(put(Fault::Lost).nth(2))
            .into(),
        told("a create breaks off always").rule(put(Fault::Dropped)).fails(passing("Store")).into(),
        // The download of a read-back may be damaged: once is nothing.
        told("a read-back has a flipped bit once")
            .rule(lost())
            .rule(get(Fault::Flips(20)).first(1))
            .into(),
        told("a read-back has a flipped magic once")
            .rule(lost())
            .rule(get(Fault::Flips(0)).first(1))
            .into(),
        told("a read-back is short once").rule(lost()).rule(get(Fault::Short(10)).first(1)).into(),
        told("a read-back is cut once").rule(lost()).rule(get(Fault::Cut(10)).first(1)).into(),
        told("a read-back says the size of no object once")
            .rule(lost())
            .rule(get(Fault::OfSize(60)).first(1))
            .into(),
        told("a read-back has a flipped bit twice in a row")
            .rule(lost())
            .rule(get(Fault::Flips(20)))
            .fails(lasting("Corrupted"))
            .into(),
        told("412 for a create with nothing there, twice").rule(put(status(412)).first(2)).into(),
        told("409 for a create with nothing there, twice").rule(put(status(409)).first(2)).into(),
        told("412 for a create that took effect, as of a repeat below us")
            .rule(put(Fault::after(|_| {})).first(1))
            .rule(lost())
            .into(),
        told("a create is never answered")
            .options(|options| options.request_timeout = Duration::from_millis(120))
            .rule(put(Fault::Held))
            .fails(passing("Store"))
            .into(),
        turns(),
        late(),
        late_behind_a_roll_back(),
        refused_then_well(),
        foreign(),
        two_of_one_epoch(),
        enqueued_through_trouble(),
        cause_is_of_another_batch(),
    ]
}

/// Two suspect downloads in turns end, each for its own sequence.
fn turns() -> Row {
    Row::new("scripted_s3/the read-backs of two creates are damaged in turns", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        stage.script([put(Fault::Lost).first_of_each(1), get(Fault::Flips(20)).first_of_each(1)]);
        let (one, two) =
            (wal.submit(crate::log::REGION, "one"), wal.submit(crate::log::REGION, "two"));
        for (append, text) in [(one, "one"), (two, "two")] {
            let id = append.await.map_err(|error| format!("{text}: {error}"))?;
            stage.acknowledged.insert(id, text.into());
        }
        stage.nothing_is_lost().await
    })
}

/// What was given up appears while its writer goes on.
fn late() -> Row {
    Row::new("scripted_s3/a create lands after its batch was rolled back", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        stage.script([put(Fault::Late).first(1), put(Fault::Dropped).of_object(6)]);
        let failed = stage.append(&wal, "given up").await;
        ensure!(failed.is_err(), "it was acknowledged: {failed:?}");
        stage.s3.heal();
        stage.s3.land();
        let id = stage.append(&wal, "behind it").await;
        id.map_err(|error| format!("behind it: {error}"))?;
        stage.nothing_is_lost().await
    })
}

/// The same, when what comes behind it is there already.
fn late_behind_a_roll_back() -> Row {
    Row::new("scripted_s3/a create lands behind what its writer acknowledged since", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        stage.script([put(Fault::Late).first(1), put(Fault::Dropped).first(10)]);
        ensure!(stage.append(&wal, "given up").await.is_err(), "it was acknowledged");
        stage.s3.heal();
        stage.append(&wal, "since").await.map_err(|error| error.to_string())?;
        stage.s3.land();
        stage.append(&wal, "later").await.map_err(|error| error.to_string())?;
        stage.nothing_is_lost().await
    })
}

fn refused_then_well() -> Row {
    Row::new("scripted_s3/a refused create is rolled back and the log goes on", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        stage.script([put(status(403)).first(1)]);
        match stage.append(&wal, "refused").await {
            Err(error) => lasting("Store").judge(error.error())?,
            Ok(id) => return Err(format!("{id} was acknowledged")),
        }
        let next = stage.append(&wal, "next").await;
        next.map_err(|error| format!("the next one: {error}"))?;
        stage.nothing_is_lost().await
    })
}

/// Something that is no object of a log takes the next key.
fn foreign() -> Row {
    Row::new("scripted_s3/a foreign object takes the place of the next one", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        let next = stage.acknowledged.keys().last().map_or(0, |id| id.sequence().0 + 1);
        stage.s3.bucket().put(
            key(next),
            &b"something else, of more than ninety bytes, which is no \
            object of any log, whoever wrote it and whenever it came here"[..],
        );
        stage.script([]);
        match stage.append(&wal, "in its way").await {
            Err(error) => lasting("Corrupted").judge(error.error())?,
            Ok(id) => return Err(format!("{id} was acknowledged")),
        }
        stage.s3.bucket().remove(&key(next));
        stage.nothing_is_lost().await
    })
}

/// A prefix is emptied while its writer runs, and the next opening has the same epoch.
fn two_of_one_epoch() -> Row {
    Row::new(
        "scripted_s3/two writers of one epoch never acknowledge each other's object",
        || async {
            let mut stage = Stage::new(Log::Empty).await;
            let one = stage.open().await.map_err(|error| error.to_string())?;
            stage.append(&one, "first, one").await.map_err(|error| error.to_string())?;
            let keys: Vec<_> = stage.s3.bucket().objects().keys().cloned().collect();
            keys.iter().for_each(|key| drop(stage.s3.bucket().remove(key)));
            stage.acknowledged.clear();
            let two = stage.open().await.map_err(|error| error.to_string())?;
            ensure!(
                one.epoch() == two.epoch(),
                "their epochs differ: {} {}",
                one.epoch(),
                two.epoch()
            );
            // The first writer's next object comes first, of the same size, with the same header but
            // for what it links to.
            stage.append(&two, "first, two").await.map_err(|error| error.to_string())?;
            let theirs = one.append(crate::log::REGION, "second, one").await;
            let ours = stage.append(&two, "second, two").await;
            ensure!(
                theirs.is_err() || ours.is_err(),
                "both were acknowledged in one object: {theirs:?} {ours:?}"
            );
            match (theirs, ours) {
                (Ok(id), Err(_)) => drop(stage.acknowledged.insert(id, "second, one".into())),
                (Err(_), Ok(_)) => {}
                (theirs, ours) => return Err(format!("nobody got through: {theirs:?} {ours:?}")),
            }
            stage.nothing_is_lost().await
        },
    )
}

/// In `enqueued` what is transient is repeated, and stop says Ok only if all is stored.
fn enqueued_through_trouble() -> Row {
    Row::new("scripted_s3/an enqueued log uploads through every kind of trouble", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        stage.options.ack_mode = AckMode::Enqueued;
        let wal = opened(&mut stage).await?;
        wal.flush().await.map_err(|error| error.to_string())?;
        stage.script([
            put(status(503)).nth(1),
            put(Fault::Lost).nth(2),
            put(status(412)).nth(3),
            put(Fault::Dropped).nth(4),
            put(status(429)).nth(5),
            put(status(409)).nth(6),
        ]);
        for number in 0..8 {
            let appended = stage.append(&wal, &format!("entry {number}")).await;
            appended.map_err(|error| error.to_string())?;
        }
        wal.stop().await.map_err(|error| format!("stop: {error}"))?;
        stage.nothing_is_lost().await
    })
}

/// An append whose batch was never sent says so, and of which batch the cause is.
fn cause_is_of_another_batch() -> Row {
    Row::new(
        "scripted_s3/an append that was never sent says whose failure its cause is",
        || async {
            let mut stage = Stage::new(Log::Of(2)).await;
            stage.options.max_in_flight = 1;
            stage.options.request_timeout = Duration::from_millis(100);
            stage.options.retry_for = Duration::ZERO;
            let wal = opened(&mut stage).await?;
            stage.script([put(Fault::Held)]);
            let sent = wal.submit(crate::log::REGION, "sent");
            let unsent = wal.submit(crate::log::REGION, "not sent");
            let (sent, unsent) = (sent.await, unsent.await);
            let (Err(sent), Err(unsent)) = (&sent, &unsent) else {
                return Err(format!("they were acknowledged: {sent:?} {unsent:?}"));
            };
            use sealog_tokio::Outcome::{NotWritten, Unknown};
            ensure!(sent.outcome() == Unknown, "{sent}");
            ensure!(unsent.outcome() == NotWritten, "{unsent}");
            ensure!(matches!(sent.error(), Error::Store { .. }), "{sent}");
            // "timed out ... may still take effect ... the entries were not written" contradicts itself.
            let text = unsent.to_string();
            ensure!(!text.contains("may still take effect; retry (the entries were not"), "{text}");
            let words = ["behind what failed there", "earlier", "another", "other entries"];
            ensure!(words.iter().any(|word| text.contains(word)), "{text}");
            stage.s3.heal();
            stage.may_have_come(["sent"]);
            stage.nothing_is_lost().await
        },
    )
}
