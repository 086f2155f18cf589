//! Stop in `enqueued`: the whole backlog is uploaded until the deadline, and what is lost is said.

use super::failing::full;
use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

fn seconds(stop_deadline: u64) -> Options {
    Options { stop_deadline: Duration::from_secs(stop_deadline), ..enqueued() }
}

#[test]
fn the_open_batch_is_sealed_and_the_whole_backlog_uploaded() {
    let options = Options { max_in_flight: 1, linger: Duration::from_secs(1), ..seconds(10) };
    let mut log = Log::new(options);
    for payload in ["a", "b", "c"] {
        log.append(1, payload);
        log.flush();
    }
    log.append(1, "open");
    assert_eq!(log.stop(), [""; 0], "it is sealed when there is room");
    assert_eq!(log.append(1, "late"), ["fail [9]: Stopped, NotWritten"]);
    assert_eq!(log.created(6), ["ack 2", "put 7"]);
    // 7 holds b and c: when c was flushed there was room for two.
    assert_eq!(log.stop(), [""; 0]);
    let mut said = Vec::new();
    while let Some(sequence) = log.requests.first().map(sequence_of) {
        said.extend(log.created(sequence));
    }
    assert_eq!(said[said.len() - 2..], ["ack 8", "ack 10"]);
    assert_eq!(log.stats().unpersisted_bytes, 0);
    assert_eq!(log.stats().appended_entries_total, 4);
    assert_eq!(log.stop(), ["ack 11"]);
}

#[test]
fn an_idle_log_stops_at_once() {
    let mut log = Log::new(seconds(0));
    assert_eq!(log.stop(), ["ack 1"]);
}

#[test]
fn stalled_appends_were_not_acknowledged_and_fail() {
    let mut log = Log::new(Options { max_unpersisted_bytes: 1, ..seconds(10) });
    log.append(1, "a");
    log.append(1, "stalled");
    assert_eq!(log.stop(), ["fail [2]: Stopped, NotWritten"]);
    assert_eq!(log.created(6), ["ack 3"], "nothing that was acknowledged is lost");
}

#[test]
fn transient_and_refused_creates_are_repeated_until_the_deadline() {
    let mut log = Log::new(seconds(2));
    log.now = Time::from_millis(5000);
    log.append(1, "a");
    log.append(1, "b");
    log.wait(1, id(7, 1));
    log.stop();
    log.created(7);
    // Attempts at 0, 100, 300, 700 and 1500 ms after stop began; at 3100 none is started.
    for (at, next) in [(0, 100), (100, 300), (300, 700), (700, 1500)] {
        log.now = Time::from_millis(5000 + at);
        if at == 300 {
            let failing = ["failing: Store creating Refused", "fail [3]: Failing, NotWritten"];
            assert_eq!(log.fails(6, Refused), failing);
        } else {
            assert_eq!(log.fails(6, Transient), ["read back 6"]);
            assert_eq!(log.fails(6, NotFound), [""; 0]);
        }
        assert_eq!(log.writer.next_tick(), Some(Time::from_millis(5000 + next)));
        assert_eq!(log.tick_at(5000 + next), ["put 6"]);
    }
    log.fails(6, Transient);
    assert_eq!(log.fails(6, NotFound), [""; 0]);
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(7000)), "the deadline");
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(
        log.tick_at(7000),
        ["fail [4]: Lost 2 entries, NotWritten", "fail [5]: Lost 2 entries, NotWritten"],
        "7 was created, and is no history without 6"
    );
    assert_eq!(log.stop(), ["fail [6]: Lost 2 entries, NotWritten"], "the same answer later");
    assert_eq!(log.stats().unpersisted_bytes, 0);
    assert_eq!(log.writer.next_tick(), None);
}

#[test]
fn a_running_create_finishes_after_the_deadline_and_counts() {
    let mut log = Log::new(Options { max_in_flight: 1, ..seconds(1) });
    log.append(1, "a");
    log.append(1, "b");
    log.stop();
    assert_eq!(log.tick_at(1000), [""; 0], "6 is under way");
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(5000)), "to warn of it");
    log.now = Time::from_millis(1500);
    assert_eq!(log.created(6), ["fail [3]: Lost 1 entries, NotWritten"], "7 is not started");
    assert_eq!(log.writer.durable(RegionId(1)), id(6, 1));
}

#[test]
fn a_running_create_whose_answer_was_lost_is_read_back_after_the_deadline() {
    let mut log = Log::new(seconds(1));
    log.append(1, "a");
    log.stop();
    let stored = log.payload(6).to_bytes();
    log.tick_at(1000);
    assert_eq!(log.fails(6, TimedOut), ["read back 6"]);
    assert_eq!(log.finds(6, &stored), ["ack 2"]);
}

#[test]
fn a_hanging_store_ends_it_by_the_time_limit() {
    let mut log = Log::new(seconds(10));
    log.append(1, "a");
    log.flush();
    log.stop();
    log.tick_at(30_000);
    assert_eq!(log.fails(6, TimedOut), ["read back 6"]);
    log.now = Time::from_millis(60_000);
    assert_eq!(
        log.fails(6, TimedOut),
        ["fail [2]: Stopped, Unknown", "fail [3]: Lost 1 entries, NotWritten"],
        "who waits still, waits in vain"
    );
}

#[test]
fn without_time_nothing_is_started() {
    let mut log = Log::new(Options { linger: Duration::from_secs(1), ..seconds(0) });
    log.append_many(&[(1, "a"), (1, "b"), (2, "c")]);
    assert_eq!(log.stop(), ["fail [2]: Lost 3 entries, NotWritten"]);
}

#[test]
fn a_failing_log_uploads_its_backlog_too() {
    let mut log = Log::new(Options { linger: Duration::from_millis(1), ..seconds(10) });
    log.append(1, "a");
    log.tick_at(1);
    log.append(1, "b");
    log.fails(6, Refused);
    assert_eq!(log.stop(), ["put 7"], "the open batch is sealed");
    assert_eq!(log.append(1, "late"), ["fail [4]: Stopped, NotWritten"]);
    assert_eq!(log.created(7), ["healthy"]);
    assert_eq!(log.tick_at(101), ["put 6"]);
    assert_eq!(log.created(6), ["ack 3"]);
}

#[test]
fn the_cause_of_a_loss_is_what_failed_last() {
    let mut log = Log::new(seconds(0));
    log.append(1, "a");
    let waiter = log.waiter();
    log.writer.handle(log.now, Event::Stop { waiter });
    let refused = log.take(6).failed(StoreError::new(Refused));
    log.writer.handle(log.now, Event::Storage(refused));
    let error = core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error: Error::Lost { entries, releases, cause }, .. } => {
            Some((entries, releases, kind(&cause)))
        }
        _ => None,
    });
    assert_eq!(error, Some((1, 0, "Store creating Refused".into())));
}

#[test]
fn a_later_epoch_during_stop_is_answered_with_the_losses_to_every_caller() {
    let mut log = Log::new(seconds(10));
    log.append(1, "a");
    log.append(1, "b");
    log.stop();
    log.fails(6, Exists);
    let theirs = start_object(6, "other");
    log.finds(6, &theirs);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.fetched(6, theirs), [""; 0], "7 is still under way");
    assert_eq!(
        log.created(7),
        ["fail [3]: Lost 2 entries, NotWritten", "fail [4]: Lost 2 entries, NotWritten"]
    );
    assert_eq!(log.append(1, "c"), ["fail [5]: Poisoned Fenced by 7 other, NotWritten"]);
}

#[test]
fn a_poisoned_log_without_a_loss_answers_its_poison() {
    let mut log = Log::new(seconds(10));
    log.obsolete(1, id(50, 1));
    log.append(1, "a");
    log.created(51);
    log.lists(&[51]);
    log.append(1, "b");
    log.fails(52, Exists);
    log.finds_twice(52, &[]);
    assert_eq!(log.stop(), ["fail [4]: Lost 1 entries, NotWritten"], "a is safe");
}

#[test]
fn a_waiting_floor_fails() {
    let mut log = Log::new(seconds(10));
    log.append(1, "a");
    log.obsolete(2, id(50, 1));
    assert_eq!(log.stop(), ["fail [2]: Stopped, NotWritten"]);
    assert_eq!(log.created(6), ["ack 3"]);
}

#[test]
fn a_late_answer_to_a_stopped_log_changes_nothing() {
    let mut log = Log::new(seconds(0));
    log.append(1, "a");
    let put = log.take(6);
    log.stop();
    log.handle(Event::Storage(put.failed(StoreError::new(Refused))));
    assert_eq!(log.stop(), ["fail [3]: Lost 1 entries, NotWritten"]);
    let id = put.id();
    let late = StorageAnswer::CreateResult { id, result: Ok(()) };
    assert_eq!(log.handle(Event::Storage(late)), [""; 0]);
    assert_eq!(log.tick_at(100_000), [""; 0]);
    assert_eq!(log.stats().created_objects_total, 0);
}

/// Else it holds them back until `stop_deadline`, instead of telling them `Stopped` (section 7).
#[test]
fn a_stopping_log_with_a_full_pipeline_takes_appends_to_refuse_them() {
    let mut log = full();
    log.stop();
    assert!(log.writer.accepts_appends(), "it refuses at once");
    assert_eq!(log.append(1, "d"), ["fail [5]: Stopped, NotWritten"]);
}
