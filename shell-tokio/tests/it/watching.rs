use futures_util::FutureExt;
use sealog_tokio::{EntryId, Error, Options, RegionId, Wal};

use crate::store::TestStore;
use crate::{A, B, PREFIX};

async fn open() -> Wal {
    Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_subscription_tells_every_change_after_it_began() {
    let wal = open().await;
    let before = wal.append(A, "before").await.unwrap();
    let mut watch = wal.watch_durable(A).await.unwrap();
    assert_eq!(watch.get(), before);
    assert!(watch.changed().now_or_never().is_none(), "nothing changed yet");
    wal.append(B, "elsewhere").await.unwrap();
    assert!(watch.changed().now_or_never().is_none(), "not this region");
    let id = wal.append(A, "1").await.unwrap();
    assert_eq!(watch.changed().await.unwrap(), id);
    assert_eq!(watch.get(), id);
    assert_eq!(watch.region(), A);
}

#[tokio::test(start_paused = true)]
async fn a_region_with_nothing_in_it_can_be_watched_by_many() {
    let wal = open().await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(wal.watch_durable(A).await.unwrap());
    }
    assert!(watches.iter().all(|watch| watch.get() == EntryId::ZERO));
    drop(watches.pop());
    let id = wal.append(A, "1").await.unwrap();
    for watch in &mut watches {
        assert_eq!(watch.changed().await.unwrap(), id);
    }
    drop(watches);
    // One that comes after all others are gone begins anew.
    let mut late = wal.watch_durable(A).await.unwrap();
    assert_eq!(late.get(), id);
    let id = wal.append(A, "2").await.unwrap();
    assert_eq!(late.changed().await.unwrap(), id);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_waiting_changed_loses_no_change() {
    let wal = open().await;
    let mut watch = wal.watch_durable(A).await.unwrap();
    assert!(watch.changed().now_or_never().is_none());
    let id = wal.append(A, "1").await.unwrap();
    assert_eq!(watch.changed().now_or_never().unwrap().unwrap(), id);
}

#[tokio::test(start_paused = true)]
async fn the_last_change_comes_before_the_end() {
    let wal = open().await;
    let mut watch = wal.watch_durable(A).await.unwrap();
    let id = wal.append(A, "1").await.unwrap();
    wal.stop().await.unwrap();
    assert_eq!(watch.changed().await.unwrap(), id);
    assert!(matches!(watch.changed().await, Err(Error::Stopped)));
    assert!(matches!(watch.changed().await, Err(Error::Stopped)));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_does_not_keep_the_log_open() {
    let wal = open().await;
    let mut watch = wal.watch_durable(A).await.unwrap();
    drop(wal);
    assert!(matches!(watch.changed().await, Err(Error::Stopped)));
    assert_eq!(watch.get(), EntryId::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_reserved_region_cannot_be_watched() {
    let wal = open().await;
    let region = RegionId(u64::MAX);
    let error = wal.watch_durable(region).await.unwrap_err();
    assert!(matches!(error, Error::InvalidRegion { region: found } if found == region), "{error}");
}
