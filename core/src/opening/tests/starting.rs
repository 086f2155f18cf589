use std::{format, vec};

use super::*;
use crate::error::Part;
use crate::format::{HEADER_LEN, MIN_OBJECT_LEN};
use crate::types::RegionId;

/// The way behind the tip is blocked, so that a start object comes at once, at 2.
fn blocked() -> Store {
    Store::of([make(0, 1).writer("a"), claim(1)])
}

fn contended(run: &Run) -> (Key, Epoch, Option<&str>) {
    assert!(run.failed().is_retryable());
    match run.failed() {
        Error::Contended { key, epoch, writer } => (key.clone(), *epoch, writer.as_deref()),
        other => panic!("{other}\n{}", run.transcript),
    }
}

#[test]
fn a_lost_response_is_no_error() {
    // The object is stored and the answer is lost: its nonce says that it is ours.
    let mut store = blocked();
    store.fault(Operation::Create, key(2), Fault::AnswerLost(StoreErrorKind::TimedOut));
    expect![[r#"
        listing p/objects/
            2 keys
        reading 0.wal 0..192
        reading 1.wal 0..192
            192 bytes
            192 bytes
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            timed out
        reading back 2.wal
            object 2 of epoch 3, 193 bytes
        reading 2.wal 0..193
            193 bytes
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 0.wal
            2 keys
        reading 2.wal 0..193
            193 bytes
        notice: opened, 1 objects recovered, in 0ns
        opened with object 2 of epoch 3, boundary 3
    "#]]
    .assert_eq(&open(store).transcript);
}

#[test]
fn a_client_that_repeats_below_us_is_no_error_either() {
    let mut store = blocked();
    store.fault(Operation::Create, key(2), Fault::AnswerLost(StoreErrorKind::Exists));
    store.fault(Operation::Read, key(2), Fault::Damaged);
    let run = open(store);
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!(run.reads(2).len(), 3, "a damaged download, and the read at the end");
}

#[test]
fn an_unknown_outcome_is_repeated() {
    // The put fails and nothing is there; then the put fails and the read-back does, too; the
    // third is stored.
    let mut store = blocked();
    store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::Transient));
    store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::TimedOut));
    store.fault(Operation::ReadBack, key(2), Fault::None);
    store.fault(Operation::ReadBack, key(2), Fault::Fails(StoreErrorKind::Transient));
    expect![[r#"
        listing p/objects/
            2 keys
        reading 0.wal 0..192
        reading 1.wal 0..192
            192 bytes
            192 bytes
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            a failure that may pass
        reading back 2.wal
            not found
        notice: repeats after: creating p/objects/00000000000000000002.wal failed: a failure that may pass. It may pass; retry
        100ms later
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            timed out
        reading back 2.wal
            a failure that may pass
        200ms later
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            created
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 0.wal
            2 keys
        reading 2.wal 0..193
            193 bytes
        notice: opened, 1 objects recovered, in 300ms
        opened with object 2 of epoch 3, boundary 3
    "#]].assert_eq(&open(store).transcript);
}

#[test]
fn an_unknown_outcome_ends_in_a_retryable_error() {
    for kind in [StoreErrorKind::Exists, StoreErrorKind::TimedOut, StoreErrorKind::Transient] {
        let mut store = blocked();
        for _ in 0..10 {
            store.fault(Operation::Create, key(2), Fault::Fails(kind));
        }
        let options = Options { open_timeout: Duration::from_secs(1), ..Options::default() };
        let run = open_with(options, store);
        let error = run.failed();
        assert!(matches!(error, Error::Store { operation: Operation::Create, .. }), "{error}");
        assert!(error.is_retryable(), "{error}");
        let millis: Vec<_> = run.times(Operation::Create).iter().map(|d| d.as_millis()).collect();
        assert_eq!(millis, [0, 100, 300, 700]);
        assert_eq!(run.times(Operation::ReadBack).len(), 4);
        let retries = run.notices.iter().filter(|n| matches!(n, Notice::OpeningRetries { .. }));
        assert_eq!(retries.count(), 1, "{:?}", run.notices);
    }
}

#[test]
fn an_object_of_a_running_writer_makes_it_start_again() {
    // Its entries may be acknowledged: they become part of history.
    let mut store = blocked();
    store.overtaken(2, make(2, 1).after(0, 1).entry(7, 10).bytes());
    let run = open(store);
    expect![[r#"
        listing p/objects/
            2 keys
        reading 0.wal 0..192
        reading 1.wal 0..192
            192 bytes
            192 bytes
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            the key exists
        reading back 2.wal
            object 2 of epoch 1, 172 bytes
        notice: starts again, since 2.wal is of epoch 1
        listing p/objects/
            3 keys
        reading 2.wal 0..172
            172 bytes
        creating 3.wal: object 3 of epoch 4 after object 3 of epoch 4, boundary 0, nonce 0f.., by me
            created
        listing p/objects/
            4 keys
        creating 4.wal: object 4 of epoch 5 after object 2 of epoch 1, boundary 2, nonce 0f.., by me
            created
        creating 4.wal: object 4 of epoch 5 after object 2 of epoch 1, boundary 2, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 2.wal
            2 keys
        reading 4.wal 0..193
            193 bytes
        notice: opened, 2 objects recovered, in 0ns
        opened with object 4 of epoch 5, boundary 2
    "#]]
    .assert_eq(&run.transcript);
    assert_eq!(run.opened().catalog.regions().next().unwrap().region, RegionId(7));
}

#[test]
fn another_opening_at_our_key_has_the_prefix() {
    let cases = [
        (make(2, 3).after(0, 1).writer("the other"), Some("the other"), 1),
        // A start object without a writer record, or one too large to be one, has no name.
        (make(2, 3).after(0, 1), None, 2),
        (make(2, 3).after(0, 1).writer("big").entry(1, 100_000), None, 0),
    ];
    for (other, name, reads) in cases {
        let mut store = blocked();
        store.overtaken(2, other.bytes());
        let run = open(store);
        assert_eq!(contended(&run), (key(2), Epoch(3), name));
        assert_eq!(run.reads(2).len(), reads);
        assert_eq!(run.times(Operation::Create).len(), 1, "repeating ours would take it over");
    }
}

/// The nonce is ours, but it was an attempt that linked to another tip.
#[test]
fn our_nonce_in_another_object_is_not_this_one() {
    let first = open(blocked());
    let ours = first.store.objects[&key(2)].clone();
    let mut store = Store::of([make(0, 1).writer("a").boundary(0).entry(1, 1)]);
    store.overtaken(2, ours);
    assert_eq!(contended(&open(store)), (key(2), Epoch(3), Some("me")));
}

#[test]
fn a_later_epoch_at_our_key_has_the_prefix_at_once() {
    let mut store = blocked();
    store.overtaken(2, make(2, 9).after(0, 1).entry(1, 1).bytes());
    let run = open(store);
    assert_eq!(contended(&run), (key(2), Epoch(9), None));
    assert_eq!(run.times(Operation::List).len(), 1);
    assert!(run.reads(2).is_empty());
}

#[test]
fn what_is_no_object_at_our_key_is_damage() {
    let cases = [
        (Bytes::new(), Part::Object),
        (vec![1; HEADER_LEN].into(), Part::Object),
        (make(2, 1).bytes().slice(..MIN_OBJECT_LEN as usize - 1), Part::Object),
        (vec![1; 500].into(), Part::Header),
        // An object, but not of this key.
        (make(3, 1).bytes(), Part::Header),
        // A header like ours, and nothing that fits behind it.
        ([&make(2, 3).bytes()[..HEADER_LEN], &[7; 100]].concat().into(), Part::Trailer),
    ];
    for (bytes, expected) in cases {
        let mut store = blocked();
        store.overtaken(2, bytes);
        let run = open(store);
        match run.failed() {
            Error::Corrupted { key: at, part, .. } => {
                assert_eq!((at, *part), (&key(2), expected));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn what_vanishes_while_it_is_looked_at_leaves_the_outcome_unknown() {
    let mut store = blocked();
    store.overtaken(2, make(2, 3).after(0, 1).writer("the other").bytes());
    let remove = |objects: &mut Objects| {
        objects.remove(&key(2));
    };
    store.fault(Operation::Read, key(2), Fault::After(Box::new(remove)));
    let run = open(store);
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!(run.times(Operation::Create).len(), 3, "two of the start object, one check");
}

#[test]
fn each_look_at_the_key_has_its_second_chance() {
    let mut store = blocked();
    store.fault(Operation::Create, key(2), Fault::AnswerLost(StoreErrorKind::TimedOut));
    store.fault(Operation::Read, key(2), Fault::Damaged);
    let remove = |objects: &mut Objects| {
        objects.remove(&key(2));
    };
    store.fault(Operation::Read, key(2), Fault::After(Box::new(remove)));
    store.fault(Operation::Create, key(2), Fault::AnswerLost(StoreErrorKind::TimedOut));
    store.fault(Operation::Read, key(2), Fault::Damaged);
    assert_eq!(open(store).opened().start, link(2, 3));
}

#[test]
fn a_read_back_of_another_length_is_a_failed_one() {
    let mut store = blocked();
    store.fault(Operation::Create, key(2), Fault::AnswerLost(StoreErrorKind::TimedOut));
    store.fault(Operation::ReadBack, key(2), Fault::Short);
    let run = open(store);
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!(run.times(Operation::ReadBack).len(), 2);
}

#[test]
fn a_refused_put_or_read_back_fails_at_once() {
    for (operation, kind) in [
        (Operation::Create, StoreErrorKind::Refused),
        (Operation::Create, StoreErrorKind::NotFound),
        (Operation::ReadBack, StoreErrorKind::Refused),
        (Operation::ReadBack, StoreErrorKind::NotSupported),
    ] {
        let mut store = blocked();
        if operation == Operation::ReadBack {
            store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::Transient));
        }
        store.fault(operation, key(2), Fault::Fails(kind));
        let run = open(store);
        assert!(
            matches!(run.failed(), Error::Store { operation: o, key: at, source }
                if *o == operation && *at == key(2) && source.kind == kind),
            "{}",
            run.failed()
        );
        assert!(!run.failed().is_retryable());
        assert_eq!(run.times(Operation::Create).len(), 1);
    }
}

#[test]
fn a_store_without_conditional_create_is_unsafe() {
    for verify_store in [true, false] {
        let options = || Options { verify_store, ..Options::default() };
        let mut store = blocked();
        store.fault(Operation::Create, key(2), Fault::Fails(StoreErrorKind::NotSupported));
        let run = open_with(options(), store);
        assert!(
            matches!(run.failed(), Error::UnsafeStore { key: at } if *at == key(2)),
            "{}",
            run.failed()
        );

        let run = open_with(options(), Store { overwrites: true, ..blocked() });
        assert_eq!(matches!(run.result, Err(Error::UnsafeStore { .. })), verify_store);
        if verify_store {
            assert!(run.failed().to_string().contains("conditional create"), "{}", run.failed());
        }
        // It stays readable, and a later opening may use another configuration of it.
        open(Store { overwrites: false, ..run.store }).opened();
    }
}

#[test]
fn the_check_differs_only_in_its_nonce() {
    let run = open(blocked());
    let puts: Vec<_> = run
        .asked
        .iter()
        .filter_map(|(_, effect)| match effect {
            StorageEffect::PutObject { key: at, payload, .. } if *at == key(2) => {
                Some(start_of(&payload.to_bytes()))
            }
            _ => None,
        })
        .collect();
    let [(header, record), (other_header, other_record)] = &puts[..] else { panic!("{puts:?}") };
    assert_eq!(header, other_header);
    assert_ne!(record.nonce, other_record.nonce);
    let same_nonce = crate::format::WriterRecord { nonce: record.nonce, ..other_record.clone() };
    assert_eq!(*record, same_nonce);
}

#[test]
fn without_the_check_there_is_one_put() {
    let options = Options { verify_store: false, ..Options::default() };
    let run = open_with(options, blocked());
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!(run.times(Operation::Create).len(), 1);
}

#[test]
fn a_check_without_an_answer_is_repeated_three_times() {
    for failures in 1..=4 {
        for kind in [StoreErrorKind::Transient, StoreErrorKind::TimedOut] {
            let mut store = blocked();
            store.fault(Operation::Create, key(2), Fault::None);
            for _ in 0..failures {
                store.fault(Operation::Create, key(2), Fault::Fails(kind));
            }
            let run = open(store);
            let times = run.times(Operation::Create);
            assert!(times[1..].windows(2).all(|t| t[1] - t[0] >= Duration::from_secs(1)));
            assert_eq!(times.len(), 2 + failures.min(3));
            if failures <= 3 {
                assert_eq!(run.opened().start, link(2, 3));
            } else {
                let error = run.failed();
                assert!(matches!(error, Error::Store { source, .. } if source.kind == kind));
                assert!(error.is_retryable());
            }
        }
    }
}

#[test]
fn a_refused_check_fails_at_once() {
    for kind in [StoreErrorKind::Refused, StoreErrorKind::NotFound, StoreErrorKind::NotSupported] {
        let mut store = blocked();
        store.fault(Operation::Create, key(2), Fault::None);
        store.fault(Operation::Create, key(2), Fault::Fails(kind));
        let run = open(store);
        assert!(
            matches!(run.failed(), Error::Store { source, .. } if source.kind == kind),
            "{}",
            run.failed()
        );
        assert!(!run.failed().is_retryable());
    }
}

#[test]
fn the_writer_is_named_by_the_option_or_else_by_the_shell() {
    let name = |option: Option<&str>, default: &str| {
        let options = Options {
            writer_name: option.map(Into::into),
            verify_store: false,
            ..Options::default()
        };
        let identity = Identity { default_name: default.into(), ..identity() };
        let mut opening = Opening::new(Time::ZERO, prefix(), options, identity).unwrap();
        let mut put = None;
        while put.is_none() {
            match opening.poll_effect() {
                Some(OpeningEffect::Storage(StorageEffect::List { id, .. })) => {
                    let listed = StorageAnswer::Listed { id, result: Ok(Vec::new()) };
                    opening.handle(Time::ZERO, OpeningEvent::Storage(listed));
                }
                Some(OpeningEffect::Storage(StorageEffect::PutObject { payload, .. })) => {
                    put = Some(payload);
                }
                other => panic!("{other:?}"),
            }
        }
        start_of(&put.unwrap().to_bytes()).1.name.to_string()
    };
    assert_eq!(name(Some("chosen"), "host 1"), "chosen");
    assert_eq!(name(None, "host 1"), "host 1");
    assert_eq!(name(None, ""), "unnamed");
    assert_eq!(name(None, &format!("{}ä", "n".repeat(254))), "n".repeat(254));
    assert_eq!(name(None, &"n".repeat(300)), "n".repeat(255));
}
