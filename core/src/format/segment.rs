//! The entries of one region in one object.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use crc32fast::Hasher;

use super::{Reader, SegmentMeta};
use crate::error::{DecodeError, Part};
use crate::types::{EntryId, RegionId};

/// Region id and entry count, before the entries.
pub const SEGMENT_HEADER_LEN: usize = 12;
/// Entry id and payload length, before each payload.
pub const ENTRY_HEADER_LEN: usize = 12;
/// A payload of this many bytes or more is not copied into the object but shared: it keeps the
/// caller's buffer alive until the object is durable.
pub const COPY_LIMIT: usize = 16 << 10;

/// The least and the largest chunk of a segment. A region with little to say costs little, and a
/// busy one is checksummed in runs that fit the processor's caches.
const MIN_CHUNK: usize = 256;
const MAX_CHUNK: usize = 64 << 10;
/// A chunk is at most this part of what is there, so that the room that the last one of a segment
/// leaves unused stays small beside what is kept.
const CHUNK_PART: u64 = 4;

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// What was appended.
    pub payload: Bytes,
}

/// A segment under construction: entries are encoded as they are admitted, so that sealing does
/// not touch payloads again.
#[derive(Clone, Debug)]
pub struct SegmentBuilder {
    first: EntryId,
    last: EntryId,
    count: u32,
    /// Bytes of encoded entries so far, in `chunks` and `tail`.
    len: u64,
    /// Over what is in `chunks`.
    hasher: Hasher,
    chunks: Vec<Bytes>,
    /// What is not checksummed yet, and room for more.
    tail: BytesMut,
}

impl SegmentBuilder {
    /// A segment without entries.
    pub fn new() -> SegmentBuilder {
        SegmentBuilder {
            first: EntryId::ZERO,
            last: EntryId::ZERO,
            count: 0,
            len: 0,
            hasher: Hasher::new(),
            chunks: Vec::new(),
            tail: BytesMut::new(),
        }
    }

    /// Adds an entry. The caller sees to it that ids ascend and that the payload is shorter than
    /// 4 GiB.
    pub fn push(&mut self, id: EntryId, payload: &Bytes) {
        debug_assert!(self.count == 0 || id > self.last);
        if self.count == 0 {
            self.first = id;
        }
        self.last = id;
        self.count += 1;
        self.len += (ENTRY_HEADER_LEN + payload.len()) as u64;
        let mut header = [0; ENTRY_HEADER_LEN];
        header[..8].copy_from_slice(&id.0.to_be_bytes());
        header[8..].copy_from_slice(&(payload.len() as u32).to_be_bytes());
        self.copy(&header);
        if payload.len() < COPY_LIMIT {
            self.copy(payload);
        } else {
            self.cut();
            self.hasher.update(payload);
            self.chunks.push(payload.clone());
        }
    }

    /// How many entries it holds.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The largest id so far; zero before the first entry.
    pub fn last_id(&self) -> EntryId {
        self.last
    }

    /// Closes the segment: its row of the footer, and its chunks, the first of which is made of
    /// `frame`.
    pub(super) fn finish(
        mut self,
        region: RegionId,
        offset: u64,
        frame: &mut BytesMut,
        chunks: &mut Vec<Bytes>,
    ) -> SegmentMeta {
        self.cut();
        frame.put_u64(region.0);
        frame.put_u32(self.count);
        let header = frame.split().freeze();
        let mut hasher = Hasher::new();
        hasher.update(&header);
        // The entries were checksummed before their count was known.
        hasher.combine(&self.hasher);
        chunks.push(header);
        chunks.append(&mut self.chunks);
        SegmentMeta {
            region,
            min_id: self.first,
            max_id: self.last,
            count: self.count,
            offset,
            length: SEGMENT_HEADER_LEN as u64 + self.len,
            crc: hasher.finalize(),
        }
    }

    /// Copies bytes to the end, over the edge of a chunk if need be: no byte is copied twice, and
    /// no chunk keeps room that nothing uses.
    fn copy(&mut self, mut bytes: &[u8]) {
        loop {
            let room = self.tail.capacity() - self.tail.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.tail.extend_from_slice(now);
            if later.is_empty() {
                return;
            }
            bytes = later;
            self.cut();
            let part = usize::try_from(self.len / CHUNK_PART).unwrap_or(MAX_CHUNK);
            let chunk = part.max(bytes.len()).clamp(MIN_CHUNK, MAX_CHUNK);
            self.tail = BytesMut::with_capacity(chunk);
        }
    }

    /// Checksums what is in the tail, and makes a chunk of it.
    fn cut(&mut self) {
        if !self.tail.is_empty() {
            self.hasher.update(&self.tail);
            self.chunks.push(self.tail.split().freeze());
        }
    }
}

impl Default for SegmentBuilder {
    fn default() -> SegmentBuilder {
        SegmentBuilder::new()
    }
}

/// Decodes a segment and checks it against its row of the footer. The payloads share `bytes`.
///
/// # Errors
///
/// [`Part::Segment`], with what was expected and found.
pub fn decode_segment(bytes: &Bytes, meta: &SegmentMeta) -> Result<Vec<Entry>, DecodeError> {
    let refuse = |reason: String| DecodeError::new(Part::Segment(meta.region), reason);
    if bytes.len() as u64 != meta.length {
        return Err(refuse(format!("expected {} bytes, found {}", meta.length, bytes.len())));
    }
    let computed = crc32fast::hash(bytes);
    if computed != meta.crc {
        return Err(refuse(format!(
            "expected checksum {:08x} as the footer says, found {computed:08x}",
            meta.crc
        )));
    }
    let mut header = Reader(bytes);
    let (Some(region), Some(count)) = (header.u64(), header.u32()) else {
        return Err(refuse(format!("expected {SEGMENT_HEADER_LEN} bytes or more, found fewer")));
    };
    if region != meta.region.0 {
        return Err(refuse(format!("expected region {}, found region {region}", meta.region)));
    }
    if count != meta.count {
        return Err(refuse(format!("expected {} entries, found a count of {count}", meta.count)));
    }
    // A count is a number that was read; the bytes are what is there.
    let most = header.0.len() / ENTRY_HEADER_LEN;
    if count as usize > most {
        return Err(refuse(format!("expected {count} entries, found room for {most}")));
    }
    let mut entries = Vec::with_capacity(count as usize);
    let mut rest = bytes.slice(SEGMENT_HEADER_LEN..);
    let mut last: Option<EntryId> = None;
    for _ in 0..count {
        if rest.len() < ENTRY_HEADER_LEN {
            return Err(refuse(format!("expected {count} entries, found {}", entries.len())));
        }
        let (id, length) = (EntryId(rest.get_u64()), rest.get_u32());
        if last.is_some_and(|last| last >= id) {
            return Err(refuse(format!("expected ascending ids, found {id} later")));
        }
        if length as usize > rest.len() {
            let held = rest.len();
            return Err(refuse(format!("expected {length} bytes of entry {id}, found {held}")));
        }
        last = Some(id);
        entries.push(Entry { id, payload: rest.split_to(length as usize) });
    }
    if !rest.is_empty() {
        return Err(refuse(format!("expected nothing after the entries, found {}", rest.len())));
    }
    let (first, last) = (entries.first().map(|e| e.id), entries.last().map(|e| e.id));
    if (first, last) != (Some(meta.min_id), Some(meta.max_id)) {
        return Err(refuse(format!(
            "expected ids from {} to {}, found {} to {}",
            meta.min_id,
            meta.max_id,
            first.unwrap_or(EntryId::ZERO),
            last.unwrap_or(EntryId::ZERO),
        )));
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::error::DecodeError;

    const REGION: RegionId = RegionId(7);

    fn finish(builder: SegmentBuilder) -> (Vec<Bytes>, SegmentMeta) {
        let mut frame = BytesMut::with_capacity(SEGMENT_HEADER_LEN);
        let mut chunks = Vec::new();
        let meta = builder.finish(REGION, 54, &mut frame, &mut chunks);
        (chunks, meta)
    }

    fn segment(sizes: &[usize]) -> (Vec<Bytes>, SegmentMeta) {
        let mut builder = SegmentBuilder::new();
        for (id, size) in (1..).zip(sizes) {
            builder.push(EntryId(id), &Bytes::from(vec![id as u8; *size]));
        }
        assert_eq!(builder.count() as usize, sizes.len());
        let (chunks, meta) = finish(builder);
        let length = meta.length;
        assert_eq!(length, chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>());
        assert_eq!((meta.offset, meta.region), (54, REGION));
        (chunks, meta)
    }

    fn decoded(chunks: &[Bytes], meta: &SegmentMeta) -> Result<Vec<Entry>, DecodeError> {
        decode_segment(&chunks.concat().into(), meta)
    }

    #[test]
    fn entries_come_back_on_both_sides_of_every_limit() {
        let edges = [0, 1, MIN_CHUNK - 12, MIN_CHUNK, COPY_LIMIT - 1, COPY_LIMIT, MAX_CHUNK + 1, 3];
        let many = vec![100; 5000];
        for sizes in [&edges[..], &edges[5..], &[0; 9], &[COPY_LIMIT; 3], &many] {
            let (chunks, meta) = segment(sizes);
            let entries = decoded(&chunks, &meta).unwrap();
            let found: Vec<_> = entries.iter().map(|entry| entry.payload.len()).collect();
            assert_eq!(found, sizes);
            for (id, entry) in (1..).zip(entries) {
                assert_eq!(entry.id, EntryId(id));
                assert!(entry.payload.iter().all(|byte| *byte == id as u8));
            }
        }
    }

    #[test]
    fn a_large_payload_is_shared_and_a_small_one_copied() {
        for (size, is_shared) in [(COPY_LIMIT - 1, false), (COPY_LIMIT, true)] {
            let payload = Bytes::from(vec![1; size]);
            let mut builder = SegmentBuilder::new();
            builder.push(EntryId(1), &payload);
            let (chunks, _) = finish(builder);
            let shared = chunks.iter().any(|chunk| chunk.as_ptr() == payload.as_ptr());
            assert_eq!(shared, is_shared, "{size} bytes");
        }
    }

    /// An object of many small entries leaves as few chunks, and none of them is longer than what
    /// a cache holds.
    #[test]
    fn small_entries_are_gathered_into_chunks() {
        let (chunks, meta) = segment(&vec![100; 5000]);
        assert!(chunks.iter().all(|chunk| chunk.len() <= MAX_CHUNK));
        let fewest = meta.length as usize / MAX_CHUNK;
        // Until there is enough for the largest, each is a quarter of what is there.
        assert!(chunks.len() <= fewest + 32, "{} chunks of {} bytes", chunks.len(), meta.length);
    }

    /// Whatever its size when it is closed.
    #[test]
    fn the_room_that_a_segment_leaves_unused_is_small() {
        for entry in [8, 100, 3000, COPY_LIMIT - 1] {
            let payload = Bytes::from(vec![1; entry]);
            let mut builder = SegmentBuilder::new();
            while builder.len < 1 << 20 {
                builder.push(EntryId(u64::from(builder.count) + 1), &payload);
                let unused = builder.tail.capacity() - builder.tail.len();
                let most = MIN_CHUNK + (builder.len / CHUNK_PART) as usize;
                assert!(unused <= most, "{unused} B of {} B are unused", builder.len);
            }
        }
    }

    #[test]
    fn a_segment_that_its_row_does_not_describe_is_refused() {
        let (chunks, meta) = segment(&[5, 0, 9]);
        let changes: [(&str, SegmentMeta); 7] = [
            ("bytes", SegmentMeta { length: meta.length + 1, ..meta }),
            ("checksum", SegmentMeta { crc: meta.crc ^ 1, ..meta }),
            ("region", SegmentMeta { region: RegionId(8), ..meta }),
            ("entries", SegmentMeta { count: 2, ..meta }),
            ("entries", SegmentMeta { count: u32::MAX, ..meta }),
            ("ids", SegmentMeta { min_id: EntryId(2), ..meta }),
            ("ids", SegmentMeta { max_id: EntryId(4), ..meta }),
        ];
        for (named, row) in changes {
            let error = decoded(&chunks, &row).unwrap_err();
            assert_eq!(error.part, Part::Segment(row.region));
            assert!(error.reason.contains(named), "{named}: {error}");
        }
    }

    #[test]
    fn a_count_is_not_trusted_though_row_and_checksum_agree() {
        let (chunks, meta) = segment(&[5, 0, 9]);
        for count in [0, 2, 4, u32::MAX] {
            let mut bytes = chunks.concat();
            bytes[8..12].copy_from_slice(&count.to_be_bytes());
            let row = SegmentMeta { count, crc: crc32fast::hash(&bytes), ..meta };
            let error = decode_segment(&bytes.into(), &row).unwrap_err();
            assert_eq!(error.part, Part::Segment(REGION), "{count}: {error}");
        }
    }
}
