//! The frozen vectors of `fixtures/conformance`: what an implementation of FORMAT.md and of
//! DESIGN.md section 3 must make of them.

use std::collections::BTreeMap;
use std::fs;

use bytes::Bytes;
use sealog_core::chain::{LostHistory, Present, Proof, Selection, next_sequence, select};
use sealog_core::error::Part;
use sealog_core::format::{Header, Object, SegmentMeta};
use sealog_core::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};
use sealog_tests::{conformance_dir, encode, fixture};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Name, size and CRC32 of every file.
const FROZEN: &[(&str, usize, u32)] = &[
    ("bare_start.wal", 90, 0x1581db3b),
    ("chains.json", 540406, 0xd7064f3b),
    ("claim.wal", 197, 0x8937acfb),
    ("corruptions.json", 16957, 0x995fc291),
    ("crafted.json", 11025, 0x2ecfc8eb),
    ("empty_payloads.wal", 210, 0x217ccd5d),
    ("entries_and_releases.wal", 365, 0xbe33481d),
    ("last_sequence.wal", 165, 0x366a2347),
    ("releases_only.wal", 199, 0x4116f9ce),
    ("sparse_ids.wal", 210, 0x5aa4a555),
    ("start_first.wal", 197, 0xf44813b4),
    ("thousand.wal", 76690, 0x7fe1bfc1),
    ("two_regions.wal", 265, 0xb4165f28),
    ("vectors.json", 173204, 0xac23aa69),
];

#[test]
fn the_vectors_are_frozen() {
    for (name, size, crc) in FROZEN {
        let bytes = fixture(name);
        assert!(
            (bytes.len(), crc32fast::hash(&bytes)) == (*size, *crc),
            "fixtures/conformance/{name} was changed: it is frozen, so that the format is. \
             Restore it with git; if the format gets a new version, add new files beside the old"
        );
    }
    let present = fs::read_dir(conformance_dir()).unwrap();
    let mut present: Vec<_> = present.map(|file| file.unwrap().file_name()).collect();
    present.sort();
    let known: Vec<_> = FROZEN.iter().map(|(name, ..)| *name).collect();
    assert_eq!(present, known, "the list of frozen files, and the files");
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    header: HeaderRow,
    footer: Vec<FooterRow>,
    entries: Vec<EntryRow>,
    size: u64,
    crc32: u32,
}

#[derive(Clone, Copy, Deserialize)]
struct HeaderRow {
    seq: u64,
    epoch: u64,
    prev: Option<(u64, u64)>,
    boundary: u64,
}

#[derive(Deserialize)]
struct FooterRow {
    region: u64,
    min: u64,
    max: u64,
    count: u32,
    offset: u64,
    length: u64,
    crc: u32,
}

#[derive(Deserialize)]
struct EntryRow {
    region: u64,
    id: u64,
    /// Left out of some entries.
    payload_hex: Option<String>,
    payload_crc32: u32,
    payload_len: usize,
}

#[test]
fn every_vector_decodes_to_what_is_recorded_and_encodes_back() {
    let vectors: Vec<Vector> = json("vectors.json");
    let listed: Vec<_> = FROZEN.iter().filter(|(name, ..)| name.ends_with(".wal")).collect();
    assert_eq!(vectors.len(), listed.len(), "every .wal is described");
    for vector in vectors {
        let name = &vector.name;
        let bytes = fixture(&format!("{name}.wal"));
        assert_eq!(bytes.len() as u64, vector.size, "{name}: size");
        assert_eq!(crc32fast::hash(&bytes), vector.crc32, "{name}: checksum of the file");

        let object = Object::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(object.header, header(&vector.header), "{name}");
        let metas: Vec<_> = object.segments.iter().map(|(meta, _)| *meta).collect();
        assert_eq!(metas, vector.footer.iter().map(meta).collect::<Vec<_>>(), "{name}");

        let entries = || {
            object.segments.iter().flat_map(|(meta, entries)| {
                entries.iter().map(|entry| (meta.region, entry.id, &entry.payload))
            })
        };
        assert_eq!(entries().count(), vector.entries.len(), "{name}: entries");
        for ((region, id, payload), row) in entries().zip(&vector.entries) {
            assert_eq!((region, id), (RegionId(row.region), EntryId(row.id)), "{name}");
            assert_eq!(payload.len(), row.payload_len, "{name}: entry {id}");
            assert_eq!(crc32fast::hash(payload), row.payload_crc32, "{name}: entry {id}");
            if let Some(digits) = &row.payload_hex {
                assert_eq!(*payload, hex(digits), "{name}: entry {id}");
            }
        }

        assert_eq!(encode(&object), bytes, "{name}: encoded back");
    }
}

#[derive(Deserialize)]
struct Corruption {
    base: String,
    /// Of a change: where, and to which bytes.
    offset: Option<usize>,
    hex: Option<String>,
    /// Of a cut: how many bytes are left.
    truncate: Option<usize>,
    part: String,
}

#[test]
fn every_corruption_is_refused_with_its_part() {
    for corruption in json::<Vec<Corruption>>("corruptions.json") {
        let mut bytes = fixture(&format!("{}.wal", corruption.base)).to_vec();
        let (base, at) = (&corruption.base, corruption.offset.or(corruption.truncate));
        match (corruption.offset, &corruption.hex, corruption.truncate) {
            (Some(offset), Some(digits), None) => {
                let change = hex(digits);
                let place = &mut bytes[offset..offset + change.len()];
                assert_ne!(place, &change[..], "{base} at {offset}: nothing is changed");
                place.copy_from_slice(&change);
            }
            (None, None, Some(left)) => bytes.truncate(left),
            _ => panic!("{base} at {at:?}: neither a change nor a cut"),
        }
        assert_refused(bytes.into(), &corruption.part, &format!("{base} at {at:?}"));
    }
}

#[derive(Deserialize)]
struct Crafted {
    why: String,
    part: String,
    hex: String,
}

#[test]
fn every_crafted_object_is_refused_with_its_part() {
    for crafted in json::<Vec<Crafted>>("crafted.json") {
        assert_refused(hex(&crafted.hex), &crafted.part, &crafted.why);
    }
}

/// `parts` is `any`, or the names that are accepted.
fn assert_refused(bytes: Bytes, parts: &str, what: &str) {
    let error = match Object::decode(&bytes) {
        Ok(_) => panic!("{what}: it decodes, expected: {parts}"),
        Err(error) => error,
    };
    let part = match error.part {
        Part::Segment(region) => format!("segment {region}"),
        part => part.to_string(),
    };
    let named = parts == "any" || parts.split(" or ").any(|accepted| accepted == part);
    assert!(named, "{what}: expected {parts}, found {part}: {}", error.reason);
    assert!(!error.reason.is_empty(), "{what}: no reason");
}

#[derive(Deserialize)]
struct ChainCase {
    /// What the writer records of start objects name.
    depth: u16,
    objects: Vec<HeaderRow>,
    expect: Expected,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Expected {
    Selected {
        tip: u64,
        chain: Vec<u64>,
        below_boundary: Vec<u64>,
        orphans: Vec<u64>,
        next_seq: u64,
    },
    Lost {
        error: String,
    },
}

#[test]
fn every_prefix_has_the_chain_that_is_recorded() {
    let cases: Vec<ChainCase> = json("chains.json");
    assert!(!cases.is_empty());
    for (place, case) in cases.iter().enumerate() {
        let objects = case.present();
        match (select(&objects), &case.expect) {
            (Ok(found), Expected::Selected { tip, chain, below_boundary, orphans, next_seq }) => {
                let Selection { tip: found_tip, incomplete_above_tip: _, .. } = found;
                assert_eq!(found_tip.sequence, ObjectSeq(*tip), "case {place}: tip");
                assert_eq!(objects[&found_tip.sequence].header.link(), found_tip, "case {place}");
                assert_eq!(found.chain, seqs(chain), "case {place}: chain");
                assert_eq!(found.below_boundary, seqs(below_boundary), "case {place}: below");
                assert_eq!(found.orphans, seqs(orphans), "case {place}: orphans");
                let epochs = objects.values().map(|present| present.header.epoch);
                let listed = objects.keys().next_back().copied();
                let next = next_sequence(listed, epochs.max(), []);
                assert_eq!(next, Some(ObjectSeq(*next_seq)), "case {place}: next sequence");
            }
            (Err(lost), Expected::Lost { error }) => {
                assert_eq!(name(lost.proof), error, "case {place}");
                assert_names_what_is_missing(&objects, &lost, place);
            }
            (found, expected) => panic!("case {place}: found {found:?}, expected {expected:?}"),
        }
    }
}

/// The missing predecessor is what a present object links to, and it is not there. A claim, which
/// links to itself, is the proof only where nothing else is.
fn assert_names_what_is_missing(
    objects: &BTreeMap<ObjectSeq, Present>,
    lost: &LostHistory,
    place: usize,
) {
    let because = objects[&lost.because.sequence].header;
    assert_eq!(because.link(), lost.because, "case {place}");
    if because.links_to_itself() {
        assert!(lost.missing < because.sequence, "case {place}: object {}", lost.missing);
        return;
    }
    let missing = objects.values().filter_map(|present| present.header.predecessor).any(|link| {
        let there = objects.get(&link.sequence).is_some_and(|there| there.header.link() == link);
        link.sequence == lost.missing && !there
    });
    assert!(missing, "case {place}: object {} is not missing", lost.missing);
}

impl ChainCase {
    fn present(&self) -> BTreeMap<ObjectSeq, Present> {
        let rows = self.objects.iter().map(|row| {
            let header = header(row);
            let claims = header.epoch == Epoch::claimed_at(header.sequence);
            let max_in_flight = claims.then_some(self.depth);
            (header.sequence, Present { header, max_in_flight })
        });
        rows.collect()
    }
}

fn name(proof: Proof) -> &'static str {
    match proof {
        Proof::NoCompleteChain => "no complete chain",
        Proof::BoundaryBeyondTip => "boundary beyond the tip",
        Proof::EpochBeyondTip => "epoch beyond the tip",
        Proof::MoreThanAPipeline => "more than a pipeline beyond the tip",
    }
}

fn header(row: &HeaderRow) -> Header {
    Header {
        sequence: ObjectSeq(row.seq),
        epoch: Epoch(row.epoch),
        predecessor: row
            .prev
            .map(|(seq, epoch)| Link { sequence: ObjectSeq(seq), epoch: Epoch(epoch) }),
        boundary: ObjectSeq(row.boundary),
    }
}

fn meta(row: &FooterRow) -> SegmentMeta {
    SegmentMeta {
        region: RegionId(row.region),
        min_id: EntryId(row.min),
        max_id: EntryId(row.max),
        count: row.count,
        offset: row.offset,
        length: row.length,
        crc: row.crc,
    }
}

fn seqs(sequences: &[u64]) -> Vec<ObjectSeq> {
    sequences.iter().copied().map(ObjectSeq).collect()
}

fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn hex(digits: &str) -> Bytes {
    assert!(digits.len().is_multiple_of(2), "an odd number of digits");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}
