//! The handle.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::catalog::{HeldBy, RegionInfo};
use sealog_core::read::{Hole, ReplayFilter};
use sealog_core::stats::Stats;
use sealog_core::{Append, EntryId, Epoch, Error, Options, Prefix, RegionId, WriteError};
use sealog_shell::Log;

use crate::executor::Executor;
use crate::open;
use crate::read::{Read, Replay};
use crate::submitted::{Submitted, SubmittedBatch};
use crate::wait::wait;

/// A log that is open for writing: a handle, cheap to clone, for any number of threads.
///
/// All methods may be called from any thread, also one in which futures run; those that wait block
/// it. Once the last handle is dropped the log ends as a crash would end it: what is in flight is
/// abandoned and whoever waits is answered with [`Error::Stopped`]; nothing that was acknowledged
/// is lost, in [`AckMode::Enqueued`](crate::AckMode::Enqueued) what was not durable aside. The log's
/// thread ends soon after; nobody waits for that. A [`Read`] holds a handle, a [`Submitted`] does
/// not. [`stop`](Wal::stop) ends a log in order.
///
/// After a terminal error (see [`Error`]) every write fails with [`Error::Poisoned`], and reads go
/// on.
#[derive(Clone)]
pub struct Wal(Log<Executor>);

impl Wal {
    /// Opens the log under `prefix` of a store, and takes it over from a writer that has it.
    ///
    /// **The store must be durable.** An entry is acknowledged when its create succeeded. For a
    /// local directory use [`open_local`](Wal::open_local): it turns on fsync of files and
    /// directories, which the client's own default is not, certifies nothing that a timed-out or
    /// failed fsync left behind, and lists in order, which a bare `LocalFileSystem` does not. The
    /// client should repeat little by itself, since the log repeats failed requests and knows when
    /// it may.
    ///
    /// Costs three listings, one to three reads per object that is there, and three puts; of an
    /// empty prefix, two listings and two puts (DESIGN.md sections 4 and 12). No segment of a
    /// region is read. A log has one thread of its own, from now on until its last handle is gone.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] before anything is touched; [`Error::Missing`],
    /// [`Error::Contended`], [`Error::Corrupted`], [`Error::UnsafeStore`],
    /// [`Error::SequenceExhausted`]; [`Error::Store`] for a refusal of the store's at once, and for
    /// what may pass after [`Options::open_timeout`], or if the system has no thread to give.
    pub fn open(store: Arc<dyn ObjectStore>, prefix: &str, options: Options) -> Result<Wal, Error> {
        open::open(store, Prefix::new(prefix)?, options)
    }

    /// Opens the log in a local directory, which is made unless [`Options::must_exist`] is set,
    /// with fsync of files and directories on.
    ///
    /// The directory's name is the log's prefix and must consist of ASCII letters, digits and
    /// `. _ = + -`. Costs are those of [`open`](Wal::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Wal::open); for the directory itself [`Error::InvalidOptions`],
    /// [`Error::Missing`] or [`Error::Store`], each of which names it.
    pub fn open_local(directory: impl AsRef<Path>, options: Options) -> Result<Wal, Error> {
        open::open_local(directory.as_ref(), options)
    }

    /// Opens the log at a URL: `file:///directory` as [`open_local`](Wal::open_local) does, and
    /// `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix` with the features
    /// `aws`, `gcp` and `azure`. Credentials, endpoint and the client's other settings come from
    /// the environment: `AWS_REGION`, `AWS_ENDPOINT_URL` and so on.
    ///
    /// Costs are those of [`open`](Wal::open).
    ///
    /// # Errors
    ///
    /// As [`open`](Wal::open), and [`Error::InvalidOptions`] that names the URL.
    pub fn open_url(url: &str, options: Options) -> Result<Wal, Error> {
        open::open_url(url, options)
    }

    pub(crate) fn new(log: Log<Executor>) -> Wal {
        Wal(log)
    }

    /// Submits an entry: fixes its place among all appends, and gives back a handle to wait on
    /// until it is durable.
    ///
    /// Appends are stored in the order of their submission, and acknowledged in it. This takes any
    /// number of them: while the store is slower than its callers, what waits for its place is kept in
    /// memory, and a caller that has many under way bounds their number itself. [`append`](Wal::append)
    /// waits instead, and [`try_submit`](Wal::try_submit) refuses.
    ///
    /// A payload of 16 KiB or more is not copied, so it keeps the buffer that it is part of alive
    /// until it is durable.
    ///
    /// In [`AckMode::Enqueued`](crate::AckMode::Enqueued) the handle is answered on admission, which
    /// is at once unless too much is not durable yet ([`Options::max_unpersisted_bytes`],
    /// [`Options::max_unpersisted_age`]): then it waits, in its turn, until an upload completes.
    ///
    /// Costs a share of one put per object (DESIGN.md section 5).
    ///
    /// # Errors
    ///
    /// The handle's: see [`Submitted`].
    pub fn submit(&self, region: RegionId, payload: impl Into<Bytes>) -> Submitted {
        Submitted::new(self.0.submit(Append::One(region, payload.into())))
    }

    /// Submits entries of one or many regions, all in one object: after a crash either all of
    /// them are there or none. Otherwise as [`submit`](Wal::submit). Without entries it
    /// acknowledges at once.
    ///
    /// # Errors
    ///
    /// The handle's: see [`Submitted`].
    pub fn submit_batch(&self, entries: Vec<(RegionId, Bytes)>) -> SubmittedBatch {
        SubmittedBatch::new(self.0.submit(Append::Many(entries)))
    }

    /// As [`submit`](Wal::submit), unless [`Options::max_queued_bytes`] or more wait for their place
    /// already (payloads, and 64 bytes for each append): then it is refused. One that is larger than
    /// that is taken while less waits.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`]: nothing was submitted; retry later. Also while callers of
    /// [`append`](Wal::append) wait in line. All others are the handle's: see [`Submitted`]. A log
    /// that takes nothing, because it is failing, was stopped or has ended, says so there and is
    /// never overloaded.
    pub fn try_submit(
        &self,
        region: RegionId,
        payload: impl Into<Bytes>,
    ) -> Result<Submitted, WriteError> {
        Ok(Submitted::new(self.0.try_submit(Append::One(region, payload.into()))?))
    }

    /// As [`submit_batch`](Wal::submit_batch), unless too much waits: see
    /// [`try_submit`](Wal::try_submit).
    ///
    /// # Errors
    ///
    /// As [`try_submit`](Wal::try_submit).
    pub fn try_submit_batch(
        &self,
        entries: Vec<(RegionId, Bytes)>,
    ) -> Result<SubmittedBatch, WriteError> {
        Ok(SubmittedBatch::new(self.0.try_submit(Append::Many(entries))?))
    }

    /// Appends an entry, and waits until it is durable; in
    /// [`AckMode::Enqueued`](crate::AckMode::Enqueued), until it is admitted.
    ///
    /// While [`Options::max_queued_bytes`] or more wait for their place already, it first waits in
    /// line to be submitted: callers come in by turns, in the order in which they came, and before
    /// every [`try_submit`](Wal::try_submit). Until then it has no place among what
    /// [`submit`](Wal::submit), [`release`](Wal::release) and [`flush`](Wal::flush) bring meanwhile.
    /// Whatever ends the wait of submitted appends, the log failing, being stopped or ending, ends it
    /// too, with the same error.
    ///
    /// # Errors
    ///
    /// As [`Submitted`].
    pub fn append(
        &self,
        region: RegionId,
        payload: impl Into<Bytes>,
    ) -> Result<EntryId, WriteError> {
        Submitted::new(self.0.append(Append::One(region, payload.into()))).wait()
    }

    /// Appends entries that are stored all together, as [`submit_batch`](Wal::submit_batch) does, and
    /// waits like [`append`](Wal::append). The ids are in the order of the entries.
    ///
    /// # Errors
    ///
    /// As [`Submitted`].
    pub fn append_batch(
        &self,
        entries: Vec<(RegionId, Bytes)>,
    ) -> Result<Vec<EntryId>, WriteError> {
        SubmittedBatch::new(self.0.append(Append::Many(entries))).wait()
    }

    /// Reads a region's entries from `from` on, in the order of their ids, as far as they are
    /// durable now: see [`Read`].
    ///
    /// Costs one range read per object that holds the region, and a second one for a segment that
    /// does not decode (DESIGN.md section 8).
    pub fn read(&self, region: RegionId, from: EntryId) -> Read {
        Read::new(self.0.read(region, from))
    }

    /// Reads many regions in one pass over the objects, each region from where the filter says, as
    /// far as they are durable now: see [`Replay`]. For an engine that starts, and has many regions
    /// to catch up.
    ///
    /// Costs one range read per object that holds something wanted; more only where that saves
    /// downloading what is not (see there).
    ///
    /// ```
    /// # use sealog_blocking::{EntryId, Error, RegionId, ReplayFilter, ReplayItem, Wal};
    /// # fn restart(wal: Wal, applied: EntryId) -> Result<(), Error> {
    /// // Region 7 is applied up to some id, of the others nothing is.
    /// let filter = ReplayFilter::all().region_after(RegionId(7), applied);
    /// for item in wal.replay(filter) {
    ///     match item? {
    ///         ReplayItem::Entry(region, entry) => println!("{region}: {:?}", entry.payload),
    ///         ReplayItem::Hole(hole) => println!("lost: {hole:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn replay(&self, filter: ReplayFilter) -> Replay {
        Replay::new(self.0.replay(filter))
    }

    /// Returns once no id of the region at or below `id` waits to become durable: at once if that
    /// is so now, as it is for an id above everything handed out when nothing of the region is
    /// under way. Needs no request, and seals nothing: [`flush`](Wal::flush) does.
    ///
    /// In [`AckMode::Enqueued`](crate::AckMode::Enqueued) this is how to learn that an append is
    /// durable; in `durable` the append says so itself.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`]. What failed the id's batch, [`Error::Store`] or
    /// [`Error::Conflict`], now or earlier: its entry is not durable and never will be.
    /// [`Error::Failing`], in `enqueued` while the store refuses what the log writes: nothing is
    /// lost, retry. [`Error::Stopped`] and [`Error::Poisoned`], unless the id is durable.
    pub fn wait_durable(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        wait(self.0.wait_durable(region, id))
    }

    /// Makes the region's entries at or below `id` obsolete: they are hidden from reads and no
    /// longer keep objects. Needs no request, and is not durable: after a reopening it must be
    /// said again.
    ///
    /// Ids that are assigned to the region afterwards are greater than `id`. If `id` is above what
    /// was handed out, that waits until nothing is under way, and appends wait with it. In
    /// [`AckMode::Enqueued`](crate::AckMode::Enqueued) only what is durable becomes obsolete: an
    /// entry that a crash could still lose stays visible once it is durable, until this is said
    /// again.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`]; [`Error::Unsettled`] while the region has entries on their way
    /// and `id` is above all of them; [`Error::SequenceExhausted`] for an `id` that leaves no room
    /// above it; [`Error::Failing`], in `enqueued`, if it would have to wait while the store
    /// refuses what the log writes; [`Error::Stopped`] and [`Error::Poisoned`].
    pub fn obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        wait(self.0.obsolete(region, id))
    }

    /// Releases the region, for good: what is in it by now, appends that were submitted before
    /// included, is hidden and keeps no object, also after a restart. Entries that are appended
    /// later are visible.
    ///
    /// Writes a record, which is stored at once, with what else is open; returns when that object is
    /// durable, in both modes (DESIGN.md section 6). If nothing of the region is there or on its
    /// way, it returns at once. Costs at most one put.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] and [`Error::SequenceExhausted`]: nothing is written.
    /// [`Error::Stopped`] and [`Error::Poisoned`]. In the failures that may pass, the record is not
    /// given up with the call, and is stored with the next object that the log makes:
    /// [`Error::Store`] or [`Error::Conflict`] for a roll back, [`Error::Failing`] in `enqueued`;
    /// retry to know when it is durable. What a stop cuts off is stored by it too. The error's
    /// outcome says whether the record may hold, and [`stop`](Wal::stop) if it was lost.
    pub fn release(&self, region: RegionId) -> Result<(), WriteError> {
        wait(self.0.release(region))
    }

    /// Releases the region in full, through every id that it could ever have: as
    /// [`release`](Wal::release), and from now on appends to it fail with [`Error::Released`],
    /// until the record's object was collected. If nothing of the region is there or on its way,
    /// it returns at once and refuses nothing.
    ///
    /// # Errors
    ///
    /// As [`release`](Wal::release).
    pub fn release_all(&self, region: RegionId) -> Result<(), WriteError> {
        wait(self.0.release_all(region))
    }

    /// The largest id that was handed out for the region; [`EntryId::ZERO`] if none was, or if
    /// nothing of the region is left: all of it obsolete, and collected. Appends that wait for
    /// their place have no id yet. Needs no request.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`] if the log is gone; not after [`stop`](Wal::stop).
    pub fn latest(&self, region: RegionId) -> Result<EntryId, Error> {
        wait(self.0.latest(region))
    }

    /// The region's largest id that is durable, [`EntryId::ZERO`] if there is none. Otherwise as
    /// [`latest`](Wal::latest).
    ///
    /// # Errors
    ///
    /// As [`latest`](Wal::latest).
    pub fn durable(&self, region: RegionId) -> Result<EntryId, Error> {
        wait(self.0.durable(region))
    }

    /// The regions that hold something that is not obsolete, in the order of their ids. Needs no
    /// request, and costs time in proportion to the segments of all regions.
    ///
    /// # Errors
    ///
    /// As [`latest`](Wal::latest).
    pub fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        wait(self.0.regions())
    }

    /// What keeps the log's objects from being deleted (DESIGN.md section 9): the reclaim boundary,
    /// the object that stands at it, the regions that need it and their watermarks, and how many
    /// objects and bytes each of the ten regions that hold most would free. Needs no request, and
    /// costs time in proportion to the regions and objects of the log.
    ///
    /// # Errors
    ///
    /// As [`latest`](Wal::latest).
    pub fn held_by(&self) -> Result<HeldBy, Error> {
        wait(self.0.held_by())
    }

    /// The holes that reads of the region met so far, in order (DESIGN.md section 8). Needs no
    /// request.
    ///
    /// # Errors
    ///
    /// As [`latest`](Wal::latest).
    pub fn holes(&self, region: RegionId) -> Result<Vec<Hole>, Error> {
        wait(self.0.holes(region))
    }

    /// What the log has done since it was opened, and how it stands. Needs no request.
    ///
    /// # Errors
    ///
    /// As [`latest`](Wal::latest).
    pub fn stats(&self) -> Result<Stats, Error> {
        wait(self.0.stats())
    }

    /// Stores what was submitted so far without waiting for its time, and returns when all of it
    /// is durable; at once if there is nothing.
    ///
    /// Costs a put if something is open.
    ///
    /// # Errors
    ///
    /// What failed an append before it: the first error of a roll back, [`Error::Failing`] in
    /// `enqueued`, [`Error::Stopped`] or [`Error::Poisoned`].
    pub fn flush(&self) -> Result<(), Error> {
        wait(self.0.flush())
    }

    /// Ends the log in order (DESIGN.md section 7): from now on nothing is admitted, what waits
    /// for its place or for an object that is not under way fails with [`Error::Stopped`], and
    /// what is under way runs out. Returns when nothing is in flight any more. Every caller gets
    /// the same answer, also one that calls later.
    ///
    /// In [`AckMode::Enqueued`](crate::AckMode::Enqueued) everything that was acknowledged is
    /// uploaded first, also while the store refuses it: what fails is repeated until
    /// [`Options::stop_deadline`] after stop began. Since every request has a time limit, stop ends
    /// in both modes, whatever the store does.
    ///
    /// Afterwards handles can still be used to read.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`] if a terminal error ended the log, now or earlier; [`Error::Lost`] if
    /// something acknowledged could not be saved, which in `durable` no entry is; it says how much
    /// and why, a terminal error included.
    pub fn stop(&self) -> Result<(), Error> {
        wait(self.0.stop())
    }

    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        self.0.prefix()
    }

    /// The epoch that names this writer among all that ever had the log.
    pub fn epoch(&self) -> Epoch {
        self.0.epoch()
    }

    /// The options that the log was opened with.
    pub fn options(&self) -> &Options {
        self.0.options()
    }
}

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
