//! What an object is, as its header and its table tell.

use crate::format::{Header, SegmentMeta};
use crate::types::{Epoch, RegionId};

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// It claimed its epoch, and is the first object of its writer.
    Start,
    /// It only stands in the way of older writers, and is never history (DESIGN.md section 12).
    Claim,
    /// It holds entries.
    Data,
    /// It holds release records and no entries.
    Release,
    /// It holds nothing: it was made to carry a reclaim boundary (DESIGN.md section 9).
    Carrier,
}

impl ObjectKind {
    /// Of the object with this header and this table.
    pub fn of(header: &Header, segments: &[SegmentMeta]) -> ObjectKind {
        let holds = |which: &dyn Fn(RegionId) -> bool| segments.iter().any(|m| which(m.region));
        if header.links_to_itself() {
            ObjectKind::Claim
        } else if header.epoch == Epoch::claimed_at(header.sequence) {
            ObjectKind::Start
        } else if holds(&|region| !region.is_reserved()) {
            ObjectKind::Data
        } else if holds(&|region| region == RegionId::RELEASES) {
            ObjectKind::Release
        } else {
            ObjectKind::Carrier
        }
    }
}

/// Where an object stands (DESIGN.md section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectStatus {
    /// It is history.
    Chain,
    /// At or above the tip's reclaim boundary, and no part of history.
    Orphan,
    /// Below the tip's reclaim boundary: it is not needed any more.
    BelowBoundary,
    /// Its header or its table does not verify, or it was listed and is gone.
    Damaged,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{EntryId, Link, ObjectSeq};

    #[test]
    fn the_kind_of_an_object_follows_from_its_header_and_its_table() {
        let data = RegionId(7);
        let unknown = RegionId::FIRST_RESERVED;
        let (releases, writer) = (RegionId::RELEASES, RegionId::WRITER);
        let of = |epoch, predecessor: Option<(u64, u64)>, regions: &[RegionId]| {
            let header = Header {
                sequence: ObjectSeq(4),
                epoch: Epoch(epoch),
                predecessor: predecessor
                    .map(|(s, e)| Link { sequence: ObjectSeq(s), epoch: Epoch(e) }),
                boundary: ObjectSeq::ZERO,
            };
            let meta = |region: &RegionId| SegmentMeta {
                region: *region,
                min_id: EntryId(1),
                max_id: EntryId(1),
                count: 1,
                offset: 54,
                length: 12,
                crc: 0,
            };
            let segments: alloc::vec::Vec<_> = regions.iter().map(meta).collect();
            ObjectKind::of(&header, &segments)
        };
        let before = Some((3, 1));
        assert_eq!(of(5, Some((4, 5)), &[writer]), ObjectKind::Claim);
        assert_eq!(of(5, before, &[writer]), ObjectKind::Start);
        assert_eq!(of(5, None, &[]), ObjectKind::Start, "its writer record decides nothing");
        assert_eq!(of(1, before, &[data]), ObjectKind::Data);
        assert_eq!(of(1, before, &[data, releases]), ObjectKind::Data);
        assert_eq!(of(1, before, &[releases]), ObjectKind::Release);
        assert_eq!(of(1, before, &[unknown, releases]), ObjectKind::Release);
        assert_eq!(of(1, before, &[]), ObjectKind::Carrier);
        assert_eq!(of(1, before, &[unknown]), ObjectKind::Carrier);
    }
}
