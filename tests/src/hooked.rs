//! A store around another one that tells of each request, before it is made and after it was
//! answered, and lets whoever listens delay it, answer it with an error, or end the process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use serde::{Deserialize, Serialize};

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// An object's creation.
    Put,
    /// An object, or a range of it.
    Get,
    /// A listing.
    List,
}

/// A moment in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// It did not reach the store yet.
    Before,
    /// The store has answered it, and the client does not know yet.
    After,
}

/// A request at one of its moments.
#[derive(Clone, Debug)]
pub struct Request {
    /// Counted from 1 on, over all kinds.
    pub number: u64,
    /// What is asked.
    pub asked: Asked,
    /// Of which key, or of which keys.
    pub key: String,
    /// When.
    pub moment: Moment,
}

/// Told of each request at both moments. An error of its takes the place of the answer, and of
/// the request if it comes before.
pub type Hook = Arc<dyn Fn(Request) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A store that tells a hook of each request.
pub struct Hooked {
    inner: Arc<dyn ObjectStore>,
    hook: Hook,
    requests: Arc<AtomicU64>,
}

impl Hooked {
    /// Puts a hook around a store.
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        hook: impl Fn(Request) -> BoxFuture<'static, Result<()>> + Send + Sync + 'static,
    ) -> Arc<Hooked> {
        Arc::new(Hooked { inner, hook: Arc::new(hook), requests: Arc::default() })
    }

    fn request(&self, asked: Asked, key: &str) -> Request {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        Request { number, asked, key: key.to_owned(), moment: Moment::Before }
    }

    async fn surround<T>(
        &self,
        asked: Asked,
        key: &Path,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let request = self.request(asked, key.as_ref());
        (self.hook)(request.clone()).await?;
        let answer = work.await;
        (self.hook)(Request { moment: Moment::After, ..request }).await?;
        answer
    }

    fn surround_listing(
        &self,
        prefix: Option<&Path>,
        listing: impl FnOnce() -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let request = self.request(Asked::List, prefix.map_or("", |prefix| prefix.as_ref()));
        let hook = self.hook.clone();
        let whole = async move {
            if let Err(error) = hook(request.clone()).await {
                return vec![Err(error)];
            }
            let listed = listing().collect().await;
            match hook(Request { moment: Moment::After, ..request }).await {
                Ok(()) => listed,
                Err(error) => vec![Err(error)],
            }
        };
        stream::once(whole).flat_map(stream::iter).boxed()
    }
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooked({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Hooked {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = self.inner.put_opts(location, payload, options);
        self.surround(Asked::Put, location, put).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.surround(Asked::Get, location, self.inner.get_opts(location, options)).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, owned) = (self.inner.clone(), prefix.cloned());
        self.surround_listing(prefix, move || inner.list(owned.as_ref()))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (inner, owned, offset) = (self.inner.clone(), prefix.cloned(), offset.clone());
        self.surround_listing(prefix, move || inner.list_with_offset(owned.as_ref(), &offset))
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
        self.inner.delete_stream(locations)
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("the log lists without a delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("the log copies nothing")
    }
}
