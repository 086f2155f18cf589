//! From verified objects to history: selecting the chain, indexing it, and applying its release
//! records (DESIGN.md section 4, steps 3 to 5).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::sync::Arc;

use bytes::Bytes;

use super::examine::{Examined, Found};
use super::requests::{Purpose, Request, Requests};
use super::way::{Way, way};
use crate::catalog::Catalog;
use crate::chain::{self, LostHistory, Present, Selection};
use crate::error::{DecodeError, Error, Part};
use crate::format::{SegmentMeta, decode_releases, decode_segment};
use crate::key::Prefix;
use crate::rules::Rules;
use crate::types::{Epoch, Link, ObjectSeq, RegionId};

/// What is recovered, while release records are still read.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    pub(super) catalog: Catalog,
    /// `None` in an empty prefix.
    pub(super) tip: Option<Link>,
    /// `None` if the log has used its last one.
    pub(super) next_sequence: Option<ObjectSeq>,
    pub(super) incomplete_above_tip: u64,
    /// Every sequence that the listing showed.
    pub(super) listed: BTreeSet<ObjectSeq>,
    /// What was history below the tip's boundary, and is still there.
    pub(super) passed: BTreeSet<ObjectSeq>,
    /// The names of the writers whose start objects are there.
    pub(super) names: BTreeMap<Epoch, Arc<str>>,
    /// Release records that are being read.
    pending: BTreeMap<ObjectSeq, Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    meta: SegmentMeta,
    /// They did not decode once; the download may have been damaged.
    again: bool,
}

/// What is history in a listing, before any of it is indexed.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    /// `None` in an empty prefix.
    selection: Option<Selection>,
    /// Every sequence that the listing showed.
    listed: BTreeSet<ObjectSeq>,
}

/// Why recovery does not go on.
#[derive(Clone, Debug)]
pub(super) enum Setback {
    /// What the listing shows does not fit together. A collection of an earlier instance may have
    /// run meanwhile; if the next listing says the same, this is what the opening fails with.
    Suspect(Error),
    Failed(Error),
}

impl Selected {
    /// Selects history among what was found.
    pub(super) fn new(prefix: &Prefix, found: &Found) -> Result<Selected, Setback> {
        let Found { listed, objects, gone, .. } = found;
        let listed = listed.keys().copied().collect();
        if objects.is_empty() {
            return match gone.first() {
                Some(first) => Err(vanished(prefix, *first)),
                None => Ok(Selected { selection: None, listed }),
            };
        }
        let selection = match (chain::select(&present(objects)), gone.last()) {
            (Ok(selection), _) => selection,
            // What is gone may be what is missing.
            (Err(_), Some(gone)) => return Err(vanished(prefix, *gone)),
            (Err(lost), None) => return Err(Setback::Suspect(corrupted(prefix, &lost))),
        };
        // Below the boundary a collection of an earlier instance was still running.
        if let Some(gone) = gone.range(boundary(objects, selection.tip)..).next() {
            return Err(vanished(prefix, *gone));
        }
        Ok(Selected { selection: Some(selection), listed })
    }

    pub(super) fn tip(&self) -> Option<Link> {
        self.selection.as_ref().map(|selection| selection.tip)
    }

    /// Counts an object that was created after the listing.
    pub(super) fn add(&mut self, sequence: ObjectSeq) {
        self.listed.insert(sequence);
    }

    /// The sequence that a start object takes at least, once a claim stands at this one.
    pub(super) fn next_sequence_after(
        &self,
        claim: ObjectSeq,
        objects: &BTreeMap<ObjectSeq, Examined>,
    ) -> Option<ObjectSeq> {
        next_sequence(self.listed.last().copied().max(Some(claim)), objects)
    }

    /// What must be claimed before a start object may be created, if anything.
    pub(super) fn to_claim(
        &self,
        objects: &BTreeMap<ObjectSeq, Examined>,
        rules: Rules,
    ) -> Option<ObjectSeq> {
        // An empty prefix goes straight to its first object.
        let tip = self.tip()?;
        let above = objects.range(tip.sequence.next()..);
        match way(tip, above.map(|(sequence, object)| (*sequence, object.header.epoch)), rules) {
            Way::Claim(sequence) => Some(sequence),
            Way::Blocked => None,
        }
    }
}

/// The boundary that a tip carries.
pub(super) fn boundary(objects: &BTreeMap<ObjectSeq, Examined>, tip: Link) -> ObjectSeq {
    objects.get(&tip.sequence).map_or(ObjectSeq::ZERO, |tip| tip.header.boundary)
}

/// An object that was listed, and is needed, was gone when it was read.
fn vanished(prefix: &Prefix, sequence: ObjectSeq) -> Setback {
    let reason = "expected what the listing shows, found nothing there";
    let error = DecodeError::new(Part::Object, reason);
    Setback::Suspect(Error::corrupted(prefix.object_key(sequence), error))
}

impl Recovery {
    /// Recovers the selected history, and asks for the release records that are not at hand.
    pub(super) fn new(
        prefix: &Prefix,
        requests: &mut Requests,
        objects: &BTreeMap<ObjectSeq, Examined>,
        selected: Selected,
    ) -> Result<Recovery, Setback> {
        let mut recovery = Recovery {
            catalog: Catalog::new(ObjectSeq::ZERO),
            tip: None,
            next_sequence: next_sequence(selected.listed.last().copied(), objects),
            incomplete_above_tip: 0,
            listed: selected.listed,
            passed: BTreeSet::new(),
            names: names(objects),
            pending: BTreeMap::new(),
        };
        let Some(selection) = selected.selection else {
            return Ok(recovery);
        };
        recovery.catalog.raise_boundary(boundary(objects, selection.tip));
        recovery.tip = Some(selection.tip);
        recovery.incomplete_above_tip = selection.incomplete_above_tip;
        recovery.passed = selection.passed.into_iter().collect();
        for sequence in selection.chain {
            if let Some(object) = objects.get(&sequence) {
                recovery.index(prefix, requests, object)?;
            }
        }
        Ok(recovery)
    }

    fn index(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        object: &Examined,
    ) -> Result<(), Setback> {
        let link = object.header.link();
        self.catalog.index(link, object.size, &object.segments).map_err(|error| {
            Setback::Failed(Error::corrupted(prefix.object_key(link.sequence), error))
        })?;
        let releases = object.segments.iter().find(|meta| meta.region == RegionId::RELEASES);
        let Some(&meta) = releases else {
            return Ok(());
        };
        let again = match &object.releases {
            Some(held) if self.apply(link.sequence, &meta, held).is_ok() => return Ok(()),
            Some(_) => true,
            None => false,
        };
        self.fetch(prefix, requests, link.sequence, Pending { meta, again });
        Ok(())
    }

    /// Whether every release record is applied.
    pub(super) fn is_done(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes the segment of release records of an object; without bytes the object is gone.
    pub(super) fn fetched(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        bytes: Option<Bytes>,
    ) -> Result<(), Setback> {
        let Some(Pending { meta, again }) = self.pending.remove(&sequence) else {
            return Ok(());
        };
        let Some(bytes) = bytes else {
            return Err(vanished(prefix, sequence));
        };
        match self.apply(sequence, &meta, &bytes) {
            Ok(()) => {}
            Err(_) if !again => {
                self.fetch(prefix, requests, sequence, Pending { meta, again: true });
            }
            Err(error) => {
                let key = prefix.object_key(sequence);
                return Err(Setback::Failed(Error::corrupted(key, error)));
            }
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        pending: Pending,
    ) {
        let key = prefix.object_key(sequence);
        requests.push(Request::fetch(Purpose::Releases(sequence), key, pending.meta.range()));
        self.pending.insert(sequence, pending);
    }

    /// Raises the watermarks that an object's release records name.
    fn apply(
        &mut self,
        sequence: ObjectSeq,
        meta: &SegmentMeta,
        bytes: &Bytes,
    ) -> Result<(), DecodeError> {
        let entries = decode_segment(bytes, meta)?;
        self.catalog.apply_releases(sequence, &decode_releases(&entries, sequence)?);
        Ok(())
    }
}

/// Everything that is there counts, be it history or not: no sequence and no id of anything in the
/// store is ever handed out again.
fn next_sequence(
    largest_listed: Option<ObjectSeq>,
    objects: &BTreeMap<ObjectSeq, Examined>,
) -> Option<ObjectSeq> {
    let epochs = objects.values().map(|object| object.header.epoch);
    let segments = objects.values().flat_map(|object| &object.segments);
    let ids = segments.filter(|meta| !meta.region.is_reserved()).map(|meta| meta.max_id);
    chain::next_sequence(largest_listed, epochs.max(), ids)
}

/// The names of the writers whose start objects or claims are there.
pub(super) fn names(objects: &BTreeMap<ObjectSeq, Examined>) -> BTreeMap<Epoch, Arc<str>> {
    let starts = objects
        .values()
        .filter(|object| object.header.epoch == Epoch::claimed_at(object.header.sequence));
    starts
        .filter_map(|object| Some((object.header.epoch, object.writer.as_ref()?.name.clone())))
        .collect()
}

fn present(objects: &BTreeMap<ObjectSeq, Examined>) -> BTreeMap<ObjectSeq, Present> {
    let present = |(sequence, object): (&ObjectSeq, &Examined)| {
        let max_in_flight = object.writer.as_ref().map(|writer| writer.max_in_flight);
        (*sequence, Present { header: object.header, max_in_flight })
    };
    objects.iter().map(present).collect()
}

fn corrupted(prefix: &Prefix, lost: &LostHistory) -> Error {
    let error = DecodeError::new(Part::Object, lost.to_string());
    Error::corrupted(prefix.object_key(lost.missing), error)
}
