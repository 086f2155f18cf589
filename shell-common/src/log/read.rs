//! Reading: one region, or many in one pass.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::Stream;
use sealog_core::format::Entry;
use sealog_core::read::{Hole, ReplayFilter};
use sealog_core::{EntryId, Error, ObjectSeq, RegionId};

use super::Runtime;
use super::ahead::{Ahead, Wanted};
use super::source::Source;

/// What a read yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadItem {
    /// An entry.
    Entry(Entry),
    /// A damaged segment, whose entries are lost, in its place between the entries.
    Hole(Hole),
}

/// What a replay yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayItem {
    /// An entry of a region.
    Entry(RegionId, Entry),
    /// A damaged segment, whose entries are lost, in its place between the entries.
    Hole(Hole),
}

/// The entries of a region, from [`Log::read`](super::Log::read) or
/// [`Reader::read`](super::Reader::read): a stream of [`ReadItem`]s in the order of their ids, up
/// to what was durable, or seen by the reader, when the read began (DESIGN.md section 8).
///
/// It reads several segments ahead, in tasks of its own, from the moment that it is polled first, and
/// repeats what fails in a way that may pass. It holds a handle of what it reads from, and goes on after a terminal error and after a stop of
/// a log, and over the collections of whoever writes what a reader sees. An error is the last item.
/// Dropping a future that waits for the next item loses none; dropping the stream abandons its
/// requests.
#[must_use = "a read does nothing unless it is polled"]
pub struct Read<R: Runtime> {
    region: RegionId,
    ahead: Ahead<R>,
}

impl<R: Runtime> Read<R> {
    pub(crate) fn new(source: Source<R>, region: RegionId, from: EntryId) -> Read<R> {
        let wanted = Wanted::Region { region, from, through: None };
        Read { region, ahead: Ahead::new(source, wanted) }
    }
}

impl<R: Runtime> Stream for Read<R> {
    type Item = Result<ReadItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = |item| match item {
            ReplayItem::Entry(_, entry) => ReadItem::Entry(entry),
            ReplayItem::Hole(hole) => ReadItem::Hole(hole),
        };
        self.ahead.poll_next(cx).map_ok(item)
    }
}

impl<R: Runtime> fmt::Debug for Read<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("of", self.ahead.source())
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

/// The entries of many regions, from [`Log::replay`](super::Log::replay) or
/// [`Reader::replay`](super::Reader::replay): a stream of [`ReplayItem`]s, object by object in the
/// order in which the log wrote them, up to what was indexed when the replay began.
///
/// It reads several objects ahead, and holds what it read of no more than that, large ones in parts.
/// Otherwise as [`Read`].
#[must_use = "a replay does nothing unless it is polled"]
pub struct Replay<R: Runtime> {
    filter: Arc<ReplayFilter>,
    ahead: Ahead<R>,
}

impl<R: Runtime> Replay<R> {
    pub(crate) fn new(source: Source<R>, filter: ReplayFilter) -> Replay<R> {
        let filter = Arc::new(filter);
        let (from, through) = (ObjectSeq::ZERO, None);
        let wanted = Wanted::Regions { filter: filter.clone(), from, through };
        Replay { filter, ahead: Ahead::new(source, wanted) }
    }
}

impl<R: Runtime> Stream for Replay<R> {
    type Item = Result<ReplayItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ahead.poll_next(cx)
    }
}

impl<R: Runtime> fmt::Debug for Replay<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("of", self.ahead.source())
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}
