//! Sealed batches on their way into the log (DESIGN.md section 5, pipeline and indexing).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use super::guard::{GuardListing, Looks};
use crate::backoff::Backoff;
use crate::batch::{Batch, WaitingAppend};
use crate::error::{Error, Outcome, StoreError};
use crate::event::{Payload, ReadBack, RequestId};
use crate::format::{HEADER_LEN, ReleaseRecord, SegmentMeta};
use crate::key::Key;
use crate::rules::Rules;
use crate::types::{EntryId, Link, ObjectSeq, RegionId, Time};

/// The sealed batches that are not indexed, in sequence order.
///
/// Invariants, which [`check`](Pipeline::check) verifies:
///
/// 1. Sequences ascend.
/// 2. Creates start in sequence order: the batches that were started come first.
/// 3. Only the first batch is guarded.
/// 4. `slots` counts the creates that are under way or wait for their repeat.
#[derive(Clone, Debug)]
pub(super) struct Pipeline<W> {
    batches: VecDeque<SealedBatch<W>>,
    /// How many batches, from the front, were started.
    started: usize,
    slots: usize,
    /// Requests of batches that failed meanwhile: they keep their slot until they run out, and
    /// their answers change nothing else.
    running_out: BTreeMap<RequestId, ObjectSeq>,
    /// The same of guards, which are no creates and keep no slot.
    looks_running_out: BTreeSet<RequestId>,
}

/// A batch whose bytes are fixed.
#[derive(Clone, Debug)]
pub(super) struct SealedBatch<W> {
    pub(super) link: Link,
    pub(super) key: Key,
    pub(super) payload: Payload,
    pub(super) segments: Vec<SegmentMeta>,
    pub(super) records: Vec<ReleaseRecord>,
    /// The reclaim boundary that it carries.
    pub(super) boundary: ObjectSeq,
    pub(super) entries: u64,
    /// When its first entry was admitted.
    pub(super) opened_at: Time,
    pub(super) sealed_at: Time,
    pub(super) appends: Vec<WaitingAppend<W>>,
    /// Flushes, releases, and whoever waits for ids in it to become durable.
    pub(super) waits: Vec<W>,
    pub(super) create: Create,
    /// It follows a skip or a silence: what stands before it is looked at before it is indexed.
    pub(super) guarded: bool,
    pub(super) first_attempt: Time,
    /// How the last attempt failed.
    pub(super) failure: Option<Error>,
    pub(super) backoff: Backoff,
}

/// How far the create of a sealed batch is.
#[derive(Clone, Debug)]
pub(super) enum Create {
    /// No request that holds the batch was sent.
    NotStarted,
    Putting(RequestId),
    /// The put failed like this, and what stands at the key is being read.
    ReadingBack(RequestId, StoreError),
    /// The attempt ended, and what comes of it is being decided.
    Ended,
    /// The same bytes are put again at this time.
    Waiting(Time),
    /// Durable and guarded: the keys above the last indexed object are being listed.
    Listing(RequestId, Box<GuardListing>),
    /// Durable and guarded: the headers of what was listed are being read.
    Looking(Looks),
    /// Durable, as was answered at this time; it is indexed once every earlier batch is.
    Created(Time),
}

impl<W> SealedBatch<W> {
    /// The bytes by which the object is recognised.
    pub(super) fn header(&self) -> &[u8] {
        self.payload.chunks().first().map_or(&[], |chunk| &chunk[..chunk.len().min(HEADER_LEN)])
    }

    /// What it means for the entries when the batch fails now.
    pub(super) fn outcome(&self) -> Outcome {
        match self.create {
            Create::NotStarted => Outcome::NotWritten,
            _ => Outcome::Unknown,
        }
    }

    fn requests(&self) -> impl Iterator<Item = RequestId> {
        let (one, many) = match &self.create {
            Create::Putting(id) | Create::ReadingBack(id, _) | Create::Listing(id, _) => {
                (Some(*id), None)
            }
            Create::Looking(looks) => (None, Some(&looks.under_way)),
            Create::NotStarted | Create::Ended | Create::Waiting(_) | Create::Created(_) => {
                (None, None)
            }
        };
        one.into_iter().chain(many.into_iter().flat_map(|ids| ids.keys().copied()))
    }

    fn holds_slot(&self) -> bool {
        !matches!(self.create, Create::NotStarted | Create::Created(_))
    }
}

impl<W> Pipeline<W> {
    pub(super) fn new() -> Pipeline<W> {
        Pipeline {
            batches: VecDeque::new(),
            started: 0,
            slots: 0,
            running_out: BTreeMap::new(),
            looks_running_out: BTreeSet::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn first(&self) -> Option<&SealedBatch<W>> {
        self.batches.front()
    }

    pub(super) fn last(&self) -> Option<&SealedBatch<W>> {
        self.batches.back()
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut SealedBatch<W>> {
        self.batches.back_mut()
    }

    pub(super) fn is_all_started(&self) -> bool {
        self.started == self.batches.len()
    }

    /// How many create slots are in use.
    pub(super) fn slots(&self) -> usize {
        self.slots + self.running_out.len()
    }

    /// Whether no request is under way, also none that runs out.
    pub(super) fn is_quiet(&self) -> bool {
        self.batches.is_empty() && self.running_out.is_empty() && self.looks_running_out.is_empty()
    }

    /// The largest id of a region that is on its way.
    pub(super) fn latest(&self, region: RegionId) -> Option<EntryId> {
        self.batches.iter().rev().find_map(|batch| {
            let at = batch.segments.binary_search_by_key(&region, |meta| meta.region).ok()?;
            Some(batch.segments[at].max_id)
        })
    }

    /// The newest batch with an id of the region at or below this one.
    pub(super) fn newest_with(
        &mut self,
        region: RegionId,
        through: EntryId,
    ) -> Option<&mut SealedBatch<W>> {
        self.batches.iter_mut().rev().find(|batch| {
            let at = batch.segments.binary_search_by_key(&region, |meta| meta.region);
            at.is_ok_and(|at| batch.segments[at].min_id <= through)
        })
    }

    pub(super) fn push(&mut self, batch: SealedBatch<W>) {
        self.batches.push_back(batch);
    }

    /// The next batch to start, which takes a slot, if there is one. None starts behind a guarded
    /// one, so that holes stay few.
    pub(super) fn start(&mut self, rules: Rules) -> Option<&mut SealedBatch<W>> {
        let guarded = self.batches.iter().take(self.started).any(|batch| batch.guarded);
        if guarded && rules.guard_holds_creates {
            return None;
        }
        let batch = self.batches.get_mut(self.started)?;
        self.started += 1;
        self.slots += 1;
        Some(batch)
    }

    /// A batch whose repeat is due. It keeps its slot.
    pub(super) fn due(&mut self, now: Time) -> Option<&mut SealedBatch<W>> {
        let due =
            |batch: &&mut SealedBatch<W>| matches!(batch.create, Create::Waiting(at) if at <= now);
        self.batches.iter_mut().take(self.started).find(due)
    }

    /// When the next repeat is due.
    pub(super) fn next_repeat(&self) -> Option<Time> {
        let repeats =
            self.batches.iter().take(self.started).filter_map(|batch| match batch.create {
                Create::Waiting(at) => Some(at),
                _ => None,
            });
        repeats.min()
    }

    /// Whether a request of a batch is under way.
    pub(super) fn is_running(&self) -> bool {
        self.batches.iter().take(self.started).any(|batch| batch.requests().next().is_some())
    }

    /// The first batch whose create was started and has not succeeded.
    pub(super) fn slowest(&self) -> Option<&SealedBatch<W>> {
        self.batches.iter().take(self.started).find(|batch| batch.holds_slot())
    }

    /// The batches in sequence order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SealedBatch<W>> {
        self.batches.iter_mut()
    }

    /// Finds the batch that waits for this answer.
    pub(super) fn find(&mut self, id: RequestId) -> Option<&mut SealedBatch<W>> {
        let waits = |batch: &&mut SealedBatch<W>| batch.requests().any(|of| of == id);
        self.batches.iter_mut().take(self.started).find(waits)
    }

    pub(super) fn get_mut(&mut self, link: Link) -> Option<&mut SealedBatch<W>> {
        self.batches.iter_mut().find(|batch| batch.link == link)
    }

    /// Stops looking for a batch: what is under way runs out, and keeps no slot.
    pub(super) fn end_looks(&mut self, link: Link) {
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.link == link) {
            self.looks_running_out.extend(batch.requests());
            batch.create = Create::Ended;
        }
    }

    /// Whether a batch that waits to be indexed is durable under this sequence.
    pub(super) fn has_created(&self, sequence: ObjectSeq) -> bool {
        let is_it = |batch: &SealedBatch<W>| {
            batch.link.sequence == sequence && matches!(batch.create, Create::Created(_))
        };
        self.batches.iter().any(is_it)
    }

    /// Whether this is what a batch on its way put under this sequence.
    pub(super) fn is_own(&self, sequence: ObjectSeq, found: &ReadBack) -> bool {
        let batch = self.batches.iter().find(|batch| batch.link.sequence == sequence);
        batch.is_some_and(|batch| {
            found.size == batch.payload.len() && found.is_of(batch.header(), &batch.payload)
        })
    }

    /// Begins to guard a batch. It keeps its slot, or takes one again: the one of the batch whose
    /// answer made it the next to be indexed, which is free since then.
    pub(super) fn guard(&mut self, link: Link, id: RequestId, listing: Box<GuardListing>) {
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.link == link) {
            self.slots += usize::from(!batch.holds_slot());
            batch.guarded = true;
            batch.create = Create::Listing(id, listing);
        }
    }

    /// Notes that a batch is created, and frees its slot.
    pub(super) fn created(&mut self, link: Link, now: Time) {
        if let Some(batch) = self.batches.iter_mut().find(|batch| batch.link == link) {
            self.slots -= usize::from(batch.holds_slot());
            batch.create = Create::Created(now);
        }
    }

    /// The next batch to index.
    pub(super) fn pop_created(&mut self) -> Option<SealedBatch<W>> {
        if !matches!(self.batches.front()?.create, Create::Created(_)) {
            return None;
        }
        self.started -= 1;
        self.batches.pop_front()
    }

    /// Takes out the batches whose create was not started.
    pub(super) fn take_not_started(&mut self) -> VecDeque<SealedBatch<W>> {
        self.batches.split_off(self.started)
    }

    /// Takes out every batch. The requests that are under way run out.
    pub(super) fn take_all(&mut self) -> VecDeque<SealedBatch<W>> {
        for batch in &self.batches {
            if matches!(batch.create, Create::Listing(..) | Create::Looking(_)) {
                self.looks_running_out.extend(batch.requests());
            } else {
                let sequence = batch.link.sequence;
                self.running_out.extend(batch.requests().map(|id| (id, sequence)));
            }
        }
        self.started = 0;
        self.slots = 0;
        core::mem::take(&mut self.batches)
    }

    /// Notes that the request of a failed batch was answered, if this is one.
    pub(super) fn ran_out(&mut self, id: RequestId) -> bool {
        self.running_out.remove(&id).is_some() || self.looks_running_out.remove(&id)
    }

    /// The failed batch whose create this request runs out for.
    pub(super) fn runs_out_for(&self, id: RequestId) -> Option<ObjectSeq> {
        self.running_out.get(&id).copied()
    }

    /// Whether the create of a failed batch is still under way.
    pub(super) fn is_running_out(&self, sequence: ObjectSeq) -> bool {
        self.running_out.values().any(|of| *of == sequence)
    }

    /// Verifies the invariants.
    pub(super) fn check(&self, rules: Rules) {
        let mut last = None;
        for (place, batch) in self.batches.iter().enumerate() {
            assert!(last < Some(batch.link.sequence), "sequences do not ascend");
            last = Some(batch.link.sequence);
            let alone = place == 0 || !batch.guarded || !rules.floor_waits;
            assert!(alone, "{} is guarded behind another", batch.link);
            let not_started = matches!(batch.create, Create::NotStarted);
            assert_eq!(
                not_started,
                place >= self.started,
                "{} was started out of order",
                batch.link
            );
        }
        assert_eq!(self.slots, self.batches.iter().filter(|batch| batch.holds_slot()).count());
    }

    /// The batches in sequence order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SealedBatch<W>> {
        self.batches.iter()
    }
}

/// Closes a batch.
pub(super) fn seal<W>(
    mut batch: Batch<W>,
    header: &crate::format::Header,
    key: Key,
    guarded: bool,
    now: Time,
) -> SealedBatch<W> {
    let (payload, segments, records) = batch.encode(header);
    debug_assert_eq!(payload.len(), batch.bytes());
    SealedBatch {
        link: header.link(),
        key,
        payload,
        segments,
        records,
        boundary: header.boundary,
        entries: batch.entries(),
        opened_at: batch.opened_at(),
        sealed_at: now,
        appends: batch.appends,
        waits: batch.waits,
        create: Create::NotStarted,
        guarded,
        first_attempt: now,
        failure: None,
        backoff: Backoff::new(),
    }
}
