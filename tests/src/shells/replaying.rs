use sealog_core::{Error, RegionId, ReplayFilter};
use sealog_shell::ReplayItem;

use super::{A, B, Log, Stage, at_once, one_by_one, open};
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
