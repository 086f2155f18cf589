//! The rules of DESIGN.md section 12, each with a switch.
//!
//! In a log all of them hold, always. The switches are for the exploration of the protocol alone
//! (feature `exploration`): it takes each rule out in turn and must then find a run that loses
//! data or never ends.

/// Which rules of exclusive ownership are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Rule 1: a claim links to itself, so that it is never history. Without: to the tip.
    pub claims_link_to_themselves: bool,
    /// Rule 2: no start object before something of a later epoch stands behind the tip.
    pub claim_before_start: bool,
    /// Rule 2: no start object while a sequence between the tip and the largest listed one is
    /// free.
    pub claim_every_hole: bool,
    /// Rule 2: list again after a claim. Without: start from the listing before it.
    pub list_after_claim: bool,
    /// Rule 2: what stands behind the tip blocks only if its epoch is later than the tip's.
    /// Without: whatever stands there.
    pub blocker_is_of_a_later_epoch: bool,
    /// Rule 2: a start put that finds a claim starts again. Without: it gives up as contended.
    pub start_again_at_a_claim: bool,
    /// Rule 3: list once more after the start object.
    pub second_look: bool,
    /// Rule 3: a later epoch in that listing ends the opening. Without: it is ignored.
    pub later_epoch_contends: bool,
    /// Rule 3: another new object in that listing starts the opening again. Without: it is
    /// ignored.
    pub new_object_starts_again: bool,
    /// Rule 3: new claims in that listing are ignored. Without: they count as any later epoch.
    pub new_claims_are_ignored: bool,
    /// Rule 4: the first batch after a roll back is guarded.
    pub guard_after_roll_back: bool,
    /// Rule 4: the first batch after a raised floor is guarded.
    pub guard_after_floor: bool,
    /// Rule 4: behind a guarded batch no create starts until it is indexed.
    pub guard_holds_creates: bool,
    /// Rule 4: a floor is raised only while no batch is pending.
    pub floor_waits: bool,
    /// Rule 5: claims, start objects and other instances' orphans are not deleted before
    /// `fence_retention` is over. Without: as soon as the boundary has passed them.
    pub keep_what_stands: bool,
    /// Rule 5: the age that counts is that of the first object of history above, and what stands above
    /// the recovered tip is kept. Without: each object's own age.
    pub age_is_of_history_above: bool,
    /// Rule 7: a batch whose create is answered long after the last indexed object was put is guarded.
    pub guard_after_silence: bool,
    /// Rule 6: nothing is corrupted before two listings in a row agree.
    pub confirm_corruption: bool,
}

impl Rules {
    /// All of them, as in every log.
    pub const ALL: Rules = Rules {
        claims_link_to_themselves: true,
        claim_before_start: true,
        claim_every_hole: true,
        list_after_claim: true,
        blocker_is_of_a_later_epoch: true,
        start_again_at_a_claim: true,
        second_look: true,
        later_epoch_contends: true,
        new_object_starts_again: true,
        new_claims_are_ignored: true,
        guard_after_roll_back: true,
        guard_after_floor: true,
        guard_holds_creates: true,
        floor_waits: true,
        keep_what_stands: true,
        age_is_of_history_above: true,
        guard_after_silence: true,
        confirm_corruption: true,
    };
}
