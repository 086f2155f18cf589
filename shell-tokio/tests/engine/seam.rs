//! Logs as the engine sees them.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use sealog_tokio::{
    AckMode, EntryId, Error, LogStore, ReadItem, RegionId, ReplayItem, Wal, object_store,
};

use crate::engine::{Engine, MemoryLog};
use crate::store::Client;
use crate::{A, B, PREFIX, ROOT, cause, options, row};

async fn logs() -> Vec<Arc<dyn LogStore>> {
    let mut logs: Vec<Arc<dyn LogStore>> = vec![Arc::new(MemoryLog::default())];
    for mode in crate::BOTH_MODES {
        let store = Client::of(&Arc::new(InMemory::new()));
        logs.push(Arc::new(Wal::open(store, PREFIX, options(mode)).await.unwrap()));
    }
    logs
}

async fn payloads(log: &dyn LogStore, region: RegionId, from: EntryId) -> Vec<String> {
    let items: Vec<_> = log.read(region, from).try_collect().await.unwrap();
    items
        .into_iter()
        .map(|item| match item {
            ReadItem::Entry(entry) => String::from_utf8(entry.payload.to_vec()).unwrap(),
            ReadItem::Hole(hole) => panic!("{hole:?}"),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_log_appends_reads_replays_and_forgets() {
    for log in logs().await {
        let first = log.append(A, "1".into()).await.unwrap();
        log.append(B, "2".into()).await.unwrap();
        let last = log.append(A, "3".into()).await.unwrap();
        assert!(EntryId::ZERO < first && first < last);
        assert_eq!(log.latest(A).await.unwrap(), last);
        for region in [A, B] {
            log.wait_durable(region, log.latest(region).await.unwrap()).await.unwrap();
        }
        assert_eq!(payloads(&*log, A, EntryId::ZERO).await, ["1", "3"]);
        assert_eq!(payloads(&*log, A, first.next()).await, ["3"]);

        let replay = log.replay(vec![(A, first.next()), (B, EntryId::ZERO)]);
        let mut replayed: Vec<_> = replay
            .map_ok(|item| match item {
                ReplayItem::Entry(region, entry) => (region, entry.payload),
                ReplayItem::Hole(hole) => panic!("{hole:?}"),
            })
            .try_collect()
            .await
            .unwrap();
        replayed.sort();
        assert_eq!(replayed, [(A, "3".into()), (B, "2".into())]);

        log.obsolete(A, first).await.unwrap();
        assert_eq!(payloads(&*log, A, EntryId::ZERO).await, ["3"]);
        // Ids stay above what became obsolete, wherever that id came from.
        let far = EntryId(1000 << 20 | 7);
        log.obsolete(B, far).await.unwrap();
        assert_eq!(payloads(&*log, B, EntryId::ZERO).await, [""; 0]);
        assert!(log.append(B, "4".into()).await.unwrap() > far);

        log.obsolete_all(A).await.unwrap();
        assert_eq!(payloads(&*log, A, EntryId::ZERO).await, [""; 0]);
        log.release_region(A).await.unwrap();
        log.append(A, "5".into()).await.unwrap();
        log.wait_durable(A, log.latest(A).await.unwrap()).await.unwrap();
        assert_eq!(payloads(&*log, A, EntryId::ZERO).await, ["5"]);

        log.stop().await.unwrap();
        let error = log.append(A, "6".into()).await.unwrap_err();
        assert!(matches!(cause(&error), Error::Stopped), "{error}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_has_its_place_when_it_is_called_and_not_when_it_is_polled() {
    for log in logs().await {
        let first = log.append(A, "called first".into());
        let second = log.append(A, "polled first".into());
        let second = second.await.unwrap();
        assert!(first.await.unwrap() < second);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_remembered_by_a_shared_log_only() {
    let bucket = Arc::new(InMemory::new());
    let open = || Wal::open(Client::of(&bucket), PREFIX, options(AckMode::Durable));
    let log: Arc<dyn LogStore> = Arc::new(open().await.unwrap());
    assert!(log.is_shared());
    for region in [A, B] {
        log.append(region, "1".into()).await.unwrap();
        log.obsolete_all(region).await.unwrap();
    }
    log.release_region(A).await.unwrap();
    drop(log);
    let log: Arc<dyn LogStore> = Arc::new(open().await.unwrap());
    assert_eq!(payloads(&*log, A, EntryId::ZERO).await, [""; 0]);
    assert_eq!(payloads(&*log, B, EntryId::ZERO).await, ["1"], "obsolete is not remembered");
    assert!(!MemoryLog::default().is_shared());
}

#[tokio::test]
async fn on_a_log_in_memory_what_is_flushed_outlives_a_crash_and_the_rest_does_not() {
    let bucket = Arc::new(InMemory::new());
    let open = || Engine::open(bucket.clone(), ROOT, Arc::new(MemoryLog::default()));
    let engine = open().await.unwrap();
    engine.create(A).await.unwrap();
    engine.put(A, vec![row("1", "a")]).await.unwrap();
    engine.put(A, vec![row("2", "b")]).await.unwrap();
    engine.flush(A).await.unwrap();
    engine.put(A, vec![row("3", "c")]).await.unwrap();
    drop(engine);
    let engine = open().await.unwrap();
    assert_eq!(engine.scan(A).await.unwrap().len(), 2);
    // The new log's ids are above those of the one before.
    engine.put(A, vec![row("1", "new")]).await.unwrap();
    engine.flush(A).await.unwrap();
    drop(engine);
    let rows = open().await.unwrap().scan(A).await.unwrap();
    assert_eq!((&rows[0].value[..], rows.len()), (&b"new"[..], 2));
}
