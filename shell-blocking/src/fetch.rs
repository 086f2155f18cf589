//! Fetching what a tool wants of objects.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::ready;
use std::iter::FusedIterator;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::{Error, Key, Options};
use tokio::sync::oneshot;

use crate::executor::{Executor, Task};
use crate::open;
use crate::wait::wait;

/// Fetches objects, or ranges of them, for tools that look at a log: a survey says which there are,
/// and how large. It never writes. A handle, cheap to clone, for any number of threads; one
/// background thread of its own drives the requests.
#[derive(Clone)]
pub struct Fetcher {
    executor: Executor,
    store: Arc<dyn ObjectStore>,
    options: Arc<Options>,
    /// The thread ends with the last of them.
    _life: Arc<oneshot::Sender<Infallible>>,
}

impl Fetcher {
    /// A fetcher of a store's objects. Of the options count `request_timeout`, the time limit of each
    /// request, and `read_retry_for`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`]; [`Error::Store`] if the system has no thread to give.
    pub fn new(store: Arc<dyn ObjectStore>, options: Options) -> Result<Fetcher, Error> {
        options.validate()?;
        let (life, end) = oneshot::channel();
        let lend = |executor| ready(Ok((executor, async { drop(end.await) })));
        let executor = open::start("", lend)?;
        Ok(Fetcher { executor, store, options: Arc::new(options), _life: Arc::new(life) })
    }

    /// Fetches a range of an object, with one request per 16 MiB. What fails in a way that may pass is
    /// repeated, as a read does (DESIGN.md section 8). Nothing is asked for an empty range.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] with the key, also if fewer bytes are there: at once for what does not pass,
    /// else once [`Options::read_retry_for`] is over.
    pub fn fetch(&self, key: &Key, range: Range<u64>) -> Result<Bytes, Error> {
        wait(self.start(key.clone(), range)).unwrap_or(Err(Error::Stopped))
    }

    /// Fetches many, `at_once` at a time (at least one), and gives them in the order in which they
    /// are wanted, whatever became of those before. It begins with the first call of `next`, goes on
    /// between two calls, and holds as many in memory as are fetched at once. Dropping it abandons
    /// its requests.
    pub fn fetch_all<W>(&self, wanted: W, at_once: usize) -> Fetched<W::IntoIter>
    where
        W: IntoIterator<Item = (Key, Range<u64>)>,
    {
        let (wanted, running) = (wanted.into_iter().fuse(), VecDeque::new());
        Fetched { fetcher: self.clone(), wanted, at_once: at_once.max(1), running }
    }

    fn start(&self, key: Key, range: Range<u64>) -> Task<Result<Bytes, Error>> {
        use sealog_shell::Runtime;
        let (executor, store, options) =
            (self.executor.clone(), self.store.clone(), self.options.clone());
        self.executor.spawn(async move {
            sealog_shell::fetch(&executor, &store, key, range, &options).await
        })
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("store", &self.store).finish_non_exhaustive()
    }
}

/// What was fetched, in order, from [`Fetcher::fetch_all`]. An error, as of [`Fetcher::fetch`], is
/// not the last item.
#[must_use = "nothing is fetched unless it is iterated over"]
pub struct Fetched<W> {
    fetcher: Fetcher,
    wanted: std::iter::Fuse<W>,
    at_once: usize,
    running: VecDeque<Task<Result<Bytes, Error>>>,
}

impl<W: Iterator<Item = (Key, Range<u64>)>> Iterator for Fetched<W> {
    type Item = Result<Bytes, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.running.len() < self.at_once
            && let Some((key, range)) = self.wanted.next()
        {
            self.running.push_back(self.fetcher.start(key, range));
        }
        Some(wait(self.running.pop_front()?).unwrap_or(Err(Error::Stopped)))
    }
}

impl<W: Iterator<Item = (Key, Range<u64>)>> FusedIterator for Fetched<W> {}

impl<W> fmt::Debug for Fetched<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched")
            .field("fetcher", &self.fetcher)
            .field("under_way", &self.running.len())
            .finish_non_exhaustive()
    }
}
