//! Section 12, rule 5: what stands in the way is known with its age, by the store's clock alone.

use super::*;
use crate::catalog::UnindexedKind;

const DAY: u64 = 24 * 3600 * 1000;

#[test]
fn what_is_no_part_of_history_is_kept_by_its_age_against_the_newest_of_the_listing() {
    let mut store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).entry(1, 10),
        claim(2),
        // The start object of an opening that linked to something that never landed, and an
        // orphan of the old writer.
        make(3, 4).after(9, 9).writer("b"),
        make(4, 1).after(9, 1).entry(1, 10),
    ]);
    let written = [(0, 0), (1, 1), (2, 2), (3, 9), (4, 10)];
    store.modified = written.map(|(sequence, day)| (key(sequence), day * DAY)).into();
    let run = open(store);
    let catalog = &run.opened().catalog;
    let seen: Vec<_> = catalog
        .unindexed()
        .map(|object| (object.link.sequence.0, object.kind, object.age.as_secs() / 86_400))
        .collect();
    let expected =
        [(2, UnindexedKind::Claim, 8), (3, UnindexedKind::Start, 1), (4, UnindexedKind::Other, 0)];
    assert_eq!(seen, expected);
    let kept: Vec<_> = catalog
        .unindexed()
        .map(|object| object.is_kept(Options::default().fence_retention))
        .collect();
    assert_eq!(kept, [false, true, true]);
}

#[test]
fn history_is_not_among_it() {
    let run = open(Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]));
    let seen: Vec<_> = run.opened().catalog.unindexed().map(|object| object.kind).collect();
    assert_eq!(seen, [UnindexedKind::Claim], "the opening's own claim");
}
