//! Dropping futures and handles.

use std::time::Duration;

use futures_util::FutureExt;
use sealog_tokio::{Error, Options, Outcome, Wal};

use crate::store::{Asked, TestStore};
use crate::{A, PREFIX, one_by_one, payloads};

/// Lets every task go as far as it can.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_append_that_was_never_polled_did_nothing() {
    let wal = Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap();
    drop(wal.append(A, "never"));
    wal.append(A, "1").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["1"]);
}

#[tokio::test(start_paused = true)]
async fn appends_that_are_dropped_while_they_wait_leave_their_neighbours_alone() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    store.hold(Asked::Put);
    let texts = ["under way", "sealed", "queued", "held back", "held back too"];
    let mut appends: Vec<_> = Vec::new();
    for text in texts {
        appends.push(Box::pin(wal.append(A, text)));
        assert!(appends.last_mut().unwrap().now_or_never().is_none());
        settle().await;
    }
    // Each second one: of what is admitted and of what is not.
    for gone in [3, 1] {
        drop(appends.remove(gone));
    }
    store.behave();
    store.let_pass(texts.len());
    for append in appends {
        append.await.unwrap();
    }
    wal.flush().await.unwrap();
    assert_eq!(payloads(&wal, A).await, texts, "nothing was taken back, and nothing doubled");
}

#[tokio::test(start_paused = true)]
async fn dropping_other_calls_does_no_harm() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let id = wal.append(A, "1").await.unwrap();
    assert!(wal.flush().now_or_never().is_none());
    assert!(wal.latest(A).now_or_never().is_none());
    assert!(wal.regions().now_or_never().is_none());
    assert!(wal.watch_durable(A).now_or_never().is_none());
    assert!(wal.obsolete(A, id).now_or_never().is_none());
    drop(wal.read(A, id));
    wal.append(A, "2").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["2"], "the obsolete was on its way");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_is_a_crash_that_answers_whoever_waits() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    wal.append(A, "acknowledged").await.unwrap();
    store.hold(Asked::Put);
    let waiting: Vec<_> = (0..6).map(|n| wal.submit(A, format!("{n}"))).collect();
    settle().await;
    let late = wal.submit(A, "just before the end");
    let clone = wal.clone();
    drop(wal);
    settle().await;
    assert!(clone.latest(A).await.is_ok(), "a handle is left");
    drop(clone);
    let mut outcomes = Vec::new();
    for append in waiting.into_iter().chain([late]) {
        let error = append.await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        outcomes.push(error.outcome());
    }
    assert_eq!(outcomes[0], Outcome::Unknown, "its create was under way");
    assert!(outcomes[1..].iter().all(|outcome| *outcome == Outcome::NotWritten), "{outcomes:?}");

    store.behave();
    let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
    let found = payloads(&wal, A).await;
    assert_eq!(found[0], "acknowledged");
    assert!(found.len() <= 2, "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn dropping_an_opening_leaves_a_log_that_opens() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    wal.append(A, "1").await.unwrap();
    drop(wal);
    for held in [Asked::Get, Asked::Put] {
        store.hold(held);
        let opening = Wal::open(store.clone(), PREFIX, Options::default());
        let dropped = tokio::time::timeout(Duration::from_secs(1), opening).await;
        assert!(dropped.is_err(), "it waits for {held:?}");
        store.behave();
    }
    let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["1"]);
}

/// Not hanging is the point.
#[test]
fn a_log_whose_runtime_went_away_fails_every_call() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_time().build().unwrap()
    };
    let store = TestStore::new();
    let first = runtime();
    let wal = first.block_on(Wal::open(store.clone(), PREFIX, Options::default())).unwrap();
    first.block_on(wal.append(A, "1")).unwrap();
    let mut watch = first.block_on(wal.watch_durable(A)).unwrap();
    store.hold(Asked::Put);
    let waiting = wal.submit(A, "2");
    first.block_on(async {
        while store.count(Asked::Put) < 4 {
            settle().await
        }
    });
    drop(first);

    runtime().block_on(async {
        let error = waiting.await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown);
        let error = wal.append(A, "3").await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
        assert!(matches!(wal.flush().await, Err(Error::Stopped)));
        assert!(matches!(wal.stop().await, Err(Error::Stopped)));
        assert!(matches!(wal.latest(A).await, Err(Error::Stopped)));
        assert!(matches!(crate::entries(&wal, A).await, Err(Error::Stopped)));
        assert!(matches!(watch.changed().await, Err(Error::Stopped)));
    });
}
