//! Generated objects.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;
use sealog_core::event::Payload;
use sealog_core::format::{
    COPY_LIMIT, Entry, Header, Object, ObjectEncoder, ReleaseRecord, WriterRecord, encode_releases,
};
use sealog_core::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};

/// What an object is to hold.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) header: Header,
    pub(crate) regions: BTreeMap<RegionId, Vec<Entry>>,
}

impl Model {
    /// The object that decoding must give, and the bytes.
    pub(crate) fn build(&self) -> (Object, Payload) {
        let mut encoder = ObjectEncoder::new();
        for (region, entries) in &self.regions {
            entries.iter().for_each(|entry| encoder.push(*region, entry.id, &entry.payload));
        }
        let (payload, table) = encoder.finish(&self.header);
        assert_eq!(table.len(), self.regions.len());
        let segments = table.into_iter().zip(self.regions.values().cloned()).collect();
        (Object { header: self.header, segments }, payload)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.build().1.to_bytes()
    }
}

/// Objects with payloads on both sides of the copy limit.
pub(crate) fn objects() -> impl Strategy<Value = Model> {
    models(prop_oneof![
        8 => 0..64usize,
        3 => 64..2048usize,
        2 => COPY_LIMIT - 2..COPY_LIMIT + 3,
        1 => COPY_LIMIT..40 << 10,
    ])
}

/// Objects small enough that a random change meets their structure.
pub(crate) fn small_objects() -> impl Strategy<Value = Model> {
    models(0..8usize)
}

fn models(sizes: impl Strategy<Value = usize> + Clone) -> impl Strategy<Value = Model> {
    let regions = btree_map(regions(), entries(sizes), 0..8);
    (headers(), regions, proptest::option::of(releases()), proptest::option::of(writers()))
        .prop_map(|(header, mut regions, releases, writer)| {
            let mut reserved = |region, payload: Option<Bytes>| {
                if let (Some(id), Some(payload)) = (EntryId::new(header.sequence, 1), payload) {
                    regions.insert(region, vec![Entry { id, payload }]);
                }
            };
            reserved(RegionId::RELEASES, releases.map(|records| encode_releases(&records)));
            reserved(RegionId::WRITER, writer.map(|writer| writer.encode()));
            Model { header, regions }
        })
}

fn headers() -> impl Strategy<Value = Header> {
    let sequences = prop_oneof![0..50u64, 0..ObjectSeq::LIMIT.0, Just(ObjectSeq::LIMIT.0 - 1)];
    // The largest value stands for no predecessor.
    let predecessors = prop_oneof![0..50u64, 0..u64::MAX];
    (sequences, any::<u64>(), proptest::option::of((predecessors, any::<u64>())), any::<u64>())
        .prop_map(|(sequence, epoch, predecessor, boundary)| Header {
            sequence: ObjectSeq(sequence),
            epoch: Epoch(epoch),
            predecessor: predecessor
                .map(|(seq, epoch)| Link { sequence: ObjectSeq(seq), epoch: Epoch(epoch) }),
            boundary: ObjectSeq(boundary % (sequence + 1)),
        })
}

/// Any but the reserved ones whose content is known: an unknown one may hold anything.
fn regions() -> impl Strategy<Value = RegionId> {
    prop_oneof![0..20u64, 0..=u64::MAX - 2, u64::MAX - 15..=u64::MAX - 2].prop_map(RegionId)
}

/// Ids ascend with any gaps, and need not be of the object.
fn entries(sizes: impl Strategy<Value = usize>) -> impl Strategy<Value = Vec<Entry>> {
    let ids = prop_oneof![0..100u64, any::<u64>(), u64::MAX - 20..=u64::MAX];
    (btree_set(ids, 1..9), proptest::collection::vec((sizes, any::<u8>()), 9)).prop_map(
        |(ids, payloads)| {
            let entry = |(id, (size, seed)): (u64, (usize, u8))| Entry {
                id: EntryId(id),
                payload: (0..size).map(|at| seed.wrapping_add((at * 7 + at / 256) as u8)).collect(),
            };
            ids.into_iter().zip(payloads).map(entry).collect()
        },
    )
}

pub(crate) fn releases() -> impl Strategy<Value = Vec<ReleaseRecord>> {
    btree_map(any::<u64>(), any::<u64>(), 0..8).prop_map(|records| {
        let record = |(region, through)| ReleaseRecord {
            region: RegionId(region),
            through: EntryId(through),
        };
        records.into_iter().map(record).collect()
    })
}

pub(crate) fn writers() -> impl Strategy<Value = WriterRecord> {
    let names = proptest::collection::vec(any::<char>(), 1..64);
    (any::<[u8; 16]>(), any::<u64>(), any::<u16>(), names).prop_map(
        |(nonce, opened_at_millis, max_in_flight, name)| {
            let name: String = name.into_iter().collect();
            WriterRecord { nonce, opened_at_millis, max_in_flight, name: name.into() }
        },
    )
}
