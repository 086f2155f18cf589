//! Reading (DESIGN.md section 8): what is planned, and the machines that carry it out.

mod ahead;
mod filter;
mod object;
mod range;
mod segment;

use alloc::vec::Vec;

pub use self::ahead::ReadAhead;
pub use self::filter::ReplayFilter;
pub use self::object::{ObjectRead, ObjectReadEffect};
pub use self::range::{RangeRead, RangeReadEffect, ReadProgress};
pub use self::segment::{SegmentOutcome, SegmentRead, SegmentReadEffect, SegmentReadEvent};
use crate::error::DecodeError;
use crate::format::SegmentMeta;
use crate::key::Key;
use crate::types::{EntryId, Link, ObjectSeq, RegionId};

/// The segments that a read of one region touches, in order.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// What to read, each with a [`SegmentRead`].
    pub segments: Vec<PlannedSegment>,
    /// Where to plan on from, if the plan was cut short.
    pub next: Option<EntryId>,
    /// The largest id that the read yields: what was durable when it was planned first.
    pub through: EntryId,
}

/// One segment of a read.
#[derive(Clone, Debug)]
pub struct PlannedSegment {
    /// The segment's object and region.
    pub segment: SegmentRef,
    /// The object's key.
    pub key: Key,
    /// Where the segment is in it.
    pub meta: SegmentMeta,
    /// Entries below this id are not wanted.
    pub from: EntryId,
    /// Entries above this id are not wanted.
    pub through: EntryId,
}

/// The objects that a replay of many regions touches, in order.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// What to read, each with an [`ObjectRead`].
    pub objects: Vec<PlannedObject>,
    /// Where to plan on from, if the plan was cut short.
    pub next: Option<ObjectSeq>,
    /// The last object that the replay looks at: the last indexed one when it was planned first.
    pub through: ObjectSeq,
}

/// One object of a replay: what is wanted of it.
#[derive(Clone, Debug)]
pub struct PlannedObject {
    /// The object.
    pub object: Link,
    /// Its key.
    pub key: Key,
    /// Its segments that are wanted, in the order of their regions, which is that of their bytes.
    pub segments: Vec<WantedSegment>,
}

/// One segment of a [`PlannedObject`].
#[derive(Clone, Copy, Debug)]
pub struct WantedSegment {
    /// Its region, and where it is in the object.
    pub meta: SegmentMeta,
    /// Entries below this id are not wanted.
    pub from: EntryId,
    /// Entries above this id are not wanted.
    pub through: EntryId,
}

/// A segment that is read alone.
impl From<PlannedSegment> for PlannedObject {
    fn from(planned: PlannedSegment) -> PlannedObject {
        let PlannedSegment { segment, key, meta, from, through } = planned;
        let segments = Vec::from([WantedSegment { meta, from, through }]);
        PlannedObject { object: segment.object, key, segments }
    }
}

/// Names a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentRef {
    /// Its object.
    pub object: Link,
    /// Its region.
    pub region: RegionId,
}

/// A segment that does not decode, in the middle of a region: its entries are lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hole {
    /// The region.
    pub region: RegionId,
    /// The key of the damaged object.
    pub key: Key,
    /// The damaged object.
    pub object: Link,
    /// The smallest lost id.
    pub min_id: EntryId,
    /// The largest lost id.
    pub max_id: EntryId,
    /// What does not decode.
    pub error: DecodeError,
}
