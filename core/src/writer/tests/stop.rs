//! Stop at every stage, and a shell that goes away without one.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

#[test]
fn an_idle_log_stops_at_once_and_stays_stopped() {
    let mut log = Log::new(at_once());
    assert!(!log.writer.is_stopped());
    assert_eq!(log.stop(), ["ack 1"]);
    assert!(log.writer.is_stopped());
    assert_eq!(log.stop(), ["ack 2"], "stop is idempotent");
    assert_eq!(log.append(1, "a"), ["fail [3]: Stopped, NotWritten"]);
    assert_eq!(log.flush(), ["fail [4]: Stopped, NotWritten"]);
    assert_eq!(log.obsolete(1, id(1, 1)), ["fail [5]: Stopped, NotWritten"]);
    assert_eq!(log.writer.next_tick(), None);
}

#[test]
fn the_open_batch_is_dropped() {
    let mut log = Log::new(Options::default());
    log.append(1, "a");
    log.flush();
    log.append(1, "b");
    assert_eq!(log.stop(), ["fail [3]: Stopped, NotWritten"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2", "ack 4"]);
}

#[test]
fn batches_that_were_not_started_and_queued_appends_are_dropped() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["in flight", "sealed", "open", "queued"] {
        log.append(1, payload);
    }
    assert_eq!(
        log.stop(),
        [
            "fail [2]: Stopped, NotWritten",
            "fail [3]: Stopped, NotWritten",
            "fail [4]: Stopped, NotWritten",
        ]
    );
    assert_eq!(log.stop(), [""; 0], "a second caller waits for the same");
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 5", "ack 6"]);
}

/// Another opening found no object above 7, so it claimed that sequence and began at 8. Where the
/// last object goes nothing stands.
#[test]
fn the_last_object_is_guarded_when_sequences_before_it_were_dropped() {
    let last_object = || {
        let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
        log.append(1, "a");
        log.release(1);
        assert_eq!(log.stop(), ["fail [2]: Stopped, Unknown"]);
        assert_eq!(log.created(6), ["ack 1: 6/1", "put 8"]);
        assert_eq!(log.created(8), ["list after 6.wal"]);
        log
    };
    assert_eq!(last_object().lists(&[8]), ["ack 3"]);
    let mut log = last_object();
    assert_eq!(log.lists(&[7, 8]), ["read back 7"]);
    assert_eq!(log.finds(7, &bare_object(7, 8)), ["fetch 7 0..90"]);
    assert_eq!(
        log.fetched(7, bare_object(7, 8)),
        ["fail [3]: Lost 0 entries, 1 releases, NotWritten"]
    );
}

#[test]
fn creates_in_flight_acknowledge_if_they_succeed_in_order() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.append(1, "c"), ["fail [4]: Stopped, NotWritten"]);
    assert_eq!(log.created(7), [""; 0]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2: 7/1", "ack 3"]);
}

#[test]
fn a_create_that_waits_for_its_repeat_is_repeated() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, TimedOut);
    log.fails(6, NotFound);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(100)));
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2"]);
}

#[test]
fn a_roll_back_while_stopping_fails_what_was_in_flight_and_stop_is_well() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.stop();
    // Nothing that was acknowledged is lost, so stop answers Ok, once 7 has run out.
    assert_eq!(log.fails(6, Refused), ["fail [1, 2]: Store creating Refused, Unknown"]);
    assert_eq!(log.created(7), ["ack 3"]);
}

#[test]
fn a_later_epoch_while_stopping_is_what_every_caller_of_stop_is_answered() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.stop();
    log.fails(6, Exists);
    let theirs = start_object(6, "other");
    log.finds(6, &theirs);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.fetched(6, theirs), ["fail [1, 2]: Fenced by 7 other, Unknown"]);
    assert_eq!(
        log.created(7),
        [
            "fail [3]: Poisoned Fenced by 7 other, NotWritten",
            "fail [4]: Poisoned Fenced by 7 other, NotWritten",
        ]
    );
    assert!(log.writer.is_stopped());
    assert_eq!(log.stop(), ["fail [5]: Poisoned Fenced by 7 other, NotWritten"]);
    assert_eq!(log.append(1, "c"), ["fail [6]: Poisoned Fenced by 7 other, NotWritten"]);
}

#[test]
fn a_poisoned_log_stops_with_its_cause_once_creates_have_run_out() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, Exists);
    log.finds_twice(6, &[0; 100]);
    assert!(!log.writer.is_stopped());
    assert_eq!(log.stop(), [""; 0], "7 is in flight");
    assert_eq!(log.created(7), ["fail [3]: Poisoned Corrupted header, NotWritten"]);
}

#[test]
fn a_late_answer_to_a_stopped_log_changes_nothing() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    let put = log.take(6).id();
    let created = || StorageAnswer::CreateResult { id: put, result: Ok(()) };
    log.handle(Event::Storage(created()));
    log.stop();
    assert_eq!(log.handle(Event::Storage(created())), [""; 0]);
    assert_eq!(log.tick_at(10_000), [""; 0]);
}

#[test]
fn an_abandoned_log_gives_back_every_waiter_once() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["in flight", "sealed", "open", "queued"] {
        log.append(1, payload);
    }
    log.flush();
    log.obsolete(9, id(70, 1));
    log.stop();
    log.writer.abandon();
    // 2 to 4 failed when stop began, and with them the flush and the floor.
    let mut said = log.handle(Event::Tick);
    said.sort();
    assert_eq!(said, ["fail [1]: Stopped, Unknown", "fail [7]: Stopped, NotWritten"]);
    assert_eq!(log.append(1, "late"), ["fail [8]: Stopped, NotWritten"]);
}

#[test]
fn a_log_that_is_abandoned_while_it_meets_another_writer_gives_back_every_waiter() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, Exists);
    log.finds(6, &start_object(6, "other"));
    log.append(1, "deferred");
    log.stop();
    log.writer.abandon();
    assert_eq!(
        log.handle(Event::Tick),
        [
            "fail [1, 2]: Stopped, Unknown",
            "fail [3]: Stopped, NotWritten",
            "fail [4]: Stopped, NotWritten",
        ]
    );
}
