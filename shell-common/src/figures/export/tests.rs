use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use metrics::{Counter, Gauge, Key, KeyName, Metadata, Recorder};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::*;

fn exporter(prefix: &str) -> Exporter {
    Exporter::new(&Prefix::new(prefix).unwrap())
}

/// What came in since the last time, by name and prefix.
fn arrived(snapshotter: &Snapshotter) -> BTreeMap<(String, String), DebugValue> {
    let rows = snapshotter.snapshot().into_vec().into_iter().map(|(key, _, _, value)| {
        let labels: Vec<_> = key.key().labels().collect();
        let [label] = labels[..] else { panic!("{labels:?}") };
        assert_eq!(label.key(), "prefix");
        ((key.key().name().to_owned(), label.value().to_owned()), value)
    });
    rows.collect()
}

fn value(name: &str, prefix: &str, snapshotter: &Snapshotter) -> DebugValue {
    arrived(snapshotter).remove(&(name.to_owned(), prefix.to_owned())).unwrap()
}

fn histogram(values: &[f64]) -> DebugValue {
    DebugValue::Histogram(values.iter().map(|value| (*value).into()).collect())
}

/// A life of which every figure says something else.
fn lived() -> Stats {
    let mut stats = Stats {
        appends_total: 1,
        appended_entries_total: 2,
        appended_bytes_total: 3,
        created_objects_total: 4,
        create_failures_total: 5,
        create_conflicts_total: 6,
        create_retries_total: 7,
        rejected_appends_total: 8,
        stalled_appends_total: 9,
        poisoned_total: 10,
        rolled_back_batches_total: 11,
        skipped_segments_total: 12,
        refetched_segments_total: 13,
        recovered_objects_total: 14,
        indexed_objects: 15,
        indexed_bytes: 16,
        unpersisted_bytes: 17,
        in_flight_creates: 18,
        failing: 19,
        epoch: 20,
        reclaim_boundary: 21,
        release_records_total: 22,
        deleted_objects_total: 23,
        failed_deletes_total: 24,
        overloaded_total: 25,
        guards_total: 26,
        queued_bytes: 27,
        ..Stats::default()
    };
    // Below 2^30 ns and at least half of it.
    stats.append_ack.record_duration(Duration::from_secs(1));
    stats.append_ack.record_duration(Duration::from_millis(600));
    // A bucket higher.
    stats.seal_to_durable.record_duration(Duration::from_secs(2));
    stats.object_bytes.record(1023);
    stats.object_bytes.record(1024);
    stats.object_entries.record(0);
    stats.object_entries.record(1);
    stats.object_entries.record(3);
    stats.stalled_append.record_duration(Duration::ZERO);
    stats.recovery.record_duration(Duration::from_nanos(1));
    stats.read.record_duration(Duration::from_nanos(2));
    stats
}

const A_SECOND: f64 = (0.75 * (1u64 << 30) as f64 - 0.5) / 1e9;
const TWO_SECONDS: f64 = (0.75 * (1u64 << 31) as f64 - 0.5) / 1e9;

fn all_of_lived() -> BTreeMap<(String, String), DebugValue> {
    let counters = [
        "appends_total",
        "appended_entries_total",
        "appended_bytes_total",
        "created_objects_total",
        "create_failures_total",
        "create_conflicts_total",
        "create_retries_total",
        "rejected_appends_total",
        "stalled_appends_total",
        "poisoned_total",
        "rolled_back_batches_total",
        "skipped_segments_total",
        "refetched_segments_total",
        "recovered_objects_total",
    ];
    let gauges = [
        "indexed_objects",
        "indexed_bytes",
        "unpersisted_bytes",
        "in_flight_creates",
        "failing",
        "epoch",
        "reclaim_boundary",
    ];
    let histograms = [
        ("append_ack_seconds", histogram(&[A_SECOND, A_SECOND])),
        ("seal_to_durable_seconds", histogram(&[TWO_SECONDS])),
        ("object_bytes", histogram(&[767.5, 1535.5])),
        ("object_entries", histogram(&[0.0, 1.0, 2.5])),
        ("stalled_append_seconds", histogram(&[0.0])),
        ("recovery_seconds", histogram(&[1e-9])),
        ("read_seconds", histogram(&[2.5e-9])),
    ];
    let later = [
        "release_records_total",
        "deleted_objects_total",
        "failed_deletes_total",
        "overloaded_total",
        "guards_total",
    ];
    let later = later.into_iter().zip((22..).map(DebugValue::Counter));
    let last = ("queued_bytes", DebugValue::Gauge(27.0.into()));
    let counters = counters.into_iter().zip((1..).map(DebugValue::Counter)).chain(later);
    let gauges = gauges.into_iter().zip((15..).map(|n| DebugValue::Gauge(f64::from(n).into())));
    let all = counters.chain(gauges).chain(histograms).chain([last]);
    all.map(|(name, value)| ((format!("sealog_{name}"), "logs/a".to_owned()), value)).collect()
}

#[test]
fn every_figure_goes_out_under_its_name() {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || exporter("logs/a").export(&lived()));
    assert_eq!(arrived(&recorder.snapshotter()), all_of_lived());
}

#[test]
fn what_was_counted_before_there_was_a_recorder_goes_out_once_there_is_one() {
    let recorder = DebuggingRecorder::new();
    let mut exporter = exporter("logs/a");
    for _ in 0..3 {
        exporter.export(&lived());
    }
    metrics::with_local_recorder(&recorder, || exporter.export(&lived()));
    assert_eq!(arrived(&recorder.snapshotter()), all_of_lived());
}

#[test]
fn only_what_is_new_is_added() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut exporter = exporter("a");
    let mut stats = Stats::default();
    let mut export = |stats: &Stats| {
        metrics::with_local_recorder(&recorder, || exporter.export(stats));
        let mut arrived = arrived(&snapshotter);
        ["sealog_appends_total", "sealog_object_entries", "sealog_epoch"]
            .map(|name| arrived.remove(&(name.to_owned(), "a".to_owned())).unwrap())
    };
    let expected = |appends: u64, entries: &[f64], epoch: f64| {
        [DebugValue::Counter(appends), histogram(entries), DebugValue::Gauge(epoch.into())]
    };
    assert_eq!(export(&stats), expected(0, &[], 0.0), "all are there from the beginning");
    (stats.appends_total, stats.epoch) = (5, 7);
    stats.object_entries.record(1);
    stats.object_entries.record(1);
    assert_eq!(export(&stats), expected(5, &[1.0, 1.0], 7.0));
    stats.appends_total = 6;
    stats.object_entries.record(4);
    stats.object_entries.record(1);
    assert_eq!(export(&stats), expected(1, &[1.0, 5.5], 7.0));
    assert_eq!(export(&stats), expected(0, &[], 7.0));
}

#[test]
fn two_logs_stay_apart_and_one_that_is_opened_again_counts_on() {
    let recorder = DebuggingRecorder::new();
    let appended = |appends_total| Stats { appends_total, ..Stats::default() };
    metrics::with_local_recorder(&recorder, || {
        exporter("a").export(&appended(5));
        exporter("b").export(&appended(100));
        exporter("a").export(&appended(2));
    });
    let mut arrived = arrived(&recorder.snapshotter());
    let mut appends = |prefix: &str| {
        arrived.remove(&("sealog_appends_total".to_owned(), prefix.to_owned())).unwrap()
    };
    assert_eq!(appends("a"), DebugValue::Counter(7));
    assert_eq!(appends("b"), DebugValue::Counter(100));
}

#[test]
fn the_value_of_a_bucket_lies_in_it() {
    for bits in 0..=64 {
        let mut one = Histogram::default();
        let most = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        one.record(most);
        assert_eq!(one.buckets()[bits], 1);
        let least = if bits == 0 { 0 } else { 1u64 << (bits - 1) };
        let middle = middle(bits);
        assert!(least as f64 <= middle && middle <= most as f64, "{bits}: {middle}");
    }
    let recorder = DebuggingRecorder::new();
    let mut stats = Stats::default();
    stats.object_bytes.record(u64::MAX);
    metrics::with_local_recorder(&recorder, || exporter("a").export(&stats));
    let exported = value("sealog_object_bytes", "a", &recorder.snapshotter());
    assert_eq!(exported, histogram(&[0.75 * 2f64.powi(64)]));
}

/// Counts how often something is described.
#[derive(Default)]
struct Described(AtomicUsize);

impl Described {
    fn one_more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Recorder for Described {
    fn describe_counter(&self, _: KeyName, unit: Option<Unit>, _: SharedString) {
        assert!(unit.is_some());
        self.one_more();
    }

    fn describe_gauge(&self, _: KeyName, unit: Option<Unit>, _: SharedString) {
        assert!(unit.is_some());
        self.one_more();
    }

    fn describe_histogram(&self, _: KeyName, unit: Option<Unit>, _: SharedString) {
        assert!(unit.is_some());
        self.one_more();
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn each_figure_is_described_once_also_to_a_recorder_that_comes_late() {
    let recorder = Described::default();
    let mut exporter = exporter("a");
    exporter.export(&Stats::default());
    for _ in 0..3 {
        metrics::with_local_recorder(&recorder, || exporter.export(&lived()));
    }
    assert_eq!(recorder.0.load(Ordering::Relaxed), figures(&lived()).len());
}
