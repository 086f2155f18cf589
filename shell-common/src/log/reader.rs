//! Reading a log beside whoever writes it.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use object_store::ObjectStore;
use sealog_core::opening::Opening;
use sealog_core::read::{ReplayFilter, SegmentRef};
use sealog_core::{EntryId, Error, Options, Prefix, RegionId, Verdict, View};
use tokio::sync::{Mutex, oneshot};

use super::opening::drive;
use super::source::Source;
use super::{Read, Replay, Runtime};

/// A log that is open to be read, beside a running writer or without one: a handle, cheap to clone,
/// of what a listing showed. It never writes. What a call means is said by the shells' `Reader`.
pub struct Reader<R: Runtime>(Arc<Shared<R>>);

struct Shared<R> {
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
    view: RwLock<Arc<View>>,
    /// How many refreshes were begun; it grows only while `ended` is locked.
    begun: AtomicU64,
    /// The refresh that ended last, and how. One at a time runs.
    ended: Mutex<Option<(u64, Result<(), Error>)>>,
    runtime: R,
    /// Tells by its end that the last handle is gone.
    _life: oneshot::Sender<Infallible>,
}

impl<R: Runtime> Reader<R> {
    /// Opens the log under `prefix` of a store to read it: gives the first handle, and a future
    /// that ends once the last one is gone and with it every read, for a shell whose runtime is
    /// there for the reader alone.
    ///
    /// # Errors
    ///
    /// Those of a read-only opening.
    pub async fn open(
        runtime: R,
        store: Arc<dyn ObjectStore>,
        prefix: Prefix,
        options: Options,
    ) -> Result<(Reader<R>, impl Future<Output = ()> + Send + 'static), Error> {
        let opening = Opening::read_only(runtime.now(), prefix.clone(), options.clone())?;
        let view = drive(&runtime, &store, &prefix, opening).await?;
        let (life, end) = oneshot::channel();
        let reader = Reader(Arc::new(Shared {
            store,
            prefix,
            options,
            view: RwLock::new(view.into()),
            begun: AtomicU64::new(0),
            ended: Mutex::default(),
            runtime,
            _life: life,
        }));
        Ok((reader, async { drop(end.await) }))
    }

    /// Looks at the log again. Whoever calls while a look is under way has the next one in common
    /// with all who do.
    ///
    /// # Errors
    ///
    /// Those of a read-only opening; the reader then goes on with what it has.
    pub async fn refresh(&self) -> Result<(), Error> {
        let reader = self.clone();
        let look = self.0.runtime.spawn(async move { reader.look_again(|_| false).await });
        look.await.unwrap_or(Err(Error::Stopped))
    }

    /// Sees to it that the view is of a listing that began after this call did, or does already.
    async fn look_again(&self, does: impl Fn(&View) -> bool) -> Result<(), Error> {
        let begun = self.0.begun.load(Ordering::SeqCst);
        let mut ended = self.0.ended.lock().await;
        if does(&self.view()) {
            return Ok(());
        }
        if let Some((number, result)) = &*ended
            && *number > begun
        {
            return result.clone();
        }
        let number = self.0.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let Shared { store, prefix, runtime, .. } = &*self.0;
        let opening = Opening::refresh(runtime.now(), &self.view());
        let result = drive(runtime, store, prefix, opening).await.map(|view| {
            *self.0.view.write().unwrap_or_else(PoisonError::into_inner) = view.into();
        });
        *ended = Some((number, result.clone()));
        result
    }

    /// Reads a region from `from` on, as far as the reader sees it now.
    pub fn read(&self, region: RegionId, from: EntryId) -> Read<R> {
        Read::new(Source::Reader(self.clone()), region, from)
    }

    /// Reads many regions in one pass, as far as the reader sees them now.
    pub fn replay(&self, filter: ReplayFilter) -> Replay<R> {
        Replay::new(Source::Reader(self.clone()), filter)
    }

    /// What the reader sees now.
    pub fn view(&self) -> Arc<View> {
        self.0.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.0.prefix
    }

    /// The options that the reader was opened with.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// That an object is gone is true for ever; that it is there needs a newer view.
    pub(crate) async fn verdict(&self, segment: SegmentRef) -> Option<Verdict> {
        self.look_again(|view| view.verdict(segment) == Verdict::Gone).await.ok()?;
        Some(self.view().verdict(segment))
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.0.store
    }

    pub(crate) fn runtime(&self) -> &R {
        &self.0.runtime
    }
}

impl<R: Runtime> Clone for Reader<R> {
    fn clone(&self) -> Reader<R> {
        Reader(self.0.clone())
    }
}

impl<R: Runtime> fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("prefix", &self.0.prefix.as_str())
            .field("tip", &self.view().tip())
            .finish_non_exhaustive()
    }
}
