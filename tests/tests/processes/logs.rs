//! Logs in the states that an opening may find.

use sealog_core::format::{Header, ObjectEncoder};
use sealog_core::{EntryId, Epoch, Link, ObjectSeq};
use sealog_tests::entries::{Stamp, Stamped};
use sealog_tests::place::{Place, named};
use sealog_tokio::object_store::{ObjectStoreExt, path::Path};
use sealog_tokio::{RegionId, Wal};

/// A log as an opening finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Template {
    Empty,
    Clean,
    /// Of two batches on their way when the writer died, the second one landed.
    Hole,
    /// The same, and where the first one is missing an opening that died has left its claim.
    Orphan,
}

impl Template {
    pub(crate) const ALL: [Template; 4] =
        [Template::Empty, Template::Clean, Template::Hole, Template::Orphan];

    /// How many objects there are.
    pub(crate) fn objects(self) -> usize {
        match self {
            Template::Empty => 0,
            Template::Clean => 7,
            Template::Hole => 8,
            Template::Orphan => 9,
        }
    }

    /// Makes the log. Gives what was acknowledged in it, and the writer if it still has it.
    pub(crate) async fn make(self, place: &Place) -> (Vec<Stamped>, Option<Wal>) {
        if self == Template::Empty {
            return (Vec::new(), None);
        }
        let wal = place.open(named("before")).await.unwrap();
        let mut acked = Vec::new();
        for counter in 0..3 {
            for region in [1, 2] {
                let stamp = Stamp { region, author: 1, counter };
                let id = wal.append(RegionId(region), stamp.payload()).await.unwrap();
                acked.push(Stamped { id: id.0, stamp });
            }
        }
        if self == Template::Clean {
            return (acked, Some(wal));
        }
        let tip = wal.durable(RegionId(2)).await.unwrap().sequence();
        let missing = Link { sequence: tip.next(), epoch: wal.epoch() };
        drop(wal);
        if self == Template::Orphan {
            let epoch = Epoch::claimed_at(missing.sequence);
            let itself = Link { epoch, ..missing };
            put(place, itself, itself, None).await;
        }
        let orphan = Link { sequence: missing.sequence.next(), epoch: missing.epoch };
        let stamp = Stamp { region: 1, author: 1, counter: 99 };
        put(place, orphan, missing, Some(stamp)).await;
        (acked, None)
    }
}

/// Puts an object with at most one entry.
async fn put(place: &Place, link: Link, predecessor: Link, stamp: Option<Stamp>) {
    let Link { sequence, epoch } = link;
    let boundary = ObjectSeq::ZERO;
    let header = Header { sequence, epoch, predecessor: Some(predecessor), boundary };
    let mut object = ObjectEncoder::new();
    if let Some(stamp) = stamp {
        let id = EntryId::new(sequence, 1).unwrap();
        object.push(RegionId(stamp.region), id, &stamp.payload());
    }
    let bytes = object.finish(&header).0.to_bytes();
    let location = place.location();
    let key = Path::parse(location.prefix.object_key(sequence)).unwrap();
    location.store.put(&key, bytes.into()).await.unwrap();
}
