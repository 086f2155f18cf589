//! Admission: appends are refused, queued, or get their ids and go into the open batch (DESIGN.md
//! section 5).

use alloc::vec::Vec;

use super::Writer;
use crate::batch::{Batch, WaitingAppend, entries_per_region};
use crate::error::{AppendUnit, Error};
use crate::event::{Answer, Append, Appended, Effect};
use crate::options::AckMode;
use crate::types::{EntryId, Time};

#[derive(Clone, Debug)]
pub(super) struct QueuedAppend<W> {
    pub(super) append: Append,
    /// Of its payloads: counted once, since it is asked at every event while the append waits.
    pub(super) bytes: u64,
    pub(super) waiter: W,
    pub(super) arrived: Time,
}

/// Whether an append goes into the open batch now.
enum Admission {
    Now,
    Later,
    /// There is no sequence left for a batch that could take it.
    Never,
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
                self.stats.rejected_appends_total += 1;
                return self.fail(waiter, error);
            }
        };
        if append.entries().len() == 0 {
            let answer = Answer::Appended(Appended::Many(Vec::new()));
            return self.emit(Effect::Ack { waiter, answer });
        }
        let queued = QueuedAppend { append, bytes, waiter, arrived: self.now };
        if !self.queue.is_empty() {
            self.queue.push_back(queued);
            self.stats.stalled_appends_total += 1;
        } else if let Tried::Queued = self.admit_or_queue(queued) {
            self.stats.stalled_appends_total += 1;
        }
    }

    /// Says how many bytes of payloads an append has, if it is one that the log takes.
    fn is_admissible(&self, append: &Append) -> Result<u64, Error> {
        self.may_write()?;
        let mut bytes = 0;
        for (region, payload) in append.entries() {
            if region.is_reserved() {
                return Err(Error::InvalidRegion { region });
            }
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

    /// Admits an append, or puts it back at the front of the queue: then no other may be tried.
    fn admit_or_queue(&mut self, queued: QueuedAppend<W>) -> Tried {
        match self.make_way_for(&queued) {
            Admission::Now => {
                self.admit(queued);
                Tried::Admitted
            }
            Admission::Later => {
                self.queue.push_front(queued);
                Tried::Queued
            }
            Admission::Never => {
                self.stats.rejected_appends_total += 1;
                self.fail(queued.waiter, Error::SequenceExhausted);
                Tried::Refused
            }
        }
    }

    /// Seals a batch that cannot take the append, if there is room.
    fn make_way_for(&mut self, queued: &QueuedAppend<W>) -> Admission {
        if self.floor.is_some() {
            return Admission::Later;
        }
        if self.is_over_threshold(queued) {
            // So that there is an upload to wait for.
            self.seal_wanted |= self.open.is_some() && self.pipeline.slots() == 0;
            return Admission::Later;
        }
        if let Some(open) = &self.open
            && (self.is_full(open) || !open.has_positions_for(&queued.append))
        {
            if !self.has_room() {
                self.seal_wanted = true;
                return Admission::Later;
            }
            self.seal();
        }
        if self.open.is_none() && !self.next_sequence.is_valid() {
            return Admission::Never;
        }
        Admission::Now
    }

    fn admit(&mut self, queued: QueuedAppend<W>) {
        let QueuedAppend { append, bytes, waiter, arrived } = queued;
        let open = self.open.get_or_insert_with(|| Batch::new(self.next_sequence, self.now));
        let before = if open.entries() == 0 { 0 } else { open.bytes() };
        self.stats.appends_total += 1;
        self.stats.appended_entries_total += append.entries().len() as u64;
        self.stats.appended_bytes_total += bytes;
        let ids = open.admit(&append);
        self.stats.unpersisted_bytes += open.bytes() - before;
        self.seal_wanted |= open.bytes() >= self.options.max_batch_bytes;
        match self.options.ack_mode {
            AckMode::Durable => open.appends.push(WaitingAppend { waiter, ids, arrived }),
            AckMode::Enqueued => {
                self.stats.append_ack.record_duration(self.now.since(arrived));
                self.emit(Effect::Ack { waiter, answer: Answer::Appended(ids) });
            }
        }
    }

    pub(super) fn admit_queued(&mut self) {
        while let Some(queued) = self.queue.pop_front() {
            let stalled = self.now.since(queued.arrived);
            match self.admit_or_queue(queued) {
                Tried::Admitted => self.stats.stalled_append.record_duration(stalled),
                Tried::Refused => {}
                Tried::Queued => return,
            }
        }
    }
}
