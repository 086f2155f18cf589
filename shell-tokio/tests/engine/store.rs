//! A bucket in memory, and clients of it that a test can cut off or let fail.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use sealog_tokio::object_store;
use tokio::sync::Notify;

/// A request, before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Put,
    Get,
    List,
    Delete,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Done,
    /// Fails in a way that may pass, and is not done.
    Fails,
    /// Fails for good, and is not done.
    Refused,
    /// Done, and fails all the same.
    DoneAndFails,
    /// The process ends before it is made.
    CutBefore,
    /// The process ends before its answer comes.
    CutAfter,
}

type Rule = Arc<dyn Fn(Asked, &str) -> Fate + Send + Sync>;

/// A process's client of the bucket. Once it is cut it asks for nothing more.
pub(crate) struct Client {
    inner: Arc<InMemory>,
    reach: Arc<Reach>,
}

struct Reach {
    rule: Mutex<Rule>,
    requests: AtomicUsize,
    cut: AtomicUsize,
    cutting: Notify,
}

impl Client {
    pub(crate) fn of(inner: &Arc<InMemory>) -> Arc<Client> {
        let reach = Reach {
            rule: Mutex::new(Arc::new(|_, _| Fate::Done)),
            requests: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
            cutting: Notify::new(),
        };
        Arc::new(Client { inner: inner.clone(), reach: Arc::new(reach) })
    }

    /// From now on this becomes of requests.
    pub(crate) fn rule(&self, rule: impl Fn(Asked, &str) -> Fate + Send + Sync + 'static) {
        *self.reach.rule.lock().unwrap() = Arc::new(rule);
    }

    pub(crate) fn behave(&self) {
        self.rule(|_, _| Fate::Done);
    }

    /// Cuts the process off at a request, counted from 1.
    pub(crate) fn cut_at(&self, number: usize, fate: Fate) {
        let counted = AtomicUsize::new(0);
        self.rule(move |_, _| match counted.fetch_add(1, Ordering::Relaxed) + 1 {
            at if at == number => fate,
            _ => Fate::Done,
        });
    }

    /// Ends the process now.
    pub(crate) fn cut(&self) {
        self.reach.cut.store(1, Ordering::Relaxed);
        self.reach.cutting.notify_one();
    }

    pub(crate) fn requests(&self) -> usize {
        self.reach.requests.load(Ordering::Relaxed)
    }

    /// Returns when the process has ended.
    pub(crate) async fn ended(&self) {
        self.reach.cutting.notified().await;
    }
}

impl Reach {
    /// What is still to be said after the request was made.
    async fn before(&self, asked: Asked, key: &str) -> Result<Fate> {
        if self.cut.load(Ordering::Relaxed) > 0 {
            pending::<()>().await;
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let rule = self.rule.lock().unwrap().clone();
        match rule(asked, key) {
            Fate::Fails => Err(broken()),
            Fate::Refused => {
                Err(Error::PermissionDenied { path: key.to_owned(), source: "403".into() })
            }
            Fate::CutBefore => self.end().await,
            fate => Ok(fate),
        }
    }

    async fn after(&self, fate: Fate) -> Result<()> {
        match fate {
            Fate::DoneAndFails => Err(broken()),
            Fate::CutAfter => self.end().await,
            _ => Ok(()),
        }
    }

    async fn end<T>(&self) -> T {
        self.cut.store(1, Ordering::Relaxed);
        self.cutting.notify_one();
        pending().await
    }
}

fn broken() -> Error {
    Error::Generic { store: "test", source: "connection reset".into() }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl ObjectStore for Client {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let fate = self.reach.before(Asked::Put, location.as_ref()).await?;
        let done = self.inner.put_opts(location, payload, options).await;
        self.reach.after(fate).await?;
        done
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let fate = self.reach.before(Asked::Get, location.as_ref()).await?;
        let done = self.inner.get_opts(location, options).await;
        self.reach.after(fate).await?;
        done
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, reach) = (self.inner.clone(), self.reach.clone());
        let prefix = prefix.cloned();
        let listing = async move {
            let asked = prefix.as_ref().map_or("", |prefix| prefix.as_ref());
            let fate = match reach.before(Asked::List, asked).await {
                Ok(fate) => fate,
                Err(error) => return stream::iter([Err(error)]).boxed(),
            };
            let found: Vec<_> = inner.list(prefix.as_ref()).collect().await;
            match reach.after(fate).await {
                Ok(()) => stream::iter(found).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(listing).flatten().boxed()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("nobody makes multipart uploads")
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let (inner, reach) = (self.inner.clone(), self.reach.clone());
        let delete = move |location: Result<Path>| {
            let (inner, reach) = (inner.clone(), reach.clone());
            async move {
                let location = location?;
                let fate = reach.before(Asked::Delete, location.as_ref()).await?;
                let done = inner.delete(&location).await;
                reach.after(fate).await?;
                done.map(|()| location)
            }
        };
        locations.then(delete).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("nobody lists with a delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("nobody copies")
    }
}
