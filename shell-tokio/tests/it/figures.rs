//! The figures, as they arrive at a recorder of the `metrics` facade.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use sealog_tokio::{Error, Options, Stats, Wal};
use tokio::time::Instant;

use crate::store::{Asked, Reaction, TestStore, broken};
use crate::{A, B, PREFIX, one_by_one, payloads};

/// What came in since the last snapshot, of the log with this prefix.
struct Arrived(BTreeMap<String, DebugValue>);

impl Arrived {
    fn at(snapshotter: &Snapshotter, prefix: &str) -> Arrived {
        let rows = snapshotter.snapshot().into_vec();
        let of_prefix = |key: &Key| key.labels().any(|label| label.value() == prefix);
        let rows = rows.into_iter().filter(|(key, ..)| of_prefix(key.key()));
        Arrived(rows.map(|(key, _, _, value)| (key.key().name().to_owned(), value)).collect())
    }

    fn counter(&self, name: &str) -> u64 {
        match &self.0[&format!("sealog_{name}_total")] {
            DebugValue::Counter(value) => *value,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn gauge(&self, name: &str) -> f64 {
        match &self.0[&format!("sealog_{name}")] {
            DebugValue::Gauge(value) => value.0,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn histogram(&self, name: &str) -> Vec<f64> {
        match &self.0[&format!("sealog_{name}")] {
            DebugValue::Histogram(values) => values.iter().map(|value| value.0).collect(),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Two appends, one of which is repeated, one that is too large, and a read of what is there.
async fn live(wal: &Wal, store: &TestStore) {
    wal.append(A, "12345").await.unwrap();
    let failures = AtomicU64::new(0);
    store.react(move |asked, _| match asked {
        Asked::Put if failures.fetch_add(1, Ordering::Relaxed) == 0 => Reaction::Fail(broken()),
        _ => Reaction::Pass,
    });
    wal.append_batch(vec![(A, "1".into()), (B, "2".into()), (B, "3".into())]).await.unwrap();
    wal.append(A, Bytes::from_static(&[0; 11])).await.unwrap_err();
    assert_eq!(payloads(wal, A).await, ["12345", "1"]);
}

fn small_appends() -> Options {
    Options { max_append_bytes: 10, ..one_by_one() }
}

fn check_life(arrived: &Arrived, stats: &Stats) {
    let counters = [
        ("appends", 2),
        ("appended_entries", 4),
        ("appended_bytes", 8),
        ("create_failures", 1),
        ("create_conflicts", 0),
        ("create_retries", 1),
        ("rejected_appends", 1),
        ("stalled_appends", 0),
        ("overloaded", 0),
        ("poisoned", 0),
        ("rolled_back_batches", 0),
        ("skipped_segments", 0),
        ("refetched_segments", 0),
        ("recovered_objects", stats.recovered_objects_total),
        ("created_objects", 2),
    ];
    for (name, expected) in counters {
        assert_eq!(arrived.counter(name), expected, "{name}");
    }
    let gauges = [
        ("indexed_objects", stats.indexed_objects),
        ("indexed_bytes", stats.indexed_bytes),
        ("unpersisted_bytes", 0),
        ("queued_bytes", 0),
        ("in_flight_creates", 0),
        ("failing", 0),
        ("epoch", stats.epoch),
        ("reclaim_boundary", stats.reclaim_boundary),
    ];
    for (name, expected) in gauges {
        assert_eq!(arrived.gauge(name), expected as f64, "{name}");
    }
    assert_eq!(arrived.histogram("object_entries"), [1.0, 2.5], "1 and 3 entries");
    assert_eq!(arrived.histogram("object_bytes"), [191.5, 191.5], "128 bytes to 255");
    // Time stands still, but for the 100 ms after which the second create was repeated.
    const DELAYED: f64 = (0.75 * (1 << 27) as f64 - 0.5) / 1e9;
    assert_eq!(arrived.histogram("append_ack_seconds"), [0.0, DELAYED]);
    assert_eq!(arrived.histogram("seal_to_durable_seconds"), [0.0, DELAYED]);
    assert_eq!(arrived.histogram("stalled_append_seconds"), [0.0; 0]);
    assert_eq!(arrived.histogram("recovery_seconds"), [0.0]);
    assert_eq!(arrived.histogram("read_seconds"), [0.0, 0.0]);
}

#[tokio::test(start_paused = true)]
async fn a_life_arrives_at_a_recorder_that_was_there_before() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, small_appends()).await.unwrap();
    live(&wal, &store).await;
    let stats = wal.stats().await.unwrap();
    wal.stop().await.unwrap();
    check_life(&Arrived::at(&recorder.snapshotter(), PREFIX), &stats);
}

#[tokio::test(start_paused = true)]
async fn a_life_arrives_at_a_recorder_that_came_later() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, small_appends()).await.unwrap();
    live(&wal, &store).await;
    let stats = wal.stats().await.unwrap();
    // It has been exported to nobody.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    wal.stop().await.unwrap();
    check_life(&Arrived::at(&recorder.snapshotter(), PREFIX), &stats);
}

#[tokio::test(start_paused = true)]
async fn two_logs_of_one_process_stay_apart() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    let one = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let other = Wal::open(store, "logs/b", Options::default()).await.unwrap();
    one.append(A, "1").await.unwrap();
    for text in ["22", "333"] {
        other.append(A, text).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let rows = recorder.snapshotter().snapshot().into_vec();
    let appended = |prefix| {
        let row = rows.iter().find(|(key, ..)| {
            key.key().name() == "sealog_appended_bytes_total"
                && key.key().labels().any(|label| label.value() == prefix)
        });
        row.map(|(.., value)| value)
    };
    assert_eq!(appended(PREFIX), Some(&DebugValue::Counter(1)));
    assert_eq!(appended("logs/b"), Some(&DebugValue::Counter(5)));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_opened_again_counts_on() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    for texts in [&["1", "2", "3"][..], &["4"]] {
        let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
        for text in texts {
            wal.append(A, *text).await.unwrap();
        }
        wal.stop().await.unwrap();
    }
    assert_eq!(Arrived::at(&recorder.snapshotter(), PREFIX).counter("appends"), 4);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_exported_before_it_is_answered() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let _later = Wal::open(store, PREFIX, Options::default()).await.unwrap();
    let error = wal.append(A, "fenced").await.unwrap_err();
    assert!(matches!(error.error(), Error::Fenced { .. }), "{error}");
    let arrived = Arrived::at(&recorder.snapshotter(), PREFIX);
    assert_eq!(arrived.counter("poisoned"), 1);
    assert_eq!(arrived.counter("create_conflicts"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_exported_though_another_create_is_in_flight() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    let options = Options { max_in_flight: 4, ..one_by_one() };
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    let _later = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let puts = AtomicU64::new(0);
    store.react(move |asked, _| match asked {
        Asked::Put if puts.fetch_add(1, Ordering::Relaxed) > 0 => Reaction::Hang,
        _ => Reaction::Pass,
    });
    let submitted = [wal.submit(A, "1"), wal.submit(A, "2")];
    for append in submitted {
        append.await.unwrap_err();
    }
    let arrived = Arrived::at(&recorder.snapshotter(), PREFIX);
    assert_eq!(arrived.counter("poisoned"), 1);
    assert_eq!(arrived.counter("create_conflicts"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_figures_go_out_with_the_last_handle() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    wal.append(A, "1").await.unwrap();
    store.hold(Asked::Put);
    let lost = wal.submit(A, "2");
    tokio::task::yield_now().await;
    drop(wal);
    lost.await.unwrap_err();
    tokio::task::yield_now().await;
    let arrived = Arrived::at(&recorder.snapshotter(), PREFIX);
    assert_eq!(arrived.counter("appends"), 2);
    assert_eq!(arrived.gauge("unpersisted_bytes"), 0.0, "nothing is left to persist");
}

#[test]
fn the_last_figures_go_out_with_the_runtime() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let wal = runtime.block_on(async {
        let wal = Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap();
        wal.append(A, "1").await.unwrap();
        wal
    });
    drop(runtime);
    assert_eq!(Arrived::at(&recorder.snapshotter(), PREFIX).counter("appends"), 1);
    drop(wal);
}

/// Notes when the epoch is exported, which each export does once.
#[derive(Default)]
struct Exports(Mutex<Vec<Instant>>);

impl Exports {
    /// In milliseconds after `began`.
    fn since(&self, began: Instant) -> Vec<u128> {
        let exports = self.0.lock().unwrap();
        exports.iter().map(|at| at.duration_since(began).as_millis()).collect()
    }
}

impl Recorder for Exports {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if key.name() == "sealog_epoch" {
            self.0.lock().unwrap().push(Instant::now());
        }
        Gauge::from_arc(Arc::new(AtomicU64::new(0)))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_log_exports_once_a_second_and_an_idle_one_never() {
    let exports = Exports::default();
    let _guard = metrics::set_default_local_recorder(&exports);
    let wal = Wal::open(TestStore::new(), PREFIX, one_by_one()).await.unwrap();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(exports.since(began), [1000], "a second after it was opened");

    let began = Instant::now();
    for _ in 0..32 {
        wal.append(A, "x").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The last append was at 3100 ms.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(wal.stats().await.unwrap().appends_total, 32, "to ask is no change");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let at = &exports.since(began)[1..];
    assert_eq!(at.len(), 4, "{at:?}");
    assert!(at[0] >= 1000 && at[3] <= 4200, "{at:?}");
    assert!(at.is_sorted_by(|earlier, later| later - earlier >= 1000), "{at:?}");

    // After a long rest the first append does not wait for an export, and is in the next one.
    let began = Instant::now();
    wal.append(A, "x").await.unwrap();
    assert_eq!(exports.since(began).len(), 5);
    wal.stop().await.unwrap();
    assert_eq!(exports.since(began)[5..], [0], "at once when it stops");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    drop(wal);
    tokio::task::yield_now().await;
    assert_eq!(exports.since(began).len(), 7, "and when it goes away");
}

/// As a row of the table.
fn row((key, unit, meaning): (Key, Option<Unit>, Option<SharedString>), kind: &str) -> String {
    let (name, unit) = (key.name(), unit.unwrap().as_str());
    format!("| `{name}` | {kind} | {unit} | {} |", meaning.unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_table_in_the_documentation_has_exactly_what_is_exported() {
    let recorder = DebuggingRecorder::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let wal = Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap();
    wal.stop().await.unwrap();
    let rows = recorder.snapshotter().snapshot().into_vec();
    let exported: BTreeSet<String> = rows
        .into_iter()
        .map(|(key, unit, meaning, _)| {
            let kind = match key.kind() {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            row((key.key().clone(), unit, meaning), kind)
        })
        .collect();
    let text = include_str!("../../src/figures.md");
    let documented: BTreeSet<String> =
        text.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    assert_eq!(documented, exported);
}
