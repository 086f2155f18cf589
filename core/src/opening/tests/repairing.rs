//! Repairs: what they give up, and that the log opens afterwards with just what was said to remain.

mod random;
mod signs;

use std::vec;

use super::*;
use crate::error::Part;
use crate::format::{Header, Object, SegmentMeta, TRAILER_LEN, WriterRecord};
use crate::repair::{Place, Refused, Repair, Salvage, Span, likely_header};
use crate::types::{EntryId, RegionId};

fn record() -> WriterRecord {
    WriterRecord { nonce: [1; 16], opened_at_millis: 5, max_in_flight: 4, name: "repair".into() }
}

fn survey(objects: &Objects) -> Survey {
    let store = Store { objects: objects.clone(), ..Store::default() };
    let opening = Opening::survey(BEGAN, prefix(), Options::default()).unwrap();
    drive(opening, store, Order::OldestFirst).result.unwrap()
}

fn plan(objects: &Objects, sequence: u64, place: &Place) -> Result<Repair, Refused> {
    Repair::plan(&survey(objects), ObjectSeq(sequence), &objects[&key(sequence)], place)
}

/// The objects after a repair.
fn carried_out(objects: &Objects, repair: &Repair) -> Objects {
    let mut objects = objects.clone();
    for replacement in &repair.replacements {
        let bytes = replacement.object.to_bytes();
        assert_eq!(Object::problems(&bytes, replacement.sequence), []);
        assert!(objects.insert(replacement.key.clone(), bytes).is_some());
    }
    objects
}

fn opens(objects: &Objects) -> Result<Recovered, Error> {
    open(Store { objects: objects.clone(), ..Store::default() }).result
}

/// What readers see.
fn seen(objects: &Objects) -> Vec<Span> {
    let store = Store { objects: objects.clone(), ..Store::default() };
    let opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
    let view = drive(opening, store, Order::OldestFirst).result.unwrap();
    let catalog = view.catalog();
    let of = |region: RegionId| {
        let first = catalog.watermark(region).next();
        catalog.segments_from(region, first).map(move |segment| Span {
            region,
            min_id: segment.meta.min_id.max(first),
            max_id: segment.meta.max_id,
            entries: segment.meta.count,
            object: segment.object.sequence,
        })
    };
    catalog.regions().flat_map(|info| of(info.region)).collect()
}

/// Carries a repair out, and verifies that the log opens then with just what was said to remain.
fn repaired(objects: &Objects, sequence: u64, place: &Place) -> (Repair, Objects) {
    let repair = plan(objects, sequence, place).unwrap();
    assert_eq!(repair.still_lost, []);
    let objects = carried_out(objects, &repair);
    assert_eq!(survey(&objects).problems().collect::<Vec<_>>(), []);
    opens(&objects).unwrap();
    assert_eq!(seen(&objects), repair.remains);
    (repair, objects)
}

fn objects(made: impl IntoIterator<Item = Make>) -> Objects {
    Store::of(made).objects
}

fn damage(objects: &mut Objects, sequence: u64, at: impl FnOnce(&Bytes) -> usize) {
    let bytes = &objects[&key(sequence)];
    let (at, mut bytes) = (at(bytes), bytes.to_vec());
    bytes[at] ^= 1;
    objects.insert(key(sequence), bytes.into());
}

fn meta(bytes: &Bytes, region: RegionId) -> SegmentMeta {
    let object = Object::decode(bytes).unwrap();
    object.segments.iter().map(|(meta, _)| *meta).find(|meta| meta.region == region).unwrap()
}

fn in_segment(region: RegionId) -> impl FnOnce(&Bytes) -> usize {
    move |bytes| meta(bytes, region).range().end as usize - 1
}

/// Region and object of each span.
fn places(spans: &[Span]) -> Vec<(u64, u64)> {
    spans.iter().map(|span| (span.region.0, span.object.0)).collect()
}

fn start() -> Make {
    make(0, 1).writer("a")
}

fn entry(sequence: u64) -> Make {
    make(sequence, 1).after(sequence - 1, 1).entry(1, 10)
}

fn header(objects: &Objects, sequence: u64) -> Header {
    Header::decode(&objects[&key(sequence)]).unwrap()
}

/// Five objects of two regions.
fn log() -> Objects {
    objects([
        start(),
        entry(1).entry(2, 10),
        entry(2).entry(2, 10),
        entry(3).entry(2, 10),
        entry(4),
    ])
}

#[test]
fn of_an_object_with_a_damaged_segment_the_others_are_kept() {
    let mut objects = log();
    damage(&mut objects, 2, in_segment(RegionId(2)));
    let (repair, after) = repaired(&objects, 2, &Place::Kept);
    let id = EntryId::new(ObjectSeq(2), 1).unwrap();
    let lost =
        Span { region: RegionId(2), min_id: id, max_id: id, entries: 1, object: ObjectSeq(2) };
    assert_eq!(repair.gives_up, [lost]);
    assert_eq!((repair.brings_back, repair.unknown), (vec![], vec![]));
    assert_eq!((repair.tip_before, repair.tip_after), (Some(link(4, 1)), link(4, 1)));
    assert_eq!((repair.leaves_history, repair.loses_releases), (vec![], false));
    assert_eq!(header(&after, 2), header(&objects, 2));
    let kept = Object::decode(&after[&key(2)]).unwrap().segments;
    assert_eq!(kept, Object::decode(&log()[&key(2)]).unwrap().segments[..1].to_vec());
}

#[test]
fn release_records_that_do_not_verify_come_to_nothing() {
    let id = EntryId::new(ObjectSeq(1), 1).unwrap().0;
    let mut objects = objects([
        start(),
        entry(1).entry(2, 10),
        entry(2).releases(&[(1, id)]),
        entry(3).releases(&[(2, id)]),
    ]);
    damage(&mut objects, 2, in_segment(RegionId::RELEASES));
    assert!(matches!(opens(&objects), Err(Error::Corrupted { .. })));
    let (repair, _) = repaired(&objects, 2, &Place::Kept);
    assert!(repair.loses_releases);
    assert_eq!(places(&repair.gives_up), []);
    assert_eq!(places(&repair.remains), [(1, 1), (1, 2), (1, 3)], "released in vain; 2 is hidden");
}

#[test]
fn a_lost_header_is_asked_for_and_guessed_from_what_names_it() {
    let mut objects = log();
    let stood = header(&objects, 2);
    damage(&mut objects, 2, |_| 30);
    let refused = plan(&objects, 2, &Place::Kept).unwrap_err();
    assert_eq!(refused, Refused::HeaderLost { sequence: ObjectSeq(2), likely: stood });
    let (repair, after) = repaired(&objects, 2, &Place::Named(stood));
    assert_eq!((repair.gives_up, repair.leaves_history), (vec![], vec![]));
    assert_eq!(after, log(), "byte for byte");
}

/// What was collected is not there to link to, and the guess carries a boundary above it.
#[test]
fn a_guess_takes_what_is_not_there_any_more_as_collected() {
    let mut objects = objects([entry(3), entry(4), entry(5).boundary(3), entry(6).boundary(3)]);
    let stood = header(&objects, 6);
    damage(&mut objects, 6, |_| 30);
    assert_eq!(likely_header(&survey(&objects), ObjectSeq(6)), stood);
    objects.remove(&key(5));
    objects.insert(key(6), entry(6).boundary(4).bytes());
    damage(&mut objects, 6, |_| 30);
    let guess = likely_header(&survey(&objects), ObjectSeq(6));
    assert_eq!((guess.predecessor, guess.boundary), (Some(link(4, 1)), ObjectSeq(3)));
    objects.retain(|at, _| *at == key(6));
    let guess = likely_header(&survey(&objects), ObjectSeq(6));
    assert_eq!((guess.predecessor, guess.epoch), (None, Epoch(7)));
    repaired(&objects, 6, &Place::Named(guess));
}

#[test]
fn a_link_past_other_objects_gives_them_up() {
    let mut objects = log();
    let stood = header(&objects, 3);
    damage(&mut objects, 3, |_| 30);
    let named = Header { predecessor: Some(link(1, 1)), ..stood };
    let (repair, _) = repaired(&objects, 3, &Place::Named(named));
    assert_eq!(repair.leaves_history, [ObjectSeq(2)]);
    assert_eq!(places(&repair.gives_up), [(1, 2), (2, 2)]);
}

#[test]
fn a_cut_gives_up_the_object_and_all_that_follows() {
    let mut objects = log();
    damage(&mut objects, 2, |_| 30);
    let (repair, after) = repaired(&objects, 2, &Place::Cut(record()));
    assert_eq!(places(&repair.gives_up), [(1, 2), (1, 3), (1, 4), (2, 2), (2, 3)]);
    assert_eq!(repair.leaves_history, [2, 3, 4].map(ObjectSeq));
    assert_eq!((repair.tip_before, repair.tip_after), (Some(link(4, 1)), link(1, 1)));
    assert_eq!(repair.replacements.len(), 1, "two that follow prove nothing");
    assert!(header(&after, 2).links_to_itself());
    assert_eq!(survey(&after).objects[2].kind(), Some(ObjectKind::Claim));
}

#[test]
fn a_cut_takes_along_what_would_prove_that_history_is_lost() {
    // By its epoch, by its boundary, and by their number.
    let mut later = objects([start(), entry(1), entry(2)]);
    let more = objects([make(3, 4).after(2, 1), make(4, 4).after(3, 4).entry(1, 1).boundary(1)]);
    later.extend(more);
    let mut many = objects([start(), entry(1), entry(2)]);
    many.extend(objects((3..20).map(entry)));
    for (mut objects, taken) in [(later, vec![4, 3, 2]), (many, (2..20).rev().collect())] {
        damage(&mut objects, 2, |_| 30);
        let (repair, _) = repaired(&objects, 2, &Place::Cut(record()));
        let replaced: Vec<_> = repair.replacements.iter().map(|r| r.sequence.0).collect();
        assert_eq!(replaced, taken, "the damaged one comes last");
        assert_eq!(repair.tip_after, link(1, 1));
    }
}

#[test]
fn a_cut_that_ends_half_way_can_be_made_again() {
    let mut objects = objects([start(), entry(1)].into_iter().chain((2..20).map(entry)));
    damage(&mut objects, 2, |_| 30);
    let whole = plan(&objects, 2, &Place::Cut(record())).unwrap();
    let after = carried_out(&objects, &whole);
    for count in 0..whole.replacements.len() {
        let mut some = whole.clone();
        some.replacements.truncate(count);
        let half = carried_out(&objects, &some);
        assert!(matches!(opens(&half), Err(Error::Corrupted { .. })), "{count}");
        let (_, again) = repaired(&half, 2, &Place::Cut(record()));
        assert_eq!(seen(&again), seen(&after));
    }
}

#[test]
fn a_cut_that_leaves_nothing_is_refused() {
    let mut objects = log();
    damage(&mut objects, 0, |_| 30);
    let refused = plan(&objects, 0, &Place::Cut(record())).unwrap_err();
    assert_eq!(refused, Refused::NothingRemains(ObjectSeq(0)));
}

#[test]
fn of_a_damaged_table_the_rows_are_kept_that_still_describe_a_segment() {
    let mut objects = log();
    // In the last row, that of region 2.
    damage(&mut objects, 2, |bytes| bytes.len() - TRAILER_LEN - 20);
    let salvage = Salvage::of(ObjectSeq(2), &objects[&key(2)]);
    assert!(!salvage.is_table_sound && salvage.damaged.is_empty());
    let (repair, after) = repaired(&objects, 2, &Place::Kept);
    assert_eq!(repair.unknown, [ObjectSeq(2)], "what the other row said is not known");
    assert_eq!(repair.gives_up, []);
    let regions = Object::decode(&after[&key(2)]).unwrap().segments;
    assert_eq!(regions.iter().map(|(meta, _)| meta.region.0).collect::<Vec<_>>(), [1]);
}

#[test]
fn without_a_trailer_the_table_is_found_by_its_number_of_rows() {
    for at in [1, 10, 20, 30] {
        let mut objects = log();
        damage(&mut objects, 2, |bytes| bytes.len() - at);
        let (repair, after) = repaired(&objects, 2, &Place::Kept);
        assert_eq!(repair.gives_up, []);
        assert_eq!(after, log(), "byte for byte");
    }
}

#[test]
fn an_object_that_ends_too_early_keeps_its_place_and_nothing_else() {
    for length in [54, 60, 90, 150] {
        let mut objects = log();
        let short = objects[&key(2)].slice(..length);
        objects.insert(key(2), short);
        let (repair, after) = repaired(&objects, 2, &Place::Kept);
        assert_eq!(repair.unknown, [ObjectSeq(2)]);
        assert_eq!(header(&after, 2), header(&log(), 2));
        assert_eq!(places(&repair.remains), [(1, 1), (1, 3), (1, 4), (2, 1), (2, 3)]);
    }
    let mut objects = log();
    objects.insert(key(2), Bytes::new());
    assert!(matches!(plan(&objects, 2, &Place::Kept), Err(Refused::HeaderLost { .. })));
}

#[test]
fn what_is_no_history_gives_up_nothing() {
    // An orphan, and an object below the boundary.
    let made = [start(), entry(1), make(2, 1).after(1, 1).entry(1, 1), entry(3).after(1, 1)];
    let mut objects = objects(made.into_iter().chain([entry(4).boundary(1)]));
    for sequence in [0, 2] {
        let bytes = objects[&key(sequence)].clone();
        damage(&mut objects, sequence, |bytes| bytes.len() - TRAILER_LEN - 1);
        let (repair, _) = repaired(&objects, sequence, &Place::Kept);
        assert_eq!((repair.gives_up, repair.unknown), (vec![], vec![]), "{sequence}");
        objects.insert(key(sequence), bytes);
    }
}

#[test]
fn segments_whose_ids_do_not_ascend_are_not_kept() {
    let low = EntryId::new(ObjectSeq(1), 1).unwrap();
    let twice = make(2, 1).after(1, 1).entry_with_id(1, low, 5).entry(2, 5);
    let objects = objects([start(), entry(1), twice, entry(3)]);
    assert!(matches!(opens(&objects), Err(Error::Corrupted { .. })));
    let (repair, _) = repaired(&objects, 2, &Place::Kept);
    assert_eq!(places(&repair.remains), [(1, 1), (1, 3), (2, 2)]);
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let refused = |objects: &Objects, sequence, place: &Place| {
        Repair::plan(&survey(objects), ObjectSeq(sequence), &Bytes::new(), place).unwrap_err()
    };
    assert_eq!(refused(&log(), 9, &Place::Kept), Refused::NotThere(ObjectSeq(9)));
    assert_eq!(plan(&log(), 2, &Place::Kept).unwrap_err(), Refused::Sound(ObjectSeq(2)));
    let mut objects = log();
    let stood = header(&objects, 2);
    damage(&mut objects, 2, |_| 30);
    for named in [
        Header { sequence: ObjectSeq(3), ..stood },
        Header { boundary: ObjectSeq(3), ..stood },
        Header { predecessor: Some(link(2, 1)), ..stood },
        Header { predecessor: Some(link(1, 2)), ..stood },
    ] {
        let refused = plan(&objects, 2, &Place::Named(named)).unwrap_err();
        assert_eq!(refused, Refused::Impossible { sequence: ObjectSeq(2), named });
    }
}

#[test]
fn what_else_is_lost_is_told() {
    let mut objects = objects([start(), entry(1), entry(5).boundary(4)]);
    damage(&mut objects, 1, in_segment(RegionId(1)));
    let repair = plan(&objects, 1, &Place::Kept).unwrap();
    assert_eq!(repair.still_lost.len(), 1);
    assert!(opens(&carried_out(&objects, &repair)).is_err());
}

#[test]
fn each_part_that_does_not_verify_is_a_problem_of_its_own() {
    let bytes = entry(1).entry(2, 10).releases(&[(7, 1)]).bytes();
    let parts = |damaged: &[usize]| {
        let mut bytes = bytes.to_vec();
        damaged.iter().for_each(|at| bytes[*at] ^= 1);
        let problems = Object::problems(&bytes.into(), ObjectSeq(1));
        problems.into_iter().map(|problem| problem.part).collect::<Vec<_>>()
    };
    assert_eq!(parts(&[]), []);
    let [one, two, releases] = [RegionId(1), RegionId(2), RegionId::RELEASES]
        .map(|region| (in_segment(region)(&bytes), Part::Segment(region)));
    let end = bytes.len();
    let all = [30, one.0, two.0, releases.0, end - 12];
    assert_eq!(parts(&all), [Part::Header, one.1, two.1, releases.1]);
    assert_eq!(parts(&[end - 12]), [Part::Trailer], "the object's checksum alone");
    assert_eq!(parts(&[30, end - 40]), [Part::Header, Part::Footer]);
    assert_eq!(parts(&[end - 1]), [Part::Trailer]);
    let problems = Object::problems(&bytes, ObjectSeq(2));
    assert_eq!(
        problems.iter().map(|p| p.part).collect::<Vec<_>>(),
        [Part::Header, Part::ReleaseRecords]
    );
    assert_eq!(Object::problems(&Bytes::new(), ObjectSeq(0)).len(), 1);
}
