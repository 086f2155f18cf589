//! Inputs of a hostile reviewer.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use sealog_tokio::{
    EntryId, Error, OnCorruptedSegment, Options, ReadItem, RegionId, ReplayFilter, ReplayItem, Wal,
};

use crate::store::{Asked, Reaction, TestStore, broken, not_there};
use crate::{A, B, PREFIX, one_by_one};

const SECOND: Duration = Duration::from_secs(1);

async fn filled(store: &std::sync::Arc<TestStore>, options: Options) -> (Wal, EntryId) {
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let mut last = EntryId::ZERO;
    for n in 0..300 {
        last = wal.append(A, format!("{n}")).await.unwrap();
    }
    (wal, last)
}

/// As `read_during_a_collection`, of a replay, and by a release too.
async fn replay_during(answer: fn() -> Reaction, by_release: bool, fail: bool) -> Vec<ReplayItem> {
    let store = TestStore::new();
    let on_corrupted_segment =
        if fail { OnCorruptedSegment::Fail } else { OnCorruptedSegment::Skip };
    let options = Options { read_concurrency: 2, on_corrupted_segment, ..one_by_one() };
    let (wal, last) = filled(&store, options).await;
    let mut replay = wal.replay(ReplayFilter::all());
    let first = replay.next().await.unwrap().unwrap();
    store.react(move |asked, _| if asked == Asked::Delete { answer() } else { Reaction::Pass });
    if by_release {
        wal.release(A).await.unwrap();
    } else {
        wal.obsolete(A, last).await.unwrap();
    }
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(SECOND).await;
    let rest: Vec<_> = replay.try_collect().await.expect("a collection fails no replay");
    [vec![first], rest].concat()
}

#[tokio::test(start_paused = true)]
async fn a_replay_that_began_before_a_collection_never_fails_because_of_it() {
    for by_release in [false, true] {
        for fail in [false, true] {
            let whole = replay_during(|| Reaction::Pass, by_release, fail).await;
            assert!(whole.len() < 20, "{}", whole.len());
            let lost = replay_during(|| Reaction::DoAndFail(broken()), by_release, fail).await;
            assert!(lost.len() < 20, "{}", lost.len());
        }
    }
}

/// "A read that started before the collection never fails because of it" (issue 5); of `Read`: "goes
/// on after a terminal error and after a stop of a log". The writer knows that the object is gone.
#[tokio::test(start_paused = true)]
async fn a_read_that_began_before_a_collection_goes_on_after_stop() {
    let store = TestStore::new();
    let options = Options { read_concurrency: 2, ..one_by_one() };
    let (wal, last) = filled(&store, options).await;
    let mut read = wal.read(A, EntryId::ZERO);
    read.next().await.unwrap().unwrap();
    wal.obsolete(A, last).await.unwrap();
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(SECOND).await;
    wal.stop().await.unwrap();
    let rest: Result<Vec<ReadItem>, Error> = read.try_collect().await;
    assert!(rest.is_ok(), "{}", rest.unwrap_err());
}

/// Of a region of which nothing is left the log knows nothing (section 9); who watched it keeps what
/// they were told.
#[tokio::test(start_paused = true)]
async fn the_latest_id_of_a_region_that_was_collected_is_known_to_who_watched_it() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    let watch = wal.watch_durable(A).await.unwrap();
    wal.obsolete(A, id).await.unwrap();
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(watch.get(), id, "who watched before is told the truth");
    assert_eq!(wal.latest(A).await.unwrap(), EntryId::ZERO);
    assert!(wal.append(A, "b").await.unwrap() > id);
}

/// Section 14 and `Wal::wait_durable`: "`Stopped` and `Poisoned`, unless the id is durable".
#[tokio::test(start_paused = true)]
async fn a_durable_id_of_a_region_that_was_collected_after_stop() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(A, "a").await.unwrap();
    wal.obsolete(A, id).await.unwrap();
    wal.append(B, "carries the boundary").await.unwrap();
    tokio::time::sleep(SECOND).await;
    wal.stop().await.unwrap();
    wal.wait_durable(A, id).await.unwrap();
}

/// What is deleted by someone else while it is needed is an error, and not skipped.
#[tokio::test(start_paused = true)]
async fn what_is_gone_and_needed_is_an_error() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one()).await;
    store.react(|asked, _| match asked {
        Asked::Get => Reaction::Fail(not_there()),
        _ => Reaction::Pass,
    });
    let read: Result<Vec<_>, _> = wal.read(A, EntryId::ZERO).try_collect().await;
    assert!(matches!(read, Err(Error::Store { .. })));
    let replay: Result<Vec<_>, _> = wal.replay(ReplayFilter::all()).try_collect().await;
    assert!(matches!(replay, Err(Error::Store { .. })));
}

/// Issue 5: "2,000 objects of 100 regions: opening, and replay of all regions, in the number of
/// requests that the design implies (print it), not more".
#[tokio::test(start_paused = true)]
async fn what_an_opening_of_two_thousand_objects_costs() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    for n in 0..2000 {
        let entries = (0..100).map(|region| (RegionId(region), format!("{n}").into()));
        wal.append_batch(entries.collect()).await.unwrap();
    }
    drop(wal);
    let asked = || [Asked::Put, Asked::Get, Asked::List, Asked::Delete].map(|a| store.count(a));
    let before = asked();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let opened = asked();
    let cost: Vec<_> = before.iter().zip(&opened).map(|(b, o)| o - b).collect();
    // The own start object is read once more; what is behind 1,000 keys and more is asked for, too.
    assert_eq!(cost, [3, 2002, 5, 0], "the start object and 2000");
    let items: Vec<_> = wal.replay(ReplayFilter::all()).try_collect().await.unwrap();
    assert_eq!(items.len(), 200_000);
    assert_eq!(asked()[1] - opened[1], 2000);
}
