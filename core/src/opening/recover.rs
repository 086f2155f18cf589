//! From verified objects to history: selecting the chain, indexing it, and applying its release
//! records (DESIGN.md section 4, steps 3 to 5).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use super::examine::{Examined, Found};
use super::parts::SegmentParts;
use super::requests::{Body, Purpose, Request, Requests};
use super::way::way;
use crate::catalog::Catalog;
use crate::chain::{self, LostHistory, Present, Selection};
use crate::error::{DecodeError, Error, Part};
use crate::format::{Header, SegmentMeta, decode_releases, decode_segment};
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

#[derive(Clone, Debug)]
struct Pending {
    meta: SegmentMeta,
    parts: SegmentParts,
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
    /// Something is missing. A collection of an earlier instance may have run meanwhile; if the next
    /// listing says the same, this is what the opening fails with.
    Lacking(Error),
    /// Something does not verify. If the next listing shows the same object, and it does not verify
    /// again, this is what the opening fails with.
    Damaged(Error),
    /// No other listing can change that.
    Failed(Error),
}

impl Selected {
    /// Selects history among what was found. With `forgiving`, proofs that objects are lost do not
    /// count: a listing in no order may lack what it should show.
    pub(super) fn new(
        prefix: &Prefix,
        found: &Found,
        forgiving: bool,
    ) -> Result<Selected, Setback> {
        let Found { listed, objects, gone, .. } = found;
        let listed = listed.keys().copied().collect();
        if objects.is_empty() {
            return match gone.first() {
                Some(first) => Err(vanished(prefix, *first)),
                None => Ok(Selected { selection: None, listed }),
            };
        }
        let present = present(objects);
        let selected = match forgiving {
            true => chain::select_and_prove(&present).map(|(selection, _)| selection),
            false => chain::select(&present),
        };
        let selection = match (selected, gone.last()) {
            (Ok(selection), _) => selection,
            // What is gone may be what is missing.
            (Err(_), Some(gone)) => return Err(vanished(prefix, *gone)),
            (Err(lost), None) => return Err(Setback::Lacking(corrupted(prefix, &lost))),
        };
        // Below the boundary a collection of an earlier instance was still running.
        if let Some(gone) = gone.range(boundary(objects, selection.tip)..).next() {
            return Err(vanished(prefix, *gone));
        }
        Ok(Selected { selection: Some(selection), listed })
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
    Setback::Lacking(Error::corrupted(prefix.object_key(sequence), error))
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
        self.fetch(prefix, requests, link.sequence, Pending::new(meta, again));
        Ok(())
    }

    /// Counts a claim that was created after the listing.
    pub(super) fn add_claim(
        &mut self,
        sequence: ObjectSeq,
        objects: &BTreeMap<ObjectSeq, Examined>,
    ) {
        self.listed.insert(sequence);
        self.next_sequence = next_sequence(self.listed.last().copied(), objects);
    }

    /// The sequences that must be claimed before a start object may be created, ascending; none if
    /// the way is blocked.
    pub(super) fn to_claim(
        &self,
        objects: &BTreeMap<ObjectSeq, Examined>,
        rules: Rules,
    ) -> Vec<Range<u64>> {
        // An empty prefix goes straight to its first object.
        let Some(tip) = self.tip else { return Vec::new() };
        let above = objects.range(tip.sequence.next()..);
        way(tip, above.map(|(sequence, object)| (*sequence, object.header.epoch)), rules)
    }

    /// The sequence that a start object takes at least, once a claim stands at this one.
    pub(super) fn next_sequence_after(
        &self,
        claim: ObjectSeq,
        objects: &BTreeMap<ObjectSeq, Examined>,
    ) -> Option<ObjectSeq> {
        next_sequence(self.listed.last().copied().max(Some(claim)), objects)
    }

    /// Whether every release record is applied.
    pub(super) fn is_done(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes a part of the segment of release records of an object: gives the segment, once it is
    /// whole and its records are applied.
    pub(super) fn fetched(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        body: Body,
    ) -> Result<Option<Bytes>, Setback> {
        let Some(mut pending) = self.pending.remove(&sequence) else {
            return Ok(None);
        };
        let part = match body {
            Body::Bytes(part) => pending.parts.take(part),
            Body::Misfit(misfit) => Err(misfit),
            Body::Gone => return Err(vanished(prefix, sequence)),
        };
        let applied = part.and_then(|whole| {
            let Some(whole) = whole else { return Ok(None) };
            self.apply(sequence, &pending.meta, &whole).map(|()| Some(whole))
        });
        match applied {
            Ok(Some(whole)) => return Ok(Some(whole)),
            Ok(None) => self.fetch(prefix, requests, sequence, pending),
            Err(_) if !pending.again => {
                let pending = Pending::new(pending.meta, true);
                self.fetch(prefix, requests, sequence, pending);
            }
            Err(error) => {
                let key = prefix.object_key(sequence);
                return Err(Setback::Damaged(Error::corrupted(key, error)));
            }
        }
        Ok(None)
    }

    fn fetch(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        pending: Pending,
    ) {
        let key = prefix.object_key(sequence);
        requests.push(Request::fetch(Purpose::Releases(sequence), key, pending.parts.wanted()));
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

impl Pending {
    fn new(meta: SegmentMeta, again: bool) -> Pending {
        Pending { meta, parts: SegmentParts::new(meta), again }
    }
}

/// Which object leaves no sequence for another although it could be the last of no sound log: an
/// epoch is at most one above its object's sequence. (An id may be of any sequence: it can come from
/// an older log.)
pub(super) fn exhausted_by(
    prefix: &Prefix,
    objects: &BTreeMap<ObjectSeq, Examined>,
) -> Option<Error> {
    objects.values().find_map(|object| {
        let error = leaves_no_room(&object.header, &object.segments)?;
        Some(Error::corrupted(prefix.object_key(object.header.sequence), error))
    })
}

/// What an object says that no later object could follow, if it does.
pub(super) fn leaves_no_room(header: &Header, segments: &[SegmentMeta]) -> Option<DecodeError> {
    let epoch = header.epoch;
    if epoch.0 >= ObjectSeq::LIMIT.0 && epoch > Epoch::claimed_at(header.sequence) {
        let reason = format!(
            "expected an epoch of at most its sequence + 1, found {epoch}: no object could follow"
        );
        return Some(DecodeError::new(Part::Header, reason));
    }
    let last = segments.iter().filter(|meta| !meta.region.is_reserved()).find(|meta| {
        let after = meta.max_id.sequence().next();
        !after.is_valid() && meta.max_id.sequence() > header.sequence
    })?;
    let reason = format!(
        "expected ids that leave room for others, found {}: no object could follow",
        last.max_id
    );
    Some(DecodeError::new(Part::Segment(last.region), reason))
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

/// What is missing of objects that history must have had, by what is present.
pub(super) fn missing(objects: &BTreeMap<ObjectSeq, Examined>) -> BTreeSet<ObjectSeq> {
    chain::missing(&present(objects))
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
