//! Sealog's own content in reserved regions: release records and the writer record.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};

use super::{Entry, Reader};
use crate::error::{DecodeError, Part};
use crate::types::{EntryId, ObjectSeq, RegionId};

const VERSION: u8 = 1;
/// Version and count, before the release records.
pub const RELEASES_HEADER_LEN: usize = 5;
/// One release record.
pub const RECORD_LEN: usize = 16;

/// A region was released: its entries at or below `through` are obsolete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseRecord {
    /// The region.
    pub region: RegionId,
    /// Released through this id.
    pub through: EntryId,
}

/// Who made a start object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriterRecord {
    /// Random, so that no two start objects are ever byte-identical.
    pub nonce: [u8; 16],
    /// The wall clock at the opening, in milliseconds since 1970.
    pub opened_at_millis: u64,
    /// The writer's pipeline depth.
    pub max_in_flight: u16,
    /// The writer's name, 1 to 255 bytes.
    pub name: Arc<str>,
}

/// The payload of a segment of release records, which are in strictly increasing region order.
pub fn encode_releases(records: &[ReleaseRecord]) -> Bytes {
    debug_assert!(records.windows(2).all(|pair| pair[0].region < pair[1].region));
    let mut out = BytesMut::with_capacity(RELEASES_HEADER_LEN + records.len() * RECORD_LEN);
    out.put_u8(VERSION);
    out.put_u32(records.len() as u32);
    for record in records {
        out.put_u64(record.region.0);
        out.put_u64(record.through.0);
    }
    out.freeze()
}

/// Decodes the release records in the entries of region `u64::MAX` of the object at `sequence`.
///
/// # Errors
///
/// [`Part::ReleaseRecords`], with what was expected and found.
pub fn decode_releases(
    entries: &[Entry],
    sequence: ObjectSeq,
) -> Result<Vec<ReleaseRecord>, DecodeError> {
    let part = Part::ReleaseRecords;
    let refuse = |reason: String| DecodeError::new(part, reason);
    let mut fields = Reader(payload(part, entries, sequence)?);
    let Some(count) = fields.u32() else {
        return Err(refuse(format!("expected a count, found {} bytes", fields.0.len())));
    };
    if fields.0.len() as u64 != u64::from(count) * RECORD_LEN as u64 {
        let found = fields.0.len();
        return Err(refuse(format!(
            "expected {count} records of {RECORD_LEN} bytes, found {found} bytes"
        )));
    }
    let mut records: Vec<ReleaseRecord> = Vec::with_capacity(fields.0.len() / RECORD_LEN);
    while let (Some(region), Some(through)) = (fields.u64(), fields.u64()) {
        let record = ReleaseRecord { region: RegionId(region), through: EntryId(through) };
        if records.last().is_some_and(|last| last.region >= record.region) {
            return Err(refuse(format!("expected ascending regions, found region {region} later")));
        }
        records.push(record);
    }
    Ok(records)
}

impl WriterRecord {
    /// The payload of a writer record's segment.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(29 + self.name.len());
        out.put_u8(VERSION);
        out.put_slice(&self.nonce);
        out.put_u64(self.opened_at_millis);
        out.put_u16(self.max_in_flight);
        out.put_u16(self.name.len() as u16);
        out.put_slice(self.name.as_bytes());
        out.freeze()
    }

    /// Decodes the writer record in the entries of region `u64::MAX - 1` of the object at
    /// `sequence`.
    ///
    /// # Errors
    ///
    /// [`Part::WriterRecord`], with what was expected and found.
    pub fn decode(entries: &[Entry], sequence: ObjectSeq) -> Result<WriterRecord, DecodeError> {
        let part = Part::WriterRecord;
        let refuse = |reason: String| DecodeError::new(part, reason);
        let payload = payload(part, entries, sequence)?;
        let mut fields = Reader(payload);
        let fixed = (|| Some((fields.array()?, fields.u64()?, fields.u16()?, fields.u16()?)))();
        let Some((nonce, opened_at_millis, max_in_flight, name_len)) = fixed else {
            return Err(refuse(format!("expected 29 bytes or more, found {}", payload.len() + 1)));
        };
        if !(1..=255).contains(&name_len) {
            return Err(refuse(format!("expected a name of 1 to 255 bytes, found {name_len}")));
        }
        if fields.0.len() != usize::from(name_len) {
            let found = fields.0.len();
            return Err(refuse(format!("expected {name_len} bytes of name, found {found}")));
        }
        let Ok(name) = core::str::from_utf8(fields.0) else {
            return Err(refuse("expected a name in UTF-8, found other bytes".into()));
        };
        Ok(WriterRecord { nonce, opened_at_millis, max_in_flight, name: name.into() })
    }
}

/// The one payload of a reserved region, behind its version.
fn payload(part: Part, entries: &[Entry], sequence: ObjectSeq) -> Result<&[u8], DecodeError> {
    let refuse = |reason: String| Err(DecodeError::new(part, reason));
    let [entry] = entries else {
        return refuse(format!("expected one entry, found {}", entries.len()));
    };
    if EntryId::new(sequence, 1) != Some(entry.id) {
        let (found, position) = (entry.id.sequence(), entry.id.position());
        return refuse(format!(
            "expected position 1 of object {sequence}, found position {position} of object {found}"
        ));
    }
    let mut fields = Reader(&entry.payload);
    match fields.u8() {
        Some(VERSION) => Ok(fields.0),
        Some(version) => {
            refuse(format!("expected version {VERSION}, found {version}: unsupported"))
        }
        None => refuse(format!("expected version {VERSION}, found nothing")),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const SEQUENCE: ObjectSeq = ObjectSeq(9);

    fn entry(position: u32, payload: impl Into<Bytes>) -> Entry {
        Entry { id: EntryId::new(SEQUENCE, position).unwrap(), payload: payload.into() }
    }

    fn writer() -> WriterRecord {
        WriterRecord {
            nonce: [7; 16],
            opened_at_millis: 1_767_225_600_000,
            max_in_flight: 4,
            name: "node-0".into(),
        }
    }

    fn decode_writer(payload: impl Into<Bytes>) -> Result<WriterRecord, DecodeError> {
        WriterRecord::decode(&[entry(1, payload)], SEQUENCE)
    }

    fn records(regions: &[u64]) -> Vec<ReleaseRecord> {
        let record = |region: &u64| ReleaseRecord {
            region: RegionId(*region),
            through: EntryId(*region + 1),
        };
        regions.iter().map(record).collect()
    }

    fn decode_records(payload: impl Into<Bytes>) -> Result<Vec<ReleaseRecord>, DecodeError> {
        decode_releases(&[entry(1, payload)], SEQUENCE)
    }

    #[test]
    fn a_writer_record_has_the_layout_of_the_format() {
        let payload = writer().encode();
        assert_eq!(payload.len(), 29 + 6);
        assert_eq!(payload[..17], [&[1][..], &[7; 16]].concat());
        assert_eq!(payload[17..25], 1_767_225_600_000_u64.to_be_bytes());
        assert_eq!(payload[25..], *b"\0\x04\0\x06node-0");
        assert_eq!(decode_writer(payload), Ok(writer()));
    }

    #[test]
    fn a_writers_name_has_1_to_255_bytes() {
        for (length, is_allowed) in [(0, false), (1, true), (255, true), (256, false)] {
            let name = "n".repeat(length).into();
            let record = WriterRecord { name, ..writer() };
            let decoded = decode_writer(record.encode());
            assert_eq!(decoded.is_ok(), is_allowed, "{length} bytes");
        }
    }

    #[test]
    fn a_writer_record_that_is_cut_or_too_long_is_refused() {
        let payload = writer().encode();
        for left in 0..payload.len() {
            let error = decode_writer(payload.slice(..left)).unwrap_err();
            assert_eq!(error.part, Part::WriterRecord, "{left} bytes left");
        }
        assert!(decode_writer([&payload[..], b"x"].concat()).is_err());
    }

    #[test]
    fn a_writers_name_is_utf_8() {
        let mut payload = writer().encode().to_vec();
        payload[30] = 0xff;
        let error = decode_writer(payload).unwrap_err();
        assert!(error.reason.contains("UTF-8"), "{error}");
    }

    #[test]
    fn a_later_version_is_unsupported_rather_than_damaged() {
        for version in [0, 2] {
            let mut writer = writer().encode().to_vec();
            writer[0] = version;
            assert!(decode_writer(writer).unwrap_err().reason.contains("unsupported"));
            let mut releases = encode_releases(&records(&[1])).to_vec();
            releases[0] = version;
            assert!(decode_records(releases).unwrap_err().reason.contains("unsupported"));
        }
    }

    #[test]
    fn release_records_have_the_layout_of_the_format() {
        let records = records(&[3, 9]);
        let payload = encode_releases(&records);
        let numbers: Vec<_> = [3_u64, 4, 9, 10].into_iter().flat_map(u64::to_be_bytes).collect();
        assert_eq!(payload, [&[1, 0, 0, 0, 2][..], &numbers].concat());
        assert_eq!(decode_records(payload), Ok(records));
        assert_eq!(decode_records(encode_releases(&[])), Ok(Vec::new()));
    }

    #[test]
    fn regions_of_release_records_ascend_strictly() {
        for [first, second] in [[3_u64, 3], [9, 3]] {
            let rows = [first, 0, second, 0].into_iter().flat_map(u64::to_be_bytes);
            let payload: Vec<_> = [1, 0, 0, 0, 2].into_iter().chain(rows).collect();
            let error = decode_records(payload).unwrap_err();
            assert!(error.reason.contains("ascending"), "{error}");
        }
    }

    #[test]
    fn the_count_of_release_records_is_not_trusted() {
        let payload = encode_releases(&records(&[1, 2]));
        for count in [0, 1, 3, u32::MAX, u32::MAX / 16 + 1] {
            let mut payload = payload.to_vec();
            payload[1..5].copy_from_slice(&count.to_be_bytes());
            assert_eq!(decode_records(payload).unwrap_err().part, Part::ReleaseRecords);
        }
        for left in 0..payload.len() {
            assert!(decode_records(payload.slice(..left)).is_err(), "{left} bytes left");
        }
    }

    #[test]
    fn reserved_content_is_one_entry_at_position_1_of_its_object() {
        let payload = encode_releases(&records(&[1]));
        let (at_1, at_2) = (entry(1, payload.clone()), entry(2, payload));
        let elsewhere = ObjectSeq(SEQUENCE.0 + 1);
        for (entries, sequence) in [
            (vec![], SEQUENCE),
            (vec![at_2.clone()], SEQUENCE),
            (vec![at_1.clone(), at_2], SEQUENCE),
            (vec![at_1], elsewhere),
        ] {
            let error = decode_releases(&entries, sequence).unwrap_err();
            assert!(error.reason.contains("found"), "{error}");
            assert_eq!(error.part, Part::ReleaseRecords);
        }
    }
}
