//! Waiting for what was handed out to become durable (DESIGN.md section 5).

use alloc::collections::VecDeque;

use super::{Effect, Writer};
use crate::error::Error;
use crate::event::Answer;
use crate::types::{EntryId, ObjectSeq, RegionId};

/// The sequences of batches that were rolled back, ascending: their ids are never certified.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedSequences(VecDeque<FailedRange>);

#[derive(Clone, Debug)]
struct FailedRange {
    first: ObjectSeq,
    last: ObjectSeq,
    error: Error,
    /// The first object that was indexed after it.
    followed_by: Option<ObjectSeq>,
}

impl FailedSequences {
    pub(super) fn add(&mut self, first: ObjectSeq, last: ObjectSeq, error: &Error) {
        match self.0.back_mut() {
            // A store in trouble rolls back again and again: that is one range.
            Some(range) if range.last.next() == first => {
                range.last = last;
                range.error = error.clone();
            }
            _ => {
                let error = error.clone();
                self.0.push_back(FailedRange { first, last, error, followed_by: None });
            }
        }
    }

    /// An object was indexed, with which the boundary is here. It passes what was never indexed as
    /// soon as nothing before that is live, so a range is kept until what followed it is obsolete
    /// too: then nobody waits for it any more.
    pub(super) fn indexed(&mut self, sequence: ObjectSeq, boundary: ObjectSeq) {
        for range in self.0.iter_mut().rev().take_while(|range| range.followed_by.is_none()) {
            range.followed_by = Some(sequence);
        }
        let obsolete =
            |range: &FailedRange| range.followed_by.is_some_and(|object| object < boundary);
        while self.0.front().is_some_and(obsolete) {
            self.0.pop_front();
        }
    }

    fn error(&self, sequence: ObjectSeq) -> Option<&Error> {
        let at = self.0.partition_point(|range| range.last < sequence);
        self.0.get(at).filter(|range| range.first <= sequence).map(|range| &range.error)
    }
}

impl<W> Writer<W> {
    pub(super) fn wait_durable(&mut self, region: RegionId, id: EntryId, waiter: W) {
        let refusal = if region.is_reserved() {
            Some(Error::InvalidRegion { region })
        } else if let Some(error) = self.failed.error(id.sequence()) {
            Some(error.clone())
        } else if id <= self.catalog.durable(region) || self.is_settled(id.sequence()) {
            None
        } else if let Err(error) = self.is_running() {
            Some(error)
        } else {
            return self.wait_pending(region, id, waiter);
        };
        match refusal {
            Some(error) => self.fail(waiter, error),
            None => self.emit(Effect::Ack { waiter, answer: Answer::Done }),
        }
    }

    /// Whether every batch up to this sequence became durable or failed: of an id there that is not
    /// known to have failed, nothing waits, whatever is still known of its region.
    fn is_settled(&self, sequence: ObjectSeq) -> bool {
        let dropped = self.dropped_from.is_some_and(|dropped| sequence >= dropped);
        !dropped && self.catalog.last().is_some_and(|last| sequence <= last.sequence)
    }

    /// Waits with the newest batch that holds an id of the region at or below this one.
    fn wait_pending(&mut self, region: RegionId, id: EntryId, waiter: W) {
        let open = self.open.as_mut().filter(|open| open.holds(region, id));
        let waits = match open {
            Some(open) => Some(&mut open.waits),
            None => self.pipeline.newest_with(region, id).map(|batch| &mut batch.waits),
        };
        match (waits, &self.failing) {
            (None, _) => self.emit(Effect::Ack { waiter, answer: Answer::Done }),
            (Some(_), Some(error)) => {
                let error = error.clone();
                self.fail(waiter, error);
            }
            (Some(waits), None) => waits.push(waiter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_found_and_forgotten() {
        let mut failed = FailedSequences::default();
        let seq = ObjectSeq;
        failed.add(seq(5), seq(6), &Error::Stopped);
        failed.add(seq(7), seq(7), &Error::SequenceExhausted);
        assert_eq!(failed.0.len(), 1);
        failed.indexed(seq(8), seq(8));
        failed.add(seq(10), seq(12), &Error::Stopped);
        let known = |failed: &FailedSequences| -> alloc::vec::Vec<u64> {
            (0..20).filter(|sequence| failed.error(seq(*sequence)).is_some()).collect()
        };
        assert_eq!(known(&failed), [5, 6, 7, 10, 11, 12]);
        failed.indexed(seq(13), seq(8));
        assert_eq!(known(&failed), [5, 6, 7, 10, 11, 12], "8 is needed still");
        failed.indexed(seq(14), seq(13));
        assert_eq!(known(&failed), [10, 11, 12]);
        failed.indexed(seq(15), seq(14));
        assert_eq!(known(&failed), [0; 0]);
    }
}
