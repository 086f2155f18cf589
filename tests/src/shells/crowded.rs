use std::thread;

use sealog_core::{AckMode, Error, Options, Outcome};

use super::stage::Reaction;
use super::{A, B, Log, Pending, Stage, at_once, one_by_one, open, payloads};
use crate::hooked::Asked;

const LIMIT: u64 = 1000;

/// Of these, four count more than the limit.
fn entry(n: usize) -> String {
    format!("{n:0>200}")
}

/// The log takes three of these into objects, while the first create hangs, and keeps what comes after
/// waiting.
fn crowded() -> Options {
    Options { max_queued_bytes: LIMIT, ..one_by_one() }
}

/// Submits as long as the log takes something, and says what it took. The store does not answer.
fn fill<L: Log>(log: &L) -> Vec<Pending<sealog_core::EntryId>> {
    let mut taken = Vec::new();
    // Three are admitted, one under way, one sealed and one open, and four more reach the limit.
    for n in 0.. {
        match log.try_submit(A, entry(n)) {
            Ok(pending) => taken.push(pending),
            Err(error) => {
                let Error::Overloaded { limit } = error.error() else { panic!("{error}") };
                assert_eq!((*limit, error.outcome()), (LIMIT, Outcome::NotWritten));
                assert!(error.is_retryable());
                if log.stats().unwrap().queued_bytes >= LIMIT && taken.len() == 7 {
                    return taken;
                }
            }
        }
        assert!(n < 1_000_000, "{} were taken", taken.len());
    }
    taken
}

pub(super) fn what_waits_is_bounded_and_whoever_waits_comes_in_by_turns<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, crowded());
    stage.puts(Reaction::Wait);
    let taken = fill(&log);
    let stats = log.stats().unwrap();
    assert!((LIMIT..LIMIT + 264).contains(&stats.queued_bytes), "{}", stats.queued_bytes);
    assert!(stats.overloaded_total > 0);
    assert!(matches!(
        log.try_submit_batch(vec![(B, "x".into())]).map(|_| ()).unwrap_err().error(),
        Error::Overloaded { .. }
    ));
    // At the caller's own risk there is always a place.
    let own_risk = log.submit(B, "at my own risk");
    thread::scope(|scope| {
        let waits = [0, 1, 2].map(|n| {
            let log = &log;
            scope.spawn(move || log.append(A, entry(100 + n)).unwrap())
        });
        stage.behave();
        stage.let_pass(1_000);
        let ids: Vec<_> = taken.into_iter().map(|wait| wait().unwrap()).collect();
        assert!(ids.is_sorted(), "{ids:?}");
        own_risk().unwrap();
        for wait in waits {
            let id = wait.join().unwrap();
            assert!(id > *ids.last().unwrap(), "it came later");
        }
    });
    assert_eq!(log.stats().unwrap().queued_bytes, 0);
    log.try_submit(A, "there is room").unwrap()().unwrap();
}

pub(super) fn an_append_larger_than_all_that_may_wait_gets_in<L: Log>() {
    let log: L = open(&Stage::default(), Options { max_queued_bytes: 1, ..at_once() });
    let large = vec![7; 1 << 20];
    log.append(A, large.clone()).unwrap();
    log.append_batch(vec![(A, large.clone().into()), (B, large.clone().into())]).unwrap();
    log.try_submit(A, large.clone()).unwrap()().unwrap();
    log.try_submit_batch(vec![(A, large.into())]).unwrap()().unwrap();
    assert_eq!(log.stats().unwrap().overloaded_total, 0);
}

pub(super) fn a_store_that_hangs_fills_the_log_and_no_more<L: Log>() {
    for ack_mode in [AckMode::Durable, AckMode::Enqueued] {
        let stage = Stage::default();
        let options = Options { ack_mode, max_unpersisted_bytes: 1, ..crowded() };
        let log: L = open(&stage, options);
        stage.puts(Reaction::Wait);
        let taken = if ack_mode == AckMode::Durable { fill(&log) } else { Vec::new() };
        for n in 0..10_000 {
            drop(log.try_submit(A, entry(n)));
        }
        let stats = log.stats().unwrap();
        assert!(stats.queued_bytes < LIMIT + 264, "{}", stats.queued_bytes);
        assert!(stats.appends_total <= 3 && stats.overloaded_total > 9_900, "{stats:?}");
        stage.behave();
        stage.let_pass(1_000);
        for wait in taken {
            wait().unwrap();
        }
        log.append(A, "there is room").unwrap();
    }
}

/// Fills a log while its creates hang, lets some more wait in line, ends that somehow, and gives back
/// the errors of those who had no place.
fn errors<L: Log>(stage: &Stage, log: &L, end: impl FnOnce()) -> Vec<Error> {
    let puts = stage.count(Asked::Put);
    let taken = fill(log);
    let queued = taken.len();
    stage.wait_for(Asked::Put, puts + 1);
    thread::scope(|scope| {
        let waits: Vec<_> = (0..4).map(|n| scope.spawn(move || log.append(B, entry(n)))).collect();
        end();
        let mut errors: Vec<Error> = Vec::new();
        for wait in taken.into_iter().skip(3) {
            errors.push(wait().unwrap_err().error().clone());
        }
        assert_eq!(errors.len(), queued - 3);
        for wait in waits {
            let error = wait.join().unwrap().unwrap_err();
            assert_eq!(error.outcome(), Outcome::NotWritten, "{error}");
            errors.push(error.error().clone());
        }
        stage.let_pass(1_000);
        errors
    })
}

pub(super) fn whoever_waits_in_line_is_answered_when_the_log_is_stopped<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, crowded());
    stage.puts(Reaction::Wait);
    let stopping = log.clone();
    let mut stopped = None;
    let errors = errors(&stage, &log, || stopped = Some(thread::spawn(move || stopping.stop())));
    assert!(errors.iter().all(|error| matches!(error, Error::Stopped)), "{errors:?}");
    stopped.unwrap().join().unwrap().unwrap();
    let error = log.try_submit(A, "late").unwrap()().unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "not overloaded: {error}");
}

pub(super) fn whoever_waits_in_line_is_answered_when_the_log_becomes_failing<L: Log>() {
    let stage = Stage::default();
    // One fills what may be acknowledged, and one more what may wait.
    let options = Options {
        ack_mode: AckMode::Enqueued,
        max_unpersisted_bytes: 1,
        max_queued_bytes: 1,
        ..at_once()
    };
    let log: L = open(&stage, options);
    let puts = stage.count(Asked::Put);
    stage.puts(Reaction::Wait);
    log.append(A, "under way").unwrap();
    stage.wait_for(Asked::Put, puts + 1);
    thread::scope(|scope| {
        let stalled = log.submit(A, "it has no place");
        let waits = [0, 1, 2].map(|n| {
            let log = &log;
            scope.spawn(move || log.append(B, entry(n)).unwrap_err())
        });
        stage.puts(Reaction::Refuse);
        stage.let_pass(1);
        // The one under way passes; the next create is refused.
        drop(stalled());
        for wait in waits {
            let error = wait.join().unwrap();
            assert!(matches!(error.error(), Error::Failing { .. }), "{error}");
            assert!(error.is_retryable());
        }
        let error = log.try_submit(A, "refused").unwrap()().unwrap_err();
        assert!(matches!(error.error(), Error::Failing { .. }), "not overloaded: {error}");
    });
    stage.behave();
    log.stop().unwrap();
}

pub(super) fn whoever_waits_in_line_is_answered_when_another_writer_takes_over<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, crowded());
    stage.puts(Reaction::Wait);
    let (other, passing) = (stage.clone(), stage.clone());
    let errors = errors(&stage, &log, move || {
        other.behave();
        let second: L = open(&other, Options::default());
        drop(second);
        passing.let_pass(1_000);
    });
    let ended = |error: &Error| matches!(error, Error::Fenced { .. } | Error::Poisoned { .. });
    assert!(errors.iter().all(ended), "{errors:?}");
    let error = log.try_submit(A, "late").unwrap()().unwrap_err();
    assert!(matches!(error.error(), Error::Poisoned { .. }), "not overloaded: {error}");
    assert_eq!(payloads(&log, B), [""; 0]);
}
