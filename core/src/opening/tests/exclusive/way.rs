//! The listings of rule 2: where a claim comes, when none does, and what the start object is then.

use super::*;
use crate::types::EntryId;

/// A start object, the tip; `above` stands at the sequences from 6 on.
fn tip_at_5(above: &[Make]) -> Store {
    Store::of([make(5, 6).writer("a").entry(1, 10)].iter().chain(above).cloned())
}

/// What an older writer left: it never comes to be history.
fn orphan(sequence: u64) -> Make {
    make(sequence, 3).after(sequence - 1, 3).entry(1, 10)
}

#[test]
fn the_lowest_free_sequence_is_claimed_until_the_way_is_blocked_and_has_no_hole() {
    // Another opening's start object, of a later epoch, whose way back is broken.
    let start = |sequence: u64| make(sequence, sequence + 1).after(4, 2).writer("b");
    let cases = [
        (alloc::vec![], alloc::vec![6], 7),
        (alloc::vec![orphan(6)], alloc::vec![7], 8),
        (alloc::vec![orphan(6), orphan(7)], alloc::vec![8], 9),
        (alloc::vec![orphan(7)], alloc::vec![6], 8),
        (alloc::vec![orphan(7), orphan(9)], alloc::vec![6, 8], 10),
        (alloc::vec![orphan(6), orphan(9)], alloc::vec![7, 8], 10),
        // Whosever it is that stands there, it suffices.
        (alloc::vec![claim(6)], alloc::vec![], 7),
        (alloc::vec![start(6)], alloc::vec![], 7),
        (alloc::vec![orphan(6), claim(7)], alloc::vec![], 8),
        (alloc::vec![claim(6), orphan(7)], alloc::vec![], 8),
        (alloc::vec![claim(6), claim(7)], alloc::vec![], 8),
        // Behind a hole it does not, nor does it where a hole remains.
        (alloc::vec![claim(7)], alloc::vec![6], 8),
        (alloc::vec![claim(8)], alloc::vec![6, 7], 9),
        (alloc::vec![claim(6), orphan(8)], alloc::vec![7], 9),
        (alloc::vec![claim(6), claim(8)], alloc::vec![7], 9),
    ];
    for (above, claims, start) in cases {
        let run = open(tip_at_5(&above));
        assert_eq!(run.claims(), claims, "{}", run.transcript);
        assert_eq!(run.opened().start, link(start, start + 1), "{}", run.transcript);
        assert_eq!(run.start_object().0.predecessor, Some(link(5, 6)));
        assert_eq!(run.opened().stats.recovered_objects, 1);
        // All claims are listed, and so is what came in between at the end.
        assert_eq!(run.times(Operation::List).len(), 2 + usize::from(!claims.is_empty()));
        assert_eq!(run.times(Operation::Create).len(), claims.len() + 2);
    }
}

#[test]
fn each_hole_costs_one_put_and_all_of_them_one_listing() {
    for holes in 0..6 {
        let store = Store::of(
            [make(0, 1).writer("a")]
                .into_iter()
                .chain((1..=holes).map(|n| make(2 * n, 1).after(2 * n - 1, 1).entry(1, 10))),
        );
        let run = open(store);
        let claims = holes.max(1);
        let expected: Vec<_> = (0..claims).map(|n| 2 * n + 1).collect();
        assert_eq!(run.claims(), expected);
        assert_eq!(run.times(Operation::List).len(), 3);
        assert_eq!(run.times(Operation::Create).len() as u64, 2 + claims);
        assert_eq!(
            run.times(Operation::Read).len() as u64,
            1 + holes + 1,
            "each object once, the start object too"
        );
        let start = 2 * holes.max(1) + u64::from(holes > 0);
        assert_eq!(run.opened().start, link(start, start + 1));
    }
}

/// A sequence that is not listed below the largest listed one counts; those that the start object
/// skips do not.
#[test]
fn the_start_object_comes_where_the_ids_of_history_demand_it() {
    let id = EntryId::new(ObjectSeq(40), 3).unwrap();
    let store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry_with_id(1, id, 10),
        make(2, 1).after(7, 1),
    ]);
    let run = open(store);
    assert_eq!(run.claims(), [3]);
    assert_eq!(run.opened().start, link(41, 42));
    assert_eq!(run.start_object().0.predecessor, Some(link(1, 1)));
    // What it skipped is below the next opening's tip.
    let run = open(run.store);
    assert_eq!(run.claims(), [42]);
    assert_eq!(run.start_object().0.predecessor, Some(link(41, 42)));
}

#[test]
fn an_empty_prefix_goes_straight_to_its_first_object() {
    let run = open(Store::default());
    assert!(run.claims().is_empty());
    assert_eq!(run.opened().start, link(0, 1));
    assert_eq!(run.start_object().0.predecessor, None);
}

#[test]
fn a_listing_that_lacks_the_claim_is_not_believed() {
    let is_claim: fn(&Key) -> bool = |at| *at == key(1);
    for count in 1..=3 {
        let mut store = free();
        store.hides.push_back(|_| false);
        store.hides.extend(core::iter::repeat_n(is_claim, count));
        let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
        assert_eq!(run.claims(), [1]);
        assert_eq!(run.times(Operation::List).len(), 3 + count);
        assert_eq!(run.opened().start, link(2, 3));
    }
}

#[test]
fn a_claim_that_does_not_stay_ends_in_a_retryable_error_after_open_attempts() {
    let mut store = free();
    store.hides = (0..9).map(|_| (|at| *at == key(1)) as fn(&Key) -> bool).collect();
    let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
    assert!(error.is_retryable());
    let text = std::format!("does not show {}, which was just created", key(1));
    assert!(error.to_string().contains(&text), "{error}");
    let millis: Vec<_> = run.times(Operation::List).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0, 100, 300, 700]);
    assert_eq!(run.puts().len(), 1);
}

#[test]
fn what_the_listing_after_the_claim_shows_is_history() {
    // The tip's writer had it under way. Our claim is above the tip no more.
    let mut store = free();
    appear(&mut store, 1, [(2, make(2, 1).after(0, 1).entry(7, 10).bytes())]);
    let run = open(store);
    assert_eq!(run.claims(), [1, 3]);
    assert_eq!(run.opened().start, link(4, 5));
    assert_eq!(run.start_object().0.predecessor, Some(link(2, 1)));

    // Another opening was faster than our listing: its start object is the tip.
    let mut store = free();
    appear(&mut store, 1, [(2, make(2, 3).after(0, 1).writer("b").bytes())]);
    let run = open(store);
    assert_eq!(run.claims(), [1, 3]);
    assert_eq!(run.opened().start, link(4, 5));
    assert_eq!(run.start_object().0.predecessor, Some(link(2, 3)));

    // What stands above it and is no history makes a hole that must be closed as well.
    let mut store = free();
    appear(&mut store, 1, [(3, make(3, 1).after(2, 1).entry(7, 10).bytes())]);
    let run = open(store);
    assert_eq!(run.claims(), [1, 2]);
    assert_eq!(run.opened().start, link(4, 5));
    assert_eq!(run.start_object().0.predecessor, Some(link(0, 1)));
}

#[test]
fn a_start_put_that_finds_a_claim_starts_again() {
    let mut store = blocked();
    store.overtaken(2, claim(2).bytes());
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
            object 2 of epoch 3, 192 bytes
        notice: starts again, since 2.wal is of epoch 3
        listing p/objects/
            3 keys
        reading 2.wal 0..192
            192 bytes
        creating 3.wal: object 3 of epoch 4 after object 0 of epoch 1, boundary 1, nonce 0f.., by me
            created
        creating 3.wal: object 3 of epoch 4 after object 0 of epoch 1, boundary 1, nonce f0.., by me
            the key exists
        listing p/objects/ from behind 0.wal
            3 keys
        reading 3.wal 0..193
            193 bytes
        notice: opened, 1 objects recovered, in 0ns
        opened with object 3 of epoch 4, boundary 4
    "#]]
    .assert_eq(&run.transcript);
    assert!(run.claims().is_empty());
    assert_eq!(run.start_object().0.predecessor, Some(link(0, 1)));
}

#[test]
fn claims_in_the_way_of_the_start_object_are_met_open_attempts_times() {
    let mut store = blocked();
    for at in 2..10 {
        store.overtaken(at, claim(at).bytes());
    }
    let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
    assert_eq!(contended(&run).0, key(5));
    assert_eq!((run.restarts(), run.times(Operation::List).len()), (3, 4));
}

#[test]
fn earlier_epochs_in_the_way_of_the_start_object_are_met_open_attempts_times() {
    // They are no history: the claim stays in the way.
    let mut store = blocked();
    for at in 2..10 {
        store.overtaken(at, make(at, 1).after(at - 1, 1).entry(1, 10).bytes());
    }
    let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
    assert_eq!(contended(&run), (key(5), Epoch(1), Some("a")));
    assert_eq!((run.restarts(), run.times(Operation::List).len()), (3, 4));
}
