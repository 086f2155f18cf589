//! What a survey makes of one object: all that verifies, and all that does not.

use alloc::boxed::Box;
use alloc::format;

use bytes::Bytes;

use super::examine::{Damaged, Examined, Judged, Piece, Running, Table};
use crate::error::{DecodeError, Part};
use crate::format::{SegmentMeta, TAIL_WINDOW, WriterRecord, decode_releases, decode_segment};
use crate::types::{ObjectSeq, RegionId};

impl Running {
    /// Verifies the object's structure, its release records and its writer record, each for
    /// itself.
    pub(super) fn judge_thoroughly(
        &mut self,
        sequence: ObjectSeq,
        size: u64,
    ) -> Result<Judged, Box<Damaged>> {
        let mut found = Damaged::default();
        match self.header(sequence) {
            Ok(header) => found.header = Some(header),
            Err(error) => found.problems.push(error),
        }
        let segments = match self.table(size) {
            Ok(Table::Held(segments)) => segments,
            Ok(Table::Wanted(range)) => return Ok(Judged::Wanted(Piece::Footer, range)),
            Err(error) => {
                found.problems.push(error);
                return Err(Box::new(found));
            }
        };
        for meta in &segments {
            if !matches!(meta.region, RegionId::RELEASES | RegionId::WRITER) {
                continue;
            }
            if meta.region == RegionId::WRITER && meta.length > TAIL_WINDOW {
                let reason = format!("expected at most {TAIL_WINDOW} bytes, found {}", meta.length);
                found.problems.push(DecodeError::new(Part::WriterRecord, reason));
                continue;
            }
            let bytes = match self.reserved(meta, size) {
                Ok(bytes) => bytes,
                Err(part) => return Ok(Judged::Wanted(Piece::Reserved(meta.region), part)),
            };
            let taken = bytes.and_then(|bytes| found.take_reserved(sequence, meta, &bytes));
            if let Err(error) = taken {
                found.problems.push(error);
            }
        }
        match (found.header, found.problems.is_empty()) {
            (Some(header), true) => {
                let Damaged { releases, writer, .. } = found;
                Ok(Judged::Verified(Examined { header, size, segments, releases, writer }))
            }
            _ => Err(Box::new(Damaged { segments: Some(segments), ..found })),
        }
    }
}

impl Damaged {
    fn take_reserved(
        &mut self,
        sequence: ObjectSeq,
        meta: &SegmentMeta,
        bytes: &Bytes,
    ) -> Result<(), DecodeError> {
        let entries = decode_segment(bytes, meta)?;
        if meta.region == RegionId::WRITER {
            self.writer = Some(Box::new(WriterRecord::decode(&entries, sequence)?));
        } else {
            decode_releases(&entries, sequence)?;
            // A copy, so that nothing else of what was fetched is kept.
            self.releases = Some(Bytes::copy_from_slice(bytes));
        }
        Ok(())
    }
}
