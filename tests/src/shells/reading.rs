use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sealog_core::{EntryId, Error, OnCorruptedSegment, Operation, Options, Part};
use sealog_shell::ReadItem;

use super::stage::Reaction;
use super::{A, B, Log, Stage, entries, one_by_one, open, payloads};
use crate::hooked::Asked;

/// A log of region A with one entry per object, and their ids.
fn filled<L: Log>(stage: &Stage, options: Options, count: usize) -> (L, Vec<EntryId>) {
    let log: L = open(stage, options);
    let ids = super::submit_numbers(&log, count).into_iter().map(|wait| wait().unwrap());
    let ids = ids.collect();
    (log, ids)
}

pub(super) fn a_read_begins_where_it_is_told_and_costs_one_request_per_object<L: Log>() {
    let stage = Stage::default();
    let (log, ids) = filled::<L>(&stage, one_by_one(), 20);
    let gets = stage.count(Asked::Get);
    let items = log.read(A, ids[15]);
    assert_eq!(items.len(), 5);
    assert!(matches!(&items[0], Ok(ReadItem::Entry(entry)) if entry.id == ids[15]));
    assert_eq!(stage.count(Asked::Get) - gets, 5);
    assert!(log.read(A, ids[19].next()).is_empty());
    assert!(log.read(B, EntryId::ZERO).is_empty());
}

pub(super) fn a_long_read_is_planned_page_by_page<L: Log>() {
    let (log, ids) = filled::<L>(&Stage::default(), one_by_one(), 600);
    assert_eq!(entries(&log, A).iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
}

pub(super) fn obsolete_entries_are_not_read_and_their_region_goes<L: Log>() {
    let (log, ids) = filled::<L>(&Stage::default(), one_by_one(), 5);
    log.obsolete(A, ids[2]).unwrap();
    assert_eq!(payloads(&log, A), ["3", "4"]);
    assert_eq!(log.regions().unwrap()[0].region, A);
    log.obsolete(A, ids[4]).unwrap();
    assert_eq!(payloads(&log, A), [""; 0]);
    assert_eq!(log.regions().unwrap(), []);
    assert!(log.append(A, "5").unwrap() > ids[4]);
    assert_eq!(payloads(&log, A), ["5"]);
}

pub(super) fn a_damaged_segment_is_a_hole_in_its_place<L: Log>() {
    let stage = Stage::default();
    let (log, ids) = filled::<L>(&stage, one_by_one(), 3);
    stage.damage(ids[1].sequence().0);
    let gets = stage.count(Asked::Get);
    for _ in 0..2 {
        let items = log.read(A, EntryId::ZERO);
        let [Ok(ReadItem::Entry(first)), Ok(ReadItem::Hole(hole)), Ok(ReadItem::Entry(last))] =
            &items[..]
        else {
            panic!("{items:?}")
        };
        assert_eq!((first.id, last.id), (ids[0], ids[2]));
        assert_eq!((hole.min_id, hole.max_id), (ids[1], ids[1]));
        assert_eq!(log.holes(A).unwrap().iter().collect::<Vec<_>>(), [hole]);
        assert_eq!(log.holes(B).unwrap(), []);
        assert_eq!(log.stats().unwrap().skipped_segments_total, 1, "it is counted once");
    }
    assert_eq!(stage.count(Asked::Get) - gets, 8, "it is fetched twice each time");
}

pub(super) fn a_damaged_segment_fails_the_read_if_that_is_wanted<L: Log>() {
    let stage = Stage::default();
    let options =
        Options { on_corrupted_segment: OnCorruptedSegment::Fail, ..one_by_one() };
    let (log, ids) = filled::<L>(&stage, options, 3);
    stage.damage(ids[1].sequence().0);
    let items = log.read(A, EntryId::ZERO);
    let [Ok(ReadItem::Entry(first)), Err(error)] = &items[..] else { panic!("{items:?}") };
    assert_eq!(first.id, ids[0]);
    assert!(matches!(error, Error::Corrupted { part: Part::Segment(A), .. }), "{error}");
}

pub(super) fn a_failed_fetch_is_the_last_item_and_the_next_read_begins_anew<L: Log>() {
    let stage = Stage::default();
    let options = Options { read_retry_for: Duration::from_millis(120), ..one_by_one() };
    let (log, ids) = filled::<L>(&stage, options, 3);
    for (reaction, repeats) in
        [(Reaction::Break, true), (Reaction::Refuse, false), (Reaction::Panic, true)]
    {
        stage.react(move |asked| match asked {
            Asked::Get => reaction,
            _ => Reaction::Pass,
        });
        let gets = stage.count(Asked::Get);
        let items = log.read(A, EntryId::ZERO);
        let [Err(Error::Store { operation: Operation::Read, .. })] = &items[..] else {
            panic!("{items:?}")
        };
        // The objects are asked for side by side, one of them may be the first to give up.
        let gets = stage.count(Asked::Get) - gets;
        assert_eq!(gets > 3, repeats, "{reaction:?}: {gets} requests");
    }
    stage.behave();
    assert_eq!(entries(&log, A).len(), ids.len());
}

pub(super) fn a_fetch_that_fails_and_may_pass_is_repeated<L: Log>() {
    let stage = Stage::default();
    for on_corrupted_segment in [OnCorruptedSegment::Skip, OnCorruptedSegment::Fail] {
        let (log, ids) =
            filled::<L>(&stage, Options { on_corrupted_segment, ..one_by_one() }, 3);
        for reaction in [Reaction::Break, Reaction::Panic] {
            let failed = AtomicBool::new(false);
            stage.react(move |asked| match asked {
                Asked::Get if !failed.swap(true, Ordering::Relaxed) => reaction,
                _ => Reaction::Pass,
            });
            let gets = stage.count(Asked::Get);
            let items = log.read(A, ids[0]);
            assert!(items.len() == 3 && items.iter().all(Result::is_ok), "{items:?}");
            // After a failure it is looked whether the object is shorter than was asked for.
            let looks = usize::from(matches!(reaction, Reaction::Break));
            assert_eq!(stage.count(Asked::Get) - gets, 4 + looks);
        }
        stage.behave();
    }
}
