//! What a fresh pair of eyes found.

use super::*;
use crate::options::AckMode;
use StoreErrorKind::Refused;

fn small(ack_mode: AckMode) -> Options {
    Options { ack_mode, max_batch_bytes: 1, max_in_flight: 1, ..at_once() }
}

/// Two batches are sealed and a third is full.
fn full(ack_mode: AckMode) -> Log {
    let mut log = Log::new(small(ack_mode));
    for payload in ["a", "b", "c"] {
        log.append(1, payload);
    }
    assert!(!log.writer.accepts_appends());
    log
}

/// Else a shell holds callers back for as long as the store refuses, instead of telling them
/// `Failing` (DESIGN.md section 5).
#[test]
fn a_failing_log_with_a_full_pipeline_takes_appends_to_refuse_them() {
    let mut log = full(AckMode::Enqueued);
    log.fails(6, Refused);
    assert!(log.writer.accepts_appends(), "it refuses at once");
    assert_eq!(log.append(1, "d"), ["fail [4]: Failing, NotWritten"]);
}

/// Else it holds them back until `stop_deadline`, instead of telling them `Stopped` (section 7).
#[test]
fn a_stopping_log_with_a_full_pipeline_takes_appends_to_refuse_them() {
    let mut log = full(AckMode::Enqueued);
    log.stop();
    assert!(log.writer.accepts_appends(), "it refuses at once");
    assert_eq!(log.append(1, "d"), ["fail [5]: Stopped, NotWritten"]);
}

/// It is repeated as a guard that cannot read (section 12, rule 4), and if it stays, every append
/// fails like this: so the error must say what it is that stands there, and not just "it may pass".
#[test]
fn a_guard_that_meets_what_is_no_object_says_what_it_met() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    log.lists(&[7, 9]);
    let id = log.take(9).id();
    let found = Ok(ReadBack { size: 5, header: Bytes::new() });
    let answer = StorageAnswer::ReadBackResult { id, result: found };
    log.writer.handle(log.now, Event::Storage(answer));
    let error = core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error, .. } => Some(error.to_string()),
        _ => None,
    });
    let error = error.expect("the append failed");
    assert!(error.contains("00009.wal") && error.contains("found 5"), "{error}");
}

/// In `enqueued` a stale object ends the log: an error that says "the log goes on, retry" is untrue.
#[test]
fn what_ends_the_log_is_not_told_as_something_that_passes() {
    let mut log = Log::new(Options { ack_mode: AckMode::Enqueued, ..at_once() });
    log.append(1, "a");
    log.flush();
    log.fails(6, StoreErrorKind::Exists);
    let id = log.take(6).id();
    let stale = bare_object(6, 2);
    let found = ReadBack { size: stale.len() as u64, header: stale.slice(..54) };
    let answer = StorageAnswer::ReadBackResult { id, result: Ok(found) };
    log.writer.handle(log.now, Event::Storage(answer));
    let error = core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error, .. } => Some(error),
        _ => None,
    });
    let error = error.expect("the flush failed");
    assert!(matches!(log.writer.state, State::Poisoned(_)));
    assert!(!error.is_retryable() && !error.to_string().contains("goes on"), "{error}");
}
