//! What of an object's bytes verifies, part by part.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::error::DecodeError;
use crate::format::{
    Entry, HEADER_LEN, Header, MIN_OBJECT_LEN, SEGMENT_ROW_LEN, SegmentMeta, TRAILER_LEN, Trailer,
    WriterRecord, decode_footer, decode_releases, decode_rows, decode_segment,
};
use crate::types::{ObjectSeq, RegionId};

/// How many places of a footer are tried where the trailer does not say.
const GUESSES: usize = 64;

/// What of an object verifies.
#[derive(Clone, Debug)]
pub struct Salvage {
    /// What it says of itself, if that verifies and fits its key.
    pub header: Option<Header>,
    /// The segments that verify, with what the table says of them, in the order of the table.
    pub segments: Vec<(SegmentMeta, Vec<Entry>)>,
    /// The segments that do not verify, by a table that does.
    pub damaged: Vec<SegmentMeta>,
    /// Whether the table verifies. Where it does not, the rows of it count that describe a segment
    /// that is there, its checksum included; what else the object held is not known.
    pub is_table_sound: bool,
}

impl Salvage {
    /// Looks through the bytes of the object at `sequence`. It costs a look at each byte.
    pub fn of(sequence: ObjectSeq, bytes: &Bytes) -> Salvage {
        let header = Header::decode(bytes).ok().filter(|header| header.sequence == sequence);
        let mut salvage =
            Salvage { header, segments: Vec::new(), damaged: Vec::new(), is_table_sound: false };
        match sound_table(bytes) {
            Ok(table) => {
                salvage.is_table_sound = true;
                for meta in table {
                    match verified(sequence, bytes, &meta) {
                        Some(entries) => salvage.segments.push((meta, entries)),
                        None => salvage.damaged.push(meta),
                    }
                }
            }
            Err(trailer) => salvage.segments = from_rows(sequence, bytes, trailer),
        }
        salvage
    }

    /// Whether release records were there and do not verify.
    pub(super) fn loses_releases(&self) -> bool {
        self.damaged.iter().any(|meta| meta.region == RegionId::RELEASES)
    }
}

fn sound_table(bytes: &Bytes) -> Result<Vec<SegmentMeta>, Option<Trailer>> {
    let trailer = Trailer::decode(bytes, bytes.len() as u64).map_err(|_: DecodeError| None)?;
    let footer = slice(bytes, trailer.footer_offset, trailer.footer_length);
    let table = footer.map(|footer| decode_footer(&footer, &trailer));
    table.and_then(Result::ok).ok_or(Some(trailer))
}

/// A segment that its row describes, and whose content decodes where it is Sealog's own.
fn verified(sequence: ObjectSeq, bytes: &Bytes, meta: &SegmentMeta) -> Option<Vec<Entry>> {
    let entries = decode_segment(&slice(bytes, meta.offset, meta.length)?, meta).ok()?;
    match meta.region {
        RegionId::RELEASES => decode_releases(&entries, sequence).ok().map(drop)?,
        RegionId::WRITER => WriterRecord::decode(&entries, sequence).ok().map(drop)?,
        _ => {}
    }
    Some(entries)
}

/// The segments that a damaged table still describes. Without a trailer that decodes, the table is
/// looked for by the number of rows that it begins with.
fn from_rows(
    sequence: ObjectSeq,
    bytes: &Bytes,
    trailer: Option<Trailer>,
) -> Vec<(SegmentMeta, Vec<Entry>)> {
    if (bytes.len() as u64) < MIN_OBJECT_LEN {
        return Vec::new();
    }
    let end = bytes.len() - TRAILER_LEN;
    let of_footer = |offset: usize| {
        // The count, and then the rows.
        let rows = decode_rows(bytes.get(offset + 4..end).unwrap_or_default());
        let ascending = |found: &[(SegmentMeta, _)], meta: &SegmentMeta| {
            let Some((last, _)) = found.last() else { return meta.offset >= HEADER_LEN as u64 };
            meta.region > last.region && meta.offset >= last.range().end
        };
        rows.fold(Vec::new(), |mut found, meta| {
            let fits = meta.range().end <= offset as u64 && ascending(&found, &meta);
            if let Some(entries) = fits.then(|| verified(sequence, bytes, &meta)).flatten() {
                found.push((meta, entries));
            }
            found
        })
    };
    if let Some(trailer) = trailer {
        return usize::try_from(trailer.footer_offset).map(of_footer).unwrap_or_default();
    }
    let offset = |rows: usize| end.checked_sub(4 + rows * SEGMENT_ROW_LEN);
    let says = |offset: usize, rows: usize| {
        let count = bytes.get(offset..offset + 4).and_then(|count| count.first_chunk::<4>());
        count.map(|count| u32::from_be_bytes(*count) as usize) == Some(rows)
    };
    (1..)
        .map_while(|rows| Some((rows, offset(rows).filter(|offset| *offset >= HEADER_LEN)?)))
        .filter(|(rows, offset)| says(*offset, *rows))
        .take(GUESSES)
        .map(|(_, offset)| of_footer(offset))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

fn slice(bytes: &Bytes, offset: u64, length: u64) -> Option<Bytes> {
    let end = offset.checked_add(length).filter(|end| *end <= bytes.len() as u64)?;
    Some(bytes.slice(usize::try_from(offset).ok()?..usize::try_from(end).ok()?))
}
