//! Entries that can be checked: each says who appended it, where and as which one, and what
//! follows is made from that.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sealog_tokio::{EntryId, ReadItem, RegionId, Wal};
use serde::{Deserialize, Serialize};

/// What an entry says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// The region that it was appended to.
    pub region: u64,
    /// Who appended it.
    pub author: u64,
    /// Which of its author's entries in the region it is, from 0 on, in the order of submission.
    pub counter: u64,
}

/// An entry that was acknowledged, or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// Its id.
    pub id: u64,
    /// What it says of itself.
    pub stamp: Stamp,
}

/// The region whose entries are larger than what the sockets between two processes can hold.
pub const LARGE: u64 = 1 << 32;

impl Stamp {
    /// The entry's payload: the stamp, and a filler whose length and bytes follow from it. Most
    /// are small; one in 32 is large enough to travel without a copy; in the region [`LARGE`] it
    /// is 16 MiB.
    pub fn payload(self) -> Bytes {
        let mut random = Random::new(mix(mix(self.region, self.author), self.counter));
        let length = match random.below(32) {
            _ if self.region == LARGE => 16 << 20,
            0 => 16 * 1024 + random.below(16 * 1024),
            _ => random.below(1500),
        };
        let mut payload = Vec::with_capacity(24 + length as usize + 8);
        for number in [self.region, self.author, self.counter] {
            payload.extend(number.to_be_bytes());
        }
        let filled = payload.len() + length as usize;
        while payload.len() < filled {
            payload.extend(random.next().to_be_bytes());
        }
        payload.truncate(filled);
        payload.into()
    }

    /// The stamp of a payload, if all of it is as it was appended.
    pub fn of(payload: &Bytes) -> Option<Stamp> {
        let number = |at: usize| {
            let bytes = payload.get(at..at + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let stamp = Stamp { region: number(0)?, author: number(8)?, counter: number(16)? };
        (stamp.payload() == *payload).then_some(stamp)
    }
}

/// All that a log holds, by region, in the order in which it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History(pub BTreeMap<u64, Vec<Stamped>>);

impl History {
    /// Reads every region of a log from its beginning.
    ///
    /// # Errors
    ///
    /// Says what is there and must not be: a hole, a payload that is not as it was appended, an
    /// entry of another region, ids or an author's counters out of order or twice.
    pub async fn read(wal: &Wal) -> Result<History, String> {
        let mut history = History::default();
        for info in wal.regions().await.map_err(|error| error.to_string())? {
            let entries = read_region(wal, info.region).await?;
            history.0.insert(info.region.0, entries);
        }
        Ok(history)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this entry is there, under its id. Since no id and no stamp is twice in a history,
    /// it is there once.
    pub fn holds(&self, entry: &Stamped) -> bool {
        let Some(entries) = self.0.get(&entry.stamp.region) else { return false };
        entries
            .binary_search_by_key(&entry.id, |entry| entry.id)
            .is_ok_and(|i| entries[i] == *entry)
    }

    /// Panics unless every one of these is there.
    ///
    /// # Panics
    ///
    /// Names the first that is not there, and the situation.
    pub fn assert_holds(&self, entries: &[Stamped], situation: &str) {
        if let Some(lost) = entries.iter().find(|entry| !self.holds(entry)) {
            panic!("{situation}: {lost:?} was acknowledged and is not there");
        }
    }

    /// An author's entries in a region, in order.
    pub fn of_author(&self, region: u64, author: u64) -> Vec<Stamped> {
        let entries = self.0.get(&region).into_iter().flatten();
        entries.copied().filter(|entry| entry.stamp.author == author).collect()
    }

    /// Whether this is how it was before, and what was appended since.
    pub fn continues(&self, before: &History) -> bool {
        before.0.iter().all(|(region, entries)| {
            self.0.get(region).is_some_and(|now| now.starts_with(entries)) || entries.is_empty()
        })
    }
}

async fn read_region(wal: &Wal, region: RegionId) -> Result<Vec<Stamped>, String> {
    let mut entries: Vec<Stamped> = Vec::new();
    // The next counter that an author may use.
    let mut counters = BTreeMap::new();
    let mut read = wal.read(region, EntryId::ZERO);
    while let Some(item) = read.try_next().await.map_err(|error| error.to_string())? {
        let entry = match item {
            ReadItem::Entry(entry) => entry,
            ReadItem::Hole(hole) => return Err(format!("region {region}: {hole:?}")),
        };
        let id = entry.id.0;
        let Some(stamp) = Stamp::of(&entry.payload).filter(|stamp| stamp.region == region.0) else {
            return Err(format!("region {region}: entry {id} was never appended"));
        };
        if entries.last().is_some_and(|last| last.id >= id) {
            return Err(format!("region {region}: entry {id} is out of order"));
        }
        let next = counters.entry(stamp.author).or_insert(0);
        if stamp.counter < *next {
            return Err(format!("region {region}: {stamp:?} is twice, or out of order"));
        }
        *next = stamp.counter + 1;
        entries.push(Stamped { id, stamp });
    }
    Ok(entries)
}

/// Numbers from a seed, the same each time (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next number, brought below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn mix(a: u64, b: u64) -> u64 {
    Random::new(a.rotate_left(32) ^ b).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_tells_its_stamp_and_a_changed_one_does_not() {
        for counter in 0..100 {
            let stamp = Stamp { region: 1, author: 2, counter };
            let payload = stamp.payload();
            assert_eq!(Stamp::of(&payload), Some(stamp));
            let mut changed = payload.to_vec();
            let last = changed.len() - 1;
            changed[last] ^= 1;
            assert_eq!(Stamp::of(&changed.into()), None);
            assert_eq!(Stamp::of(&payload.slice(..last)), None);
        }
    }
}
