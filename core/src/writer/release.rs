//! Releasing regions, in records that survive a restart (DESIGN.md section 6).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::admit::{Call, QueuedCall};
use super::{Effect, Error, State, Writer};
use crate::backoff::Backoff;
use crate::error::Outcome;
use crate::event::Answer;
use crate::format::ReleaseRecord;
use crate::types::{EntryId, RegionId, Time};

/// A region that is to be released.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) region: RegionId,
    /// Through every id that it could ever have.
    pub(super) in_full: bool,
}

/// The largest ids of regions in batches that failed with an unknown outcome. Until an object is
/// indexed after them, a restart may bring them back: so such a region is not one of which there is
/// nothing.
pub(super) type MayReturn = BTreeMap<RegionId, EntryId>;

/// Records whose object failed, or that came while the log was failing. They are sealed with the
/// next batch, or alone.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    records: BTreeMap<RegionId, EntryId>,
    /// When they may be sealed alone.
    due: Time,
    backoff: Backoff,
}

impl Carried {
    pub(super) fn new() -> Carried {
        Carried { records: BTreeMap::new(), due: Time::ZERO, backoff: Backoff::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn take(&mut self) -> BTreeMap<RegionId, EntryId> {
        core::mem::take(&mut self.records)
    }

    /// Of one region the largest id wins.
    pub(super) fn add(&mut self, records: impl IntoIterator<Item = (RegionId, EntryId)>) {
        for (region, through) in records {
            let carried = self.records.entry(region).or_default();
            *carried = through.max(*carried);
        }
    }

    pub(super) fn add_records(&mut self, records: &[ReleaseRecord]) {
        self.add(records.iter().map(|record| (record.region, record.through)));
    }

    /// An object with records became part of the log.
    pub(super) fn succeeded(&mut self) {
        self.backoff = Backoff::new();
    }

    pub(super) fn set_due(&mut self, due: Time) {
        self.due = due;
    }
}

impl<W> Writer<W> {
    pub(super) fn release(&mut self, release: Release, waiter: W) {
        let region = release.region;
        if region.is_reserved() {
            return self.fail(waiter, Error::InvalidRegion { region });
        }
        if let Err(error) = self.is_running() {
            return self.fail(waiter, error);
        }
        if let Some(error) = self.failing.clone() {
            return self.refuse_release(release, waiter, &error);
        }
        let queued = QueuedCall { call: Call::Release(release), waiter, arrived: self.now };
        if self.queue.is_empty() && self.floor.is_none() {
            self.admit_release(release, queued.waiter);
        } else {
            self.queue.push_back(queued);
        }
    }

    /// Puts the record into the open batch, which is sealed at once.
    pub(super) fn admit_release(&mut self, release: Release, waiter: W) {
        let Some((region, through)) = self.record_of(release) else {
            return self.emit(Effect::Ack { waiter, answer: Answer::Done });
        };
        if self.open.is_none() && !self.next_sequence.is_valid() {
            return self.fail(waiter, Error::SequenceExhausted);
        }
        self.open_batch(|open| {
            open.release([(region, through)]);
            open.waits.push(waiter);
        });
        self.seal_wanted = true;
        self.note_release(release);
    }

    /// A failing log takes no release, but its record is not forgotten: it is in the first object
    /// after a create succeeded.
    pub(super) fn refuse_release(&mut self, release: Release, waiter: W, error: &Error) {
        self.stats.rejected_appends_total += 1;
        let record = self.record_of(release);
        let outcome = if record.is_some() { Outcome::Unknown } else { Outcome::NotWritten };
        self.carried.add(record);
        if record.is_some() {
            self.note_release(release);
        }
        self.fail_all([waiter].into(), error, outcome);
    }

    /// The record of a release; none if nothing of the region is there, on its way, or could be
    /// there after a restart.
    fn record_of(&self, release: Release) -> Option<(RegionId, EntryId)> {
        let Release { region, in_full } = release;
        let pending = self.pending(region);
        let may_return = self.may_return.get(&region).copied();
        if pending.is_none() && may_return.is_none() && !self.catalog.holds(region) {
            return None;
        }
        let latest = self.latest(region).max(may_return.unwrap_or_default());
        Some((region, if in_full { EntryId::MAX } else { latest }))
    }

    fn note_release(&mut self, release: Release) {
        if release.in_full {
            self.released.insert(release.region);
        }
    }

    /// Whether a record that releases the region in full is on its way.
    pub(super) fn is_being_released_in_full(&self, region: RegionId) -> bool {
        let in_full = |records: &BTreeMap<RegionId, EntryId>| {
            records.get(&region).is_some_and(|through| *through == EntryId::MAX)
        };
        let record = ReleaseRecord { region, through: EntryId::MAX };
        in_full(&self.carried.records)
            || self.open.as_ref().is_some_and(|open| in_full(open.releases()))
            || self.pipeline.iter().any(|batch| batch.records.contains(&record))
    }

    /// After a roll back, records wait before they are sealed alone: longer each time, while that
    /// keeps failing.
    pub(super) fn delay_carried(&mut self) {
        if self.carried.is_empty() {
            return;
        }
        let due = self.now.after(self.carried.backoff.next());
        let interval = self.last_timed_seal.map(|last| last.after(self.options.flush_interval));
        self.carried.due = interval.map_or(due, |interval| interval.max(due));
    }

    /// When a tick would seal the carried records, alone or with what is open by then.
    pub(super) fn next_carried_seal(&self) -> Option<Time> {
        let may = matches!(self.state, State::Running)
            && self.fencing.is_none()
            && self.failing.is_none()
            && self.floor.is_none()
            && self.has_free_slot()
            && self.has_room()
            && self.next_sequence.is_valid();
        (may && !self.carried.is_empty()).then_some(self.carried.due)
    }

    /// The carried records, for the batch that is sealed now.
    pub(super) fn take_carried(&mut self) {
        if self.carried.is_empty() {
            return;
        }
        let records = self.carried.take();
        self.open_batch(|open| open.release(records));
    }

    /// The carried records will never be written.
    pub(super) fn lose_carried(&mut self, cause: &Error) {
        let lost = self.carried.take().len() as u64;
        self.lost_releases += lost;
        if lost > 0 {
            self.loss_cause.get_or_insert(cause.clone());
        }
    }

    /// What of the acknowledged entries and of the release records could not be saved, and why.
    pub(super) fn loss(&self, poison: Option<&Arc<Error>>) -> Option<Error> {
        let (entries, releases) = (self.lost_entries, self.lost_releases);
        if entries == 0 && releases == 0 {
            return None;
        }
        let last = || Arc::new(self.loss_cause.clone().unwrap_or(Error::Stopped));
        let cause = poison.cloned().unwrap_or_else(last);
        Some(Error::Lost { entries, releases, cause })
    }
}
