//! Releases across restarts (DESIGN.md section 6).

use super::session::Session;
use super::*;
use crate::error::Part;
use crate::event::Event;
use crate::format::{ReleaseRecord, encode_releases};
use crate::types::{EntryId, RegionId};

#[test]
fn a_released_region_stays_released_and_does_not_pin_what_it_shares() {
    let mut session = Session::open(Store::default());
    session.append_many(&[1, 2]);
    session.append_many(&[1, 2]);
    session.append(2);
    assert!(session.release(1));
    let mut session = session.crash();
    assert_eq!(session.visible(1), [0; 0]);
    assert_eq!(session.visible(2), [1, 2, 3]);
    assert_eq!(session.stored(), [1, 2, 3, 4, 5, 6], "the other region needs the first");
    session.obsolete(2);
    session.append(3);
    assert_eq!(session.stored(), [7]);
    let session = session.crash();
    assert_eq!((session.visible(1), session.visible(2)), Default::default());
    assert_eq!(session.visible(3), [7]);
}

#[test]
fn without_a_release_it_comes_back() {
    let mut session = Session::open(Store::default());
    session.append_many(&[1, 2]);
    session.obsolete(1);
    assert_eq!(session.visible(1), [0; 0]);
    let session = session.crash();
    assert_eq!(session.visible(1), [1]);
}

#[test]
fn a_record_that_was_rolled_back_holds_once_the_next_append_is_acknowledged() {
    let mut session = Session::open(Store::default());
    session.append(1);
    session.store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::Refused));
    assert!(!session.release(1));
    assert!(session.append(2));
    let session = session.crash();
    assert_eq!((session.visible(1), session.visible(2)), (Vec::new(), [3].into()));
}

#[test]
fn the_same_with_a_tick_alone_and_with_stop_alone() {
    for stops in [false, true] {
        let mut session = Session::open(Store::default());
        session.append(1);
        session.store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::Refused));
        assert!(!session.release(1));
        if stops {
            assert!(session.call(Event::Stop { waiter: 0 }));
        } else {
            session.now = Time::from_millis(100);
            session.call(Event::Tick);
        }
        let session = session.crash();
        assert_eq!(session.visible(1), [0; 0]);
    }
}

#[test]
fn what_may_have_landed_and_was_released_does_not_come_back() {
    let mut session = Session::open(Store::default());
    // It lands, its answer is lost, and so is what stands at its key.
    session.store.fault(Operation::Create, key(1), Fault::AnswerLost(StoreErrorKind::Refused));
    assert!(!session.append(1));
    assert!(session.release(1));
    let session = session.crash();
    assert_eq!(session.visible(1), [0; 0]);
}

#[test]
fn an_opening_works_over_what_is_left_when_all_is_released() {
    let mut session = Session::open(Store::default());
    session.append_many(&[1, 2]);
    session.release(1);
    session.release(2);
    let last = session.stored().into_iter().max().unwrap();
    let session = session.crash();
    assert_eq!(session.writer.regions().count(), 0);
    // A claim behind the last object, and the start object.
    assert_eq!(session.stored(), [last + 1, last + 2], "the rest is gone");
    let mut session = session.crash();
    assert!(session.append(1));
    assert_eq!(session.visible(1), [last + 5]);
}

#[test]
fn a_region_that_is_used_again_keeps_its_new_entries() {
    let mut session = Session::open(Store::default());
    session.append_many(&[1, 9]);
    session.release(1);
    session.append(1);
    assert_eq!(session.visible(1), [3]);
    for _ in 0..2 {
        session = session.crash();
        assert_eq!(session.visible(1), [3]);
    }
    // The record's object is collected, and with it what it hid.
    session.obsolete(9);
    session.append(9);
    assert_eq!(session.stored().first(), Some(&3));
    let session = session.crash();
    assert_eq!(session.visible(1), [3]);
}

#[test]
fn a_release_in_full_holds_until_its_record_was_collected() {
    let mut session = Session::open(Store::default());
    session.append_many(&[1, 9]);
    session.release_all(1);
    assert!(!session.append(1));
    for _ in 0..2 {
        session = session.crash();
        assert_eq!(session.visible(1), [0; 0]);
        assert!(!session.append(1), "its record is there");
        let watermark = session.writer.plan_read(RegionId(1), EntryId::ZERO, None, 9).unwrap();
        assert!(watermark.segments.is_empty());
    }
    session.obsolete(9);
    session.append(9);
    assert!(session.append(1));
    let seen = session.visible(1);
    assert_eq!(seen.len(), 1);
    let session = session.crash();
    assert_eq!(session.visible(1), seen);
}

/// Many enough that they do not come with the object's tail.
#[test]
fn records_of_100_000_regions_are_in_one_object() {
    let records: Vec<_> = (1..=100_000).map(|region| (region, EntryId::MAX.0 - 1)).collect();
    let store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10).entry(50_000, 10).entry(100_000, 10).entry(200_000, 10),
        make(2, 1).after(1, 1).releases(&records),
    ]);
    let run = open(store);
    let catalog = &run.opened().catalog;
    let visible: Vec<_> = catalog.regions().map(|info| info.region.0).collect();
    assert_eq!(visible, [200_000]);
    assert_eq!(catalog.region_count(), 100_001);
    assert_eq!(run.reads(2).len(), 3, "header, tail and records");
    assert_eq!(run.start_object().0.boundary, ObjectSeq(1));
    // They are forgotten with their object.
    let mut session = Session::open(run.store);
    session.obsolete(200_000);
    session.append(200_001);
    assert!(session.deleted.contains(&2), "{:?}", session.deleted);
    assert_eq!(session.writer.regions().count(), 1);
}

#[test]
fn records_that_name_reserved_regions_say_nothing_and_the_others_count() {
    let records = [(1, EntryId::MAX.0), (u64::MAX - 15, 5), (u64::MAX, EntryId::MAX.0)];
    let mut session = Session::open(Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10).releases(&records),
    ]));
    session.writer.check();
    assert_eq!(session.visible(1), [0; 0]);
    assert!(!session.append(u64::MAX - 15));
    assert!(session.append(2));
}

#[test]
fn the_boundary_is_computed_after_the_records_of_every_object() {
    // The record that frees object 1 comes last, and in an object whose records are read apart.
    let many = [(1, EntryId::MAX.0)].into_iter().chain((10..9_000).map(|region| (region, 1)));
    let many: Vec<_> = many.collect();
    let store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry(2, 10),
        make(3, 1).after(2, 1).releases(&many),
    ]);
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let store = Store { objects: store.objects.clone(), ..Store::default() };
        let run = run(Options::default(), store, order);
        assert_eq!(run.start_object().0.boundary, ObjectSeq(2));
        assert_eq!(run.opened().durable_boundary, ObjectSeq(2));
    }
}

/// Whatever is wrong with a segment of records that passes its checksum, or does not.
#[test]
fn damaged_records_fail_the_opening_with_the_key_after_a_second_fetch() {
    let record = |region| ReleaseRecord { region: RegionId(region), through: EntryId(5) };
    let sound = encode_releases(&[record(1), record(2)]);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut payload = sound.to_vec();
        change(&mut payload);
        Bytes::from(payload)
    };
    let payloads = [
        with(&|payload| payload[0] = 2),
        with(&|payload| payload[4] = 3),
        with(&|payload| payload[4] = 1),
        with(&|payload| payload[12] = 9),
        with(&|payload| payload[28] = 1),
        with(&|payload| payload.truncate(20)),
        Bytes::new(),
    ];
    for payload in payloads {
        let store = Store::of([
            make(0, 1).writer("a"),
            make(1, 1).after(0, 1).entry(1, 10).reserved(RegionId::RELEASES, payload.clone()),
        ]);
        let run = open(store);
        match run.failed() {
            Error::Corrupted { key: at, part, .. } => {
                assert_eq!((at, *part), (&key(1), Part::ReleaseRecords), "{payload:?}");
            }
            other => panic!("{payload:?}: {other}"),
        }
        assert_eq!(run.reads(1).len(), 3, "with the object, once more, and for the second listing");
    }
}
