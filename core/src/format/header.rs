//! The first 54 bytes of an object.

use alloc::format;
use alloc::string::String;

use crate::error::{DecodeError, Part};
use crate::types::{Epoch, Link, ObjectSeq};

/// The length of a header in bytes.
pub const HEADER_LEN: usize = 54;

const MAGIC: [u8; 8] = *b"GTWALOBJ";
const VERSION: u16 = 1;
const NO_PREDECESSOR: u64 = u64::MAX;

/// What an object says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Its sequence, below [`ObjectSeq::LIMIT`].
    pub sequence: ObjectSeq,
    /// The epoch of the writer that made it.
    pub epoch: Epoch,
    /// The object before it in its chain; none for the first of a chain. It is not judged by the
    /// decoder: it may be at or above the object's own sequence.
    pub predecessor: Option<Link>,
    /// Objects below this sequence were not needed when this one was sealed. At most `sequence`.
    pub boundary: ObjectSeq,
}

impl Header {
    /// The object's identity.
    pub fn link(&self) -> Link {
        Link { sequence: self.sequence, epoch: self.epoch }
    }

    /// Whether the object links to itself, as a claim does (DESIGN.md section 12). Such an object
    /// is never part of history.
    pub fn links_to_itself(&self) -> bool {
        self.predecessor == Some(self.link())
    }

    /// The header, if it is that of the object at `sequence`.
    ///
    /// # Errors
    ///
    /// [`Part::Header`]: it names another sequence.
    pub fn at(self, sequence: ObjectSeq) -> Result<Header, DecodeError> {
        if self.sequence == sequence {
            return Ok(self);
        }
        let found = self.sequence;
        let reason = format!("expected sequence {sequence}, as the key says, found {found}");
        Err(DecodeError::new(Part::Header, reason))
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let (prev_sequence, prev_epoch) = match self.predecessor {
            Some(link) => (link.sequence.0, link.epoch.0),
            None => (NO_PREDECESSOR, 0),
        };
        let mut out = [0; HEADER_LEN];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_be_bytes());
        out[10..18].copy_from_slice(&self.sequence.0.to_be_bytes());
        out[18..26].copy_from_slice(&self.epoch.0.to_be_bytes());
        out[26..34].copy_from_slice(&prev_sequence.to_be_bytes());
        out[34..42].copy_from_slice(&prev_epoch.to_be_bytes());
        out[42..50].copy_from_slice(&self.boundary.0.to_be_bytes());
        let crc = crc32fast::hash(&out[..50]);
        out[50..].copy_from_slice(&crc.to_be_bytes());
        out
    }

    /// The version that these bytes say if they begin an object of a later version of the format.
    /// The header's checksum tells that from damage: it stays where it is in every version.
    pub fn later_version(bytes: &[u8]) -> Option<u16> {
        let bytes = bytes.first_chunk::<HEADER_LEN>()?;
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        let checksum = u32::from_be_bytes([bytes[50], bytes[51], bytes[52], bytes[53]]);
        let is_sound = bytes[..8] == MAGIC && crc32fast::hash(&bytes[..50]) == checksum;
        (version > VERSION && is_sound).then_some(version)
    }

    /// Decodes the first [`HEADER_LEN`] bytes of `bytes`.
    ///
    /// # Errors
    ///
    /// [`Part::Object`] when there are fewer, [`Part::Header`] for anything else.
    pub fn decode(bytes: &[u8]) -> Result<Header, DecodeError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            let found = bytes.len();
            return Err(DecodeError::new(
                Part::Object,
                format!("expected at least {HEADER_LEN} bytes, found {found}"),
            ));
        };
        let refuse = |reason: String| Err(DecodeError::new(Part::Header, reason));
        let u64_at = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(field)
        };
        if bytes[..8] != MAGIC {
            let found = bytes[..8].escape_ascii();
            return refuse(format!("expected the magic GTWALOBJ, found {found}"));
        }
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return refuse(format!("expected version {VERSION}, found {version}: unsupported"));
        }
        let found = u32::from_be_bytes([bytes[50], bytes[51], bytes[52], bytes[53]]);
        let computed = crc32fast::hash(&bytes[..50]);
        if found != computed {
            return refuse(format!(
                "expected checksum {computed:08x} of its bytes, found {found:08x}"
            ));
        }
        let (sequence, epoch, boundary) =
            (ObjectSeq(u64_at(10)), Epoch(u64_at(18)), ObjectSeq(u64_at(42)));
        if !sequence.is_valid() {
            return refuse(format!("expected a sequence below 2^44, found {sequence}"));
        }
        if boundary > sequence {
            return refuse(format!("expected a boundary of at most {sequence}, found {boundary}"));
        }
        let predecessor = match (u64_at(26), u64_at(34)) {
            (NO_PREDECESSOR, 0) => None,
            (NO_PREDECESSOR, epoch) => {
                return refuse(format!("expected epoch 0 with no predecessor, found {epoch}"));
            }
            (sequence, epoch) => Some(Link { sequence: ObjectSeq(sequence), epoch: Epoch(epoch) }),
        };
        Ok(Header { sequence, epoch, predecessor, boundary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        sequence: ObjectSeq(0x0102),
        epoch: Epoch(0x0304),
        predecessor: Some(Link { sequence: ObjectSeq(0x0506), epoch: Epoch(0x0708) }),
        boundary: ObjectSeq(0x0009),
    };

    /// Changes a header's bytes, and makes the checksum right again.
    fn changed(change: impl FnOnce(&mut [u8; HEADER_LEN])) -> Result<Header, DecodeError> {
        let mut bytes = HEADER.encode();
        change(&mut bytes);
        let crc = crc32fast::hash(&bytes[..50]);
        bytes[50..].copy_from_slice(&crc.to_be_bytes());
        Header::decode(&bytes)
    }

    #[test]
    fn a_later_version_is_told_from_damage_by_the_checksum() {
        let mut bytes = HEADER.encode();
        assert_eq!(Header::later_version(&bytes), None, "it is ours");
        bytes[9] = 2;
        assert_eq!(Header::later_version(&bytes), None, "its checksum does not hold");
        let crc = crc32fast::hash(&bytes[..50]);
        bytes[50..].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(Header::later_version(&bytes), Some(2));
        assert_eq!(Header::later_version(&bytes[..53]), None);
        bytes[9] = 0;
        let crc = crc32fast::hash(&bytes[..50]);
        bytes[50..].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(Header::later_version(&bytes), None, "no version is earlier than 1");
    }

    #[test]
    fn every_field_has_its_place() {
        let bytes = HEADER.encode();
        assert_eq!(&bytes[..10], b"GTWALOBJ\0\x01");
        for (at, value) in [(10, 0x0102), (18, 0x0304), (26, 0x0506), (34, 0x0708), (42, 0x0009)] {
            assert_eq!(bytes[at..at + 8], u64::to_be_bytes(value), "offset {at}");
        }
        assert_eq!(bytes[50..], crc32fast::hash(&bytes[..50]).to_be_bytes());
        assert_eq!(Header::decode(&bytes), Ok(HEADER));
    }

    #[test]
    fn only_the_first_bytes_count() {
        let bytes = [HEADER.encode().as_slice(), &[7; 9]].concat();
        assert_eq!(Header::decode(&bytes), Ok(HEADER));
        let error = Header::decode(&bytes[..HEADER_LEN - 1]).unwrap_err();
        assert_eq!(error.part, Part::Object);
    }

    #[test]
    fn a_first_object_has_no_predecessor() {
        let first = Header { predecessor: None, ..HEADER };
        let bytes = first.encode();
        assert_eq!(bytes[26..42], [[0xff; 8], [0; 8]].concat());
        assert_eq!(Header::decode(&bytes), Ok(first));
        let error = changed(|bytes| bytes[26..34].fill(0xff)).unwrap_err();
        assert_eq!(error.part, Part::Header);
        assert!(error.reason.contains("no predecessor, found 1800"), "{error}");
    }

    #[test]
    fn a_predecessor_is_not_judged() {
        let own = HEADER.link();
        let ahead = Link { sequence: ObjectSeq(u64::MAX - 1), epoch: Epoch(0) };
        for predecessor in [own, ahead] {
            let header = Header { predecessor: Some(predecessor), ..HEADER };
            assert_eq!(Header::decode(&header.encode()), Ok(header));
            assert_eq!(header.links_to_itself(), predecessor == own);
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let limit = ObjectSeq::LIMIT.0;
        let sequence = |value: u64| changed(|b| b[10..18].copy_from_slice(&value.to_be_bytes()));
        assert_eq!(sequence(limit - 1).unwrap().sequence, ObjectSeq(limit - 1));
        let boundary = |value: u64| changed(|b| b[42..50].copy_from_slice(&value.to_be_bytes()));
        assert_eq!(boundary(0x0102).unwrap().boundary, ObjectSeq(0x0102));
        for refused in [sequence(limit), sequence(u64::MAX), boundary(0x0103), boundary(u64::MAX)] {
            assert_eq!(refused.unwrap_err().part, Part::Header);
        }
    }

    #[test]
    fn other_versions_are_unsupported_rather_than_damaged() {
        for version in [0, 2] {
            let error = changed(|bytes| bytes[9] = version).unwrap_err();
            assert!(error.reason.contains("unsupported"), "{error}");
        }
    }
}
