//! The log on a real object store: the S3 endpoint that `SEALOG_TEST_S3_ENDPOINT` names, with a
//! bucket `sealog-test`. `scripts/moto run cargo test ...` provides an emulator.
//!
//! Without the variable every test here passes and has tested nothing, which it says on its
//! standard error; with `SEALOG_REQUIRE_S3=1` it fails instead.

mod bad_input;
mod late;
mod requests;
mod round_trip;
mod shells;

use sealog_core::ObjectSeq;
use sealog_tests::entries::{History, Stamp, Stamped};
use sealog_tests::place::Place;
use sealog_tokio::object_store::path::Path;
use sealog_tokio::object_store::{ObjectStoreExt, PutPayload};
use sealog_tokio::{RegionId, Wal, WriteError};

async fn append(wal: &Wal, region: u64, author: u64, counter: u64) -> Result<Stamped, WriteError> {
    let stamp = Stamp { region, author, counter };
    let id = wal.append(RegionId(region), stamp.payload()).await?;
    Ok(Stamped { id: id.0, stamp })
}

async fn history(wal: &Wal) -> History {
    History::read(wal).await.unwrap()
}

/// A history of these entries and no others.
fn history_of(entries: &[Stamped]) -> History {
    let mut history = History::default();
    for entry in entries {
        history.0.entry(entry.stamp.region).or_default().push(*entry);
    }
    history
}

fn object_path(place: &Place, sequence: u64) -> Path {
    Path::parse(place.location().prefix.object_key(ObjectSeq(sequence))).unwrap()
}

/// Puts something behind the log's back.
async fn plant(place: &Place, path: &Path, bytes: impl Into<PutPayload>) {
    place.location().store.put(path, bytes.into()).await.unwrap();
}

async fn bytes(place: &Place, path: &Path) -> bytes::Bytes {
    place.location().store.get(path).await.unwrap().bytes().await.unwrap()
}
