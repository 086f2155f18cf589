//! Views that are opened while a writer collects: DESIGN.md section 4, step 2, and section 12,
//! rule 6.

use super::*;

/// Collects everything below 3, once a tip that allows it is there.
fn collect(objects: &mut Objects) {
    for sequence in 0..3 {
        objects.remove(&key(sequence));
    }
    objects.insert(key(4), entry(4).boundary(3).bytes());
}

fn history() -> [Make; 4] {
    [start(), entry(1), entry(2), entry(3)]
}

#[test]
fn what_is_collected_below_the_boundary_meanwhile_is_forgiven() {
    let mut store = Store::of([start(), entry(1), entry(2).boundary(2)]);
    store.before(0, Operation::Read, key(0), |objects| {
        objects.remove(&key(1));
    });
    let run = view(store);
    assert_eq!(reads_of(run.opened(), 1), [2]);
    assert_eq!(run.times(Operation::List).len(), 1);
    let seen: Vec<_> = run.opened().objects().map(|object| object.header.sequence.0).collect();
    assert_eq!(seen, [0, 2], "what is gone is not shown");
}

#[test]
fn what_is_collected_above_it_makes_it_list_again_and_read_what_is_new() {
    let mut store = Store::of(history());
    store.before(0, Operation::Read, key(1), collect);
    let run = view(store);
    assert_eq!(reads_of(run.opened(), 1), [3, 4]);
    let millis: Vec<_> = run.times(Operation::List).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0]);
    assert_eq!((run.reads(3).len(), run.reads(4).len()), (1, 1), "3 was read already");
}

#[test]
fn release_records_that_are_collected_meanwhile_make_it_list_again() {
    // Too many to come with the tail: the third read of the object is theirs.
    let records: Vec<_> = (100..5_000).map(|region| (region, 5)).collect();
    let release = make(1, 1).after(0, 1).releases(&records);
    let mut store = Store::of([start(), release, entry(2), entry(3)]);
    store.before(2, Operation::Read, key(1), collect);
    let run = view(store);
    assert_eq!(reads_of(run.opened(), 1), [3, 4]);
    assert_eq!(run.times(Operation::List).len(), 2);
}

#[test]
fn what_two_listings_show_and_no_read_finds_is_damage() {
    let mut store = Store::of(history());
    store.ghosts = vec![Listed { key: key(4), size: 100, modified_millis: 0 }];
    let run = view(store);
    assert_eq!(corrupted(&run), (key(4), Part::Object));
    assert_eq!(run.times(Operation::List).len(), 2);
}

#[test]
fn listings_that_never_agree_end_in_a_retryable_error_after_open_attempts() {
    let mut store = Store::of(history());
    for sequence in 4..9 {
        let bytes = entry(sequence).bytes();
        store.before(0, Operation::List, prefix().objects(), move |objects| {
            objects.insert(key(sequence), bytes);
        });
        store.before(0, Operation::Read, key(sequence), move |objects| {
            objects.remove(&key(sequence));
        });
    }
    let run = view_with(Options { open_attempts: 3, ..Options::default() }, store);
    assert!(run.failed().is_retryable(), "{}", run.failed());
    assert_eq!(run.times(Operation::List).len(), 4);
}

#[test]
fn a_prefix_that_is_emptied_meanwhile_is_empty() {
    let mut store = Store::of([start()]);
    store.before(0, Operation::Read, key(0), |objects| objects.clear());
    let run = view(store);
    assert_eq!(run.opened().tip(), None);
    assert_eq!(run.times(Operation::List).len(), 3, "what shows nothing is asked for again");
}
