//! Reading many regions in one pass.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use sealog_core::format::Entry;
use sealog_core::read::{Hole, ReplayFilter};
use sealog_core::{Error, ObjectSeq, RegionId};

use crate::ahead::{Ahead, Wanted};
use crate::wal::Wal;

/// What a [`Replay`] yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayItem {
    /// An entry of a region.
    Entry(RegionId, Entry),
    /// A damaged segment, whose entries are lost, in its place between the entries.
    Hole(Hole),
}

/// The entries of many regions, from [`Wal::replay`]: a stream of [`ReplayItem`]s, object by
/// object in the order in which the log wrote them; those of one object by region, and those of a
/// region in the order of their ids. It ends with the object that was indexed last when it began:
/// what is appended later is not part of it. Entries that became obsolete meanwhile may be left
/// out.
///
/// It reads several objects ahead ([`Options::read_concurrency`](crate::Options)), in tasks of its
/// own, from the moment that it is polled first, and never has what it read of more objects in
/// memory than that, the one that it yields from included. It holds a handle of the log, and goes
/// on after a terminal error and after [`Wal::stop`].
///
/// An entry's payload shares the memory of everything that was fetched of its object with it. Copy
/// what is to be kept for long, rather than keep an object for a few bytes of it.
///
/// # Cost
///
/// One range read per object that holds something wanted; objects that hold nothing of the kind
/// are not touched. A second request, or more of them, is made of an object only where that saves
/// downloading what is not wanted: if less than half of the bytes from the object's first wanted
/// segment to its last are wanted, one per run of segments with no more than 1 MiB between one
/// and the next. What does not decode is fetched once more in the same way (DESIGN.md section 8).
///
/// # Errors
///
/// An error is the last item. [`Error::InvalidRegion`] for a filter that names a reserved region;
/// [`Error::Store`] if something cannot be fetched; [`Error::Corrupted`] for a damaged segment if
/// [`Options::on_corrupted_segment`](crate::Options) is `Fail`; [`Error::Stopped`] if the log is
/// gone.
///
/// # Cancel safety
///
/// A future that waits for the next item may be dropped: no item is lost. Dropping the stream
/// abandons its requests.
#[must_use = "a replay does nothing unless it is polled"]
pub struct Replay {
    filter: Arc<ReplayFilter>,
    ahead: Ahead,
}

impl Replay {
    pub(crate) fn new(wal: Wal, filter: ReplayFilter) -> Replay {
        let filter = Arc::new(filter);
        let (from, through) = (ObjectSeq::ZERO, None);
        let wanted = Wanted::Regions { filter: filter.clone(), from, through };
        Replay { filter, ahead: Ahead::new(wal, wanted) }
    }
}

impl Stream for Replay {
    type Item = Result<ReplayItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ahead.poll_next(cx)
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("wal", self.ahead.wal())
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}
