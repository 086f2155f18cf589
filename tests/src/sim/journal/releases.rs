//! The checks of releases (DESIGN.md section 6): what was released stays released, and nothing else
//! is hidden.

use std::collections::{BTreeMap, BTreeSet};

use sealog_core::{EntryId, Error, Link, Outcome, RegionId};

use super::{Checked, Journal, Waiter, What, ensure, of};
use crate::sim::tally::Reached;

/// The releases that were called on an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Releases {
    /// Of each region, the append before which it was released last.
    called: BTreeMap<RegionId, usize>,
    /// How many in full are not answered, or failed.
    open_in_full: BTreeMap<RegionId, usize>,
    /// Appends to these may be refused.
    may_refuse: BTreeSet<RegionId>,
    /// Failed, and to be in the log with whatever is acknowledged next: the append before which the
    /// region is released, and how many calls there were when that failed.
    owed: BTreeMap<RegionId, (usize, usize)>,
    /// Records that were put: no append at or behind this place gets an id up to this one.
    through: BTreeMap<RegionId, (EntryId, usize)>,
}

impl Releases {
    pub(super) fn in_full(regions: impl Iterator<Item = RegionId>) -> Releases {
        Releases { may_refuse: regions.collect(), ..Releases::default() }
    }

    pub(super) fn forget(&mut self, region: RegionId) {
        if self.open_in_full.get(&region).is_none_or(|open| *open == 0) {
            self.may_refuse.remove(&region);
        }
    }
}

impl Journal {
    /// A release is called.
    pub fn release(&mut self, instance: usize, region: RegionId, in_full: bool) -> Checked<Waiter> {
        let place = self.appends.len();
        let releases = &mut self.instance(instance)?.releases;
        releases.called.insert(region, place);
        if in_full {
            *releases.open_in_full.entry(region).or_default() += 1;
            releases.may_refuse.insert(region);
        }
        Ok(self.call(instance, What::Release { region, in_full, place }))
    }

    /// Whether appends to a region must not be refused.
    pub fn takes_appends(&self, instance: usize, region: RegionId) -> bool {
        let state = self.instances.get(&instance);
        state.is_some_and(|state| !state.releases.may_refuse.contains(&region))
    }

    pub(super) fn may_be_refused(&self, instance: usize, region: RegionId) -> bool {
        !self.takes_appends(instance, region)
    }

    /// A release was acknowledged: it holds.
    pub(super) fn released(
        &mut self,
        instance: usize,
        region: RegionId,
        in_full: bool,
        place: usize,
    ) -> Checked {
        let waits = self.index.holds(region) && in_full;
        ensure!(
            !waits || self.index.is_released_in_full(region),
            "region {region} was released in full, and no record says so"
        );
        self.tally.count(if in_full { Reached::ReleasedInFull } else { Reached::Released });
        self.hold(region, place)?;
        if in_full {
            *self.instance(instance)?.releases.open_in_full.entry(region).or_default() -= 1;
        }
        Ok(())
    }

    /// A release failed. If its record may be on its way, it is not forgotten.
    pub(super) fn release_failed(
        &mut self,
        instance: usize,
        (region, place): (RegionId, usize),
        error: &Error,
        outcome: Outcome,
    ) -> Checked {
        let so_far = self.calls.len();
        let stopping = matches!(error, Error::Stopped);
        ensure!(
            outcome == Outcome::Unknown || stopping || matches!(error, Error::InvalidRegion { .. }),
            "the release of region {region} failed, and was never tried: {error}"
        );
        if outcome == Outcome::Unknown {
            self.tally.count(Reached::ReleaseFailed);
            let owed = &mut self.instance(instance)?.releases.owed;
            let owed = owed.entry(region).or_insert((place, so_far));
            *owed = (place.max(owed.0), so_far);
        }
        Ok(())
    }

    /// A call was acknowledged: releases that had failed before it hold.
    pub(super) fn pay(&mut self, instance: usize, called: Waiter) -> Checked {
        let state = of(&self.instances, instance)?;
        let due = state.releases.owed.iter().filter(|(_, (_, failed))| *failed <= called);
        let due: Vec<_> = due.map(|(region, (place, _))| (*region, *place)).collect();
        for (region, place) in due {
            self.instance(instance)?.releases.owed.remove(&region);
            self.tally.count(Reached::CarriedHolds);
            self.hold(region, place)?;
        }
        Ok(())
    }

    /// How many regions failed releases are of.
    pub(super) fn owed(&self, instance: usize) -> usize {
        self.instances.get(&instance).map_or(0, |state| state.releases.owed.len())
    }

    /// From now on no entry of the region is there of an append before this one.
    fn hold(&mut self, region: RegionId, place: usize) -> Checked {
        let watermark = self.watermark(region);
        let mut log = self.log.get(&region).into_iter().flatten();
        let visible = log.find(|(id, (append, _))| **id > watermark && *append < place);
        ensure!(visible.is_none(), "region {region} was released, and {visible:?} is visible");
        let released = self.released.entry(region).or_default();
        *released = place.max(*released);
        Ok(())
    }

    /// The records of an object that is put: somebody asked for each, and none hides what was
    /// appended after.
    pub(super) fn check_records(
        &mut self,
        instance: usize,
        link: Link,
        records: &BTreeMap<RegionId, EntryId>,
    ) -> Checked {
        for (region, through) in records {
            let state = of(&self.instances, instance)?;
            let Some(place) = state.releases.called.get(region).copied() else {
                return Err(super::Violation(format!("{link} releases {region}, unasked")));
            };
            if *through == EntryId::MAX {
                let asked = state.releases.may_refuse.contains(region);
                ensure!(asked, "{link} releases {region} in full, unasked");
                continue;
            }
            let sent = self.sent.values().filter(|sent| sent.instance == instance);
            for ((of, id), (append, _)) in sent.flat_map(|sent| &sent.entries) {
                ensure!(
                    of != region || *append < place || id > through,
                    "{link} releases {region} through {through}, and {id} came after that"
                );
            }
            self.instance(instance)?.releases.through.insert(*region, (*through, place));
        }
        Ok(())
    }

    /// No entry that is put has an id that was released before.
    pub(super) fn check_not_released(&self, instance: usize, link: Link) -> Checked {
        let state = of(&self.instances, instance)?;
        for ((region, id), (append, _)) in &self.sent[&link].entries {
            let released = state.releases.through.get(region);
            ensure!(
                released.is_none_or(|(through, place)| append < place || id > through),
                "{id} of region {region} in {link} was released before: {released:?}"
            );
        }
        Ok(())
    }
}
