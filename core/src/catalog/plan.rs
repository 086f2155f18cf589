//! Planning a read of one region (DESIGN.md section 8).

use alloc::vec::Vec;

use super::Catalog;
use crate::error::Error;
use crate::key::Prefix;
use crate::read::{PlannedSegment, ReadPlan, SegmentRef};
use crate::types::{EntryId, RegionId};

impl Catalog {
    /// Plans a read of a region: the segments with entries at or above `from` and above the
    /// watermark, up to what is indexed now, or up to `through` when a read goes on. The plan is
    /// cut after `at_most` segments.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a reserved region.
    pub fn plan_read(
        &self,
        prefix: &Prefix,
        region: RegionId,
        from: EntryId,
        through: Option<EntryId>,
        at_most: usize,
    ) -> Result<ReadPlan, Error> {
        if region.is_reserved() {
            return Err(Error::InvalidRegion { region });
        }
        let through = through.unwrap_or_else(|| self.durable(region));
        let from = from.max(self.watermark(region).next());
        let mut planned = self
            .segments_from(region, from)
            .take_while(|segment| segment.meta.min_id <= through)
            .map(|segment| PlannedSegment {
                segment: SegmentRef { object: segment.object, region },
                key: prefix.object_key(segment.object.sequence),
                meta: segment.meta,
                from,
                through,
            });
        let segments: Vec<_> = planned.by_ref().take(at_most).collect();
        let next = planned.next().map(|segment| segment.meta.min_id);
        Ok(ReadPlan { segments, next, through })
    }
}
