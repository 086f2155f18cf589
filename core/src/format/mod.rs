//! The byte format of FORMAT.md: version 1 of the object.
//!
//! ```text
//! object = header | segment* | footer | trailer
//! ```
//!
//! Decoders take untrusted bytes: they never panic, allocate in proportion to the bytes that they
//! hold, and name the part that does not decode, what was expected and what was found.

mod footer;
mod header;
mod object;
mod reserved;
mod segment;

pub use footer::{
    FooterParts, ROW_LEN as SEGMENT_ROW_LEN, SegmentMeta, TRAILER_LEN, Trailer, decode_footer,
    decode_rows,
};
pub use header::{HEADER_LEN, Header};
pub use object::{Object, ObjectEncoder, ReservedContent};
pub use reserved::{
    RECORD_LEN as RELEASE_RECORD_LEN, RELEASES_HEADER_LEN, ReleaseRecord, WriterRecord,
    decode_releases, encode_releases,
};
pub use segment::{
    COPY_LIMIT, ENTRY_HEADER_LEN, Entry, SEGMENT_HEADER_LEN, SegmentBuilder, decode_segment,
};

/// The smallest object: header, an empty footer, trailer.
pub const MIN_OBJECT_LEN: u64 = (HEADER_LEN + footer::COUNT_LEN + TRAILER_LEN) as u64;

/// How many of an object's last bytes an opening reads at once, in the hope that the footer is in
/// them. An object of up to this size is read whole.
pub const TAIL_WINDOW: u64 = 64 << 10;

/// What is larger than this is read, and checksummed, in parts: no length that an object states
/// makes anybody hold more at once before it has proved true.
pub const PART: u64 = 16 << 20;

/// Takes integers off the front of a slice; `None` when it is too short.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
