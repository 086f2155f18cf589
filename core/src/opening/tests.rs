mod collected;
mod disbelieved;
mod endings;
mod examining;
mod exclusive;
mod histories;
mod lying;
mod newer;
mod patience;
mod random;
mod recovering;
mod released;
mod repairing;
mod rereading;
mod session;
mod starting;
mod store;
mod surveying;
mod transcript;
mod viewing;

use std::string::ToString;

use bytes::Bytes;
use expect_test::expect;

use super::*;
use crate::error::Operation;
use crate::types::Epoch;
use endings::Ending;
use store::*;

#[test]
fn an_empty_prefix_gets_a_start_object_and_the_store_is_checked() {
    let run = open(Store::default());
    expect![[r#"
        listing p/objects/
            0 keys
        listing p/objects/
            0 keys
        creating 0.wal: object 0 of epoch 1 after nothing, boundary 0, nonce 0f.., by me
            created
        creating 0.wal: object 0 of epoch 1 after nothing, boundary 0, nonce f0.., by me
            the key exists
        listing p/objects/
            1 keys
        reading 0.wal 0..193
            193 bytes
        notice: opened, 0 objects recovered, in 0ns
        opened with object 0 of epoch 1, boundary 1
    "#]]
    .assert_eq(&run.transcript);
    let recovered = run.opened();
    assert_eq!(recovered.start, link(0, 1));
    assert_eq!(recovered.next_sequence, ObjectSeq(1));
    assert_eq!(recovered.stats.recovered_objects, 0);
    assert!(recovered.catalog.is_indexed(recovered.start));
}

#[test]
fn the_next_opening_links_to_what_the_last_one_made() {
    let first = open(Store::default());
    let second = open(first.store);
    expect![[r#"
        listing p/objects/
            1 keys
        reading 0.wal 0..193
            193 bytes
        creating 1.wal: object 1 of epoch 2 after object 1 of epoch 2, boundary 0, nonce 0f.., by me
            created
        listing p/objects/
            2 keys
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            created
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 0.wal
            2 keys
        reading 2.wal 0..193
            193 bytes
        notice: opened, 1 objects recovered, in 0ns
        opened with object 2 of epoch 3, boundary 3
    "#]]
    .assert_eq(&second.transcript);
    let (header, record) = second.start_object();
    assert_eq!(header.predecessor, Some(link(0, 1)));
    assert_eq!((record.nonce, record.opened_at_millis), (NONCE, 1_700_000_000_000));
    assert_eq!((record.max_in_flight, &*record.name), (4, "me"));
    assert_eq!(second.opened().stats.recovered_objects, 1);
}

#[test]
fn invalid_options_are_refused_before_anything_is_touched() {
    let options = Options { open_concurrency: 0, ..Options::default() };
    let error = Opening::new(Time::ZERO, prefix(), options, identity()).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "open_concurrency", .. }), "{error}");
}

#[test]
fn where_a_log_must_exist_nothing_is_begun() {
    let options = Options { must_exist: true, ..Options::default() };
    let mut store = Store::default();
    store.objects.insert("p/objects/notes.txt".into(), Bytes::from_static(b"hello"));
    store.objects.insert("p/objects/99999999999999999999.wal".into(), Bytes::new());
    let run = open_with(options.clone(), store);
    let error = run.failed();
    assert!(matches!(error, Error::Missing { prefix } if &**prefix == "p"), "{error}");
    assert!(run.times(Operation::Create).is_empty());

    let run = open_with(options, Store::of([make(0, 1).writer("a")]));
    assert_eq!(run.opened().start, link(2, 3));
}

#[test]
fn a_listing_may_hold_what_is_not_ours_and_the_same_key_twice() {
    let mut store = Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]);
    let size = store.objects[&key(1)].len() as u64;
    let ghost = |key: &str, size| Listed { key: key.into(), size, modified_millis: 0 };
    let beyond = "p/objects/00000017592186044416.wal";
    store.ghosts = alloc::vec![
        ghost(&key(1), size),
        ghost("p/objects/readme", 0),
        ghost("q/objects/00000000000000000000.wal", 0),
        ghost("p/objects/x/00000000000000000000.wal", 0),
        ghost(beyond, 0),
    ];
    // It lists several times, and tells of the ignored key once.
    store.fault(
        Operation::Create,
        key(2),
        Fault::After(Box::new(|objects| {
            objects.insert(key(2), make(2, 1).after(1, 1).entry(1, 10).bytes());
        })),
    );
    let run = open(store);
    // The lost claim is followed by two: 3, and 5 ahead of the writer; then comes the hole between.
    assert_eq!(run.claims(), [2, 3, 5, 4]);
    assert_eq!(run.opened().start, link(6, 7));
    // A key that is shown twice is no order, so each of five listings is asked for twice.
    assert_eq!(run.times(Operation::List).len(), 10);
    assert_eq!(run.reads(1).len(), 1, "once for all listings");
    let ignored = run.notices.iter().filter(|n| matches!(n, Notice::KeyIgnored { .. }));
    assert_eq!(ignored.count(), 1, "{:?}", run.notices);
    assert!(
        run.notices.iter().any(|n| matches!(n, Notice::KeyIgnored { key } if &**key == beyond))
    );
}

#[test]
fn the_listing_is_repeated_until_the_opening_has_taken_too_long() {
    let mut store = Store::default();
    for _ in 0..100 {
        store.fault(Operation::List, prefix().objects(), Fault::Fails(StoreErrorKind::TimedOut));
    }
    let options = Options { open_timeout: Duration::from_secs(20), ..Options::default() };
    let run = open_with(options, store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
    assert!(error.is_retryable());
    let millis: Vec<_> = run.times(Operation::List).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 100, 300, 700, 1500, 3100, 6300, 11300, 16300]);
    let retries = run.notices.iter().filter(|n| matches!(n, Notice::OpeningRetries { .. }));
    assert_eq!(retries.count(), 1, "{:?}", run.notices);
}

#[test]
fn the_last_attempt_may_start_when_the_time_is_just_over() {
    let mut store = Store::default();
    for _ in 0..10 {
        store.fault(Operation::List, prefix().objects(), Fault::Fails(StoreErrorKind::Transient));
    }
    let options = Options { open_timeout: Duration::from_millis(300), ..Options::default() };
    let run = open_with(options, store);
    assert!(run.failed().is_retryable());
    let millis: Vec<_> = run.times(Operation::List).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 100, 300]);
}

#[test]
fn what_fails_transiently_is_repeated_each_with_its_own_delays() {
    let mut store = Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]);
    store.fault(Operation::List, prefix().objects(), Fault::Fails(StoreErrorKind::Transient));
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Transient));
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::TimedOut));
    store.fault(Operation::Read, key(1), Fault::Short);
    let run = open(store);
    run.opened();
    let millis: Vec<_> = run.times(Operation::Read).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0, 0, 100, 300, 300], "what is short, at once; the start object last");
    assert_eq!(run.opened().stats.took, Duration::from_millis(400));
}

#[test]
fn a_refusal_fails_the_opening_at_once() {
    for (operation, key) in [(Operation::List, prefix().objects()), (Operation::Read, key(0))] {
        for kind in [StoreErrorKind::Refused, StoreErrorKind::NotSupported] {
            let mut store = Store::of([make(0, 1).writer("a")]);
            store.fault(operation, key.clone(), Fault::Fails(kind));
            let run = open(store);
            let error = run.failed();
            assert!(
                matches!(error, Error::Store { operation: o, key: k, source }
                    if *o == operation && *k == key && source.kind == kind),
                "{error}"
            );
            assert!(!error.is_retryable());
            assert!(error.to_string().contains(&*key), "{error}");
            assert_eq!(run.times(operation).len(), 1);
        }
    }
}

#[test]
fn an_answer_that_is_not_waited_for_changes_nothing() {
    let mut opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity()).unwrap();
    let Some(OpeningEffect::Storage(list)) = opening.poll_effect() else { panic!("no listing") };
    let before = std::format!("{opening:?}");
    let refused = || StoreError::new(StoreErrorKind::Refused);
    let id = list.id();
    for answer in [
        StorageAnswer::Listed { id: RequestId(id.0 + 1), result: Err(refused()) },
        StorageAnswer::Listed { id: RequestId(u64::MAX), result: Ok(Vec::new()) },
        // The id is known, but nothing of this kind was asked under it.
        StorageAnswer::Fetched { id, result: Err(refused()) },
        StorageAnswer::CreateResult { id, result: Ok(()) },
        StorageAnswer::ReadBackResult { id, result: Err(refused()) },
    ] {
        opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
        assert!(opening.poll_effect().is_none());
        assert_eq!(std::format!("{opening:?}"), before);
    }
    opening.handle(Time::ZERO, OpeningEvent::Tick);
    assert_eq!(std::format!("{opening:?}"), before, "a tick too many is harmless");
}

#[test]
fn after_its_end_nothing_more_comes() {
    let mut opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity()).unwrap();
    let Some(OpeningEffect::Storage(list)) = opening.poll_effect() else { panic!("no listing") };
    let refused = list.failed(StoreError::new(StoreErrorKind::Refused));
    opening.handle(Time::ZERO, OpeningEvent::Storage(refused));
    assert!(matches!(opening.poll_effect(), Some(OpeningEffect::Failed(_))));
    let listed = StorageAnswer::Listed { id: list.id(), result: Ok(Vec::new()) };
    opening.handle(Time::ZERO, OpeningEvent::Storage(listed));
    opening.handle(Time::from_millis(100_000), OpeningEvent::Tick);
    assert!(opening.poll_effect().is_none());
    assert_eq!(opening.next_tick(), None);
}

#[test]
fn time_that_goes_back_is_taken_for_the_later_one() {
    let now = Time::from_millis(10_000);
    let mut opening = Opening::new(now, prefix(), Options::default(), identity()).unwrap();
    let Some(OpeningEffect::Storage(list)) = opening.poll_effect() else { panic!("no listing") };
    let failed = list.failed(StoreError::new(StoreErrorKind::Transient));
    opening.handle(Time::ZERO, OpeningEvent::Storage(failed));
    assert_eq!(opening.next_tick(), Some(Time::from_millis(10_100)));
}

#[test]
fn every_request_has_an_id_of_its_own_and_the_writer_goes_on_from_there() {
    let mut store = Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]);
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Transient));
    let run = open(store);
    let ids: BTreeSet<_> = run.asked.iter().map(|(_, effect)| effect.id()).collect();
    assert_eq!(ids.len(), run.asked.len());
    assert!(ids.iter().all(|id| *id < run.opened().next_request));
    let limit = Options::default().request_timeout;
    assert!(run.asked.iter().all(|(_, effect)| effect.time_limit() == limit));
}
