//! Obsolete, reads, holes, subscriptions.

use super::*;
use crate::error::{DecodeError, Part};
use crate::read::Hole;

/// A log with three objects of region 1 and one entry each, at 6, 7 and 8.
fn three_objects() -> Log {
    let mut log = Log::new(at_once());
    for (sequence, payload) in [(6, "a"), (7, "b"), (8, "c")] {
        log.append(1, payload);
        log.created(sequence);
    }
    log
}

fn planned(log: &Log, from: EntryId) -> Vec<u64> {
    let plan = log.writer.plan_read(RegionId(1), from, None, 100).unwrap();
    plan.segments.iter().map(|segment| segment.segment.object.sequence.0).collect()
}

#[test]
fn obsolete_hides_entries_and_lets_the_boundary_pass() {
    let mut log = three_objects();
    assert_eq!(planned(&log, EntryId::ZERO), [6, 7, 8]);
    assert_eq!(log.obsolete(1, id(7, 1)), ["ack 4"]);
    assert_eq!(planned(&log, EntryId::ZERO), [8]);
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 5"], "it never moves down");
    assert_eq!(planned(&log, EntryId::ZERO), [8]);
}

#[test]
fn obsolete_of_a_reserved_region_is_refused() {
    let mut log = Log::new(at_once());
    let said = log.obsolete(u64::MAX - 1, id(1, 1));
    assert_eq!(said, ["fail [1]: InvalidRegion, NotWritten"]);
}

#[test]
fn an_id_above_entries_that_are_on_their_way_is_unsettled() {
    let mut log = three_objects();
    log.append(1, "d");
    assert_eq!(log.obsolete(1, id(9, 2)), ["fail [5]: Unsettled, NotWritten"]);
    assert_eq!(log.stats().reclaim_boundary, 6, "nothing changed");
    // What was handed out may become obsolete before it is durable.
    assert_eq!(log.obsolete(1, id(9, 1)), ["ack 6"]);
    // Another region has nothing on its way.
    assert_eq!(log.obsolete(2, id(9, 7)), ["ack 7"]);
    assert_eq!(log.created(9), ["ack 4: 9/1"]);
    assert_eq!(planned(&log, EntryId::ZERO), [0; 0]);
}

#[test]
fn an_id_from_elsewhere_raises_the_next_sequence_above_it() {
    let mut log = three_objects();
    assert_eq!(log.obsolete(1, id(50, 3)), ["ack 4"]);
    assert_eq!(log.append(1, "d"), ["put 51"]);
    let header = log.header(51);
    assert_eq!(header.predecessor.unwrap().sequence, ObjectSeq(8));
    assert_eq!(log.created(51), ["list after 8.wal"], "the first after a skip is guarded");
    let expected = ["ack 5: 51/1", "delete 6", "delete 7", "delete 8"];
    assert_eq!(log.lists(&[8, 51]), expected, "above 50/3: visible, and nothing else is needed");
    assert_eq!(planned(&log, EntryId::ZERO), [51]);
}

#[test]
fn a_floor_waits_for_the_pipeline_and_holds_admission() {
    let mut log = three_objects();
    log.append(1, "d");
    assert_eq!(log.obsolete(2, id(50, 3)), [""; 0]);
    assert!(!log.writer.accepts_appends());
    assert_eq!(log.append(2, "queued"), [""; 0]);
    // The larger floor wins, and both are answered.
    assert_eq!(log.obsolete(3, id(60, 1)), [""; 0]);
    assert_eq!(log.created(9), ["ack 4: 9/1", "ack 5", "ack 7", "put 61"]);
    assert_eq!(log.created(61), ["list after 9.wal"]);
    assert_eq!(log.lists(&[61]), ["ack 6: 61/1"]);
}

#[test]
fn a_floor_seals_the_open_batch_also_without_a_free_slot() {
    let mut log = Log::new(Options { max_in_flight: 1, ..Options::default() });
    log.append(1, "a");
    log.flush();
    log.append(1, "b");
    assert_eq!(log.obsolete(2, id(50, 3)), [""; 0]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2", "put 7"]);
    assert_eq!(log.created(7), ["ack 3: 7/1", "ack 4"]);
}

#[test]
fn an_id_in_the_open_batch_needs_no_floor_since_a_dropped_batch_uses_up_its_sequence() {
    let mut log = Log::new(Options::default());
    log.append(1, "a");
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 2"]);
    // One that the open batch does not go beyond needs one, and a pipeline that a roll back emptied
    // raises it too.
    assert_eq!(log.obsolete(2, id(6, 1)), ["put 6"]);
    assert_eq!(
        log.fails(6, StoreErrorKind::Refused),
        ["fail [1]: Store creating Refused, Unknown", "ack 3"],
    );
    log.append(1, "b");
    assert_eq!(log.flush(), ["put 7"]);
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 4: 7/1", "ack 5"]);
    assert_eq!(planned(&log, EntryId::ZERO), [7], "7/1 is above 6/1");
}

#[test]
fn a_waiting_floor_fails_at_stop_and_at_poison() {
    let mut log = three_objects();
    log.append(1, "d");
    log.obsolete(2, id(50, 3));
    assert_eq!(log.stop(), ["fail [5]: Stopped, NotWritten"]);

    let mut log = three_objects();
    log.append(1, "d");
    log.obsolete(2, id(50, 3));
    log.append(2, "queued");
    log.fails(9, StoreErrorKind::Exists);
    assert_eq!(
        log.finds_twice(9, &[]),
        [
            "fail [4]: Corrupted object, Unknown",
            "fail [6]: Corrupted object, NotWritten",
            "fail [5]: Corrupted object, NotWritten",
        ]
    );
}

#[test]
fn a_floor_at_the_end_of_sequences_is_refused() {
    let mut log = three_objects();
    assert_eq!(log.obsolete(1, EntryId::MAX), ["fail [4]: IdTooFar, NotWritten"]);
    assert_eq!(planned(&log, EntryId::ZERO), [6, 7, 8], "nothing changed");

    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last - 5));
    assert_eq!(log.obsolete(1, EntryId::MAX), ["fail [1]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.obsolete(1, id(last - 1, 1)), ["ack 2"]);
    assert_eq!(log.append(1, "d"), [format!("put {last}")]);
}

/// Every sequence that a floor leaves out may cost a later opening a claim.
#[test]
fn an_id_that_would_leave_out_more_than_2_to_the_20_sequences_is_too_far() {
    let far = 1 << 20;
    for open in [false, true] {
        let mut log = three_objects();
        let mut next = 9;
        if open {
            // It leaves first, under sequence 9.
            log = Log::starting_at(Options::default(), ObjectSeq(next));
            log.append(2, "open");
            next += 1;
        }
        let waiter = log.calls + 1;
        log.writer.handle(
            log.now,
            Event::Obsolete { region: RegionId(1), id: id(next + far, 1), waiter },
        );
        let error =
            core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
                Effect::FailWaiters { error, .. } => Some(error),
                _ => None,
            });
        let Some(Error::IdTooFar { id: refused, limit }) = error else { panic!("{error:?}") };
        assert_eq!(refused, id(next + far, 1));
        assert_eq!(limit, id(next + far - 1, EntryId::MAX_POSITION));
        log.calls += 1;
        // What it says is possible is, and what it refused changed nothing.
        let said = log.obsolete(1, limit);
        if open {
            assert_eq!(said, ["put 9"]);
            log.created(9);
        } else {
            assert_eq!(said, [format!("ack {}", waiter + 1)]);
        }
        log.append(1, "d");
        let said = log.flush();
        assert!(open || said.is_empty() || said == [format!("put {}", next + far)], "{said:?}");
        assert!(log.put.contains_key(&(next + far)), "{:?}", log.put.keys());
    }
}

#[test]
fn a_plan_ends_at_what_is_durable_and_can_be_cut() {
    let mut log = three_objects();
    log.append(1, "not durable");
    assert_eq!(planned(&log, EntryId::ZERO), [6, 7, 8]);
    assert_eq!(planned(&log, id(7, 1)), [7, 8]);
    assert_eq!(planned(&log, id(7, 2)), [8]);
    assert_eq!(planned(&log, id(8, 2)), [0; 0]);

    let plan = log.writer.plan_read(RegionId(1), EntryId::ZERO, None, 2).unwrap();
    assert_eq!((plan.segments.len(), plan.next, plan.through), (2, Some(id(8, 1)), id(8, 1)));
    // What becomes durable meanwhile is not part of the read.
    log.created(9);
    let rest = log.writer.plan_read(RegionId(1), id(8, 1), Some(plan.through), 2).unwrap();
    assert_eq!((rest.segments.len(), rest.next), (1, None));
    let reserved = log.writer.plan_read(RegionId::RELEASES, EntryId::ZERO, None, 2);
    assert!(matches!(reserved, Err(Error::InvalidRegion { .. })));
}

#[test]
fn a_failed_read_is_judged_by_what_is_indexed() {
    let mut log = three_objects();
    let ask = |log: &mut Log, sequence, epoch| {
        let object = Link { sequence: ObjectSeq(sequence), epoch: Epoch(epoch) };
        let segment = SegmentRef { object, region: RegionId(1) };
        log.handle(Event::SegmentReadFailed { segment, waiter: 9 })
    };
    assert_eq!(ask(&mut log, 7, 6), ["ack 9: Indexed"]);
    assert_eq!(ask(&mut log, 7, 5), ["ack 9: Gone"], "another object was there");
    assert_eq!(ask(&mut log, 3, 6), ["ack 9: Gone"]);
    log.append(1, "d");
    log.stop();
    assert_eq!(ask(&mut log, 7, 6), ["ack 9: Indexed"], "while stopping");
    log.created(9);
    assert_eq!(ask(&mut log, 7, 6), ["ack 9: Indexed"], "what is indexed is known after it too");
    assert_eq!(ask(&mut log, 3, 6), ["ack 9: Gone"]);
}

#[test]
fn a_failed_read_is_judged_after_poison() {
    let mut log = three_objects();
    log.append(1, "d");
    log.fails(9, StoreErrorKind::Exists);
    log.finds_twice(9, &[]);
    let object = Link { sequence: ObjectSeq(7), epoch: EPOCH };
    let segment = SegmentRef { object, region: RegionId(1) };
    assert_eq!(log.handle(Event::SegmentReadFailed { segment, waiter: 9 }), ["ack 9: Indexed"]);
    assert_eq!(planned(&log, EntryId::ZERO), [6, 7, 8]);
}

#[test]
fn a_hole_is_counted_once_and_listed_in_its_region() {
    let mut log = three_objects();
    let hole = |sequence| Hole {
        region: RegionId(1),
        key: Prefix::new("log").unwrap().object_key(ObjectSeq(sequence)),
        object: Link { sequence: ObjectSeq(sequence), epoch: EPOCH },
        min_id: id(sequence, 1),
        max_id: id(sequence, 1),
        error: DecodeError::new(Part::Segment(RegionId(1)), "expected, found"),
    };
    assert_eq!(log.handle(Event::HoleFound(hole(7))), ["hole in region 1"]);
    assert_eq!(log.handle(Event::HoleFound(hole(7))), [""; 0]);
    assert_eq!(log.handle(Event::HoleFound(hole(6))), ["hole in region 1"]);
    assert_eq!(log.handle(Event::HoleFound(hole(3))), [""; 0], "not part of the log");
    assert_eq!(log.stats().skipped_segments_total, 2);
    let found: Vec<_> = log.writer.holes(RegionId(1)).map(|hole| hole.min_id).collect();
    assert_eq!(found, [id(6, 1), id(7, 1)]);
    assert_eq!(log.writer.holes(RegionId(2)).count(), 0);
}

#[test]
fn a_watched_region_tells_its_durable_position() {
    let mut log = three_objects();
    assert_eq!(log.handle(Event::Watch { region: RegionId(1) }), ["durable 1: 8/1"]);
    assert_eq!(log.handle(Event::Watch { region: RegionId(2) }), ["durable 2: 0"]);
    log.append_many(&[(1, "d"), (1, "e"), (3, "f")]);
    assert_eq!(log.created(9), ["ack 4: 9/1 9/2 9/1", "durable 1: 9/2"]);
    log.handle(Event::Unwatch { region: RegionId(1) });
    log.append(1, "g");
    assert_eq!(log.created(10), ["ack 5: 10/1"]);
}

#[test]
fn latest_is_what_was_handed_out_and_durable_what_is_indexed() {
    let mut log = three_objects();
    let position =
        |log: &Log| (short(log.writer.latest(RegionId(1))), short(log.writer.durable(RegionId(1))));
    log.append(1, "d");
    assert_eq!(position(&log), ("9/1".into(), "8/1".into()));
    log.created(9);
    assert_eq!(position(&log), ("9/1".into(), "9/1".into()));
    assert_eq!(log.writer.latest(RegionId(2)), EntryId::ZERO);
}

#[test]
fn regions_are_those_that_hold_something_visible() {
    let mut log = three_objects();
    log.append(2, "x");
    log.created(9);
    let regions = |log: &Log| -> Vec<_> {
        log.writer.regions().map(|info| (info.region.0, info.segments)).collect()
    };
    assert_eq!(regions(&log), [(1, 3), (2, 1)]);
    log.obsolete(1, id(8, 1));
    assert_eq!(regions(&log), [(2, 1)]);
}
