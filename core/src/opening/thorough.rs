//! What a survey makes of one object: all that verifies, and all that does not.

use alloc::boxed::Box;

use bytes::Bytes;

use super::examine::{Damaged, Examined, Judged, Piece, Running, Table};
use crate::error::DecodeError;
use crate::format::{SegmentMeta, WriterRecord, decode_releases, decode_segment};
use crate::types::{ObjectSeq, RegionId};

impl Running {
    /// Verifies the object's structure, its release records and its writer record, each for
    /// itself.
    pub(super) fn judge_thoroughly(
        &self,
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
            let Some(bytes) = self.reserved(meta, size) else {
                return Ok(Judged::Wanted(Piece::Reserved(meta.region), meta.range()));
            };
            if let Err(error) = found.take_reserved(sequence, meta, &bytes) {
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
