//! A store in memory that does as a test says.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use sealog_tokio::object_store;
use tokio::sync::Semaphore;

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Put,
    Get,
    List,
    Delete,
}

/// What the store does with it.
pub(crate) enum Reaction {
    Pass,
    Fail(Error),
    /// Done once [`TestStore::let_pass`] allows it.
    Wait,
    Hang,
    Panic,
    /// Of a put: whatever its condition says.
    Overwrite,
    /// Of a put or a delete: done, and then this answer.
    DoAndFail(Error),
}

type Rule = Arc<dyn Fn(Asked, &str) -> Reaction + Send + Sync>;

pub(crate) struct TestStore {
    inner: Arc<InMemory>,
    script: Arc<Script>,
}

struct Script {
    rule: Mutex<Rule>,
    gate: Semaphore,
    asked: Mutex<Vec<(Asked, String)>>,
    fetched: AtomicU64,
    gets: AtomicUsize,
}

impl TestStore {
    pub(crate) fn new() -> Arc<TestStore> {
        let script = Script {
            rule: Mutex::new(Arc::new(|_, _| Reaction::Pass)),
            gate: Semaphore::new(0),
            asked: Mutex::new(Vec::new()),
            fetched: AtomicU64::new(0),
            gets: AtomicUsize::new(0),
        };
        Arc::new(TestStore { inner: Arc::new(InMemory::new()), script: Arc::new(script) })
    }

    /// From now on the store reacts like this.
    pub(crate) fn react(&self, rule: impl Fn(Asked, &str) -> Reaction + Send + Sync + 'static) {
        *self.script.rule.lock().unwrap() = Arc::new(rule);
    }

    pub(crate) fn hold(&self, what: Asked) {
        self.react(move |asked, _| if asked == what { Reaction::Wait } else { Reaction::Pass });
    }

    pub(crate) fn behave(&self) {
        self.react(|_, _| Reaction::Pass);
    }

    pub(crate) fn let_pass(&self, requests: usize) {
        self.script.gate.add_permits(requests);
    }

    /// How often this was asked so far.
    pub(crate) fn count(&self, what: Asked) -> usize {
        self.script.asked.lock().unwrap().iter().filter(|(asked, _)| *asked == what).count()
    }

    /// How many bytes were fetched so far.
    pub(crate) fn fetched(&self) -> u64 {
        self.script.fetched.load(Ordering::Relaxed)
    }

    /// How many fetches were begun, and neither answered nor given up.
    pub(crate) fn under_way(&self) -> usize {
        self.script.gets.load(Ordering::Relaxed)
    }

    /// Replaces what stands at a key, behind the log's back.
    pub(crate) async fn plant(&self, key: &str, bytes: Vec<u8>) {
        self.inner.put(&Path::from(key), bytes.into()).await.unwrap();
    }

    pub(crate) async fn bytes(&self, key: &str) -> Vec<u8> {
        self.inner.get(&Path::from(key)).await.unwrap().bytes().await.unwrap().to_vec()
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> =
            self.inner.list(None).map(|meta| meta.unwrap().location.to_string()).collect().await;
        keys.sort();
        keys
    }
}

impl Script {
    async fn reaction(&self, asked: Asked, key: &str) -> Result<Reaction> {
        self.asked.lock().unwrap().push((asked, key.to_owned()));
        let rule = self.rule.lock().unwrap().clone();
        match rule(asked, key) {
            Reaction::Fail(error) => return Err(error),
            Reaction::Wait => self.gate.acquire().await.unwrap().forget(),
            Reaction::Hang => pending().await,
            Reaction::Panic => panic!("the client fell over"),
            other => return Ok(other),
        }
        Ok(Reaction::Pass)
    }
}

/// Counts a request for as long as it is there.
struct UnderWay<'a>(&'a AtomicUsize);

impl UnderWay<'_> {
    fn new(counter: &AtomicUsize) -> UnderWay<'_> {
        counter.fetch_add(1, Ordering::Relaxed);
        UnderWay(counter)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn broken() -> Error {
    Error::Generic { store: "test", source: "connection reset".into() }
}

pub(crate) fn not_there() -> Error {
    Error::NotFound { path: String::from("there"), source: "NoSuchKey".into() }
}

pub(crate) fn forbidden() -> Error {
    Error::PermissionDenied { path: String::from("there"), source: "403".into() }
}

pub(crate) fn no_bucket() -> Error {
    Error::NotFound { path: String::from("there"), source: "NoSuchBucket".into() }
}

impl fmt::Debug for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

impl fmt::Display for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

#[async_trait]
impl ObjectStore for TestStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        match self.script.reaction(Asked::Put, location.as_ref()).await? {
            Reaction::Overwrite => options.mode = PutMode::Overwrite,
            Reaction::DoAndFail(error) => {
                self.inner.put_opts(location, payload, options).await?;
                return Err(error);
            }
            _ => {}
        }
        self.inner.put_opts(location, payload, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let _under_way = UnderWay::new(&self.script.gets);
        self.script.reaction(Asked::Get, location.as_ref()).await?;
        let found = self.inner.get_opts(location, options).await?;
        self.script.fetched.fetch_add(found.range.end - found.range.start, Ordering::Relaxed);
        Ok(found)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let asked = prefix.map_or("", |prefix| prefix.as_ref());
        self.script.asked.lock().unwrap().push((Asked::List, asked.to_owned()));
        let rule = self.script.rule.lock().unwrap().clone();
        match rule(Asked::List, asked) {
            Reaction::Pass => self.inner.list(prefix),
            Reaction::Fail(error) => stream::iter([Err(error)]).boxed(),
            _ => stream::pending().boxed(),
        }
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("the log makes no multipart uploads")
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (inner, script) = (self.inner.clone(), self.script.clone());
        let delete = move |location: Result<Path>| {
            let (inner, script) = (inner.clone(), script.clone());
            async move {
                let location = location?;
                let reaction = script.reaction(Asked::Delete, location.as_ref()).await?;
                inner.delete(&location).await?;
                match reaction {
                    Reaction::DoAndFail(error) => Err(error),
                    _ => Ok(location),
                }
            }
        };
        locations.then(delete).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("the log lists without a delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("the log copies nothing")
    }
}
