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

fn release(region: u64, through: u64) -> ReleaseRecord {
    ReleaseRecord { region: RegionId(region), through: EntryId(through) }
}

fn hole(region: u64, sequence: u64) -> Hole {
    let (region, object) = (RegionId(region), link(sequence));
    let key = crate::key::Prefix::new("log").unwrap().object_key(object.sequence);
    let error = DecodeError::new(Part::Segment(region), "damaged");
    Hole { region, key, object, min_id: EntryId(1), max_id: EntryId(2), error }
}

#[test]
fn records_raise_watermarks_and_are_known_until_their_object_is_removed() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(0), 10, &[meta(1, 10, 12), meta(2, 10, 12)]).unwrap();
    catalog.index(link(1), 10, &[meta(1, 20, 22)]).unwrap();
    catalog.apply_releases(ObjectSeq(1), &[release(1, 12), release(7, u64::MAX)]);
    catalog.check();
    assert_eq!(catalog.watermark(RegionId(1)), EntryId(12));
    assert_eq!(catalog.released_in_full().collect::<Vec<_>>(), [RegionId(7)]);
    assert!(!catalog.is_without(RegionId(7)) && !catalog.holds(RegionId(7)));
    catalog.forget(RegionId(7));
    assert_eq!(catalog.region_count(), 3, "its record is there");
    catalog.raise_watermark(RegionId(1), EntryId(22));
    catalog.raise_watermark(RegionId(2), EntryId(12));
    let named = catalog.remove(ObjectSeq(1));
    assert_eq!(named, [RegionId(1), RegionId(1), RegionId(7)]);
    named.into_iter().for_each(|region| catalog.forget(region));
    catalog.check();
    assert_eq!(catalog.region_count(), 2, "object 0 has both");
    assert_eq!(catalog.released_in_full().count(), 0);
}

#[test]
fn an_object_that_is_needed_is_not_removed() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(0), 10, &[meta(1, 10, 12), meta(2, 10, 12)]).unwrap();
    catalog.raise_watermark(RegionId(1), EntryId(12));
    assert_eq!(catalog.remove(ObjectSeq(0)), []);
    assert_eq!(catalog.remove(ObjectSeq(5)), []);
    assert_eq!((catalog.object_count(), catalog.byte_count()), (1, 10));
    assert_eq!(catalog.next_garbage(ObjectSeq(0)..ObjectSeq(9)), None);
    catalog.check();
}

#[test]
fn garbage_is_found_in_order_and_what_is_kept_is_none() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    for sequence in 0..5 {
        catalog.index(link(sequence), 10, &[]).unwrap();
    }
    catalog.keep(ObjectSeq(1));
    catalog.keep(ObjectSeq(77));
    let next = |from, to| catalog.next_garbage(ObjectSeq(from)..ObjectSeq(to)).map(|at| at.0);
    assert_eq!([next(0, 5), next(1, 5), next(3, 4)], [Some(0), Some(2), Some(3)]);
    assert_eq!([next(1, 2), next(5, 9), next(4, 2)], [None; 3]);
}

#[test]
fn only_objects_with_entries_or_release_records_are_passed() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(0), 10, &[]).unwrap();
    assert_eq!(catalog.last_passed(), None, "a start object has none");
    catalog.index(link(1), 10, &[meta(1, 10, 10)]).unwrap();
    catalog.index(link(2), 10, &[]).unwrap();
    catalog.apply_releases(ObjectSeq(2), &[release(1, 10)]);
    assert_eq!(catalog.boundary(), ObjectSeq(3));
    assert_eq!(catalog.last_passed(), Some(ObjectSeq(2)));
    // A record of a reserved region says nothing.
    catalog.index(link(3), 10, &[]).unwrap();
    catalog.apply_releases(ObjectSeq(3), &[release(u64::MAX, 10)]);
    assert_eq!(catalog.last_passed(), Some(ObjectSeq(2)));
    // What is obsolete when it comes is passed all the same.
    catalog.raise_watermark(RegionId(2), EntryId(50));
    catalog.index(link(4), 10, &[meta(2, 40, 40)]).unwrap();
    assert_eq!(catalog.last_passed(), Some(ObjectSeq(4)));
}

#[test]
fn holes_are_those_of_indexed_segments_and_go_with_their_object() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.index(link(0), 10, &[meta(1, 10, 12), meta(2, 10, 12)]).unwrap();
    assert!(catalog.add_hole(hole(1, 0)));
    assert!(!catalog.add_hole(hole(1, 0)), "known");
    assert!(!catalog.add_hole(hole(3, 0)), "the object has nothing of it");
    assert!(!catalog.add_hole(hole(1, 1)), "no object");
    catalog.check();
    catalog.raise_watermark(RegionId(1), EntryId(12));
    catalog.raise_watermark(RegionId(2), EntryId(12));
    assert_eq!(catalog.holes(RegionId(1)).count(), 1);
    catalog.remove(ObjectSeq(0));
    assert_eq!(catalog.holes(RegionId(1)).count(), 0);
    catalog.check();
}

#[test]
fn a_region_that_was_forgotten_begins_anew() {
    let mut catalog = Catalog::new(ObjectSeq(0));
    catalog.raise_watermark(RegionId(1), EntryId(50));
    catalog.forget(RegionId(1));
    assert_eq!((catalog.region_count(), catalog.watermark(RegionId(1))), (0, EntryId::ZERO));
    catalog.index(link(0), 10, &[meta(1, 40, 45)]).unwrap();
    assert_eq!(catalog.segments_from(RegionId(1), EntryId::ZERO).count(), 1);
    catalog.forget(RegionId(1));
    assert_eq!(catalog.region_count(), 1, "it has a segment");
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

    /// Against a model that keeps every object whole: releases, removals in any order below the
    /// boundary, and regions that are forgotten.
    #[test]
    fn what_is_kept_agrees_with_a_model(
        steps in prop::collection::vec((0u8..6, 0u64..4, 0u64..40), 1..80),
    ) {
        #[derive(Default)]
        struct Kept {
            segments: Vec<(u64, u64)>,
            records: Vec<u64>,
        }
        let mut catalog = Catalog::new(ObjectSeq(0));
        let mut objects: BTreeMap<u64, Kept> = BTreeMap::new();
        let mut watermarks: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut boundary, mut next, mut passed) = (0, 0, None);
        for (kind, region, value) in steps {
            match kind {
                0..=2 => {
                    let id = (next + 1) * 10;
                    let regions = (0..4).filter(|region| value >> region & 1 == 1);
                    let segments: Vec<_> = regions.map(|region| (region, id + 5)).collect();
                    let metas: Vec<_> = segments.iter().map(|(r, max)| meta(*r, id, *max)).collect();
                    catalog.index(link(next), 10, &metas).unwrap();
                    let records = if kind == 2 { Vec::from([region]) } else { Vec::new() };
                    if kind == 2 {
                        catalog.apply_releases(ObjectSeq(next), &[release(region, value * 10)]);
                        let watermark = watermarks.entry(region).or_default();
                        *watermark = (value * 10).max(*watermark);
                    }
                    objects.insert(next, Kept { segments, records });
                    next += 1;
                }
                3 => {
                    catalog.raise_watermark(RegionId(region), EntryId(value * 10));
                    let watermark = watermarks.entry(region).or_default();
                    *watermark = (value * 10).max(*watermark);
                }
                4 => {
                    let below: Vec<_> = objects.range(..boundary).map(|(at, _)| *at).collect();
                    if !below.is_empty() {
                        let sequence = below[value as usize % below.len()];
                        let object = objects.remove(&sequence).unwrap();
                        let expected = object.segments.iter().map(|(region, _)| *region);
                        let expected: Vec<_> = expected.chain(object.records).map(RegionId).collect();
                        prop_assert_eq!(catalog.remove(ObjectSeq(sequence)), expected);
                    }
                }
                _ => {
                    catalog.forget(RegionId(region));
                    let names = |kept: &Kept| {
                        kept.segments.iter().any(|(r, _)| *r == region)
                            || kept.records.contains(&region)
                    };
                    if !objects.values().any(names) {
                        watermarks.remove(&region);
                    }
                }
            }
            let is_live = |(region, max): &(u64, u64)| {
                *max > watermarks.get(region).copied().unwrap_or_default()
            };
            let first = objects.iter().find(|(_, kept)| kept.segments.iter().any(is_live));
            let reached = first.map_or(next, |(sequence, _)| *sequence).max(boundary);
            let holding = objects.range(boundary..reached).rev();
            let holding = holding
                .filter(|(_, kept)| !kept.segments.is_empty() || !kept.records.is_empty());
            passed = holding.map(|(sequence, _)| *sequence).next().or(passed);
            boundary = reached;
            prop_assert_eq!(catalog.boundary(), ObjectSeq(boundary));
            prop_assert_eq!(catalog.last_passed(), passed.map(ObjectSeq));
            prop_assert_eq!(catalog.object_count(), objects.len() as u64);
            for region in 0..4 {
                let watermark = watermarks.get(&region).copied().unwrap_or_default();
                prop_assert_eq!(catalog.watermark(RegionId(region)), EntryId(watermark));
                let live = objects.values().flat_map(|kept| &kept.segments);
                let live = live.filter(|segment| segment.0 == region && is_live(segment)).count();
                let found = catalog.segments_from(RegionId(region), EntryId::ZERO).count();
                prop_assert_eq!(found, live);
            }
            catalog.check();
        }
    }
}
