//! What simulations reached: one that reaches nothing shows nothing.

use std::collections::BTreeMap;

/// How often what was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<Reached, u64>);

/// The interesting things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reached {
    /// An append was acknowledged.
    Acknowledged,
    /// An append failed with an unknown outcome.
    Unknown,
    /// An append failed as not written.
    NotWritten,
    /// Appends waited to be admitted.
    Queued,
    /// Batches were rolled back.
    RolledBack,
    /// A stale object held the sequence.
    Conflict,
    /// `obsolete` raised the next sequence.
    Floor,
    /// An opening succeeded.
    Opened,
    /// An opening failed.
    NotOpened,
    /// An opening met another opening's start object.
    Contended,
    /// An opening brought back an append of an unknown outcome.
    CameBack,
    /// An opening did not bring back an append that was obsolete.
    Reclaimed,
    /// A put landed when nobody waited for it any more.
    LandedLate,
    /// Objects were deleted.
    Deleted,
    /// A delete failed.
    DeleteFailed,
    /// A claim, a start object or an orphan of another instance was deleted.
    FenceDeleted,
    /// A carrier was put.
    Carrier,
    /// Nothing of a region was left, and it was forgotten.
    Forgotten,
    /// A read failed, and asked about its object.
    Verdict,
    /// The same, since the object was gone.
    VerdictOnGone,
    /// A region was released.
    Released,
    /// A region was released in full.
    ReleasedInFull,
    /// A release failed, and its record is carried.
    ReleaseFailed,
    /// A release that had failed holds.
    CarriedHolds,
    /// An opening hid what was released.
    StayedReleased,
    /// An append was refused, since its region was released in full.
    RefusedAsReleased,
    /// A stop said that release records are lost.
    StopLostRecords,
}

impl Reached {
    /// All of them.
    pub const ALL: [Reached; 27] = [
        Reached::Acknowledged,
        Reached::Unknown,
        Reached::NotWritten,
        Reached::Queued,
        Reached::RolledBack,
        Reached::Conflict,
        Reached::Floor,
        Reached::Opened,
        Reached::NotOpened,
        Reached::Contended,
        Reached::CameBack,
        Reached::Reclaimed,
        Reached::LandedLate,
        Reached::Deleted,
        Reached::DeleteFailed,
        Reached::FenceDeleted,
        Reached::Carrier,
        Reached::Forgotten,
        Reached::Verdict,
        Reached::VerdictOnGone,
        Reached::Released,
        Reached::ReleasedInFull,
        Reached::ReleaseFailed,
        Reached::CarriedHolds,
        Reached::StayedReleased,
        Reached::RefusedAsReleased,
        Reached::StopLostRecords,
    ];
}

impl Tally {
    /// It happened.
    pub fn count(&mut self, what: Reached) {
        *self.0.entry(what).or_default() += 1;
    }

    /// It happened, perhaps.
    pub fn count_if(&mut self, happened: bool, what: Reached) {
        if happened {
            self.count(what);
        }
    }

    /// How often it happened.
    pub fn get(&self, what: Reached) -> u64 {
        self.0.get(&what).copied().unwrap_or_default()
    }

    /// Both together.
    pub fn add(&mut self, other: &Tally) {
        for (what, count) in &other.0 {
            *self.0.entry(*what).or_default() += count;
        }
    }

    /// What never happened.
    pub fn missing(&self) -> Vec<Reached> {
        Reached::ALL.into_iter().filter(|what| self.get(*what) == 0).collect()
    }
}
