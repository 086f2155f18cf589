//! Rule 3: the look after the start object.
//!
//! The way is blocked in these runs, so that the listing numbered 1 is the look.

use super::*;

const LOOK: usize = 1;

/// An object of an epoch before the start object's, which is no history.
fn earlier(sequence: u64) -> Bytes {
    make(sequence, 1).after(0, 1).entry(7, 10).bytes()
}

/// Another opening that came after.
fn later(sequence: u64) -> Bytes {
    make(sequence, sequence + 1).after(2, 3).writer("b").bytes()
}

fn looks_at(run: &Run) -> Vec<Key> {
    let read_backs = run.asked.iter().filter(|(_, e)| operation_of(e) == Operation::ReadBack);
    read_backs.map(|(_, effect)| effect.key().clone()).collect()
}

#[test]
fn it_lists_once_more_from_the_tip_on_after_the_store_was_checked() {
    for verify_store in [true, false] {
        let run = open_with(Options { verify_store, ..Options::default() }, blocked());
        run.opened();
        // At the very end it reads its start object.
        let [.., (_, look), (_, last)] = &run.asked[..] else { panic!("{}", run.transcript) };
        assert!(matches!(look, StorageEffect::List { after: Some(after), .. } if *after == key(0)));
        assert!(matches!(last, StorageEffect::FetchRange { key: at, .. } if *at == key(2)));
        assert_eq!(run.times(Operation::List).len(), 2);
    }
    let run = open(Store::default());
    let [.., (_, look), _] = &run.asked[..] else { panic!("{}", run.transcript) };
    assert!(matches!(look, StorageEffect::List { after: None, .. }), "there is no tip");
}

#[test]
fn a_later_epoch_that_is_no_claim_has_the_prefix() {
    let cases = [
        (3, later(3)),
        (9, later(9)),
        // Not its start object, but what followed.
        (5, make(5, 5).after(4, 5).entry(1, 10).bytes()),
    ];
    for (sequence, object) in cases {
        let epoch = crate::format::Header::decode(&object).unwrap().epoch;
        let mut store = blocked();
        appear(&mut store, LOOK, [(sequence, object)]);
        let run = open(store);
        assert_eq!(contended(&run), (key(sequence), epoch, None));
        assert_eq!(run.restarts(), 0);
        assert!(run.store.objects.contains_key(&key(2)), "our start object stays");
    }
    // What shows nothing is asked a second time.
    let mut store = Store::default();
    appear(&mut store, LOOK + 1, [(1, make(1, 2).after(0, 1).writer("b").bytes())]);
    assert_eq!(contended(&open(store)).0, key(1));
}

#[test]
fn new_claims_are_ignored() {
    let mut store = blocked();
    appear(&mut store, LOOK, [3, 4, 7].map(|at| (at, claim(at).bytes())));
    let run = open(store);
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!((run.restarts(), run.times(Operation::List).len()), (0, 2));
    assert_eq!(looks_at(&run), [key(3), key(4), key(7)]);
    assert_eq!(run.opened().catalog.object_count(), 2);
}

#[test]
fn any_other_new_object_makes_it_start_again() {
    let mut store = blocked();
    appear(&mut store, LOOK, [(3, earlier(3))]);
    let run = open(store);
    expect![[r#"
        listing p/objects/
            2 keys
        reading 0.wal 0..192
        reading 1.wal 0..192
            192 bytes
            192 bytes
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            created
        creating 2.wal: object 2 of epoch 3 after object 0 of epoch 1, boundary 1, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 0.wal
            3 keys
        reading back 3.wal
            object 3 of epoch 1, 172 bytes
        notice: starts again, since 3.wal is of epoch 1
        listing p/objects/
            4 keys
        reading 2.wal 0..193
        reading 3.wal 0..172
            193 bytes
            172 bytes
        creating 4.wal: object 4 of epoch 5 after object 4 of epoch 5, boundary 1, nonce 0f.., by me
            created
        listing p/objects/
            5 keys
        creating 5.wal: object 5 of epoch 6 after object 2 of epoch 3, boundary 3, nonce 0f.., by me
            created
        creating 5.wal: object 5 of epoch 6 after object 2 of epoch 3, boundary 3, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 2.wal
            3 keys
        reading 5.wal 0..193
            193 bytes
        notice: opened, 1 objects recovered, in 0ns
        opened with object 5 of epoch 6, boundary 6
    "#]]
    .assert_eq(&run.transcript);
    // The first attempt's start object is history now, and the new object is not.
    assert_eq!(run.start_object().0.predecessor, Some(link(2, 3)));
    assert_eq!(run.opened().catalog.regions().count(), 0);

    // Also one of our own epoch that is not ours.
    let mut store = blocked();
    appear(&mut store, LOOK, [(3, make(3, 3).after(2, 3).entry(7, 10).bytes())]);
    let run = open(store);
    assert_eq!(run.restarts(), 1);
    assert_eq!(run.start_object().0.predecessor, Some(link(3, 3)));
}

/// Where ids demand a sequence far above, there is room below the start object.
#[test]
fn a_new_object_below_the_start_object_counts_too() {
    let id = crate::types::EntryId::new(ObjectSeq(40), 1).unwrap();
    let wide = || Store::of([make(0, 1).writer("a").entry_with_id(1, id, 10), claim(1)]);
    let mut store = wide();
    appear(&mut store, LOOK, [(2, make(2, 3).after(0, 1).writer("b").bytes())]);
    let run = open(store);
    assert_eq!(run.restarts(), 1);
    assert_eq!(run.start_object().0.predecessor, Some(link(41, 42)));
    assert_eq!(run.opened().start, link(43, 44));
    assert!(!run.opened().catalog.is_indexed(link(2, 3)));

    let mut store = wide();
    appear(&mut store, LOOK, [(2, claim(2).bytes())]);
    assert_eq!(open(store).opened().start, link(41, 42));
}

#[test]
fn of_several_new_objects_a_later_epoch_decides() {
    let new = [(3, earlier(3)), (4, later(4)), (5, claim(5).bytes()), (6, earlier(6))];
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut store = blocked();
        appear(&mut store, LOOK, new.clone());
        let run = run(Options::default(), store, order);
        assert_eq!(contended(&run), (key(4), Epoch(5), None));
        assert_eq!(looks_at(&run).len(), 4);

        let mut store = blocked();
        appear(&mut store, LOOK, [(3, earlier(3)), (4, claim(4).bytes()), (6, earlier(6))]);
        let run = super::run(Options::default(), store, order);
        assert_eq!(run.restarts(), 1);
        assert_eq!(run.start_object().0.predecessor, Some(link(2, 3)));
    }
}

#[test]
fn what_fails_transiently_while_it_looks_is_repeated() {
    let faults: [fn() -> Fault; 3] = [
        || Fault::Fails(StoreErrorKind::Transient),
        || Fault::Fails(StoreErrorKind::TimedOut),
        // The first 54 bytes, cut: a failed read, not data.
        || Fault::Short,
    ];
    for fault in faults {
        let mut store = blocked();
        appear(&mut store, LOOK, [(3, claim(3).bytes())]);
        store.fault(Operation::ReadBack, key(3), fault());
        store.fault(Operation::ReadBack, key(3), fault());
        let run = open(store);
        assert_eq!(run.opened().start, link(2, 3));
        let millis: Vec<_> = run.times(Operation::ReadBack).iter().map(|d| d.as_millis()).collect();
        assert_eq!(millis, [0, 100, 300]);
    }
    let mut store = blocked();
    let failed = Fault::Fails(StoreErrorKind::Transient);
    store.fault_later(LOOK, Operation::List, prefix().objects(), failed);
    let run = open(store);
    assert_eq!(run.opened().start, link(2, 3));
    assert_eq!(run.times(Operation::List).len(), 3);

    // Without an end, it is a retryable error.
    let mut store = blocked();
    appear(&mut store, LOOK, [(3, claim(3).bytes())]);
    for _ in 0..30 {
        store.fault(Operation::ReadBack, key(3), Fault::Fails(StoreErrorKind::TimedOut));
    }
    let run = open(store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::ReadBack, .. }), "{error}");
    assert!(error.is_retryable());
}

#[test]
fn a_refusal_while_it_looks_fails_the_opening_at_once() {
    let refused = || Fault::Fails(StoreErrorKind::Refused);
    let mut store = blocked();
    appear(&mut store, LOOK, [(3, claim(3).bytes())]);
    store.fault(Operation::ReadBack, key(3), refused());
    let run = open(store);
    assert!(matches!(run.failed(), Error::Store { key: at, .. } if *at == key(3)));
    assert!(!run.failed().is_retryable());

    let mut store = blocked();
    store.fault_later(LOOK, Operation::List, prefix().objects(), refused());
    let run = open(store);
    assert!(matches!(run.failed(), Error::Store { operation: Operation::List, .. }));
    assert!(!run.failed().is_retryable());
}

#[test]
fn a_new_key_that_holds_no_object_is_damage() {
    let another = make(4, 1).after(0, 1).bytes();
    for bytes in [Bytes::new(), Bytes::from_static(&[7; 60]), [7; 500].to_vec().into(), another] {
        let mut store = blocked();
        appear(&mut store, LOOK, [(3, bytes)]);
        assert_eq!(corrupted(&open(store)), key(3));
    }
}

#[test]
fn a_new_object_that_is_gone_when_it_is_looked_at_makes_it_start_again() {
    let mut store = blocked();
    appear(&mut store, LOOK, [(3, earlier(3))]);
    store.before(0, Operation::ReadBack, key(3), |objects| {
        objects.remove(&key(3)).unwrap();
    });
    let run = open(store);
    assert_eq!((run.restarts(), run.times(Operation::List).len()), (0, 5), "and the claim's");
    assert_eq!(run.start_object().0.predecessor, Some(link(2, 3)));
    assert_eq!(run.opened().start, link(4, 5));
}

#[test]
fn what_is_new_below_the_tip_is_ignored_also_where_a_store_ignores_the_offset() {
    for ignores_offset in [false, true] {
        let history = [make(5, 6).writer("a").boundary(5), claim(6)];
        let mut store = Store { ignores_offset, ..Store::of(history) };
        appear(&mut store, LOOK, [(1, earlier(1)), (3, claim(3).bytes()), (4, later(4))]);
        let run = open(store);
        assert_eq!(run.opened().start, link(7, 8));
        assert!(looks_at(&run).is_empty());
    }
}

#[test]
fn what_was_listed_before_is_not_looked_at() {
    let store = Store {
        ignores_offset: true,
        ..Store::of([
            make(0, 1).writer("a"),
            make(1, 1).after(0, 1).entry(1, 10),
            make(3, 1).after(2, 1).entry(1, 10),
            claim(4),
        ])
    };
    let run = open(store);
    assert_eq!(run.claims(), [2]);
    assert_eq!(run.opened().start, link(5, 6));
    assert!(looks_at(&run).is_empty());
}

#[test]
fn new_objects_are_met_open_attempts_times() {
    for vanish in [false, true] {
        let mut store = blocked();
        // Each further attempt lists, claims, lists, starts and looks.
        for attempt in 0..8 {
            let before = if attempt == 0 { LOOK } else { 2 };
            let at = 3 + 3 * attempt;
            appear(&mut store, before, [(at, earlier(at))]);
            if vanish {
                store.before(0, Operation::ReadBack, key(at), move |objects| {
                    objects.remove(&key(at)).unwrap();
                });
            }
        }
        let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
        assert!(run.failed().is_retryable());
        match run.failed() {
            Error::Contended { epoch, .. } => assert_eq!((*epoch, run.restarts()), (Epoch(1), 3)),
            // Nobody knows of what epoch it was.
            Error::Store { operation: Operation::ReadBack, .. } => assert!(vanish),
            other => panic!("{other}"),
        }
        assert_eq!(vanish, run.restarts() == 0);
        assert_eq!(run.times(Operation::List).len(), 2 + 3 * 3);
    }
}
