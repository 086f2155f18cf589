use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use sealog_tokio::{EntryId, Options, ReadItem, RegionId, Wal};

use crate::store::{Asked, Reaction, TestStore, broken};
use crate::{A, B, PREFIX, one_by_one, payloads};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn one_idle_region_holds_ten_thousand_objects_is_named_and_lets_go_of_them() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let idle = wal.append(B, "the one entry that is needed").await.unwrap();
    let mut last = EntryId::ZERO;
    for n in 0..10_000 {
        last = wal.append(A, format!("{n}")).await.unwrap();
    }
    wal.obsolete(A, last).await.unwrap();

    let held = wal.held_by().await.unwrap();
    assert_eq!(held.object.unwrap().sequence, idle.sequence());
    assert_eq!(held.holders.iter().map(|holder| holder.region).collect::<Vec<_>>(), [B]);
    let most = &held.most[0];
    assert_eq!((most.region, most.frees_objects), (B, 10_001));
    assert_eq!(store.count(Asked::Delete), 0, "all of it is needed, or stands behind what is");

    // No append comes any more.
    wal.obsolete(B, idle).await.unwrap();
    tokio::time::sleep(MINUTE + Duration::from_secs(1)).await;
    // The start object stands in the way of older writers, and one object carries the boundary.
    assert_eq!(store.keys().await.len(), 2);
    assert_eq!(wal.stats().await.unwrap().deleted_objects_total, 10_001);
    assert_eq!(wal.held_by().await.unwrap().object, None);
}

#[tokio::test(start_paused = true)]
async fn an_idle_log_asks_for_nothing_and_a_carrier_causes_no_other() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    let asked = || [Asked::Put, Asked::Get, Asked::List, Asked::Delete].map(|a| store.count(a));
    let before = asked();
    tokio::time::sleep(60 * MINUTE).await;
    assert_eq!(asked(), before, "nothing became obsolete");

    wal.obsolete(A, id).await.unwrap();
    tokio::time::sleep(60 * MINUTE).await;
    let [puts, gets, lists, deletes] = before;
    assert_eq!(asked(), [puts + 1, gets, lists, deletes + 1], "one carrier, one delete");
}

#[tokio::test(start_paused = true)]
async fn without_an_interval_an_idle_log_carries_nothing() {
    let store = TestStore::new();
    let options = Options { reclaim_interval: Duration::ZERO, ..one_by_one() };
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    wal.obsolete(A, id).await.unwrap();
    let puts = store.count(Asked::Put);
    tokio::time::sleep(60 * MINUTE).await;
    assert_eq!((store.count(Asked::Put), store.count(Asked::Delete)), (puts, 0));
    // The next append carries it.
    wal.append(A, "b").await.unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(store.count(Asked::Delete), 1);
}

/// Reads a region of 300 objects, more than are planned at once, and makes all of it obsolete when
/// the first entry is there; then a create carries that.
async fn read_during_a_collection(answer: fn() -> Reaction) -> Vec<ReadItem> {
    let store = TestStore::new();
    let options = Options { read_concurrency: 2, ..one_by_one() };
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let mut last = EntryId::ZERO;
    for n in 0..300 {
        last = wal.append(A, format!("{n}")).await.unwrap();
    }
    let mut read = wal.read(A, EntryId::ZERO);
    let first = read.next().await.unwrap().unwrap();
    store.react(move |asked, _| if asked == Asked::Delete { answer() } else { Reaction::Pass });
    wal.obsolete(A, last).await.unwrap();
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let rest: Vec<_> = read.try_collect().await.expect("a collection fails no read");
    [vec![first], rest].concat()
}

#[tokio::test(start_paused = true)]
async fn a_read_that_began_before_a_collection_never_fails_because_of_it() {
    let whole = read_during_a_collection(|| Reaction::Pass).await;
    assert!(whole.len() < 20, "what was not fetched yet is skipped: {}", whole.len());
    // The objects are gone, and the log does not know it.
    let lost = read_during_a_collection(|| Reaction::DoAndFail(broken())).await;
    assert!(lost.len() < 20, "{}", lost.len());
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_a_delete_that_is_under_way_before_it_judges() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    let mut read = wal.read(A, EntryId::ZERO);
    wal.obsolete(A, id).await.unwrap();
    store.hold(Asked::Delete);
    wal.append(B, "carries the boundary").await.unwrap();
    // It was planned before, and cannot be read any more.
    store.react(|asked, _| match asked {
        Asked::Get => Reaction::Fail(broken()),
        _ => Reaction::Pass,
    });
    let waiting = tokio::time::timeout(10 * Duration::from_secs(1), read.next()).await;
    assert!(waiting.is_err(), "{waiting:?}");
    store.let_pass(1);
    assert!(read.next().await.is_none(), "it is gone: skipped");
}

#[tokio::test(start_paused = true)]
async fn failed_deletes_are_counted_and_tried_again() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    wal.obsolete(A, id).await.unwrap();
    store.react(|asked, _| match asked {
        Asked::Delete => Reaction::Fail(broken()),
        _ => Reaction::Pass,
    });
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stats = wal.stats().await.unwrap();
    assert_eq!((stats.failed_deletes_total, stats.deleted_objects_total), (1, 0));
    store.behave();
    tokio::time::sleep(MINUTE).await;
    let stats = wal.stats().await.unwrap();
    assert_eq!((stats.failed_deletes_total, stats.deleted_objects_total), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_released_stays_so_after_a_crash_and_what_is_not_comes_back() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    wal.append_batch(vec![(A, "a".into()), (B, "b".into())]).await.unwrap();
    let id = wal.append(B, "c").await.unwrap();
    wal.release(A).await.unwrap();
    wal.obsolete(B, id).await.unwrap();
    drop(wal);
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, [""; 0]);
    assert_eq!(payloads(&wal, B).await, ["b", "c"], "obsolete is not durable");
    assert_eq!(wal.regions().await.unwrap().len(), 1);
    // A region that is used again keeps what is new.
    wal.append(A, "new").await.unwrap();
    drop(wal);
    let wal = Wal::open(store, PREFIX, one_by_one()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_region_that_was_released_in_full_takes_nothing_until_its_record_is_gone() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    // Nothing is there: nothing is written, and nothing refused.
    wal.release_all(RegionId(9)).await.unwrap();
    wal.append(RegionId(9), "x").await.unwrap();
    wal.release(RegionId(9)).await.unwrap();

    wal.append(A, "a").await.unwrap();
    // It covers what was submitted before it.
    let submitted = wal.submit(A, "b");
    let released = wal.release_all(A);
    let (submitted, released) = tokio::join!(submitted, released);
    submitted.unwrap();
    released.unwrap();
    let refused = wal.append(A, "c").await.unwrap_err();
    assert!(matches!(refused.error(), sealog_tokio::Error::Released { region: A }), "{refused}");
    assert_eq!(payloads(&wal, A).await, [""; 0]);
    // A carrier lets the record's object go.
    tokio::time::sleep(10 * MINUTE).await;
    wal.append(B, "carries the boundary above the record").await.unwrap();
    tokio::time::sleep(10 * MINUTE).await;
    wal.append(A, "d").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["d"]);
}
