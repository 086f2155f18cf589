use std::time::Duration;

use sealog_core::{AckMode, Error, Operation, Options, Outcome};

use super::stage::Reaction;
use super::{A, Log, Stage, open, payloads};
use crate::hooked::Asked;

pub(super) fn a_create_that_fails_and_may_pass_is_repeated<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, Options::default());
    stage.first_puts(2, Reaction::Break);
    log.append(A, "1").unwrap();
    assert_eq!(payloads(&log, A), ["1"]);
    assert_eq!(log.stats().unwrap().create_retries_total, 2);
}

pub(super) fn a_create_that_fails_for_good_rolls_back_and_the_log_goes_on<L: Log>() {
    let stage = Stage::default();
    let options = Options { retry_for: Duration::ZERO, ..Options::default() };
    let log: L = open(&stage, options);
    for (reaction, retryable) in [(Reaction::Break, true), (Reaction::Refuse, false)] {
        stage.first_puts(1, reaction);
        let error = log.append(A, "rolled back").unwrap_err();
        assert!(
            matches!(error.error(), Error::Store { operation: Operation::Create, .. }),
            "{error}"
        );
        assert_eq!(error.is_retryable(), retryable, "{error}");
        log.append(A, "goes on").unwrap();
    }
    assert_eq!(payloads(&log, A), ["goes on", "goes on"]);
    assert_eq!(log.stats().unwrap().rolled_back_batches_total, 2);
    log.stop().unwrap();
}

pub(super) fn a_panic_of_the_client_is_a_failed_request<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, Options::default());
    stage.first_puts(1, Reaction::Panic);
    log.append(A, "1").unwrap();
    assert_eq!(payloads(&log, A), ["1"]);
    log.stop().unwrap();
    stage.react(|_| Reaction::Panic);
    let options = Options { open_timeout: Duration::from_millis(1), ..Options::default() };
    let Err(error) = L::open(stage.store(), super::PREFIX, options) else { panic!("it is open") };
    assert!(error.to_string().contains("the client fell over"), "{error}");
}

pub(super) fn a_request_without_an_answer_ends_with_its_time_limit<L: Log>() {
    let stage = Stage::default();
    let options = Options {
        request_timeout: Duration::from_millis(20),
        retry_for: Duration::ZERO,
        ..Options::default()
    };
    let log: L = open(&stage, options);
    stage.react(|_| Reaction::Hang);
    let error = log.append(A, "1").unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown);
    log.stop().unwrap();
}

pub(super) fn what_waits_for_a_rolled_back_id_is_told<L: Log>() {
    let stage = Stage::default();
    let options = Options { retry_for: Duration::ZERO, ..Options::default() };
    let log: L = open(&stage, options);
    let puts = stage.count(Asked::Put);
    stage.puts(Reaction::Wait);
    let under_way = log.submit(A, "1");
    stage.wait_for(Asked::Put, puts + 1);
    let id = log.latest(A).unwrap();
    stage.puts(Reaction::Refuse);
    let sealed = log.submit(A, "2");
    stage.let_pass(1);
    under_way().unwrap();
    let error = sealed().unwrap_err();
    assert!(matches!(error.error(), Error::Store { .. }), "{error}");
    log.wait_durable(A, id).unwrap();
    assert!(matches!(log.options().ack_mode, AckMode::Durable));
    assert_eq!(log.latest(A).unwrap(), id, "the other is forgotten");
}
