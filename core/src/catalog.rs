//! What is indexed: the objects of history, the segments of each region, watermarks, and the
//! reclaim boundary (DESIGN.md sections 3, 8 and 9).

mod held;
mod plan;
mod replay;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use crate::error::{DecodeError, Part};
use crate::format::{ReleaseRecord, SegmentMeta};
use crate::read::Hole;
use crate::types::{EntryId, Link, ObjectSeq, RegionId};

pub use held::{HeldBy, Holder, RegionHold};

/// The indexed objects and what they hold.
///
/// Nothing here is found by scanning: what an event costs depends on the segments that it names,
/// and not on how many objects or regions there are. Invariants, which
/// [`check`](Catalog::check) verifies:
///
/// 1. Every live segment of a region is in an indexed object, and the object names the region.
/// 2. The ids of a region ascend along its live segments, all above its watermark, and `last_id`
///    is at or above all of them.
/// 3. A region's `held` counts the indexed objects that have a segment of it, `records` those
///    that have a release record of it; where both are zero, nothing is known of the region once
///    nothing of it is pending.
/// 4. An object's `live` counts its segments above their watermark.
/// 5. No object below the boundary holds a live segment, and the boundary is the first indexed
///    object that does, or one above the last indexed object; unless it was higher before, since
///    it never moves down.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    objects: BTreeMap<ObjectSeq, Object>,
    regions: BTreeMap<RegionId, Region>,
    last: Option<Link>,
    boundary: ObjectSeq,
    /// The last object with entries that the boundary passed.
    passed: Option<ObjectSeq>,
    bytes: u64,
    holes: BTreeMap<(RegionId, ObjectSeq), Hole>,
    unindexed: BTreeMap<ObjectSeq, Unindexed>,
}

/// An object that an opening found and that is not indexed: outside history, or below the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unindexed {
    /// The object.
    pub link: Link,
    /// What it is.
    pub kind: UnindexedKind,
    /// How much older the first object of history above it was than the newest object of the same
    /// listing, by the store's clock. `None` if it stands above the tip that the opening recovered.
    pub age: Option<Duration>,
}

/// What an object that is not indexed is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnindexedKind {
    /// It only stands in the way of older writers (DESIGN.md section 12).
    Claim,
    /// The first object of a writer.
    Start,
    /// History below the boundary: the collection that was to delete it did not get to it.
    Passed,
    /// Any other.
    Other,
}

impl Unindexed {
    /// Whether it must be kept, boundary or not, if what stands in the way is kept for this long
    /// (DESIGN.md section 12, rule 5). What stands above the recovered tip always must.
    pub fn is_kept(&self, retention: Duration) -> bool {
        self.kind != UnindexedKind::Passed && self.age.is_none_or(|age| age < retention)
    }
}

#[derive(Clone, Debug)]
struct Object {
    link: Link,
    size: u64,
    /// The regions with a segment in it, in order; reserved ones left out.
    regions: Vec<RegionId>,
    /// The regions with a release record in it, in order.
    records: Vec<RegionId>,
    /// How many of its segments are above their region's watermark.
    live: u32,
    /// It is not deleted, boundary or not.
    kept: bool,
}

#[derive(Clone, Debug, Default)]
struct Region {
    /// Those above the watermark, in the order of their objects, which is the order of their ids.
    live: VecDeque<IndexedSegment>,
    /// How many indexed objects have a segment of it.
    held: u32,
    /// How many indexed objects have a release record of it.
    records: u32,
    /// The largest id that was ever indexed.
    last_id: EntryId,
    watermark: EntryId,
}

/// A segment of an indexed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSegment {
    /// The object that holds it.
    pub object: Link,
    /// Its row of the object's footer.
    pub meta: SegmentMeta,
}

/// What the log knows of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// The region.
    pub region: RegionId,
    /// The largest id that is durable and indexed.
    pub durable: EntryId,
    /// Entries at or below it are hidden.
    pub watermark: EntryId,
    /// How many segments hold something above the watermark.
    pub segments: u64,
    /// How many bytes these segments have.
    pub bytes: u64,
}

impl Catalog {
    /// A catalog of nothing, with the boundary that is known so far.
    pub fn new(boundary: ObjectSeq) -> Catalog {
        Catalog { boundary, ..Catalog::default() }
    }

    /// Indexes an object. Objects are indexed in the order of their chain.
    ///
    /// # Errors
    ///
    /// The ids of a region do not ascend: nothing was changed, and the object is damaged or not
    /// of this log.
    pub fn index(
        &mut self,
        link: Link,
        size: u64,
        segments: &[SegmentMeta],
    ) -> Result<(), DecodeError> {
        let user = || segments.iter().filter(|meta| !meta.region.is_reserved());
        for meta in user() {
            let last = self.regions.get(&meta.region).map_or(EntryId::ZERO, |r| r.last_id);
            if meta.min_id <= last {
                return Err(DecodeError::new(
                    Part::Segment(meta.region),
                    format!(
                        "expected ids above {last}, which an earlier object holds, found {}",
                        meta.min_id
                    ),
                ));
            }
        }
        let mut live = 0;
        for meta in user() {
            let region = self.regions.entry(meta.region).or_default();
            region.last_id = meta.max_id;
            region.held += 1;
            if meta.max_id > region.watermark {
                live += 1;
                region.live.push_back(IndexedSegment { object: link, meta: *meta });
            }
        }
        let regions = user().map(|meta| meta.region).collect();
        let object = Object { link, size, regions, records: Vec::new(), live, kept: false };
        self.objects.insert(link.sequence, object);
        self.bytes += size;
        self.last = Some(link);
        self.advance_boundary();
        Ok(())
    }

    /// Applies the release records of an object that was indexed just now: each raises its region's
    /// watermark, and is known until the object is [removed](Catalog::remove). Records that name
    /// a reserved region say nothing.
    pub fn apply_releases(&mut self, sequence: ObjectSeq, records: &[ReleaseRecord]) {
        let records = || records.iter().filter(|record| !record.region.is_reserved());
        if let Some(object) = self.objects.get_mut(&sequence) {
            object.records = records().map(|record| record.region).collect();
            for record in records() {
                self.regions.entry(record.region).or_default().records += 1;
                self.raise_watermark(record.region, record.through);
            }
        }
    }

    /// Raises a region's watermark; it never moves down. Costs what becomes obsolete by it.
    /// Reserved regions have none.
    pub fn raise_watermark(&mut self, region: RegionId, id: EntryId) {
        if region.is_reserved() {
            return;
        }
        let state = self.regions.entry(region).or_default();
        if id <= state.watermark {
            return;
        }
        state.watermark = id;
        while let Some(segment) = state.live.front().filter(|segment| segment.meta.max_id <= id) {
            let segment = *segment;
            state.live.pop_front();
            if let Some(object) = self.objects.get_mut(&segment.object.sequence) {
                object.live -= 1;
            }
        }
        self.advance_boundary();
    }

    /// Removes an object of which nothing is live: it was deleted. Gives back the regions that it
    /// named, of which nothing may be left.
    pub fn remove(&mut self, sequence: ObjectSeq) -> Vec<RegionId> {
        let dead = |object: &Object| object.live == 0;
        if !self.objects.get(&sequence).is_some_and(dead) {
            return Vec::new();
        }
        let Some(object) = self.objects.remove(&sequence) else { return Vec::new() };
        self.bytes -= object.size;
        for region in &object.regions {
            self.holes.remove(&(*region, sequence));
            if let Some(state) = self.regions.get_mut(region) {
                state.held -= 1;
            }
        }
        for region in &object.records {
            if let Some(state) = self.regions.get_mut(region) {
                state.records -= 1;
            }
        }
        let mut named = object.regions;
        named.extend(object.records);
        named
    }

    /// Whether no indexed object has anything of the region, not even obsolete.
    pub fn is_without(&self, region: RegionId) -> bool {
        self.regions.get(&region).is_none_or(|state| state.held == 0 && state.records == 0)
    }

    /// Whether an indexed object has a segment of the region, and be it obsolete.
    pub fn holds(&self, region: RegionId) -> bool {
        self.regions.get(&region).is_some_and(|state| state.held > 0)
    }

    /// The regions whose watermark is above every id: they were released in full.
    pub fn released_in_full(&self) -> impl Iterator<Item = RegionId> {
        let released = |state: &Region| state.watermark == EntryId::MAX;
        self.regions.iter().filter(move |(_, state)| released(state)).map(|(region, _)| *region)
    }

    /// Forgets a region [of which there is nothing](Catalog::is_without): ids that are assigned
    /// later are above all that it ever had.
    pub fn forget(&mut self, region: RegionId) {
        if self.is_without(region) {
            self.regions.remove(&region);
        }
    }

    /// How many regions something is known of.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// Keeps an indexed object from being deleted (DESIGN.md section 12, rule 5).
    pub fn keep(&mut self, sequence: ObjectSeq) {
        if let Some(object) = self.objects.get_mut(&sequence) {
            object.kept = true;
        }
    }

    /// The first indexed object in this range that may be deleted.
    pub fn next_garbage(&self, range: Range<ObjectSeq>) -> Option<ObjectSeq> {
        let range = range.start.min(range.end)..range.end;
        let mut objects = self.objects.range(range);
        objects.find(|(_, object)| !object.kept && object.live == 0).map(|(sequence, _)| *sequence)
    }

    /// The last indexed object with entries that the boundary passed, if one was.
    pub fn last_passed(&self) -> Option<ObjectSeq> {
        self.passed
    }

    /// Raises the boundary to what an object carried.
    pub fn raise_boundary(&mut self, boundary: ObjectSeq) {
        self.boundary = self.boundary.max(boundary);
        self.advance_boundary();
    }

    /// Each object is passed once in its life.
    fn advance_boundary(&mut self) {
        for (sequence, object) in self.objects.range(self.boundary..) {
            if object.live > 0 {
                self.boundary = *sequence;
                return;
            }
            self.boundary = sequence.next();
            if !object.regions.is_empty() {
                self.passed = Some(*sequence);
            }
        }
    }

    /// The reclaim boundary: objects below it are not needed.
    pub fn boundary(&self) -> ObjectSeq {
        self.boundary
    }

    /// The object indexed last.
    pub fn last(&self) -> Option<Link> {
        self.last
    }

    /// How many objects are indexed.
    pub fn object_count(&self) -> u64 {
        self.objects.len() as u64
    }

    /// How many bytes the indexed objects have.
    pub fn byte_count(&self) -> u64 {
        self.bytes
    }

    /// Whether an object is indexed at this sequence.
    pub fn is_at(&self, sequence: ObjectSeq) -> bool {
        self.objects.contains_key(&sequence)
    }

    /// Whether this very object is indexed.
    pub fn is_indexed(&self, link: Link) -> bool {
        self.objects.get(&link.sequence).is_some_and(|object| object.link == link)
    }

    /// The largest indexed id of a region; zero if there is none.
    pub fn durable(&self, region: RegionId) -> EntryId {
        self.regions.get(&region).map_or(EntryId::ZERO, |region| region.last_id)
    }

    /// The region's watermark; zero if nothing is obsolete.
    pub fn watermark(&self, region: RegionId) -> EntryId {
        self.regions.get(&region).map_or(EntryId::ZERO, |region| region.watermark)
    }

    /// The region's segments that hold something at or above `from` and above the watermark, in
    /// order.
    pub fn segments_from(
        &self,
        region: RegionId,
        from: EntryId,
    ) -> impl Iterator<Item = &IndexedSegment> {
        self.regions.get(&region).into_iter().flat_map(move |region| {
            let first = region.live.partition_point(|segment| segment.meta.max_id < from);
            region.live.range(first..)
        })
    }

    /// The regions that hold something above their watermark, in order.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.regions.iter().filter(|(_, state)| !state.live.is_empty()).map(|(region, state)| {
            RegionInfo {
                region: *region,
                durable: state.last_id,
                watermark: state.watermark,
                segments: state.live.len() as u64,
                bytes: state.live.iter().map(|segment| segment.meta.length).sum(),
            }
        })
    }

    /// Notes an object that is there and not indexed.
    pub fn add_unindexed(&mut self, object: Unindexed) {
        self.unindexed.insert(object.link.sequence, object);
    }

    /// The objects that the opening found and that are not indexed, in order.
    pub fn unindexed(&self) -> impl Iterator<Item = &Unindexed> {
        self.unindexed.values()
    }

    /// Keeps a hole of a segment that is indexed, be it obsolete; `false` if it was known.
    pub fn add_hole(&mut self, hole: Hole) -> bool {
        let object = self.objects.get(&hole.object.sequence);
        let names = |object: &Object| object.regions.binary_search(&hole.region).is_ok();
        object.is_some_and(names)
            && self.holes.insert((hole.region, hole.object.sequence), hole).is_none()
    }

    /// The holes of a region that were found so far, in order.
    pub fn holes(&self, region: RegionId) -> impl Iterator<Item = &Hole> {
        let all = (region, ObjectSeq::ZERO)..=(region, ObjectSeq(u64::MAX));
        self.holes.range(all).map(|(_, hole)| hole)
    }

    /// Verifies the invariants from scratch: for tests, it costs a walk over everything.
    ///
    /// # Panics
    ///
    /// An invariant does not hold.
    pub fn check(&self) {
        let mut live: BTreeMap<ObjectSeq, u32> = BTreeMap::new();
        let mut held: BTreeMap<RegionId, (u32, u32)> = BTreeMap::new();
        for object in self.objects.values() {
            object.regions.iter().for_each(|region| held.entry(*region).or_default().0 += 1);
            object.records.iter().for_each(|region| held.entry(*region).or_default().1 += 1);
        }
        for (region, state) in &self.regions {
            assert!(!region.is_reserved(), "region {region} is reserved and indexed");
            let mut last = state.watermark;
            for segment in &state.live {
                let object = self.objects.get(&segment.object.sequence);
                let object = object.unwrap_or_else(|| panic!("{} is not indexed", segment.object));
                assert_eq!(object.link, segment.object);
                assert!(
                    object.regions.binary_search(region).is_ok(),
                    "{} lacks {region}",
                    object.link
                );
                assert!(segment.meta.max_id > last, "ids of region {region} do not ascend");
                last = segment.meta.max_id;
                *live.entry(segment.object.sequence).or_default() += 1;
            }
            assert!(state.live.is_empty() || state.last_id >= last);
            let counted = held.remove(region).unwrap_or_default();
            assert_eq!((state.held, state.records), counted, "objects with region {region}");
        }
        assert!(held.is_empty(), "objects name regions of which nothing is known: {held:?}");
        assert!(self.holes.keys().all(|(region, at)| {
            self.objects.get(at).is_some_and(|object| object.regions.contains(region))
        }));
        for (sequence, object) in &self.objects {
            assert_eq!(*sequence, object.link.sequence);
            let counted = live.get(sequence).copied().unwrap_or_default();
            assert_eq!(object.live, counted, "live segments of {}", object.link);
        }
        assert_eq!(self.bytes, self.objects.values().map(|object| object.size).sum::<u64>());
        let first_live = self.objects.iter().find(|(_, o)| o.live > 0).map(|(s, _)| *s);
        let past_last = self.objects.keys().next_back().map(|last| last.next());
        match first_live {
            Some(first) => assert!(self.boundary <= first, "{} is needed", first),
            None => assert!(past_last.is_none_or(|end| self.boundary >= end)),
        }
        if let Some(next) = self.objects.range(self.boundary..).next() {
            assert_eq!(Some(*next.0), first_live, "the boundary lags behind");
        }
    }
}

#[cfg(test)]
mod tests;
