//! Whole objects: building one from its segments, and decoding one for verification.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use crc32fast::Hasher;

use super::footer::{COUNT_LEN, ROW_LEN};
use super::{
    Entry, HEADER_LEN, Header, ReleaseRecord, SEGMENT_HEADER_LEN, SegmentBuilder, SegmentMeta,
    TRAILER_LEN, Trailer, WriterRecord, decode_footer, decode_releases, decode_segment,
};
use crate::error::{DecodeError, Part};
use crate::event::Payload;
use crate::types::{EntryId, ObjectSeq, RegionId};

/// Turns segments into an object.
///
/// The checksum of the object is combined from those of its parts, so that no payload is read
/// again, and the object leaves as a list of chunks, so that none is copied again.
#[derive(Clone, Debug, Default)]
pub struct ObjectEncoder {
    segments: BTreeMap<RegionId, SegmentBuilder>,
}

impl ObjectEncoder {
    /// An object without segments.
    pub fn new() -> ObjectEncoder {
        ObjectEncoder::default()
    }

    /// The segment of a region, begun if there is none. It must get an entry before
    /// [`finish`](ObjectEncoder::finish).
    pub fn segment(&mut self, region: RegionId) -> &mut SegmentBuilder {
        self.segments.entry(region).or_default()
    }

    /// The segment of a region that has one.
    pub fn get(&self, region: RegionId) -> Option<&SegmentBuilder> {
        self.segments.get(&region)
    }

    /// The regions that have a segment, in order.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.segments.keys().copied()
    }

    /// Adds an entry to the segment of its region. Ids of a region ascend.
    pub fn push(&mut self, region: RegionId, id: EntryId, payload: &Bytes) {
        self.segment(region).push(id, payload);
    }

    /// Closes the object: its bytes, and its table of segments.
    pub fn finish(self, header: &Header) -> (Payload, Vec<SegmentMeta>) {
        let rows = self.segments.len();
        let footer_length = COUNT_LEN + rows * ROW_LEN;
        // Everything that is no entry, in one allocation.
        let framing = HEADER_LEN + rows * SEGMENT_HEADER_LEN + footer_length + TRAILER_LEN;
        let mut frame = BytesMut::with_capacity(framing);
        let mut chunks = Vec::with_capacity(2 + rows * 2);
        let mut table = Vec::with_capacity(rows);
        let mut crc = Hasher::new();

        frame.put_slice(&header.encode());
        crc.update(&frame);
        chunks.push(frame.split().freeze());

        let mut offset = HEADER_LEN as u64;
        for (region, segment) in self.segments {
            let meta = segment.finish(region, offset, &mut frame, &mut chunks);
            crc.combine(&Hasher::new_with_initial_len(meta.crc, meta.length));
            offset += meta.length;
            table.push(meta);
        }

        frame.put_u32(rows as u32);
        table.iter().for_each(|meta| meta.encode(&mut frame));
        crc.update(&frame);
        let mut trailer = Trailer {
            footer_offset: offset,
            footer_length: footer_length as u64,
            footer_crc: crc32fast::hash(&frame),
            object_crc: 0,
        };
        let (head, magic) = trailer.checksummed();
        crc.update(&head);
        crc.update(&magic);
        trailer.object_crc = crc.finalize();
        trailer.encode(&mut frame);
        chunks.push(frame.freeze());
        (Payload::new(chunks), table)
    }
}

/// An object that was decoded whole, every checksum included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it says of itself.
    pub header: Header,
    /// Its segments in the order of their regions, with their entries.
    pub segments: Vec<(SegmentMeta, Vec<Entry>)>,
}

/// What a segment of a reserved region holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservedContent {
    /// Of region `u64::MAX`.
    Releases(Vec<ReleaseRecord>),
    /// Of region `u64::MAX - 1`.
    Writer(WriterRecord),
}

impl Object {
    /// Decodes a whole object and checks all of it: structure, every checksum, every id, and the
    /// content of the reserved regions that this version knows.
    ///
    /// # Errors
    ///
    /// The first part that does not decode.
    pub fn decode(bytes: &Bytes) -> Result<Object, DecodeError> {
        let size = bytes.len() as u64;
        if size < super::MIN_OBJECT_LEN {
            let least = super::MIN_OBJECT_LEN;
            let reason = format!("expected at least {least} bytes, found {size}");
            return Err(DecodeError::new(Part::Object, reason));
        }
        let header = Header::decode(bytes)?;
        let body = bytes.len() - TRAILER_LEN;
        let trailer = Trailer::decode(&bytes[body..], size)?;
        let table = decode_footer(&bytes[trailer.footer_offset as usize..body], &trailer)?;
        let mut segments = Vec::with_capacity(table.len());
        for meta in table {
            let range = meta.range();
            let segment = bytes.slice(range.start as usize..range.end as usize);
            segments.push((meta, decode_segment(&segment, &meta)?));
        }
        check_object_crc(bytes, &trailer)?;
        let object = Object { header, segments };
        for region in [RegionId::RELEASES, RegionId::WRITER] {
            object.reserved(region)?;
        }
        Ok(object)
    }

    /// Everything that does not verify in the bytes of the object at `sequence`, part by part: what
    /// [`decode`](Object::decode) checks, and that the object is the one that its key names. A
    /// damaged table hides its segments; the checksum of the object tells only what no other part
    /// does.
    pub fn problems(bytes: &Bytes, sequence: ObjectSeq) -> Vec<DecodeError> {
        let mut problems = Vec::new();
        match Header::decode(bytes) {
            Ok(header) => problems.extend(header.at(sequence).err()),
            Err(error) => problems.push(error),
        }
        let table = Trailer::decode(bytes, bytes.len() as u64).and_then(|trailer| {
            let footer = trailer.footer_offset as usize..bytes.len() - TRAILER_LEN;
            Ok((trailer, decode_footer(&bytes[footer], &trailer)?))
        });
        match table {
            // Too short to have a header is too short to have a trailer.
            Err(error) if problems.iter().any(|known| known.part == error.part) => {}
            Err(error) => problems.push(error),
            Ok((trailer, table)) => {
                for meta in table {
                    let segment = bytes.slice(meta.offset as usize..meta.range().end as usize);
                    let content =
                        decode_segment(&segment, &meta).and_then(|entries| match meta.region {
                            RegionId::RELEASES => decode_releases(&entries, sequence).map(drop),
                            RegionId::WRITER => WriterRecord::decode(&entries, sequence).map(drop),
                            _ => Ok(()),
                        });
                    problems.extend(content.err());
                }
                if problems.is_empty() {
                    problems.extend(check_object_crc(bytes, &trailer).err());
                }
            }
        }
        problems
    }

    /// The content of a reserved region, if the object has a segment of it and this version knows
    /// the region.
    ///
    /// # Errors
    ///
    /// The content does not decode.
    pub fn reserved(&self, region: RegionId) -> Result<Option<ReservedContent>, DecodeError> {
        let sequence = self.header.sequence;
        let Some((_, entries)) = self.segments.iter().find(|(meta, _)| meta.region == region)
        else {
            return Ok(None);
        };
        match region {
            RegionId::RELEASES => {
                decode_releases(entries, sequence).map(ReservedContent::Releases).map(Some)
            }
            RegionId::WRITER => {
                WriterRecord::decode(entries, sequence).map(ReservedContent::Writer).map(Some)
            }
            _ => Ok(None),
        }
    }
}

fn check_object_crc(bytes: &Bytes, trailer: &Trailer) -> Result<(), DecodeError> {
    let mut crc = Hasher::new();
    crc.update(&bytes[..bytes.len() - TRAILER_LEN]);
    let (head, magic) = trailer.checksummed();
    crc.update(&head);
    crc.update(&magic);
    let computed = crc.finalize();
    if computed != trailer.object_crc {
        let found = trailer.object_crc;
        return Err(DecodeError::new(
            Part::Trailer,
            format!("expected checksum {computed:08x} of the object, found {found:08x}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Epoch;

    const HEADER: Header = Header {
        sequence: ObjectSeq(9),
        epoch: Epoch(4),
        predecessor: None,
        boundary: ObjectSeq(2),
    };

    fn object(entries: &[(RegionId, u64, &'static [u8])]) -> Bytes {
        let mut encoder = ObjectEncoder::new();
        for (region, id, payload) in entries {
            encoder.push(*region, EntryId(*id), &Bytes::from_static(payload));
        }
        encoder.finish(&HEADER).0.to_bytes()
    }

    #[test]
    fn the_smallest_object_has_90_bytes() {
        let bytes = object(&[]);
        assert_eq!(bytes.len() as u64, super::super::MIN_OBJECT_LEN);
        assert_eq!(Object::decode(&bytes), Ok(Object { header: HEADER, segments: Vec::new() }));
        let error = Object::decode(&bytes.slice(..89)).unwrap_err();
        assert_eq!(error.part, Part::Object);
    }

    #[test]
    fn segments_stand_in_the_order_of_their_regions() {
        let rows: [(RegionId, u64, &'static [u8]); 4] = [
            (RegionId(8), 1, b"a"),
            (RegionId(3), 5, b"b"),
            (RegionId(8), 2, b"c"),
            (RegionId(3), 6, b""),
        ];
        let object = Object::decode(&object(&rows)).unwrap();
        let found: Vec<_> = object
            .segments
            .iter()
            .map(|(meta, entries)| (meta.region.0, meta.min_id.0, meta.max_id.0, entries.len()))
            .collect();
        assert_eq!(found, [(3, 5, 6, 2), (8, 1, 2, 2)]);
    }

    #[test]
    fn only_the_objects_checksum_tells_that_it_is_wrong() {
        let mut bytes = object(&[(RegionId(1), 1, b"a")]).to_vec();
        let at = bytes.len() - 12;
        bytes[at] ^= 1;
        let error = Object::decode(&bytes.into()).unwrap_err();
        assert_eq!(error.part, Part::Trailer);
    }

    #[test]
    fn an_unknown_reserved_region_may_hold_anything() {
        let unknown = RegionId(RegionId::WRITER.0 - 1);
        let decoded = Object::decode(&object(&[(unknown, 77, b"?"), (unknown, 78, b"?")])).unwrap();
        assert_eq!(decoded.reserved(unknown), Ok(None));
        for known in [RegionId::RELEASES, RegionId::WRITER] {
            assert!(Object::decode(&object(&[(known, 77, b"?")])).is_err(), "{known}");
            assert_eq!(decoded.reserved(known), Ok(None));
        }
    }
}
