//! Release records whose object failed, or that came while the log was failing (DESIGN.md
//! section 6, the table).

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

fn millis(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}

/// Region 1 was released, and the record's batch, 7, was rolled back at once.
fn rolled_back() -> Log {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    assert_eq!(log.fails(7, Refused), ["fail [2]: Store creating Refused, Unknown"]);
    assert_eq!(log.visible(1), [6]);
    log
}

#[test]
fn a_record_that_was_rolled_back_is_sealed_alone_after_a_delay_and_once() {
    let mut log = rolled_back();
    assert_eq!(log.writer.next_tick(), millis(100));
    assert_eq!(log.tick_at(99), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    log.created(8);
    assert_eq!(log.lists(&[8]), [""; 0], "its waiter was told long ago");
    assert_eq!(log.visible(1), [0; 0]);
    assert_eq!(log.stats().release_records_total, 1);
    assert_eq!(log.writer.next_tick(), millis(60_100), "a carrier, and no other record");
}

#[test]
fn or_with_the_next_batch() {
    let mut log = rolled_back();
    assert_eq!(log.append(2, "b"), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    assert_eq!(log.stats().unpersisted_bytes, log.payload(8).len());
    log.created(8);
    assert_eq!(log.lists(&[8]), ["ack 3: 8/1"]);
    assert_eq!(log.visible(1), [0; 0]);
    assert_ne!(log.writer.next_tick(), millis(100), "nothing is left of it");
}

#[test]
fn the_delay_grows_while_it_keeps_failing() {
    let mut log = rolled_back();
    let mut at = 0;
    for (delay, sequence) in [100, 200, 400, 800, 1600, 3200, 5000, 5000].into_iter().zip(8..) {
        at += delay;
        assert_eq!(log.writer.next_tick(), millis(at));
        assert_eq!(log.tick_at(at), [format!("put {sequence}")]);
        assert_eq!(log.records(sequence), ["1 through 6/1"]);
        assert_eq!(log.fails(sequence, Refused), [""; 0]);
    }
    assert_eq!(log.tick_at(at + 5000), ["put 16"]);
    log.created(16);
    log.lists(&[16]);
    // It begins anew after a success.
    log.now = Time::from_millis(100_000);
    log.append_durable(1);
    log.release(1);
    let last = log.requests.iter().map(sequence_of).max().unwrap();
    log.fails(last, Refused);
    assert_eq!(log.writer.next_tick(), millis(100_100));
}

#[test]
fn it_waits_for_the_interval_of_timed_seals_too() {
    let flush_interval = Duration::from_secs(1);
    let mut log = Log::new(Options { flush_interval, ..at_once() });
    log.append(1, "a");
    log.created(6);
    assert_eq!(log.release(1), ["put 7"], "sealed at once all the same");
    log.fails(7, Refused);
    assert_eq!(log.writer.next_tick(), millis(1_000));
}

#[test]
fn a_batch_with_entries_and_a_record_gives_up_its_entries_alone() {
    let mut log = Log::new(Options { linger: Duration::from_secs(1), ..at_once() });
    log.append(1, "a");
    log.append(2, "b");
    assert_eq!(log.release(1), ["put 6"]);
    let said = log.fails(6, Refused);
    assert_eq!(said, ["fail [1, 2, 3]: Store creating Refused, Unknown"]);
    assert_eq!(log.tick_at(100), ["put 7"]);
    assert_eq!(log.records(7), ["1 through 6/1"], "6 may have landed");
    let object = Object::decode(&log.payload(7).to_bytes()).unwrap();
    assert_eq!(object.segments.len(), 1);
}

#[test]
fn records_of_one_region_are_coalesced() {
    let mut log = rolled_back();
    log.append(1, "b");
    // 9 is sealed, and waits behind 8, which is guarded.
    assert_eq!(log.release(1), [""; 0]);
    log.fails(8, Refused);
    log.append(2, "c");
    assert_eq!(log.records(10), ["1 through 8/1"]);
}

#[test]
fn a_release_that_follows_takes_it_along() {
    let mut log = rolled_back();
    log.append(2, "b");
    log.created(8);
    log.lists(&[8]);
    assert_eq!(log.stats().release_records_total, 1);
    let mut log = rolled_back();
    assert_eq!(log.release(1), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    log.created(8);
    assert_eq!(log.lists(&[8]), ["ack 3"]);
    assert_eq!(log.stats().release_records_total, 1);
}

/// The ids of an open batch that is dropped are not given again: what is appended then was not released.
#[test]
fn what_comes_after_a_carried_record_is_not_hidden_by_it() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append(2, "a");
    log.append(2, "b");
    log.flush();
    log.append(1, "dropped");
    log.release(1);
    let said = log.fails(6, Refused);
    assert_eq!(
        said,
        [
            "fail [1]: Store creating Refused, Unknown",
            "fail [2, 3]: Store creating Refused, NotWritten",
            "fail [4]: Store creating Refused, NotWritten",
            "fail [5]: Store creating Refused, Unknown",
        ]
    );
    assert_eq!(log.append(1, "new"), ["put 9"]);
    log.created(9);
    assert_eq!(log.lists(&[9]), ["ack 6: 9/1"], "8/1 was handed out before");
    assert_eq!(log.visible(1), [9]);
    assert_eq!(log.writer.catalog.watermark(RegionId(1)), id(8, 1));
}

#[test]
fn the_same_where_the_region_had_older_entries() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append_durable(1);
    log.append(2, "a");
    log.append(2, "b");
    log.flush();
    log.append(1, "dropped");
    log.release(1);
    log.fails(7, Refused);
    log.append(1, "new");
    log.created(10);
    log.lists(&[10]);
    assert_eq!(log.visible(1), [10], "6 is hidden, 10 is not");
}

#[test]
fn a_release_in_full_that_was_rolled_back_holds() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release_all(1);
    log.fails(7, Refused);
    assert_eq!(log.append(1, "b"), ["fail [3]: Released, NotWritten"]);
    assert_eq!(log.tick_at(100), ["put 8"]);
    assert_eq!(log.records(8), ["1 in full"]);
    log.created(8);
    log.lists(&[8]);
    assert_eq!(log.visible(1), [0; 0]);
    assert_eq!(log.append(1, "b"), ["fail [4]: Released, NotWritten"]);
}

#[test]
fn a_release_in_full_whose_entries_were_rolled_back_with_it_holds() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.release_all(1);
    log.fails(6, Refused);
    assert_eq!(log.append(1, "b"), ["fail [3]: Released, NotWritten"]);
    assert_eq!(log.append_many(&[(2, "c")]), ["put 8"]);
    assert_eq!(log.records(8), ["1 in full"]);
}

#[test]
fn a_carried_record_waits_for_a_floor() {
    let mut log = rolled_back();
    log.append(2, "b");
    log.fails(8, Refused);
    log.append(2, "c");
    assert_eq!(log.obsolete(3, id(50, 1)), [""; 0]);
    log.fails(9, Refused);
    // The pipeline is empty: the floor is raised, and the record comes above it.
    let said = log.tick_at(10_000);
    assert_eq!(said, ["put 51"]);
    assert_eq!(log.records(51), ["1 through 6/1"]);
}

#[test]
fn it_is_sealed_only_while_a_slot_is_free() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append_durable(1);
    log.append(2, "b");
    log.release(1);
    assert_eq!(log.fails(7, TimedOut), ["read back 7"]);
    log.fails(7, Refused);
    assert_eq!(log.tick_at(100), ["put 9"]);
    log.append(2, "c");
    log.release(1);
    log.fails(9, Refused);
    assert_eq!(log.stats().in_flight_creates, 0);
}

/// In `enqueued`: region 1 is durable at 6, and the create of 7, of region 2, was refused.
fn failing() -> Log {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.created(6);
    log.append(2, "b");
    assert_eq!(log.fails(7, Refused), ["failing: Store creating Refused"]);
    log
}

#[test]
fn a_failing_log_refuses_a_release_and_seals_its_record_after_a_success() {
    let mut log = failing();
    let backlog = log.stats().unpersisted_bytes;
    assert_eq!(log.release(1), ["fail [3]: Failing, Unknown"], "its record lives on");
    assert_eq!(log.release(9), ["fail [4]: Failing, NotWritten"], "of this one there is none");
    assert_eq!(log.stats().rejected_appends_total, 2);
    assert_eq!(log.tick_at(100), ["put 7"]);
    assert_eq!(log.stats().unpersisted_bytes, backlog);
    assert_eq!(log.created(7), ["healthy", "put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    assert_eq!(log.created(8), [""; 0]);
    assert_eq!(log.visible(1), [0; 0]);
    assert_eq!(log.stats().release_records_total, 1);
}

#[test]
fn the_backlog_of_a_failing_log_does_not_grow_by_releases() {
    let mut log = failing();
    let backlog = log.stats().unpersisted_bytes;
    for tick in 1..=1_000 {
        for line in log.tick_at(tick * 10) {
            if line == "put 7" {
                log.fails(7, Refused);
            } else {
                assert!(line.contains("slow"), "{line}");
            }
        }
        let said = log.release(1);
        assert_eq!(said.len(), 1);
        assert!(said[0].ends_with("Failing, Unknown"), "{said:?}");
        assert_eq!(log.stats().unpersisted_bytes, backlog);
        assert_eq!(log.writer.pipeline.len(), 1);
    }
    assert_eq!(log.stats().rejected_appends_total, 1_000);
    let said = log.tick_at(20_000);
    assert!(said.contains(&"put 7".into()), "{said:?}");
    // The first tick after a success seals one object with one record.
    assert_eq!(log.created(7), ["healthy", "put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    assert_eq!(log.created(8), [""; 0]);
    assert_eq!(log.stats().release_records_total, 1);
}

#[test]
fn a_release_that_is_pending_when_the_log_becomes_failing_fails_and_its_record_stays() {
    let mut log = Log::new(Options { max_in_flight: 1, ..enqueued() });
    log.append(1, "a");
    log.created(6);
    log.append(2, "b");
    // In a sealed batch, in another, and in the open one.
    log.release(1);
    log.append(3, "c");
    log.release(2);
    log.append(4, "d");
    log.release(3);
    let backlog = log.stats().unpersisted_bytes;
    let said = log.fails(7, Refused);
    assert_eq!(
        said,
        ["failing: Store creating Refused", "fail [3, 5, 7]: Failing, Unknown"],
        "none of them is forgotten"
    );
    assert_eq!(log.stats().unpersisted_bytes, backlog, "nothing is dropped");
    log.tick_at(100);
    log.created(7);
    while let Some(sequence) = log.requests.first().map(sequence_of) {
        log.created(sequence);
    }
    assert_eq!(log.stats().release_records_total, 3);
    assert_eq!((log.visible(1), log.visible(2), log.visible(3)), Default::default());
    assert_eq!(log.visible(4).len(), 1);
}

#[test]
fn a_release_that_is_queued_when_the_log_becomes_failing_fails_and_is_carried() {
    let mut log = Log::new(Options { max_unpersisted_bytes: 1, ..enqueued() });
    log.append(1, "a");
    log.append(2, "stalled");
    assert_eq!(log.release(1), [""; 0]);
    assert_eq!(
        log.fails(6, Refused),
        [
            "failing: Store creating Refused",
            "fail [2]: Failing, NotWritten",
            "fail [3]: Failing, Unknown",
        ]
    );
    assert_eq!(log.stats().rejected_appends_total, 2);
    log.tick_at(100);
    assert_eq!(log.created(6), ["healthy", "put 7"]);
    assert_eq!(log.records(7), ["1 through 6/1"]);
}

#[test]
fn a_release_in_full_that_was_refused_holds_too() {
    let mut log = failing();
    log.release_all(1);
    log.tick_at(100);
    log.created(7);
    // Its record is on its way and will hide whatever comes.
    assert_eq!(log.append(1, "c"), ["fail [4]: Released, NotWritten"]);
    assert_eq!(log.records(8), ["1 in full"]);
}

#[test]
fn a_record_that_was_carried_when_the_log_was_poisoned_is_lost() {
    let mut log = failing();
    log.release(1);
    log.tick_at(100);
    log.fails(7, Exists);
    log.finds(7, &bare_object(7, 2));
    assert_eq!(log.stop(), ["fail [4]: Lost 1 entries, 1 releases, NotWritten"]);
    let mut log = rolled_back();
    log.append(2, "b");
    log.fails(8, TimedOut);
    assert_eq!(log.finds_twice(8, &[0; 100]), ["fail [3]: Corrupted header, Unknown"]);
    assert_eq!(log.stop(), ["fail [4]: Lost 0 entries, 1 releases, NotWritten"]);
}

#[test]
fn nothing_of_it_is_sealed_alone_in_a_log_without_sequences() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last - 1));
    log.append_durable(1);
    log.release(1);
    log.fails(last, NotFound);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    assert_eq!(log.stop(), ["fail [3]: Lost 0 entries, 1 releases, NotWritten"]);
}
