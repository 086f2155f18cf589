//! The seam for engines that take more than one kind of log.

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fmt;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use sealog_core::read::ReplayFilter;
use sealog_core::{EntryId, Error, Outcome, RegionId, WriteError};
use sealog_shell::{ReadItem, ReplayItem};

use crate::stream::{Read, Replay};
use crate::wal::Wal;

/// What a [`LogStore`] answers a call with, later.
pub type LogFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LogError>> + Send + 'a>>;

/// What a [`LogStore`] reads. An error is the last item.
pub type LogStream<T> = Pin<Box<dyn Stream<Item = Result<T, LogError>> + Send>>;

/// A log of many regions, whatever kind it is: what a storage engine asks of one. [`Wal`] is one.
///
/// An engine that only ever runs on Sealog takes a [`Wal`], which can do more (many entries at
/// once, figures, [`held_by`](Wal::held_by)) and boxes nothing. The guide in
/// `examples/engine/README.md` says which call an engine makes when.
///
/// It is `dyn`-compatible. Each call boxes a future, each read a stream: an allocation per call,
/// and a virtual call per poll. What a call costs in requests is the log's own business; of a
/// [`Wal`], what its method of the same purpose says.
///
/// # Cancel safety
///
/// Dropping a future takes nothing back that was handed over: what was asked may happen all the same,
/// later calls are not affected, and the log stays usable. [`append`](LogStore::append) has asked when it returns
/// its future; whether the others ask then or when they are polled first, a log says itself
/// ([`Wal`]: when polled first). A future that waits for the next item of a stream may be dropped
/// without losing an item.
pub trait LogStore: Send + Sync {
    /// Appends an entry to a region, and resolves to its id once it is as safe as the log makes it
    /// before it acknowledges: see [`wait_durable`](LogStore::wait_durable).
    ///
    /// Its place among all appends is fixed by this call, not when the future is polled. Ids of a
    /// region are strictly increasing in that order, and never [`EntryId::ZERO`].
    ///
    /// # Errors
    ///
    /// [`LogError::outcome`] says whether the entry may come back all the same. One that does is
    /// never in front of an entry that was acknowledged before it was submitted, and never behind
    /// one that was submitted after it.
    fn append(&self, region: RegionId, payload: Bytes) -> LogFuture<'_, EntryId>;

    /// The region's entries with `from` and above that are durable and not obsolete, in the order
    /// of their ids.
    fn read(&self, region: RegionId, from: EntryId) -> LogStream<ReadItem>;

    /// Reads each region named, from where it says: those of one region in the order of their ids,
    /// the regions in any order and mixed.
    ///
    /// By default one region after the other; a log whose regions share objects does better with
    /// one pass over them.
    fn replay(&self, from: Vec<(RegionId, EntryId)>) -> LogStream<ReplayItem> {
        let reads = from.into_iter().map(|(region, id)| (region, self.read(region, id)));
        Box::pin(InTurn(reads.collect()))
    }

    /// Makes the region's entries at or below `id` obsolete: hidden, and no longer kept. It need
    /// not outlast a restart, after which an engine says it again. Ids that are assigned to the
    /// region afterwards are greater than `id`.
    fn obsolete(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()>;

    /// Makes all obsolete that the region holds by now. Otherwise as
    /// [`obsolete`](LogStore::obsolete).
    fn obsolete_all(&self, region: RegionId) -> LogFuture<'_, ()>;

    /// The largest id that was handed out for the region; [`EntryId::ZERO`] if none was, and it may
    /// be so again once the log holds nothing of the region any more.
    fn latest(&self, region: RegionId) -> LogFuture<'_, EntryId>;

    /// Returns once nothing of the region at or below `id` can be lost any more. By default at
    /// once, for logs that acknowledge nothing before that, or that keep nothing in a crash.
    ///
    /// # Errors
    ///
    /// An entry at or below `id` is not durable: never will be, or, if the error is retryable, not
    /// yet.
    fn wait_durable(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()> {
        let _ = (region, id);
        Box::pin(future::ready(Ok(())))
    }

    /// Writes into the log that what is in the region by now is gone for good, so that it does not
    /// come back after a restart. Entries that are appended later are not concerned.
    ///
    /// By default nothing is done, for logs that are not shared by regions: what became obsolete
    /// is gone there.
    ///
    /// # Errors
    ///
    /// It is not known to be durable. See [`is_shared`](LogStore::is_shared).
    fn release_region(&self, region: RegionId) -> LogFuture<'_, ()> {
        let _ = region;
        Box::pin(future::ready(Ok(())))
    }

    /// Whether regions share what the log stores, so that it remembers releases: a record that
    /// [`release_region`](LogStore::release_region) could not write is not given up with the call,
    /// and is stored later, unless the log ended. An engine need not fail for it then. By default
    /// it is not so.
    fn is_shared(&self) -> bool {
        false
    }

    /// Ends the log in order: what is acknowledged is durable when it returns.
    ///
    /// # Errors
    ///
    /// What could not be saved.
    fn stop(&self) -> LogFuture<'_, ()>;
}

/// `append` is [`append`](Wal::append), whose place in the order, be it in the line of those that wait
/// to be submitted, is fixed by the call; dropping its future while it stands there leaves the line.
/// `release_region` is [`release`](Wal::release), and
/// `obsolete_all` is [`obsolete`](Wal::obsolete) of what was handed out by then: in
/// [`AckMode::Enqueued`](crate::AckMode::Enqueued) what is not durable yet stays visible. `replay`
/// is one pass over the objects. Costs and errors are those of these methods; the cause of a
/// [`LogError`] is an [`Error`].
impl LogStore for Wal {
    fn append(&self, region: RegionId, payload: Bytes) -> LogFuture<'_, EntryId> {
        let submitted = self.appending(region, payload);
        Box::pin(async move { Ok(submitted.await?) })
    }

    fn read(&self, region: RegionId, from: EntryId) -> LogStream<ReadItem> {
        Box::pin(Items::<Read>(Wal::read(self, region, from)))
    }

    fn replay(&self, from: Vec<(RegionId, EntryId)>) -> LogStream<ReplayItem> {
        let none = ReplayFilter::none();
        let filter =
            from.into_iter().fold(none, |filter, (region, id)| filter.region_from(region, id));
        Box::pin(Items::<Replay>(Wal::replay(self, filter)))
    }

    fn obsolete(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()> {
        Box::pin(async move { Ok(Wal::obsolete(self, region, id).await?) })
    }

    fn obsolete_all(&self, region: RegionId) -> LogFuture<'_, ()> {
        Box::pin(async move {
            let latest = Wal::latest(self, region).await?;
            Ok(Wal::obsolete(self, region, latest).await?)
        })
    }

    fn latest(&self, region: RegionId) -> LogFuture<'_, EntryId> {
        Box::pin(async move { Ok(Wal::latest(self, region).await?) })
    }

    fn wait_durable(&self, region: RegionId, id: EntryId) -> LogFuture<'_, ()> {
        Box::pin(async move { Ok(Wal::wait_durable(self, region, id).await?) })
    }

    fn release_region(&self, region: RegionId) -> LogFuture<'_, ()> {
        Box::pin(async move { Ok(Wal::release(self, region).await?) })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn stop(&self) -> LogFuture<'_, ()> {
        Box::pin(async move { Ok(Wal::stop(self).await?) })
    }
}

/// A failure of a [`LogStore`]: whatever its kind of log says, and what an engine may conclude.
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogError {
    cause: Arc<dyn StdError + Send + Sync>,
    retryable: bool,
    outcome: Outcome,
}

impl LogError {
    /// A failure with the log's own error, and whether the same call may succeed if it is made
    /// again. Its outcome is [`Outcome::Unknown`].
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>, retryable: bool) -> LogError {
        LogError { cause: Arc::from(cause.into()), retryable, outcome: Outcome::Unknown }
    }

    /// The same with another outcome.
    pub fn with_outcome(self, outcome: Outcome) -> LogError {
        LogError { outcome, ..self }
    }

    /// The log's own error, to look for one's own: of a [`Wal`] it is an [`Error`].
    ///
    /// ```
    /// use sealog_tokio::{Error, LogError};
    ///
    /// let error = LogError::from(Error::Stopped);
    /// assert!(matches!(error.cause().downcast_ref(), Some(Error::Stopped)));
    /// ```
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }

    /// Whether the same call may succeed if it is made again.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// What may have become of an append or a release.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl From<Error> for LogError {
    fn from(error: Error) -> LogError {
        let retryable = error.is_retryable();
        LogError::new(error, retryable)
    }
}

impl From<WriteError> for LogError {
    fn from(error: WriteError) -> LogError {
        let outcome = error.outcome();
        LogError::from(Error::from(error)).with_outcome(outcome)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl StdError for LogError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

/// The items of a log's own stream.
struct Items<S>(S);

impl<S, T> Stream for Items<S>
where
    S: Stream<Item = Result<T, Error>> + Unpin,
{
    type Item = Result<T, LogError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0)
            .poll_next(cx)
            .map(|item| item.map(|item| item.map_err(LogError::from)))
    }
}

/// Reads of regions, one after the other.
struct InTurn(VecDeque<(RegionId, LogStream<ReadItem>)>);

impl Stream for InTurn {
    type Item = Result<ReplayItem, LogError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while let Some((region, read)) = self.0.front_mut() {
            let region = *region;
            match ready!(read.as_mut().poll_next(cx)) {
                None => {
                    self.0.pop_front();
                }
                Some(Ok(ReadItem::Entry(entry))) => {
                    return Poll::Ready(Some(Ok(ReplayItem::Entry(region, entry))));
                }
                Some(Ok(ReadItem::Hole(hole))) => {
                    return Poll::Ready(Some(Ok(ReplayItem::Hole(hole))));
                }
                Some(Err(error)) => {
                    self.0.clear();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}
