//! What is encoded decodes to the same.

use bytes::Bytes;
use proptest::prelude::*;
use sealog_core::format::{
    COPY_LIMIT, Entry, HEADER_LEN, Header, Object, ReservedContent, TRAILER_LEN, Trailer,
    WriterRecord, decode_releases, encode_releases,
};
use sealog_core::types::{EntryId, ObjectSeq, RegionId};
use sealog_tests::encode;

use crate::model::{objects, releases, writers};
use crate::pieces::{assert_sound, decode_pieces};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn an_object_decodes_to_what_was_encoded(model in objects()) {
        let (expected, payload) = model.build();
        let bytes = payload.to_bytes();
        prop_assert_eq!(payload.len(), bytes.len() as u64);
        prop_assert_eq!(&Object::decode(&bytes).unwrap(), &expected);
        prop_assert_eq!(&decode_pieces(&bytes).unwrap(), &expected);
        prop_assert_eq!(encode(&expected), &bytes);
        prop_assert!(assert_sound(&bytes).is_ok());
    }

    /// DESIGN.md section 5: a payload of 16 KiB or more is not copied at all.
    #[test]
    fn large_payloads_leave_as_the_buffers_that_came_in(model in objects()) {
        let (object, payload) = model.build();
        let is_chunk = |of: &Bytes| {
            payload.chunks().iter().any(|c| (c.as_ptr(), c.len()) == (of.as_ptr(), of.len()))
        };
        for entry in object.segments.iter().flat_map(|(_, entries)| entries) {
            prop_assert_eq!(is_chunk(&entry.payload), entry.payload.len() >= COPY_LIMIT);
        }
        prop_assert!(payload.chunks().iter().all(|chunk| !chunk.is_empty()));
    }

    #[test]
    fn decoded_payloads_share_what_was_read(model in objects()) {
        let bytes = model.bytes();
        let read = bytes.as_ptr_range();
        for (_, entries) in Object::decode(&bytes).unwrap().segments {
            for Entry { payload, .. } in entries.iter().filter(|e| !e.payload.is_empty()) {
                let held = payload.as_ptr_range();
                prop_assert!(read.start <= held.start && held.end <= read.end);
            }
        }
    }

    /// An opening has the header from one read and the trailer from another.
    #[test]
    fn any_window_leads_to_the_same_trailer(model in objects(), extra in any::<prop::sample::Index>()) {
        let bytes = model.bytes();
        let size = bytes.len();
        let window = TRAILER_LEN + extra.index(size - TRAILER_LEN + 1);
        let whole = Trailer::decode(&bytes, size as u64).unwrap();
        prop_assert_eq!(Trailer::decode(&bytes[size - window..], size as u64).unwrap(), whole);
        prop_assert_eq!(whole.footer_range().end, (size - TRAILER_LEN) as u64);
        prop_assert_eq!(Header::decode(&bytes[..HEADER_LEN]).unwrap(), model.header);
        prop_assert_eq!(model.header.encode(), &bytes[..HEADER_LEN]);
    }

    #[test]
    fn release_records_decode_to_what_was_encoded(records in releases()) {
        let sequence = ObjectSeq(77);
        let entry = Entry { id: EntryId::new(sequence, 1).unwrap(), payload: encode_releases(&records) };
        prop_assert_eq!(decode_releases(&[entry], sequence).unwrap(), records);
    }

    #[test]
    fn a_writer_record_decodes_to_what_was_encoded(writer in writers()) {
        let sequence = ObjectSeq(77);
        let entry = Entry { id: EntryId::new(sequence, 1).unwrap(), payload: writer.encode() };
        prop_assert_eq!(WriterRecord::decode(&[entry], sequence).unwrap(), writer);
    }

    #[test]
    fn reserved_content_is_found_where_it_is(model in objects()) {
        let object = Object::decode(&model.bytes()).unwrap();
        let found = object.reserved(RegionId::RELEASES).unwrap();
        let is_there = model.regions.contains_key(&RegionId::RELEASES);
        prop_assert_eq!(matches!(found, Some(ReservedContent::Releases(_))), is_there);
        let found = object.reserved(RegionId::WRITER).unwrap();
        let is_there = model.regions.contains_key(&RegionId::WRITER);
        prop_assert_eq!(matches!(found, Some(ReservedContent::Writer(_))), is_there);
        prop_assert_eq!(object.reserved(RegionId::FIRST_RESERVED).unwrap(), None);
    }
}
