use std::thread;
use std::time::Duration;

use bytes::Bytes;
use sealog_core::{EntryId, Options, RegionId};

use super::{A, B, Log, PREFIX, Stage, at_once, entries, one_by_one, open, payloads, submit_numbers};
use crate::hooked::Asked;

pub(super) fn what_was_acknowledged_is_read_back_after_a_crash_and_after_a_stop<L: Log>() {
    let stage = Stage::default();
    let mut expected = Vec::new();
    for life in 0..4 {
        let log: L = open(&stage, Options::default());
        assert_eq!(entries(&log, A), expected, "before life {life}");
        for payload in [format!("{life}"), String::new()] {
            let id = log.append(A, payload.clone()).unwrap();
            expected.push((id, Bytes::from(payload)));
        }
        assert_eq!(entries(&log, A), expected);
        if life % 2 == 0 {
            log.stop().unwrap();
        }
    }
    assert!(expected.is_sorted_by(|(one, _), (other, _)| one < other), "{expected:?}");
}

pub(super) fn appends_are_stored_in_the_order_of_their_submission<L: Log>() {
    for options in [Options::default(), one_by_one()] {
        let log: L = open(&Stage::default(), options);
        let submitted = submit_numbers(&log, 500);
        let ids: Vec<_> = submitted.into_iter().map(|wait| wait().unwrap()).collect();
        assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
        let wanted: Vec<_> = ids.into_iter().zip((0..500).map(|n| n.to_string().into())).collect();
        assert_eq!(entries(&log, A), wanted);
    }
}

pub(super) fn a_batch_is_in_one_object_and_a_region_reads_its_own_entries_only<L: Log>() {
    let log: L = open(&Stage::default(), one_by_one());
    let batch = || (0..20).map(|n| (RegionId(n % 2 + 1), n.to_string().into())).collect();
    let first = log.submit_batch(batch());
    for ids in [first().unwrap(), log.append_batch(batch()).unwrap()] {
        assert!(ids.iter().all(|id| id.sequence() == ids[0].sequence()), "{ids:?}");
        let of = |region: RegionId| ids.iter().copied().skip(region.0 as usize - 1).step_by(2);
        for region in [A, B] {
            let read: Vec<_> = entries(&log, region).into_iter().map(|(id, _)| id).collect();
            let ids: Vec<_> = of(region).collect();
            assert!(read.windows(10).any(|part| part == ids), "{ids:?} are not in {read:?}");
        }
    }
    let even = |text: Bytes| text.last().is_some_and(|digit| digit % 2 == 0);
    assert!(payloads(&log, A).into_iter().all(even));
}

pub(super) fn an_append_of_nothing_is_acknowledged_at_once<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, Options::default());
    let puts = stage.count(Asked::Put);
    assert_eq!(log.append_batch(Vec::new()).unwrap(), []);
    assert_eq!(stage.count(Asked::Put), puts);
}

pub(super) fn a_directory_and_its_url_are_the_same_log<L: Log>() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let url = format!("file://{}", directory.display());
    let log = L::open_local(&directory, Options::default()).unwrap();
    log.append(A, "by its directory").unwrap();
    drop(log);
    let log = L::open_url(&url, Options::default()).unwrap();
    log.append(A, "by its URL").unwrap();
    log.stop().unwrap();
    let log = L::open_local(&directory, Options::default()).unwrap();
    assert_eq!(payloads(&log, A), ["by its directory", "by its URL"]);
}

pub(super) fn many_threads_append_at_once<L: Log>() {
    const EACH: u64 = 50;
    let log: L = open(&Stage::default(), at_once());
    thread::scope(|scope| {
        for region in (1..=8).map(RegionId) {
            let log = log.clone();
            scope.spawn(move || {
                let mut ids = Vec::new();
                for n in 0..EACH {
                    ids.push(log.append(region, format!("{region} {n}")).unwrap());
                    assert_eq!(log.latest(region).unwrap(), ids[n as usize]);
                }
                let wanted = (0..EACH).map(|n| format!("{region} {n}").into());
                let wanted: Vec<_> = ids.into_iter().zip(wanted).collect();
                assert_eq!(entries(&log, region), wanted);
            });
        }
    });
    assert_eq!(log.stats().unwrap().appends_total, 8 * EACH);
}

pub(super) fn the_handle_tells_what_was_opened<L: Log>() {
    let stage = Stage::default();
    let options = Options { max_in_flight: 3, ..Options::default() };
    let log: L = open(&stage, options.clone());
    assert_eq!((log.prefix(), log.options()), (PREFIX, &options));
    assert_eq!(log.epoch().0, log.stats().unwrap().epoch);
    assert!(open::<L>(&stage, options).epoch() > log.epoch());
}

pub(super) fn positions_and_figures_follow_the_appends<L: Log>() {
    let log: L = open(&Stage::default(), Options::default());
    assert_eq!(log.latest(A).unwrap(), EntryId::ZERO);
    assert_eq!(log.durable(A).unwrap(), EntryId::ZERO);
    assert_eq!(log.regions().unwrap(), []);
    let ids = log.append_batch(vec![(B, "1".into()), (A, "22".into()), (B, "3".into())]).unwrap();
    assert_eq!((log.latest(A).unwrap(), log.durable(A).unwrap()), (ids[1], ids[1]));
    assert_eq!(log.durable(B).unwrap(), ids[2]);
    log.wait_durable(B, EntryId::MAX).unwrap();
    let regions: Vec<_> = log.regions().unwrap().into_iter().map(|info| info.region).collect();
    assert_eq!(regions, [A, B]);
    assert_eq!(log.holes(A).unwrap(), []);
    let stats = log.stats().unwrap();
    assert_eq!((stats.appends_total, stats.appended_entries_total), (1, 3));
    assert_eq!((stats.appended_bytes_total, stats.created_objects_total), (4, 1));
}

/// The second object that would leave by its time would do so an hour after the first.
pub(super) fn a_flush_does_not_wait_for_the_interval<L: Log>() {
    let options = Options { flush_interval: Duration::from_secs(3600), ..Options::default() };
    let log: L = open(&Stage::default(), options);
    log.append(A, "by its time").unwrap();
    let waiting = log.submit(A, "by the flush");
    log.flush().unwrap();
    assert_eq!(payloads(&log, A), ["by its time", "by the flush"]);
    waiting().unwrap();
    log.flush().unwrap();
}
