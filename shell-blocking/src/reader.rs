//! A log that is read beside whoever writes it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::catalog::{HeldBy, RegionInfo};
use sealog_core::opening::View;
use sealog_core::read::ReplayFilter;
use sealog_core::{EntryId, Error, Link, Options, Prefix, RegionId};

use crate::executor::Executor;
use crate::open;
use crate::read::{Read, Replay};
use crate::wait::wait;

/// A log that is open to be read, beside a running writer or without one: a handle, cheap to clone,
/// for any number of threads. It never writes, fences nobody, and makes no directory.
///
/// It sees what a listing showed, and from then on the same until [`refresh`](Reader::refresh): at
/// least what was acknowledged as durable before the listing began, except what was released. What
/// a writer made obsolete counts as far as the writer has stored it. The last objects may not be
/// acknowledged yet, and in rare cases never will be: then a later refresh no longer shows them.
///
/// The writer may collect objects meanwhile. Reads go on over that: entries that are no longer
/// needed are left out.
///
/// ```
/// # use sealog_blocking::{EntryId, Options, ReadItem, Reader, RegionId, Wal};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().join("log");
/// let wal = Wal::open_local(&directory, Options::default())?;
/// let reader = Reader::open_local(&directory, Options::default())?;
/// let id = wal.append(RegionId(7), "put a")?;
/// assert_eq!(reader.durable(RegionId(7)), EntryId::ZERO);
/// reader.refresh()?;
/// assert_eq!(reader.durable(RegionId(7)), id);
/// for item in reader.read(RegionId(7), id) {
///     if let ReadItem::Entry(entry) = item? {
///         assert_eq!(entry.payload, "put a");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reader(sealog_shell::Reader<Executor>);

impl Reader {
    /// Opens the log under `prefix` of a store to read it. A prefix that holds no log is a log of
    /// nothing, unless [`Options::must_exist`] is set.
    ///
    /// Of the options count `must_exist`, those of opening, `request_timeout`, and those of reading:
    /// `read_concurrency`, `read_ahead_bytes`, `read_retry_for` and
    /// `on_corrupted_segment`.
    ///
    /// Costs one listing and one to three reads per object that is there, and one per object with
    /// many release records (DESIGN.md section 4). A reader has one thread of its own, until its
    /// last handle and its last read are gone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] before anything is touched; [`Error::Missing`],
    /// [`Error::Corrupted`]; [`Error::Store`] for a refusal of the store's at once, and for what
    /// may pass after [`Options::open_timeout`], or if the system has no thread to give.
    pub fn open(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: Options,
    ) -> Result<Reader, Error> {
        open::read(store, Prefix::new(prefix)?, options)
    }

    /// Opens the log in a local directory to read it, as [`open`](Reader::open). A directory that
    /// is missing is not made: it is a log of nothing until somebody makes it, unless
    /// [`Options::must_exist`] is set.
    ///
    /// # Errors
    ///
    /// As [`open`](Reader::open); for the directory itself [`Error::InvalidOptions`],
    /// [`Error::Missing`] or [`Error::Store`], each of which names it.
    pub fn open_local(directory: impl AsRef<Path>, options: Options) -> Result<Reader, Error> {
        open::read_local(directory.as_ref(), options)
    }

    /// Opens the log at a URL to read it: `file:///directory` as [`open_local`](Reader::open_local)
    /// does, and the others of [`Wal::open_url`](crate::Wal::open_url).
    ///
    /// # Errors
    ///
    /// As [`open`](Reader::open), and [`Error::InvalidOptions`] that names the URL.
    pub fn open_url(url: &str, options: Options) -> Result<Reader, Error> {
        open::read_url(url, options)
    }

    pub(crate) fn new(reader: sealog_shell::Reader<Executor>) -> Reader {
        Reader(reader)
    }

    /// Looks at the log again: afterwards the reader sees at least what was acknowledged as durable
    /// before this was called. Calls at the same time have one look in common.
    ///
    /// Costs one listing, and reads of the objects that are new; objects never change.
    ///
    /// # Errors
    ///
    /// As [`open`](Reader::open); the reader then goes on with what it has.
    pub fn refresh(&self) -> Result<(), Error> {
        wait(self.0.refresh())
    }

    /// Reads a region's entries from `from` on, in the order of their ids, as far as the reader
    /// sees them now: see [`Read`].
    ///
    /// Costs one range read per object that holds the region, and a second one for a segment that
    /// does not decode; where one was collected meanwhile, a [`refresh`](Reader::refresh).
    pub fn read(&self, region: RegionId, from: EntryId) -> Read {
        Read::new(self.0.read(region, from))
    }

    /// Reads many regions in one pass over the objects, each region from where the filter says, as
    /// far as the reader sees them now: see [`Replay`].
    ///
    /// Costs one range read per object that holds something wanted, or more where that saves
    /// downloading what is not (see there); where one was collected meanwhile, a
    /// [`refresh`](Reader::refresh).
    pub fn replay(&self, filter: ReplayFilter) -> Replay {
        Replay::new(self.0.replay(filter))
    }

    /// The regions that hold something, in the order of their ids. Needs no request, as all that
    /// follows.
    pub fn regions(&self) -> Vec<RegionInfo> {
        self.view().regions().collect()
    }

    /// What keeps the log's objects from being deleted (DESIGN.md section 9), as far as a reader
    /// can know: what a running writer made obsolete and has not stored yet counts as needed.
    pub fn held_by(&self) -> HeldBy {
        self.view().held_by()
    }

    /// The region's largest id that the reader sees, [`EntryId::ZERO`] if there is none.
    pub fn durable(&self, region: RegionId) -> EntryId {
        self.view().durable(region)
    }

    /// The last object of the log, `None` if nothing is stored.
    pub fn tip(&self) -> Option<Link> {
        self.view().tip()
    }

    /// Everything that the reader sees, for tools: its objects with their tables and what is known
    /// of its regions. It does not change; a refresh puts a new one in its place.
    pub fn view(&self) -> Arc<View> {
        self.0.view()
    }

    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        self.0.prefix()
    }

    /// The options that the reader was opened with.
    pub fn options(&self) -> &Options {
        self.0.options()
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
