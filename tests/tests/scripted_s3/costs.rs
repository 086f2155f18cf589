//! What an opening, a guard and a failover ask of a store (DESIGN.md section 10, the last paragraph;
//! faults 11 and 19). A page of a listing is a request; a page has 1,000 keys.

use std::collections::BTreeMap;
use std::time::Duration;

use sealog_core::format::{Header, Object, ObjectEncoder};
use sealog_core::{Epoch, Link, ObjectSeq};
use sealog_tests::s3::{Fault, Kind, Order, Rule};

use crate::log::{Log, key};
use crate::row::{Row, opened};
use crate::stage::{Checked, Stage, ensure, lasting, status};

pub(crate) fn rows() -> Vec<Row> {
    let whole =
        |listings, reads, puts| [(Kind::List, listings), (Kind::Get, reads), (Kind::Put, puts)];
    vec![
        // One that shows nothing is asked a second time, and there is nobody to claim from.
        opening("an empty prefix", Log::Empty, |_| {}, whole(3, 1, 2)),
        opening("a log of six objects", Log::Of(5), |_| {}, whole(3, 7, 3)),
        opening("a log of a large object", Log::Large, |_| {}, whole(3, 8, 3)),
        // Two pages and what comes behind them, twice; the look begins at the tip.
        opening("a log of 1,101 objects", Log::Of(1_100), |_| {}, whole(7, 1_102, 3)),
        // What comes behind the last of 1,000 keys is nothing, and asked for all the same.
        opening("a log of 1,000 objects", Log::Of(999), |_| {}, whole(6, 1_001, 3)),
        opening(
            "a log of six objects in no order",
            Log::Of(5),
            |stage| stage.s3.bucket().order = Order::Scattered,
            whole(6, 7, 3),
        ),
        opening("a log with one hole", Log::Of(5), |stage| late(stage, 7), whole(3, 8, 3)),
        opening("a log with two holes", Log::Of(5), |stage| late(stage, 8), whole(3, 8, 4)),
        opening("a log with 100 holes", Log::Of(5), |stage| late(stage, 106), whole(3, 8, 102)),
        // 995 claims, which the second listing shows, in two pages and what comes behind.
        opening("a log with 995 holes", Log::Of(5), |stage| late(stage, 1_001), whole(5, 8, 997)),
        claims_at_once(),
        failover(),
        guard(),
        guard_reads_what_is_not_its_own(),
    ]
}

/// An object of the log's writer that landed late, so that there are holes before it.
fn late(stage: &mut Stage, sequence: u64) {
    let before = Link { sequence: ObjectSeq(sequence - 1), epoch: Epoch(1) };
    stage.s3.bucket().put(key(sequence), orphan(sequence, Some(before)));
}

fn orphan(sequence: u64, predecessor: Option<Link>) -> bytes::Bytes {
    let header = Header {
        sequence: ObjectSeq(sequence),
        epoch: Epoch(1),
        predecessor,
        boundary: ObjectSeq(0),
    };
    ObjectEncoder::new().finish(&header).0.to_bytes()
}

fn opening(
    what: &'static str,
    log: Log,
    prepare: impl FnOnce(&mut Stage) + Send + 'static,
    expected: [(Kind, u64); 3],
) -> Row {
    Row::new(&format!("scripted_s3/requests of an opening: {what}"), move || async move {
        let mut stage = Stage::new(log).await;
        stage.options.open_timeout = Duration::from_secs(10);
        stage.options.open_attempts = 16;
        prepare(&mut stage);
        stage.script([]);
        let wal = stage.open().await.map_err(|error| format!("it does not open: {error}"))?;
        are(&stage, expected)?;
        drop(wal);
        stage.nothing_is_lost().await
    })
}

fn are(stage: &Stage, expected: impl IntoIterator<Item = (Kind, u64)>) -> Checked {
    let expected: BTreeMap<_, _> = expected.into_iter().filter(|(_, count)| *count > 0).collect();
    let counts = stage.s3.counts();
    ensure!(counts == expected, "{counts:?}, not {expected:?}");
    Ok(())
}

/// As many claims as may be under way are, and no more.
fn claims_at_once() -> Row {
    Row::new("scripted_s3/claims are put 64 at once", || async {
        let mut stage = Stage::new(Log::Of(5)).await;
        stage.options.open_timeout = Duration::from_secs(10);
        late(&mut stage, 206);
        // None is answered before 64 are there.
        stage.script([Rule::on(Kind::Put, Fault::Waits { kind: Kind::Put, more: 64 }).first(64)]);
        let opened = tokio::time::timeout(Duration::from_secs(4), stage.open()).await;
        let peak = stage.s3.peak(Kind::Put);
        stage.s3.heal();
        ensure!(peak == 64, "{peak} puts were under way at once");
        let wal = opened.map_err(|_| "it does not open")?;
        drop(wal.map_err(|error| format!("it does not open: {error}"))?);
        stage.nothing_is_lost().await
    })
}

/// The old writer's next append: its put, both ends of what it met, and its new owner's name.
fn failover() -> Row {
    Row::new("scripted_s3/requests of a writer that was taken over", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let old = opened(&mut stage).await?;
        let new = stage.open().await.map_err(|error| format!("no take-over: {error}"))?;
        stage.script([]);
        match stage.append(&old, "of the old one").await {
            Err(error) => lasting("Fenced").judge(error.error())?,
            Ok(id) => return Err(format!("{id} was acknowledged by the old writer")),
        }
        stage.asked(Kind::Put, 1..=1)?;
        stage.asked(Kind::List, 0..=0)?;
        stage.asked(Kind::Get, 1..=4)?;
        drop(new);
        stage.nothing_is_lost().await
    })
}

/// The first batch after a roll back: its put, and one listing.
fn guard() -> Row {
    Row::new("scripted_s3/requests of a guard after a roll back", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        stage.script([Rule::on(Kind::Put, status(403)).first(1)]);
        ensure!(stage.append(&wal, "refused").await.is_err(), "it was refused");
        stage.script([]);
        stage.append(&wal, "guarded").await.map_err(|error| error.to_string())?;
        are(&stage, [(Kind::Put, 1), (Kind::List, 1)])?;
        stage.script([]);
        stage.append(&wal, "not guarded").await.map_err(|error| error.to_string())?;
        are(&stage, [(Kind::Put, 1)])?;
        stage.nothing_is_lost().await
    })
}

/// What stands above its last indexed object is read once, and what it created itself is not.
fn guard_reads_what_is_not_its_own() -> Row {
    Row::new("scripted_s3/a guard reads each foreign header once and none of its own", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let wal = opened(&mut stage).await?;
        let last = stage.acknowledged.keys().last().map_or(0, |id| id.sequence().0);
        // Orphans of the first writer, far above.
        let orphans = 10;
        for sequence in last + 20..last + 20 + orphans {
            let before = Link { sequence: ObjectSeq(sequence - 1), epoch: Epoch(1) };
            stage.s3.bucket().put(key(sequence), orphan(sequence, Some(before)));
        }
        let decoded = Object::decode(&stage.s3.bucket().get(&key(last)).unwrap().bytes.clone());
        ensure!(decoded.is_ok(), "{decoded:?}");
        stage.script([Rule::on(Kind::Put, status(403)).first(1)]);
        ensure!(stage.append(&wal, "refused").await.is_err(), "it was refused");
        // Its first read fails once: what was read of the others stays read.
        stage.script([Rule::on(Kind::Get, status(503)).first(1)]);
        stage.append(&wal, "guarded").await.map_err(|error| error.to_string())?;
        // A read-back reads both ends; and so does the one of its own object when it is put again.
        stage.asked(Kind::Get, orphans..=2 * orphans + 3)?;
        stage.script([Rule::on(Kind::Put, status(403)).first(1)]);
        ensure!(stage.append(&wal, "refused again").await.is_err(), "it was refused");
        stage.script([]);
        stage.append(&wal, "guarded again").await.map_err(|error| error.to_string())?;
        are(&stage, [(Kind::Put, 1), (Kind::List, 1)])?;
        stage.nothing_is_lost().await
    })
}
