use std::thread;
use std::time::Duration;

use sealog_core::{AckMode, Error, Options, Outcome};

use super::stage::Reaction;
use super::{A, B, Log, Stage, at_once, one_by_one, open, payloads, submit_numbers};
use crate::hooked::Asked;

pub(super) fn stop_answers_every_caller_alike_and_reads_go_on<L: Log>() {
    let log: L = open(&Stage::default(), Options::default());
    let id = log.append(A, "1").unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| log.stop().unwrap());
        }
    });
    log.stop().unwrap();
    let error = log.append(A, "2").unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    assert!(matches!(log.flush(), Err(Error::Stopped)));
    assert!(matches!(log.obsolete(A, id), Err(Error::Stopped)));
    log.wait_durable(A, id).unwrap();
    assert_eq!(payloads(&log, A), ["1"]);
    assert_eq!((log.latest(A).unwrap(), log.durable(A).unwrap()), (id, id));
    assert_eq!(log.stats().unwrap().appends_total, 1);
}

pub(super) fn stop_fails_what_is_not_under_way_and_is_not_held_up_by_it<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    let puts = stage.count(Asked::Put);
    stage.puts(Reaction::Wait);
    let mut submitted = submit_numbers(&log, 300).into_iter();
    let under_way = submitted.next().unwrap();
    stage.wait_for(Asked::Put, puts + 1);
    thread::scope(|scope| {
        let stopping = scope.spawn(|| log.stop());
        for wait in submitted {
            let error = wait().unwrap_err();
            assert!(matches!(error.error(), Error::Stopped), "{error}");
            assert_eq!(error.outcome(), Outcome::NotWritten);
        }
        stage.let_pass(1);
        stopping.join().unwrap().unwrap();
    });
    under_way().unwrap();
    drop(log);
    stage.behave();
    assert_eq!(payloads(&open::<L>(&stage, Options::default()), A), ["0"]);
}

pub(super) fn stop_says_what_an_enqueued_log_could_not_save<L: Log>() {
    let stage = Stage::default();
    let options = Options {
        ack_mode: AckMode::Enqueued,
        stop_deadline: Duration::ZERO,
        ..Options::default()
    };
    let log: L = open(&stage, options);
    stage.puts(Reaction::Refuse);
    let ids = log.append_batch(vec![(A, "1".into()), (B, "2".into())]).unwrap();
    let error = log.wait_durable(A, ids[0]).unwrap_err();
    assert!(matches!(error, Error::Failing { .. }), "{error}");
    for stopped in [log.stop(), log.stop()] {
        let Err(Error::Lost { entries: 2, releases: 0, cause }) = stopped else {
            panic!("{stopped:?}")
        };
        assert!(cause.to_string().contains("403"), "{cause}");
    }
}

pub(super) fn dropping_the_last_handle_is_a_crash_that_answers_whoever_waits<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    log.append(A, "acknowledged").unwrap();
    let puts = stage.count(Asked::Put);
    stage.puts(Reaction::Wait);
    let waiting = submit_numbers(&log, 6);
    stage.wait_for(Asked::Put, puts + 1);
    let late = log.submit(A, "just before the end");
    let clone = log.clone();
    drop(log);
    assert!(clone.latest(A).is_ok(), "a handle is left");
    drop(clone);
    let mut outcomes = Vec::new();
    for wait in waiting.into_iter().chain([late]) {
        let error = wait().unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        outcomes.push(error.outcome());
    }
    assert_eq!(outcomes[0], Outcome::Unknown, "its create was under way");
    assert!(outcomes[1..].iter().all(|outcome| *outcome == Outcome::NotWritten), "{outcomes:?}");

    stage.behave();
    let found = payloads(&open::<L>(&stage, Options::default()), A);
    assert_eq!(found[0], "acknowledged");
    assert!(found.len() <= 2, "{found:?}");
}

pub(super) fn a_crash_loses_what_was_not_durable_and_nothing_else<L: Log>() {
    let stage = Stage::default();
    let options = Options { ack_mode: AckMode::Enqueued, ..at_once() };
    let log: L = open(&stage, options);
    let id = log.append(A, "durable").unwrap();
    log.wait_durable(A, id).unwrap();
    let puts = stage.count(Asked::Put);
    stage.puts(Reaction::Hang);
    log.append(A, "not yet").unwrap();
    stage.wait_for(Asked::Put, puts + 1);
    drop(log);
    stage.behave();
    assert_eq!(payloads(&open::<L>(&stage, Options::default()), A), ["durable"]);
}

pub(super) fn the_second_writer_takes_over_and_the_first_is_poisoned<L: Log>() {
    let named = |name: &str| Options { writer_name: Some(name.into()), ..Options::default() };
    let stage = Stage::default();
    let first: L = open(&stage, named("alpha"));
    first.append(A, "acknowledged").unwrap();
    let second: L = open(&stage, named("beta on host 7"));
    assert!(second.epoch() > first.epoch());

    let error = first.append(A, "too late").unwrap_err();
    let Error::Fenced { writer, epoch, .. } = error.error() else { panic!("{error}") };
    assert_eq!((writer.as_deref(), *epoch), (Some("beta on host 7"), first.epoch()));
    let error = first.append(A, "later still").unwrap_err();
    assert!(matches!(error.error(), Error::Poisoned { .. }), "{error}");
    assert!(error.to_string().contains("beta on host 7"), "{error}");
    for refused in [first.flush(), first.stop(), first.stop()] {
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    }
    assert_eq!(payloads(&first, A), ["acknowledged"], "reads go on");
    assert_eq!(first.stats().unwrap().poisoned_total, 1);

    second.append(B, "mine").unwrap();
    assert_eq!(payloads(&second, A), ["acknowledged"]);
    second.stop().unwrap();
}
