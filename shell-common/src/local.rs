//! A local directory as a store whose answers can be relied on as those of a remote one.
//!
//! The client's store of local files leaves open that an object can be read before its directory
//! entry is durable (see [`Durable`]). That a listing has no order is the core's to judge.

mod files;
mod home;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as ClientError, GetOptions, GetRange, GetResult, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, RenameOptions, Result,
};
use sealog_core::format::HEADER_LEN;
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub(crate) use files::Files;
pub(crate) use home::Home;

use crate::error::LOCAL;

/// A store of local files that certifies an object only if it is durable.
///
/// **Reads that certify.** The client writes an object to a temporary file, syncs and closes that,
/// links it to its name, and then syncs the directory. So the bytes of whatever has its name are
/// durable, its entry need not be: the put may be between the last two steps, with no one waiting
/// for it any more, or it may have failed at the last. By a read of the header (or of the size
/// alone) the core decides whether an object is its own and durable after all. Such a read
///
/// - waits until no put of that key is under way, also one that the caller gave up: it is the put
///   that learns of a failed sync, and the system tells that only once;
/// - is refused, for the life of the store, if a sync failed that may have been the key's: that a
///   later one succeeds proves nothing, since the system may have dropped what it could not write;
/// - syncs the directory before it answers, and is refused if that is not at its path any more.
///
/// Before this store has put anything there is nothing to certify: what an opening reads is made
/// durable by the sync of the directory that its own put ends with, and reading alone needs no
/// sync.
///
/// **Puts** run to their end when the caller drops them. One that succeeds fails all the same if
/// it is known by then that a sync of another's entry failed meanwhile, which may have been the one
/// to write this entry.
///
/// Everything else is as the inner store does it.
pub(crate) struct Durable<S> {
    inner: Arc<S>,
    entries: Arc<Entries>,
}

/// Where the objects of a store have their names.
pub(crate) trait Directory: Send + Sync + 'static {
    /// Makes the entries of the directory that holds `key` durable. Blocks.
    fn sync_parent(&self, key: &Path) -> io::Result<()>;

    /// That the directory that holds `key` is still the one that was opened. Blocks.
    fn stands(&self, _key: &Path) -> Result<()> {
        Ok(())
    }
}

impl<S: ObjectStore + Directory> Durable<S> {
    pub(crate) fn new(inner: S) -> Durable<S> {
        Durable { inner: Arc::new(inner), entries: Arc::default() }
    }

    async fn certify(&self, key: &Path) -> Result<()> {
        if !self.entries.state().has_put {
            return Ok(());
        }
        self.entries.no_put_of(key).await;
        let (inner, entries, key) = (self.inner.clone(), self.entries.clone(), key.clone());
        blocking(move || {
            // One at a time, to the end and with its failure noted, also when the caller is gone:
            // otherwise the next could find the failure told already and not noted yet.
            let _alone = entries.syncing.lock().unwrap_or_else(PoisonError::into_inner);
            if entries.state().distrusted.contains(&key) {
                return Err(distrusted(&key));
            }
            inner.sync_parent(&key).map_err(|error| {
                entries.state().sync_failed(&key);
                failed_sync(&key, error)
            })?;
            inner.stands(&key)
        })
        .await
    }
}

#[async_trait]
impl<S: ObjectStore + Directory> ObjectStore for Durable<S> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let put = Put::begin(&self.entries, location);
        let inner = self.inner.clone();
        let work = async move {
            let result = inner.put_opts(&put.key, payload, options).await;
            put.ended(inner.as_ref(), result).await
        };
        match Handle::try_current() {
            // A task of its own, since its end must be noted also when the caller is gone.
            Ok(runtime) => runtime.spawn(work).await?,
            // Then the client blocks, and nothing can be dropped on the way.
            Err(_) => work.await,
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        const HEADER: Range<u64> = 0..HEADER_LEN as u64;
        let certifies = options.head || options.range == Some(GetRange::Bounded(HEADER));
        // First the read, then the sync: an entry that appears in between is not synced by it.
        let found = self.inner.get_opts(location, options).await?;
        if certifies {
            self.certify(location).await?;
        }
        Ok(found)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

impl<S: fmt::Debug> fmt::Debug for Durable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<S: fmt::Display> fmt::Display for Durable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// What is known of the durability of directory entries.
#[derive(Default)]
struct Entries {
    state: Mutex<State>,
    put_ended: Notify,
    /// Held during a sync that certifies.
    syncing: Mutex<()>,
}

#[derive(Default)]
struct State {
    has_put: bool,
    /// The keys of the puts that have not ended, with how many of each there are.
    under_way: BTreeMap<Path, usize>,
    failed_syncs: u64,
    /// The keys whose entry a failed sync may have lost.
    distrusted: BTreeSet<Path>,
}

impl Entries {
    /// Locked for a moment only, never during a request.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn no_put_of(&self, key: &Path) {
        loop {
            let mut ended = pin!(self.put_ended.notified());
            // From here on, so that one that ends before the wait is not missed.
            ended.as_mut().enable();
            if !self.state().under_way.contains_key(key) {
                return;
            }
            ended.await;
        }
    }
}

impl State {
    /// Entries of the puts under way may have been written by the same sync.
    fn sync_failed(&mut self, key: &Path) {
        self.failed_syncs += 1;
        self.distrusted.insert(key.clone());
        self.distrusted.extend(self.under_way.keys().cloned());
    }
}

/// A put that is under way. One that is dropped before its end, as when its runtime goes away,
/// leaves an entry that no one knows about.
struct Put {
    entries: Arc<Entries>,
    key: Path,
    failed_syncs_before: u64,
    has_ended: bool,
}

impl Put {
    fn begin(entries: &Arc<Entries>, key: &Path) -> Put {
        let mut state = entries.state();
        state.has_put = true;
        *state.under_way.entry(key.clone()).or_default() += 1;
        Put {
            entries: entries.clone(),
            key: key.clone(),
            failed_syncs_before: state.failed_syncs,
            has_ended: false,
        }
    }

    async fn ended(
        mut self,
        store: &dyn ObjectStore,
        result: Result<PutResult>,
    ) -> Result<PutResult> {
        let may_have_lost_it = match &result {
            Err(error) if may_be_failed_sync(error) => is_there(store, &self.key).await,
            _ => false,
        };
        let mut state = self.entries.state();
        let another_may_have = state.failed_syncs != self.failed_syncs_before;
        if may_have_lost_it {
            state.sync_failed(&self.key);
        }
        drop(state);
        self.has_ended = true;
        if result.is_ok() && another_may_have { Err(distrusted(&self.key)) } else { result }
    }
}

impl Drop for Put {
    fn drop(&mut self) {
        let mut state = self.entries.state();
        if !self.has_ended {
            state.distrusted.insert(self.key.clone());
        }
        if let Some(count) = state.under_way.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.under_way.remove(&self.key);
            }
        }
        drop(state);
        self.entries.put_ended.notify_waiters();
    }
}

/// Whether the client's error is that of a failed sync of the directory. Its text is that of a
/// failed link too: then the key is not there.
fn may_be_failed_sync(error: &ClientError) -> bool {
    matches!(error, ClientError::Generic { store, source }
        if *store == LOCAL && source.to_string().starts_with("Unable to rename file"))
}

async fn is_there(store: &dyn ObjectStore, key: &Path) -> bool {
    let head = GetOptions { head: true, ..GetOptions::default() };
    !matches!(store.get_opts(key, head).await, Err(ClientError::NotFound { .. }))
}

/// Something that the system would not do, in the client's words and with the system's as the cause.
fn failed(what: String, source: io::Error) -> ClientError {
    ClientError::Generic { store: LOCAL, source: Box::new(Failed { what, source }) }
}

#[derive(Debug)]
struct Failed {
    what: String,
    source: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.source)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn failed_sync(key: &Path, error: io::Error) -> ClientError {
    refused(format!("for the directory of {key}: {error}"))
}

fn distrusted(key: &Path) -> ClientError {
    refused(format!(
        "for the directory of {key} earlier: that it succeeds later proves nothing, since the \
         system may have dropped what it could not write"
    ))
}

/// With the client's own text for a failed sync, by which its errors are mapped.
fn refused(text: String) -> ClientError {
    let source = format!("Unable to sync data to disk {text}").into();
    ClientError::Generic { store: LOCAL, source }
}

/// Where the client does its own blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await?,
        Err(_) => work(),
    }
}

#[cfg(test)]
mod tests;
