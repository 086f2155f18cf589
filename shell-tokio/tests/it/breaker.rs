//! What a fresh pair of eyes found.

use std::time::Duration;

use futures_util::FutureExt;
use sealog_tokio::Wal;

use crate::store::{Asked, TestStore};
use crate::{A, PREFIX, one_by_one, payloads};

/// `flush` "stores what was submitted so far, and returns when all of it is durable".
#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_appends_that_were_submitted_before_it_and_that_wait_for_their_place() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    store.hold(Asked::Put);
    let submitted: Vec<_> = (0..10).map(|n| wal.submit(A, format!("{n}"))).collect();
    let mut flush = Box::pin(wal.flush());
    // Submitted and asked at once, before the log gets to see any of it.
    let mut flushed = flush.as_mut().now_or_never();
    // One create after the other, until the flush says that all is durable.
    while flushed.is_none() {
        store.let_pass(1);
        tokio::time::sleep(Duration::from_millis(1)).await;
        flushed = flush.as_mut().now_or_never();
    }
    flushed.unwrap().unwrap();
    let durable = payloads(&wal, A).await.len();
    assert_eq!(durable, submitted.len(), "entries are durable after the flush");
}
