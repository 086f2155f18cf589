//! Sealing: when the open batch is closed, and what it is linked to (DESIGN.md section 5).

use super::{Writer, pipeline};
use crate::batch::Batch;
use crate::format::Header;
use crate::types::Time;

impl<W> Writer<W> {
    pub(super) fn seal_if_wanted(&mut self) {
        if self.seal_wanted && self.open.is_some() && self.has_room() {
            self.seal();
        }
    }

    /// By time a batch seals at a tick and at nothing else, so that of many appends that came
    /// together the first does not leave alone.
    pub(super) fn seal_if_due(&mut self) {
        let timed = [self.next_timed_seal(), self.next_carried_seal()];
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        if timed.into_iter().any(is_due) {
            self.last_timed_seal = Some(self.now);
            self.open_batch(|_| ());
            self.seal();
        } else if is_due(self.next_carrier()) {
            self.open_batch(|_| ());
            self.seal();
        }
    }

    /// When a tick would seal the open batch: only while a create slot is free.
    pub(super) fn next_timed_seal(&self) -> Option<Time> {
        let may = self.is_active() && self.has_free_slot() && self.has_room();
        self.timed_seal_at().filter(|_| may)
    }

    /// When the open batch seals by time: a lone append on an idle log leaves after `linger`, and
    /// a busy log makes one timed object per interval.
    fn timed_seal_at(&self) -> Option<Time> {
        let lingered = self.open.as_ref()?.opened_at().after(self.options.linger);
        let interval = self.last_timed_seal.map(|last| last.after(self.options.flush_interval));
        Some(interval.map_or(lingered, |interval| interval.max(lingered)))
    }

    /// Fixes the open batch: it takes its sequence, and links to what comes before it.
    pub(super) fn seal(&mut self) {
        self.seal_wanted = false;
        self.take_carried();
        let Some(batch) = self.open.take() else { return };
        let header = Header {
            sequence: batch.sequence(),
            epoch: self.epoch,
            predecessor: self.pipeline.last().map(|last| last.link).or(self.catalog.last()),
            boundary: self.catalog.boundary(),
        };
        self.next_sequence = batch.sequence().next();
        self.last_seal = self.now;
        let key = self.prefix.object_key(batch.sequence());
        let guarded = core::mem::take(&mut self.skipped);
        self.pipeline.push(pipeline::seal(batch, &header, key, guarded, self.now));
    }

    pub(super) fn is_full(&self, open: &Batch<W>) -> bool {
        open.bytes() >= self.options.max_batch_bytes
    }

    pub(super) fn most_sealed(&self) -> usize {
        2 * self.options.max_in_flight as usize
    }

    /// Whether another batch may be sealed.
    pub(super) fn has_room(&self) -> bool {
        self.pipeline.len() < self.most_sealed()
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.pipeline.slots() < self.options.max_in_flight as usize
    }
}
