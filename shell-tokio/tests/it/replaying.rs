use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use sealog_tokio::{
    EntryId, Error, OnCorruptedSegment, Operation, Options, Part, RegionId, ReplayFilter,
    ReplayItem, Wal,
};

use crate::store::{Asked, Reaction, TestStore, broken, not_there};
use crate::{A, B, PREFIX, one_by_one};

const C: RegionId = RegionId(3);

/// The key of the object that holds an entry.
fn key(id: EntryId) -> String {
    format!("{PREFIX}/objects/{:020}.wal", id.0 >> 20)
}

/// A log in which each of `count` objects holds an entry of each of these regions, and their ids.
async fn filled(
    store: &Arc<TestStore>,
    options: Options,
    regions: &[RegionId],
    count: usize,
) -> (Wal, Vec<EntryId>) {
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let mut ids = Vec::new();
    for n in 0..count {
        let entry = |region: &RegionId| (*region, Bytes::from(format!("{n} of {region}")));
        let appended = wal.append_batch(regions.iter().map(entry).collect()).await.unwrap();
        assert!(appended.iter().all(|id| *id == appended[0]), "one object, first positions");
        ids.push(appended[0]);
    }
    (wal, ids)
}

/// Damages the segment of a region in the object that holds an entry: its last byte, which is the
/// payload's.
async fn damage(store: &TestStore, id: EntryId, region: RegionId) {
    let mut bytes = store.bytes(&key(id)).await;
    let payload = format!(" of {region}");
    let found = bytes.windows(payload.len()).position(|window| window == payload.as_bytes());
    bytes[found.unwrap()] ^= 1;
    store.plant(&key(id), bytes).await;
}

/// An item in short.
fn said(item: &ReplayItem) -> String {
    match item {
        ReplayItem::Entry(region, entry) => {
            let text = String::from_utf8_lossy(&entry.payload);
            assert!(text.ends_with(&format!(" of {region}")), "{text} in region {region}");
            text.into_owned()
        }
        ReplayItem::Hole(hole) => format!("hole of {}", hole.region),
    }
}

async fn replayed(wal: &Wal, filter: ReplayFilter) -> Vec<String> {
    let items: Vec<ReplayItem> = wal.replay(filter).try_collect().await.unwrap();
    items.iter().map(said).collect()
}

#[tokio::test(start_paused = true)]
async fn a_replay_yields_objects_in_order_and_in_each_the_regions_in_order() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), &[C, A, B], 3).await;
    let before = store.count(Asked::Get);
    assert_eq!(
        replayed(&wal, ReplayFilter::all()).await,
        ["0 of 1", "0 of 2", "0 of 3", "1 of 1", "1 of 2", "1 of 3", "2 of 1", "2 of 2", "2 of 3"],
    );
    assert_eq!(store.count(Asked::Get) - before, 3, "one request per object");
    let filter = ReplayFilter::all().region_from(A, ids[2]).without(B);
    assert_eq!(replayed(&wal, filter).await, ["0 of 3", "1 of 3", "2 of 1", "2 of 3"]);
    let filter = ReplayFilter::none().region_from(A, ids[1].next()).region(RegionId(9));
    let before = store.count(Asked::Get);
    assert_eq!(replayed(&wal, filter).await, ["2 of 1"]);
    assert_eq!(store.count(Asked::Get) - before, 1, "what is not wanted is not touched");
    assert_eq!(replayed(&wal, ReplayFilter::none()).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn several_entries_of_a_region_come_in_the_order_of_their_ids() {
    let store = TestStore::new();
    let wal = Wal::open(store, PREFIX, one_by_one()).await.unwrap();
    let entries = ["0 of 1", "0 of 2", "1 of 1", "1 of 2", "2 of 1"].map(|text| {
        let region = if text.ends_with('1') { A } else { B };
        (region, Bytes::from(text))
    });
    let ids = wal.append_batch(entries.to_vec()).await.unwrap();
    let all = ["0 of 1", "1 of 1", "2 of 1", "0 of 2", "1 of 2"];
    assert_eq!(replayed(&wal, ReplayFilter::all()).await, all);
    let filter = ReplayFilter::all().region_from(A, ids[2]);
    assert_eq!(replayed(&wal, filter).await, all[1..]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_a_log_that_was_opened_again_is_whole() {
    let store = TestStore::new();
    drop(filled(&store, one_by_one(), &[A, B], 5).await);
    let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
    assert_eq!(replayed(&wal, ReplayFilter::all()).await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_long_replay_is_planned_page_by_page() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), &[A, B], 300).await;
    let before = store.count(Asked::Get);
    let expected: Vec<_> =
        (0..300).flat_map(|n| [format!("{n} of 1"), format!("{n} of 2")]).collect();
    assert_eq!(replayed(&wal, ReplayFilter::all()).await, expected);
    assert_eq!(store.count(Asked::Get) - before, 300);
    let last = ReplayFilter::none().region(C);
    wal.append(C, "0 of 3").await.unwrap();
    assert_eq!(replayed(&wal, last).await, ["0 of 3"], "behind pages with nothing in them");
}

/// As many as an engine may have after a crash: what a replay costs does not depend on how many
/// regions it is of.
#[tokio::test(start_paused = true)]
async fn two_thousand_objects_of_a_hundred_regions_cost_a_request_each() {
    let store = TestStore::new();
    let regions: Vec<_> = (0..100).map(RegionId).collect();
    drop(filled(&store, one_by_one(), &regions, 2000).await);
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let mut replay = wal.replay(ReplayFilter::all());
    let before = store.count(Asked::Get);
    let mut found = 0;
    while let Some(item) = replay.try_next().await.unwrap() {
        assert_eq!(said(&item), format!("{} of {}", found / 100, found % 100));
        found += 1;
    }
    assert_eq!(found, 200_000);
    assert_eq!(store.count(Asked::Get) - before, 2000);
}

#[tokio::test(start_paused = true)]
async fn what_is_appended_during_a_replay_is_not_part_of_it() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), &[A, B], 200).await;
    let mut replay = wal.replay(ReplayFilter::all());
    assert_eq!(said(&replay.next().await.unwrap().unwrap()), "0 of 1");
    wal.append(A, "later").await.unwrap();
    wal.append(C, "later").await.unwrap();
    assert_eq!(replay.count().await, 399);
}

/// Where little of a large object is wanted, it is not downloaded for it.
#[tokio::test(start_paused = true)]
async fn little_of_a_large_object_is_read_by_ranges() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let large = Bytes::from(vec![b'x'; 3 << 20]);
    let entries = vec![(A, "0 of 1".into()), (B, large), (C, Bytes::from("0 of 3"))];
    wal.append_batch(entries).await.unwrap();
    let chosen = ReplayFilter::none().region(A).region(C);
    for (filter, items, requests, bytes) in [
        (ReplayFilter::all(), 3, 1, 3 << 20..3 << 20 | 1 << 10),
        (ReplayFilter::all().without(C), 2, 1, 3 << 20..3 << 20 | 1 << 10),
        (chosen, 2, 2, 1..1 << 10),
    ] {
        let (before, fetched) = (store.count(Asked::Get), store.fetched());
        assert_eq!(wal.replay(filter).count().await, items);
        assert_eq!(store.count(Asked::Get) - before, requests);
        let fetched = store.fetched() - fetched;
        assert!(bytes.contains(&fetched), "{fetched} B are not within {bytes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_reads_as_many_objects_ahead_as_it_may_and_no_more() {
    let store = TestStore::new();
    let options = Options { read_concurrency: 3, ..one_by_one() };
    let (wal, _) = filled(&store, options, &[A, B], 10).await;
    store.hold(Asked::Get);
    let before = store.count(Asked::Get);
    let begun = || store.count(Asked::Get) - before;
    let settle = || tokio::time::sleep(Duration::from_millis(1));
    let mut replay = wal.replay(ReplayFilter::all());
    // The first poll asks for the plan.
    for _ in 0..2 {
        assert!(replay.next().now_or_never().is_none());
        settle().await;
    }
    assert_eq!(begun(), 3);
    wal.append(A, "while a replay waits").await.unwrap();
    // Two are there: that alone makes no room, nor does an object that is not yielded whole.
    store.let_pass(2);
    settle().await;
    assert_eq!(begun(), 3);
    for (expected, yielded) in [("0 of 1", 0), ("0 of 2", 0), ("1 of 1", 1), ("1 of 2", 1)] {
        assert_eq!(said(&replay.next().await.unwrap().unwrap()), expected);
        settle().await;
        assert_eq!(begun() - yielded, 3, "after {expected}");
    }
    assert!(replay.next().now_or_never().is_none());
    settle().await;
    assert_eq!(begun(), 5);
    store.behave();
    store.let_pass(3);
    assert_eq!(replay.count().await, 16);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_segment_is_a_hole_in_its_place_and_its_neighbours_are_yielded() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), &[A, B, C], 2).await;
    damage(&store, ids[0], B).await;
    damage(&store, ids[1], C).await;
    let before = store.count(Asked::Get);
    for _ in 0..2 {
        assert_eq!(
            replayed(&wal, ReplayFilter::all()).await,
            ["0 of 1", "hole of 2", "0 of 3", "1 of 1", "1 of 2", "hole of 3"],
        );
    }
    assert_eq!(store.count(Asked::Get) - before, 8, "each object, and its damaged segment again");
    let holes = wal.holes(B).await.unwrap();
    assert_eq!(holes.len(), 1);
    assert_eq!((&*holes[0].key, holes[0].min_id), (&*key(ids[0]), ids[0]));
    assert_eq!(wal.holes(A).await.unwrap(), []);
    let stats = wal.stats().await.unwrap();
    assert_eq!((stats.skipped_segments_total, stats.refetched_segments_total), (2, 4));
    assert_eq!(stats.read.count(), 4, "objects");
}

#[tokio::test(start_paused = true)]
async fn with_fail_a_damaged_segment_ends_the_replay_in_its_place() {
    let store = TestStore::new();
    let options = Options { on_corrupted_segment: OnCorruptedSegment::Fail, ..one_by_one() };
    let (wal, ids) = filled(&store, options, &[A, B, C], 3).await;
    damage(&store, ids[1], B).await;
    let items: Vec<_> = wal.replay(ReplayFilter::all()).collect().await;
    assert_eq!(items.len(), 5, "the error is the last item");
    let Err(Error::Corrupted { key: found, part, .. }) = &items[4] else { panic!("{items:?}") };
    assert_eq!((&**found, *part), (&*key(ids[1]), Part::Segment(B)));
    let without = ReplayFilter::all().without(B);
    assert_eq!(replayed(&wal, without).await.len(), 6, "the log reads on elsewhere");
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_fails_the_replay_and_the_next_one_begins_anew() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), &[A, B], 3).await;
    let second = key(ids[1]);
    for (error, is_retryable) in [(broken as fn() -> _, true), (not_there, false)] {
        let second = second.clone();
        store.react(move |asked, key| match asked {
            Asked::Get if key == second => Reaction::Fail(error()),
            _ => Reaction::Pass,
        });
        let items: Vec<_> = wal.replay(ReplayFilter::all()).collect().await;
        assert_eq!(items.len(), 3);
        let error = items[2].as_ref().unwrap_err();
        assert!(matches!(error, Error::Store { operation: Operation::Read, .. }), "{error}");
        assert_eq!(error.is_retryable(), is_retryable, "{error}");
    }
    assert_eq!(wal.holes(A).await.unwrap(), [], "a failed fetch is no hole");
    store.behave();
    assert_eq!(replayed(&wal, ReplayFilter::all()).await.len(), 6);
}

/// Pages that are planned after the call leave out what it hid; what was planned before may come.
#[tokio::test(start_paused = true)]
async fn what_becomes_obsolete_during_a_replay_is_left_out_of_what_is_planned_later() {
    let store = TestStore::new();
    let (wal, ids) = filled(&store, one_by_one(), &[A, B], 300).await;
    let mut replay = wal.replay(ReplayFilter::all());
    assert_eq!(said(&replay.next().await.unwrap().unwrap()), "0 of 1");
    wal.obsolete(A, ids[299]).await.unwrap();
    let rest: Vec<_> = replay.try_collect().await.unwrap();
    let of = |region| {
        let is = |item: &&ReplayItem| matches!(item, ReplayItem::Entry(r, _) if *r == region);
        rest.iter().filter(is).count()
    };
    assert_eq!(of(B), 300, "the other region is whole");
    assert!(of(A) < 200, "{} of those that were planned later are still there", of(A));
    let now = replayed(&wal, ReplayFilter::all()).await;
    assert_eq!(now.len(), 300, "a new replay has none of them");
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_names_a_reserved_region_is_refused() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), &[A], 1).await;
    let before = store.count(Asked::Get);
    for filter in [
        ReplayFilter::all().without(RegionId(u64::MAX)),
        ReplayFilter::none().region(A).region(RegionId(u64::MAX - 15)),
    ] {
        let items: Vec<_> = wal.replay(filter).collect().await;
        assert!(matches!(items[..], [Err(Error::InvalidRegion { .. })]), "{items:?}");
    }
    assert_eq!(store.count(Asked::Get), before);
}

#[tokio::test(start_paused = true)]
async fn a_replay_goes_on_after_stop_and_after_a_terminal_error() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), &[A, B], 20).await;
    let mut replay = wal.replay(ReplayFilter::all());
    replay.next().await.unwrap().unwrap();
    // Another writer takes the log.
    let other = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    wal.append(A, "no more").await.unwrap_err();
    assert!(matches!(wal.append(A, "no more").await.unwrap_err().error(), Error::Poisoned { .. }));
    assert_eq!(replay.count().await, 39);
    assert_eq!(replayed(&wal, ReplayFilter::all()).await.len(), 40);
    let mut replay = other.replay(ReplayFilter::all());
    replay.next().await.unwrap().unwrap();
    other.stop().await.unwrap();
    assert_eq!(replay.count().await, 39);
    assert_eq!(replayed(&other, ReplayFilter::all()).await.len(), 40);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_replay_abandons_its_requests_and_a_wait_that_is_dropped_loses_nothing() {
    let store = TestStore::new();
    let (wal, _) = filled(&store, one_by_one(), &[A, B], 4).await;
    let mut replay = wal.replay(ReplayFilter::all());
    let (mut items, mut given_up) = (0, 0);
    loop {
        // Each wait is given up the first time that it does not end at once.
        match replay.next().now_or_never() {
            Some(Some(item)) => items += item.map(|_| 1).unwrap(),
            Some(None) => break,
            None => {
                given_up += 1;
                tokio::task::yield_now().await;
            }
        }
    }
    assert_eq!(items, 8);
    assert!(given_up > 0, "some waits were given up");

    store.hold(Asked::Get);
    let mut replay = wal.replay(ReplayFilter::all());
    for _ in 0..2 {
        assert!(replay.next().now_or_never().is_none());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(store.under_way(), 4);
    drop(replay);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(store.under_way(), 0);
}
