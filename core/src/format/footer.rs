//! The table of segments, and the trailer that leads to it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crc32fast::Hasher;

use super::segment::SEGMENT_HEADER_LEN;
use super::{HEADER_LEN, Reader};
use crate::error::{DecodeError, Part};
use crate::types::{EntryId, RegionId};

/// The length of a trailer in bytes.
pub const TRAILER_LEN: usize = 32;

/// The length of the number of segments, before the table.
pub(super) const COUNT_LEN: usize = 4;
/// The length of one row of the footer's table in bytes.
pub const ROW_LEN: usize = 48;

const MAGIC: [u8; 8] = *b"GTWALTRL";

/// One row of the footer: where a region's segment is, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentMeta {
    /// The region.
    pub region: RegionId,
    /// The smallest id in the segment.
    pub min_id: EntryId,
    /// The largest id in the segment.
    pub max_id: EntryId,
    /// How many entries it holds, at least one.
    pub count: u32,
    /// Where it begins in the object.
    pub offset: u64,
    /// How long it is in bytes.
    pub length: u64,
    /// The CRC32 of its bytes.
    pub crc: u32,
}

impl SegmentMeta {
    /// The segment's place in the object.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }

    pub(crate) fn encode(&self, out: &mut impl bytes::BufMut) {
        out.put_u64(self.region.0);
        out.put_u64(self.min_id.0);
        out.put_u64(self.max_id.0);
        out.put_u32(self.count);
        out.put_u64(self.offset);
        out.put_u64(self.length);
        out.put_u32(self.crc);
    }
}

/// The last 32 bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trailer {
    /// Where the footer begins; it ends where the trailer begins.
    pub footer_offset: u64,
    /// How long the footer is in bytes.
    pub footer_length: u64,
    /// The CRC32 of the footer.
    pub footer_crc: u32,
    /// The CRC32 of every byte before the trailer, then of the trailer without this field.
    pub object_crc: u32,
}

impl Trailer {
    /// The bytes before the object's checksum, and those after it.
    pub(super) fn checksummed(&self) -> ([u8; 20], [u8; 8]) {
        let mut head = [0; 20];
        head[0..8].copy_from_slice(&self.footer_offset.to_be_bytes());
        head[8..16].copy_from_slice(&self.footer_length.to_be_bytes());
        head[16..20].copy_from_slice(&self.footer_crc.to_be_bytes());
        (head, MAGIC)
    }

    pub(crate) fn encode(&self, out: &mut impl bytes::BufMut) {
        let (head, magic) = self.checksummed();
        out.put_slice(&head);
        out.put_u32(self.object_crc);
        out.put_slice(&magic);
    }

    /// Where the footer is in the object.
    pub fn footer_range(&self) -> Range<u64> {
        self.footer_offset..self.footer_offset.saturating_add(self.footer_length)
    }

    /// Decodes the last [`TRAILER_LEN`] bytes of an object of `object_size` bytes, and checks that
    /// the footer lies between header and trailer.
    ///
    /// # Errors
    ///
    /// [`Part::Object`] when the object is too short for one, [`Part::Trailer`] for the rest.
    pub fn decode(tail: &[u8], object_size: u64) -> Result<Trailer, DecodeError> {
        let refuse = |reason: String| DecodeError::new(Part::Trailer, reason);
        let short = |least: u64, found: u64| {
            let reason = format!("expected at least {least} bytes, found {found}");
            Err(DecodeError::new(Part::Object, reason))
        };
        if object_size < super::MIN_OBJECT_LEN {
            return short(super::MIN_OBJECT_LEN, object_size);
        }
        if tail.len() < TRAILER_LEN {
            return short(TRAILER_LEN as u64, tail.len() as u64);
        }
        let mut fields = Reader(&tail[tail.len() - TRAILER_LEN..]);
        let decoded = (|| {
            let trailer = Trailer {
                footer_offset: fields.u64()?,
                footer_length: fields.u64()?,
                footer_crc: fields.u32()?,
                object_crc: fields.u32()?,
            };
            Some((trailer, fields.array::<8>()?))
        })();
        let Some((trailer, magic)) = decoded else {
            return Err(refuse(format!("expected {TRAILER_LEN} bytes, found fewer")));
        };
        if magic != MAGIC {
            let found = magic.escape_ascii();
            return Err(refuse(format!("expected the magic GTWALTRL, found {found}")));
        }
        let (offset, length) = (trailer.footer_offset, trailer.footer_length);
        let end = object_size - TRAILER_LEN as u64;
        if offset.checked_add(length) != Some(end) {
            return Err(refuse(format!(
                "expected a footer that ends at {end}, found offset {offset} and length {length}"
            )));
        }
        if offset < HEADER_LEN as u64 {
            return Err(refuse(format!(
                "expected a footer behind the header's {HEADER_LEN} bytes, found offset {offset}"
            )));
        }
        if length < COUNT_LEN as u64 || !(length - COUNT_LEN as u64).is_multiple_of(ROW_LEN as u64)
        {
            return Err(refuse(format!(
                "expected a footer of {COUNT_LEN} bytes and {ROW_LEN} per segment, found {length}"
            )));
        }
        Ok(trailer)
    }
}

/// Decodes a footer, and checks that its segments tile the bytes between header and footer.
///
/// # Errors
///
/// [`Part::Footer`], with what was expected and found.
pub fn decode_footer(footer: &[u8], trailer: &Trailer) -> Result<Vec<SegmentMeta>, DecodeError> {
    let refuse = |reason: String| DecodeError::new(Part::Footer, reason);
    if footer.len() as u64 != trailer.footer_length {
        let (expected, found) = (trailer.footer_length, footer.len());
        return Err(refuse(format!("expected {expected} bytes, found {found}")));
    }
    let computed = crc32fast::hash(footer);
    if computed != trailer.footer_crc {
        let found = trailer.footer_crc;
        return Err(refuse(format!(
            "expected checksum {computed:08x} of its bytes, found {found:08x}"
        )));
    }
    let mut fields = Reader(footer);
    let count = fields.u32().ok_or_else(|| refuse("expected a count, found nothing".into()))?;
    let rows = fields.0.len() / ROW_LEN;
    if count as usize != rows || !fields.0.len().is_multiple_of(ROW_LEN) {
        let found = fields.0.len();
        return Err(refuse(format!(
            "expected {count} rows of {ROW_LEN} bytes, found {found} bytes"
        )));
    }
    let capacity = rows;
    let mut rows = Rows::new(trailer);
    rows.segments.reserve_exact(capacity);
    while !fields.is_empty() {
        let row = decode_row(&mut fields)
            .ok_or_else(|| refuse(format!("expected a row of {ROW_LEN} bytes, found fewer")))?;
        rows.push(row)?;
    }
    rows.finish()
}

/// The rows of a table, judged as they come: they tile the bytes between header and footer.
#[derive(Clone, Debug)]
struct Rows {
    segments: Vec<SegmentMeta>,
    /// Where the next segment begins.
    end: u64,
    footer_offset: u64,
}

impl Rows {
    fn new(trailer: &Trailer) -> Rows {
        let footer_offset = trailer.footer_offset;
        Rows { segments: Vec::new(), end: HEADER_LEN as u64, footer_offset }
    }

    fn push(&mut self, row: SegmentMeta) -> Result<(), DecodeError> {
        let refuse = |reason: String| Err(DecodeError::new(Part::Footer, reason));
        let (region, end) = (row.region, self.end);
        if self.segments.last().is_some_and(|last| last.region >= region) {
            return refuse(format!("expected ascending regions, found region {region} later"));
        }
        if row.count == 0 {
            return refuse(format!("expected entries in region {region}, found a count of 0"));
        }
        if row.min_id > row.max_id {
            let (min, max) = (row.min_id, row.max_id);
            return refuse(format!(
                "expected smallest <= largest id in region {region}, found {min} and {max}"
            ));
        }
        if row.offset != end {
            return refuse(format!(
                "expected the segment of region {region} at {end}, found offset {}",
                row.offset
            ));
        }
        // Also keeps the sum below from overflowing.
        let room = self.footer_offset.saturating_sub(end);
        if row.length < SEGMENT_HEADER_LEN as u64 || row.length > room {
            return refuse(format!(
                "expected {SEGMENT_HEADER_LEN} to {room} bytes in the segment of region {region}, \
                 found length {}",
                row.length
            ));
        }
        self.end += row.length;
        self.segments.push(row);
        Ok(())
    }

    fn finish(self) -> Result<Vec<SegmentMeta>, DecodeError> {
        if self.end != self.footer_offset {
            let reason = format!(
                "expected segments up to the footer at {}, found that they end at {}",
                self.footer_offset, self.end
            );
            return Err(DecodeError::new(Part::Footer, reason));
        }
        Ok(self.segments)
    }
}

/// Decodes a footer that comes in parts, for one that is too large to be held: what it keeps is no
/// more than the rows that held so far, whatever size the trailer states.
#[derive(Clone, Debug)]
pub struct FooterParts {
    rows: Rows,
    footer_length: u64,
    footer_crc: u32,
    hasher: Hasher,
    taken: u64,
    count: Option<u32>,
    /// The beginning of a field or row whose end is in the next part.
    rest: Vec<u8>,
}

impl FooterParts {
    /// The footer that this trailer leads to.
    pub fn new(trailer: &Trailer) -> FooterParts {
        FooterParts {
            rows: Rows::new(trailer),
            footer_length: trailer.footer_length,
            footer_crc: trailer.footer_crc,
            hasher: Hasher::new(),
            taken: 0,
            count: None,
            rest: Vec::new(),
        }
    }

    /// Takes the next bytes of the footer.
    ///
    /// # Errors
    ///
    /// [`Part::Footer`]: what came so far does not hold, so the rest need not be read.
    pub fn push(&mut self, part: &[u8]) -> Result<(), DecodeError> {
        self.hasher.update(part);
        self.taken += part.len() as u64;
        self.rest.extend_from_slice(part);
        let mut fields = Reader(&self.rest);
        if self.count.is_none() {
            self.count = fields.u32();
        }
        if let Some(count) = self.count {
            let rows = self.footer_length.saturating_sub(COUNT_LEN as u64) / ROW_LEN as u64;
            if u64::from(count) != rows {
                let reason = format!("expected a count of {rows} rows, found {count}");
                return Err(DecodeError::new(Part::Footer, reason));
            }
            while fields.0.len() >= ROW_LEN
                && let Some(row) = decode_row(&mut fields)
            {
                self.rows.push(row)?;
            }
        }
        let rest = fields.0.len();
        self.rest.drain(..self.rest.len() - rest);
        Ok(())
    }

    /// The table, once every part was taken.
    ///
    /// # Errors
    ///
    /// [`Part::Footer`]: it does not verify as a whole.
    pub fn finish(self) -> Result<Vec<SegmentMeta>, DecodeError> {
        let refuse = |reason: String| Err(DecodeError::new(Part::Footer, reason));
        if self.taken != self.footer_length || !self.rest.is_empty() {
            let (expected, found) = (self.footer_length, self.taken);
            return refuse(format!("expected {expected} bytes, found {found}"));
        }
        let computed = self.hasher.finalize();
        if computed != self.footer_crc {
            let found = self.footer_crc;
            return refuse(format!(
                "expected checksum {computed:08x} of its bytes, found {found:08x}"
            ));
        }
        self.rows.finish()
    }
}

/// The rows of a table without its count, in order, judged by nothing: for what may be damaged.
pub fn decode_rows(rows: &[u8]) -> impl Iterator<Item = SegmentMeta> {
    rows.chunks_exact(ROW_LEN).filter_map(|row| decode_row(&mut Reader(row)))
}

fn decode_row(fields: &mut Reader<'_>) -> Option<SegmentMeta> {
    Some(SegmentMeta {
        region: RegionId(fields.u64()?),
        min_id: EntryId(fields.u64()?),
        max_id: EntryId(fields.u64()?),
        count: fields.u32()?,
        offset: fields.u64()?,
        length: fields.u64()?,
        crc: fields.u32()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::MIN_OBJECT_LEN;

    /// The trailer of an object of `size` bytes with this footer.
    fn trailer(footer_offset: u64, footer_length: u64, size: u64) -> Result<Trailer, DecodeError> {
        let trailer = Trailer { footer_offset, footer_length, footer_crc: 1, object_crc: 2 };
        let mut bytes = Vec::new();
        trailer.encode(&mut bytes);
        assert_eq!(bytes.len(), TRAILER_LEN);
        Trailer::decode(&bytes, size).inspect(|decoded| assert_eq!(*decoded, trailer))
    }

    #[test]
    fn a_trailer_leads_to_a_footer_between_header_and_trailer() {
        assert_eq!(trailer(54, 4, 90).unwrap().footer_range(), 54..58);
        assert_eq!(trailer(66, 52, 150).unwrap().footer_range(), 66..118);
        let refused = [
            (54, 4, 91),
            (55, 4, 90),
            (54, 5, 91),
            (54, 51, 137),
            (55, 3, 90),
            // It would lie in the header.
            (6, 52, 90),
            (0, 58, 90),
            // The sum wraps around to the right end.
            (u64::MAX - 41, 100, 90),
            (100, u64::MAX - 41, 90),
            (u64::MAX, u64::MAX, 90),
        ];
        for (offset, length, size) in refused {
            let error = trailer(offset, length, size).unwrap_err();
            assert_eq!(error.part, Part::Trailer, "{offset}, {length}, {size}: {error}");
        }
    }

    #[test]
    fn an_object_too_short_for_a_trailer_is_named_as_a_whole() {
        assert_eq!(trailer(54, 4, MIN_OBJECT_LEN - 1).unwrap_err().part, Part::Object);
        let error = Trailer::decode(&[0; TRAILER_LEN - 1], 1000).unwrap_err();
        assert_eq!(error.part, Part::Object);
        assert!(error.reason.ends_with("found 31"), "{error}");
    }

    /// The footer of an object with one segment of 12 bytes per region.
    fn footer_of(regions: u64) -> (Vec<u8>, Trailer) {
        use bytes::BufMut;
        let mut footer = Vec::new();
        footer.put_u32(regions as u32);
        for region in 0..regions {
            let offset = 54 + 12 * region;
            let (region, id) = (RegionId(region), EntryId(1));
            let (min_id, max_id) = (id, id);
            SegmentMeta { region, min_id, max_id, count: 1, offset, length: 12, crc: 7 }
                .encode(&mut footer);
        }
        let footer_crc = crc32fast::hash(&footer);
        let (footer_offset, footer_length) = (54 + 12 * regions, footer.len() as u64);
        (footer, Trailer { footer_offset, footer_length, footer_crc, object_crc: 0 })
    }

    #[test]
    fn a_footer_in_parts_decodes_as_one_that_is_held() {
        for regions in [0, 1, 2, 5] {
            let (footer, trailer) = footer_of(regions);
            let whole = decode_footer(&footer, &trailer);
            assert_eq!(whole.as_ref().unwrap().len() as u64, regions);
            for size in [1, 3, 4, 47, 48, 49, 1000] {
                let mut parts = FooterParts::new(&trailer);
                footer.chunks(size).for_each(|part| parts.push(part).unwrap());
                assert_eq!(parts.finish(), whole, "{regions} regions in parts of {size}");
            }
        }
    }

    /// So of a size that is made up, no more is read than up to the first thing that does not fit.
    #[test]
    fn a_footer_in_parts_ends_at_the_first_row_that_does_not_hold() {
        let (mut footer, trailer) = footer_of(3);
        footer[COUNT_LEN + ROW_LEN + 28] ^= 1;
        let mut parts = FooterParts::new(&trailer);
        parts.push(&footer[..COUNT_LEN + ROW_LEN]).unwrap();
        assert_eq!(
            parts.push(&footer[COUNT_LEN + ROW_LEN..][..ROW_LEN]).unwrap_err().part,
            Part::Footer
        );
        let huge = Trailer { footer_offset: 54, footer_length: 4 + 48 * (1 << 30), ..trailer };
        let error = FooterParts::new(&huge).push(&[0; 4096]).unwrap_err();
        assert!(error.reason.contains("expected a count"), "{error}");
        let (footer, trailer) = footer_of(3);
        let mut parts = FooterParts::new(&trailer);
        parts.push(&footer[..100]).unwrap();
        assert!(parts.finish().unwrap_err().reason.contains("found 100"), "the end is missing");
        let other = Trailer { footer_crc: 1, ..trailer };
        let mut parts = FooterParts::new(&other);
        parts.push(&footer).unwrap();
        assert!(parts.finish().unwrap_err().reason.contains("checksum"));
    }

    #[test]
    fn a_footer_is_as_long_as_the_trailer_says_and_has_its_checksum() {
        let footer = [0; COUNT_LEN];
        let footer_crc = crc32fast::hash(&footer);
        let trailer = Trailer { footer_offset: 54, footer_length: 4, footer_crc, object_crc: 0 };
        assert_eq!(decode_footer(&footer, &trailer), Ok(Vec::new()));
        let other_checksum = Trailer { footer_crc: footer_crc ^ 1, ..trailer };
        for refused in [
            decode_footer(&footer[1..], &trailer),
            decode_footer(&[0; COUNT_LEN + 1], &trailer),
            decode_footer(&footer, &other_checksum),
        ] {
            assert_eq!(refused.unwrap_err().part, Part::Footer);
        }
    }
}
