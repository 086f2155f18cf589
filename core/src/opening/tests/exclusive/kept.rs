//! Section 12, rule 5: what stands in the way is known with the age that counts for it, by the store's
//! clock alone.

use super::*;
use crate::catalog::{Unindexed, UnindexedKind};

const DAY: u64 = 24 * 3600 * 1000;

/// What stands outside history: its sequence, what it is, the days that count, and whether it is kept.
fn standing(run: &Run) -> Vec<(u64, UnindexedKind, Option<u64>, bool)> {
    let unindexed = run.opened().catalog.unindexed();
    let row = |object: &Unindexed| {
        let days = object.age.map(|age| age.as_secs() / 86_400);
        let kept = object.is_kept(Options::default().fence_retention);
        (object.link.sequence.0, object.kind, days, kept)
    };
    unindexed.map(row).collect()
}

#[test]
fn what_is_no_part_of_history_is_kept_by_the_age_of_the_history_above_it() {
    let mut store = Store::of([
        make(0, 1).writer("a"),
        // An orphan of the first writer, and a claim.
        make(1, 1).after(9, 1).entry(1, 10),
        claim(2),
        make(3, 4).after(0, 1).writer("b"),
        // The start object of an opening that linked to something that never landed.
        make(4, 5).after(9, 9).writer("c"),
        make(5, 4).after(3, 4).entry(1, 10),
        claim(6),
    ]);
    let written = [(0, 0), (1, 0), (2, 30), (3, 22), (4, 0), (5, 24), (6, 30)];
    store.modified = written.map(|(sequence, day)| (key(sequence), day * DAY)).into();
    let expected = [
        (1, UnindexedKind::Other, Some(8), false),
        (2, UnindexedKind::Claim, Some(8), false),
        (4, UnindexedKind::Start, Some(6), true),
        (6, UnindexedKind::Claim, None, true),
    ];
    assert_eq!(standing(&open(store)), expected);
}

/// An opening that died long ago put a claim ahead at 73; now a slow writer has got to 72. A take-over
/// uses the claim as its barrier, starts at 74, and collects: were 73 deleted, the slow writer would
/// acknowledge what it puts there.
#[test]
fn an_old_claim_that_has_just_become_a_barrier_is_kept() {
    let slow = |at: u64| make(at, 1).after(at - 1, 1).entry(1, 10);
    let objects = [make(0, 1).writer("a"), claim(73)].into_iter().chain((1..=72).map(slow));
    let mut store = Store::of(objects);
    store.modified = (0..=73).map(|at| (key(at), 30 * DAY)).collect();
    store.modified.insert(key(73), 0);
    let mut run = open(store);
    assert_eq!(run.opened().start, link(74, 75));
    assert_eq!(standing(&run), [(73, UnindexedKind::Claim, None, true)]);
    // A later opening keeps it, too, until the start object of the take-over is old.
    for (days, kept) in [(6, true), (7, false)] {
        let mut store = core::mem::take(&mut run.store);
        store.modified.insert(key(74), (30 - days) * DAY);
        store.objects.remove(&key(75));
        store.objects.remove(&key(76));
        store.modified.insert(key(75), 30 * DAY);
        run = open(store);
        assert_eq!(run.opened().start, link(76, 77));
        let standing = standing(&run);
        assert!(standing.contains(&(73, UnindexedKind::Claim, Some(days), kept)), "{standing:?}");
    }
}

#[test]
fn history_is_not_among_it() {
    let run = open(Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]));
    assert_eq!(standing(&run), [(2, UnindexedKind::Claim, None, true)], "the opening's own claim");
}
