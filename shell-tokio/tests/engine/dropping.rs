//! Drops, on logs and stores that fail meanwhile.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use sealog_tokio::{
    AckMode, EntryId, Error, LogError, LogFuture, LogStore, LogStream, ReadItem, RegionId, Wal,
    object_store,
};

use crate::engine::{Engine, EngineError, MemoryLog};
use crate::store::{Asked, Client, Fate};
use crate::{A, B, BOTH_MODES, C, PREFIX, Process, ROOT, cause, options, row};

/// A log whose obsolete or release fails.
struct Faulty {
    log: Arc<dyn LogStore>,
    obsolete: AtomicBool,
    release: AtomicBool,
}

impl Faulty {
    fn new(log: Arc<dyn LogStore>, obsolete: bool, release: bool) -> Arc<Faulty> {
        Arc::new(Faulty { log, obsolete: obsolete.into(), release: release.into() })
    }
}

fn failed<T: Send + 'static>() -> LogFuture<'static, T> {
    Box::pin(ready(Err(LogError::new("the log does not answer", true))))
}

impl LogStore for Faulty {
    fn append(&self, region: RegionId, payload: Bytes) -> LogFuture<'_, EntryId> {
        self.log.append(region, payload)
    }

    fn read(&self, region: RegionId, from: EntryId) -> LogStream<ReadItem> {
        self.log.read(region, from)
    }

    fn obsolete(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()> {
        self.log.obsolete(region, id)
    }

    fn obsolete_all(&self, region: RegionId) -> LogFuture<'_, ()> {
        if self.obsolete.load(Ordering::Relaxed) {
            return failed();
        }
        self.log.obsolete_all(region)
    }

    fn latest(&self, region: RegionId) -> LogFuture<'_, EntryId> {
        self.log.latest(region)
    }

    fn release_region(&self, region: RegionId) -> LogFuture<'_, ()> {
        if self.release.load(Ordering::Relaxed) {
            return failed();
        }
        self.log.release_region(region)
    }

    fn is_shared(&self) -> bool {
        self.log.is_shared()
    }

    fn stop(&self) -> LogFuture<'_, ()> {
        self.log.stop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_completes_when_obsolete_or_release_fails_and_reports_it() {
    for mode in BOTH_MODES {
        for (obsolete, release) in [(true, false), (false, true), (true, true)] {
            let bucket = Arc::new(InMemory::new());
            let client = Client::of(&bucket);
            let wal = Wal::open(client.clone(), PREFIX, options(mode)).await.unwrap();
            let log = Faulty::new(Arc::new(wal), obsolete, release);
            let engine = Engine::open(client.clone(), ROOT, log).await.unwrap();
            engine.create(A).await.unwrap();
            engine.put(A, vec![row("1", "a")]).await.unwrap();
            engine.flush(A).await.unwrap();
            engine.put(A, vec![row("2", "b")]).await.unwrap();

            let dropped = engine.drop_regions(&[A]).await.unwrap();
            let failures: Vec<RegionId> = dropped.failures.iter().map(|(id, _)| *id).collect();
            assert_eq!(failures, [A, A][..usize::from(obsolete) + usize::from(release)]);
            assert!(dropped.failures[0].1.to_string().contains("does not answer"));
            assert!(matches!(engine.scan(A).await, Err(EngineError::NoRegion(A))));
            let put = engine.put(A, vec![row("3", "c")]).await;
            assert!(matches!(put, Err(EngineError::NoRegion(A))));
            // The next opening has something left to do, which would undo it.
            assert!(matches!(engine.create(A).await, Err(EngineError::Exists(A))));

            client.cut();
            drop(engine);
            let process = Process::open(&bucket, mode).await;
            assert!(process.is_gone(A).await);
            assert!(!process.logged(A).await);
            process.engine.create(A).await.unwrap();
            let process = process.crash(&bucket).await;
            assert_eq!(process.rows(A).await, []);
        }
    }
}

#[tokio::test]
async fn on_a_log_that_is_not_shared_a_failed_obsolete_fails_the_drop() {
    let log = Faulty::new(Arc::new(MemoryLog::default()), true, false);
    let engine = Engine::open(Arc::new(InMemory::new()), ROOT, log.clone()).await.unwrap();
    engine.create(A).await.unwrap();
    engine.put(A, vec![row("1", "a")]).await.unwrap();
    let error = engine.drop_regions(&[A]).await.unwrap_err();
    assert!(matches!(error, EngineError::Log(_)), "{error}");
    assert!(matches!(engine.create(A).await, Err(EngineError::Exists(A))));
    let put = engine.put(A, vec![row("2", "b")]).await;
    assert!(matches!(put, Err(EngineError::NoRegion(A))), "{put:?}");
    // Its caller makes it again.
    log.obsolete.store(false, Ordering::Relaxed);
    assert_eq!(engine.drop_regions(&[A]).await.unwrap().failures.len(), 0);
    assert_eq!(log.latest(A).await.unwrap(), EntryId::ZERO);
    engine.create(A).await.unwrap();
    assert_eq!(engine.scan(A).await.unwrap(), []);
}

/// A table of two regions that share an object, and a neighbour.
async fn table(bucket: &Arc<InMemory>, mode: AckMode) -> Process {
    let process = Process::open(bucket, mode).await;
    for region in [A, B, C] {
        process.engine.create(region).await.unwrap();
        process.put(region, "1", "a").await;
    }
    process.engine.flush(A).await.unwrap();
    process.put(A, "2", "b").await;
    process.wal.flush().await.unwrap();
    process
}

/// The log's objects are refused so many times.
fn refuse(process: &Process, times: usize) {
    let refused = AtomicUsize::new(0);
    process.client.rule(move |asked, key| match asked {
        Asked::Put if key.starts_with(PREFIX) => {
            match refused.fetch_add(1, Ordering::Relaxed) < times {
                true => Fate::Refused,
                false => Fate::Done,
            }
        }
        _ => Fate::Done,
    });
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_two_regions_whose_releases_fail_leaves_neither_behind() {
    for mode in BOTH_MODES {
        for times in [1, 2] {
            let bucket = Arc::new(InMemory::new());
            let process = table(&bucket, mode).await;
            refuse(&process, times);
            let dropped = process.engine.drop_regions(&[A, B]).await.unwrap();
            let failures: Vec<RegionId> = dropped.failures.iter().map(|(id, _)| *id).collect();
            match mode {
                AckMode::Durable => assert_eq!(failures, [A, B][..times]),
                // The log is failing until a create succeeds, and refuses the second at once.
                AckMode::Enqueued => assert_eq!(failures, [A, B]),
            }
            assert!(process.is_gone(A).await && process.is_gone(B).await);

            // The log keeps the records for its next object: the engine is not needed for it.
            process.client.behave();
            tokio::time::sleep(std::time::Duration::from_secs(10)).await;
            process.put(C, "2", "takes the records along").await;
            process.wal.flush().await.unwrap();
            process.client.cut();
            drop(process);
            let wal = Wal::open(Client::of(&bucket), PREFIX, options(mode)).await.unwrap();
            let regions = wal.regions().await.unwrap();
            assert_eq!(regions.iter().map(|info| info.region).collect::<Vec<_>>(), [C]);
            drop(wal);

            let process = Process::open(&bucket, mode).await;
            assert!(process.is_gone(A).await && process.is_gone(B).await);
            assert_eq!(process.rows(C).await.len(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_two_regions_whose_releases_die_with_the_process_leaves_neither_behind() {
    for mode in BOTH_MODES {
        let bucket = Arc::new(InMemory::new());
        let process = table(&bucket, mode).await;
        refuse(&process, usize::MAX);
        let dropped = process.engine.drop_regions(&[A, B]).await.unwrap();
        assert_eq!(dropped.failures.len(), 2);
        // What the log kept for its next object is lost: there is none.
        let process = process.crash(&bucket).await;
        assert!(process.is_gone(A).await && process.is_gone(B).await);
        assert!(!process.logged(A).await && !process.logged(B).await);
        assert_eq!(process.rows(C).await, [row("1", "a")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_two_regions_whose_releases_poison_the_log_leaves_neither_behind() {
    for mode in BOTH_MODES {
        for first in [true, false] {
            let bucket = Arc::new(InMemory::new());
            let process = table(&bucket, mode).await;
            // Something foreign stands where the release of one of them goes, and stays.
            let next = process.wal.durable(A).await.unwrap().sequence().0 + 2 - u64::from(first);
            let key = Path::from(format!("{PREFIX}/objects/{next:020}.wal"));
            bucket.put(&key, "no object of a log".into()).await.unwrap();
            let dropped = process.engine.drop_regions(&[A, B]).await.unwrap();
            let (_, error) = dropped.failures.last().unwrap();
            let error = cause(error);
            assert!(
                matches!(error, Error::Corrupted { .. } | Error::Poisoned { .. }),
                "{mode:?}: {error}"
            );
            assert_eq!(dropped.failures.iter().any(|(id, _)| *id == A), first);
            assert!(process.is_gone(A).await && process.is_gone(B).await);

            bucket.delete(&key).await.unwrap();
            let process = process.crash(&bucket).await;
            assert!(process.is_gone(A).await && process.is_gone(B).await, "{mode:?}");
            assert!(!process.logged(A).await && !process.logged(B).await, "{mode:?}");
            assert_eq!(process.rows(C).await, [row("1", "a")]);
            // A log opened later holds no segment of either, without the engine's help.
            process.client.cut();
            drop(process);
            let wal = Wal::open(Client::of(&bucket), PREFIX, options(mode)).await.unwrap();
            let regions = wal.regions().await.unwrap();
            assert_eq!(regions.iter().map(|info| info.region).collect::<Vec<_>>(), [C]);
        }
    }
}
