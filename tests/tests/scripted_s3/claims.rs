//! Claims and start objects that meet what stores say (faults 8 and 12).

use sealog_core::format::{Object, ReservedContent};
use sealog_core::{EntryId, ObjectSeq, RegionId};
use sealog_tests::s3::{Bucket, Fault, Kind, Rule};

use crate::log::{Log, key};
use crate::row::{Does, Row, Told};
use crate::stage::{Stage, ensure, lasting, passing, status};

fn told(what: &str) -> Told {
    Row::told(format!("scripted_s3/{what}"), Log::Of(5), Does::Open)
}

/// A claim, a start object, and the check of the store are the puts of an opening.
fn put(fault: Fault) -> Rule {
    Rule::on(Kind::Put, fault)
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (of, name) in [(409, "409"), (412, "412")] {
        let told = |when: &str| told(&format!("{name} for a claim with nothing there, {when}"));
        rows.extend([
            told("twice").rule(put(status(of)).first(2)).into(),
            // Not as fast as the store answers, and bounded.
            told("always")
                .rule(put(status(of)))
                .fails(passing("Store|Contended").not_saying(&["overtaken", "another process"]))
                .asks(Kind::Put, 2, 6)
                .asks(Kind::List, 2, 8)
                .into(),
            told("and then it lands late, as another's would")
                .rule(put(status(of)).first(1))
                .into(),
        ]);
    }
    for (number, what) in [(1, "claim"), (2, "start object")] {
        let told = |when: &str| told(&format!("the answer to a {what} {when}"));
        rows.extend([
            told("is lost").rule(put(Fault::Lost).nth(number)).into(),
            told("is lost, and so was the one before")
                .rule(put(Fault::Dropped).nth(number))
                .rule(put(Fault::Lost).nth(number + 1))
                .into(),
            told("is lost, and its read-back is damaged once")
                .rule(put(Fault::Lost).nth(number))
                .rule(Rule::on(Kind::Get, Fault::Flips(20)).of_object(number + 5).first(1))
                .into(),
            told("never comes and it never lands")
                .rule(put(Fault::Dropped).from(number))
                .fails(passing("Store"))
                .into(),
        ]);
    }
    // The store check says nothing of what it was asked before.
    rows.push(
        told("the answer to the check of the store is lost")
            .rule(put(Fault::Lost).nth(3))
            .options(|options| options.open_timeout = std::time::Duration::from_secs(5))
            .into(),
    );
    rows.extend([lands_late(), overwrites_at_check()]);
    rows.extend(through());
    rows.push(race());
    rows
}

/// A start object that appears when its opening has given up is counted by the next one.
fn lands_late() -> Row {
    Row::new("scripted_s3/a start object lands after its opening has given up", || async {
        let mut stage = Stage::new(Log::Of(5)).await;
        stage.script([put(Fault::Late).nth(2), put(Fault::Dropped).from(3)]);
        ensure!(stage.open().await.is_err(), "it opened without its start object");
        stage.s3.land();
        ensure!(stage.s3.bucket().get(&key(7)).is_some(), "nothing landed");
        stage.nothing_is_lost().await
    })
}

fn overwrites_at_check() -> Row {
    told("a store that ignores conditions is not written")
        .rule(put(Fault::Overwrites))
        .fails(lasting("UnsafeStore"))
        .into()
}

/// The object of another opening in the place of the start object, as after two creates of one key
/// that were both answered as done: the same but for its nonce.
fn replace_start(bucket: &mut Bucket, sequence: u64) {
    let Some(stored) = bucket.get(&key(sequence)) else { return };
    let Ok(mut object) = Object::decode(&stored.bytes) else { return };
    let Ok(Some(ReservedContent::Writer(mut record))) = object.reserved(RegionId::WRITER) else {
        return;
    };
    record.nonce[0] ^= 1;
    for (meta, entries) in &mut object.segments {
        if meta.region == RegionId::WRITER {
            entries[0].payload = record.encode();
        }
    }
    debug_assert!(EntryId::new(ObjectSeq(sequence), 1).is_some());
    bucket.put(key(sequence), sealog_tests::encode(&object));
}

/// Rule 3 of section 12: the start object is read once after the look.
fn through() -> Vec<Row> {
    vec![
        told("a start object is replaced by another opening's, right away")
            .rule(put(Fault::after(|bucket| replace_start(bucket, 7))).of_object(7).first(1))
            .fails(lasting("UnsafeStore"))
            .into(),
        told("a start object is replaced by another opening's, after the check of the store")
            .rule(put(Fault::after(|bucket| replace_start(bucket, 7))).of_object(7).nth(2))
            .fails(lasting("UnsafeStore"))
            .into(),
        told("a start object is gone before its opening looks")
            .rule(put(Fault::after(|bucket| drop(bucket.remove(&key(7))))).of_object(7).nth(2))
            .fails(passing("Contended|Store"))
            .into(),
        // One damaged download is no other's object.
        told("the read of a start object is damaged once")
            .rule(Rule::on(Kind::Get, Fault::Flips(60)).of_object(7).first(1))
            .into(),
        told("the read of a start object fails once")
            .rule(Rule::on(Kind::Get, status(503)).of_object(7).first(1))
            .into(),
        // Six objects, the start object, and five entries to see what was recovered.
        told("a start object is read once, whole")
            .asks(Kind::Get, 12, 12)
            .asks(Kind::Put, 4, 4)
            .into(),
    ]
}

/// Both creates of one key are answered as done, and the later one stays.
fn race() -> Row {
    Row::new("scripted_s3/a store lets two racing openings through", || async {
        let mut stage = Stage::new(Log::Empty).await;
        let raced = put(Fault::Waits { kind: Kind::Put, more: 2 }).first(2);
        stage.script([raced, put(Fault::Overwrites).first(2)]);
        let (one, two) = tokio::join!(stage.open(), stage.open());
        stage.s3.heal();
        let mut opened = Vec::new();
        for result in [one, two] {
            match result {
                Ok(wal) => opened.push(wal),
                Err(error) => lasting("UnsafeStore").judge(&error)?,
            }
        }
        ensure!(opened.len() < 2, "both have opened it");
        for wal in opened {
            let _ = stage.append(&wal, "of who got through").await;
        }
        stage.nothing_is_lost().await
    })
}
