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
