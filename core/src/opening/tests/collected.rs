//! Openings over what a collection left, however far it came, and over what landed late (DESIGN.md
//! sections 3, 4, 9 and 12).

use super::session::Session;
use super::*;
use crate::catalog::UnindexedKind;
use crate::types::{EntryId, RegionId};

/// Object 0 is the start object, each other follows the one before, the boundary of 6 is 5.
fn history() -> Store {
    let object = |at: u64| make(at, 1).after(at - 1, 1).entry(1, 10);
    Store::of(
        [make(0, 1).writer("a")]
            .into_iter()
            .chain((1..6).map(object))
            .chain([object(6).boundary(5)]),
    )
}

fn kinds(run: &Run) -> Vec<(u64, UnindexedKind)> {
    let unindexed = run.opened().catalog.unindexed();
    unindexed.map(|object| (object.link.sequence.0, object.kind)).collect()
}

/// A crash anywhere in it, also between a delete and its unindexing: whatever is left below the
/// boundary, history is the same, and goes on where it was.
#[test]
fn a_collection_that_stopped_anywhere_leaves_the_same_history() {
    for left in 0u32..1 << 5 {
        let mut store = history();
        for sequence in (0..5).filter(|sequence| left >> sequence & 1 == 0) {
            store.objects.remove(&key(sequence));
        }
        let run = open(store);
        let recovered = run.opened();
        assert_eq!(recovered.stats.recovered_objects, 2, "{left:b}");
        assert_eq!(recovered.start, link(8, 9), "{left:b}");
        assert_eq!(run.start_object().0.predecessor, Some(link(6, 1)));
        assert_eq!(run.start_object().0.boundary, ObjectSeq(5));
        // What the tip's chain still leads to was history. The start object stands in the way.
        let leads = |sequence: u64| (sequence..5).all(|at| left >> at & 1 == 1);
        let mut expected: Vec<_> = (0..5)
            .filter(|sequence| left >> sequence & 1 == 1)
            .map(|sequence| match sequence {
                0 => (0, UnindexedKind::Start),
                _ if leads(sequence) => (sequence, UnindexedKind::Passed),
                _ => (sequence, UnindexedKind::Other),
            })
            .collect();
        expected.push((7, UnindexedKind::Claim));
        assert_eq!(kinds(&run), expected, "{left:b}");
        // The new writer deletes at once what was history, and nothing that may stand in the way.
        let session = Session::open_with(Options::default(), {
            let mut store = history();
            store.objects.retain(|key, _| run.store.objects.contains_key(key));
            store
        });
        let passed: Vec<_> = (1..5).filter(|sequence| leads(*sequence)).collect();
        assert_eq!(session.deleted, passed, "{left:b}");
    }
}

#[test]
fn without_retention_all_that_is_left_goes() {
    let mut store = history();
    store.objects.remove(&key(2));
    let session = Session::open(store);
    assert_eq!(session.deleted, [0, 1, 3, 4]);
    assert_eq!(session.stored(), [5, 6, 7, 8], "the claim at 7 is above the boundary");
}

#[test]
fn a_link_below_the_boundary_need_not_hold() {
    // What stands there is another object: an orphan of an earlier writer.
    let store = Store::of([
        make(4, 2).after(3, 2).entry(7, 10),
        make(5, 4).after(4, 4).entry(1, 10),
        make(6, 4).after(5, 4).entry(1, 10).boundary(5),
    ]);
    let run = open(store);
    assert_eq!(run.opened().stats.recovered_objects, 2);
    assert_eq!(kinds(&run), [(4, UnindexedKind::Other), (7, UnindexedKind::Claim)]);
}

/// The indexed objects that may be deleted, be the boundary where it may.
fn garbage(run: &Run) -> Vec<u64> {
    let catalog = &run.opened().catalog;
    let next = |from: ObjectSeq| catalog.next_garbage(from.next()..ObjectSeq(100));
    let first = catalog.next_garbage(ObjectSeq::ZERO..ObjectSeq(100));
    core::iter::successors(first, |last| next(*last)).map(|sequence| sequence.0).collect()
}

/// Section 12, rule 5: by the age of what comes next in history.
#[test]
fn start_objects_of_history_are_kept_until_what_comes_above_them_is_old() {
    const DAY: u64 = 24 * 3600 * 1000;
    let kept_start = |days_ago: [u64; 5]| {
        let mut store = Store::of([
            make(0, 1).writer("a"),
            make(1, 1).after(0, 1).entry(1, 10),
            make(2, 3).after(1, 1).writer("b"),
            make(3, 3).after(2, 3).entry(1, 10).releases(&[(1, u64::MAX)]),
        ]);
        // At 4 the opening puts its own claim, and its start object at 5.
        store.modified = (0..).map(key).zip(days_ago.map(|days| (100 - days) * DAY)).collect();
        garbage(&open(store))
    };
    assert_eq!(kept_start([8, 8, 8, 8, 0]), [0, 1, 2, 3]);
    assert_eq!(kept_start([90, 80, 6, 6, 0]), [0, 1, 3], "3 came above 2 but 6 days ago");
    assert_eq!(kept_start([90, 6, 6, 6, 0]), [1, 3], "1 came above 0 but 6 days ago");
    assert_eq!(kept_start([6, 8, 8, 8, 0]), [0, 1, 2, 3], "their own ages say nothing");
}

#[test]
fn the_start_object_that_is_the_recovered_tip_and_the_own_one_are_kept() {
    let store = || {
        let mut store = Store::of([make(0, 1).writer("a")]);
        store.modified = [(key(0), 0), (key(1), u64::MAX)].into();
        store
    };
    assert_eq!(garbage(&open(store())), [0; 0]);
    assert_eq!(garbage(&open_keeping_nothing(Options::default(), store())), [0, 2]);
}

/// Batch 2 of region 7 was rolled back; 3 came after it.
fn rolled_back(boundary: u64) -> Store {
    Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10),
        make(3, 1).after(1, 1).entry(2, 10),
        make(4, 1).after(3, 1).entry(2, 10).boundary(boundary),
    ])
}

fn late() -> Bytes {
    make(2, 1).after(1, 1).entry(7, 10).bytes()
}

#[test]
fn a_late_create_before_the_opening_is_no_history_above_the_boundary_or_below() {
    for boundary in [0, 1, 3, 4] {
        let mut store = rolled_back(boundary);
        store.objects.insert(key(2), late());
        let run = open(store);
        let recovered = run.opened();
        assert_eq!(recovered.catalog.durable(RegionId(7)), EntryId::ZERO);
        assert_eq!(recovered.start, link(6, 7));
        assert!(kinds(&run).contains(&(2, UnindexedKind::Other)), "{boundary}");
    }
}

#[test]
fn a_late_create_while_the_opening_runs_changes_nothing() {
    for boundary in [0, 3] {
        for (operation, at) in
            [(Operation::Create, key(5)), (Operation::Create, key(6)), (Operation::Read, key(4))]
        {
            let mut store = rolled_back(boundary);
            store.before(0, operation, at.clone(), |objects| {
                objects.insert(key(2), late());
            });
            let run = open(store);
            assert_eq!(run.opened().catalog.durable(RegionId(7)), EntryId::ZERO, "{at}");
            assert_eq!(run.opened().start, link(6, 7));
            assert_eq!(run.restarts(), 0);
        }
    }
}

#[test]
fn a_late_create_after_the_opening_waits_for_the_next_one() {
    let mut session = Session::open(rolled_back(0));
    session.store.objects.insert(key(2), late());
    for region in [1, 2] {
        session.obsolete(region);
    }
    session.append(3);
    let below = |session: &Session| session.stored().into_iter().filter(|at| *at < 7).collect();
    let left: Vec<u64> = below(&session);
    assert_eq!(left, [2], "it was never seen");
    let session = session.crash();
    assert_eq!(below(&session), [0; 0]);
    assert_eq!(session.visible(7), [0; 0]);
    assert_eq!(session.visible(3), [7]);
}

/// It is the only thing after the last indexed object, so it was of an unknown outcome: history.
#[test]
fn a_late_create_with_nothing_after_it_is_history_once_it_landed() {
    let object = || make(2, 1).after(1, 1).entry(7, 10);
    let store = || Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]);
    let mut before = store();
    before.add(object());
    assert_eq!(open(before).opened().catalog.durable(RegionId(7)).sequence(), ObjectSeq(2));
    // The claim meets it.
    let mut meanwhile = store();
    meanwhile.overtaken(2, object().bytes());
    let run = open(meanwhile);
    assert_eq!(run.opened().catalog.durable(RegionId(7)).sequence(), ObjectSeq(2));
    assert_eq!(run.restarts(), 1);
}
