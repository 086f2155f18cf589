//! The identities of DESIGN.md section 2, and time as a value.

use core::fmt;
use core::time::Duration;

/// A point on the monotonic clock of the shell: nanoseconds since an origin that the shell chose.
///
/// The core reads no clock. Every event comes with the time at which it happened; time never goes
/// back, and a machine that is handed an earlier time than before treats it as the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin of the shell's clock.
    pub const ZERO: Time = Time(0);

    /// A time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// A time `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time `duration` later, or the end of time.
    pub const fn after(self, duration: Duration) -> Time {
        let nanos = duration.as_nanos();
        // 584 years fit; a longer duration means "never".
        let nanos = if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 };
        Time(self.0.saturating_add(nanos))
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Names one independent log inside a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u64);

impl RegionId {
    /// The lowest reserved region; every region from here to `u64::MAX` is Sealog's own.
    pub const FIRST_RESERVED: RegionId = RegionId(u64::MAX - 15);
    /// The reserved region that holds release records (DESIGN.md section 6).
    pub const RELEASES: RegionId = RegionId(u64::MAX);
    /// The reserved region that holds the writer record of a start object (DESIGN.md section 4).
    pub const WRITER: RegionId = RegionId(u64::MAX - 1);

    /// Whether callers may not use this region: they get `InvalidRegion`.
    pub const fn is_reserved(self) -> bool {
        self.0 >= Self::FIRST_RESERVED.0
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sequence number of an object.
///
/// An object can exist only at a sequence below [`ObjectSeq::LIMIT`]; the type also carries what a
/// header claims of its predecessor, and boundaries, which may be one above the last sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectSeq(pub u64);

impl ObjectSeq {
    /// The first sequence, where an empty prefix begins.
    pub const ZERO: ObjectSeq = ObjectSeq(0);
    /// `2^44`: no object can have this sequence or a higher one, since entry ids would not hold it.
    pub const LIMIT: ObjectSeq = ObjectSeq(1 << 44);

    /// Whether an object can exist at this sequence.
    pub const fn is_valid(self) -> bool {
        self.0 < Self::LIMIT.0
    }

    /// The sequence after this one. It may be [`ObjectSeq::LIMIT`].
    pub const fn next(self) -> ObjectSeq {
        ObjectSeq(self.0.saturating_add(1))
    }
}

impl fmt::Display for ObjectSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a writer instance: one above the sequence of the object that claimed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch that an object at `sequence` claims.
    pub const fn claimed_at(sequence: ObjectSeq) -> Epoch {
        Epoch(sequence.0.saturating_add(1))
    }

    /// The sequence of the object that claimed this epoch, if one can have done so. Epoch 0 was
    /// never claimed.
    pub const fn claim_sequence(self) -> Option<ObjectSeq> {
        match self.0.checked_sub(1) {
            Some(seq) if seq < ObjectSeq::LIMIT.0 => Some(ObjectSeq(seq)),
            _ => None,
        }
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sequence and epoch: together they identify an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The object's sequence.
    pub sequence: ObjectSeq,
    /// The object's epoch.
    pub epoch: Epoch,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {} of epoch {}", self.sequence, self.epoch)
    }
}

/// The id of an entry within its region: `object_seq << 20 | position`.
///
/// Ids of a region are strictly increasing and have gaps. Zero is never assigned: it is the
/// watermark of a region with nothing in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

impl EntryId {
    /// Below every entry.
    pub const ZERO: EntryId = EntryId(0);
    /// At or above every entry.
    pub const MAX: EntryId = EntryId(u64::MAX);
    /// How many entries of one region an object can hold: positions are `1 ..= MAX_POSITION`.
    pub const MAX_POSITION: u32 = (1 << 20) - 1;

    /// The id of the entry at `position` of its region in the object at `sequence`; `None` if
    /// either is out of range.
    pub const fn new(sequence: ObjectSeq, position: u32) -> Option<EntryId> {
        if sequence.is_valid() && position >= 1 && position <= Self::MAX_POSITION {
            Some(EntryId(sequence.0 << 20 | position as u64))
        } else {
            None
        }
    }

    /// The sequence of the object that an id of this log's own scheme belongs to.
    pub const fn sequence(self) -> ObjectSeq {
        ObjectSeq(self.0 >> 20)
    }

    /// The entry's place among the entries of its region in its object, from 1.
    pub const fn position(self) -> u32 {
        (self.0 & Self::MAX_POSITION as u64) as u32
    }

    /// The id after this one, to go on reading from; saturates.
    pub const fn next(self) -> EntryId {
        EntryId(self.0.saturating_add(1))
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_id_gives_back_its_sequence_and_position() {
        let last = ObjectSeq(ObjectSeq::LIMIT.0 - 1);
        for sequence in [ObjectSeq::ZERO, ObjectSeq(7), last] {
            for position in [1, 2, EntryId::MAX_POSITION] {
                let id = EntryId::new(sequence, position).unwrap();
                assert_eq!((id.sequence(), id.position()), (sequence, position));
            }
        }
        assert_eq!(EntryId::new(last, EntryId::MAX_POSITION), Some(EntryId::MAX));
        assert_eq!(EntryId::new(ObjectSeq::LIMIT, 1), None);
        assert_eq!(EntryId::new(ObjectSeq::ZERO, 0), None);
        assert_eq!(EntryId::new(ObjectSeq::ZERO, EntryId::MAX_POSITION + 1), None);
    }

    #[test]
    fn the_top_sixteen_regions_are_reserved() {
        assert!(!RegionId(u64::MAX - 16).is_reserved());
        for back in 0..16 {
            assert!(RegionId(u64::MAX - back).is_reserved());
        }
    }

    #[test]
    fn an_epoch_names_the_sequence_that_claimed_it() {
        assert_eq!(Epoch::claimed_at(ObjectSeq(0)), Epoch(1));
        assert_eq!(Epoch(1).claim_sequence(), Some(ObjectSeq(0)));
        assert_eq!(Epoch(0).claim_sequence(), None);
        assert_eq!(Epoch(ObjectSeq::LIMIT.0 + 1).claim_sequence(), None);
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Time::from_nanos(u64::MAX).after(Duration::MAX), Time::from_nanos(u64::MAX));
        assert_eq!(Time::ZERO.since(Time::from_millis(5)), Duration::ZERO);
    }
}
