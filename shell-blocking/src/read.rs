//! Reading a region.

use std::fmt;
use std::iter::FusedIterator;

use futures_util::StreamExt;
use sealog_core::Error;
use sealog_shell::ReadItem;

use crate::executor::Executor;
use crate::wait::wait;

/// The entries of a region, from [`Wal::read`](crate::Wal::read): an iterator of [`ReadItem`]s in
/// the order of their ids, up to what was durable when the read began. Entries that became obsolete
/// meanwhile may be left out.
///
/// It reads several segments ahead ([`Options::read_concurrency`](crate::Options)) from the first
/// call of `next` on, also between two calls; it holds the entries of as many segments in memory.
/// It holds a handle of the log, and goes on after a terminal error and after
/// [`Wal::stop`](crate::Wal::stop). Dropping it abandons its requests.
///
/// # Errors
///
/// An error is the last item. [`Error::InvalidRegion`]; [`Error::Store`] if a segment cannot be
/// fetched; [`Error::Corrupted`] for a damaged segment if
/// [`Options::on_corrupted_segment`](crate::Options) is `Fail`; [`Error::Stopped`] if the log is
/// gone. An entry's payload shares the memory of its segment.
#[must_use = "a read does nothing unless it is iterated over"]
pub struct Read(sealog_shell::Read<Executor>);

impl Read {
    pub(crate) fn new(read: sealog_shell::Read<Executor>) -> Read {
        Read(read)
    }
}

impl Iterator for Read {
    type Item = Result<ReadItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        wait(self.0.next())
    }
}

/// Behind its end it has nothing more, and asks for nothing.
impl FusedIterator for Read {}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
