//! What a restart costs: opening a log of 2,000 objects of 100 regions, and replaying all regions,
//! on a store that takes 20 ms for each request (DESIGN.md section 10).

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{FutureExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use sealog_tests::hooked::{Asked, Hooked, Moment};
use sealog_tests::place::Place;
use sealog_tokio::{EntryId, Options, RegionId, ReplayFilter, ReplayItem, Wal};
use tokio::time::Instant;

const OBJECTS: u64 = 2_000;
const REGIONS: u64 = 100;
const PER_OBJECT: u64 = 10;

/// Every append in an object of its own.
fn one_by_one() -> Options {
    Options {
        max_batch_bytes: 1,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        ..Options::default()
    }
}

async fn fill(store: Arc<dyn ObjectStore>, prefix: &str) -> BTreeMap<RegionId, Vec<EntryId>> {
    let wal = Wal::open(store, prefix, one_by_one()).await.unwrap();
    let mut written: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let batch = |object: u64| -> Vec<_> {
        let regions = (0..PER_OBJECT).map(|n| RegionId((object * 7 + n * 11) % REGIONS));
        regions.map(|region| (region, format!("{object} {region}").into())).collect()
    };
    // Some at once: what is submitted is stored in its order.
    for objects in (0..OBJECTS).collect::<Vec<_>>().chunks(50) {
        let submitted: Vec<_> = objects.iter().map(|object| batch(*object)).collect();
        let under_way: Vec<_> = submitted.iter().map(|b| wal.submit_batch(b.clone())).collect();
        for (batch, under_way) in submitted.iter().zip(under_way) {
            for ((region, _), id) in batch.iter().zip(under_way.await.unwrap()) {
                written.entry(*region).or_default().push(id);
            }
        }
    }
    wal.stop().await.unwrap();
    written
}

type Counts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// A store that takes its time for each request, and counts them.
fn slow(inner: Arc<dyn ObjectStore>, takes: Duration) -> (Arc<Hooked>, Counts) {
    let counts = Counts::default();
    let counted = counts.clone();
    let store = Hooked::new(inner, move |request| {
        let counted = counted.clone();
        async move {
            if request.moment == Moment::Before {
                let what = match request.asked {
                    Asked::List => "listings",
                    Asked::Get => "reads",
                    Asked::Put => "puts",
                };
                *counted.lock().unwrap().entry(what).or_default() += 1;
                tokio::time::sleep(takes).await;
            }
            Ok(())
        }
        .boxed()
    });
    (store, counts)
}

/// Opens and replays, prints what that took, and gives back how often what was asked.
async fn restart(
    store: Arc<dyn ObjectStore>,
    prefix: &str,
    takes: Duration,
    written: &BTreeMap<RegionId, Vec<EntryId>>,
) -> [BTreeMap<&'static str, u64>; 2] {
    let (slow, counts) = slow(store, takes);
    let take = || std::mem::take(&mut *counts.lock().unwrap());
    let began = Instant::now();
    let wal = Wal::open(slow, prefix, Options::default()).await.unwrap();
    let (opening, opened) = (take(), began.elapsed());
    assert_eq!(wal.stats().await.unwrap().recovered_objects_total, OBJECTS);

    let began = Instant::now();
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut replay = wal.replay(ReplayFilter::all());
    while let Some(item) = replay.try_next().await.unwrap() {
        match item {
            ReplayItem::Entry(region, entry) => found.entry(region).or_default().push(entry.id),
            ReplayItem::Hole(hole) => panic!("{hole:?}"),
        }
    }
    assert_eq!(found, *written);
    let (replaying, replayed) = (take(), began.elapsed());
    let mut err = std::io::stderr();
    writeln!(
        err,
        "{OBJECTS} objects, {takes:?} a request: opening {opening:?} in {opened:?}, \
         replay of {REGIONS} regions {replaying:?} in {replayed:?}"
    )
    .unwrap();
    wal.stop().await.unwrap();
    [opening, replaying]
}

/// Two listings of all and what is behind them, and the look. One read per object that was there, which are small, and of the first writer's start object, which
/// holds nothing, and of the own one; one per object with entries for the replay.
fn as_designed([opening, replaying]: [BTreeMap<&'static str, u64>; 2]) {
    assert_eq!(opening, [("listings", 5), ("puts", 3), ("reads", OBJECTS + 2)].into());
    assert_eq!(replaying, [("reads", OBJECTS)].into());
}

#[tokio::test(start_paused = true)]
async fn a_restart_costs_a_read_of_each_object_and_another_for_its_entries() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let written = fill(store.clone(), "log").await;
    as_designed(restart(store, "log", Duration::from_millis(20), &written).await);
}

/// The same on S3, where it takes what it takes.
#[tokio::test]
async fn a_restart_costs_as_much_on_a_bucket() {
    let Some(place) = Place::bucket("restart") else { return };
    let location = place.location();
    let written = fill(location.store.clone(), location.prefix.as_str()).await;
    let prefix = location.prefix.as_str();
    as_designed(restart(location.store.clone(), prefix, Duration::ZERO, &written).await);
}
