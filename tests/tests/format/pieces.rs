//! Decoding piece by piece, as an opening and a read do, against decoding whole.

use bytes::Bytes;
use sealog_core::DecodeError;
use sealog_core::error::Part;
use sealog_core::format::{
    Header, MIN_OBJECT_LEN, Object, TAIL_WINDOW, Trailer, decode_footer, decode_segment,
};
use sealog_core::types::RegionId;
use sealog_tests::encode;

use crate::limits::within_limits;

/// What the decoders make of the pieces. Nobody has looked at the object's checksum, nor into
/// reserved regions.
pub(crate) fn decode_pieces(bytes: &Bytes) -> Result<Object, DecodeError> {
    let size = bytes.len();
    let tail = &bytes[size.saturating_sub(TAIL_WINDOW as usize)..];
    if (size as u64) < MIN_OBJECT_LEN {
        return Err(Trailer::decode(tail, size as u64).expect_err("it is too short"));
    }
    let header = Header::decode(bytes)?;
    let trailer = Trailer::decode(tail, size as u64)?;
    let footer = trailer.footer_range();
    let table = decode_footer(&bytes[footer.start as usize..footer.end as usize], &trailer)?;
    let mut segments = Vec::with_capacity(table.len());
    for meta in table {
        let range = meta.range();
        let segment = bytes.slice(range.start as usize..range.end as usize);
        segments.push((meta, decode_segment(&segment, &meta)?));
    }
    Ok(Object { header, segments })
}

/// Decodes any bytes whole and piece by piece, within limits.
///
/// # Panics
///
/// The two ways differ in more than they must, or what decoded does not encode to the same bytes:
/// an object has one form only, so that the header and the size tell whether it is ours.
pub(crate) fn assert_sound(bytes: &Bytes) -> Result<Object, DecodeError> {
    let whole = within_limits(bytes.len(), || Object::decode(bytes));
    let pieces = within_limits(bytes.len(), || decode_pieces(bytes));
    match (&whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(*whole, pieces),
        (Err(whole), Err(pieces)) => assert_eq!(*whole, pieces),
        (Ok(_), Err(pieces)) => panic!("whole it decodes, in pieces not: {pieces}"),
        (Err(whole), Ok(pieces)) => match whole.part {
            Part::Trailer => assert!(whole.reason.contains("of the object"), "{whole}"),
            Part::ReleaseRecords => assert!(pieces.reserved(RegionId::RELEASES).is_err()),
            Part::WriterRecord => assert!(pieces.reserved(RegionId::WRITER).is_err()),
            _ => panic!("in pieces it decodes, whole not: {whole}"),
        },
    }
    if let Ok(object) = &whole {
        assert_eq!(encode(object), *bytes, "it decodes, and encodes to other bytes");
    }
    if let Err(error) = &whole {
        assert!(error.reason.contains("found"), "it does not say what was found: {error}");
    }
    whole
}
