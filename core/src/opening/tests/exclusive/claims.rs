//! Rule 1 and the puts of rule 2: what a claim is, and what becomes of its put.

use super::*;
use crate::chain::{self, Present, Proof};
use crate::format::{Header, Object};
use crate::types::RegionId;

fn present(objects: impl IntoIterator<Item = Bytes>) -> BTreeMap<ObjectSeq, Present> {
    let header = |bytes: Bytes| Header::decode(&bytes).unwrap();
    let present = |header: Header| (header.sequence, Present { header, max_in_flight: Some(4) });
    objects.into_iter().map(header).map(present).collect()
}

#[test]
fn a_claim_links_to_itself_and_holds_nothing_but_a_writer_record() {
    let store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry(1, 10).boundary(1),
    ]);
    let run = open(store);
    let bytes = &run.store.objects[&key(3)];
    let object = Object::decode(bytes).unwrap();
    let itself = link(3, 4);
    assert_eq!((object.header.link(), object.header.predecessor), (itself, Some(itself)));
    assert_eq!(object.header.epoch, Epoch::claimed_at(object.header.sequence));
    assert_eq!(object.header.boundary, ObjectSeq(1), "the tip's");
    let regions: Vec<_> = object.segments.iter().map(|(meta, _)| meta.region).collect();
    assert_eq!(regions, [RegionId::WRITER]);
    let (_, record) = start_of(bytes);
    assert_eq!((record.nonce, record.opened_at_millis), (NONCE, 1_700_000_000_000));
    assert_eq!((record.max_in_flight, &*record.name), (4, "me"));
    assert_eq!(run.opened().start, link(4, 5));
    assert!(!run.opened().catalog.is_indexed(itself));
}

#[test]
fn a_claim_is_never_history() {
    let run = open(free());
    let all = present(run.store.objects.values().cloned());
    let selection = chain::select(&all).unwrap();
    // The new tip's boundary is behind the first object, which holds nothing.
    assert_eq!((selection.tip, selection.chain), (link(2, 3), alloc::vec![ObjectSeq(2)]));
    assert_eq!(selection.orphans, [ObjectSeq(1)]);

    // Alone, or with what links to it.
    let alone = || run.store.objects[&key(1)].clone();
    let lost = chain::select(&present([alone()])).unwrap_err();
    assert_eq!(lost.proof, Proof::NoCompleteChain);
    let after = make(2, 3).after(1, 2).writer("b").bytes();
    let lost = chain::select(&present([alone(), after.clone()])).unwrap_err();
    assert_eq!(lost.proof, Proof::NoCompleteChain);
    // And beside history of an earlier epoch.
    let history = run.store.objects[&key(0)].clone();
    let selection = chain::select(&present([history, alone(), after])).unwrap();
    assert_eq!((selection.tip, selection.chain), (link(0, 1), alloc::vec![ObjectSeq(0)]));
    assert_eq!(selection.orphans, [ObjectSeq(1), ObjectSeq(2)]);
}

#[test]
fn whatever_a_claim_finds_makes_it_start_again_from_the_listing() {
    let cases = [
        // A running writer's object: its entries are history now.
        // One more claim goes ahead of it, and then the hole between is closed.
        (make(1, 1).after(0, 1).entry(7, 10), alloc::vec![1, 2, 4, 3], link(5, 6), link(1, 1)),
        // Somebody's claim: it stands in the way as well as ours.
        (claim(1), alloc::vec![1], link(2, 3), link(0, 1)),
        // Another opening's start object: it is the tip now.
        (make(1, 2).after(0, 1).writer("b"), alloc::vec![1, 2, 4, 3], link(5, 6), link(1, 2)),
        // Of a later epoch, and no history.
        (make(1, 2).after(0, 7).writer("b"), alloc::vec![1], link(2, 3), link(0, 1)),
    ];
    for (other, claims, start, tip) in cases {
        let mut store = free();
        store.overtaken(1, other.bytes());
        let run = open(store);
        assert_eq!(run.opened().start, start);
        assert_eq!(run.start_object().0.predecessor, Some(tip));
        assert_eq!(run.claims(), claims, "{}", run.transcript);
        assert_eq!(run.restarts(), 1);
        assert!(run.times(Operation::ReadBack).is_empty(), "only the listing tells");
        assert_eq!((run.reads(0).len(), run.reads(1).len()), (1, 1));
    }
}

#[test]
fn a_claim_that_finds_no_object_at_its_key_fails_as_damage() {
    for bytes in [Bytes::new(), Bytes::from_static(&[7; 60]), Bytes::from_static(&[7; 500])] {
        let mut store = free();
        store.overtaken(1, bytes);
        let run = open(store);
        assert_eq!(corrupted(&run), key(1));
        assert_eq!(run.puts().len(), 1);
    }
}

#[test]
fn a_claim_without_an_answer_is_repeated() {
    for kind in [StoreErrorKind::Transient, StoreErrorKind::TimedOut] {
        let mut store = free();
        for _ in 0..2 {
            store.fault(Operation::Create, key(1), Fault::Fails(kind));
        }
        let run = open(store);
        assert_eq!(run.opened().start, link(2, 3));
        assert_eq!(run.claims(), [1, 1, 1]);
        let millis: Vec<_> = run.times(Operation::Create).iter().map(|d| d.as_millis()).collect();
        assert_eq!(millis, [0, 100, 300, 300, 300]);
        assert_eq!(run.restarts(), 0);
        assert!(run.reads(1).is_empty(), "our own claim need not be read");
        let retries = run.notices.iter().filter(|n| matches!(n, Notice::OpeningRetries { .. }));
        assert_eq!(retries.count(), 1);
    }
}

/// The repeat then finds something, which the next listing shows to be a claim: whose, is all the
/// same.
#[test]
fn a_claim_whose_answer_was_lost_stands() {
    for kind in [StoreErrorKind::Transient, StoreErrorKind::TimedOut, StoreErrorKind::Exists] {
        let mut store = free();
        store.fault(Operation::Create, key(1), Fault::AnswerLost(kind));
        let run = open(store);
        assert_eq!(run.opened().start, link(2, 3));
        // What a repeat finds may be our own: a lost answer is no start anew.
        let puts = if kind == StoreErrorKind::Exists { 1 } else { 2 };
        assert_eq!((run.claims().len(), run.restarts(), run.reads(1).len()), (puts, 0, 1));
    }
}

/// A client that repeats below us loses many answers: each is a claim that was created, so it is no
/// attempt, and nobody is said to have overtaken.
#[test]
fn claims_whose_answers_a_client_lost_are_no_attempts() {
    let mut store = Store::of([make(0, 1).writer("a"), make(300, 1).after(299, 1).entry(7, 10)]);
    for at in (5..300).step_by(10) {
        let lost = Fault::AnswerLost(StoreErrorKind::Exists);
        store.fault(Operation::Create, key(at), lost);
    }
    let run = open_with(Options { open_attempts: 1, ..Options::default() }, store);
    assert_eq!(run.opened().start, link(301, 302));
    assert_eq!((run.claims().len(), run.restarts()), (299, 0));

    // And it is told where damage comes after it.
    let mut store = free();
    store.fault(Operation::Create, key(1), Fault::AnswerLost(StoreErrorKind::Exists));
    appear(&mut store, 1, [(2, Bytes::from_static(&[7; 500]))]);
    let run = open(store);
    assert_eq!(corrupted(&run), key(2));
    assert!(run.failed().to_string().contains(&*key(1)), "{}", run.failed());
}

#[test]
fn a_claim_that_stays_without_an_answer_ends_in_a_retryable_error() {
    let mut store = free();
    for _ in 0..20 {
        store.fault(Operation::Create, key(1), Fault::Fails(StoreErrorKind::TimedOut));
    }
    let run =
        open_with(Options { open_timeout: Duration::from_secs(1), ..Options::default() }, store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::Create, .. }), "{error}");
    assert!(error.is_retryable());
    assert_eq!(run.claims().len(), 4);
}

#[test]
fn a_refused_claim_fails_the_opening_at_once() {
    for kind in [StoreErrorKind::Refused, StoreErrorKind::NotFound] {
        let mut store = free();
        store.fault(Operation::Create, key(1), Fault::Fails(kind));
        let run = open(store);
        assert!(
            matches!(run.failed(), Error::Store { operation: Operation::Create, key: at, source }
                if *at == key(1) && source.kind == kind),
            "{}",
            run.failed()
        );
        assert!(!run.failed().is_retryable());
        assert_eq!(run.puts().len(), 1);
    }
}

#[test]
fn a_store_that_cannot_create_conditionally_is_unsafe_whatever_is_put_first() {
    for verify_store in [true, false] {
        let mut store = free();
        store.fault(Operation::Create, key(1), Fault::Fails(StoreErrorKind::NotSupported));
        let run = open_with(Options { verify_store, ..Options::default() }, store);
        assert!(
            matches!(run.failed(), Error::UnsafeStore { key: at } if *at == key(1)),
            "{}",
            run.failed()
        );
        assert!(!run.failed().is_retryable());
    }
}

#[test]
fn a_claim_that_no_start_object_could_follow_is_not_created() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let cases = [
        // The claim would take the last sequence.
        Store::of([make(last - 1, last).writer("a")]),
        // Nothing is left for a claim.
        Store::of([make(last, last + 1).writer("a")]),
        // What stands at the last sequence is no history; the way behind the tip is free.
        Store::of([make(0, 1).writer("a"), claim(last)]),
    ];
    for store in cases {
        let run = open(store);
        assert!(matches!(run.failed(), Error::SequenceExhausted), "{}", run.failed());
        assert!(run.puts().is_empty(), "it would only end a writer that still runs");
    }
    // The ids of the tip leave no room, its sequence does: no writer made that.
    let run = open(Store::of([make(0, 1).entry_with_id(1, crate::types::EntryId::MAX, 1)]));
    assert_eq!(corrupted(&run), key(0));
    assert!(run.failed().to_string().contains("no object could follow"), "{}", run.failed());
    assert!(run.puts().is_empty());
}
