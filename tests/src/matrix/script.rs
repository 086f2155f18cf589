//! An object store that answers each request when, and as, it is told.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use sealog_core::format::TRAILER_LEN;
use tokio::sync::oneshot;

use super::machine::sequence_of;
use super::{Failure, How};

/// What is asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Put,
    Get,
    List,
    Delete,
}

/// The store.
pub(super) struct Script {
    inner: InMemory,
    state: Arc<Mutex<State>>,
    keys_per_delete: usize,
}

#[derive(Default)]
struct State {
    /// Requests wait for their answer; else each is answered well at once, deletes aside.
    holds: bool,
    ranges_fail: bool,
    pending: Vec<Pending>,
    /// The object whose read failed last: so does the question for its size that follows.
    unreadable: Option<(String, Failure)>,
}

struct Pending {
    asked: Asked,
    key: String,
    /// What a put would store.
    payload: Option<PutPayload>,
    answer: oneshot::Sender<How>,
}

impl Script {
    pub(super) fn new(keys_per_delete: usize) -> Arc<Script> {
        Arc::new(Script { inner: InMemory::new(), state: Arc::default(), keys_per_delete })
    }

    pub(super) fn hold(&self, holds: bool) {
        self.state().holds = holds;
    }

    pub(super) fn let_ranges_fail(&self) {
        self.state().ranges_fail = true;
    }

    /// Answers the oldest request of this kind at a key; of a listing the key is the prefix, of a
    /// delete all of its keys.
    pub(super) fn answer(&self, asked: Asked, key: &str, how: How) -> bool {
        let mut state = self.state();
        let waits = |pending: &Pending| {
            pending.asked == asked && pending.key == key && !pending.answer.is_closed()
        };
        let Some(at) = state.pending.iter().position(waits) else { return false };
        let pending = state.pending.remove(at);
        if let (Asked::Get, How::Fails(failure)) = (asked, how) {
            state.unreadable = Some((pending.key, failure));
        }
        pending.answer.send(how).is_ok()
    }

    /// The keys of the requests that somebody waits for, in order.
    pub(super) fn under_way(&self) -> Vec<String> {
        let state = self.state();
        let waiting = state.pending.iter().filter(|pending| !pending.answer.is_closed());
        waiting.map(|pending| pending.key.clone()).collect()
    }

    /// A put that nobody waits for any more lands.
    pub(super) async fn land(&self, key: &str) -> bool {
        let payload = {
            let mut state = self.state();
            let adrift = |pending: &Pending| pending.key == key && pending.answer.is_closed();
            let at = state.pending.iter().position(adrift);
            at.and_then(|at| state.pending.remove(at).payload)
        };
        let Some(payload) = payload else { return false };
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        drop(self.inner.put_opts(&Path::from(key), payload, options).await);
        true
    }

    pub(super) async fn plant(&self, key: &str, bytes: Bytes) {
        let planted = self.inner.put(&Path::from(key), bytes.into()).await;
        planted.unwrap_or_else(|error| panic!("{key}: {error}"));
    }

    /// Everything that is stored.
    pub(super) async fn objects(&self) -> Vec<(String, Bytes)> {
        let listed: Vec<ObjectMeta> =
            self.inner.list(None).try_collect().await.unwrap_or_else(|error| panic!("{error}"));
        let mut objects = Vec::new();
        for meta in listed {
            let found = self.inner.get(&meta.location).await;
            let bytes = match found {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", meta.location));
            objects.push((meta.location.to_string(), bytes));
        }
        objects
    }

    /// The same store, for what outlives a call.
    fn another(&self) -> Script {
        let keys_per_delete = self.keys_per_delete;
        Script { inner: self.inner.clone(), state: self.state.clone(), keys_per_delete }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How a request is to be answered; it may take a while.
    async fn how(&self, asked: Asked, key: &str, payload: Option<PutPayload>) -> How {
        let told = {
            let mut state = self.state();
            if !state.holds && asked != Asked::Delete {
                return How::Well;
            }
            let (answer, told) = oneshot::channel();
            state.pending.push(Pending { asked, key: key.to_owned(), payload, answer });
            told
        };
        told.await.unwrap_or(How::Fails(Failure::Reset))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

/// A shell tells by the name how many keys a delete takes.
impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys_per_delete {
            1 => f.write_str("Script"),
            _ => f.write_str("AmazonS3(Script)"),
        }
    }
}

#[async_trait]
impl ObjectStore for Script {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let key = location.as_ref();
        match self.how(Asked::Put, key, Some(payload.clone())).await {
            How::Well => self.inner.put_opts(location, payload, options).await,
            How::Fails(failure) | How::AllBut(_, failure) => Err(failure.of_client(key)),
            How::DoneBut(failure) => {
                drop(self.inner.put_opts(location, payload, options).await);
                Err(failure.of_client(key))
            }
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let key = location.as_ref();
        if options.head {
            let unreadable = self.state().unreadable.take();
            if let Some((of, failure)) = unreadable
                && of == key
            {
                return Err(failure.of_client(key));
            }
            return self.inner.get_opts(location, options).await;
        }
        // The second half of a read-back: the answer was decided with the first.
        let is_end = matches!(&options.range, Some(GetRange::Bounded(range))
            if range.start > 0 && range.end - range.start == TRAILER_LEN as u64);
        let how = if is_end { How::Well } else { self.how(Asked::Get, key, None).await };
        match how {
            How::Well => {}
            How::Fails(failure) | How::DoneBut(failure) | How::AllBut(_, failure) => {
                return Err(failure.of_client(key));
            }
        }
        if self.state().ranges_fail
            && let Some(GetRange::Bounded(range)) = &options.range
            && range.end > self.inner.head(location).await?.size
        {
            let source = "416 Range Not Satisfiable".into();
            return Err(Error::Generic { store: "S3", source });
        }
        self.inner.get_opts(location, options).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let asked = prefix.map_or_else(String::new, |prefix| prefix.as_ref().to_owned());
        let (script, prefix) = (self.another(), prefix.cloned());
        let listing = async move {
            match script.how(Asked::List, &asked, None).await {
                How::Well => Ok(script.inner.list(prefix.as_ref())),
                How::Fails(failure) | How::DoneBut(failure) | How::AllBut(_, failure) => {
                    Err(failure.of_client(&asked))
                }
            }
        };
        stream::once(listing).try_flatten().boxed()
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let script = self.another();
        let answers = async move {
            let keys: Vec<Path> = locations.try_collect().await?;
            let asked: Vec<&str> = keys.iter().map(Path::as_ref).collect();
            let how = script.how(Asked::Delete, &asked.join(" "), None).await;
            let mut answers = Vec::new();
            for key in keys {
                let sequence = sequence_of(key.as_ref());
                let (is_done, failure) = match how {
                    How::Well => (true, None),
                    How::Fails(failure) => (false, Some(failure)),
                    How::DoneBut(failure) => (true, Some(failure)),
                    How::AllBut(failing, failure) if failing.contains(&sequence) => {
                        (false, Some(failure))
                    }
                    How::AllBut(..) => (true, None),
                };
                if is_done {
                    drop(script.inner.delete(&key).await);
                }
                answers.push(match failure {
                    Some(failure) => Err(failure.of_client(key.as_ref())),
                    None => Ok(key),
                });
            }
            Ok::<_, Error>(stream::iter(answers))
        };
        stream::once(answers).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
