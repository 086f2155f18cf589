use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt, TryStreamExt};
use sealog_tokio::{
    EntryId, Error, OnCorruptedSegment, Operation, Options, Part, ReadItem, RegionId, Wal,
};

use crate::store::{Asked, Reaction, TestStore, broken, forbidden};
use crate::{A, B, PREFIX, entries, one_by_one, payloads};

/// The key of the object that holds an entry.
fn key(id: EntryId) -> String {
    format!("{PREFIX}/objects/{:020}.wal", id.0 >> 20)
}

/// A log of region A with one entry per object, and their ids.
async fn filled(store: &Arc<TestStore>, options: Options, count: usize) -> (Wal, Vec<EntryId>) {
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..count {
        ids.push(wal.append(A, format!("{n}")).await.unwrap());
    }
    (wal, ids)
}

async fn damage(store: &TestStore, id: EntryId) {
    let mut bytes = store.bytes(&key(id)).await;
    // In the payload: after the header, the segment's 12 bytes and the entry's.
    bytes[54 + 12 + 12] ^= 1;
    store.plant(&key(id), bytes).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_begins_where_it_is_told_and_costs_one_request_per_object() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), 20).await;
    let before = store.count(Asked::Get);
    let items: Vec<_> = wal.read(A, ids[15]).try_collect().await.unwrap();
    assert_eq!(items.len(), 5);
    assert!(matches!(&items[0], ReadItem::Entry(entry) if entry.id == ids[15]));
    assert_eq!(store.count(Asked::Get) - before, 5);
    assert_eq!(wal.read(A, ids[19].next()).count().await, 0);
    assert_eq!(wal.read(B, EntryId::ZERO).count().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_long_read_is_planned_page_by_page() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), 600).await;
    let read = entries(&wal, A).await.unwrap();
    assert_eq!(read.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ids);
}

#[tokio::test(start_paused = true)]
async fn a_read_ends_at_what_was_durable_when_it_began() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), 300).await;
    let mut read = wal.read(A, EntryId::ZERO);
    let first = read.next().await.unwrap().unwrap();
    assert!(matches!(first, ReadItem::Entry(entry) if entry.id == ids[0]));
    wal.append(A, "later").await.unwrap();
    assert_eq!(read.count().await, 299);
    assert_eq!(entries(&wal, A).await.unwrap().len(), 301);
}

#[tokio::test(start_paused = true)]
async fn reads_run_several_ahead_and_do_not_hold_up_appends() {
    let store = TestStore::new();
    let options = Options { read_concurrency: 3, ..one_by_one() };
    let (wal, ids) = filled(&store, options, 10).await;
    store.hold(Asked::Get);
    let before = store.count(Asked::Get);
    let mut read = wal.read(A, EntryId::ZERO);
    assert!(read.next().now_or_never().is_none());
    wal.append(A, "while a read waits").await.unwrap();
    assert!(read.next().now_or_never().is_none());
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(store.count(Asked::Get) - before, 3);
    store.behave();
    store.let_pass(3);
    let items: Vec<_> = read.try_collect().await.unwrap();
    assert_eq!(items.len(), ids.len());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_segment_is_a_hole_in_its_place_and_is_counted_once() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), 3).await;
    damage(&store, ids[1]).await;
    for _ in 0..2 {
        let items: Vec<_> = wal.read(A, EntryId::ZERO).try_collect().await.unwrap();
        assert!(matches!(&items[0], ReadItem::Entry(entry) if entry.id == ids[0]));
        let ReadItem::Hole(hole) = &items[1] else { panic!("{items:?}") };
        assert_eq!((hole.region, hole.min_id, hole.max_id), (A, ids[1], ids[1]));
        assert_eq!(&*hole.key, key(ids[1]));
        assert!(matches!(&items[2], ReadItem::Entry(entry) if entry.id == ids[2]));
        assert_eq!(items.len(), 3);
        assert_eq!(wal.holes(A).await.unwrap(), std::slice::from_ref(hole));
    }
    assert_eq!(wal.holes(B).await.unwrap(), []);
    let stats = wal.stats().await.unwrap();
    assert_eq!(stats.skipped_segments_total, 1);
    assert_eq!(stats.refetched_segments_total, 2);
}

#[tokio::test(start_paused = true)]
async fn with_fail_a_damaged_segment_ends_the_read() {
    let store = TestStore::new();
    let options = Options { on_corrupted_segment: OnCorruptedSegment::Fail, ..one_by_one() };
    let (wal, ids) = filled(&store, options, 3).await;
    damage(&store, ids[1]).await;
    let items: Vec<_> = wal.read(A, EntryId::ZERO).collect().await;
    assert_eq!(items.len(), 2, "the error is the last item");
    assert!(items[0].is_ok());
    let Err(Error::Corrupted { key: found, part, .. }) = &items[1] else { panic!("{items:?}") };
    assert_eq!((&**found, *part), (&*key(ids[1]), Part::Segment(A)));
    assert_eq!(wal.holes(A).await.unwrap(), []);
    assert_eq!(wal.read(A, ids[2]).count().await, 1, "the log reads on elsewhere");
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_fails_the_read_and_the_next_one_begins_anew() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), 3).await;
    let second = key(ids[1]);
    store.react(move |asked, key| match asked {
        Asked::Get if key == second => Reaction::Fail(broken()),
        _ => Reaction::Pass,
    });
    let items: Vec<_> = wal.read(A, EntryId::ZERO).collect().await;
    assert_eq!(items.len(), 2);
    let error = items[1].as_ref().unwrap_err();
    assert!(matches!(error, Error::Store { operation: Operation::Read, .. }), "{error}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("connection reset"), "{error}");
    assert_eq!(wal.holes(A).await.unwrap(), [], "a failed fetch is no hole");
    store.behave();
    assert_eq!(payloads(&wal, A).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_panics_once_is_asked_again_and_one_that_refuses_fails_the_read() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), 1).await;
    let gets = AtomicUsize::new(0);
    store.react(move |asked, _| match asked {
        Asked::Get if gets.fetch_add(1, Ordering::Relaxed) == 0 => Reaction::Panic,
        Asked::Get => Reaction::Fail(forbidden()),
        _ => Reaction::Pass,
    });
    let error = entries(&wal, A).await.unwrap_err();
    assert!(!error.is_retryable() && error.to_string().contains("403"), "{error}");
    store.react(|asked, _| if asked == Asked::Get { Reaction::Panic } else { Reaction::Pass });
    let began = tokio::time::Instant::now();
    let error = entries(&wal, A).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("fell over"), "{error}");
    assert_eq!(began.elapsed().as_secs(), 30, "read_retry_for");
}

/// The patience counts from the first failure where nothing succeeded, so that one request that hangs
/// is no end.
#[tokio::test(start_paused = true)]
async fn a_fetch_that_never_ends_is_timed_out_and_repeated() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), 1).await;
    let gets = AtomicUsize::new(0);
    store.react(move |asked, _| match asked {
        Asked::Get if gets.fetch_add(1, Ordering::Relaxed) == 0 => Reaction::Hang,
        _ => Reaction::Pass,
    });
    assert_eq!(payloads(&wal, A).await.len(), 1);
    store.react(|asked, _| if asked == Asked::Get { Reaction::Hang } else { Reaction::Pass });
    let began = tokio::time::Instant::now();
    let error = entries(&wal, A).await.unwrap_err();
    assert!(error.to_string().contains("timed out"), "{error}");
    // Two requests: the second began 100 ms after the first, and ended behind the limit.
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_reserved_region_cannot_be_read() {
    let wal = Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap();
    for region in [RegionId(u64::MAX), RegionId(u64::MAX - 15)] {
        let items: Vec<_> = wal.read(region, EntryId::ZERO).collect().await;
        assert!(matches!(items[..], [Err(Error::InvalidRegion { .. })]), "{items:?}");
    }
}
