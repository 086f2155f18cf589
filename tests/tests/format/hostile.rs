//! Bytes that someone else chose.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sealog_core::error::Part;
use sealog_core::format::{
    Entry, Header, Object, SegmentMeta, Trailer, WriterRecord, decode_footer, decode_releases,
    decode_segment,
};
use sealog_core::types::{EntryId, ObjectSeq, RegionId};
use sealog_tests::fixture;

use crate::forge::{Field, fields, realign, repair, trailer};
use crate::limits::within_limits;
use crate::model::small_objects;
use crate::pieces::assert_sound;

const FIXTURES: [&str; 9] = [
    "start_first",
    "claim",
    "bare_start",
    "two_regions",
    "empty_payloads",
    "releases_only",
    "entries_and_releases",
    "last_sequence",
    "sparse_ids",
];

/// Reads a vector, and finds its fields.
fn vector(name: &str) -> (Bytes, Vec<Field>) {
    let bytes = fixture(&format!("{name}.wal"));
    let fields = fields(&Object::decode(&bytes).unwrap(), bytes.len());
    (bytes, fields)
}

/// What an object may say differently and still be one: nothing else in it repeats these fields.
/// The header's is checked against key and chain, and an id between a segment's first and last
/// only against its neighbours.
fn stands_alone(field: &str) -> bool {
    let header = ["sequence", "epoch", "predecessor", "predecessor's epoch", "boundary"];
    let reserved = ["releases: region", "releases: through", "writer: depth", "writer: name"];
    field.strip_prefix("header: ").is_some_and(|field| header.contains(&field))
        || reserved.contains(&field)
        || field.ends_with(": inner id")
}

#[test]
fn no_field_of_an_object_with_right_checksums_is_trusted() {
    let mut decoded = 0;
    for name in FIXTURES {
        let (bytes, fields) = vector(name);
        for field in &fields {
            for value in field.hostile_values(&bytes) {
                let mut forged = bytes.to_vec();
                field.set(&mut forged, value);
                repair(&mut forged);
                if let Ok(object) = assert_sound(&forged.into()) {
                    let what = format!("{name}: {} = {value}: {:?}", field.name, object.header);
                    assert!(stands_alone(&field.name), "{what}");
                    decoded += 1;
                }
            }
        }
    }
    assert!(decoded > 100, "the checksums are not repaired: only {decoded} forgeries decode");
}

/// A count is often written twice, an end follows from an offset and a length: one field alone
/// would be found out by the other.
#[test]
fn no_two_fields_of_an_object_with_right_checksums_are_trusted() {
    for name in ["two_regions", "entries_and_releases", "start_first"] {
        let (bytes, fields) = vector(name);
        let values: Vec<_> = fields.iter().map(|field| field.hostile_values(&bytes)).collect();
        for first in 0..fields.len() {
            for second in first + 1..fields.len() {
                for a in &values[first] {
                    for b in &values[second] {
                        let mut forged = bytes.to_vec();
                        fields[first].set(&mut forged, *a);
                        fields[second].set(&mut forged, *b);
                        repair(&mut forged);
                        let _ = assert_sound(&forged.into());
                    }
                }
            }
        }
    }
}

/// Whoever reads a count and makes room for it dies here.
#[test]
fn huge_counts_with_right_checksums_are_refused_by_their_parts() {
    let (bytes, fields) = vector("entries_and_releases");
    let forged = |names: &[&str], value: u64| {
        let mut forged = bytes.to_vec();
        for name in names {
            let field = fields.iter().find(|field| field.name == *name).unwrap();
            field.set(&mut forged, value);
        }
        repair(&mut forged);
        assert_sound(&forged.into()).unwrap_err()
    };
    for count in [u64::from(u32::MAX), u64::from(u32::MAX / 12), 1 << 30, 1 << 20] {
        let error = forged(&["footer: count"], count);
        assert_eq!(error.part, Part::Footer, "{error}");
        let error = forged(&["segment 3: count", "row 3: count"], count);
        assert_eq!(error.part, Part::Segment(RegionId(3)), "{error}");
        let error = forged(&["releases: count"], count);
        assert_eq!(error.part, Part::ReleaseRecords, "{error}");
        let error = forged(&["segment 3: payload length"], count);
        assert_eq!(error.part, Part::Segment(RegionId(3)), "{error}");
    }
    for length in [u64::MAX, u64::MAX - 53, 1 << 63, 1 << 40] {
        let error = forged(&["row 3: length"], length);
        assert_eq!(error.part, Part::Footer, "{error}");
        let error = forged(&["trailer: footer length"], length);
        assert_eq!(error.part, Part::Trailer, "{error}");
    }
}

#[test]
fn every_flipped_bit_of_a_vector_is_found() {
    for name in FIXTURES {
        let (bytes, _) = vector(name);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(assert_sound(&flipped.into()).is_err(), "{name}: bit {bit}");
        }
    }
}

#[test]
fn every_cut_of_a_vector_is_found() {
    for name in FIXTURES {
        let (bytes, _) = vector(name);
        for left in 0..bytes.len() {
            assert!(assert_sound(&bytes.slice(..left)).is_err(), "{name}: {left} bytes left");
            assert!(assert_sound(&bytes.slice(left + 1..)).is_err(), "{name}: without {left}");
        }
    }
}

/// Something that happens to bytes.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Set(Index, Index),
    Truncate(Index),
    Remove(Index, usize),
    Insert(Index, Vec<u8>),
    Copy { from: Index, to: Index, length: usize },
    CopyIn { from: Index, to: Index, length: usize },
}

fn changes() -> impl Strategy<Value = Change> {
    let copy = || (any::<Index>(), any::<Index>(), 1..80usize);
    prop_oneof![
        2 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        6 => (any::<Index>(), any::<Index>()).prop_map(|(field, to)| Change::Set(field, to)),
        1 => any::<Index>().prop_map(Change::Truncate),
        2 => (any::<Index>(), 1..60usize).prop_map(|(at, length)| Change::Remove(at, length)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..60)).prop_map(|(at, new)| Change::Insert(at, new)),
        2 => copy().prop_map(|(from, to, length)| Change::Copy { from, to, length }),
        2 => copy().prop_map(|(from, to, length)| Change::CopyIn { from, to, length }),
    ]
}

/// `fields` are those of the object before its first change; later they may be anywhere.
fn apply(change: &Change, bytes: &mut Vec<u8>, fields: &[Field]) {
    if bytes.is_empty() {
        return;
    }
    let size = bytes.len();
    let part = |from: &Index, length: usize| {
        let from = from.index(size);
        from..size.min(from + length)
    };
    match change {
        Change::Flip(at, bit) => bytes[at.index(size)] ^= 1 << bit,
        Change::Set(field, to) => {
            let field = &fields[field.index(fields.len())];
            if field.at + field.width <= size {
                let values = field.hostile_values(bytes);
                field.set(bytes, values[to.index(values.len())]);
            }
        }
        Change::Truncate(left) => bytes.truncate(left.index(size)),
        Change::Remove(at, length) => drop(bytes.drain(part(at, *length))),
        Change::Insert(at, new) => drop(bytes.splice(part(at, 0), new.iter().copied())),
        Change::Copy { from, to, length } => {
            let copied = bytes[part(from, *length)].to_vec();
            let place = part(to, copied.len());
            bytes.splice(place, copied);
        }
        Change::CopyIn { from, to, length } => {
            let copied = bytes[part(from, *length)].to_vec();
            bytes.splice(part(to, 0), copied);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Repair {
    Nothing,
    Checksums,
    All,
}

fn repairs() -> impl Strategy<Value = Repair> {
    prop_oneof![Just(Repair::Nothing), Just(Repair::Checksums), Just(Repair::All)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn changed_objects_are_handled(
        model in small_objects(),
        changes in vec(changes(), 1..5),
        repaired in repairs(),
    ) {
        let (object, payload) = model.build();
        let mut bytes = payload.to_bytes().to_vec();
        let fields = fields(&object, bytes.len());
        changes.iter().for_each(|change| apply(change, &mut bytes, &fields));
        match repaired {
            Repair::Nothing => {}
            Repair::Checksums => repair(&mut bytes),
            Repair::All => {
                realign(&mut bytes);
                repair(&mut bytes);
            }
        }
        let _ = assert_sound(&bytes.into());
    }

    /// Two objects put together in the middle.
    #[test]
    fn spliced_objects_are_handled(
        (left, right) in (small_objects(), small_objects()),
        (cut, join) in (any::<Index>(), any::<Index>()),
        repaired in repairs(),
    ) {
        let (left, right) = (left.bytes(), right.bytes());
        let mut bytes = left[..cut.index(left.len())].to_vec();
        bytes.extend_from_slice(&right[join.index(right.len())..]);
        if matches!(repaired, Repair::All) {
            realign(&mut bytes);
        }
        if !matches!(repaired, Repair::Nothing) {
            repair(&mut bytes);
        }
        let _ = assert_sound(&bytes.into());
    }

    #[test]
    fn random_bytes_are_refused(bytes in vec(any::<u8>(), 0..600)) {
        prop_assert!(assert_sound(&bytes.clone().into()).is_err());
        prop_assert!(within_limits(bytes.len(), || Header::decode(&bytes)).is_err());
    }

    /// The size comes from a listing, the window from a read: they need not agree. Nor need offset
    /// and length, though their sum, wrapped around, is right.
    #[test]
    fn a_trailer_is_checked_against_any_size(
        model in small_objects(),
        window in vec(any::<u8>(), 0..100),
        size in prop_oneof![0..400u64, any::<u64>()],
        length in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..9u64).prop_map(Some)],
        real in any::<bool>(),
    ) {
        let mut window = if real { model.bytes().to_vec() } else { window };
        if let (Some(length), Some(at)) = (length, window.len().checked_sub(32)) {
            let length = length.wrapping_mul(48).wrapping_add(4);
            let offset = size.wrapping_sub(32).wrapping_sub(length);
            window[at..at + 8].copy_from_slice(&offset.to_be_bytes());
            window[at + 8..at + 16].copy_from_slice(&length.to_be_bytes());
        }
        if let Ok(trailer) = within_limits(window.len(), || Trailer::decode(&window, size)) {
            prop_assert_eq!(trailer.footer_range().end, size - 32);
            prop_assert!(trailer.footer_offset >= 54);
        }
    }

    /// A footer whose checksum is right, with rows of any kind.
    #[test]
    fn a_footer_of_any_rows_is_checked(
        rows in vec((0..4u64, 0..4u64, 0..4u64, 0..3u32, 0..120u64, 0..40u64), 0..5),
        count in prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)],
        body in prop_oneof![0..300u64, any::<u64>()],
    ) {
        let count = count.unwrap_or(rows.len() as u32);
        let mut footer = count.to_be_bytes().to_vec();
        let mut end = 54;
        for (region, min, max, count, offset, length) in rows {
            // Mostly where it should be.
            let offset = if offset < 100 { end } else { offset };
            end += length;
            [region, min, max].iter().for_each(|v| footer.extend(v.to_be_bytes()));
            footer.extend(count.to_be_bytes());
            [offset, length].iter().for_each(|v| footer.extend(v.to_be_bytes()));
            footer.extend([0; 4]);
        }
        for offset in [end, body] {
            let trailer = trailer(offset, &footer);
            let decoded = within_limits(footer.len(), || decode_footer(&footer, &trailer));
            if let Ok(rows) = decoded {
                let mut end = 54;
                for row in &rows {
                    prop_assert_eq!(row.offset, end);
                    prop_assert!(row.length >= 12 && row.count > 0 && row.min_id <= row.max_id);
                    end += row.length;
                }
                prop_assert_eq!(end, offset);
                prop_assert!(rows.is_sorted_by(|a, b| a.region < b.region));
            }
            prop_assert!(decode_footer(&footer[..footer.len() - 1], &trailer).is_err());
        }
    }

    /// A segment whose checksum is right, under a row of any kind.
    #[test]
    fn a_segment_is_checked_against_any_row(
        bytes in vec(prop_oneof![3 => Just(0u8), 1 => 0..4u8, 1 => any::<u8>()], 0..200),
        (region, count) in (0..3u64, prop_oneof![1..6u32, any::<u32>()]),
        (min, max) in (0..3u64, any::<u64>()),
        honest in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if honest && bytes.len() >= 12 {
            bytes[..8].copy_from_slice(&region.to_be_bytes());
            bytes[8..12].copy_from_slice(&count.to_be_bytes());
        }
        let meta = SegmentMeta {
            region: RegionId(region),
            min_id: EntryId(min),
            max_id: EntryId(max),
            count,
            offset: u64::MAX,
            length: bytes.len() as u64,
            crc: crc32fast::hash(&bytes),
        };
        let bytes = Bytes::from(bytes);
        if let Ok(entries) = within_limits(bytes.len(), || decode_segment(&bytes, &meta)) {
            prop_assert_eq!(entries.len(), count as usize);
            prop_assert!(entries.is_sorted_by(|a, b| a.id < b.id));
        }
    }

    #[test]
    fn reserved_payloads_of_any_bytes_are_handled(
        payload in vec(prop_oneof![0..3u8, any::<u8>()], 0..200),
        (version, count) in (0..3u8, 0..14u32),
        length in prop_oneof![0..260u16, any::<u16>()],
    ) {
        let sequence = ObjectSeq(5);
        let size = payload.len();
        let id = EntryId::new(sequence, 1).unwrap();
        let mut releases = payload.clone();
        if size >= 5 {
            releases[0] = version;
            releases[1..5].copy_from_slice(&count.to_be_bytes());
        }
        let entries = [Entry { id, payload: releases.into() }];
        if let Ok(records) = within_limits(size, || decode_releases(&entries, sequence)) {
            prop_assert_eq!(size, 5 + 16 * records.len());
        }
        let mut writer = payload;
        if size >= 29 {
            writer[0] = version;
            writer[27..29].copy_from_slice(&length.to_be_bytes());
        }
        let entries = [Entry { id, payload: writer.into() }];
        if let Ok(record) = within_limits(size, || WriterRecord::decode(&entries, sequence)) {
            prop_assert_eq!(record.encode(), &entries[0].payload);
        }
    }
}
