use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_executor::block_on;
use futures_util::stream::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutMode};
use sealog_core::error::Operation;
use sealog_core::{Payload, ReadBack, RequestId, StorageAnswer, StorageEffect, StoreErrorKind};
use tokio::sync::Semaphore;

use super::*;
use crate::{carry_out, open_local, store_error};

/// A directory in memory whose syncs can be made to fail and to take their time.
#[derive(Debug, Default)]
struct Disk {
    objects: InMemory,
    /// The syncs of the directory that certify.
    syncs: AtomicUsize,
    certifying_fails: AtomicBool,
    /// How the next puts end, after their link.
    puts: Mutex<VecDeque<End>>,
}

#[derive(Clone, Debug)]
enum End {
    SyncFails,
    LinkFails,
    /// After a turn of the gate.
    Waits(Arc<Semaphore>),
    WaitsAndSyncFails(Arc<Semaphore>),
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a disk")
    }
}

fn unable_to_rename() -> ClientError {
    let source = "Unable to rename file: I/O error".into();
    ClientError::Generic { store: "LocalFileSystem", source }
}

impl Directory for Arc<Disk> {
    fn sync_parent(&self, _: &Path) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        // As the system does, an error is told once.
        if self.certifying_fails.swap(false, Ordering::SeqCst) {
            return Err(io::Error::other("I/O error"));
        }
        Ok(())
    }
}

#[async_trait]
impl ObjectStore for Disk {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let end = self.puts.lock().unwrap().pop_front();
        if matches!(end, Some(End::LinkFails)) {
            return Err(unable_to_rename());
        }
        let put = self.objects.put_opts(location, payload, options).await?;
        match end {
            Some(End::SyncFails) => return Err(unable_to_rename()),
            Some(End::Waits(gate)) => gate.acquire().await.unwrap().forget(),
            Some(End::WaitsAndSyncFails(gate)) => {
                gate.acquire().await.unwrap().forget();
                return Err(unable_to_rename());
            }
            Some(End::LinkFails) | None => {}
        }
        Ok(put)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

struct Log {
    disk: Arc<Disk>,
    store: Arc<dyn ObjectStore>,
}

impl Log {
    fn new(ends: impl IntoIterator<Item = End>) -> Log {
        let disk =
            Arc::new(Disk { puts: Mutex::new(ends.into_iter().collect()), ..Disk::default() });
        Log { store: Arc::new(Durable::new(disk.clone())), disk }
    }

    /// A log whose store has put something, which a reading alone has not.
    async fn written(ends: impl IntoIterator<Item = End>) -> Log {
        let log = Log::new([]);
        log.put("first").await.unwrap();
        log.disk.puts.lock().unwrap().extend(ends);
        log
    }

    fn syncs(&self) -> usize {
        self.disk.syncs.load(Ordering::SeqCst)
    }

    async fn put(&self, name: &str) -> Result<(), StoreErrorKind> {
        let payload = PutPayload::from_static(&[7; 60]);
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(&key(name), payload, options).await;
        put.map(drop).map_err(|error| store_error(Operation::Create, error).kind)
    }

    /// A put that its caller gives up after it was begun.
    async fn put_and_give_up(&self, name: &str) {
        let limit = Duration::from_millis(20);
        assert!(tokio::time::timeout(limit, self.put(name)).await.is_err());
    }

    async fn read_back(&self, name: &str) -> Result<ReadBack, StoreErrorKind> {
        read_back(&self.store, name).await
    }

    async fn refused_for_ever(&self, name: &str) {
        for _ in 0..3 {
            let effect = read_back_effect(name);
            match carry_out(&self.store, effect, |_| pending()).await {
                StorageAnswer::ReadBackResult { result: Err(error), .. } => {
                    assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
                    assert!(error.to_string().contains("proves nothing"), "{error}");
                }
                other => panic!("{other:?}"),
            }
            let error = self.store.head(&key(name)).await.unwrap_err();
            assert!(error.to_string().contains("proves nothing"), "{error}");
        }
    }
}

fn key(name: &str) -> Path {
    Path::from(format!("p/objects/{name}"))
}

fn read_back_effect(name: &str) -> StorageEffect {
    let key = key(name).as_ref().into();
    StorageEffect::ReadBack { id: RequestId(1), key, time_limit: Duration::from_secs(30) }
}

async fn read_back(store: &Arc<dyn ObjectStore>, name: &str) -> Result<ReadBack, StoreErrorKind> {
    match carry_out(store, read_back_effect(name), |_| pending()).await {
        StorageAnswer::ReadBackResult { result, .. } => result.map_err(|error| error.kind),
        other => panic!("{other:?}"),
    }
}

fn names(found: Vec<ObjectMeta>) -> Vec<String> {
    let name = |meta: &ObjectMeta| meta.location.filename().unwrap().to_owned();
    let mut names: Vec<_> = found.iter().map(name).collect();
    names.sort();
    names
}

/// Without a runtime, and with one whose blocking threads are used.
fn both_ways<F: Future<Output = ()>>(check: impl Fn() -> F) {
    block_on(check());
    runtime().block_on(check());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[test]
fn an_object_whose_sync_failed_is_refused_and_never_certified() {
    both_ways(async || {
        let log = Log::new([End::SyncFails]);
        assert_eq!(log.put("0").await, Err(StoreErrorKind::Refused));
        log.refused_for_ever("0").await;
        // The same bytes again, as in `enqueued`: they are there, and prove no more than before.
        assert_eq!(log.put("0").await, Err(StoreErrorKind::Exists));
        log.refused_for_ever("0").await;
        assert_eq!(log.syncs(), 0);
        // Others are not concerned.
        log.put("1").await.unwrap();
        assert_eq!(log.read_back("1").await.unwrap().size, 60);
    });
}

#[test]
fn a_link_that_failed_leaves_nothing_to_distrust() {
    both_ways(async || {
        let log = Log::new([End::LinkFails]);
        assert_eq!(log.put("0").await, Err(StoreErrorKind::Refused));
        assert_eq!(log.read_back("0").await, Err(StoreErrorKind::NotFound));
        log.put("0").await.unwrap();
        assert_eq!(log.read_back("0").await.unwrap().size, 60);
    });
}

#[test]
fn a_header_read_syncs_the_directory_before_it_answers() {
    both_ways(async || {
        let log = Log::written([]).await;
        let header = GetRange::Bounded(0..HEADER_LEN as u64);
        let options = GetOptions { range: Some(header), ..GetOptions::default() };
        log.store.get_opts(&key("first"), options).await.unwrap();
        assert_eq!(log.syncs(), 1);
        log.store.head(&key("first")).await.unwrap();
        assert_eq!(log.syncs(), 2);
        log.read_back("first").await.unwrap();
        assert_eq!(log.syncs(), 3);
    });
}

#[test]
fn what_certifies_nothing_does_not_sync() {
    both_ways(async || {
        let log = Log::written([]).await;
        for range in [0..53, 0..55, 1..54, 10..20] {
            log.store.get_range(&key("first"), range).await.unwrap();
        }
        log.store.get(&key("first")).await.unwrap();
        assert_eq!(log.read_back("missing").await, Err(StoreErrorKind::NotFound));
        assert_eq!(log.syncs(), 0);
        // Nor does a store that only reads.
        let reader: Arc<dyn ObjectStore> = Arc::new(Durable::new(log.disk.clone()));
        read_back(&reader, "first").await.unwrap();
        assert_eq!(log.syncs(), 0);
    });
}

#[test]
fn a_sync_that_fails_before_an_answer_refuses_it_for_ever() {
    both_ways(async || {
        let log = Log::written([]).await;
        log.disk.certifying_fails.store(true, Ordering::SeqCst);
        assert_eq!(log.read_back("first").await, Err(StoreErrorKind::Refused));
        log.refused_for_ever("first").await;
        assert_eq!(log.syncs(), 1);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_was_given_up_is_certified_only_once_it_and_a_sync_succeeded() {
    let gate = Arc::new(Semaphore::new(0));
    let log = Log::new([End::Waits(gate.clone())]);
    log.put_and_give_up("0").await;
    let mut read_back = pin!(log.read_back("0"));
    let early = tokio::time::timeout(Duration::from_millis(20), read_back.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(log.syncs(), 0);
    gate.add_permits(1);
    assert_eq!(read_back.await.unwrap().size, 60);
    assert_eq!(log.syncs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_was_given_up_and_whose_sync_fails_later_is_never_certified() {
    let gate = Arc::new(Semaphore::new(0));
    let log = Log::new([End::WaitsAndSyncFails(gate.clone())]);
    log.put_and_give_up("0").await;
    gate.add_permits(1);
    log.refused_for_ever("0").await;
    assert_eq!(log.syncs(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_fails_the_puts_that_are_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let log = Log::new([End::Waits(gate.clone()), End::SyncFails]);
    let mut slow = pin!(log.put("0"));
    let early = tokio::time::timeout(Duration::from_millis(20), slow.as_mut()).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(log.put("1").await, Err(StoreErrorKind::Refused));
    gate.add_permits(1);
    assert_eq!(slow.await, Err(StoreErrorKind::Refused));
    log.refused_for_ever("0").await;
}

#[test]
fn a_put_whose_end_no_one_knows_is_never_certified() {
    let gate = Arc::new(Semaphore::new(0));
    let log = Log::new([End::Waits(gate)]);
    let first = runtime();
    first.block_on(log.put_and_give_up("0"));
    drop(first);
    runtime().block_on(log.refused_for_ever("0"));
}

#[test]
fn a_real_directory_is_written_listed_and_certified() {
    both_ways(async || {
        let parent = tempfile::tempdir().unwrap();
        let location = open_local(parent.path().join("p"), false).unwrap();
        let put = |name: &str, bytes: &'static [u8]| {
            let effect = StorageEffect::PutObject {
                id: RequestId(1),
                key: key(name).as_ref().into(),
                payload: Payload::new(vec![Bytes::from_static(bytes)]),
                time_limit: Duration::from_secs(30),
            };
            let store = location.store.clone();
            async move {
                match carry_out(&store, effect, |_| pending()).await {
                    StorageAnswer::CreateResult { result, .. } => result.map_err(|e| e.kind),
                    other => panic!("{other:?}"),
                }
            }
        };
        put("1", &[7; 120]).await.unwrap();
        put("2", b"short").await.unwrap();
        assert_eq!(put("1", b"other").await, Err(StoreErrorKind::Exists));
        let store = &location.store;
        let of = |bytes: &'static [u8]| Ok(ReadBack::of(&Bytes::from_static(bytes)));
        assert_eq!(read_back(store, "1").await, of(&[7; 120]));
        assert_eq!(read_back(store, "2").await, of(b"short"));
        assert_eq!(read_back(store, "3").await, Err(StoreErrorKind::NotFound));
        // What a killed process leaves is not shown.
        std::fs::write(parent.path().join("p/objects/3#1"), "half").unwrap();
        let found = store.list(Some(&key(""))).try_collect().await.unwrap();
        assert_eq!(names(found), ["1", "2"]);
        let found = store.list_with_offset(Some(&key("")), &key("1")).try_collect().await.unwrap();
        assert_eq!(names(found), ["2"]);
    });
}

/// The sync that fails is the client's own: the directory is gone when it is to be synced.
#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_synced_certifies_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let client = LocalFileSystem::new_with_prefix(parent.path()).unwrap();
    let store = Files::new(client, parent.path(), Path::default(), None);
    let error = store.sync_parent(&key("1")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let mapped = store_error(Operation::ReadBack, failed_sync(&key("1"), error));
    assert_eq!(mapped.kind, StoreErrorKind::Refused, "{mapped}");
    assert!(mapped.to_string().contains("p/objects/1"), "{mapped}");
    std::fs::create_dir_all(parent.path().join("p/objects")).unwrap();
    store.sync_parent(&key("1")).unwrap();
}
