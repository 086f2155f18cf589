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
