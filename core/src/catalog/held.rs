//! What holds the log: which regions keep objects from being deleted (DESIGN.md section 9).

use alloc::vec::Vec;

use super::Catalog;
use crate::types::{EntryId, Link, ObjectSeq, RegionId};

/// How many regions an answer weighs.
const WEIGHED: usize = 10;

/// What keeps the log's objects: the object at the reclaim boundary, and who needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldBy {
    /// The reclaim boundary: objects below it are not needed.
    pub boundary: ObjectSeq,
    /// The object that stands at the boundary; `None` if no object is needed.
    pub object: Option<Link>,
    /// The regions with something in that object that is not obsolete, in order.
    pub holders: Vec<Holder>,
    /// The regions that hold most, at most ten: those whose oldest entries that are not obsolete are
    /// in the oldest objects. What lets the boundary rise is that the first of them lets go.
    pub most: Vec<RegionHold>,
}

/// A region that needs the object at the boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The region.
    pub region: RegionId,
    /// Its entries at or below it are obsolete.
    pub watermark: EntryId,
}

/// How much of the log a region holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionHold {
    /// The region.
    pub region: RegionId,
    /// Its entries at or below it are obsolete.
    pub watermark: EntryId,
    /// The first object that it needs.
    pub object: Link,
    /// How many objects would not be needed any more if this region alone let go of everything.
    pub frees_objects: u64,
    /// Their bytes.
    pub frees_bytes: u64,
    /// How many objects would not be needed any more if this region and all before it in the list
    /// let go of everything: where several regions need the same objects, none of them frees any
    /// alone.
    pub together_objects: u64,
    /// Their bytes.
    pub together_bytes: u64,
}

impl Catalog {
    /// Says what holds the log. Costs a look at every region and every indexed object.
    pub fn held_by(&self) -> HeldBy {
        let mut holds: Vec<(Link, RegionId, EntryId)> = self
            .regions
            .iter()
            .filter_map(|(region, state)| {
                Some((state.live.front()?.object, *region, state.watermark))
            })
            .collect();
        holds.sort_unstable_by_key(|(object, region, _)| (object.sequence, *region));
        let object = holds.first().map(|(object, ..)| *object);
        let holder = |(_, region, watermark): &(Link, RegionId, EntryId)| Holder {
            region: *region,
            watermark: *watermark,
        };
        let at_boundary = holds.iter().take_while(|(first, ..)| Some(*first) == object);
        HeldBy {
            boundary: self.boundary,
            object,
            holders: at_boundary.map(holder).collect(),
            most: self.weigh(&holds),
        }
    }

    /// Of regions in the order of the first objects that they need: without the first `n` of them,
    /// the boundary is where the next one's begins.
    fn weigh(&self, holds: &[(Link, RegionId, EntryId)]) -> Vec<RegionHold> {
        let (mut objects, mut bytes) = (0, 0);
        let mut needed = self.objects.range(self.boundary..).peekable();
        let mut weighed = Vec::new();
        for (place, (object, region, watermark)) in holds.iter().take(WEIGHED).enumerate() {
            let next = holds.get(place + 1).map(|(next, ..)| next.sequence);
            while let Some((_, freed)) =
                needed.next_if(|(sequence, _)| next.is_none_or(|next| **sequence < next))
            {
                objects += 1;
                bytes += freed.size;
            }
            let alone = place == 0;
            weighed.push(RegionHold {
                region: *region,
                watermark: *watermark,
                object: *object,
                frees_objects: if alone { objects } else { 0 },
                frees_bytes: if alone { bytes } else { 0 },
                together_objects: objects,
                together_bytes: bytes,
            });
        }
        weighed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::SegmentMeta;
    use crate::types::Epoch;

    /// Objects from 0 on, each of as many bytes as its sequence in hundreds, and the regions in it.
    fn catalog(objects: &[&[u64]]) -> Catalog {
        let mut catalog = Catalog::new(ObjectSeq::ZERO);
        for (sequence, regions) in (0..).zip(objects) {
            let meta = |region: &u64| SegmentMeta {
                region: RegionId(*region),
                min_id: EntryId(sequence << 20 | 1),
                max_id: EntryId(sequence << 20 | 2),
                count: 2,
                offset: 54,
                length: 50,
                crc: 0,
            };
            let segments: Vec<_> = regions.iter().map(meta).collect();
            let link = Link { sequence: ObjectSeq(sequence), epoch: Epoch(1) };
            catalog.index(link, sequence * 100, &segments).unwrap();
        }
        catalog
    }

    /// Region, first object, freed alone, freed together: each objects and bytes.
    type Weighed = (u64, u64, (u64, u64), (u64, u64));

    fn most(held: &HeldBy) -> Vec<Weighed> {
        let row = |hold: &RegionHold| {
            let alone = (hold.frees_objects, hold.frees_bytes);
            let together = (hold.together_objects, hold.together_bytes);
            (hold.region.0, hold.object.sequence.0, alone, together)
        };
        held.most.iter().map(row).collect()
    }

    #[test]
    fn an_idle_region_is_named_with_all_that_it_holds() {
        let mut catalog = catalog(&[&[1, 2], &[2], &[2], &[2]]);
        catalog.raise_watermark(RegionId(2), EntryId(2 << 20 | 2));
        let held = catalog.held_by();
        assert_eq!((held.boundary, held.object.unwrap().sequence), (ObjectSeq(0), ObjectSeq(0)));
        let holder = Holder { region: RegionId(1), watermark: EntryId::ZERO };
        assert_eq!(held.holders, [holder]);
        assert_eq!(most(&held), [(1, 0, (3, 300), (3, 300)), (2, 3, (0, 0), (4, 600))]);
        // That is what it frees.
        catalog.raise_watermark(RegionId(1), EntryId::MAX);
        assert_eq!(catalog.boundary(), ObjectSeq(3));
    }

    #[test]
    fn of_regions_that_share_the_first_object_none_frees_anything_alone() {
        let catalog = catalog(&[&[4, 7], &[4], &[9]]);
        let held = catalog.held_by();
        assert_eq!(held.holders.iter().map(|h| h.region.0).collect::<Vec<_>>(), [4, 7]);
        let expected = [(4, 0, (0, 0), (0, 0)), (7, 0, (0, 0), (2, 100)), (9, 2, (0, 0), (3, 300))];
        assert_eq!(most(&held), expected);
    }

    #[test]
    fn ten_regions_at_most_are_weighed_and_nothing_holds_what_is_obsolete() {
        let regions: Vec<_> = (0..12).collect();
        let mut catalog = catalog(&[&regions, &[20]]);
        let held = catalog.held_by();
        assert_eq!((held.holders.len(), held.most.len()), (12, 10));
        for region in (0..12).chain([20]) {
            catalog.raise_watermark(RegionId(region), EntryId::MAX);
        }
        let nothing = HeldBy { boundary: ObjectSeq(2), ..HeldBy::default() };
        assert_eq!(catalog.held_by(), nothing);
    }

    /// What is said to be freed is what the boundary passes once the regions let go.
    #[test]
    fn it_frees_together_what_it_says() {
        let objects: [&[u64]; 7] = [&[], &[3], &[1, 3], &[2], &[1, 2], &[], &[5]];
        let held = catalog(&objects).held_by();
        for count in 1..=held.most.len() {
            let mut catalog = catalog(&objects);
            let before = catalog.boundary();
            for hold in &held.most[..count] {
                catalog.raise_watermark(hold.region, EntryId::MAX);
            }
            let passed = (before.0..catalog.boundary().0).count() as u64;
            assert_eq!(held.most[count - 1].together_objects, passed, "of {count}");
        }
    }
}
