use std::vec;

use super::*;
use crate::error::Part;
use crate::format::{HEADER_LEN, MIN_OBJECT_LEN, TAIL_WINDOW, TRAILER_LEN};
use crate::types::RegionId;

/// An object with one entry, of exactly this size.
fn sized(sequence: u64, size: u64) -> Make {
    let one = |len| make(sequence, 1).after(sequence - 1, 1).entry(1, len);
    let overhead = one(0).bytes().len() as u64;
    one((size - overhead) as usize)
}

/// An object whose footer is larger than the window.
fn with_many_regions(sequence: u64) -> Make {
    (0..1500)
        .fold(make(sequence, 1).after(sequence - 1, 1), |object, region| object.entry(region, 1))
}

fn start() -> Make {
    make(0, 1).writer("a")
}

fn corrupted(run: &Run) -> (Key, Part) {
    match run.failed() {
        Error::Corrupted { key, part, .. } => (key.clone(), *part),
        other => panic!("{other}"),
    }
}

#[test]
fn an_object_costs_one_read_two_or_three() {
    let large = TAIL_WINDOW + 1;
    let many = with_many_regions(4);
    let many_size = many.clone().bytes().len() as u64;
    let store = Store::of([start(), sized(1, 200), sized(2, TAIL_WINDOW), sized(3, large), many]);
    let run = open(store);
    assert_eq!((run.reads(1).len(), run.reads(2).len()), (1, 1));
    assert_eq!((&run.reads(1)[0], &run.reads(2)[0]), (&(0..200), &(0..TAIL_WINDOW)));
    assert_eq!(run.reads(3), [0..HEADER_LEN as u64, 1..large]);
    let trailer = many_size - TRAILER_LEN as u64;
    let footer = trailer - (4 + 48 * 1500)..trailer;
    assert_eq!(run.reads(4), [0..HEADER_LEN as u64, many_size - TAIL_WINDOW..many_size, footer]);
    let recovered = run.opened();
    assert_eq!(recovered.catalog.object_count(), 6);
    assert_eq!(recovered.catalog.regions().count(), 1500);
    assert_eq!(recovered.catalog.boundary(), ObjectSeq(1));
}

#[test]
fn objects_are_read_in_order_and_never_more_at_once_than_allowed() {
    for limit in [1, 2, 3, 7, 64] {
        let objects = (1..60).map(|sequence| match sequence % 7 {
            0 => with_many_regions(sequence),
            1 | 3 => sized(sequence, TAIL_WINDOW + 100),
            _ => sized(sequence, 200),
        });
        let mut store = Store::of([start()].into_iter().chain(objects));
        store.fault(Operation::Read, key(5), Fault::Damaged);
        store.fault(Operation::Read, key(8), Fault::Fails(StoreErrorKind::Transient));
        let options = Options { open_concurrency: limit, ..Options::default() };
        let run = run(options, store, Order::NewestFirst);
        assert_eq!(run.opened().start, link(61, 62));
        assert_eq!(run.most_at_once, limit as usize);
        let mut begun = Vec::new();
        for (_, effect) in &run.asked {
            if operation_of(effect) == Operation::Read && !begun.contains(effect.key()) {
                begun.push(effect.key().clone());
            }
        }
        assert!(begun.is_sorted(), "{begun:?}");
    }
}

#[test]
fn a_request_that_waits_for_its_repeat_keeps_its_place() {
    let mut store = Store::of([start(), sized(1, 200), sized(2, 200)]);
    store.fault(Operation::Read, key(0), Fault::Fails(StoreErrorKind::Transient));
    let options = Options { open_concurrency: 1, ..Options::default() };
    let run = open_with(options, store);
    let millis: Vec<_> = run.times(Operation::Read).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 100, 100, 100, 100], "the last is the start object");
}

#[test]
fn a_damaged_download_is_fetched_once_more() {
    let objects = || [start(), sized(1, 200), sized(2, TAIL_WINDOW + 100), with_many_regions(3)];
    // Which read of which object is damaged, and how many reads that object then costs.
    for (sequence, nth, reads) in [(1, 0, 2), (2, 0, 4), (2, 1, 4), (3, 0, 5), (3, 1, 5), (3, 2, 6)]
    {
        let mut store = Store::of(objects());
        for _ in 0..nth {
            let sound = Fault::None;
            store.fault(Operation::Read, key(sequence), sound);
        }
        store.fault(Operation::Read, key(sequence), Fault::Damaged);
        let run = open(store);
        assert_eq!(run.opened().start, link(5, 6));
        assert_eq!(run.reads(sequence).len(), reads, "read {nth} of object {sequence}");
    }
}

#[test]
fn the_lowest_damaged_object_fails_the_opening_whichever_is_seen_first() {
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let mut store = Store::of([start(), sized(1, 200), sized(2, 200), sized(3, 200)]);
        store.damage(1, 30);
        store.damage(2, 199);
        store.objects.insert(key(3), Bytes::new());
        let run = run(Options::default(), store, order);
        assert_eq!(corrupted(&run), (key(1), Part::Header));
        assert_eq!(run.reads(1).len(), 4, "twice for each of two listings");
        assert!(run.times(Operation::Create).is_empty());
        let text = run.failed().to_string();
        assert!(text.contains(&*key(1)) && text.contains("checksum"), "{text}");
    }
}

#[test]
fn objects_above_a_damaged_one_are_not_read_any_more() {
    let mut store = Store::of((1..20).map(|at| sized(at, 200)).chain([start()]));
    store.damage(2, 199);
    let options = Options { open_concurrency: 2, ..Options::default() };
    let run = open_with(options, store);
    assert_eq!(corrupted(&run).0, key(2));
    assert_eq!(run.reads(2).len(), 4, "twice for each listing");
    assert!((8..20).all(|at| run.reads(at).is_empty()));
}

#[test]
fn each_part_that_is_damaged_is_named() {
    let size = 200;
    for (at, part) in [
        (0, Part::Header),
        (49, Part::Header),
        (size - TRAILER_LEN - 1, Part::Footer),
        (size - TRAILER_LEN, Part::Trailer),
        (size - 1, Part::Trailer),
    ] {
        let mut store = Store::of([start(), sized(1, size as u64)]);
        store.damage(1, at);
        assert_eq!(corrupted(&open(store)), (key(1), part), "byte {at}");
    }
    // Segments are not read: a damaged one is found by its reader.
    let mut store = Store::of([start(), sized(1, size as u64)]);
    store.damage(1, HEADER_LEN + 30);
    open(store).opened();
}

#[test]
fn what_is_too_short_for_an_object_is_not_even_read() {
    for size in [0, 1, HEADER_LEN, MIN_OBJECT_LEN as usize - 1] {
        let mut store = Store::of([start()]);
        store.objects.insert(key(1), vec![0; size].into());
        let run = open(store);
        assert_eq!(corrupted(&run), (key(1), Part::Object));
        assert!(run.reads(1).is_empty());
        assert!(run.failed().to_string().contains(&std::format!("found {size}")));
    }
}

#[test]
fn an_object_under_the_key_of_another_is_damage() {
    let mut store = Store::of([start()]);
    store.objects.insert(key(1), sized(2, 200).bytes());
    let run = open(store);
    assert_eq!(corrupted(&run), (key(1), Part::Header));
    let text = run.failed().to_string();
    assert!(text.contains("expected sequence 1") && text.contains("found 2"), "{text}");
}

#[test]
fn an_object_that_is_gone_below_the_boundary_is_forgiven_and_its_sequence_counts() {
    let mut store = Store::of([
        make(0, 1).writer("a"),
        make(4, 5).after(0, 1).writer("b").boundary(4),
        make(5, 5).after(4, 5).entry(1, 10).boundary(4),
    ]);
    store.ghosts = vec![
        Listed { key: key(1), size: 100, modified_millis: 0 },
        Listed { key: key(3), size: 70_000, modified_millis: 0 },
    ];
    let run = open(store);
    assert_eq!(run.times(Operation::List).len(), 3, "the first, after the claim, the look");
    assert_eq!(run.opened().start, link(7, 8));

    // The largest of all, and below a boundary: the tip is the start object at 7, whose writer
    // skipped ahead.
    let mut store = Store::of([make(7, 8).writer("b").boundary(7)]);
    store.ghosts = vec![Listed { key: key(6), size: 100, modified_millis: 0 }];
    assert_eq!(open(store).opened().start, link(9, 10));
}

#[test]
fn an_object_that_is_gone_at_or_above_the_boundary_makes_it_list_again() {
    // Object 1 is deleted after the listing, and the tip that allows it is not seen by it.
    let mut store = Store::of([start(), sized(1, 200), sized(2, 200)]);
    store.fault(
        Operation::Read,
        key(1),
        Fault::After(Box::new(|objects| {
            objects.remove(&key(0));
            objects.remove(&key(1));
            objects.insert(key(3), make(3, 1).after(2, 1).boundary(2).entry(1, 10).bytes());
        })),
    );
    let run = open(store);
    assert_eq!(run.opened().start, link(5, 6));
    assert_eq!(run.opened().stats.recovered_objects, 2);
    let millis: Vec<_> = run.times(Operation::List).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0, 0, 0], "the last two after the claim, and the look");
}

#[test]
fn everything_gone_makes_it_list_again() {
    let mut store = Store::of([start()]);
    store.fault(Operation::Read, key(0), Fault::After(Box::new(|objects| objects.clear())));
    let run = open(store);
    assert_eq!(run.times(Operation::List).len(), 4, "nothing is asked for twice; then the look");
    assert_eq!(run.opened().start, link(0, 1));
}

#[test]
fn what_two_listings_in_a_row_show_and_no_read_finds_is_lost() {
    // One that is gone may be needed: above a tip, as what others link to, at the boundary itself.
    let cases = [
        (1, start()),
        (0, sized(1, 200)),
        (4, make(5, 1).after(4, 1).boundary(4).entry(1, 1)),
        (4, make(5, 1).after(3, 1).boundary(4).entry(1, 1)),
    ];
    for (ghost, object) in cases {
        let mut store = Store::of([object]);
        store.ghosts = vec![Listed { key: key(ghost), size: 70_000, modified_millis: 0 }];
        let run = open(store);
        assert_eq!(run.times(Operation::List).len(), 2, "the second confirms the first");
        assert!(run.times(Operation::Create).is_empty());
        assert_eq!(corrupted(&run), (key(ghost), Part::Object));
        assert!(!run.failed().is_retryable());
    }
}

#[test]
fn damage_is_reported_also_when_another_object_is_gone() {
    let mut store = Store::of([start(), sized(2, 200)]);
    store.damage(2, 199);
    store.ghosts = vec![Listed { key: key(1), size: 100, modified_millis: 0 }];
    assert_eq!(corrupted(&open(store)), (key(2), Part::Trailer));
}

/// A writer record is for people and for the proof of lost objects: a damaged one, or one of a
/// later version, is no reason not to open.
#[test]
fn a_writer_record_that_cannot_be_read_is_no_damage() {
    let later = Bytes::from_static(b"\x02 whatever a later version says");
    let store = Store::of([make(0, 1).reserved(RegionId::WRITER, later)]);
    assert_eq!(open(store).opened().start, link(2, 3));
}
