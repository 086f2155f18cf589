//! The log for tokio applications, over a store in memory that can be made to misbehave and over
//! local directories.

mod bad_input;
mod breaking;
mod crowded;
mod dropping;
mod ending;
mod enqueued;
#[cfg(feature = "metrics")]
mod figures;
#[cfg(unix)]
mod moved;
#[cfg(feature = "tracing")]
mod notices;
mod ownership;
mod reading;
mod reclaiming;
mod replaying;
mod round_trip;
mod stopping;
mod store;
mod trouble;
mod watching;

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sealog_tokio::{EntryId, Error, Options, ReadItem, RegionId, Wal};

const A: RegionId = RegionId(1);
const B: RegionId = RegionId(2);
const PREFIX: &str = "logs/a";

/// Every entry in an object of its own, one create at a time: the machine holds at most two such
/// batches and queues what comes after.
fn one_by_one() -> Options {
    Options {
        max_batch_bytes: 1,
        max_in_flight: 1,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        ..Options::default()
    }
}

/// All payloads of a region in order; a hole among them fails the test.
async fn payloads(wal: &Wal, region: RegionId) -> Vec<Bytes> {
    entries(wal, region).await.unwrap().into_iter().map(|(_, payload)| payload).collect()
}

async fn entries(wal: &Wal, region: RegionId) -> Result<Vec<(EntryId, Bytes)>, Error> {
    let items: Vec<ReadItem> = wal.read(region, EntryId::ZERO).try_collect().await?;
    Ok(items
        .into_iter()
        .map(|item| match item {
            ReadItem::Entry(entry) => (entry.id, entry.payload),
            ReadItem::Hole(hole) => panic!("{hole:?}"),
        })
        .collect())
}
