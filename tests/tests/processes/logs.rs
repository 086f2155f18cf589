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
    /// Its writer still has it.
    Clean,
    /// Of two batches on their way when the writer died, the second one landed.
    Hole,
    /// The same, and where the first one is missing, an opening that died has left its claim.
    Claimed,
    /// Its writer still has it. A batch of the writer before landed late, and stands where the
    /// writer's next one is to go.
    Stale,
    /// The same, where the one after the next is to go.
    StaleBehindHole,
}

impl Template {
    pub(crate) const ALL: [Template; 6] = [
        Template::Empty,
        Template::Clean,
        Template::Hole,
        Template::Claimed,
        Template::Stale,
        Template::StaleBehindHole,
    ];

    /// Makes the log. Gives what was acknowledged in it, and the writer if it still has it.
    pub(crate) async fn make(self, place: &Place) -> (Vec<Stamped>, Option<Wal>) {
        if self == Template::Empty {
            return (Vec::new(), None);
        }
        let earlier = place.open(named("the one before")).await.unwrap().epoch();
        let wal = place.open(named("writer")).await.unwrap();
        let mut acked = Vec::new();
        for region in [1, 2] {
            let stamp = Stamp { region, author: 1, counter: 0 };
            let id = wal.append(RegionId(region), stamp.payload()).await.unwrap();
            acked.push(Stamped { id: id.0, stamp });
        }
        let tip = wal.durable(RegionId(2)).await.unwrap().sequence();
        let next = tip.next();
        let link = |sequence, epoch| Link { sequence, epoch };
        match self {
            Template::Empty | Template::Clean => {}
            Template::Hole => {
                leave_orphan(place, link(next.next(), wal.epoch()), link(next, wal.epoch())).await;
            }
            Template::Claimed => {
                let claim = link(next, Epoch::claimed_at(next));
                put(place, claim, claim, None).await;
                leave_orphan(place, link(next.next(), wal.epoch()), link(next, wal.epoch())).await;
            }
            Template::Stale => leave_orphan(place, link(next, earlier), link(tip, earlier)).await,
            Template::StaleBehindHole => {
                leave_orphan(place, link(next.next(), earlier), link(next, earlier)).await;
            }
        }
        let running = matches!(self, Template::Clean | Template::Stale | Template::StaleBehindHole);
        (acked, running.then_some(wal))
    }
}

/// What it holds was never acknowledged.
async fn leave_orphan(place: &Place, orphan: Link, predecessor: Link) {
    put(place, orphan, predecessor, Some(Stamp { region: 1, author: 1, counter: 99 })).await;
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
