//! `obsolete`: the watermark, and the floor below which no id is assigned any more (DESIGN.md
//! sections 5 and 12).

use alloc::vec::Vec;

use super::{Effect, Error, Writer};
use crate::event::Answer;
use crate::options::AckMode;
use crate::types::{EntryId, ObjectSeq, RegionId};

/// How many sequences a floor leaves out at most.
const MOST_LEFT_OUT: u64 = 1 << 20;

/// Calls of `obsolete` that wait for the pipeline to become empty, so that the next sequence can
/// be raised.
#[derive(Clone, Debug)]
pub(super) struct Floor<W> {
    /// The next sequence must be at least this.
    sequence: ObjectSeq,
    calls: Vec<(RegionId, EntryId, W)>,
}

impl<W> Writer<W> {
    pub(super) fn obsolete(&mut self, region: RegionId, id: EntryId, waiter: W) {
        if let Err(error) = self.may_obsolete(region, id) {
            return self.fail(waiter, error);
        }
        if id.sequence() < self.next_sequence || self.goes_on_above(region, id) {
            return self.make_obsolete(region, id, waiter);
        }
        if let Some(error) = self.failing.clone() {
            return self.fail(waiter, error);
        }
        let floor = self
            .floor
            .get_or_insert_with(|| Floor { sequence: ObjectSeq::ZERO, calls: Vec::new() });
        floor.sequence = floor.sequence.max(id.sequence().next());
        floor.calls.push((region, id, waiter));
        self.seal_wanted = self.open.is_some();
    }

    fn may_obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        self.is_running()?;
        if region.is_reserved() {
            return Err(Error::InvalidRegion { region });
        }
        let floor = id.sequence() >= self.next_sequence && !self.goes_on_above(region, id);
        if floor {
            self.is_near(id)?;
        }
        if self.pending(region).is_some_and(|latest| id > latest) {
            return Err(Error::Unsettled { region, id });
        }
        if floor && !id.sequence().next().is_valid() {
            return Err(Error::SequenceExhausted);
        }
        Ok(())
    }

    /// A later opening may have to claim every sequence that a floor leaves out.
    fn is_near(&self, id: EntryId) -> Result<(), Error> {
        let next = self.open.as_ref().map_or(self.next_sequence, |open| open.sequence().next());
        let last = next.0 + MOST_LEFT_OUT - 1;
        if id.sequence().0 <= last {
            return Ok(());
        }
        let limit = EntryId::new(ObjectSeq(last), EntryId::MAX_POSITION).unwrap_or(EntryId::MAX);
        Err(Error::IdTooFar { id, limit })
    }

    /// Whether the open batch gives the region greater ids than this one. If it is dropped, its
    /// sequence is used up with it.
    fn goes_on_above(&self, region: RegionId, id: EntryId) -> bool {
        let open = self.open.as_ref().filter(|open| open.sequence() == id.sequence());
        open.and_then(|open| open.latest(region)).is_some_and(|latest| latest >= id)
    }

    /// Raises the next sequence once nothing is pending.
    pub(super) fn raise_floor(&mut self) {
        let pending = !self.pipeline.is_empty() && self.rules.floor_waits;
        if self.open.is_some() || pending {
            return;
        }
        if let Some(floor) = self.floor.take() {
            if floor.sequence > self.next_sequence {
                self.next_sequence = floor.sequence;
                self.skipped |= self.rules.guard_after_floor;
            }
            for (region, id, waiter) in floor.calls {
                self.make_obsolete(region, id, waiter);
            }
        }
    }

    pub(super) fn fail_floor(&mut self, error: &Error) {
        for (_, _, waiter) in self.floor.take().into_iter().flat_map(|floor| floor.calls) {
            self.fail(waiter, error.clone());
        }
    }

    fn make_obsolete(&mut self, region: RegionId, id: EntryId, waiter: W) {
        // What a crash can lose must not be hidden: it might be all there is.
        let watermark = match self.options.ack_mode {
            AckMode::Durable => id,
            AckMode::Enqueued => id.min(self.catalog.durable(region)),
        };
        self.catalog.raise_watermark(region, watermark);
        self.forget_if_nothing_is_left(region);
        self.emit(Effect::Ack { waiter, answer: Answer::Done });
    }
}
