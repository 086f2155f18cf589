//! What a replay of many regions touches, and that it yields what reads of each region do.

use alloc::collections::BTreeMap;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::format::SegmentMeta;
use crate::read::{
    ObjectRead, ObjectReadEffect, ReadProgress, SegmentOutcome, SegmentRead, SegmentReadEffect,
    SegmentReadEvent,
};
use crate::types::Link;

/// A log with these regions in the objects 6, 7 and 8, an entry each.
fn three_objects() -> Log {
    let mut log = Log::new(at_once());
    for (sequence, regions) in [(6, &[1, 2, 3][..]), (7, &[2]), (8, &[1, 3])] {
        let entries: Vec<_> = regions.iter().map(|region| (*region, "x")).collect();
        log.append_many(&entries);
        log.created(sequence);
    }
    log
}

/// A plan in short: each object, and what of it. `at_most` is as many segments as are looked at.
fn page(
    log: &Log,
    filter: &ReplayFilter,
    from: u64,
    through: Option<ObjectSeq>,
    at_most: usize,
) -> (Vec<String>, Option<u64>, u64) {
    let plan = log.writer.plan_replay(filter, ObjectSeq(from), through, at_most).unwrap();
    let mut said = Vec::new();
    for object in plan.objects {
        assert_eq!(object.key, log.writer.prefix().object_key(object.object.sequence));
        assert_eq!(object.object.epoch, EPOCH);
        let regions: Vec<_> = object.segments.iter().map(|s| s.meta.region.to_string()).collect();
        said.push(format!("{}: {}", object.object.sequence, regions.join(" ")));
    }
    (said, plan.next.map(|next| next.0), plan.through.0)
}

fn planned(log: &Log, filter: &ReplayFilter) -> Vec<String> {
    let (objects, next, _) = page(log, filter, 0, None, usize::MAX);
    assert_eq!(next, None);
    objects
}

#[test]
fn a_replay_touches_each_object_with_what_the_filter_wants_of_it() {
    let log = three_objects();
    let (all, none) = (ReplayFilter::all, ReplayFilter::none);
    let [one, two, three] = [1, 2, 3].map(RegionId);
    let cases: [(ReplayFilter, &[&str]); 11] = [
        (all(), &["6: 1 2 3", "7: 2", "8: 1 3"]),
        (none(), &[]),
        (none().region(one), &["6: 1", "8: 1"]),
        (none().region(two).region(three), &["6: 2 3", "7: 2", "8: 3"]),
        (none().region(RegionId(9)), &[]),
        (none().region_from(one, id(6, 2)), &["8: 1"]),
        (none().region_from(one, id(8, 1)).region(three), &["6: 3", "8: 1 3"]),
        (all().region_from(one, id(8, 2)), &["6: 2 3", "7: 2", "8: 3"]),
        (all().without(three), &["6: 1 2", "7: 2", "8: 1"]),
        // What is said last counts.
        (all().without(two).region(two), &["6: 1 2 3", "7: 2", "8: 1 3"]),
        (none().region(two).without(two), &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(planned(&log, &filter), expected, "{filter:?}");
    }
}

#[test]
fn a_replay_begins_in_each_region_where_it_is_told_and_above_the_watermark() {
    let mut log = Log::new(at_once());
    log.append_many(&[(1, "a"), (1, "b"), (1, "c"), (2, "d"), (2, "e")]);
    log.created(6);
    log.obsolete(1, id(6, 1));
    let begins = |filter: ReplayFilter| -> Vec<_> {
        let plan = log.writer.plan_replay(&filter, ObjectSeq::ZERO, None, 100).unwrap();
        plan.objects[0].segments.iter().map(|s| (s.meta.region.0, s.from, s.through)).collect()
    };
    let all = ReplayFilter::all();
    assert_eq!(begins(all.clone()), [(1, id(6, 2), id(6, 3)), (2, EntryId(1), id(6, 2))]);
    let all = all.region_from(RegionId(1), id(6, 1)).region_from(RegionId(2), id(6, 2));
    assert_eq!(begins(all.clone()), [(1, id(6, 2), id(6, 3)), (2, id(6, 2), id(6, 2))]);
    let all = all.region_from(RegionId(1), id(6, 3));
    assert_eq!(begins(all), [(1, id(6, 3), id(6, 3)), (2, id(6, 2), id(6, 2))]);
}

#[test]
fn what_is_obsolete_is_not_replayed() {
    let mut log = three_objects();
    let all = ReplayFilter::all();
    log.obsolete(2, id(6, 1));
    assert_eq!(planned(&log, &all), ["6: 1 3", "7: 2", "8: 1 3"]);
    log.obsolete(2, id(7, 1));
    assert_eq!(planned(&log, &all), ["6: 1 3", "8: 1 3"]);
    log.obsolete(1, id(8, 1));
    log.obsolete(3, id(6, 1));
    assert_eq!(planned(&log, &all), ["8: 3"]);
    // Also where the watermark is the last id there can be.
    let last = ObjectSeq(ObjectSeq::LIMIT.0 - 1);
    let mut catalog = Catalog::new(ObjectSeq::ZERO);
    let meta = SegmentMeta {
        region: RegionId(1),
        min_id: EntryId::new(last, 1).unwrap(),
        max_id: EntryId::MAX,
        count: 2,
        offset: 54,
        length: 100,
        crc: 0,
    };
    let link = |sequence| Link { sequence, epoch: EPOCH };
    // The other region keeps the object above the boundary.
    let other = SegmentMeta { region: RegionId(2), ..meta };
    catalog.index(link(last), 500, &[meta, other]).unwrap();
    catalog.raise_watermark(RegionId(1), EntryId::MAX);
    let prefix = Prefix::new("log").unwrap();
    let plan = catalog.plan_replay(&prefix, &all, ObjectSeq::ZERO, None, 100).unwrap();
    let regions: Vec<_> = plan.objects[0].segments.iter().map(|s| s.meta.region.0).collect();
    assert_eq!(regions, [2]);
}

#[test]
fn a_replay_ends_at_the_object_that_was_indexed_last_when_it_began() {
    let mut log = three_objects();
    log.append(2, "not durable");
    let all = ReplayFilter::all();
    assert_eq!(page(&log, &all, 7, None, 1), (vec!["7: 2".into()], Some(8), 8));
    log.created(9);
    let through = Some(ObjectSeq(8));
    assert_eq!(page(&log, &all, 8, through, 100), (vec!["8: 1 3".into()], None, 8));
    // Also if nothing is left of it.
    log.obsolete(1, id(8, 1));
    log.obsolete(2, id(7, 1));
    log.obsolete(3, id(8, 1));
    assert_eq!(page(&log, &all, 8, through, 100), (vec![], None, 8));
    assert_eq!(page(&log, &all, 0, None, 100), (vec!["9: 2".into()], None, 9));
}

#[test]
fn a_log_without_entries_has_nothing_to_replay() {
    let log = Log::new(at_once());
    assert_eq!(planned(&log, &ReplayFilter::all()), [""; 0]);
    let nothing = Catalog::new(ObjectSeq::ZERO);
    let prefix = Prefix::new("log").unwrap();
    let plan =
        nothing.plan_replay(&prefix, &ReplayFilter::all(), ObjectSeq::ZERO, None, 1).unwrap();
    assert!(plan.objects.is_empty() && plan.next.is_none());
}

/// So that the writer is not held up by it, whether or not what it looks at is wanted.
#[test]
fn a_plan_is_cut_by_what_was_looked_at() {
    let log = three_objects();
    let all = ReplayFilter::all();
    for (at_most, expected) in [
        (0, (vec!["6: 1 2 3".into()], Some(7), 8)),
        (3, (vec!["6: 1 2 3".into()], Some(7), 8)),
        (4, (vec!["6: 1 2 3".into(), "7: 2".into()], Some(8), 8)),
        (5, (vec!["6: 1 2 3".into(), "7: 2".into(), "8: 1 3".into()], None, 8)),
    ] {
        assert_eq!(page(&log, &all, 0, None, at_most), expected, "at most {at_most}");
    }
    // One look per object, though it holds more.
    let chosen = ReplayFilter::none().region(RegionId(1));
    assert_eq!(page(&log, &chosen, 0, None, 2), (vec!["6: 1".into()], Some(8), 8));
    // And however many are chosen, not more than the object holds.
    let many = (1..50).map(RegionId).fold(ReplayFilter::none(), ReplayFilter::region);
    assert_eq!(page(&log, &many, 0, None, 4), (vec!["6: 1 2 3".into(), "7: 2".into()], Some(8), 8));
    let nothing = ReplayFilter::none();
    assert_eq!(page(&log, &nothing, 0, None, 2), (vec![], Some(8), 8));
    assert_eq!(page(&log, &nothing, 8, None, 2), (vec![], None, 8));
}

#[test]
fn a_filter_that_names_a_reserved_region_is_refused_and_none_is_replayed_unnamed() {
    let log = three_objects();
    for region in [RegionId::FIRST_RESERVED, RegionId::WRITER, RegionId::RELEASES] {
        for filter in [
            ReplayFilter::none().region(region),
            ReplayFilter::all().region_from(region, id(1, 1)),
            ReplayFilter::all().without(region),
        ] {
            let refused = log.writer.plan_replay(&filter, ObjectSeq::ZERO, None, 1);
            let Err(Error::InvalidRegion { region: named }) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(named, region);
        }
        assert_eq!(ReplayFilter::all().from(region), None);
    }
    let largest = RegionId(RegionId::FIRST_RESERVED.0 - 1);
    assert_eq!(ReplayFilter::all().from(largest), Some(EntryId::ZERO));
}

/// Object, region, and an entry, or the hole from its smallest id on.
type Item = (ObjectSeq, RegionId, EntryId, Option<Bytes>);

/// Objects as they are stored, and whether the first download of each read arrives damaged.
struct Stored {
    objects: BTreeMap<crate::Key, Bytes>,
    fetches: u32,
    flaky: bool,
}

impl Stored {
    fn carry_out(&mut self, effect: StorageEffect) -> SegmentReadEvent {
        let StorageEffect::FetchRange { id, key, range, .. } = effect else { panic!("{effect:?}") };
        let mut bytes = self.objects[&key].slice(range.start as usize..range.end as usize);
        self.fetches += 1;
        if self.flaky && id == RequestId(0) {
            let mut damaged = bytes.to_vec();
            damaged[20] ^= 1;
            bytes = damaged.into();
        }
        SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result: Ok(bytes) })
    }
}

fn items(object: ObjectSeq, region: RegionId, outcome: SegmentOutcome) -> Vec<Item> {
    match outcome {
        SegmentOutcome::Entries(entries) => {
            let item = |e: crate::format::Entry| (object, region, e.id, Some(e.payload));
            entries.into_iter().map(item).collect()
        }
        SegmentOutcome::Hole(hole) => {
            assert_eq!((hole.region, hole.object.sequence), (region, object));
            vec![(object, region, hole.min_id, None)]
        }
        other => panic!("{other:?}"),
    }
}

/// What a replay yields, planned in small pages, and how many objects it touched.
fn replayed(
    writer: &Writer<u32>,
    stored: &mut Stored,
    filter: &ReplayFilter,
    at_most: usize,
) -> (Vec<Item>, u32) {
    let (mut from, mut through, mut touched, mut found) = (ObjectSeq::ZERO, None, 0, Vec::new());
    loop {
        let plan = writer.plan_replay(filter, from, through, at_most).unwrap();
        for planned in plan.objects {
            let sequence = planned.object.sequence;
            let mut read = ObjectRead::new(planned, writer.options());
            touched += 1;
            loop {
                let event = match read.poll_effect().unwrap() {
                    ObjectReadEffect::Storage(effect) => stored.carry_out(effect),
                    ObjectReadEffect::AskWriter(_) => SegmentReadEvent::Verdict(None),
                    ObjectReadEffect::Done(outcomes) => {
                        found.extend(outcomes.into_iter().flat_map(|(r, o)| items(sequence, r, o)));
                        break;
                    }
                };
                read.handle(Time::ZERO, &mut ReadProgress::default(), event);
            }
        }
        through = Some(plan.through);
        match plan.next {
            Some(next) => from = next,
            None => return (found, touched),
        }
    }
}

fn read(writer: &Writer<u32>, stored: &mut Stored, region: RegionId, from: EntryId) -> Vec<Item> {
    let mut found = Vec::new();
    for planned in writer.plan_read(region, from, None, usize::MAX).unwrap().segments {
        let sequence = planned.segment.object.sequence;
        let mut read = SegmentRead::new(planned, writer.options());
        loop {
            let event = match read.poll_effect().unwrap() {
                SegmentReadEffect::Storage(effect) => stored.carry_out(effect),
                SegmentReadEffect::AskWriter(_) => SegmentReadEvent::Verdict(None),
                SegmentReadEffect::Done(outcome) => {
                    found.extend(items(sequence, region, outcome));
                    break;
                }
            };
            read.handle(Time::ZERO, &mut ReadProgress::default(), event);
        }
    }
    found
}

/// A region's entries in an object: how many, whether they are large, whether they are damaged.
fn contents() -> impl Strategy<Value = Option<(u32, bool, bool)>> {
    let large = prop::bool::weighted(0.05);
    prop::option::of((1..4u32, large, prop::bool::weighted(0.1)))
}

/// What is said of a region: nothing, not wanted, wanted from an id on.
fn said() -> impl Strategy<Value = Option<Option<(u64, u32)>>> {
    prop::option::of(prop::option::of((0..20u64, 0..5u32)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_replay_is_the_reads_of_its_regions_in_the_order_of_objects(
        objects in prop::collection::vec((1..3u64, prop::array::uniform5(contents())), 1..8),
        watermarks in prop::array::uniform5((0..12u64, 0..5u32)),
        others in any::<bool>(),
        said in prop::array::uniform5(said()),
        at_most in 1..12usize,
        flaky in any::<bool>(),
    ) {
        let place = |(sequence, position): (u64, u32)| EntryId(sequence << 20 | u64::from(position));
        let prefix = Prefix::new("log").unwrap();
        let mut recovered = recovered(at_once(), ObjectSeq(100));
        let mut stored = Stored { objects: BTreeMap::new(), fetches: 0, flaky };
        let mut sequence = START;
        let is_large = |contents: &Option<(u32, bool, bool)>| contents.is_some_and(|c| c.1);
        let any_large = objects.iter().any(|(_, regions)| regions.iter().any(is_large));
        for (step, regions) in objects {
            sequence = ObjectSeq(sequence.0 + step);
            let mut encoder = ObjectEncoder::new();
            encoder.push(RegionId::RELEASES, id(sequence.0, 1), &Bytes::from_static(b"reserved"));
            for (region, contents) in (0..).zip(&regions) {
                let Some((count, is_large, _)) = contents else { continue };
                for position in 1..=*count {
                    let len = if *is_large { 700 << 10 } else { 3 };
                    let payload = vec![position as u8; len].into();
                    encoder.push(RegionId(region), id(sequence.0, position), &payload);
                }
            }
            let header =
                Header { sequence, epoch: EPOCH, predecessor: None, boundary: ObjectSeq::ZERO };
            let (payload, table) = encoder.finish(&header);
            let mut bytes = payload.to_bytes().to_vec();
            for meta in table.iter().filter(|meta| !meta.region.is_reserved()) {
                if let Some((_, _, true)) = regions[meta.region.0 as usize] {
                    bytes[meta.offset as usize + 21] ^= 1;
                }
            }
            let link = Link { sequence, epoch: EPOCH };
            recovered.catalog.index(link, bytes.len() as u64, &table).unwrap();
            stored.objects.insert(prefix.object_key(sequence), bytes.into());
        }
        for (region, watermark) in (0..).zip(watermarks) {
            recovered.catalog.raise_watermark(RegionId(region), place(watermark));
        }
        let mut filter = if others { ReplayFilter::all() } else { ReplayFilter::none() };
        for (region, said) in (0..).map(RegionId).zip(said) {
            filter = match said {
                None => filter,
                Some(None) => filter.without(region),
                Some(Some(from)) => filter.region_from(region, place(from)),
            };
        }

        let writer = Writer::new(Time::ZERO, recovered);
        let (found, touched) = replayed(&writer, &mut stored, &filter, at_most);
        if !flaky && !any_large && found.iter().all(|(.., payload)| payload.is_some()) {
            prop_assert_eq!(stored.fetches, touched, "one request per object");
        }
        let mut expected: Vec<Item> = Vec::new();
        for region in (0..5).map(RegionId) {
            if let Some(from) = filter.from(region) {
                expected.extend(read(&writer, &mut stored, region, from));
            }
        }
        expected.sort_by_key(|(object, region, id, _)| (*object, *region, *id));
        let objects: BTreeSet<_> =
            expected.iter().map(|(object, ..)| *object).collect();
        prop_assert_eq!(touched as usize, objects.len(), "only objects that hold something wanted");
        prop_assert_eq!(found, expected);
    }
}
