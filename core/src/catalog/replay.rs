//! What a replay of many regions touches, object by object (DESIGN.md section 8).

use alloc::vec::Vec;

use super::{Catalog, Object};
use crate::error::Error;
use crate::key::Prefix;
use crate::read::{PlannedObject, ReplayFilter, ReplayPlan, WantedSegment};
use crate::types::{EntryId, ObjectSeq, RegionId};

impl Catalog {
    /// Plans a replay from the object `from` on: what the filter wants and is above its region's
    /// watermark, up to the last indexed object, or up to `through` when a replay goes on. The
    /// plan is cut once `at_most` segments were looked at, where an object counts for one at least;
    /// it may hold nothing and go on all the same.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a filter that names a reserved region.
    pub fn plan_replay(
        &self,
        prefix: &Prefix,
        filter: &ReplayFilter,
        from: ObjectSeq,
        through: Option<ObjectSeq>,
        at_most: usize,
    ) -> Result<ReplayPlan, Error> {
        filter.validate()?;
        let last = self.last.map_or(ObjectSeq::ZERO, |last| last.sequence);
        let mut plan =
            ReplayPlan { objects: Vec::new(), next: None, through: through.unwrap_or(last) };
        let mut looked_at = 0;
        // Nothing below the boundary is live.
        for (sequence, object) in self.objects.range(from.max(self.boundary)..) {
            if *sequence > plan.through {
                break;
            }
            if looked_at > 0 && looked_at >= at_most {
                plan.next = Some(*sequence);
                break;
            }
            let (looks, segments) = self.wanted_of(object, filter);
            looked_at += looks.max(1);
            if !segments.is_empty() {
                let key = prefix.object_key(*sequence);
                plan.objects.push(PlannedObject { object: object.link, key, segments });
            }
        }
        Ok(plan)
    }

    /// What is wanted of an object, in the order of the regions, and how many segments were looked
    /// at for it: those that the object holds or those that are chosen, whichever are fewer.
    fn wanted_of(&self, object: &Object, filter: &ReplayFilter) -> (usize, Vec<WantedSegment>) {
        let sequence = object.link.sequence;
        let wanted = |region: &RegionId, from: Option<EntryId>| {
            self.wanted_segment(*region, sequence, from?)
        };
        match filter.chosen() {
            Some(chosen) if chosen.len() < object.regions.len() => {
                let segments = chosen.iter().filter_map(|(region, from)| wanted(region, *from));
                (chosen.len(), segments.collect())
            }
            _ => {
                let regions = object.regions.iter();
                let segments = regions.filter_map(|region| wanted(region, filter.from(*region)));
                (object.regions.len(), segments.collect())
            }
        }
    }

    fn wanted_segment(
        &self,
        region: RegionId,
        object: ObjectSeq,
        from: EntryId,
    ) -> Option<WantedSegment> {
        let region = self.regions.get(&region)?;
        let found = region.live.binary_search_by_key(&object, |s| s.object.sequence).ok()?;
        let meta = region.live[found].meta;
        let from = from.max(region.watermark.next());
        (meta.max_id >= from).then_some(WantedSegment { meta, from, through: meta.max_id })
    }
}
