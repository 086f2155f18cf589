//! Stop in both modes, whatever the store does, and what comes at the same moment.

use std::time::Duration;

use futures_util::FutureExt;
use sealog_tokio::{AckMode, Error, Options, Outcome, Submitted, Wal};
use tokio::time::{Instant, sleep};

use crate::store::{Asked, Reaction, TestStore, broken, forbidden};
use crate::{A, PREFIX, payloads};

fn mode(ack_mode: AckMode) -> Options {
    Options { ack_mode, ..Options::default() }
}

/// A log of which one append is under way, over a store that from now on reacts to puts like this.
async fn under_way(ack_mode: AckMode, reaction: fn() -> Reaction) -> (Wal, Submitted) {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, mode(ack_mode)).await.unwrap();
    store.react(move |asked, _| match asked {
        Asked::Put => reaction(),
        _ => Reaction::Pass,
    });
    let submitted = wal.submit(A, "1");
    sleep(Duration::from_millis(2)).await;
    (wal, submitted)
}

/// What every one of several callers at once is answered, and how long it took.
async fn stop(wal: &Wal) -> (Result<(), Error>, Duration) {
    let began = Instant::now();
    let stops: Vec<_> = (0..3)
        .map(|_| {
            let wal = wal.clone();
            tokio::spawn(async move { wal.stop().await })
        })
        .collect();
    let mut answers = Vec::new();
    for stop in stops {
        answers.push(stop.await.unwrap());
    }
    let took = began.elapsed();
    answers.push(wal.stop().await);
    let said: Vec<_> = answers.iter().map(|answer| format!("{answer:?}")).collect();
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
    (answers.remove(0), took)
}

fn lost(answer: Result<(), Error>) -> u64 {
    match answer {
        Err(Error::Lost { entries, .. }) => entries,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_store_that_hangs() {
    let (wal, submitted) = under_way(AckMode::Durable, || Reaction::Hang).await;
    let (answer, took) = stop(&wal).await;
    answer.unwrap();
    assert!(took < Duration::from_secs(31), "the put's time limit, and the read-back: {took:?}");
    assert_eq!(submitted.await.unwrap_err().outcome(), Outcome::Unknown);

    let (wal, submitted) = under_way(AckMode::Enqueued, || Reaction::Hang).await;
    submitted.await.unwrap();
    let (answer, took) = stop(&wal).await;
    assert_eq!(lost(answer), 1);
    assert!(took < Duration::from_secs(31), "no attempt starts after the deadline: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn over_a_store_that_refuses() {
    let (wal, submitted) = under_way(AckMode::Durable, || Reaction::Fail(forbidden())).await;
    let error = submitted.await.unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    let (answer, took) = stop(&wal).await;
    answer.unwrap();
    assert_eq!(took, Duration::ZERO);

    let (wal, submitted) = under_way(AckMode::Enqueued, || Reaction::Fail(forbidden())).await;
    submitted.await.unwrap();
    assert_eq!(wal.stats().await.unwrap().failing, 1);
    let (answer, took) = stop(&wal).await;
    assert!(answer.as_ref().unwrap_err().to_string().contains("403"), "{answer:?}");
    assert_eq!(lost(answer), 1);
    assert_eq!(took.as_secs(), 10, "it is repeated until the deadline");
}

#[tokio::test(start_paused = true)]
async fn over_a_store_that_throttles_for_a_while() {
    for ack_mode in [AckMode::Durable, AckMode::Enqueued] {
        let store = TestStore::new();
        let wal = Wal::open(store.clone(), PREFIX, mode(ack_mode)).await.unwrap();
        let until = Instant::now() + Duration::from_millis(1200);
        store.react(move |asked, _| match asked {
            Asked::Put if Instant::now() < until => Reaction::Fail(broken()),
            _ => Reaction::Pass,
        });
        let submitted = wal.submit(A, "1");
        sleep(Duration::from_millis(2)).await;
        let (answer, took) = stop(&wal).await;
        answer.unwrap();
        assert!(took > Duration::from_secs(1), "{took:?}");
        submitted.await.unwrap();
        drop(wal);
        let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
        assert_eq!(payloads(&wal, A).await, ["1"]);
    }
}

/// The append was submitted after stop was called, and before the actor saw either: it is answered
/// once, and what is acknowledged is not lost.
#[tokio::test(start_paused = true)]
async fn an_append_between_the_call_of_stop_and_the_actor_seeing_it() {
    for ack_mode in [AckMode::Durable, AckMode::Enqueued] {
        let store = TestStore::new();
        let wal = Wal::open(store.clone(), PREFIX, mode(ack_mode)).await.unwrap();
        let mut stop = Box::pin(wal.stop());
        assert!((&mut stop).now_or_never().is_none());
        let between = wal.submit(A, "between");
        let mut flush = Box::pin(wal.flush());
        assert!((&mut flush).now_or_never().is_none());
        stop.await.unwrap();
        let between = between.await;
        let flushed = flush.await;
        let after = wal.append(A, "after").await.unwrap_err();
        assert!(matches!(after.error(), Error::Stopped), "{after}");
        drop(wal);
        let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
        let found = payloads(&wal, A).await;
        match between {
            Ok(_) => assert_eq!(found, ["between"]),
            Err(error) => {
                assert!(matches!(error.error(), Error::Stopped), "{error}");
                assert_eq!(error.outcome(), Outcome::NotWritten);
                assert_eq!(found, [""; 0]);
            }
        }
        assert_eq!(flushed.is_ok(), found.len() == 1, "{flushed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stop_while_appends_are_stalled_fails_them_and_saves_what_was_acknowledged() {
    let store = TestStore::new();
    let options = Options { max_unpersisted_bytes: 1, ..mode(AckMode::Enqueued) };
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    store.hold(Asked::Put);
    wal.append(A, "acknowledged").await.unwrap();
    let stalled: Vec<_> = (0..300).map(|n| wal.submit(A, format!("{n}"))).collect();
    let waiting = tokio::spawn({
        let wal = wal.clone();
        async move { wal.wait_durable(A, wal.latest(A).await?).await }
    });
    sleep(Duration::from_millis(5)).await;
    let stopping = tokio::spawn({
        let wal = wal.clone();
        async move { wal.stop().await }
    });
    for append in stalled {
        let error = append.await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
    }
    assert!(!stopping.is_finished());
    store.let_pass(1);
    stopping.await.unwrap().unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(payloads(&wal, A).await, ["acknowledged"]);
}
