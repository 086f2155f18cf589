//! Deleting what is not needed, and the carrier of an idle log (DESIGN.md section 9).

mod pace;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use self::pace::{Answered, Pace};
use super::{Effect, Error, State, Writer};
use crate::error::{Operation, StoreError, StoreErrorKind};
use crate::event::{Answer, Notice, RequestId, StorageEffect, Verdict};
use crate::key::{Key, KeyKind};
use crate::read::SegmentRef;
use crate::types::{Link, ObjectSeq, RegionId, Time};

/// What is deleted, and what is to be. Every object is taken up once when the durable boundary
/// passes it, and once more for each time that its delete failed.
///
/// Invariants, which [`check`](Writer::check) verifies:
///
/// 1. What is being deleted, or failed to be, is below the durable boundary, and nothing of it is
///    live.
/// 2. An object is in one place at most: being deleted, failed, or to be tried again.
/// 3. What failed has a time at which it is tried again.
#[derive(Clone, Debug)]
pub(super) struct Reclaim<W> {
    /// The boundary that the last indexed object carries.
    durable: ObjectSeq,
    /// Indexed objects below it were taken up.
    cursor: ObjectSeq,
    /// What is not indexed and not needed: what the opening found, and the keys of failed batches,
    /// which nobody saw.
    outside: BTreeMap<ObjectSeq, Seen>,
    under_way: BTreeMap<RequestId, Vec<(ObjectSeq, Seen)>>,
    deleting: BTreeSet<ObjectSeq>,
    failed: BTreeMap<ObjectSeq, Seen>,
    /// Failed before, and to be tried again now.
    again: BTreeMap<ObjectSeq, Seen>,
    pace: Pace,
    keys_per_request: usize,
    /// Deletes were started once: before that, nobody looked at what an earlier instance left.
    begun: bool,
    /// Reads that failed, and whose object is being deleted.
    reads: BTreeMap<ObjectSeq, Vec<W>>,
}

fn is_refusal(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Refused | StoreErrorKind::NotSupported)
}

/// Whether something was ever known to be at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Yes,
    No,
}

impl<W> Reclaim<W> {
    pub(super) fn new(
        durable: ObjectSeq,
        outside: impl Iterator<Item = ObjectSeq>,
        interval: Duration,
    ) -> Reclaim<W> {
        Reclaim {
            durable,
            cursor: ObjectSeq::ZERO,
            outside: outside.map(|sequence| (sequence, Seen::Yes)).collect(),
            under_way: BTreeMap::new(),
            deleting: BTreeSet::new(),
            failed: BTreeMap::new(),
            again: BTreeMap::new(),
            pace: Pace::new(interval),
            keys_per_request: 1,
            begun: false,
            reads: BTreeMap::new(),
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.is_empty()
    }

    /// An object that carries this boundary was indexed.
    pub(super) fn raise(&mut self, boundary: ObjectSeq) {
        self.durable = self.durable.max(boundary);
    }

    /// A batch failed, and what it may have left at its key is not needed.
    pub(super) fn add_failed_batch(&mut self, sequence: ObjectSeq) {
        self.outside.insert(sequence, Seen::No);
    }

    /// Begins the next round: of what failed, or, where that was cut short, of what is left of the
    /// last one. Of objects that cannot be deleted none is asked for twice before the others.
    fn try_again(&mut self, now: Time) {
        self.pace.begin_round();
        if self.again.is_empty() {
            self.again.append(&mut self.failed);
        } else {
            self.pace.wait(now);
        }
    }

    /// Whether a delete of the object was asked for, be it with an unknown outcome.
    fn was_tried(&self, sequence: ObjectSeq) -> bool {
        self.failed.contains_key(&sequence) || self.again.contains_key(&sequence)
    }

    pub(super) fn take_reads(&mut self) -> impl Iterator<Item = W> + use<W> {
        core::mem::take(&mut self.reads).into_values().flatten()
    }
}

impl<W> Writer<W> {
    /// Tells how many keys one delete request of the store takes, up to 1,000: 1, which is assumed,
    /// for a store that has no request for many.
    pub fn set_keys_per_delete(&mut self, keys: usize) {
        self.reclaim.keys_per_request = keys.clamp(1, 1000);
    }

    /// Starts deletes while there is something to delete and a request may start.
    pub(super) fn start_deletes(&mut self) {
        if !matches!(self.state, State::Running) || self.fencing.is_some() {
            return;
        }
        self.reclaim.begun = true;
        let at_most = self.options.max_deletes_in_flight as usize;
        while self.reclaim.pace.may_start(self.reclaim.under_way.len(), at_most) {
            let mut batch = Vec::new();
            while batch.len() < self.reclaim.keys_per_request
                && let Some(next) = self.take_up()
            {
                batch.push(next);
            }
            if batch.is_empty() {
                return;
            }
            let id = self.request_id();
            let key = |(sequence, _): &(ObjectSeq, Seen)| self.prefix.object_key(*sequence);
            let keys: Arc<[Key]> = batch.iter().map(key).collect();
            self.reclaim.under_way.insert(id, batch);
            let time_limit = self.options.request_timeout;
            self.emit(Effect::Storage(StorageEffect::DeleteObjects { id, keys, time_limit }));
        }
    }

    /// Another instance's object was seen at the key of a batch that failed: it is not ours to delete
    /// (DESIGN.md section 12, rule 5).
    pub(super) fn saw(&mut self, found: Link) {
        if found.epoch != self.epoch && self.reclaim.outside.get(&found.sequence) == Some(&Seen::No)
        {
            self.reclaim.outside.remove(&found.sequence);
        }
    }

    /// Takes up one more object that may be deleted, if there is one.
    fn take_up(&mut self) -> Option<(ObjectSeq, Seen)> {
        let Reclaim { durable, cursor, outside, again, deleting, .. } = &mut self.reclaim;
        // What a create could still bring about is deleted once that has run out.
        let idle = |(sequence, _): &(&ObjectSeq, &Seen)| !self.pipeline.is_running_out(**sequence);
        let next = if let Some((&sequence, &seen)) = outside.range(..*durable).find(idle) {
            outside.remove(&sequence);
            (sequence, seen)
        } else {
            let indexed = self.catalog.next_garbage(*cursor..*durable);
            // What is kept is not looked at again.
            *cursor = indexed.map_or(*durable, ObjectSeq::next);
            // What failed comes last: objects that cannot be deleted must not hold up all others.
            indexed.map(|sequence| (sequence, Seen::Yes)).or_else(|| again.pop_first())?
        };
        deleting.insert(next.0);
        Some(next)
    }

    pub(super) fn delete_result(
        &mut self,
        id: RequestId,
        results: Vec<(Key, Result<(), StoreError>)>,
    ) {
        let Some(batch) = self.reclaim.under_way.remove(&id) else { return };
        let answered =
            results.into_iter().filter_map(|(key, result)| match self.prefix.classify(&key) {
                KeyKind::Object(sequence) => Some((sequence, result)),
                KeyKind::OutOfRange | KeyKind::Foreign => None,
            });
        let mut answered: BTreeMap<_, _> = answered.collect();
        let mut failures: Option<(ObjectSeq, StoreError, u64)> = None;
        let (mut succeeded, mut refused) = (false, false);
        for (sequence, seen) in batch {
            self.reclaim.deleting.remove(&sequence);
            // A key without an answer failed.
            let unanswered = || Err(StoreError::new(StoreErrorKind::Transient));
            match answered.remove(&sequence).unwrap_or_else(unanswered) {
                Err(error) if error.kind != StoreErrorKind::NotFound => {
                    self.reclaim.failed.insert(sequence, seen);
                    refused |= is_refusal(error.kind);
                    failures.get_or_insert((sequence, error, 0)).2 += 1;
                }
                Ok(()) | Err(_) => {
                    self.deleted(sequence, seen);
                    succeeded = true;
                }
            }
            for waiter in self.reclaim.reads.remove(&sequence).into_iter().flatten() {
                self.give_verdict(sequence, waiter);
            }
        }
        let answer = match (succeeded, refused) {
            (true, _) => Answered::Succeeded,
            (false, true) => Answered::Refused,
            (false, false) => Answered::Failed,
        };
        self.reclaim.pace.answered(self.now, answer);
        if let Some((first, source, count)) = failures {
            self.deletes_failed(first, source, count);
        }
    }

    fn deleted(&mut self, sequence: ObjectSeq, seen: Seen) {
        self.stats.deleted_objects_total += u64::from(seen == Seen::Yes);
        for region in self.catalog.remove(sequence) {
            self.forget_if_nothing_is_left(region);
        }
    }

    fn deletes_failed(&mut self, first: ObjectSeq, source: StoreError, count: u64) {
        self.stats.failed_deletes_total += count;
        self.reclaim.pace.wait(self.now);
        let Some(count) = self.reclaim.pace.tell(self.now, count) else { return };
        let key = self.prefix.object_key(first);
        let error = Error::Store { operation: Operation::Delete, key: key.clone(), source };
        self.emit(Effect::Notice(Notice::DeleteFailed { key, count, error }));
    }

    /// Forgets a region of which nothing is indexed, on its way or recorded.
    pub(super) fn forget_if_nothing_is_left(&mut self, region: RegionId) {
        if !self.catalog.is_without(region) || self.pending(region).is_some() {
            return;
        }
        self.catalog.forget(region);
        if self.released.contains(&region) && !self.is_being_released_in_full(region) {
            self.released.remove(&region);
        }
    }

    /// Says whether the object of a read that failed is still part of the log, once no delete of it
    /// is under way.
    pub(super) fn judge_read(&mut self, segment: SegmentRef, waiter: W) {
        let sequence = segment.object.sequence;
        let deleting = self.reclaim.deleting.contains(&sequence);
        if deleting && matches!(self.state, State::Stopped(_)) {
            // It was abandoned: no answer comes any more.
            self.fail(waiter, Error::Stopped);
        } else if deleting {
            self.reclaim.reads.entry(sequence).or_default().push(waiter);
        } else if self.catalog.is_indexed(segment.object) {
            self.give_verdict(sequence, waiter);
        } else {
            self.emit(Effect::Ack { waiter, answer: Answer::Verdict(Verdict::Gone) });
        }
    }

    /// An object whose delete failed may be gone all the same, and nothing of it is needed: a read
    /// that was begun before must not fail because of it.
    fn give_verdict(&mut self, sequence: ObjectSeq, waiter: W) {
        let stands = self.catalog.is_at(sequence) && !self.reclaim.was_tried(sequence);
        let verdict = if stands { Verdict::Indexed } else { Verdict::Gone };
        self.emit(Effect::Ack { waiter, answer: Answer::Verdict(verdict) });
    }

    /// Tries again what failed, at a tick.
    pub(super) fn retry_deletes(&mut self) {
        if self.next_delete_retry().is_some_and(|at| at <= self.now) {
            self.reclaim.try_again(self.now);
        }
    }

    /// A log that was just opened deletes what an earlier instance did not get to, at once.
    pub(super) fn first_deletes(&self) -> Option<Time> {
        let Reclaim { begun, durable, outside, .. } = &self.reclaim;
        let left = || {
            let garbage = self.catalog.next_garbage(ObjectSeq::ZERO..*durable);
            outside.range(..*durable).next().is_some() || garbage.is_some()
        };
        (!begun && matches!(self.state, State::Running) && left()).then_some(self.now)
    }

    pub(super) fn next_delete_retry(&self) -> Option<Time> {
        self.reclaim.pace.retry_at().filter(|_| matches!(self.state, State::Running))
    }

    /// When an idle log makes an object that only carries the boundary: when nothing was sealed for
    /// `reclaim_interval`, and that lets an object with entries or release records be deleted. A
    /// carrier holds neither, so it never causes another; one that took carried records along is
    /// followed by one that did not.
    pub(super) fn next_carrier(&self) -> Option<Time> {
        let interval = self.options.reclaim_interval;
        let frees = self.catalog.last_passed().is_some_and(|passed| passed >= self.reclaim.durable);
        let idle = matches!(self.state, State::Running)
            && self.fencing.is_none()
            && self.failing.is_none()
            && self.floor.is_none()
            && self.open.is_none()
            && self.pipeline.is_empty();
        let may = frees && idle && interval > Duration::ZERO;
        let can = self.has_free_slot() && self.next_sequence.is_valid();
        (may && can).then(|| self.last_seal.after(interval))
    }

    pub(super) fn check_reclaim(&self) {
        let reclaim = &self.reclaim;
        assert!(reclaim.durable <= self.catalog.boundary(), "the durable boundary is ahead");
        assert!(reclaim.cursor <= reclaim.durable);
        let under_way = reclaim.under_way.values().flatten().map(|(sequence, _)| *sequence);
        assert_eq!(under_way.collect::<BTreeSet<_>>(), reclaim.deleting);
        let waiting = reclaim.failed.keys().chain(reclaim.again.keys());
        for sequence in reclaim.deleting.iter().chain(waiting.clone()) {
            assert!(*sequence < reclaim.durable, "{sequence} is not below the durable boundary");
        }
        assert!(waiting.clone().all(|sequence| !reclaim.deleting.contains(sequence)));
        assert!(reclaim.failed.keys().all(|sequence| !reclaim.again.contains_key(sequence)));
        assert!(reclaim.failed.is_empty() || reclaim.pace.retry_at().is_some(), "given up");
        assert!(reclaim.reads.keys().all(|sequence| reclaim.deleting.contains(sequence)));
    }
}
