//! The open batch: entries that were admitted and not sealed (DESIGN.md section 5, admission).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::event::Payload;
use crate::event::{Append, Appended};
use crate::format::{
    ENTRY_HEADER_LEN, Header, MIN_OBJECT_LEN, ObjectEncoder, RELEASE_RECORD_LEN,
    RELEASES_HEADER_LEN, ReleaseRecord, SEGMENT_HEADER_LEN, SEGMENT_ROW_LEN, SegmentMeta,
    encode_releases,
};
use crate::types::{EntryId, ObjectSeq, RegionId, Time};

/// Entries get their ids from the sequence that the batch will take, and are encoded into their
/// region's segment, as they come.
#[derive(Clone, Debug)]
pub(crate) struct Batch<W> {
    sequence: ObjectSeq,
    /// When its first entry was admitted.
    opened_at: Time,
    encoder: ObjectEncoder,
    /// The size of the object if it were sealed now.
    bytes: u64,
    entries: u64,
    /// No region holds more entries than this.
    most_entries: u32,
    /// Regions that are released, each through this id.
    releases: BTreeMap<RegionId, EntryId>,
    pub(crate) appends: Vec<WaitingAppend<W>>,
    /// Flushes, releases, and whoever waits for ids in it to become durable.
    pub(crate) waits: Vec<W>,
}

/// An append that waits for its object.
#[derive(Clone, Debug)]
pub(crate) struct WaitingAppend<W> {
    pub(crate) waiter: W,
    pub(crate) ids: Appended,
    pub(crate) arrived: Time,
}

impl<W> Batch<W> {
    pub(crate) fn new(sequence: ObjectSeq, opened_at: Time) -> Batch<W> {
        Batch {
            sequence,
            opened_at,
            encoder: ObjectEncoder::new(),
            bytes: MIN_OBJECT_LEN,
            entries: 0,
            most_entries: 0,
            releases: BTreeMap::new(),
            appends: Vec::new(),
            waits: Vec::new(),
        }
    }

    pub(crate) fn sequence(&self) -> ObjectSeq {
        self.sequence
    }

    pub(crate) fn opened_at(&self) -> Time {
        self.opened_at
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// The largest id of a region in the batch.
    pub(crate) fn latest(&self, region: RegionId) -> Option<EntryId> {
        self.encoder.get(region).map(|segment| segment.last_id())
    }

    /// Whether it holds an id of the region at or below this one.
    pub(crate) fn holds(&self, region: RegionId, through: EntryId) -> bool {
        self.encoder.get(region).is_some() && EntryId(self.sequence.0 << 20) < through
    }

    /// Whether every region has positions left for its entries of this append.
    pub(crate) fn has_positions_for(&self, append: &Append) -> bool {
        let more = append.entries().len() as u64;
        // As good as always, and then nothing needs to be counted.
        if u64::from(self.most_entries) + more <= u64::from(EntryId::MAX_POSITION) {
            return true;
        }
        entries_per_region(append).into_iter().all(|(region, more)| {
            let held = self.encoder.get(region).map_or(0, |segment| segment.count());
            u64::from(held) + more <= u64::from(EntryId::MAX_POSITION)
        })
    }

    /// Admits an append that [has its positions](Batch::has_positions_for).
    pub(crate) fn admit(&mut self, append: &Append) -> Appended {
        match append {
            Append::One(region, payload) => Appended::One(self.push(*region, payload)),
            Append::Many(entries) => Appended::Many(
                entries.iter().map(|(region, payload)| self.push(*region, payload)).collect(),
            ),
        }
    }

    fn push(&mut self, region: RegionId, payload: &bytes::Bytes) -> EntryId {
        let segment = self.encoder.segment(region);
        let position = segment.count() + 1;
        debug_assert!(position <= EntryId::MAX_POSITION);
        let id = EntryId(self.sequence.0 << 20 | u64::from(position));
        segment.push(id, payload);
        if position == 1 {
            self.bytes += (SEGMENT_HEADER_LEN + SEGMENT_ROW_LEN) as u64;
        }
        self.bytes += (ENTRY_HEADER_LEN + payload.len()) as u64;
        self.entries += 1;
        self.most_entries = self.most_entries.max(position);
        id
    }

    /// Adds release records. Of one region the largest id wins.
    pub(crate) fn release(&mut self, records: impl IntoIterator<Item = (RegionId, EntryId)>) {
        let bytes = releases_len(self.releases.len());
        for (region, through) in records {
            let released = self.releases.entry(region).or_default();
            *released = through.max(*released);
        }
        self.bytes += releases_len(self.releases.len()) - bytes;
    }

    /// The regions with entries in it, in order.
    pub(crate) fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.encoder.regions()
    }

    /// The regions that it releases.
    pub(crate) fn releases(&self) -> &BTreeMap<RegionId, EntryId> {
        &self.releases
    }

    /// Closes the batch's object: its bytes, its table of segments, and the release records in it.
    pub(crate) fn encode(
        &mut self,
        header: &Header,
    ) -> (Payload, Vec<SegmentMeta>, Vec<ReleaseRecord>) {
        let record = |(region, through)| ReleaseRecord { region, through };
        let records: Vec<_> = core::mem::take(&mut self.releases).into_iter().map(record).collect();
        if !records.is_empty()
            && let Some(id) = EntryId::new(self.sequence, 1)
        {
            self.encoder.push(RegionId::RELEASES, id, &encode_releases(&records));
        }
        let (payload, segments) = core::mem::take(&mut self.encoder).finish(header);
        (payload, segments, records)
    }
}

/// What a segment of so many release records adds to an object.
fn releases_len(records: usize) -> u64 {
    if records == 0 {
        return 0;
    }
    let framing = SEGMENT_HEADER_LEN + SEGMENT_ROW_LEN + ENTRY_HEADER_LEN;
    (framing + RELEASES_HEADER_LEN + records * RELEASE_RECORD_LEN) as u64
}

/// How many entries an append has of each region.
pub(crate) fn entries_per_region(append: &Append) -> BTreeMap<RegionId, u64> {
    let mut counts = BTreeMap::new();
    for (region, _) in append.entries() {
        *counts.entry(region).or_default() += 1;
    }
    counts
}
