//! Fetching the header and the table of every listed object, and verifying them (DESIGN.md
//! section 4, steps 1 and 2).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use super::parts::{SegmentParts, part_of};
use super::requests::{Body, Purpose, Request, Requests};
use crate::error::{DecodeError, Error, Part};
use crate::format::{
    FooterParts, HEADER_LEN, Header, MIN_OBJECT_LEN, SegmentMeta, TAIL_WINDOW, Trailer,
    WriterRecord, decode_footer, decode_segment,
};
use crate::key::Prefix;
use crate::types::{ObjectSeq, RegionId};

/// The examination of what one listing shows. Objects are begun in the order of their sequences,
/// as there is room for requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Examination {
    /// Every listed object, with its size.
    listed: BTreeMap<ObjectSeq, u64>,
    /// Objects from here on are not begun.
    cursor: ObjectSeq,
    running: BTreeMap<ObjectSeq, Running>,
    objects: BTreeMap<ObjectSeq, Examined>,
    gone: BTreeSet<ObjectSeq>,
    /// What does not verify. Objects above it need not be begun: they cannot change what the
    /// opening fails with.
    damaged: BTreeMap<ObjectSeq, Damaged>,
    /// What is of a later version of the format.
    later: BTreeMap<ObjectSeq, u16>,
    /// Every object is examined, whatever others turned out to be, and its release records and its
    /// writer record too: a survey.
    thorough: bool,
}

/// What all the objects of a listing turned out to be.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// All that was listed, be it there or gone, with its size.
    pub(super) listed: BTreeMap<ObjectSeq, u64>,
    /// What is there.
    pub(super) objects: BTreeMap<ObjectSeq, Examined>,
    /// What was listed and is gone.
    pub(super) gone: BTreeSet<ObjectSeq>,
    /// What is there and does not verify.
    pub(super) damaged: BTreeMap<ObjectSeq, Damaged>,
    /// What is of a later version of the format, which is no damage, with that version.
    pub(super) later: BTreeMap<ObjectSeq, u16>,
}

/// A verified object. The buffers that were fetched are not kept: a prefix of many objects would
/// pin 64 KiB for each.
#[derive(Clone, Debug)]
pub(super) struct Examined {
    pub(super) header: Header,
    pub(super) size: u64,
    pub(super) segments: Vec<SegmentMeta>,
    /// The segment of release records, if there is one and it came with the rest.
    pub(super) releases: Option<Bytes>,
    /// The writer record, if there is one, it came with the rest, and it decodes.
    pub(super) writer: Option<Box<WriterRecord>>,
}

/// An object that does not verify. Only a survey asks what of it does.
#[derive(Clone, Debug, Default)]
pub(super) struct Damaged {
    pub(super) header: Option<Header>,
    pub(super) segments: Option<Vec<SegmentMeta>>,
    pub(super) releases: Option<Bytes>,
    pub(super) writer: Option<Box<WriterRecord>>,
    /// At least one.
    pub(super) problems: Vec<DecodeError>,
}

impl From<DecodeError> for Damaged {
    fn from(error: DecodeError) -> Damaged {
        Damaged { problems: Vec::from([error]), ..Damaged::default() }
    }
}

/// A range of an object that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A small object.
    Whole,
    /// The header of a larger one,
    Header,
    /// its last bytes,
    Tail,
    /// and its footer, if that begins before those.
    Footer,
    /// For a survey: the segment of a reserved region, if it begins before those.
    Reserved(RegionId),
}

/// An object whose pieces are under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    /// It did not verify once; the download may have been damaged.
    again: bool,
    /// How many pieces are asked for. The object is judged when all are answered, so that no
    /// answer comes for an object that is done with.
    awaited: u32,
    gone: bool,
    /// What came was not as long as what was asked for.
    misfit: Option<DecodeError>,
    head: Bytes,
    /// The object's last bytes.
    tail: Bytes,
    footer: Footer,
    reserved: BTreeMap<RegionId, Reserved>,
}

/// A footer that begins before the object's last bytes.
#[derive(Clone, Debug, Default)]
enum Footer {
    #[default]
    Unread,
    Reading {
        parts: Box<FooterParts>,
        rest: Range<u64>,
    },
    Read(Result<Vec<SegmentMeta>, DecodeError>),
}

/// A segment of a reserved region that begins before the object's last bytes.
#[derive(Clone, Debug)]
enum Reserved {
    Reading(Box<SegmentParts>),
    Read(Result<Bytes, DecodeError>),
}

pub(super) enum Judged {
    Verified(Examined),
    Wanted(Piece, Range<u64>),
}

/// The table of segments, as far as it is at hand.
pub(super) enum Table {
    Held(Vec<SegmentMeta>),
    Wanted(Range<u64>),
}

impl Examination {
    /// Of what is listed, with its sizes. Objects never change, so what is `known` of some of them
    /// from an earlier listing is not read again.
    pub(super) fn new(
        listed: BTreeMap<ObjectSeq, u64>,
        known: BTreeMap<ObjectSeq, Examined>,
    ) -> Examination {
        Examination { listed, objects: known, ..Examination::default() }
    }

    /// For a survey, which wants to know everything.
    pub(super) fn thorough(self) -> Examination {
        Examination { thorough: true, ..self }
    }

    /// Begins objects while there is room.
    pub(super) fn begin_more(&mut self, prefix: &Prefix, requests: &mut Requests) {
        while (self.thorough || self.damaged.is_empty()) && requests.has_room() {
            let Some((&sequence, &size)) = self.listed.range(self.cursor..).next() else {
                return;
            };
            self.cursor = sequence.next();
            if self.objects.contains_key(&sequence) {
                continue;
            }
            if size < MIN_OBJECT_LEN {
                let reason = format!("expected at least {MIN_OBJECT_LEN} bytes, found {size}");
                self.damaged.insert(sequence, DecodeError::new(Part::Object, reason).into());
            } else {
                let running = begin(prefix, sequence, size, |request| requests.push(request));
                self.running.insert(sequence, running);
            }
        }
    }

    /// What is there at this sequence, if it verifies.
    pub(super) fn object(&self, sequence: ObjectSeq) -> Option<&Examined> {
        self.objects.get(&sequence)
    }

    /// Whether all that must be examined is, once what can begin has begun.
    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes a piece.
    pub(super) fn fetched(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        piece: Piece,
        body: Body,
    ) {
        let (Some(running), Some(&size)) =
            (self.running.get_mut(&sequence), self.listed.get(&sequence))
        else {
            return;
        };
        running.take(piece, body);
        if running.awaited > 0 {
            return;
        }
        if running.gone {
            self.running.remove(&sequence);
            self.gone.insert(sequence);
            return;
        }
        if let Some(version) = Header::later_version(&running.head) {
            self.running.remove(&sequence);
            self.later.insert(sequence, version);
            return;
        }
        let judged = match running.misfit.take() {
            Some(misfit) => Err(Box::new(misfit.into())),
            None if self.thorough => running.judge_thoroughly(sequence, size),
            None => running.judge(sequence, size).map_err(|error| Box::new(error.into())),
        };
        match judged {
            Ok(Judged::Verified(object)) => {
                self.running.remove(&sequence);
                self.objects.insert(sequence, object);
            }
            Ok(Judged::Wanted(piece, range)) => {
                running.awaited += 1;
                let purpose = Purpose::Piece(sequence, piece);
                requests.push_first(Request::fetch(purpose, prefix.object_key(sequence), range));
            }
            Err(_) if !running.again => {
                *running = begin(prefix, sequence, size, |request| requests.push_first(request));
                running.again = true;
            }
            Err(damaged) => {
                self.running.remove(&sequence);
                self.damaged.insert(sequence, *damaged);
            }
        }
    }

    /// What was found.
    pub(super) fn finish(self) -> Found {
        let Examination { listed, objects, gone, damaged, later, .. } = self;
        Found { listed, objects, gone, damaged, later }
    }
}

impl Found {
    /// What the opening is to be failed with because of an object of a later version.
    pub(super) fn later_version(&self, prefix: &Prefix) -> Option<Error> {
        let (sequence, version) = self.later.first_key_value()?;
        Some(Error::NewerFormat { key: prefix.object_key(*sequence), version: *version })
    }

    /// What the opening is to be failed with because of the lowest object that does not verify.
    pub(super) fn damage(&self, prefix: &Prefix) -> Option<Error> {
        let (sequence, damaged) = self.damaged.first_key_value()?;
        let error = damaged.problems.first()?.clone();
        Some(Error::corrupted(prefix.object_key(*sequence), error))
    }
}

/// Verifies an object that is held whole.
pub(super) fn examine_whole(sequence: ObjectSeq, bytes: Bytes) -> Result<Examined, DecodeError> {
    let size = bytes.len() as u64;
    let mut running = Running { head: bytes.clone(), tail: bytes, ..Running::default() };
    match running.judge(sequence, size)? {
        Judged::Verified(object) => Ok(object),
        // Never of a whole object: its footer is in it.
        Judged::Wanted(_, range) => {
            let reason = format!("expected it within the object, found it at {}", range.start);
            Err(DecodeError::new(Part::Footer, reason))
        }
    }
}

/// Asks for the pieces of an object that are wanted at once.
fn begin(prefix: &Prefix, sequence: ObjectSeq, size: u64, mut ask: impl FnMut(Request)) -> Running {
    let mut running = Running::default();
    let mut want = |piece, range: Range<u64>| {
        running.awaited += 1;
        let purpose = Purpose::Piece(sequence, piece);
        ask(Request::fetch(purpose, prefix.object_key(sequence), range));
    };
    if size <= TAIL_WINDOW {
        want(Piece::Whole, 0..size);
    } else {
        want(Piece::Header, 0..HEADER_LEN as u64);
        want(Piece::Tail, size - TAIL_WINDOW..size);
    }
    running
}

impl Running {
    fn take(&mut self, piece: Piece, body: Body) {
        self.awaited = self.awaited.saturating_sub(1);
        let bytes = match body {
            Body::Bytes(bytes) => bytes,
            Body::Gone => {
                self.gone = true;
                return;
            }
            Body::Misfit(misfit) => {
                self.misfit.get_or_insert(misfit);
                return;
            }
        };
        match piece {
            Piece::Whole => (self.head, self.tail) = (bytes.clone(), bytes),
            Piece::Header => self.head = bytes,
            Piece::Tail => self.tail = bytes,
            Piece::Footer => self.footer.take(&bytes),
            Piece::Reserved(region) => {
                if let Some(reserved) = self.reserved.get_mut(&region) {
                    reserved.take(bytes);
                }
            }
        }
    }

    /// Verifies the object's structure.
    fn judge(&mut self, sequence: ObjectSeq, size: u64) -> Result<Judged, DecodeError> {
        let header = self.header(sequence)?;
        let segments = match self.table(size)? {
            Table::Held(segments) => segments,
            Table::Wanted(range) => return Ok(Judged::Wanted(Piece::Footer, range)),
        };
        let segment = |region| segments.iter().find(|meta| meta.region == region);
        let held = |meta: &SegmentMeta| self.held(meta.range(), size);
        let releases = segment(RegionId::RELEASES).and_then(held);
        let writer = segment(RegionId::WRITER).and_then(|meta| {
            let entries = decode_segment(&held(meta)?, meta).ok()?;
            WriterRecord::decode(&entries, sequence).ok().map(Box::new)
        });
        let releases = releases.map(|held| Bytes::copy_from_slice(&held));
        Ok(Judged::Verified(Examined { header, size, segments, releases, writer }))
    }

    pub(super) fn header(&self, sequence: ObjectSeq) -> Result<Header, DecodeError> {
        Header::decode(&self.head)?.at(sequence)
    }

    pub(super) fn table(&mut self, size: u64) -> Result<Table, DecodeError> {
        match &self.footer {
            Footer::Unread => {}
            Footer::Reading { rest, .. } => return Ok(Table::Wanted(part_of(rest.clone()))),
            Footer::Read(result) => return result.clone().map(Table::Held),
        }
        let trailer = Trailer::decode(&self.tail, size)?;
        let range = trailer.footer_range();
        if let Some(footer) = self.held(range.clone(), size) {
            return decode_footer(&footer, &trailer).map(Table::Held);
        }
        let parts = Box::new(FooterParts::new(&trailer));
        self.footer = Footer::Reading { parts, rest: range.clone() };
        Ok(Table::Wanted(part_of(range)))
    }

    /// The segment of a reserved region if it is at hand, else the part of it that is to be read.
    pub(super) fn reserved(
        &mut self,
        meta: &SegmentMeta,
        size: u64,
    ) -> Result<Result<Bytes, DecodeError>, Range<u64>> {
        if let Some(held) = self.held(meta.range(), size) {
            return Ok(Ok(held));
        }
        let begin = || Reserved::Reading(Box::new(SegmentParts::new(*meta)));
        match self.reserved.entry(meta.region).or_insert_with(begin) {
            Reserved::Reading(parts) => Err(parts.wanted()),
            Reserved::Read(result) => Ok(result.clone()),
        }
    }

    /// Bytes of the object that came with its tail.
    fn held(&self, range: Range<u64>, size: u64) -> Option<Bytes> {
        let window = size.checked_sub(self.tail.len() as u64)?;
        let from = range.start.checked_sub(window)?;
        let to = range.end.checked_sub(window)?;
        // A part of the tail, so its place fits.
        (from <= to && to <= self.tail.len() as u64)
            .then(|| self.tail.slice(from as usize..to as usize))
    }
}

impl Footer {
    fn take(&mut self, part: &Bytes) {
        let Footer::Reading { parts, rest } = self else { return };
        rest.start += part.len() as u64;
        match parts.push(part) {
            Err(error) => *self = Footer::Read(Err(error)),
            Ok(()) if rest.is_empty() => *self = Footer::Read(parts.clone().finish()),
            Ok(()) => {}
        }
    }
}

impl Reserved {
    fn take(&mut self, part: Bytes) {
        let Reserved::Reading(parts) = self else { return };
        if let Some(result) = parts.take(part).transpose() {
            *self = Reserved::Read(result);
        }
    }
}
