use alloc::vec;
use core::slice::from_ref;

use super::*;
use crate::format::SegmentMeta;
use crate::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};

const MIB: u64 = 1 << 20;

fn ahead(read_concurrency: u32, read_ahead_bytes: u64) -> ReadAhead {
    ReadAhead::new(&Options { read_concurrency, read_ahead_bytes, ..Options::default() })
}

/// An object of segments of one entry each, at these places.
fn object(ranges: &[Range<u64>]) -> PlannedObject {
    let segment = |(region, range): (u64, &Range<u64>)| WantedSegment {
        meta: SegmentMeta {
            region: RegionId(region),
            min_id: EntryId(1),
            max_id: EntryId(1),
            count: 1,
            offset: range.start,
            length: range.end - range.start,
            crc: 0,
        },
        from: EntryId::ZERO,
        through: EntryId::MAX,
    };
    let object = Link { sequence: ObjectSeq(7), epoch: Epoch(1) };
    let segments = (1..).zip(ranges).map(segment).collect();
    PlannedObject { object, key: "log/7".into(), segments }
}

/// One that weighs so much: its one entry takes something besides its bytes.
fn weighing(weight: u64) -> PlannedObject {
    let planned = object(from_ref(&(0..weight - size_of::<Entry>() as u64)));
    assert_eq!(planned.weight(), weight);
    planned
}

#[test]
fn as_much_begins_as_may_be_held_and_never_less_than_one() {
    const M: u64 = MIB;
    // Objects at once, bytes at once, what weighs how much; how many begin at first, and how many
    // have begun after each end.
    for (at_once, bytes, weights, begun) in [
        (3, 64 * M, &[M, M, M, M, M][..], &[3, 4, 5, 5, 5, 5][..]),
        (64, 4 * M, &[M, M, M, M, M], &[4, 5, 5, 5, 5, 5]),
        (64, 4 * M, &[3 * M, M, 100, M], &[2, 4, 4, 4, 4]),
        // In order: a small one does not pass a large one.
        (64, 4 * M, &[M, 4 * M, M, M], &[1, 2, 4, 4, 4]),
        // What is larger than all of it is read alone.
        (64, 4 * M, &[M, 5 * M, M, M], &[1, 2, 4, 4, 4]),
        (64, 4 * M, &[9 * M, 9 * M], &[1, 2, 2]),
        (1, 64 * M, &[M, 99 * M, M], &[1, 2, 3, 3]),
        (64, M, &[u64::MAX, u64::MAX, 100], &[1, 2, 3, 3]),
    ] {
        let mut ahead = ahead(at_once, bytes);
        let planned: Vec<_> = weights.iter().map(|weight| weighing(*weight)).collect();
        let mut next = 0;
        let mut found = Vec::new();
        for _ in 0..=planned.len() {
            while next < planned.len() && ahead.try_begin(&planned[next]) {
                next += 1;
            }
            found.push(next);
            ahead.end();
        }
        assert_eq!(found, begun, "{at_once} at once, {bytes} B, {weights:?}");
    }
}

#[test]
fn a_weight_is_what_is_fetched_and_what_entries_take() {
    let entry = size_of::<Entry>() as u64;
    assert_eq!(entry, 40, "as the option says");
    for (ranges, fetched) in [
        (from_ref(&(54..154)), 100),
        // Little lies between, or at least half is wanted.
        (&[54..154, 500..600], 546),
        (&[0..10 * MIB, 15 * MIB..16 * MIB], 16 * MIB),
        (&[0..MIB, 9 * MIB..10 * MIB], 2 * MIB),
        (&[], 0),
    ] {
        let expected = fetched + entry * ranges.len() as u64;
        assert_eq!(object(ranges).weight(), expected, "{ranges:?}");
    }
    // Of a count that cannot be true, nothing more is believed than fits.
    let mut planned = object(from_ref(&(54..54 + 12 * 10)));
    planned.segments[0].meta.count = u32::MAX;
    assert_eq!(planned.weight(), 120 + 10 * entry);
}

#[test]
fn objects_are_cut_between_segments_into_what_may_be_held_and_fetched_at_once() {
    let small = [0..MIB, MIB..2 * MIB, 2 * MIB..16 * MIB];
    let many: Vec<_> = (0..40).map(|n| n * MIB..(n + 1) * MIB).collect();
    let scattered = [0..100, 12 * MIB..12 * MIB + 100, 20 * MIB..21 * MIB];
    let one_large = [0..MIB, MIB..81 * MIB, 81 * MIB..82 * MIB];
    for (bytes, ranges, parts) in [
        (64 * MIB, &small[..], vec![3]),
        (64 * MIB, &many, vec![16, 16, 8]),
        (4 * MIB, &many, vec![4; 10]),
        (MIB, &many, vec![1; 40]),
        (64 * MIB, &scattered, vec![2, 1]),
        (64 * MIB, &one_large, vec![1, 1, 1]),
        (64 * MIB, &[], vec![]),
    ] {
        let planned = object(ranges);
        let cut: Vec<_> = ahead(64, bytes).parts(planned.clone()).collect();
        let lengths: Vec<_> = cut.iter().map(|part| part.segments.len()).collect();
        assert_eq!(lengths, parts, "{bytes} B, {} segments", ranges.len());
        let regions = |object: &PlannedObject| -> Vec<_> {
            object.segments.iter().map(|wanted| wanted.meta.region).collect()
        };
        let together: Vec<_> = cut.iter().flat_map(regions).collect();
        assert_eq!(together, regions(&planned), "all of it, in its order");
        for part in &cut {
            assert_eq!((part.object, &part.key), (planned.object, &planned.key));
        }
    }
}

#[test]
fn a_plan_in_no_order_is_cut_without_harm() {
    let far = u64::MAX - MIB;
    let planned = object(&[far..far + 5, 0..1 << 63, far..far + 9, 3..4]);
    let parts: Vec<_> = ahead(64, 64 * MIB).parts(planned).collect();
    assert_eq!(parts.iter().map(|part| part.segments.len()).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert_eq!(parts[1].weight(), (1 << 63) + 40);
}
