//! Reading a region.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use sealog_core::format::Entry;
use sealog_core::read::Hole;
use sealog_core::{EntryId, Error, RegionId};

use crate::ahead::{Ahead, Wanted};
use crate::replay::ReplayItem;
use crate::wal::Wal;

/// What a [`Read`] yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadItem {
    /// An entry.
    Entry(Entry),
    /// A damaged segment, whose entries are lost, in its place between the entries.
    Hole(Hole),
}

/// The entries of a region, from [`Wal::read`]: a stream of [`ReadItem`]s in the order of their
/// ids, up to what was durable when the read began. Entries that became obsolete meanwhile may
/// be left out.
///
/// It reads several segments ahead ([`Options::read_concurrency`](crate::Options)), in tasks of
/// its own, from the moment that it is polled first; it holds the entries of as many segments in
/// memory. It holds a handle of the log, and goes on after a terminal error and after
/// [`Wal::stop`].
///
/// # Errors
///
/// An error is the last item. [`Error::InvalidRegion`]; [`Error::Store`] if a segment cannot be
/// fetched; [`Error::Corrupted`] for a damaged segment if
/// [`Options::on_corrupted_segment`](crate::Options) is `Fail`; [`Error::Stopped`] if the log is
/// gone. An entry's payload shares the memory of its segment.
///
/// # Cancel safety
///
/// A future that waits for the next item may be dropped: no item is lost. Dropping the stream
/// abandons its requests.
#[must_use = "a read does nothing unless it is polled"]
pub struct Read {
    region: RegionId,
    ahead: Ahead,
}

impl Read {
    pub(crate) fn new(wal: Wal, region: RegionId, from: EntryId) -> Read {
        let wanted = Wanted::Region { region, from, through: None };
        Read { region, ahead: Ahead::new(wal, wanted) }
    }
}

impl Stream for Read {
    type Item = Result<ReadItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = |item| match item {
            ReplayItem::Entry(_, entry) => ReadItem::Entry(entry),
            ReplayItem::Hole(hole) => ReadItem::Hole(hole),
        };
        self.ahead.poll_next(cx).map_ok(item)
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("wal", self.ahead.wal())
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
