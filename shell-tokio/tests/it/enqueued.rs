//! `enqueued`: acknowledgement on admission, callers that are held back, and a store that refuses.

use std::time::Duration;

use futures_util::FutureExt;
use sealog_tokio::{AckMode, EntryId, Error, Options, Outcome, Wal};
use tokio::time::{Instant, sleep};

use crate::store::{Asked, Reaction, TestStore, forbidden};
use crate::{A, B, PREFIX, entries, payloads};

fn enqueued() -> Options {
    Options {
        ack_mode: AckMode::Enqueued,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        ..Options::default()
    }
}

/// Appends stall as soon as anything is not durable.
fn stalling() -> Options {
    Options { max_unpersisted_bytes: 1, ..enqueued() }
}

/// Lets every task go as far as it can.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_append_returns_before_the_store_answers_and_wait_durable_after_it() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, enqueued()).await.unwrap();
    store.hold(Asked::Put);
    let began = Instant::now();
    let first = wal.append(A, "1").await.unwrap();
    let both = wal.append_batch(vec![(A, "2".into()), (B, "3".into())]).await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(first < both[0]);
    assert_eq!(wal.latest(A).await.unwrap(), both[0]);
    assert_eq!(wal.durable(A).await.unwrap(), EntryId::ZERO);
    assert_eq!(payloads(&wal, A).await, [""; 0], "reads see what is durable");
    let mut waits = [(A, first), (A, both[0]), (B, both[1]), (A, EntryId::MAX)]
        .map(|(region, id)| Box::pin(wal.wait_durable(region, id)));
    for wait in &mut waits {
        assert!(wait.now_or_never().is_none());
    }
    settle().await;
    store.let_pass(2);
    for wait in waits {
        wait.await.unwrap();
    }
    assert_eq!(entries(&wal, A).await.unwrap(), [(first, "1".into()), (both[0], "2".into())]);
    wal.wait_durable(B, EntryId::MAX).await.unwrap();
    let error = wal.wait_durable(sealog_tokio::RegionId(u64::MAX), first).await.unwrap_err();
    assert!(matches!(error, Error::InvalidRegion { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_by_a_crash_is_what_was_not_durable() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, enqueued()).await.unwrap();
    let first = wal.append(A, "durable").await.unwrap();
    wal.wait_durable(A, first).await.unwrap();
    store.react(|_, _| Reaction::Hang);
    wal.append(A, "not yet").await.unwrap();
    assert_eq!(wal.stats().await.unwrap().unpersisted_bytes, 150 + 12 + 7);
    drop(wal);
    settle().await;
    store.behave();
    let wal = Wal::open(store, PREFIX, enqueued()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["durable"]);
}

#[tokio::test(start_paused = true)]
async fn appends_stall_in_their_order_and_everything_else_is_answered() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, stalling()).await.unwrap();
    let durable = wal.append(B, "b").await.unwrap();
    wal.flush().await.unwrap();
    store.hold(Asked::Put);
    wal.append(A, "under way").await.unwrap();
    let stalled: Vec<_> = (0..300).map(|n| wal.submit(A, format!("{n}"))).collect();
    settle().await;
    let mut flush = Box::pin(wal.flush());
    assert!((&mut flush).now_or_never().is_none());
    assert_eq!(wal.stats().await.unwrap().unpersisted_bytes, 150 + 12 + 9);
    wal.wait_durable(B, durable).await.unwrap();
    wal.obsolete(B, durable).await.unwrap();
    assert_eq!(payloads(&wal, B).await, [""; 0]);
    assert_eq!(wal.regions().await.unwrap(), []);
    let mut ids = Vec::new();
    store.behave();
    store.let_pass(1);
    for append in stalled {
        ids.push(append.await.unwrap());
    }
    assert!(ids.is_sorted(), "{ids:?}");
    flush.await.unwrap();
    assert_eq!(wal.durable(A).await.unwrap(), *ids.last().unwrap(), "submitted before the flush");
    assert_eq!(payloads(&wal, A).await.len(), 301);
}

/// A flush covers what was submitted before it, also what is not admitted.
#[tokio::test(start_paused = true)]
async fn a_flush_that_comes_with_stalled_appends_covers_them() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, stalling()).await.unwrap();
    let appends: Vec<_> = (0..5).map(|n| wal.submit(A, format!("{n}"))).collect();
    wal.flush().await.unwrap();
    let last = wal.latest(A).await.unwrap();
    assert_eq!(wal.durable(A).await.unwrap(), last);
    assert_eq!(payloads(&wal, A).await, ["0", "1", "2", "3", "4"]);
    for append in appends {
        assert!(append.await.unwrap() <= last);
    }
}

#[tokio::test(start_paused = true)]
async fn appends_that_are_dropped_while_stalled_and_after_admission_leave_their_neighbours_alone() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, stalling()).await.unwrap();
    store.hold(Asked::Put);
    let texts = ["admitted", "stalled first", "stalled", "stalled last"];
    let mut appends: Vec<_> = texts.map(|text| Box::pin(wal.append(A, text))).into();
    for append in &mut appends {
        assert!(append.now_or_never().is_none());
    }
    settle().await;
    for gone in [2, 0] {
        drop(appends.remove(gone));
    }
    store.behave();
    store.let_pass(1);
    for append in appends {
        append.await.unwrap();
    }
    wal.flush().await.unwrap();
    assert_eq!(payloads(&wal, A).await, texts, "nothing was taken back, and nothing doubled");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_makes_the_log_failing_until_a_create_succeeds() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, enqueued()).await.unwrap();
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Fail(forbidden()),
        _ => Reaction::Pass,
    });
    let id = wal.append(A, "kept").await.unwrap();
    let error = wal.wait_durable(A, id).await.unwrap_err();
    assert!(matches!(error, Error::Failing { .. }) && error.is_retryable(), "{error}");
    assert!(error.to_string().contains("403"), "{error}");
    let error = wal.append(A, "refused").await.unwrap_err();
    assert!(matches!(error.error(), Error::Failing { .. }) && error.is_retryable(), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    assert!(matches!(wal.flush().await, Err(Error::Failing { .. })));
    let stats = wal.stats().await.unwrap();
    assert_eq!((stats.failing, stats.rejected_appends_total), (1, 1));
    sleep(Duration::from_secs(60)).await;
    store.behave();
    sleep(Duration::from_secs(5)).await;
    wal.append(A, "taken").await.unwrap();
    wal.flush().await.unwrap();
    assert_eq!(wal.stats().await.unwrap().failing, 0);
    assert_eq!(payloads(&wal, A).await, ["kept", "taken"]);
    wal.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stalled_appends_fail_in_order_when_the_log_becomes_failing() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, stalling()).await.unwrap();
    store.hold(Asked::Put);
    wal.append(A, "kept").await.unwrap();
    let stalled: Vec<_> = (0..64).map(|n| wal.submit(A, format!("{n}"))).collect();
    let flush = tokio::spawn({
        let wal = wal.clone();
        async move { wal.flush().await }
    });
    settle().await;
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Fail(forbidden()),
        _ => Reaction::Pass,
    });
    // The one that waits at the gate succeeds; the one after it is refused.
    store.let_pass(1);
    let mut answers = Vec::new();
    for append in stalled {
        answers.push(append.await.map_err(|error| error.error().clone()));
    }
    assert!(answers[0].is_ok());
    for answer in &answers[1..] {
        assert!(matches!(answer, Err(Error::Failing { .. })), "{answer:?}");
    }
    assert!(matches!(flush.await.unwrap(), Err(Error::Failing { .. })));
    assert_eq!(wal.stats().await.unwrap().rejected_appends_total, 63);
}
