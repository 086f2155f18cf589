//! Releasing a region: its record, what it hides, and what is refused (DESIGN.md section 6).

use super::*;
use crate::format::ReleaseRecord;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

#[test]
fn a_release_seals_its_record_at_once_and_is_acknowledged_when_that_is_indexed() {
    for mode in [AckMode::Durable, AckMode::Enqueued] {
        let mut log = Log::new(Options { ack_mode: mode, ..Options::default() });
        log.append(1, "a");
        log.tick_at(1);
        log.created(6);
        log.append(1, "b");
        // Neither the linger nor the interval holds it.
        assert_eq!(log.release(1), ["put 7"]);
        assert_eq!(log.records(7), ["1 through 7/1"]);
        assert_eq!(log.visible(1), [6], "until its object is durable");
        log.append(2, "c");
        log.flush();
        let said = log.created(8);
        assert!(!said.iter().any(|line| line.starts_with("ack 3")), "7 comes first: {said:?}");
        assert_eq!(log.stats().release_records_total, 0);
        let said = log.created(7);
        assert!(said.contains(&"ack 3".into()), "{said:?}");
        assert_eq!(log.visible(1), [0; 0]);
        let stats = log.stats();
        assert_eq!((stats.release_records_total, stats.reclaim_boundary), (1, 8));
        assert_eq!(log.append(1, "d").len(), usize::from(mode == AckMode::Enqueued));
    }
}

#[test]
fn the_record_is_in_the_last_segment_and_holds_no_boundary() {
    let mut log = Log::new(at_once());
    log.append_durable(9);
    log.release(9);
    let object = Object::decode(&log.payload(7).to_bytes()).unwrap();
    let regions: Vec<_> = object.segments.iter().map(|(meta, _)| meta.region).collect();
    assert_eq!(regions, [RegionId::RELEASES]);
    assert_eq!(object.segments[0].0.min_id, id(7, 1));
    log.created(7);
    assert_eq!(log.writer.regions().count(), 0, "it is in no listing");
    assert_eq!(log.writer.durable(RegionId::RELEASES), EntryId::ZERO);
    let refused = log.writer.plan_read(RegionId::RELEASES, EntryId::ZERO, None, 1);
    assert!(matches!(refused, Err(Error::InvalidRegion { .. })));
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.stats().object_entries.sum(), 1, "a record is no entry");
}

#[test]
fn a_region_of_which_there_is_nothing_is_released_at_once() {
    for options in [at_once(), enqueued()] {
        let mut log = Log::new(options);
        assert_eq!(log.release(1), ["ack 1"]);
        assert_eq!(log.release_all(1), ["ack 2"]);
        assert_eq!(log.append(1, "a")[0], if log.enqueued() { "ack 3: 6/1" } else { "put 6" });
        assert_eq!(log.stats().release_records_total, 0);
        assert_eq!(log.stats().unpersisted_bytes, log.payload(6).len());
    }
}

#[test]
fn what_is_obsolete_and_not_collected_is_there_still() {
    // A watermark is not in the log: after a restart the region would be back.
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.release(1), ["put 7"]);
    assert_eq!(log.records(7), ["1 through 6/1"]);
    assert_eq!(log.created(7), ["ack 3", "delete 6"]);
    assert_eq!(log.release(1), ["put 8"], "6 is there until it is deleted");
    log.deleted(6);
    log.created(8);
    assert_eq!(log.release(1), ["ack 5"]);
}

#[test]
fn a_reserved_region_is_refused() {
    let mut log = Log::new(at_once());
    let said = log.release(u64::MAX);
    assert_eq!(said, ["fail [1]: InvalidRegion, NotWritten"]);
    assert_eq!(log.release_all(u64::MAX - 15), ["fail [2]: InvalidRegion, NotWritten"]);
}

#[test]
fn several_releases_at_once_and_of_one_region_again_and_again() {
    let mut log = Log::new(at_once());
    log.append_many(&[(1, "a"), (2, "b"), (3, "c")]);
    log.created(6);
    assert_eq!(log.release(2), ["put 7"]);
    assert_eq!(log.release(1), ["put 8"]);
    assert_eq!(log.release(2), ["put 9"]);
    assert_eq!([log.records(7), log.records(9)], [["2 through 6/1"], ["2 through 6/1"]]);
    assert_eq!(log.created(9), [""; 0]);
    assert_eq!(log.created(7), ["ack 2"]);
    assert_eq!(log.created(8), ["ack 3", "ack 4"]);
    assert_eq!(log.stats().release_records_total, 3);
    assert_eq!(log.visible(3), [6]);
}

/// The pipeline is full: 6 is under way, 7 is sealed behind it, and the open batch is 8.
fn full() -> Log {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append(1, "a");
    log.append(1, "b");
    log.flush();
    assert_eq!(log.append(1, "c"), [""; 0]);
    log
}

#[test]
fn records_of_one_region_in_one_batch_are_coalesced() {
    let mut log = full();
    for _ in 0..3 {
        assert_eq!(log.release(1), [""; 0], "it is sealed when there is room");
        log.append(1, "d");
        assert_eq!(log.stats().unpersisted_bytes, log.unpersisted());
    }
    assert_eq!(log.created(6), ["ack 1: 6/1", "put 7"]);
    assert_eq!(log.created(7), ["ack 2: 7/1", "ack 3", "put 8"]);
    assert_eq!(log.records(8), ["1 through 8/3"], "the largest id wins");
    assert_eq!(log.stats().unpersisted_bytes, log.payload(8).len());
    let said = log.created(8);
    assert_eq!(
        said,
        ["ack 4: 8/1", "ack 6: 8/2", "ack 8: 8/3", "ack 10: 8/4", "ack 5", "ack 7", "ack 9"]
    );
    assert_eq!(log.stats().release_records_total, 1);
    // The entry that came after the last release is in the same segment and stays.
    let plan = log.writer.plan_read(RegionId(1), EntryId::ZERO, None, 9).unwrap();
    assert_eq!(plan.segments.len(), 1);
    assert_eq!(plan.segments[0].from, EntryId(id(8, 3).0 + 1));
}

#[test]
fn in_full_wins_over_any_id() {
    let mut log = full();
    log.release(2);
    log.release_all(1);
    log.release(1);
    log.created(6);
    log.created(7);
    assert_eq!(log.records(8), ["1 in full"]);
}

#[test]
fn the_bytes_of_records_count_exactly() {
    let mut log = full();
    for region in 10..40 {
        log.append(region, "x");
        log.release(region);
    }
    log.created(6);
    let backlog = log.stats().unpersisted_bytes - log.payload(7).len();
    log.created(7);
    assert_eq!(log.payload(8).len(), backlog);
    assert_eq!(log.records(8).len(), 30);
    log.created(8);
    assert_eq!(log.stats().unpersisted_bytes, 0);
}

#[test]
fn a_release_takes_its_place_behind_queued_appends() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["under way", "sealed", "open", "queued"] {
        log.append(1, payload);
    }
    assert_eq!(log.release(1), [""; 0]);
    // Behind it in the queue: a new life of the region.
    assert_eq!(log.append(1, "new"), [""; 0]);
    let mut said = Vec::new();
    while let Some(sequence) = log.requests.first().map(sequence_of) {
        if sequence == 9 {
            assert_eq!(log.records(9), ["1 through 9/1"], "with what was queued before it");
        }
        said.extend(log.created(sequence));
    }
    let acks: Vec<_> = said.iter().filter(|line| line.starts_with("ack")).collect();
    let expected = ["ack 1: 6/1", "ack 2: 7/1", "ack 3: 8/1", "ack 4: 9/1", "ack 5", "ack 6: 10/1"];
    assert_eq!(acks, expected.iter().collect::<Vec<_>>());
    assert_eq!(log.visible(1), [10]);
}

#[test]
fn a_release_waits_for_a_floor() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    assert_eq!(log.obsolete(2, id(50, 1)), [""; 0]);
    assert_eq!(log.release(1), [""; 0]);
    assert_eq!(log.append(1, "b"), [""; 0]);
    let said = log.created(6);
    assert_eq!(said, ["ack 1: 6/1", "ack 2", "put 51"]);
    assert_eq!(log.records(51), ["1 through 6/1"], "the append came behind it");
    log.created(51);
    assert_eq!(log.lists(&[51])[..2], ["ack 4: 51/1", "ack 3"]);
    assert_eq!(log.visible(1), [51]);
}

#[test]
fn an_append_behind_a_release_in_full_is_refused() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["under way", "sealed", "open", "queued"] {
        log.append(1, payload);
    }
    log.release_all(1);
    assert_eq!(log.append(1, "too late"), [""; 0], "that is known when the release is admitted");
    assert_eq!(log.append_many(&[(2, "b"), (1, "too late")]), [""; 0]);
    assert_eq!(log.append(2, "c"), [""; 0]);
    let mut said = Vec::new();
    while let Some(sequence) = log.requests.first().map(sequence_of) {
        said.extend(log.created(sequence));
    }
    for refused in ["fail [6]: Released, NotWritten", "fail [7]: Released, NotWritten"] {
        assert_eq!(said.iter().filter(|line| *line == refused).count(), 1, "{said:?}");
    }
    assert!(said.contains(&"ack 8: 10/1".into()), "{said:?}");
    assert_eq!(log.append(1, "later"), ["fail [9]: Released, NotWritten"]);
    assert_eq!(log.append_many(&[(2, "b"), (1, "later")]), ["fail [10]: Released, NotWritten"]);
    assert_eq!(log.stats().rejected_appends_total, 4);
    assert_eq!(log.visible(1), [0; 0]);
}

#[test]
fn appends_are_refused_from_the_release_in_full_on_until_its_record_was_collected() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    assert_eq!(log.release_all(1), ["put 7"]);
    assert_eq!(log.records(7), ["1 in full"]);
    assert_eq!(log.append(1, "b"), ["fail [3]: Released, NotWritten"], "it is under way");
    log.created(7);
    assert_eq!(log.append(1, "b"), ["fail [4]: Released, NotWritten"]);
    assert_eq!(log.release_all(1), ["put 8"], "6 is not deleted");
    assert_eq!(log.created(8), ["ack 5", "delete 6", "delete 7"]);
    log.deleted(6);
    log.deleted(7);
    assert_eq!(log.append(1, "b"), ["fail [6]: Released, NotWritten"], "8 has one too");
    assert_eq!(log.append_durable(2), ["ack 7: 9/1", "delete 8"]);
    assert_eq!(log.append(1, "b"), ["fail [8]: Released, NotWritten"]);
    assert_eq!(log.deleted(8), [""; 0]);
    assert_eq!(log.append_durable(1), ["ack 9: 10/1"]);
    assert_eq!(log.visible(1), [10]);
}

#[test]
fn a_release_in_full_that_an_opening_found_holds() {
    let mut recovered = with_history(at_once(), &[(3, &[2]), (4, &[1])]);
    let record = ReleaseRecord { region: RegionId(1), through: EntryId::MAX };
    recovered.catalog.apply_releases(ObjectSeq(4), &[record]);
    let mut log = Log::from(recovered);
    assert_eq!(log.append(1, "a"), ["fail [1]: Released, NotWritten"]);
    assert_eq!(log.stats().release_records_total, 0, "those of this writer are counted");
    log.obsolete(2, id(3, 1));
    log.append_durable(3);
    log.deleted(3);
    assert_eq!(log.append(1, "a"), ["fail [4]: Released, NotWritten"]);
    assert_eq!(log.deleted(4), [""; 0]);
    assert_eq!(log.append_durable(1), ["ack 5: 7/1"]);
}

#[test]
fn a_transient_outcome_keeps_it_waiting_for_the_repeat() {
    for options in [at_once(), enqueued()] {
        let mut log = Log::new(options);
        log.append(1, "a");
        log.created(6);
        log.release(1);
        let before = log.payload(7);
        log.fails(7, TimedOut);
        assert_eq!(log.fails(7, NotFound), [""; 0]);
        assert_eq!(log.tick_at(100), ["put 7"]);
        assert_eq!(log.payload(7), before, "the same bytes");
        assert_eq!(log.created(7), ["ack 2"]);
    }
}

/// A release of a region whose only batch failed with an unknown outcome: if that landed, it would
/// be history after a crash now.
#[test]
fn what_a_restart_could_bring_back_is_not_nothing() {
    let mut log = Log::new(at_once());
    log.append_many(&[(1, "a"), (1, "b"), (2, "c")]);
    log.append(1, "d");
    assert_eq!(log.fails(6, Refused), ["fail [1, 2]: Store creating Refused, Unknown"]);
    assert_eq!(log.release(3), ["ack 3"]);
    assert_eq!(log.release(1), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 7/1"]);
    log.created(8);
    assert_eq!(log.lists(&[8]), ["ack 4"]);
    // Now neither is history in any case.
    assert_eq!(log.release(2), ["ack 5"]);
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
}

#[test]
fn of_what_was_never_sent_a_restart_brings_back_nothing() {
    let mut log = full();
    log.append(4, "x");
    let said = log.fails(6, Refused);
    assert_eq!(said[0], "fail [1]: Store creating Refused, Unknown");
    assert_eq!(log.release(4), ["ack 6"]);
    assert_eq!(log.release(1), ["put 9"], "6 may have landed");
}

#[test]
fn poison_fails_it_with_the_cause() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    log.fails(7, Exists);
    assert_eq!(log.finds_twice(7, &[0; 100]), ["fail [2]: Corrupted header, Unknown"]);
    assert_eq!(log.release(1), ["fail [3]: Poisoned Corrupted header, NotWritten"]);
    assert_eq!(log.visible(1), [6]);
    // The record is lost with the log, and stop says so.
    assert_eq!(log.stop(), ["fail [4]: Lost 0 entries, 1 releases, NotWritten"]);
}

#[test]
fn a_release_that_comes_while_another_writers_name_is_read_fails_with_the_cause() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.append(1, "b");
    log.fails(7, Exists);
    log.finds(7, &bare_object(7, 99));
    assert_eq!(log.release(1), [""; 0]);
    assert_eq!(
        log.fails(98, NotFound),
        ["fail [2]: Fenced by 99 ?, Unknown", "fail [3]: Poisoned Fenced by 99 ?, NotWritten"]
    );
    assert_eq!(log.stop(), ["fail [4]: Poisoned Fenced by 99 ?, NotWritten"], "nothing is lost");
}

#[test]
fn a_log_without_sequences_takes_none() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last));
    log.append_durable(1);
    assert_eq!(log.release(1), ["fail [2]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.release_all(1), ["fail [3]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.release(2), ["ack 4"], "there is nothing to write");
    assert_eq!(log.stop(), ["ack 5"]);
}

#[test]
fn the_last_sequence_takes_one() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last - 1));
    log.append_durable(1);
    assert_eq!(log.release(1), [format!("put {last}")]);
    assert_eq!(log.created(last), ["ack 2"]);
    assert_eq!(log.release(1), ["fail [3]: SequenceExhausted, NotWritten"]);
}

#[test]
fn an_abandoned_log_gives_back_its_releases() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    log.append_durable(1);
    log.release(1);
    for payload in ["sealed", "open", "queued"] {
        log.append(2, payload);
    }
    log.release(2);
    log.writer.abandon();
    let said = log.handle(Event::Tick).join("; ");
    for waiter in 2..=6 {
        assert_eq!(said.matches(&format!("{waiter}]")).count(), 1, "{waiter}: {said}");
    }
}

impl Log {
    fn enqueued(&self) -> bool {
        self.writer.options().ack_mode == AckMode::Enqueued
    }

    /// The size of all batches, as they would be put now.
    fn unpersisted(&self) -> u64 {
        let open = self.writer.open.as_ref().map_or(0, |open| open.bytes());
        open + self.writer.pipeline.iter().map(|batch| batch.payload.len()).sum::<u64>()
    }
}
