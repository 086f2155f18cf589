//! Waiting for what was handed out to become durable (DESIGN.md section 5).

use alloc::collections::VecDeque;

use super::{Effect, Writer};
use crate::error::Error;
use crate::event::Answer;
use crate::types::{EntryId, ObjectSeq, RegionId};

/// So many ranges are kept with their cause.
const MOST_CAUSES: usize = 64;

/// The sequences of batches that were rolled back or dropped, ascending: their ids are never
/// certified.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedSequences {
    ranges: VecDeque<FailedRange>,
    /// From the first range of which the cause is not kept to the last. Not all between them failed:
    /// the catalog knows what did not.
    older: Option<FailedRange<()>>,
}

#[derive(Clone, Debug)]
struct FailedRange<E = Error> {
    first: ObjectSeq,
    last: ObjectSeq,
    error: E,
    /// The first object that was indexed after it.
    followed_by: Option<ObjectSeq>,
}

/// What is known of the failure of a sequence.
enum Failed<'a> {
    For(&'a Error),
    /// It is among older ones, if it failed.
    Perhaps,
}

impl<E> FailedRange<E> {
    fn is_obsolete(&self, boundary: ObjectSeq) -> bool {
        self.followed_by.is_some_and(|object| object < boundary)
    }
}

impl FailedSequences {
    pub(super) fn add(&mut self, first: ObjectSeq, last: ObjectSeq, error: &Error) {
        // Stop drops what comes behind batches that are rolled back later.
        let at = self.ranges.partition_point(|range| range.last < first);
        match at.checked_sub(1).and_then(|before| self.ranges.get_mut(before)) {
            // A store in trouble rolls back again and again: that is one range.
            Some(range) if range.last.next() == first => {
                range.last = last;
                range.error = error.clone();
            }
            _ => {
                let error = error.clone();
                self.ranges.insert(at, FailedRange { first, last, error, followed_by: None });
            }
        }
        if self.ranges.len() > MOST_CAUSES
            && let Some(FailedRange { first, last, followed_by, .. }) = self.ranges.pop_front()
        {
            let first = self.older.as_ref().map_or(first, |older| older.first);
            self.older = Some(FailedRange { first, last, error: (), followed_by });
        }
    }

    /// An object was indexed, with which the boundary is here. It passes what was never indexed as
    /// soon as nothing before that is live, so a range is kept until what followed it is obsolete
    /// too: then nobody waits for it any more.
    pub(super) fn indexed(&mut self, sequence: ObjectSeq, boundary: ObjectSeq) {
        for range in self.ranges.iter_mut().rev().take_while(|range| range.followed_by.is_none()) {
            range.followed_by = Some(sequence);
        }
        if let Some(older) = &mut self.older {
            older.followed_by.get_or_insert(sequence);
        }
        self.older.take_if(|older| older.is_obsolete(boundary));
        while self.ranges.front().is_some_and(|range| range.is_obsolete(boundary)) {
            self.ranges.pop_front();
        }
    }

    fn of(&self, sequence: ObjectSeq) -> Option<Failed<'_>> {
        let at = self.ranges.partition_point(|range| range.last < sequence);
        let range = self.ranges.get(at).filter(|range| range.first <= sequence);
        let older = self.older.as_ref();
        let is_older = older.is_some_and(|older| older.first <= sequence && sequence <= older.last);
        range.map(|range| Failed::For(&range.error)).or_else(|| is_older.then_some(Failed::Perhaps))
    }
}

impl<W> Writer<W> {
    pub(super) fn wait_durable(&mut self, region: RegionId, id: EntryId, waiter: W) {
        let refusal = if region.is_reserved() {
            Some(Error::InvalidRegion { region })
        } else if let Some(error) = self.failure_of(region, id) {
            Some(error)
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

    /// What a wait for the id of a batch that failed fails with.
    fn failure_of(&self, region: RegionId, id: EntryId) -> Option<Error> {
        let sequence = id.sequence();
        match self.failed.of(sequence)? {
            Failed::For(error) => Some(error.clone()),
            // What is at or above the boundary and became part of the log is there still.
            Failed::Perhaps => (sequence >= self.catalog.boundary()
                && !self.catalog.is_at(sequence))
            .then_some(Error::NotStored { region, id }),
        }
    }

    /// Whether every batch up to this sequence became durable or failed: of an id there that is not
    /// known to have failed, nothing waits, whatever is still known of its region.
    fn is_settled(&self, sequence: ObjectSeq) -> bool {
        self.catalog.last().is_some_and(|last| sequence <= last.sequence)
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
    use alloc::vec::Vec;

    use super::*;

    fn seq(sequence: u64) -> ObjectSeq {
        ObjectSeq(sequence)
    }

    fn known(failed: &FailedSequences) -> Vec<u64> {
        (0..20).filter(|at| matches!(failed.of(seq(*at)), Some(Failed::For(_)))).collect()
    }

    #[test]
    fn ranges_are_joined_found_and_forgotten() {
        let mut failed = FailedSequences::default();
        failed.add(seq(5), seq(6), &Error::Stopped);
        failed.add(seq(7), seq(7), &Error::SequenceExhausted);
        assert_eq!(failed.ranges.len(), 1);
        failed.indexed(seq(8), seq(8));
        failed.add(seq(10), seq(12), &Error::Stopped);
        assert_eq!(known(&failed), [5, 6, 7, 10, 11, 12]);
        failed.indexed(seq(13), seq(8));
        assert_eq!(known(&failed), [5, 6, 7, 10, 11, 12], "8 is needed still");
        failed.indexed(seq(14), seq(13));
        assert_eq!(known(&failed), [10, 11, 12]);
        failed.indexed(seq(15), seq(14));
        assert_eq!(known(&failed), [0; 0]);
    }

    #[test]
    fn what_is_kept_of_failures_is_bounded() {
        let mut failed = FailedSequences::default();
        for at in 0..2000 {
            failed.add(seq(2 * at), seq(2 * at), &Error::Stopped);
            failed.indexed(seq(2 * at + 1), seq(0));
        }
        assert_eq!(failed.ranges.len(), MOST_CAUSES);
        assert!(matches!(failed.of(seq(3998)), Some(Failed::For(_))));
        assert!(matches!(failed.of(seq(3872)), Some(Failed::For(_))), "the 64th from the end");
        assert!(matches!(failed.of(seq(3870)), Some(Failed::Perhaps)));
        assert!(matches!(failed.of(seq(0)), Some(Failed::Perhaps)));
        failed.indexed(seq(4000), seq(3872));
        assert!(failed.of(seq(3870)).is_none(), "what followed it is obsolete");
    }
}
