use std::string::String;

use super::*;
use crate::error::Part;
use crate::format::ReleaseRecord;
use crate::types::{EntryId, RegionId};

fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position).unwrap()
}

fn start() -> Make {
    make(0, 1).writer("a")
}

fn corrupted(run: &Run) -> (Key, Part, String) {
    match run.failed() {
        Error::Corrupted { key, part, reason, .. } => (key.clone(), *part, reason.to_string()),
        other => panic!("{other}"),
    }
}

/// Releases of many regions, more than come with the tail; region 1 among them.
fn many_releases() -> Vec<(u64, u64)> {
    let first = (1, id(1, 1).0);
    [first].into_iter().chain((100..5_000).map(|region| (region, 5))).collect()
}

#[test]
fn release_records_raise_watermarks_before_the_boundary_is_used() {
    let run = open(Store::of([
        start(),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry(2, 10),
        make(3, 1).after(2, 1).entry(1, 10).releases(&[(1, id(1, 1).0)]),
    ]));
    let catalog = &run.opened().catalog;
    assert_eq!(catalog.watermark(RegionId(1)), id(1, 1));
    assert_eq!(catalog.segments_from(RegionId(1), EntryId::ZERO).count(), 1, "that of object 3");
    assert_eq!(catalog.boundary(), ObjectSeq(2));
    assert_eq!(run.start_object().0.boundary, ObjectSeq(2));
    assert_eq!(run.reads(3).len(), 1, "the records came with the rest");
}

#[test]
fn release_records_that_did_not_come_along_cost_one_read() {
    let records = many_releases();
    let store = Store::of([
        start(),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry(2, 10).releases(&records),
    ]);
    let run = open(store);
    let length = 12 + 12 + 5 + 16 * records.len() as u64;
    let from = 54 + 12 + 12 + 10;
    assert_eq!(run.reads(2).len(), 3);
    assert_eq!(run.reads(2)[2], from..from + length);
    assert_eq!(run.opened().catalog.watermark(RegionId(1)), id(1, 1));
    assert_eq!(run.start_object().0.boundary, ObjectSeq(2));
}

#[test]
fn the_larger_of_the_boundaries_is_recovered() {
    // The tip's: a watermark that is not in the log had raised it.
    let store = Store::of([
        start(),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry(1, 10).boundary(2),
    ]);
    assert_eq!(open(store).start_object().0.boundary, ObjectSeq(2));
    // The computed one: nothing holds anything, so it is one above the last.
    let store = Store::of([start(), make(5, 1).after(0, 1)]);
    let run = open(store);
    assert_eq!(run.start_object().0.boundary, ObjectSeq(6));
    assert_eq!(run.opened().catalog.boundary(), ObjectSeq(8), "the start object holds nothing");
}

#[test]
fn release_records_of_orphans_and_below_the_boundary_do_not_count() {
    let store = Store::of([
        make(0, 1).writer("a").releases(&[(1, id(1, 1).0)]),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(0, 1).releases(&[(1, id(3, 1).0)]),
        make(3, 1).after(1, 1).entry(1, 10).boundary(1),
    ]);
    let run = open(store);
    assert_eq!(run.opened().catalog.watermark(RegionId(1)), EntryId::ZERO);
    assert_eq!(run.opened().stats.recovered_objects, 2);
}

#[test]
fn a_record_of_a_reserved_region_releases_nothing() {
    let store = Store::of([make(0, 1).writer("a").releases(&[(u64::MAX, u64::MAX)])]);
    assert_eq!(open(store).opened().catalog.watermark(RegionId::RELEASES), EntryId::ZERO);
}

#[test]
fn release_records_that_do_not_decode_are_fetched_once_more() {
    for records in [alloc::vec![(1, id(1, 1).0)], many_releases()] {
        let held = records.len() == 1;
        let objects = || {
            Store::of([
                start(),
                make(1, 1).after(0, 1).entry(1, 10),
                make(2, 1).after(1, 1).releases(&records),
            ])
        };
        let size = objects().objects[&key(2)].len() as u64;
        let segment = 54..size - 32 - 4 - 48;

        let mut store = objects();
        if held {
            // Damaged within the segment, which the examination does not verify.
            let sound = store.objects[&key(2)].clone();
            store.damage(2, 90);
            let heal = move |objects: &mut Objects| {
                objects.insert(key(2), sound);
            };
            store.fault(Operation::Read, key(2), Fault::None);
            store.fault(Operation::Read, key(2), Fault::After(Box::new(heal)));
        } else {
            for _ in 0..2 {
                store.fault(Operation::Read, key(2), Fault::None);
            }
            store.fault(Operation::Read, key(2), Fault::Damaged);
        }
        let run = open(store);
        assert_eq!(run.opened().catalog.watermark(RegionId(1)), id(1, 1));
        assert_eq!(run.reads(2).last(), Some(&segment));
        assert_eq!(run.reads(2).len(), if held { 2 } else { 4 });

        let mut store = objects();
        store.damage(2, 90);
        let run = open(store);
        let (at, part, _) = corrupted(&run);
        assert_eq!((at, part), (key(2), Part::Segment(RegionId::RELEASES)));
        // Once more for the listing that confirms it, and again where nothing of it was at hand.
        assert_eq!(run.reads(2).len(), if held { 3 } else { 6 });
        assert_eq!(run.times(Operation::List).len(), 2);
        assert!(run.puts().is_empty(), "no claim comes before history is recovered");
    }
}

#[test]
fn reads_of_release_records_keep_to_the_limit_too() {
    let records = many_releases();
    let releases = |at: u64| make(at, 1).after(at - 1, 1).releases(&records);
    let mut store = Store::of([start(), releases(1), releases(2)]);
    for fault in [Fault::None, Fault::None, Fault::Fails(StoreErrorKind::Transient)] {
        store.fault(Operation::Read, key(1), fault);
    }
    let options = Options { open_concurrency: 1, ..Options::default() };
    let run = open_with(options, store);
    assert_eq!(run.opened().start, link(4, 5));
    assert_eq!(run.most_at_once, 1);
    let millis: Vec<_> = run.times(Operation::Read).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis, [0, 0, 0, 0, 0, 0, 100, 100, 100], "object 2's wait for object 1's repeat");
}

#[test]
fn release_records_of_a_later_version_fail_the_opening() {
    let later = Bytes::from_static(b"\x02....");
    let run = open(Store::of([make(0, 1).reserved(RegionId::RELEASES, later)]));
    let (at, part, reason) = corrupted(&run);
    assert_eq!((at, part), (key(0), Part::ReleaseRecords));
    assert!(reason.contains("unsupported"), "{reason}");
}

#[test]
fn release_records_that_are_gone_make_it_list_again() {
    let records = many_releases();
    let mut store = Store::of([start(), make(1, 1).after(0, 1).releases(&records)]);
    for _ in 0..2 {
        store.fault(Operation::Read, key(1), Fault::None);
    }
    let collect = |objects: &mut Objects| {
        objects.remove(&key(0));
        objects.remove(&key(1));
        objects.insert(key(3), make(3, 1).after(1, 1).boundary(2).entry(7, 1).bytes());
    };
    store.fault(Operation::Read, key(1), Fault::After(Box::new(collect)));
    let run = open(store);
    // The first, again, after the claim behind the new tip, the look.
    assert_eq!(run.times(Operation::List).len(), 4);
    assert_eq!(run.claims(), [4]);
    assert_eq!(run.opened().start, link(5, 6));
    assert_eq!(run.start_object().0.predecessor, Some(link(3, 1)));
}

#[test]
fn a_lost_object_fails_the_opening_by_its_name() {
    let run = open(Store::of([make(3, 1).after(2, 1).entry(1, 10)]));
    let (at, part, reason) = corrupted(&run);
    assert_eq!((at, part), (key(2), Part::Object));
    assert!(reason.contains("object 3 of epoch 1"), "{reason}");
}

/// Whether the links above the tip prove a loss depends on the pipeline depth that the writer
/// record names: 4 here, so 8 links are too many.
#[test]
fn the_pipeline_depth_of_the_writer_record_counts() {
    let store = |links: u64| {
        let objects = (2..=2 + links).map(|at| make(at, 1).after(at - 1, 1).entry(1, 1));
        Store::of([start()].into_iter().chain(objects))
    };
    let run = open(store(7));
    assert_eq!(run.opened().start, link(10, 11));
    let counted = run.notices.iter().find_map(|notice| match notice {
        Notice::IncompleteObjects { count } => Some(*count),
        _ => None,
    });
    assert_eq!(counted, Some(8));
    assert_eq!(corrupted(&open(store(8))).0, key(1));
}

#[test]
fn ids_that_do_not_ascend_along_the_chain_fail_the_opening() {
    let run = open(Store::of([
        start(),
        make(1, 1).after(0, 1).entry(1, 10),
        make(2, 1).after(1, 1).entry_with_id(1, id(1, 1), 10),
    ]));
    let (at, part, _) = corrupted(&run);
    assert_eq!((at, part), (key(2), Part::Segment(RegionId(1))));
}

#[test]
fn the_next_sequence_is_above_all_that_was_ever_used() {
    // An orphan's sequence counts, and a listed epoch.
    let store = Store::of([start(), make(7, 1).after(6, 1).entry(1, 1)]);
    assert_eq!(open(store).opened().start, link(8, 9));
    let store = Store::of([start(), make(1, 12).after(0, 1)]);
    // No writer makes one that far above its sequence. It takes as many claims until one is later.
    let run = open(store);
    assert_eq!(run.claims(), (2..=12).collect::<Vec<_>>());
    assert_eq!(run.opened().start, link(13, 14));
    // Ids of an older scheme.
    let store = Store::of([start(), make(1, 1).after(0, 1).entry_with_id(1, id(40, 3), 10)]);
    let run = open(store);
    assert_eq!(run.opened().start, link(41, 42));
    assert_eq!(run.start_object().0.predecessor, Some(link(1, 1)));
    let ids = [id(1, 1), id(50, 1)];
    let object = ids.into_iter().fold(make(1, 1).after(0, 1), |o, id| o.entry_with_id(1, id, 1));
    assert_eq!(open(Store::of([start(), object])).opened().start, link(51, 52));
    // An unknown reserved region is ignored.
    let odd = make(1, 1).after(0, 1).entry_with_id(u64::MAX - 9, EntryId::MAX, 1);
    assert_eq!(open(Store::of([start(), odd])).opened().start, link(3, 4));
    // Watermarks do not enter.
    let store = Store::of([make(0, 1).writer("a").releases(&[(1, u64::MAX)])]);
    assert_eq!(open(store).opened().start, link(2, 3));
}

#[test]
fn the_last_sequence_can_be_used_once() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let run = open(Store::of([make(last - 2, last - 1).writer("a")]));
    assert_eq!(run.claims(), [last - 1]);
    assert_eq!(run.opened().start, link(last, last + 1));
    assert_eq!(run.opened().next_sequence, ObjectSeq::LIMIT);

    let run = open(run.store);
    assert!(matches!(run.failed(), Error::SequenceExhausted), "{}", run.failed());
    assert!(run.times(Operation::Create).is_empty());
    let epochs = open(Store::of([make(0, 1 << 44).writer("a")]));
    // No writer made that epoch: the object is named.
    let (at, part, reason) = corrupted(&epochs);
    assert_eq!((at, part), (key(0), Part::Header));
    assert!(reason.contains("17592186044416"), "{reason}");
    assert!(epochs.times(Operation::Create).is_empty());
}

/// So many objects that keeping what was fetched would be noticed: 64 KiB of each.
#[test]
fn what_was_fetched_is_not_kept() {
    let records = [ReleaseRecord { region: RegionId(1), through: EntryId(1) }];
    let small = make(0, 1).writer("a").releases(&[(1, 1)]).entry(2, 60_000).bytes();
    let object = examine::examine_whole(ObjectSeq(0), small.clone()).unwrap();
    let held = object.releases.unwrap();
    assert!(!small.as_ptr_range().contains(&held.as_ptr()), "it shares the fetched buffer");
    let segment = crate::format::encode_releases(&records);
    assert_eq!(held.len(), 12 + 12 + segment.len());
}
