//! The way to a survey: every problem of everything that is there, instead of the first.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::aim::Steps;
use super::examine::{Damaged, Examination, Examined, Found};
use super::objects::{ObjectKind, ObjectStatus};
use super::recover::{Recovery, leaves_no_room};
use super::requests::Request;
use super::{Opening, OpeningEffect, Shown, unconfirmed};
use crate::catalog::Catalog;
use crate::chain::{self, LostHistory, Present, Selection};
use crate::error::{DecodeError, Error, Part};
use crate::event::StorageAnswer;
use crate::format::{
    Header, ReleaseRecord, SegmentMeta, WriterRecord, decode_releases, decode_segment,
};
use crate::key::{Key, Prefix};
use crate::options::Options;
use crate::types::{Epoch, Link, ObjectSeq, RegionId, Time};

/// What is stored at a prefix, and all that is wrong with it. Segments of entries are not read.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The log's prefix.
    pub prefix: Prefix,
    /// Every object that was listed, in the order of the sequences; but not one that a collection
    /// removed meanwhile.
    pub objects: Vec<SurveyedObject>,
    /// History among the objects whose header verifies, as it would be if nothing were lost;
    /// `None` if no object is complete.
    pub selection: Option<Selection>,
    /// Proofs that history went further than that, one of each kind.
    pub lost: Vec<LostHistory>,
    /// History as far as it verifies, with its release records applied: objects whose table is
    /// damaged are left out of it, and segments whose ids do not ascend.
    pub catalog: Catalog,
    /// Keys that look like those of objects, with a sequence that no object can have. They are
    /// ignored.
    pub ignored: Vec<Key>,
}

/// One object of a survey.
#[derive(Clone, Debug)]
pub struct SurveyedObject {
    /// The sequence in its key.
    pub sequence: ObjectSeq,
    /// Its key.
    pub key: Key,
    /// Its size in bytes.
    pub size: u64,
    /// When the store says it was written, in milliseconds since 1970.
    pub modified_millis: u64,
    /// What it says of itself, if that verifies.
    pub header: Option<Header>,
    /// Its table of segments, if that verifies.
    pub segments: Option<Vec<SegmentMeta>>,
    /// Its writer record, if it has one that decodes.
    pub writer: Option<WriterRecord>,
    /// Its release records; empty if it has none, or none that decode.
    pub releases: Vec<ReleaseRecord>,
    /// Where it stands. [`Survey::selection`] says also of an object with a damaged table where its
    /// header puts it.
    pub status: ObjectStatus,
    /// What is wrong with it.
    pub problems: Vec<DecodeError>,
}

/// What a survey keeps: what the last listing would have had reported, if the next one says the same.
/// Each is a key with which something is wrong, and what the listing said of it.
#[derive(Clone, Debug, Default)]
pub struct Surveying(Vec<Doubted>);

type Doubted = (Key, Option<Shown>);

/// Something that is wrong with what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Of which object. One that is lost has a key all the same.
    pub key: Key,
    /// The part, and the reason.
    pub error: DecodeError,
}

impl SurveyedObject {
    /// What it is for, if header and table verify.
    pub fn kind(&self) -> Option<ObjectKind> {
        Some(ObjectKind::of(self.header.as_ref()?, self.segments.as_ref()?))
    }
}

impl Survey {
    /// The last object of history.
    pub fn tip(&self) -> Option<Link> {
        self.selection.as_ref().map(|selection| selection.tip)
    }

    /// Everything that is wrong: of each object in order, then what is lost. What an opening fails
    /// with is among it; a writer record that does not decode is too, and fails no opening.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let of_object = |object: &SurveyedObject| {
            let key = object.key.clone();
            let problem = move |error: DecodeError| Problem { key: key.clone(), error };
            object.problems.clone().into_iter().map(problem)
        };
        let lost = self.lost.iter().map(|lost| lost_object(&self.prefix, lost));
        self.objects.iter().flat_map(of_object).chain(lost)
    }
}

impl Opening<Survey> {
    /// Begins a survey of what is stored at `prefix`. It puts nothing, and works beside a running
    /// writer. What is wrong with the objects does not make it fail; what does not fit together is
    /// looked at once more first, since a collection may be running (DESIGN.md section 12, rule 6).
    ///
    /// It costs one listing, or two, and one to three reads per object, one more for one with many
    /// release records, and as many again for one that is damaged.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`]: nothing is touched. It ends with [`Error::Store`] if the store
    /// cannot be listed or read, and with [`Error::Missing`] if `must_exist` is set and nothing is
    /// there.
    pub fn survey(now: Time, prefix: Prefix, options: Options) -> Result<Opening<Survey>, Error> {
        options.validate()?;
        Ok(Opening::begin(now, prefix, options, Surveying::default()))
    }
}

impl Steps for Survey {
    type Own = Surveying;

    /// What a listing in no order only misses because it came meanwhile, the next one shows, and nothing
    /// is a problem before two say the same. So a survey ends beside a writer at full speed.
    const TAKES_ANY_ORDER: bool = true;

    fn begin(examination: Examination) -> Examination {
        examination.thorough()
    }

    fn examined(opening: &mut Opening<Survey>, examination: Examination) {
        let found = examination.finish();
        if let Some(later) = found.later_version(&opening.prefix) {
            return opening.fail(later);
        }
        let survey = Survey::of(opening, &found);
        let doubts: Vec<_> = survey.doubts(&found).collect();
        opening.known = found.objects;
        let confirmed = &opening.own.0;
        let is_confirmed = |doubt: &Doubted| confirmed.contains(doubt);
        let shown = |problem: &Problem| (problem.key.clone(), opening.shown_at(&problem.key));
        let now: Vec<Doubted> = doubts.iter().map(shown).collect();
        let first = now.iter().position(|doubt| !is_confirmed(doubt));
        opening.own.0 = now;
        let Some(Problem { key, error }) = first.and_then(|first| doubts.into_iter().nth(first))
        else {
            return opening.end(OpeningEffect::Opened(Box::new(survey)));
        };
        let doubt = Error::corrupted(key, error);
        if !opening.may_start_again() {
            return opening.fail(unconfirmed(doubt));
        }
        opening.confirm(doubt, super::Doubt::Lacking);
    }

    /// It recovers by itself what can be.
    fn recovered(_: &mut Opening<Survey>, _: Recovery) {}

    /// It asks for nothing else.
    fn answered(_: &mut Opening<Survey>, _: Request, _: StorageAnswer) {}
}

impl Survey {
    fn of(opening: &Opening<Survey>, found: &Found) -> Survey {
        let prefix = opening.prefix.clone();
        let mut survey = Survey {
            objects: Vec::new(),
            selection: None,
            lost: Vec::new(),
            catalog: Catalog::new(ObjectSeq::ZERO),
            ignored: opening.ignored.iter().cloned().collect(),
            prefix,
        };
        for (sequence, size) in &found.listed {
            let mut object = SurveyedObject {
                sequence: *sequence,
                key: survey.prefix.object_key(*sequence),
                size: *size,
                modified_millis: opening
                    .shown
                    .get(sequence)
                    .map_or(0, |shown| shown.modified_millis),
                header: None,
                segments: None,
                writer: None,
                releases: Vec::new(),
                status: ObjectStatus::Damaged,
                problems: Vec::new(),
            };
            if let Some(sound) = found.objects.get(sequence) {
                object.take_sound(sound);
            } else if let Some(damaged) = found.damaged.get(sequence) {
                object.take_damaged(damaged);
            } else {
                object.problems.push(vanished());
            }
            survey.objects.push(object);
        }
        survey.select(&found.gone);
        survey.index();
        survey
    }

    /// What a listing that a collection ran into could show as well.
    fn doubts<'a>(&'a self, found: &'a Found) -> impl Iterator<Item = Problem> + 'a {
        let gone = self.objects.iter().filter(|object| found.gone.contains(&object.sequence));
        let gone = gone.map(|object| Problem { key: object.key.clone(), error: vanished() });
        let damaged = self.objects.iter().filter(|o| found.damaged.contains_key(&o.sequence));
        let damaged = damaged.filter_map(|object| {
            Some(Problem { key: object.key.clone(), error: object.problems.first()?.clone() })
        });
        gone.chain(damaged).chain(self.lost.iter().map(|lost| lost_object(&self.prefix, lost)))
    }

    fn select(&mut self, gone: &BTreeSet<ObjectSeq>) {
        let present: BTreeMap<_, _> = self.objects.iter().filter_map(present).collect();
        if present.is_empty() {
            return;
        }
        match chain::select_and_prove(&present) {
            Ok((selection, lost)) => (self.selection, self.lost) = (Some(selection), lost),
            Err(lost) => self.lost.push(lost),
        }
        let boundary = self.boundary();
        // Below it a collection may be running.
        self.objects
            .retain(|object| object.sequence >= boundary || !gone.contains(&object.sequence));
        let chain = self.selection.as_ref().map_or(&[][..], |selection| &selection.chain);
        for object in &mut self.objects {
            let verifies = object.header.is_some() && object.segments.is_some();
            object.status = if !verifies {
                ObjectStatus::Damaged
            } else if chain.binary_search(&object.sequence).is_ok() {
                ObjectStatus::Chain
            } else if object.sequence < boundary {
                ObjectStatus::BelowBoundary
            } else {
                ObjectStatus::Orphan
            };
        }
    }

    /// The boundary that the tip carries.
    fn boundary(&self) -> ObjectSeq {
        let header = |tip: Link| {
            let place = self.objects.binary_search_by_key(&tip.sequence, |object| object.sequence);
            self.objects.get(place.ok()?)?.header
        };
        self.tip().and_then(header).map_or(ObjectSeq::ZERO, |header| header.boundary)
    }

    /// Indexes what can be of history, and applies its release records.
    fn index(&mut self) {
        self.catalog.raise_boundary(self.boundary());
        for object in &mut self.objects {
            let (Some(header), Some(segments), ObjectStatus::Chain) =
                (&object.header, &object.segments, object.status)
            else {
                continue;
            };
            let mut segments = segments.clone();
            // Each refusal names one region.
            while let Err(error) = self.catalog.index(header.link(), object.size, &segments) {
                let before = segments.len();
                segments.retain(|meta| error.part != Part::Segment(meta.region));
                object.problems.push(error);
                if segments.len() == before {
                    break;
                }
            }
        }
        let on_chain = |object: &&SurveyedObject| object.status == ObjectStatus::Chain;
        for object in self.objects.iter().filter(on_chain) {
            self.catalog.apply_releases(object.sequence, &object.releases);
        }
    }
}

impl SurveyedObject {
    fn take_sound(&mut self, object: &Examined) {
        self.header = Some(object.header);
        self.segments = Some(object.segments.clone());
        self.problems.extend(cannot_be(&object.header, &object.segments));
        self.writer = object.writer.as_deref().cloned();
        self.take_releases(object.releases.as_ref());
    }

    fn take_damaged(&mut self, damaged: &Damaged) {
        self.header = damaged.header;
        self.segments = damaged.segments.clone();
        self.writer = damaged.writer.as_deref().cloned();
        self.problems = damaged.problems.clone();
        self.take_releases(damaged.releases.as_ref());
    }

    /// They decoded when the object was examined.
    fn take_releases(&mut self, bytes: Option<&bytes::Bytes>) {
        let is_releases = |meta: &&SegmentMeta| meta.region == RegionId::RELEASES;
        let meta = self.segments.iter().flatten().find(is_releases);
        if let (Some(bytes), Some(meta)) = (bytes, meta)
            && let Ok(entries) = decode_segment(bytes, meta)
        {
            self.releases = decode_releases(&entries, self.sequence).unwrap_or_default();
        }
    }
}

/// What an object says that none of a sound log can say, although it verifies.
fn cannot_be(header: &Header, segments: &[SegmentMeta]) -> Option<DecodeError> {
    if header.epoch > Epoch::claimed_at(header.sequence) {
        let (most, found) = (Epoch::claimed_at(header.sequence), header.epoch);
        let reason =
            format!("expected an epoch of at most {most}, its sequence + 1, found {found}");
        return Some(DecodeError::new(Part::Header, reason));
    }
    leaves_no_room(header, segments)
}

fn present(object: &SurveyedObject) -> Option<(ObjectSeq, Present)> {
    let max_in_flight = object.writer.as_ref().map(|writer| writer.max_in_flight);
    Some((object.sequence, Present { header: object.header?, max_in_flight }))
}

fn vanished() -> DecodeError {
    DecodeError::new(Part::Object, "expected what the listing shows, found nothing there")
}

fn lost_object(prefix: &Prefix, lost: &LostHistory) -> Problem {
    let error = DecodeError::new(Part::Object, lost.to_string());
    Problem { key: prefix.object_key(lost.missing), error }
}
