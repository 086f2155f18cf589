//! What is indexed, what may be deleted, and what must be gone (DESIGN.md sections 8, 9 and 12, and
//! section 13, 4): a model of liveness of its own, from the objects that were put and the order in
//! which they became part of the log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sealog_core::event::Verdict;
use sealog_core::format::Header;
use sealog_core::read::SegmentRef;
use sealog_core::{
    EntryId, Epoch, Key, Link, ObjectSeq, RegionId, StoreError, StoreErrorKind, Time,
};

use super::objects::is_key_of;
use super::{Checked, Journal, Violation, Waiter, What, ensure, of};
use crate::model::ModelStore;
use crate::sim::history::Observed;
use crate::sim::tally::Reached;

/// The objects that are indexed.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Index {
    objects: BTreeMap<ObjectSeq, Indexed>,
    /// The boundary that the last of them carries: what is below may go, what is not must stay.
    pub(in crate::sim) boundary: ObjectSeq,
    /// Everything that ever was part of history.
    history: BTreeSet<Link>,
    /// What was ever seen in the store.
    seen: BTreeMap<Link, Header>,
    /// How far regions were released by what an opening that went no further put out of sight.
    passed: BTreeMap<RegionId, EntryId>,
}

#[derive(Clone, Debug)]
struct Indexed {
    link: Link,
    /// The regions with entries in it.
    regions: BTreeSet<RegionId>,
    records: BTreeMap<RegionId, EntryId>,
}

impl Index {
    /// How far regions are released by what is indexed.
    pub(in crate::sim) fn watermarks(&self) -> BTreeMap<RegionId, EntryId> {
        let mut watermarks: BTreeMap<RegionId, EntryId> = BTreeMap::new();
        for (region, through) in self.objects.values().flat_map(|object| &object.records) {
            let watermark = watermarks.entry(*region).or_default();
            *watermark = (*through).max(*watermark);
        }
        watermarks
    }

    /// Whether an entry is out of sight because its region was released.
    pub(in crate::sim) fn hides(&self, (region, id): &(RegionId, EntryId)) -> bool {
        let passed = self.passed.get(region).into_iter();
        let indexed = self.objects.values().filter_map(|object| object.records.get(region));
        passed.chain(indexed).any(|through| id <= through)
    }

    pub(super) fn released_in_full(&self) -> impl Iterator<Item = RegionId> {
        let records = self.objects.values().flat_map(|object| &object.records);
        records.filter(|(_, through)| **through == EntryId::MAX).map(|(region, _)| *region)
    }

    pub(super) fn is_released_in_full(&self, region: RegionId) -> bool {
        self.released_in_full().any(|of| of == region)
    }

    /// Whether anything of a region is left.
    fn names(&self, region: RegionId) -> bool {
        let mut objects = self.objects.values();
        objects
            .any(|object| object.regions.contains(&region) || object.records.contains_key(&region))
    }

    /// Whether entries of a region are there, and be they obsolete.
    pub(super) fn holds(&self, region: RegionId) -> bool {
        self.objects.values().any(|object| object.regions.contains(&region))
    }

    fn insert(
        &mut self,
        link: Link,
        regions: BTreeSet<RegionId>,
        records: BTreeMap<RegionId, EntryId>,
    ) {
        self.history.insert(link);
        self.objects.insert(link.sequence, Indexed { link, regions, records });
    }

    /// What is part of history above one sequence and below another.
    fn history_between(
        &self,
        above: ObjectSeq,
        below: ObjectSeq,
    ) -> impl DoubleEndedIterator<Item = Link> {
        let from = |sequence| Link { sequence, epoch: Epoch(0) };
        let start = from(above.next());
        self.history.range(start..from(below).max(start)).copied()
    }
}

impl Journal {
    /// An opening ended with this start object: what it links to, and what that leads back to, down
    /// to the boundary that the tip carries, is history, and must be there.
    ///
    /// # Errors
    ///
    /// Something of it is not.
    pub(in crate::sim) fn recover(&mut self, start: Link, store: &ModelStore) -> Checked {
        let standing = standing(store);
        let find = |link: Link| {
            let header = standing.get(&link.sequence).filter(|header| header.link() == link);
            header.ok_or_else(|| Violation(format!("{link} is needed, and is gone")))
        };
        let first = find(start)?;
        let boundary = match first.predecessor {
            Some(tip) => find(tip)?.boundary,
            None => ObjectSeq::ZERO,
        };
        ensure!(
            boundary <= first.boundary && self.index.boundary <= first.boundary,
            "{start} carries the boundary {}, {boundary} and {} were known",
            first.boundary,
            self.index.boundary
        );
        self.index.objects.clear();
        self.index.boundary = first.boundary;
        let mut next = Some(start);
        while let Some(link) = next.filter(|link| link.sequence >= boundary) {
            next = find(link)?.predecessor;
            let (regions, records) = match self.sent.get(&link) {
                Some(sent) => (sent.regions(), sent.records.clone()),
                None => Default::default(),
            };
            self.index.insert(link, regions, records);
        }
        // What is there below the boundary may go at once.
        self.index.passed.clear();
        self.index.seen.extend(standing.values().map(|header| (header.link(), *header)));
        while let Some(header) = next.and_then(|link| self.index.seen.get(&link)) {
            let link = header.link();
            self.index.history.insert(link);
            for (region, through) in self.sent.get(&link).into_iter().flat_map(|s| &s.records) {
                // Whatever came after it is there.
                let last = EntryId(link.sequence.next().0 << 20);
                let passed = self.index.passed.entry(*region).or_default();
                *passed = last.min(*through).max(*passed);
            }
            next = header.predecessor.filter(|before| before.sequence < link.sequence);
        }
        Ok(())
    }

    /// What was recovered is exactly what is indexed and not released.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(in crate::sim) fn recovered(&mut self, observed: &Observed) -> Checked {
        let watermarks = self.index.watermarks();
        self.log.clear();
        for link in self.index.objects.values().map(|object| object.link) {
            for ((region, id), place) in self.sent.get(&link).into_iter().flat_map(|s| &s.entries) {
                self.log.entry(*region).or_default().insert(*id, *place);
            }
        }
        for (region, log) in &self.log {
            let watermark = watermarks.get(region).copied().unwrap_or_default();
            let expected = log.keys().filter(|id| **id > watermark);
            let found = observed.get(region).into_iter().flatten().map(|seen| seen.id);
            ensure!(
                expected.copied().eq(found),
                "region {region}: indexed and not released through {watermark} are {:?}, read {:?}",
                log.keys().collect::<Vec<_>>(),
                observed.get(region)
            );
            let hidden = log.keys().any(|id| *id <= watermark);
            self.tally.count_if(hidden, Reached::StayedReleased);
        }
        Ok(())
    }

    /// So many objects are indexed by now: those that were put first, and each is stored.
    pub(in crate::sim) fn index_more(
        &mut self,
        instance: usize,
        indexed: u64,
        store: &ModelStore,
    ) -> Checked {
        loop {
            let state = self.instance(instance)?;
            if state.indexed == indexed {
                return Ok(());
            }
            state.indexed += 1;
            let Some(link) = state.sealed.pop_front() else {
                return Err(Violation("more objects are indexed than were put".into()));
            };
            state.durable = link;
            let sent = &self.sent[&link];
            let stored = store.objects().find(|(key, _)| is_key_of(key, link));
            ensure!(
                stored.is_some_and(|(_, bytes)| *bytes == sent.payload.to_bytes()),
                "{link} is indexed, and is not stored"
            );
            self.index.boundary = self.index.boundary.max(sent.boundary);
            let (regions, records) = (sent.regions(), sent.records.clone());
            for (region, through) in &records {
                let watermark = self.watermarks.entry(*region).or_default();
                *watermark = (*through).max(*watermark);
            }
            self.index.insert(link, regions, records);
        }
    }

    /// Objects are to be deleted: each is below the durable boundary, holds nothing that is needed,
    /// and stands in nobody's way, as far as this instance could see: `late` are the keys of puts that
    /// landed since its opening began.
    pub(in crate::sim) fn asks_to_delete(
        &mut self,
        instance: usize,
        keys: &[Key],
        store: &ModelStore,
        late: &BTreeSet<Key>,
    ) -> Checked {
        let live = self.first_live();
        let state = of(&self.instances, instance)?;
        ensure!(!state.stopping, "{keys:?} are to be deleted after stop began");
        for key in keys {
            let sequence = sequence_of(key)?;
            ensure!(
                sequence < self.index.boundary && live.is_none_or(|live| sequence < live),
                "{key} is to be deleted, the durable boundary is {}, and {live:?} is needed",
                self.index.boundary
            );
            let header = store.get(key).and_then(|bytes| Header::decode(bytes).ok());
            let Some(header) = header else { continue };
            let link = header.link();
            let claims = link.epoch == Epoch::claimed_at(sequence);
            // It deletes what it may have left behind itself without a look.
            let ours = Link { sequence, epoch: state.start.epoch };
            if self.sent.contains_key(&ours) && !state.conflicts.contains(key) {
                continue;
            }
            let of_others = link.epoch != state.start.epoch && !self.led_to(state.start, link);
            if (claims || of_others) && !late.contains(key) {
                let above = self.index.history_between(sequence, state.start.sequence);
                let above: Vec<Link> = above.collect();
                ensure!(
                    !above.is_empty(),
                    "{link} stands above the recovered tip, and is to be deleted"
                );
                // What stands above it in history was no older than this to the opening, which knows
                // only what it listed. Of what is gone, or came back late, nobody knows.
                let is_old = |above: &Link| {
                    modified(store, *above).is_none_or(|modified| {
                        let age = state.opened_at.since(modified) + Duration::from_millis(1);
                        age >= state.fence_retention
                    })
                };
                ensure!(
                    above.iter().any(is_old),
                    "{link} stands in the way of older writers, and is to be deleted while all \
                     above it is young"
                );
                self.tally.count(Reached::FenceDeleted);
            }
        }
        Ok(())
    }

    /// Whether a link that is or leads back from one object is to another: what an opening recovered
    /// that died before it told anybody is history, too.
    fn led_to(&self, from: Link, to: Link) -> bool {
        let before = |link: &Link| self.index.seen.get(link).and_then(|header| header.predecessor);
        let down = |link: &Link| before(link).filter(|before| before.sequence < link.sequence);
        self.index.history.contains(&to)
            || std::iter::successors(Some(from), down).any(|link| link == to)
    }

    /// A delete was answered.
    pub(in crate::sim) fn deletes_answered(
        &mut self,
        instance: usize,
        results: &[(Key, Result<(), StoreError>)],
    ) -> Checked {
        for (key, result) in results {
            match result {
                Err(error) if error.kind != StoreErrorKind::NotFound => {
                    self.tally.count(Reached::DeleteFailed);
                }
                Ok(()) | Err(_) => {
                    self.tally.count(Reached::Deleted);
                    self.index.objects.remove(&sequence_of(key)?);
                }
            }
        }
        self.forget(instance)
    }

    /// Nothing is known of a region any more once nothing of it is indexed or on its way.
    pub(super) fn forget(&mut self, instance: usize) -> Checked {
        let state = of(&self.instances, instance)?;
        let appends = &self.appends;
        let admitted = &state.order[..state.admitted];
        let pending = admitted.iter().filter(|place| state.pending.contains(place));
        let pending: BTreeSet<_> =
            pending.flat_map(|place| appends[*place].append.entries()).map(|(of, _)| of).collect();
        let known: BTreeSet<_> = self.log.keys().chain(self.watermarks.keys()).copied().collect();
        for region in known {
            if pending.contains(&region) || self.index.names(region) {
                continue;
            }
            let needed = self.log.get(&region).and_then(|log| log.range(self.above(region)).next());
            ensure!(needed.is_none(), "region {region}: nothing is left, and {needed:?} is needed");
            self.log.remove(&region);
            self.watermarks.remove(&region);
            self.tally.count(Reached::Forgotten);
            if let Some(state) = self.instances.get_mut(&instance) {
                state.releases.forget(region);
            }
        }
        Ok(())
    }

    /// What vanished from the store is not needed in any history that is still possible: those
    /// are the ones that go on from what is indexed.
    pub(in crate::sim) fn objects_vanished(&self, store: &ModelStore) -> Checked {
        for (sequence, object) in self.index.objects.range(self.index.boundary..) {
            let stands = store.objects().any(|(key, bytes)| {
                is_key_of(key, object.link)
                    && Header::decode(bytes).is_ok_and(|header| header.link() == object.link)
            });
            ensure!(stands, "{sequence} is gone, and the durable boundary is below it");
        }
        Ok(())
    }

    /// Everything has run out: what is not needed is gone, as far as this instance could know of
    /// it. `late` are the keys of puts that landed when nobody waited for them.
    pub(in crate::sim) fn all_reclaimed(
        &self,
        instance: usize,
        store: &ModelStore,
        late: &BTreeSet<Key>,
    ) -> Checked {
        let state = of(&self.instances, instance)?;
        if state.stopping || state.reclaim_interval.is_zero() {
            return Ok(());
        }
        let live = self.first_live().unwrap_or(state.durable.sequence.next());
        let waits = self.index.objects.range(self.index.boundary..live.max(self.index.boundary));
        let waits = waits.map(|(_, object)| object).find(|object| !object.regions.is_empty());
        ensure!(waits.is_none(), "{waits:?} is obsolete, and no object says so");
        // Below a tip that was old when it was recovered, nothing stands in anybody's way.
        let start = state.start.sequence;
        let history: Vec<Link> = self.index.history_between(ObjectSeq::ZERO, start).collect();
        let listed = store.objects().filter(|(key, _)| !late.contains(*key));
        let listed = listed.filter(|(key, _)| sequence_of(key).is_ok_and(|at| at < start));
        let newest = listed.filter_map(|(key, _)| store.modified(key)).max();
        let is_old = |link: &Link| match (modified(store, *link), newest) {
            (Some(modified), Some(newest)) => {
                newest.since(modified) > state.fence_retention + Duration::from_millis(1)
            }
            _ => false,
        };
        let tip = history.last().filter(|tip| is_old(tip)).map(|tip| tip.sequence);
        let is_there = |link: &&Link| modified(store, **link).is_some();
        let young = history.iter().filter(is_there).rfind(|link| !is_old(link));
        // What came back late is young, and may be history to the opening.
        let old = young.map_or(ObjectSeq::ZERO, |link| link.sequence)..tip.unwrap_or_default();
        for (key, bytes) in store.objects() {
            let sequence = sequence_of(key)?;
            if sequence >= self.index.boundary || late.contains(key) {
                continue;
            }
            let Ok(header) = Header::decode(bytes) else { continue };
            let link = header.link();
            let was_there = store.modified(key).is_some_and(|at| at <= state.opened_at);
            let all = was_there && old.contains(&sequence);
            let claims = link.epoch == Epoch::claimed_at(sequence);
            let indexed = self.index.objects.contains_key(&sequence);
            let known = (indexed || link.epoch == state.start.epoch) && !claims;
            ensure!(!all && !known, "{link} is not needed by anybody, and is still there");
        }
        Ok(())
    }

    /// All regions were released, and everything has run out: nothing with entries is left, and what
    /// this instance claimed.
    pub(in crate::sim) fn is_empty(&self, instance: usize, store: &ModelStore) -> Checked {
        let start = of(&self.instances, instance)?.start.sequence;
        let tip = self.index.history_between(ObjectSeq::ZERO, start).next_back();
        let tip = tip.map_or(ObjectSeq::ZERO, |tip| tip.sequence);
        for (key, bytes) in store.objects() {
            let link = Header::decode(bytes).map(|header| header.link());
            let claims = |link: &Link| {
                link.epoch == Epoch::claimed_at(link.sequence)
                    && (tip..=start).contains(&link.sequence)
            };
            if link.as_ref().is_ok_and(claims) {
                continue;
            }
            let sent = link.ok().and_then(|link| self.sent.get(&link));
            ensure!(
                sequence_of(key)? >= self.index.boundary
                    && sent.is_some_and(|sent| sent.entries.is_empty()),
                "nothing is needed, and {key} is there"
            );
        }
        Ok(())
    }

    /// A read failed, perhaps since the object is gone, and asks.
    pub(in crate::sim) fn asks_for_verdict(
        &mut self,
        instance: usize,
        segment: SegmentRef,
        gone: bool,
    ) -> Waiter {
        self.call(instance, What::Verdict { segment, gone })
    }

    pub(super) fn judged(&mut self, segment: SegmentRef, gone: bool, verdict: Verdict) -> Checked {
        self.tally.count(if gone { Reached::VerdictOnGone } else { Reached::Verdict });
        let SegmentRef { object, region } = segment;
        let log = self.log.get(&region);
        let needed = log.and_then(|log| {
            log.range(self.above(region)).find(|(id, _)| id.sequence() == object.sequence)
        });
        ensure!(
            needed.map_or(!gone || verdict == Verdict::Gone, |_| {
                !gone && verdict == Verdict::Indexed
            }),
            "region {region} in {object} is {verdict:?}, {needed:?} of it is needed"
        );
        Ok(())
    }

    /// An object that carries only the boundary: nothing is on its way, it lets an object with entries
    /// or release records be deleted, and neither the opening nor another carrier was just now.
    pub(super) fn check_carrier(&mut self, instance: usize, now: Time, header: &Header) -> Checked {
        let state = of(&self.instances, instance)?;
        let link = header.link();
        let waits = self.index.boundary..header.boundary.max(self.index.boundary);
        let mut waits = self.index.objects.range(waits).map(|(_, object)| object);
        let holds = |object: &Indexed| !object.regions.is_empty() || !object.records.is_empty();
        ensure!(
            state.sealed.is_empty() && waits.any(holds),
            "{link} holds nothing, and lets nothing go"
        );
        let since = state.last_carrier.unwrap_or(state.opened_at);
        ensure!(
            !state.reclaim_interval.is_zero() && since.after(state.reclaim_interval) <= now,
            "{link} holds nothing, and came at {now:?}, after {since:?}"
        );
        self.instance(instance)?.last_carrier = Some(now);
        self.tally.count(Reached::Carrier);
        Ok(())
    }
}

impl super::SentObject {
    fn regions(&self) -> BTreeSet<RegionId> {
        self.entries.keys().map(|(region, _)| *region).collect()
    }
}

fn standing(store: &ModelStore) -> BTreeMap<ObjectSeq, Header> {
    let headers = store.objects().filter_map(|(_, bytes)| Header::decode(bytes).ok());
    headers.map(|header| (header.sequence, header)).collect()
}

/// When an object was written, if it is there.
fn modified(store: &ModelStore, link: Link) -> Option<Time> {
    let (key, bytes) = store.objects().find(|(key, _)| is_key_of(key, link))?;
    let is_it = Header::decode(bytes).is_ok_and(|header| header.link() == link);
    store.modified(key).filter(|_| is_it)
}

fn sequence_of(key: &Key) -> Checked<ObjectSeq> {
    let name = key.rsplit('/').next().and_then(|name| name.strip_suffix(".wal"));
    let sequence = name.and_then(|digits| digits.parse().ok()).map(ObjectSeq);
    sequence.ok_or_else(|| Violation(format!("{key} is no object's")))
}
