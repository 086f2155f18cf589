use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::types::Epoch;

fn link(sequence: u64) -> Link {
    Link { sequence: ObjectSeq(sequence), epoch: Epoch(1) }
}

fn meta(region: u64, min_id: u64, max_id: u64) -> SegmentMeta {
    SegmentMeta {
        region: RegionId(region),
        min_id: EntryId(min_id),
        max_id: EntryId(max_id),
        count: 1,
        offset: 54,
        length: 100,
        crc: 0,
    }
}

#[test]
fn the_boundary_is_the_first_object_with_a_live_segment() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(3), 500, &[]).unwrap();
    assert_eq!(catalog.boundary(), ObjectSeq(4), "a start object holds nothing");
    catalog.index(link(4), 500, &[meta(1, 10, 12), meta(2, 10, 12)]).unwrap();
    catalog.index(link(6), 500, &[meta(2, 20, 22)]).unwrap();
    assert_eq!(catalog.boundary(), ObjectSeq(4));
    catalog.raise_watermark(RegionId(1), EntryId(12));
    assert_eq!(catalog.boundary(), ObjectSeq(4), "region 2 still needs object 4");
    catalog.raise_watermark(RegionId(2), EntryId(21));
    assert_eq!(catalog.boundary(), ObjectSeq(6), "22 of region 2 is needed");
    catalog.raise_watermark(RegionId(2), EntryId(22));
    assert_eq!(catalog.boundary(), ObjectSeq(7), "one above the last");
    catalog.raise_watermark(RegionId(2), EntryId(5));
    assert_eq!(catalog.watermark(RegionId(2)), EntryId(22), "a watermark never moves down");
    catalog.check();
}

#[test]
fn a_segment_that_was_obsolete_before_it_came_holds_nothing() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.raise_watermark(RegionId(1), EntryId(50));
    catalog.index(link(0), 500, &[meta(1, 40, 45)]).unwrap();
    assert_eq!(catalog.boundary(), ObjectSeq(1));
    assert_eq!(catalog.segments_from(RegionId(1), EntryId::ZERO).count(), 0);
    catalog.check();
}

#[test]
fn reserved_regions_are_never_indexed_and_never_live() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    let reserved = [meta(u64::MAX - 1, 1, 1), meta(u64::MAX, 1, 1)];
    catalog.index(link(0), 500, &reserved).unwrap();
    catalog.index(link(1), 500, &reserved).unwrap();
    assert_eq!(catalog.boundary(), ObjectSeq(2));
    assert_eq!(catalog.regions().count(), 0);
    // The format lets a release record name one.
    catalog.raise_watermark(RegionId::RELEASES, EntryId(7));
    assert_eq!(catalog.watermark(RegionId::RELEASES), EntryId::ZERO);
    catalog.check();
}

#[test]
fn ids_that_do_not_ascend_change_nothing() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(0), 500, &[meta(1, 10, 12)]).unwrap();
    let error = catalog.index(link(1), 500, &[meta(0, 1, 2), meta(1, 12, 14)]).unwrap_err();
    assert_eq!(error.part, Part::Segment(RegionId(1)));
    assert_eq!(catalog.object_count(), 1);
    assert_eq!(catalog.durable(RegionId(0)), EntryId::ZERO);
    catalog.check();
}

#[test]
fn a_read_begins_at_the_segment_that_holds_its_first_id() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    for (sequence, min, max) in [(0, 10, 12), (1, 20, 22), (2, 30, 32)] {
        catalog.index(link(sequence), 500, &[meta(1, min, max)]).unwrap();
    }
    let first =
        |from| catalog.segments_from(RegionId(1), EntryId(from)).next().map(|s| s.meta.min_id.0);
    let cases = [(0, Some(10)), (12, Some(10)), (13, Some(20)), (32, Some(30)), (33, None)];
    for (from, expected) in cases {
        assert_eq!(first(from), expected, "from {from}");
    }
}

proptest! {
    /// Against a model that keeps every segment in a list and computes the boundary anew.
    #[test]
    fn liveness_agrees_with_a_model(
        steps in prop::collection::vec((0u8..3, 0u64..4, 0u64..40), 1..60),
    ) {
        let mut catalog = Catalog::new(ObjectSeq(0));
        let mut segments: Vec<(u64, u64, u64)> = Vec::new();
        let mut watermarks = [0u64; 4];
        let mut boundary = 0;
        let mut next = 0;
        for (kind, region, value) in steps {
            if kind < 2 {
                let id = (next + 1) * 10;
                let regions: Vec<u64> = (0..4).filter(|r| value >> r & 1 == 1).collect();
                let metas: Vec<_> = regions.iter().map(|r| meta(*r, id, id + 5)).collect();
                catalog.index(link(next), 10, &metas).unwrap();
                segments.extend(regions.iter().map(|r| (next, *r, id + 5)));
                next += 1;
            } else {
                watermarks[region as usize] = watermarks[region as usize].max(value * 10);
                catalog.raise_watermark(RegionId(region), EntryId(value * 10));
            }
            let live = segments.iter().filter(|(_, r, max)| *max > watermarks[*r as usize]);
            boundary = live.map(|(sequence, ..)| *sequence).min().unwrap_or(next).max(boundary);
            prop_assert_eq!(catalog.boundary(), ObjectSeq(boundary));
            catalog.check();
        }
    }
}
