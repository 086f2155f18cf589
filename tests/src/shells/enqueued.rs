use std::thread;

use sealog_core::{AckMode, EntryId, Error, Options, Outcome};

use super::stage::Reaction;
use super::{A, B, Log, Stage, at_once, entries, open, payloads, submit_numbers};

fn enqueued() -> Options {
    Options { ack_mode: AckMode::Enqueued, ..at_once() }
}

/// Appends stall as soon as anything is not durable.
fn stalling() -> Options {
    Options { max_unpersisted_bytes: 1, ..enqueued() }
}

pub(super) fn an_append_returns_before_the_store_answers_and_wait_durable_after_it<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, enqueued());
    stage.puts(Reaction::Wait);
    let first = log.append(A, "1").unwrap();
    let both = log.append_batch(vec![(A, "2".into()), (B, "3".into())]).unwrap();
    assert!(first < both[0]);
    assert_eq!(log.latest(A).unwrap(), both[0]);
    assert_eq!(log.durable(A).unwrap(), EntryId::ZERO);
    assert_eq!(payloads(&log, A), [""; 0], "reads see what is durable");
    thread::scope(|scope| {
        for (region, id) in [(A, first), (A, both[0]), (B, both[1]), (A, EntryId::MAX)] {
            let log = &log;
            scope.spawn(move || log.wait_durable(region, id).unwrap());
        }
        stage.let_pass(2);
    });
    assert_eq!(entries(&log, A), [(first, "1".into()), (both[0], "2".into())]);
    assert_eq!(log.durable(B).unwrap(), both[1]);
}

pub(super) fn appends_stall_in_their_order_and_everything_else_is_answered<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, stalling());
    let durable = log.append(B, "b").unwrap();
    log.flush().unwrap();
    stage.puts(Reaction::Wait);
    log.append(A, "under way").unwrap();
    let stalled = submit_numbers(&log, 300);
    log.wait_durable(B, durable).unwrap();
    log.obsolete(B, durable).unwrap();
    assert_eq!(payloads(&log, B), [""; 0]);
    assert_eq!(log.regions().unwrap(), []);
    // The segment's header, the entry's, and the rest of an object around the one.
    assert_eq!(log.stats().unwrap().unpersisted_bytes, 150 + 12 + 9);
    stage.behave();
    stage.let_pass(1);
    let ids: Vec<_> = stalled.into_iter().map(|wait| wait().unwrap()).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    log.flush().unwrap();
    assert_eq!(entries(&log, A)[1..].iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
}

pub(super) fn a_flush_covers_the_appends_that_wait_for_their_place<L: Log>() {
    let log: L = open(&Stage::default(), stalling());
    let appends = submit_numbers(&log, 5);
    log.flush().unwrap();
    assert_eq!(payloads(&log, A), ["0", "1", "2", "3", "4"]);
    let durable = log.durable(A).unwrap();
    for wait in appends {
        assert!(wait().unwrap() <= durable);
    }
}

pub(super) fn a_store_that_refuses_makes_the_log_failing_until_a_create_succeeds<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, enqueued());
    stage.puts(Reaction::Refuse);
    let id = log.append(A, "kept").unwrap();
    let error = log.wait_durable(A, id).unwrap_err();
    assert!(matches!(error, Error::Failing { .. }) && error.is_retryable(), "{error}");
    let error = log.append(A, "refused").unwrap_err();
    assert!(matches!(error.error(), Error::Failing { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    assert!(matches!(log.flush(), Err(Error::Failing { .. })));
    assert_eq!(log.stats().unwrap().failing, 1);
    stage.behave();
    // The create is repeated by itself; nothing but another try says when it has succeeded.
    while log.append(A, "taken").is_err() {
        thread::sleep(std::time::Duration::from_millis(10));
    }
    log.flush().unwrap();
    assert_eq!(log.stats().unwrap().failing, 0);
    assert_eq!(payloads(&log, A), ["kept", "taken"]);
}
