//! Reading a segment of Sealog's own that may be larger than what is held at once.

use core::ops::Range;

use alloc::format;
use bytes::{Bytes, BytesMut};
use crc32fast::Hasher;

use crate::error::{DecodeError, Part};
use crate::format::{PART, SegmentMeta};

/// A segment that is read in parts of at most [`PART`] bytes. One of several parts is read twice:
/// first to see whether its checksum holds, without keeping anything, and then to be held. So a
/// length that is made up costs reads, and no memory.
#[derive(Clone, Debug)]
pub(super) struct SegmentParts {
    meta: SegmentMeta,
    /// Where the next part begins.
    next: u64,
    hasher: Hasher,
    /// What is held so far, once the checksum held.
    held: Option<BytesMut>,
}

impl SegmentParts {
    pub(super) fn new(meta: SegmentMeta) -> SegmentParts {
        SegmentParts { meta, next: meta.offset, hasher: Hasher::new(), held: None }
    }

    /// The part that is to be read next.
    pub(super) fn wanted(&self) -> Range<u64> {
        part_of(self.next..self.meta.range().end)
    }

    /// Takes that part: gives the segment, once it is whole, or nothing, while there is more.
    pub(super) fn take(&mut self, part: Bytes) -> Result<Option<Bytes>, DecodeError> {
        if self.meta.length <= PART {
            return Ok(Some(part));
        }
        self.next += part.len() as u64;
        match &mut self.held {
            Some(held) => held.extend_from_slice(&part),
            None => self.hasher.update(&part),
        }
        if self.next < self.meta.range().end {
            return Ok(None);
        }
        if let Some(held) = self.held.take() {
            return Ok(Some(held.freeze()));
        }
        let (found, computed) = (self.meta.crc, self.hasher.clone().finalize());
        if computed != found {
            let reason =
                format!("expected checksum {computed:08x} of its bytes, found {found:08x}");
            return Err(DecodeError::new(Part::Segment(self.meta.region), reason));
        }
        self.next = self.meta.offset;
        self.held = Some(BytesMut::new());
        Ok(None)
    }
}

/// The first part of a range.
pub(super) fn part_of(range: Range<u64>) -> Range<u64> {
    range.start..range.end.min(range.start.saturating_add(PART))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init, reason = "one part is read")]

    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::types::{EntryId, RegionId};

    fn meta(bytes: &[u8], crc: u32) -> SegmentMeta {
        let (min_id, max_id) = (EntryId(1), EntryId(1));
        let length = bytes.len() as u64;
        SegmentMeta {
            region: RegionId::RELEASES,
            min_id,
            max_id,
            count: 1,
            offset: 54,
            length,
            crc,
        }
    }

    /// Reads a segment out of an object, and says in which parts.
    fn read(bytes: &[u8], crc: u32) -> (Result<Bytes, DecodeError>, Vec<Range<u64>>) {
        let mut parts = SegmentParts::new(meta(bytes, crc));
        let mut read = Vec::new();
        loop {
            let wanted = parts.wanted();
            let part = &bytes[(wanted.start - 54) as usize..(wanted.end - 54) as usize];
            read.push(wanted);
            match parts.take(Bytes::copy_from_slice(part)) {
                Ok(None) => {}
                Ok(Some(whole)) => return (Ok(whole), read),
                Err(error) => return (Err(error), read),
            }
        }
    }

    #[test]
    fn a_large_segment_is_held_only_once_its_checksum_held() {
        let small = [1; 100];
        assert_eq!(
            read(&small, 0),
            (Ok(Bytes::from_static(&[1; 100])), core::iter::once(54..154).collect())
        );
        let large = vec![7; PART as usize + 5];
        let twice = vec![54..54 + PART, 54 + PART..59 + PART];
        let (whole, parts) = read(&large, crc32fast::hash(&large));
        assert_eq!(whole.unwrap(), large);
        assert_eq!(parts, [twice.clone(), twice.clone()].concat());
        let (refused, parts) = read(&large, 1);
        assert!(refused.unwrap_err().reason.contains("checksum"));
        assert_eq!(parts, twice, "it is not read again");
    }
}
