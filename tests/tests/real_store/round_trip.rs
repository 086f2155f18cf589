//! Append, read, open again.

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use sealog_tests::entries::{LARGE, Stamp, Stamped};
use sealog_tests::place::{Place, named};
use sealog_tests::proxy::Proxy;
use sealog_tokio::object_store::{ObjectStoreExt, PutMode};
use sealog_tokio::{Entry, EntryId, Error, Options, ReadItem, RegionId};

use crate::{append, history, history_of, object_path};

#[tokio::test]
async fn what_is_appended_to_a_bucket_is_there_when_the_log_is_opened_again() {
    let Some(place) = Place::bucket("round-trip") else { return };
    let mut acked = Vec::new();
    for author in 0..3 {
        let wal = place.open(named(format!("writer {author}"))).await.unwrap();
        assert_eq!(history(&wal).await, history_of(&acked));
        for counter in 0..4 {
            for region in [1, 2] {
                acked.push(append(&wal, region, author, counter).await.unwrap());
            }
        }
        assert_eq!(history(&wal).await, history_of(&acked));
        // One ends in order, the others as in a crash.
        if author == 1 {
            wal.stop().await.unwrap();
        }
    }
    let options = Options { must_exist: true, ..named("the last") };
    assert_eq!(history(&place.open(options).await.unwrap()).await, history_of(&acked));
    let options = Options { must_exist: true, ..named("mistyped") };
    let error = place.log("mistyped").open(options).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}

/// The second is told by whom it lost the log, and what it had acknowledged stays.
#[tokio::test]
async fn of_two_writers_of_a_bucket_the_first_is_fenced_and_told_by_whom() {
    let Some(place) = Place::bucket("two-writers") else { return };
    let first = place.open(named("alpha")).await.unwrap();
    let mut acked = vec![append(&first, 1, 1, 0).await.unwrap()];
    let second = place.open(named("beta on host 7")).await.unwrap();
    let error = append(&first, 1, 1, 1).await.unwrap_err();
    let Error::Fenced { writer, .. } = error.error() else { panic!("{error}") };
    assert_eq!(writer.as_deref(), Some("beta on host 7"));
    assert!(error.to_string().contains("beta on host 7"), "{error}");
    let error = append(&first, 1, 1, 2).await.unwrap_err();
    assert!(matches!(error.error(), Error::Poisoned { .. }), "{error}");
    assert_eq!(history(&first).await, history_of(&acked), "reads go on");
    acked.push(append(&second, 1, 2, 0).await.unwrap());
    assert_eq!(history(&second).await, history_of(&acked));
}

/// Whose tail is read apart, whose footer is larger than what is read of the tail, and one that is
/// larger than a batch is to be.
#[tokio::test]
async fn objects_of_any_size_are_read_and_recovered() {
    let Some(place) = Place::bucket("large") else { return };
    let wal = place.open(named("large")).await.unwrap();
    let mut acked = vec![append(&wal, 1, 1, 0).await.unwrap()];
    for (regions, entries) in [(2..4, 100), (4..2004, 1), (LARGE..LARGE + 1, 1)] {
        let batch = |region| (0..entries).map(move |counter| Stamp { region, author: 1, counter });
        let stamps: Vec<Stamp> = regions.flat_map(batch).collect();
        let entries = stamps.iter().map(|stamp| (RegionId(stamp.region), stamp.payload()));
        let ids = wal.append_batch(entries.collect()).await.unwrap();
        acked.extend(ids.iter().zip(stamps).map(|(id, stamp)| Stamped { id: id.0, stamp }));
    }
    let stats = wal.stats().await.unwrap();
    assert_eq!(stats.created_objects_total, 4, "each append is in one object");
    assert!(stats.indexed_bytes > 16 << 20);
    drop(wal);
    let wal = place.open(named("reader")).await.unwrap();
    // By region: of the objects with many of them, only the ranges that hold it.
    assert_eq!(history(&wal).await, history_of(&acked));
}

/// A listing has pages of 1,000.
#[tokio::test]
async fn a_log_of_more_objects_than_a_page_of_a_listing_is_recovered() {
    const OBJECTS: u64 = 1050;
    let Some(place) = Place::bucket("thousand") else { return };
    let options = Options { max_batch_bytes: 1, max_in_flight: 16, ..named("writer") };
    let wal = place.open(options).await.unwrap();
    let payload = |n: u64| Bytes::from(format!("entry {n}"));
    let submitted: Vec<_> = (0..OBJECTS).map(|n| wal.submit(RegionId(1), payload(n))).collect();
    let mut ids = Vec::new();
    for append in submitted {
        ids.push(append.await.unwrap());
    }
    assert_eq!(wal.stats().await.unwrap().created_objects_total, OBJECTS);
    drop(wal);

    let proxy = Proxy::start(place.upstream()).await.unwrap();
    let wal = place.by_way_of(proxy.endpoint()).open(named("reader")).await.unwrap();
    // Two full listings of two pages each, and of what is behind them, and one from the tip on.
    let lists = proxy.seen().iter().filter(|head| head.target.contains("list-type=2")).count();
    assert_eq!(lists, 7);
    // The start object of the first writer holds nothing that is needed.
    assert_eq!(wal.stats().await.unwrap().recovered_objects_total, OBJECTS);
    let read: Vec<ReadItem> = wal.read(RegionId(1), EntryId::ZERO).try_collect().await.unwrap();
    let expected =
        ids.iter().zip(0..).map(|(id, n)| ReadItem::Entry(Entry { id: *id, payload: payload(n) }));
    assert!(read.into_iter().eq(expected));
}

#[tokio::test]
async fn of_many_creates_of_one_key_the_bucket_lets_one_through() {
    let Some(place) = Place::bucket("create") else { return };
    let key = object_path(&place, 0);
    let store = place.location().store;
    let creates = (0..16).map(|n| {
        let (store, key) = (store.clone(), key.clone());
        async move {
            let body = format!("{n}").into_bytes();
            (store.put_opts(&key, body.into(), PutMode::Create.into()).await, n)
        }
    });
    let answers = join_all(creates).await;
    let created: Vec<usize> =
        answers.iter().filter(|(answer, _)| answer.is_ok()).map(|(_, n)| *n).collect();
    let [winner] = created[..] else { panic!("{created:?} were created") };
    let found = store.get(&key).await.unwrap().bytes().await.unwrap();
    assert_eq!(found, winner.to_string());
}
