//! What is kept of a region is dropped when nothing of it is left (DESIGN.md section 9), and what
//! that means for ids and watermarks.

use super::*;
use crate::error::{DecodeError, Part};
use StoreErrorKind::{NotFound, Refused, TimedOut};

fn hole(region: u64, sequence: u64) -> Hole {
    let (object, region) = (Link { sequence: ObjectSeq(sequence), epoch: EPOCH }, RegionId(region));
    let (min_id, max_id) = (id(sequence, 1), id(sequence, 1));
    let key = Prefix::new("log").unwrap().object_key(object.sequence);
    let error = DecodeError::new(Part::Segment(region), "damaged");
    Hole { region, key, object, min_id, max_id, error }
}

impl Log {
    /// How many regions something is known of.
    fn known(&self) -> usize {
        self.writer.catalog.region_count()
    }
}

#[test]
fn a_region_is_forgotten_with_its_last_object() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.append_durable(1);
    log.obsolete(1, id(7, 1));
    log.append_durable(2);
    log.deleted(6);
    assert_eq!(log.known(), 2, "7 is there still");
    assert_eq!(log.writer.durable(RegionId(1)), id(7, 1));
    log.deleted(7);
    assert_eq!(log.known(), 1);
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
    assert_eq!(log.writer.latest(RegionId(1)), EntryId::ZERO);
}

#[test]
fn a_region_that_has_something_on_its_way_is_not_forgotten() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    log.append(2, "b");
    log.append(1, "c");
    assert_eq!(log.created(7), ["ack 3: 7/1", "delete 6"]);
    log.deleted(6);
    assert_eq!(log.writer.latest(RegionId(1)), id(8, 1));
    assert_eq!(log.writer.catalog.watermark(RegionId(1)), id(6, 1));
    log.created(8);
    assert_eq!(log.visible(1), [8]);
}

#[test]
fn an_obsolete_of_a_region_of_which_there_is_nothing_leaves_nothing_behind() {
    for options in [at_once(), enqueued()] {
        let mut log = Log::new(options);
        assert_eq!(log.obsolete(1, id(3, 1)), ["ack 1"]);
        assert_eq!(log.obsolete(2, id(50, 7)), ["ack 2"], "with a floor");
        assert_eq!(log.known(), 0);
        // What is appended later has greater ids all the same, and is visible.
        log.append(2, "a");
        log.created(51);
        log.lists(&[51]);
        assert_eq!(log.visible(2), [51]);
    }
}

#[test]
fn a_region_that_is_used_again_is_not_hidden_by_what_was_before() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    log.append_durable(2);
    log.deleted(6);
    assert_eq!(log.known(), 1);
    assert_eq!(log.append_durable(1), ["ack 4: 8/1"]);
    assert_eq!(log.visible(1), [8]);
    // An old watermark is as good as none.
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 5"]);
    assert_eq!(log.visible(1), [8]);
}

#[test]
fn a_roll_back_forgets_a_region_that_had_nothing_else() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append(1, "a");
    // Its watermark is kept as long as it is on its way.
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 2"]);
    assert_eq!(log.known(), 1);
    log.append(1, "open");
    log.fails(6, Refused);
    assert_eq!(log.known(), 0);
    // With an open batch alone.
    log.append(3, "b");
    log.created(8);
    log.lists(&[8]);
    log.append(3, "c");
    log.append(4, "open");
    assert_eq!(log.obsolete(4, id(7, 1)), ["ack 7"]);
    assert_eq!(log.known(), 2);
    log.fails(9, TimedOut);
    log.fails(9, NotFound);
    log.tick_at(10_000);
    log.fails(9, Refused);
    assert_eq!(log.known(), 1, "3 has an object");
}

#[test]
fn a_stop_that_drops_the_last_entries_of_a_region_forgets_it() {
    let mut log = Log::new(Options::default());
    log.append(1, "a");
    assert_eq!(log.obsolete(1, id(3, 1)), ["ack 2"]);
    assert_eq!(log.known(), 1);
    assert_eq!(log.stop(), ["fail [1]: Stopped, NotWritten", "ack 3"]);
    assert_eq!(log.known(), 0);
}

#[test]
fn a_region_with_a_record_is_known_until_the_records_object_is_gone() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    log.created(7);
    log.append_durable(2);
    log.append_durable(2);
    assert_eq!(log.deleted(6), [""; 0]);
    assert_eq!(log.known(), 2, "the record is in 7");
    assert_eq!(log.deleted(7), [""; 0]);
    assert_eq!(log.known(), 1);
}

#[test]
fn holes_go_with_their_object() {
    let mut log = Log::new(at_once());
    log.append_many(&[(1, "a"), (2, "b")]);
    log.created(6);
    log.append_durable(1);
    for (region, sequence) in [(1, 6), (2, 6), (1, 7)] {
        let said = log.handle(Event::HoleFound(hole(region, sequence)));
        assert_eq!(said, [format!("hole in region {region}")]);
    }
    log.obsolete(1, id(6, 1));
    assert_eq!(log.writer.holes(RegionId(1)).count(), 2, "its object is there");
    log.obsolete(2, id(6, 1));
    log.append_durable(3);
    log.deleted(6);
    assert_eq!(log.writer.holes(RegionId(2)).count(), 0);
    let left: Vec<_> = log.writer.holes(RegionId(1)).map(|hole| hole.object.sequence.0).collect();
    assert_eq!(left, [7]);
    // A read that was begun before finds it late.
    assert_eq!(log.handle(Event::HoleFound(hole(1, 6))), [""; 0]);
    assert_eq!(log.stats().skipped_segments_total, 3);
}

#[test]
fn a_hole_of_what_is_not_in_the_object_is_none() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    for region in [2, u64::MAX] {
        assert_eq!(log.handle(Event::HoleFound(hole(region, 6))), [""; 0]);
    }
    assert_eq!(log.stats().skipped_segments_total, 0);
}

/// Regions come and go, by obsolete and by release, and memory stays flat.
#[test]
fn create_and_drop_churn_leaves_nothing_behind() {
    let mut log = Log::new(at_once());
    for region in 0..500 {
        log.append_durable(region);
        if region % 2 == 0 {
            log.obsolete(region, log.writer.latest(RegionId(region)));
        } else {
            log.release(region);
            let sequence = log.requests.iter().map(sequence_of).max().unwrap();
            log.created(sequence);
        }
        while let Some(delete) = log.requests.first().map(sequence_of) {
            log.deleted(delete);
        }
        assert!(log.known() <= 4, "{} regions are known", log.known());
        assert!(log.stats().indexed_objects <= 6, "{} objects", log.stats().indexed_objects);
    }
}
