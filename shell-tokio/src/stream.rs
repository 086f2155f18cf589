//! The stream that a read is.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use sealog_core::Error;
use sealog_shell::ReadItem;

use crate::runtime::Tokio;

/// The entries of a region, from [`Wal::read`](crate::Wal::read): a stream of [`ReadItem`]s in the
/// order of their ids, up to what was durable when the read began. Entries that became obsolete
/// meanwhile may be left out.
///
/// It reads several segments ahead ([`Options::read_concurrency`](crate::Options)), in tasks of
/// its own, from the moment that it is polled first; it holds the entries of as many segments in
/// memory. It holds a handle of the log, and goes on after a terminal error and after
/// [`Wal::stop`](crate::Wal::stop).
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
