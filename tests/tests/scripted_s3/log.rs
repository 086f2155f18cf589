//! Logs for the scripted S3, made by the log itself, and the record of what was acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use sealog_core::format::Header;
use sealog_tests::s3::S3;
use sealog_tokio::{EntryId, Options, RegionId, Wal};
use tokio::sync::OnceCell;

/// The log's prefix.
pub(crate) const PREFIX: &str = "log";

/// The region that all entries are of.
pub(crate) const REGION: RegionId = RegionId(7);

/// What is there before a row begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// Nothing.
    Empty,
    /// A start object and so many objects of an entry each.
    Of(u64),
    /// As `Of(5)`, of which the first four objects, the start object among them, were collected.
    Collected,
    /// The same, but that what is below the boundary is still there.
    Collectable,
    /// As `Of(5)`; object 3 has 70,000 bytes, so that its tail is read by itself.
    Large,
}

/// What a log holds, and what was acknowledged of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made {
    pub(crate) objects: BTreeMap<String, Bytes>,
    pub(crate) acknowledged: BTreeMap<EntryId, Bytes>,
}

pub(crate) fn key(sequence: u64) -> String {
    format!("{PREFIX}/objects/{sequence:020}.wal")
}

/// Every append in an object of its own, and nothing by itself.
pub(crate) fn one_by_one() -> Options {
    Options {
        max_batch_bytes: 1,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        reclaim_interval: Duration::ZERO,
        ..Options::default()
    }
}

impl Log {
    /// Puts the log into a bucket.
    pub(crate) async fn fill(self, s3: &S3) -> Made {
        let made = self.made().await;
        let mut bucket = s3.bucket();
        for (key, bytes) in &made.objects {
            bucket.put(key, bytes.clone());
        }
        drop(bucket);
        made
    }

    async fn made(self) -> Made {
        static LARGEST: OnceCell<Made> = OnceCell::const_new();
        static MIDDLE: OnceCell<Made> = OnceCell::const_new();
        match self {
            Log::Empty => Made::default(),
            Log::Of(2_500) => LARGEST.get_or_init(|| make(2_500)).await.clone(),
            Log::Of(1_100) => MIDDLE.get_or_init(|| make(1_100)).await.clone(),
            Log::Of(objects) => make(objects).await,
            Log::Collectable => collectable().await,
            Log::Collected => {
                let mut made = collectable().await;
                made.objects.retain(|name, _| *name >= key(4));
                assert_eq!(made.objects.len(), 2);
                made
            }
            Log::Large => {
                let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
                let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
                let mut made = Made::default();
                for number in 1..=5 {
                    append(&wal, &mut made, payload(number, if number == 3 { 70_000 } else { 8 }))
                        .await;
                }
                wal.stop().await.unwrap();
                made.objects = objects(&store).await;
                made
            }
        }
    }
}

fn payload(number: u64, len: usize) -> Bytes {
    let mut payload = vec![b'.'; len];
    let name = format!("{number:08}");
    payload[..name.len()].copy_from_slice(name.as_bytes());
    payload.into()
}

async fn append(wal: &Wal, made: &mut Made, payload: Bytes) {
    let id = wal.append(REGION, payload.clone()).await.unwrap();
    made.acknowledged.insert(id, payload);
}

async fn make(count: u64) -> Made {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let mut made = Made::default();
    for number in 1..=count {
        append(&wal, &mut made, payload(number, 8)).await;
    }
    wal.stop().await.unwrap();
    made.objects = objects(&store).await;
    assert_eq!(made.objects.len() as u64, count + 1);
    made
}

/// Its writer made the first entries obsolete, and everything below its boundary may be deleted, as
/// collections of later instances do in the end.
async fn collectable() -> Made {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let mut made = Made::default();
    for number in 1..=4 {
        append(&wal, &mut made, payload(number, 8)).await;
    }
    let obsolete = EntryId::new(sealog_tokio::ObjectSeq(3), 1).unwrap();
    wal.obsolete(REGION, obsolete).await.unwrap();
    append(&wal, &mut made, payload(5, 8)).await;
    wal.stop().await.unwrap();
    made.acknowledged.retain(|id, _| *id > obsolete);
    made.objects = objects(&store).await;
    let tip = Header::decode(&made.objects[&key(5)]).unwrap();
    assert_eq!(tip.boundary.0, 4);
    made
}

async fn objects(store: &Arc<dyn ObjectStore>) -> BTreeMap<String, Bytes> {
    let mut objects = BTreeMap::new();
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    for object in listed {
        let bytes = store.get(&object.location).await.unwrap().bytes().await.unwrap();
        objects.insert(object.location.to_string(), bytes);
    }
    objects
}
