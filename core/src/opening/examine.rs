//! Fetching the header and the table of every listed object, and verifying them (DESIGN.md
//! section 4, steps 1 and 2).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use super::requests::{Purpose, Request, Requests};
use crate::error::{DecodeError, Error, Part};
use crate::format::{
    HEADER_LEN, Header, MIN_OBJECT_LEN, SegmentMeta, TAIL_WINDOW, Trailer, WriterRecord,
    decode_footer, decode_segment,
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
    /// The lowest object that does not verify. Those above it need not be begun: they cannot
    /// change what the opening fails with.
    failed: Option<(ObjectSeq, DecodeError)>,
}

/// What all the objects of a listing turned out to be.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// All that was listed, be it there or gone.
    pub(super) listed: BTreeSet<ObjectSeq>,
    /// What is there.
    pub(super) objects: BTreeMap<ObjectSeq, Examined>,
    /// What was listed and is gone.
    pub(super) gone: BTreeSet<ObjectSeq>,
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
}

/// An object whose pieces are under way.
#[derive(Clone, Debug, Default)]
struct Running {
    /// It did not verify once; the download may have been damaged.
    again: bool,
    /// How many pieces are asked for. The object is judged when all are answered, so that no
    /// answer comes for an object that is done with.
    awaited: u32,
    gone: bool,
    head: Bytes,
    /// The object's last bytes.
    tail: Bytes,
    footer: Option<Bytes>,
}

enum Judged {
    Verified(Examined),
    FooterWanted(Range<u64>),
}

impl Examination {
    /// Of what is listed, with its sizes. Objects never change, so what is `known` from an earlier
    /// listing is not read again.
    pub(super) fn new(
        listed: BTreeMap<ObjectSeq, u64>,
        mut known: BTreeMap<ObjectSeq, Examined>,
    ) -> Examination {
        known.retain(|sequence, object| listed.get(sequence) == Some(&object.size));
        Examination { listed, objects: known, ..Examination::default() }
    }

    /// Begins objects while there is room.
    pub(super) fn begin_more(&mut self, prefix: &Prefix, requests: &mut Requests) {
        while self.failed.is_none() && requests.has_room() {
            let Some((&sequence, &size)) = self.listed.range(self.cursor..).next() else {
                return;
            };
            self.cursor = sequence.next();
            if self.objects.contains_key(&sequence) {
                continue;
            }
            if size < MIN_OBJECT_LEN {
                let reason = format!("expected at least {MIN_OBJECT_LEN} bytes, found {size}");
                self.fail(sequence, DecodeError::new(Part::Object, reason));
            } else {
                let running = begin(prefix, sequence, size, |request| requests.push(request));
                self.running.insert(sequence, running);
            }
        }
    }

    /// Whether all that must be examined is, once what can begin has begun.
    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty()
    }

    /// Takes a piece; without bytes the object is gone.
    pub(super) fn fetched(
        &mut self,
        prefix: &Prefix,
        requests: &mut Requests,
        sequence: ObjectSeq,
        piece: Piece,
        bytes: Option<Bytes>,
    ) {
        let (Some(running), Some(&size)) =
            (self.running.get_mut(&sequence), self.listed.get(&sequence))
        else {
            return;
        };
        running.take(piece, bytes);
        if running.awaited > 0 {
            return;
        }
        if running.gone {
            self.running.remove(&sequence);
            self.gone.insert(sequence);
            return;
        }
        match running.judge(sequence, size) {
            Ok(Judged::Verified(object)) => {
                self.running.remove(&sequence);
                self.objects.insert(sequence, object);
            }
            Ok(Judged::FooterWanted(range)) => {
                running.awaited += 1;
                let purpose = Purpose::Piece(sequence, Piece::Footer);
                requests.push_first(Request::fetch(purpose, prefix.object_key(sequence), range));
            }
            Err(_) if !running.again => {
                *running = begin(prefix, sequence, size, |request| requests.push_first(request));
                running.again = true;
            }
            Err(error) => {
                self.running.remove(&sequence);
                self.fail(sequence, error);
            }
        }
    }

    fn fail(&mut self, sequence: ObjectSeq, error: DecodeError) {
        if self.failed.as_ref().is_none_or(|(lowest, _)| sequence < *lowest) {
            self.failed = Some((sequence, error));
        }
    }

    /// What was found, or what the lowest object that does not verify is to be failed with.
    pub(super) fn finish(self, prefix: &Prefix) -> Result<Found, Error> {
        if let Some((sequence, error)) = self.failed {
            return Err(Error::corrupted(prefix.object_key(sequence), error));
        }
        Ok(Found {
            listed: self.listed.into_keys().collect(),
            objects: self.objects,
            gone: self.gone,
        })
    }
}

/// Verifies an object that is held whole.
pub(super) fn examine_whole(sequence: ObjectSeq, bytes: Bytes) -> Result<Examined, DecodeError> {
    let size = bytes.len() as u64;
    let running = Running { head: bytes.clone(), tail: bytes, ..Running::default() };
    match running.judge(sequence, size)? {
        Judged::Verified(object) => Ok(object),
        // Never of a whole object: its footer is in it.
        Judged::FooterWanted(range) => {
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
    fn take(&mut self, piece: Piece, bytes: Option<Bytes>) {
        self.awaited = self.awaited.saturating_sub(1);
        let Some(bytes) = bytes else {
            self.gone = true;
            return;
        };
        match piece {
            Piece::Whole => (self.head, self.tail) = (bytes.clone(), bytes),
            Piece::Header => self.head = bytes,
            Piece::Tail => self.tail = bytes,
            Piece::Footer => self.footer = Some(bytes),
        }
    }

    /// Verifies the object's structure.
    fn judge(&self, sequence: ObjectSeq, size: u64) -> Result<Judged, DecodeError> {
        let header = Header::decode(&self.head)?;
        if header.sequence != sequence {
            let found = header.sequence;
            let reason = format!("expected sequence {sequence}, as the key says, found {found}");
            return Err(DecodeError::new(Part::Header, reason));
        }
        let trailer = Trailer::decode(&self.tail, size)?;
        let footer = match (&self.footer, self.held(trailer.footer_range(), size)) {
            (Some(fetched), _) => fetched.clone(),
            (None, Some(held)) => held,
            (None, None) => return Ok(Judged::FooterWanted(trailer.footer_range())),
        };
        let segments = decode_footer(&footer, &trailer)?;
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
