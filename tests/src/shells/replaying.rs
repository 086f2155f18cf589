use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use sealog_core::{EntryId, Error, Options, RegionId, ReplayFilter};
use sealog_shell::{ReadItem, ReplayItem};

use super::stage::Reaction;
use super::{A, B, Log, Reader, Stage, at_once, one_by_one, open};
use crate::hooked::Asked;

/// Regions and texts; a hole fails the case.
pub(super) fn replayed(
    items: impl IntoIterator<Item = Result<ReplayItem, Error>>,
) -> Vec<(RegionId, String)> {
    let entry = |item| match item {
        Ok(ReplayItem::Entry(region, entry)) => {
            (region, String::from_utf8(entry.payload.into()).unwrap())
        }
        other => panic!("{other:?}"),
    };
    items.into_iter().map(entry).collect()
}

fn wanted(list: &[(RegionId, &str)]) -> Vec<(RegionId, String)> {
    list.iter().map(|(region, text)| (*region, String::from(*text))).collect()
}

pub(super) fn a_replay_gives_each_region_from_where_it_is_wanted_with_one_request_per_object<
    L: Log,
>() {
    const C: RegionId = RegionId(3);
    let stage = Stage::default();
    let log: L = open(&stage, at_once());
    log.append_batch(vec![(B, "b1".into()), (A, "a1".into()), (A, "a2".into())]).unwrap();
    log.append(C, "c1").unwrap();
    let third = log.append_batch(vec![(A, "a3".into()), (B, "b2".into())]).unwrap();
    let gets = stage.count(Asked::Get);
    let all = [(A, "a1"), (A, "a2"), (B, "b1"), (C, "c1"), (A, "a3"), (B, "b2")];
    assert_eq!(replayed(log.replay(ReplayFilter::all())), wanted(&all));
    assert_eq!(stage.count(Asked::Get) - gets, 3);

    let filter = ReplayFilter::all().region_from(A, third[0]).without(C);
    let some = [(B, "b1"), (A, "a3"), (B, "b2")];
    assert_eq!(replayed(log.replay(filter)), wanted(&some));
    assert_eq!(replayed(log.replay(ReplayFilter::none().region(C))), wanted(&[(C, "c1")]));
    assert_eq!(stage.count(Asked::Get) - gets, 3 + 2 + 1);
    assert_eq!(replayed(log.replay(ReplayFilter::none())), []);
}

pub(super) fn a_long_replay_is_planned_page_by_page<L: Log>() {
    let log: L = open(&Stage::default(), one_by_one());
    let submitted: Vec<_> = (0..600).map(|n| log.submit([A, B][n % 2], n.to_string())).collect();
    for wait in submitted {
        wait().unwrap();
    }
    let expected: Vec<_> = (0..600).map(|n| ([A, B][n % 2], n.to_string())).collect();
    assert_eq!(replayed(log.replay(ReplayFilter::all())), expected);
}

pub(super) fn a_replay_leaves_out_what_is_obsolete_or_released<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    let ids = log.append_batch(vec![(A, "a1".into()), (A, "a2".into())]).unwrap();
    log.append(B, "b1").unwrap();
    log.obsolete(A, ids[0]).unwrap();
    log.release(B).unwrap();
    log.append(B, "b2").unwrap();
    let left = wanted(&[(A, "a2"), (B, "b2")]);
    assert_eq!(replayed(log.replay(ReplayFilter::all())), left);
    drop(log);
    // That something is obsolete must be said again.
    let again = wanted(&[(A, "a1"), (A, "a2"), (B, "b2")]);
    let log: L = open(&stage, one_by_one());
    assert_eq!(replayed(log.replay(ReplayFilter::all())), again);
}

pub(super) fn a_damaged_segment_is_a_hole_in_its_replay<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    let ids = [(A, "1"), (B, "2"), (A, "3")].map(|(region, text)| log.append(region, text).unwrap());
    stage.damage(ids[1].sequence().0);
    let items = log.replay(ReplayFilter::all());
    let [Ok(ReplayItem::Entry(A, _)), Ok(ReplayItem::Hole(hole)), Ok(ReplayItem::Entry(A, _))] =
        &items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!((hole.region, hole.min_id, hole.max_id), (B, ids[1], ids[1]));
    assert_eq!(log.holes(B).unwrap().iter().collect::<Vec<_>>(), [hole]);
}

pub(super) fn a_replay_of_a_reserved_region_is_refused<L: Log>() {
    let log: L = open(&Stage::default(), one_by_one());
    log.append(A, "1").unwrap();
    let items = log.replay(ReplayFilter::all().region(RegionId(u64::MAX)));
    assert!(matches!(items[..], [Err(Error::InvalidRegion { .. })]), "{items:?}");
}

/// Objects of one entry each, this many, and what a replay of them gives.
fn numbered<L: Log>(stage: &Stage, count: usize) -> (L, Vec<(RegionId, String)>) {
    let log: L = open(stage, one_by_one());
    for wait in super::submit_numbers(&log, count) {
        wait().unwrap();
    }
    (log, (0..count).map(|n| (A, n.to_string())).collect())
}

pub(super) fn a_failure_now_and_then_ends_no_replay<L: Log>() {
    let stage = Stage::default();
    let (log, expected) = numbered::<L>(&stage, 400);
    let seen = AtomicUsize::new(0);
    stage.react(move |asked| match asked {
        Asked::Get if seen.fetch_add(1, Ordering::Relaxed) % 23 == 22 => Reaction::Break,
        _ => Reaction::Pass,
    });
    let gets = stage.count(Asked::Get);
    assert_eq!(replayed(log.replay(ReplayFilter::all())), expected);
    // Each 23rd failed. After each it was looked whether the object is shorter than was asked for, and
    // then it was asked again.
    assert_eq!(stage.count(Asked::Get) - gets, 400 + 18 + 18);
}

pub(super) fn a_restart_over_a_throttled_store_ends_with_all_of_it<L: Log>() {
    let stage = Stage::default();
    let (log, expected) = numbered::<L>(&stage, 100);
    drop(log);
    stage.throttle();
    let log: L = open(&stage, Options { verify_store: false, ..one_by_one() });
    let gets = stage.count(Asked::Get);
    assert_eq!(replayed(log.replay(ReplayFilter::all())), expected);
    assert_eq!(stage.count(Asked::Get) - gets, 300);
}

pub(super) fn what_is_large_is_read_in_parts_of_sixteen_mebibytes<L: Log>() {
    const MIB: usize = 1 << 20;
    let stage = Stage::default();
    // Each chunk is another one.
    let large = |region: u64, size: usize| -> (RegionId, Bytes) {
        let chunks = (0..size / MIB).flat_map(|n| vec![(region as usize * 100 + n) as u8; MIB]);
        (RegionId(region), chunks.collect::<Vec<_>>().into())
    };
    let log: L = open(&stage, at_once());
    let entries = vec![large(1, 9 * MIB), large(2, 6 * MIB), large(3, 9 * MIB), large(4, 40 * MIB)];
    log.append_batch(entries.clone()).unwrap();
    // Two that fit together, one that does not, and one that is larger than what may be held.
    let read_ahead_bytes = 20 << 20;
    let reader = L::Reader::open(stage.store(), super::PREFIX, Options { read_ahead_bytes, ..at_once() });
    let reader = reader.unwrap();
    let gets = stage.count(Asked::Get);
    let mut found = Vec::new();
    for item in Reader::replay(&reader, ReplayFilter::all()) {
        let Ok(ReplayItem::Entry(region, entry)) = item else { panic!("{:?}", item.err()) };
        found.push((region, entry.payload));
    }
    assert!(found == entries, "other entries");
    assert_eq!(stage.count(Asked::Get) - gets, 1 + 1 + 3);
    let read: Vec<_> = Reader::read(&reader, RegionId(4), EntryId::ZERO).collect();
    let [Ok(ReadItem::Entry(entry))] = &read[..] else { panic!("{} items", read.len()) };
    assert!(entry.payload == entries[3].1, "another entry");
    assert_eq!(stage.count(Asked::Get) - gets, 5 + 3);
}
