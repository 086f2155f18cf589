//! Admission: appends are refused, queued, or get their ids and go into the open batch (DESIGN.md
//! section 5).

use alloc::vec::Vec;

use super::Writer;
use super::release::Release;
use crate::batch::{Batch, WaitingAppend, entries_per_region};
use crate::error::{AppendUnit, Error};
use crate::event::{Answer, Append, Appended, Effect, queued_bytes};
use crate::options::AckMode;
use crate::types::{EntryId, RegionId, Time};

/// A call that takes its place in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct QueuedCall<W> {
    pub(super) call: Call,
    pub(super) waiter: W,
    pub(super) arrived: Time,
}

#[derive(Clone, Debug)]
pub(super) enum Call {
    Append {
        append: Append,
        /// Of its payloads: counted once, since it is asked at every event while the append waits.
        bytes: u64,
    },
    Release(Release),
}

impl Call {
    /// What it counts as while it waits for admission; releases count nothing.
    pub(super) fn queued_bytes(&self) -> u64 {
        match self {
            Call::Append { bytes, .. } => queued_bytes(*bytes),
            Call::Release(_) => 0,
        }
    }
}

impl<W> QueuedCall<W> {
    pub(super) fn is_append(&self) -> bool {
        matches!(self.call, Call::Append { .. })
    }
}

/// What of the appends that a [`Writer`] was handed no longer waits for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The [`queued_bytes`](Append::queued_bytes) of all that it ever admitted, refused or failed.
    pub bytes: u64,
    /// It takes nothing now, and says so to every append at once.
    pub refuses: bool,
}

/// Whether an append goes into the open batch now.
enum Admission {
    Now,
    Later,
    /// It is refused.
    Never(Error),
}

/// What became of an append that was tried.
enum Tried {
    Admitted,
    Queued,
    Refused,
}

impl<W> Writer<W> {
    pub(super) fn append(&mut self, append: Append, waiter: W) {
        let bytes = match self.is_admissible(&append) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.settled += append.queued_bytes();
                self.stats.rejected_appends_total += 1;
                return self.fail(waiter, error);
            }
        };
        if append.entries().len() == 0 {
            self.settled += queued_bytes(bytes);
            let answer = Answer::Appended(Appended::Many(Vec::new()));
            return self.emit(Effect::Ack { waiter, answer });
        }
        let call = Call::Append { append, bytes };
        let queued = QueuedCall { call, waiter, arrived: self.now };
        if !self.queue.is_empty() {
            self.queue.push_back(queued);
        } else if !matches!(self.admit_or_queue(queued), Tried::Queued) {
            return;
        }
        self.stats.stalled_appends_total += 1;
        self.stats.queued_bytes += queued_bytes(bytes);
    }

    /// What no longer waits for admission, for a [`Gate`](crate::gate::Gate).
    pub fn settled(&self) -> Settled {
        let refuses = self.fencing.is_none() && self.may_write().is_err();
        Settled { bytes: self.settled, refuses }
    }

    /// Says how many bytes of payloads an append has, if it is one that the log takes.
    fn is_admissible(&self, append: &Append) -> Result<u64, Error> {
        self.may_write()?;
        let mut bytes = 0;
        for (region, payload) in append.entries() {
            if region.is_reserved() {
                return Err(Error::InvalidRegion { region });
            }
            self.is_not_released(region)?;
            bytes += payload.len() as u64;
        }
        let limit = self.options.max_append_bytes;
        if bytes > limit {
            return Err(Error::AppendTooLarge { size: bytes, limit, unit: AppendUnit::Bytes });
        }
        let limit = u64::from(EntryId::MAX_POSITION);
        if append.entries().len() as u64 > limit
            && let Some(size) = entries_per_region(append).into_values().find(|n| *n > limit)
        {
            return Err(Error::AppendTooLarge { size, limit, unit: AppendUnit::Entries });
        }
        Ok(bytes)
    }

    /// Nothing is appended to a region that was released in full.
    fn is_not_released(&self, region: RegionId) -> Result<(), Error> {
        // As good as always there is none.
        if !self.released.is_empty() && self.released.contains(&region) {
            return Err(Error::Released { region });
        }
        Ok(())
    }

    /// Admits a call, or puts it back at the front of the queue: then no other may be tried.
    fn admit_or_queue(&mut self, queued: QueuedCall<W>) -> Tried {
        let admission = match &queued.call {
            Call::Append { append, bytes } => self.make_way_for(append, *bytes),
            Call::Release(_) if self.floor.is_some() => Admission::Later,
            Call::Release(_) => Admission::Now,
        };
        match admission {
            Admission::Now => {
                self.admit(queued);
                Tried::Admitted
            }
            Admission::Later => {
                self.queue.push_front(queued);
                Tried::Queued
            }
            Admission::Never(error) => {
                self.settled += queued.call.queued_bytes();
                self.stats.rejected_appends_total += 1;
                self.fail(queued.waiter, error);
                Tried::Refused
            }
        }
    }

    /// Seals a batch that cannot take the append, if there is room.
    fn make_way_for(&mut self, append: &Append, bytes: u64) -> Admission {
        if self.floor.is_some() {
            return Admission::Later;
        }
        // The release may have been ahead of it in the queue.
        let mut regions = append.entries().map(|(region, _)| region);
        if !self.released.is_empty()
            && let Some(error) = regions.find_map(|region| self.is_not_released(region).err())
        {
            return Admission::Never(error);
        }
        if self.is_over_threshold(append, bytes) {
            // So that there is an upload to wait for.
            self.seal_wanted |= self.open.is_some() && self.pipeline.slots() == 0;
            return Admission::Later;
        }
        if let Some(open) = &self.open
            && (self.is_full(open) || !open.has_positions_for(append))
        {
            if !self.has_room() {
                self.seal_wanted = true;
                return Admission::Later;
            }
            self.seal();
        }
        if self.open.is_none() && !self.next_sequence.is_valid() {
            return Admission::Never(Error::SequenceExhausted);
        }
        Admission::Now
    }

    fn admit(&mut self, queued: QueuedCall<W>) {
        let QueuedCall { call, waiter, arrived } = queued;
        let (append, bytes) = match call {
            Call::Append { append, bytes } => (append, bytes),
            Call::Release(release) => return self.admit_release(release, waiter),
        };
        self.settled += queued_bytes(bytes);
        self.stats.appends_total += 1;
        self.stats.appended_entries_total += append.entries().len() as u64;
        self.stats.appended_bytes_total += bytes;
        let (ids, size) = self.open_batch(|open| (open.admit(&append), open.bytes()));
        self.seal_wanted |= size >= self.options.max_batch_bytes;
        match (self.options.ack_mode, &mut self.open) {
            (AckMode::Durable, Some(open)) => {
                open.appends.push(WaitingAppend { waiter, ids, arrived });
            }
            _ => {
                self.stats.append_ack.record_duration(self.now.since(arrived));
                self.emit(Effect::Ack { waiter, answer: Answer::Appended(ids) });
            }
        }
    }

    /// Changes the open batch, which is begun if there is none.
    pub(super) fn open_batch<T>(&mut self, change: impl FnOnce(&mut Batch<W>) -> T) -> T {
        let before = self.open.as_ref().map_or(0, Batch::bytes);
        let open = self.open.get_or_insert_with(|| Batch::new(self.next_sequence, self.now));
        let changed = change(open);
        self.stats.unpersisted_bytes += open.bytes() - before;
        changed
    }

    pub(super) fn admit_queued(&mut self) {
        while let Some(queued) = self.queue.pop_front() {
            let stalled = self.now.since(queued.arrived);
            let (is_append, bytes) = (queued.is_append(), queued.call.queued_bytes());
            match self.admit_or_queue(queued) {
                Tried::Admitted if is_append => self.stats.stalled_append.record_duration(stalled),
                Tried::Admitted | Tried::Refused => {}
                Tried::Queued => return,
            }
            self.stats.queued_bytes -= bytes;
        }
    }
}
