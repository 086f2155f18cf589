//! The streams that reads are.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use sealog_core::Error;
use sealog_shell::{ReadItem, ReplayItem};

use crate::runtime::Tokio;

/// The entries of a region, from [`Wal::read`](crate::Wal::read) or
/// [`Reader::read`](crate::Reader::read): a stream of [`ReadItem`]s in the order of their ids, up
/// to what was durable, or what the reader saw, when the read began. Entries that became obsolete
/// meanwhile may be left out.
///
/// It reads several segments ahead, in tasks of its own, from the moment that it is polled first: as
/// many as [`Options::read_concurrency`](crate::Options) says, and no more bytes than
/// `read_ahead_bytes`. Both count what is under way and what is held, the segment that it yields from
/// included, and not what was yielded; a segment that is larger alone is read alone. It holds a
/// handle of what it reads from, and goes on after a terminal error and after
/// [`Wal::stop`](crate::Wal::stop).
///
/// # Cost
///
/// One range read per object that holds the region, or one per 16 MiB of a segment that is larger.
/// What fails in a way that may pass is repeated, and what does not decode is fetched once more
/// (DESIGN.md section 8).
///
/// # Errors
///
/// An error is the last item. [`Error::InvalidRegion`]; [`Error::Store`] if a segment cannot be
/// fetched: at once for a refusal, and for what may pass once `read_retry_for` has passed since the
/// last fetch of this read that succeeded, or since this one failed first if that was later;
/// [`Error::Corrupted`] for a damaged segment if
/// [`Options::on_corrupted_segment`](crate::Options) is `Fail`; [`Error::Stopped`] if the log is
/// gone. An entry's payload shares the memory of its segment.
///
/// # Cancel safety
///
/// A future that waits for the next item may be dropped: no item is lost. Dropping the stream
/// abandons its requests.
#[must_use = "a read does nothing unless it is polled"]
pub struct Read(sealog_shell::Read<Tokio>);

impl Read {
    pub(crate) fn new(read: sealog_shell::Read<Tokio>) -> Read {
        Read(read)
    }
}

impl Stream for Read {
    type Item = Result<ReadItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx)
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The entries of many regions, from [`Wal::replay`](crate::Wal::replay) or
/// [`Reader::replay`](crate::Reader::replay): a stream of [`ReplayItem`]s, object by object in the
/// order in which the log wrote them; those of one object by region, and those of a region in the
/// order of their ids. It ends with the object that was indexed last, or that the reader saw last,
/// when it began: what is appended later is not part of it. Entries that became obsolete meanwhile
/// may be left out.
///
/// It reads several objects ahead, in tasks of its own, from the moment that it is polled first: as
/// many as [`Options::read_concurrency`](crate::Options) says, and no more bytes than
/// `read_ahead_bytes`. Both count what is under way and what is held, the object that it yields from
/// included, and not what was yielded. Of an object that is larger than that, or than 16 MiB, what is
/// wanted is read in parts, region by region; one region's segment that is larger alone is read alone.
/// It holds a handle of what it reads from, and goes on after a terminal error and after
/// [`Wal::stop`](crate::Wal::stop).
///
/// An entry's payload shares the memory of everything that was fetched of its object with it. Copy
/// what is to be kept for long, rather than keep an object for a few bytes of it.
///
/// # Cost
///
/// One range read per object that holds something wanted; objects that hold nothing of the kind
/// are not touched. A second request, or more of them, is made of an object only if it is read in
/// parts, or where that saves downloading what is not wanted: if less than half of the bytes from the
/// first wanted segment to the last are wanted, one per run of segments with no more than 1 MiB
/// between one and the next. What fails in a way that may pass is repeated, and what does not decode
/// is fetched once more in the same way (DESIGN.md section 8).
///
/// # Errors
///
/// An error is the last item. [`Error::InvalidRegion`] for a filter that names a reserved region;
/// [`Error::Store`] if something cannot be fetched: at once for a refusal, and for what may pass once
/// `read_retry_for` has passed since the last fetch of this replay that succeeded, or since this one
/// failed first if that was later; [`Error::Corrupted`] for a damaged segment if
/// [`Options::on_corrupted_segment`](crate::Options) is `Fail`; [`Error::Stopped`] if the log is
/// gone.
///
/// # Cancel safety
///
/// A future that waits for the next item may be dropped: no item is lost. Dropping the stream
/// abandons its requests.
#[must_use = "a replay does nothing unless it is polled"]
pub struct Replay(sealog_shell::Replay<Tokio>);

impl Replay {
    pub(crate) fn new(replay: sealog_shell::Replay<Tokio>) -> Replay {
        Replay(replay)
    }
}

impl Stream for Replay {
    type Item = Result<ReplayItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx)
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
