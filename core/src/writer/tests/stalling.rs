//! The thresholds of `enqueued`.

use super::*;
use StoreErrorKind::{NotFound, TimedOut};

/// 163 B are one object of one entry of one byte.
fn bytes(max_unpersisted_bytes: u64) -> Options {
    Options { max_unpersisted_bytes, ..enqueued() }
}

#[test]
fn above_the_bytes_appends_stall_in_their_order_until_an_upload_completes() {
    let mut log = Log::new(bytes(330));
    log.append(1, "a");
    log.append(1, "b");
    assert_eq!(log.stats().unpersisted_bytes, 326);
    for payload in ["c", "d", "e"] {
        assert_eq!(log.append(1, payload), [""; 0]);
    }
    assert!(!log.writer.accepts_appends());
    assert_eq!(log.stats().stalled_appends_total, 3);
    log.now = Time::from_millis(40);
    // One upload completes: there is room for one more object of two entries.
    assert_eq!(log.created(6), ["ack 3: 8/1", "put 8"]);
    assert_eq!(log.stats().stalled_append.count(), 1);
    assert_eq!(log.stats().stalled_append.sum(), 40_000_000);
    assert_eq!(log.created(8), [""; 0], "8 is created, and pends behind 7");
    assert_eq!(log.created(7), ["ack 4: 9/1", "ack 5: 9/2", "put 9"]);
    assert!(log.writer.accepts_appends());
    // Acknowledged on admission: counted from their arrival.
    assert_eq!(log.stats().append_ack.sum(), 3 * 40_000_000);
}

#[test]
fn exactly_the_threshold_is_admitted() {
    let mut log = Log::new(bytes(163 + 13));
    log.append(1, "a");
    assert_eq!(log.append(1, "bb"), [""; 0], "12 B and a payload of 2 are one too many");
    let mut log = Log::new(Options { linger: Duration::from_millis(1), ..bytes(163 + 13) });
    log.append(1, "a");
    assert_eq!(log.append(1, "b"), ["ack 2: 6/2"]);
    assert_eq!(log.stats().unpersisted_bytes, 163 + 13);
}

#[test]
fn if_no_upload_is_under_way_the_open_batch_is_sealed() {
    let hour = Duration::from_secs(3600);
    let options = Options { linger: Duration::from_secs(1), flush_interval: hour, ..bytes(170) };
    let mut log = Log::new(options);
    assert_eq!(log.append(1, "a"), ["ack 1: 6/1"]);
    assert_eq!(log.append(1, "b"), ["put 6"], "so that there is one to wait for");
    assert_eq!(log.created(6), ["ack 2: 7/1"]);
    assert_eq!(log.append(1, "c"), ["put 7"]);
}

#[test]
fn while_an_upload_is_under_way_the_open_batch_stays_open() {
    let options = Options { linger: Duration::from_millis(100), ..bytes(400) };
    let mut log = Log::new(options);
    log.append(1, "a");
    log.flush();
    log.append(1, "b");
    assert_eq!(log.append(1, &"x".repeat(200)), [""; 0]);
    // Completed, and still too much: now it is the open batch's turn.
    assert_eq!(log.created(6), ["ack 2", "ack 4: 7/2"]);
}

#[test]
fn an_append_above_the_threshold_is_admitted_when_nothing_is_pending() {
    let mut log = Log::new(bytes(20));
    let large = "x".repeat(1000);
    assert_eq!(log.append(1, &large), ["ack 1: 6/1", "put 6"]);
    assert_eq!(log.append(1, "small"), [""; 0]);
    assert_eq!(log.append(1, &large), [""; 0]);
    assert_eq!(log.append(1, "behind it"), [""; 0], "nobody overtakes");
    assert_eq!(log.created(6), ["ack 2: 7/1", "put 7"]);
    assert_eq!(log.created(7), ["ack 3: 8/1", "put 8"]);
    assert_eq!(log.created(8), ["ack 4: 9/1", "put 9"]);
}

#[test]
fn above_the_age_appends_stall_until_an_upload_completes() {
    let mut log =
        Log::new(Options { max_unpersisted_age: Duration::from_millis(500), ..enqueued() });
    log.append(1, "a");
    log.now = Time::from_millis(300);
    log.append(1, "b");
    log.now = Time::from_millis(499);
    assert_eq!(log.append(1, "c"), ["ack 3: 8/1", "put 8"]);
    log.now = Time::from_millis(500);
    assert_eq!(log.append(1, "d"), [""; 0]);
    assert_eq!(log.created(8), [""; 0]);
    // Then the oldest is 200 ms old.
    assert_eq!(log.created(6), ["ack 4: 9/1", "put 9"]);
    log.now = Time::from_millis(800);
    assert_eq!(log.append(1, "e"), [""; 0], "7 is 500 ms old");
    assert_eq!(log.created(7), ["ack 5: 10/1", "put 10"]);
}

#[test]
fn an_open_batch_that_is_too_old_is_sealed_for_the_append_that_comes() {
    let options = Options {
        flush_interval: Duration::from_secs(3600),
        max_unpersisted_age: Duration::from_millis(500),
        ..enqueued()
    };
    let mut log = Log::new(options);
    log.append(1, "a");
    log.created(6);
    log.append(1, "b");
    log.now = Time::from_millis(600);
    assert_eq!(log.append(1, "c"), ["put 7"]);
    assert_eq!(log.created(7), ["ack 3: 8/1"]);
}

#[test]
fn a_failed_attempt_is_no_upload_that_completes() {
    let mut log = Log::new(bytes(1));
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, TimedOut);
    assert_eq!(log.fails(6, NotFound), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.created(6), ["ack 2: 7/1", "put 7"]);
}

#[test]
fn in_durable_there_are_no_thresholds() {
    let age = Duration::from_millis(1);
    let options = Options { ack_mode: AckMode::Durable, max_unpersisted_age: age, ..bytes(1) };
    let mut log = Log::new(options);
    log.append(1, "a");
    log.now = Time::from_millis(100);
    assert_eq!(log.append(1, "b"), ["put 7"]);
}

#[test]
fn flush_wait_obsolete_and_stop_work_while_appends_are_stalled() {
    let mut log = Log::new(bytes(1));
    log.append(1, "a");
    log.append(1, "stalled");
    assert_eq!(log.flush(), [""; 0]);
    assert_eq!(log.wait(1, id(6, 1)), [""; 0]);
    assert_eq!(log.obsolete(2, id(3, 1)), ["ack 5"]);
    assert_eq!(log.stop(), ["fail [2]: Stopped, NotWritten"]);
    assert_eq!(log.created(6), ["ack 3", "ack 4", "ack 6"]);
}
