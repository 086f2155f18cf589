//! Planning a repair: selecting the chain before and after.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use bytes::Bytes;

use super::{Place, Refused, Repair, Replacement, Salvage, Span};
use crate::catalog::Catalog;
use crate::chain::{self, LostHistory, Present, Selection};
use crate::error::Part;
use crate::format::{
    Entry, Header, Object, ObjectEncoder, ReleaseRecord, SegmentMeta, WriterRecord, decode_releases,
};
use crate::opening::{Survey, SurveyedObject};
use crate::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};

impl Repair {
    /// Plans the repair of the object at `sequence`, of which these are the bytes.
    ///
    /// What it says to give up is told against the history in which the object stands where it
    /// stood, or, where its header is lost, [where it probably stood](likely_header).
    ///
    /// # Errors
    ///
    /// There is nothing to repair, or not in this way: see [`Refused`].
    pub fn plan(
        survey: &Survey,
        sequence: ObjectSeq,
        bytes: &Bytes,
        place: &Place,
    ) -> Result<Repair, Refused> {
        let surveyed = survey.objects.iter().find(|object| object.sequence == sequence);
        let surveyed = surveyed.ok_or(Refused::NotThere(sequence))?;
        if surveyed.problems.is_empty() && Object::problems(bytes, sequence).is_empty() {
            return Err(Refused::Sound(sequence));
        }
        let salvage = Salvage::of(sequence, bytes);
        let likely = salvage.header.unwrap_or_else(|| likely_header(survey, sequence));

        let mut before = History::of(survey);
        before.put(sequence, Held::all(&salvage, likely));
        let mut after = History::of(survey);
        let replacements = match place {
            Place::Cut(record) => after.cut(survey, sequence, record)?,
            Place::Kept | Place::Named(_) => {
                let header = match (place, salvage.header) {
                    (Place::Named(named), _) => judged(sequence, *named)?,
                    (_, Some(header)) => header,
                    (_, None) => return Err(Refused::HeaderLost { sequence, likely }),
                };
                Vec::from([after.mend(survey, &salvage, header)?])
            }
        };
        let (selection, still_lost) = after.select(sequence)?;
        let tip_after = selection.tip;
        let will_be = after.live(&selection);
        let selected = match before.select(sequence) {
            Ok((selected, _)) => selected,
            // Nothing was complete, not even with the guess: what is named makes it so.
            Err(_) => {
                if let Some(header) = after.0.get(&sequence).map(|held| held.header) {
                    before.put(sequence, Held::all(&salvage, header));
                }
                before.select(sequence)?.0
            }
        };
        let is = before.live(&selected);
        let stays: BTreeSet<_> = selection.chain.iter().copied().collect();
        let was = |object: &ObjectSeq| selected.chain.binary_search(object).is_ok();
        let leaves_history: Vec<_> =
            selected.chain.iter().copied().filter(|object| !stays.contains(object)).collect();
        let has_no_table = |object: &&ObjectSeq| survey_table_is_lost(survey, **object);
        let mut unknown: BTreeSet<_> =
            leaves_history.iter().filter(has_no_table).copied().collect();
        if was(&sequence) && !salvage.is_table_sound {
            unknown.insert(sequence);
        }
        Ok(Repair {
            gives_up: missing(&is, &will_be),
            brings_back: missing(&will_be, &is),
            remains: will_be.into_values().collect(),
            unknown: unknown.into_iter().collect(),
            loses_releases: was(&sequence) && salvage.loses_releases(),
            tip_before: Some(selected.tip),
            tip_after,
            leaves_history,
            still_lost,
            replacements,
        })
    }
}

/// What the header of the object at `sequence` probably said, from what the others say: the epoch
/// by which a later object names it, and the last object before it that is no claim. It is a guess,
/// since that one may be an orphan, for an operator to judge.
pub fn likely_header(survey: &Survey, sequence: ObjectSeq) -> Header {
    let headers = || survey.objects.iter().filter_map(|object| object.header);
    let age = |header: &Header| (header.epoch, header.sequence);
    let named = named_epoch(survey, sequence);
    let is_before = |header: &Header| {
        header.sequence < sequence
            && !header.links_to_itself()
            && named.is_none_or(|epoch| header.epoch <= epoch)
    };
    let before = headers().filter(is_before).max_by_key(age);
    likely_behind(survey, sequence, before.map(|header| header.link()))
}

/// What the header of the object at `sequence` probably said if it named this predecessor: the epoch
/// by which a later object names it, else that of the predecessor, and the lowest boundary that it
/// can have carried.
pub fn likely_behind(survey: &Survey, sequence: ObjectSeq, predecessor: Option<Link>) -> Header {
    let is_it = |header: &Header| Some(header.link()) == predecessor;
    let before = survey.objects.iter().filter_map(|object| object.header).find(is_it);
    let epoch = named_epoch(survey, sequence).or(predecessor.map(|link| link.epoch));
    Header {
        sequence,
        epoch: epoch.unwrap_or(Epoch::claimed_at(sequence)),
        predecessor,
        boundary: before.map_or(ObjectSeq::ZERO, |header| whole(survey, header)),
    }
}

/// The epoch by which the latest of the objects that name this one does.
fn named_epoch(survey: &Survey, sequence: ObjectSeq) -> Option<Epoch> {
    let names_it = |header: Header| {
        let link = header.predecessor.filter(|_| header.sequence > sequence)?;
        (link.sequence == sequence).then_some(((header.epoch, header.sequence), link.epoch))
    };
    let headers = survey.objects.iter().filter_map(|object| object.header);
    headers.filter_map(names_it).max().map(|(_, epoch)| epoch)
}

/// The lowest boundary that an object behind this one can carry and be complete: what is not there
/// any more was collected.
fn whole(survey: &Survey, last: Header) -> ObjectSeq {
    let headers: BTreeMap<_, _> = survey
        .objects
        .iter()
        .filter_map(|object| Some((object.sequence, object.header?)))
        .collect();
    let mut at = last;
    while let Some(link) = at.predecessor {
        match headers.get(&link.sequence) {
            Some(header) if header.link() == link && link.sequence < at.sequence => at = *header,
            _ => return last.boundary.max(link.sequence.next()).min(last.sequence),
        }
    }
    last.boundary
}

fn judged(sequence: ObjectSeq, named: Header) -> Result<Header, Refused> {
    let follows = |link: Link| link.sequence < sequence && link.epoch <= named.epoch;
    let possible = named.sequence == sequence
        && named.boundary <= sequence
        && named.predecessor.is_none_or(follows);
    if possible { Ok(named) } else { Err(Refused::Impossible { sequence, named }) }
}

fn survey_table_is_lost(survey: &Survey, sequence: ObjectSeq) -> bool {
    let place = survey.objects.binary_search_by_key(&sequence, |object| object.sequence);
    let object = place.ok().and_then(|place| survey.objects.get(place));
    object.is_some_and(|object| object.segments.is_none())
}

/// An object as a history sees it.
#[derive(Clone)]
struct Held {
    header: Header,
    size: u64,
    segments: Vec<SegmentMeta>,
    releases: Vec<ReleaseRecord>,
    max_in_flight: Option<u16>,
}

impl Held {
    fn surveyed(object: &SurveyedObject) -> Option<Held> {
        Some(Held {
            header: object.header?,
            size: object.size,
            segments: object.segments.clone().unwrap_or_default(),
            releases: object.releases.clone(),
            max_in_flight: object.writer.as_ref().map(|writer| writer.max_in_flight),
        })
    }

    /// All that the damaged object is known to hold, be it damaged or not.
    fn all(salvage: &Salvage, header: Header) -> Held {
        let kept = salvage.segments.iter().map(|(meta, _)| *meta);
        let mut segments: Vec<_> = kept.chain(salvage.damaged.iter().copied()).collect();
        segments.sort_unstable_by_key(|meta| meta.region);
        Held { segments, ..Held::kept(salvage, header) }
    }

    /// What of the damaged object verifies.
    fn kept(salvage: &Salvage, header: Header) -> Held {
        let sequence = header.sequence;
        let reserved = |region| {
            let found = salvage.segments.iter().find(|(meta, _)| meta.region == region);
            found.map(|(_, entries)| entries.as_slice())
        };
        let releases = reserved(RegionId::RELEASES).map(|e| decode_releases(e, sequence));
        let writer = reserved(RegionId::WRITER).map(|e| WriterRecord::decode(e, sequence));
        Held {
            header,
            size: 0,
            segments: salvage.segments.iter().map(|(meta, _)| *meta).collect(),
            releases: releases.and_then(Result::ok).unwrap_or_default(),
            max_in_flight: writer.and_then(Result::ok).map(|writer| writer.max_in_flight),
        }
    }
}

/// The objects of which some selection makes history.
struct History(BTreeMap<ObjectSeq, Held>);

impl History {
    fn of(survey: &Survey) -> History {
        let held = |object: &SurveyedObject| Some((object.sequence, Held::surveyed(object)?));
        History(survey.objects.iter().filter_map(held).collect())
    }

    fn put(&mut self, sequence: ObjectSeq, held: Held) {
        self.0.insert(sequence, held);
    }

    fn present(&self) -> BTreeMap<ObjectSeq, Present> {
        let present =
            |held: &Held| Present { header: held.header, max_in_flight: held.max_in_flight };
        self.0.iter().map(|(sequence, held)| (*sequence, present(held))).collect()
    }

    fn select(&self, repaired: ObjectSeq) -> Result<(Selection, Vec<LostHistory>), Refused> {
        chain::select_and_prove(&self.present()).map_err(|_| Refused::NothingRemains(repaired))
    }

    /// Indexes what is selected; a segment whose ids do not ascend is left out, and told.
    fn catalog(&self, selection: &Selection) -> (Catalog, Vec<(ObjectSeq, RegionId)>) {
        let mut refused = Vec::new();
        let boundary = self.0.get(&selection.tip.sequence).map(|tip| tip.header.boundary);
        let mut catalog = Catalog::new(boundary.unwrap_or_default());
        let held = || selection.chain.iter().filter_map(|sequence| self.0.get(sequence));
        for Held { header, size, segments, .. } in held() {
            let mut segments = segments.clone();
            while let Err(error) = catalog.index(header.link(), *size, &segments) {
                let Part::Segment(region) = error.part else { break };
                segments.retain(|meta| meta.region != region);
                refused.push((header.sequence, region));
            }
        }
        for Held { header, releases, .. } in held() {
            catalog.apply_releases(header.sequence, releases);
        }
        (catalog, refused)
    }

    /// What readers see of a selection, by region and largest id: no two segments share both.
    fn live(&self, selection: &Selection) -> BTreeMap<(RegionId, EntryId), Span> {
        let (catalog, _) = self.catalog(selection);
        let regions: Vec<_> = catalog.regions().map(|info| (info.region, info.watermark)).collect();
        let mut live = BTreeMap::new();
        for (region, watermark) in regions {
            for segment in catalog.segments_from(region, watermark.next()) {
                let meta = segment.meta;
                let span = Span {
                    region,
                    min_id: meta.min_id.max(watermark.next()),
                    max_id: meta.max_id,
                    entries: meta.count,
                    object: segment.object.sequence,
                };
                live.insert((region, meta.max_id), span);
            }
        }
        live
    }

    /// Puts an object of what verifies in the place of the damaged one. Segments whose ids do not
    /// ascend along the chain would fail an opening, too.
    fn mend(
        &mut self,
        survey: &Survey,
        salvage: &Salvage,
        header: Header,
    ) -> Result<Replacement, Refused> {
        let sequence = header.sequence;
        self.put(sequence, Held::kept(salvage, header));
        let (selection, _) = self.select(sequence)?;
        let (_, refused) = self.catalog(&selection);
        let fits = |meta: &SegmentMeta| !refused.contains(&(sequence, meta.region));
        let kept = salvage.segments.iter().filter(|(meta, _)| fits(meta));
        let kept = kept.map(|(meta, entries)| (meta.region, entries.as_slice()));
        let replacement = replacement(survey, header, kept);
        let held = Held {
            segments: replacement.segments.clone(),
            size: replacement.object.len(),
            ..Held::kept(salvage, header)
        };
        self.put(sequence, held);
        Ok(replacement)
    }

    /// Puts a claim in the place of the damaged object. If the objects that stand above the new tip
    /// prove then that history went on, claims take their places, too.
    fn cut(
        &mut self,
        survey: &Survey,
        sequence: ObjectSeq,
        record: &WriterRecord,
    ) -> Result<Vec<Replacement>, Refused> {
        let mut replaced = BTreeMap::new();
        let mut wanted = BTreeSet::from([sequence]);
        while !wanted.is_empty() {
            for sequence in core::mem::take(&mut wanted) {
                let claim = claim(survey, sequence, record);
                let held = Held {
                    header: claim.header,
                    size: claim.object.len(),
                    segments: claim.segments.clone(),
                    releases: Vec::new(),
                    max_in_flight: Some(record.max_in_flight),
                };
                self.put(sequence, held);
                replaced.insert(sequence, claim);
            }
            let (selection, lost) = self.select(sequence)?;
            if lost.is_empty() {
                break;
            }
            let tip = (selection.tip.epoch, selection.tip.sequence);
            let above = self.0.values().map(|held| held.header).filter(|header| {
                (header.epoch, header.sequence) > tip && !header.links_to_itself()
            });
            wanted.extend(above.map(|header| header.sequence));
            wanted.extend(lost.iter().map(|lost| lost.because.sequence));
            wanted.retain(|sequence| !replaced.contains_key(sequence));
        }
        let damaged = replaced.remove(&sequence);
        Ok(replaced.into_values().rev().chain(damaged).collect())
    }
}

fn claim(survey: &Survey, sequence: ObjectSeq, record: &WriterRecord) -> Replacement {
    let itself = Link { sequence, epoch: Epoch::claimed_at(sequence) };
    let header = Header {
        sequence,
        epoch: itself.epoch,
        predecessor: Some(itself),
        boundary: ObjectSeq::ZERO,
    };
    let id = EntryId::new(sequence, 1).unwrap_or(EntryId::ZERO);
    let entry = Entry { id, payload: record.encode() };
    replacement(survey, header, [(RegionId::WRITER, core::slice::from_ref(&entry))])
}

fn replacement<'a>(
    survey: &Survey,
    header: Header,
    segments: impl IntoIterator<Item = (RegionId, &'a [Entry])>,
) -> Replacement {
    let mut object = ObjectEncoder::new();
    for (region, entries) in segments {
        entries.iter().for_each(|entry| object.push(region, entry.id, &entry.payload));
    }
    let (object, segments) = object.finish(&header);
    let sequence = header.sequence;
    Replacement { sequence, key: survey.prefix.object_key(sequence), header, segments, object }
}

fn missing(
    from: &BTreeMap<(RegionId, EntryId), Span>,
    there: &BTreeMap<(RegionId, EntryId), Span>,
) -> Vec<Span> {
    let gone = from.iter().filter_map(|(place, span)| match there.get(place) {
        None => Some(*span),
        // A part of it is hidden there by a release.
        Some(other) if other.min_id > span.min_id => {
            Some(Span { max_id: EntryId(other.min_id.0 - 1), ..*span })
        }
        Some(_) => None,
    });
    gone.collect()
}
