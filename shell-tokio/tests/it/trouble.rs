//! A store that fails while the log is open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sealog_tokio::{Error, Operation, Options, Outcome, Wal};
use tokio::time::Instant;

use crate::store::{Asked, Reaction, TestStore, broken, forbidden};
use crate::{A, PREFIX, payloads};

/// The first puts react like this, the others pass.
fn at_first(store: &TestStore, puts: usize, reaction: fn() -> Reaction) {
    let seen = AtomicUsize::new(0);
    store.react(move |asked, _| match asked {
        Asked::Put if seen.fetch_add(1, Ordering::Relaxed) < puts => reaction(),
        _ => Reaction::Pass,
    });
}

#[tokio::test(start_paused = true)]
async fn a_create_that_fails_and_may_pass_is_repeated() {
    for reaction in
        [|| Reaction::Fail(broken()), || Reaction::Panic, || Reaction::DoAndFail(broken())]
    {
        let store = TestStore::new();
        let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
        at_first(&store, 1, reaction);
        wal.append(A, "1").await.unwrap();
        assert_eq!(payloads(&wal, A).await, ["1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_come_back_rolls_back_and_the_log_goes_on() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Fail(broken()),
        _ => Reaction::Pass,
    });
    let began = Instant::now();
    let error = wal.append(A, "1").await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let Error::Store { operation: Operation::Create, key, .. } = error.error() else {
        panic!("{error}")
    };
    assert!(key.starts_with(PREFIX), "{key}");
    assert!(error.is_retryable());
    assert_eq!(error.outcome(), Outcome::Unknown);
    store.behave();
    wal.append(A, "2").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["2"]);
    let stats = wal.stats().await.unwrap();
    assert_eq!(stats.rolled_back_batches_total, 1);
    assert!(stats.create_retries_total > 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_create_fails_the_append_at_once_and_the_log_goes_on() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    at_first(&store, 1, || Reaction::Fail(forbidden()));
    let began = Instant::now();
    let error = wal.append(A, "1").await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    assert!(error.to_string().contains("403"), "{error}");
    assert!(!error.is_retryable());
    wal.append(A, "2").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn every_call_ends_though_the_store_never_answers() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    store.react(|_, _| Reaction::Hang);
    let submitted = wal.submit(A, "1");
    let began = Instant::now();
    let error = submitted.await.unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    // The put, the read-back after it, and a repeat of neither: retry_for is over.
    assert!(began.elapsed() < Duration::from_secs(62), "{:?}", began.elapsed());
    let submitted = wal.submit(A, "2");
    wal.stop().await.unwrap();
    submitted.await.unwrap_err();
}
