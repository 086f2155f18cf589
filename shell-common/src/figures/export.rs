//! What is exported, under which name, and how.

use std::cell::Cell;
use std::sync::Arc;

use metrics::{IntoF64, SharedString, Unit};
use sealog_core::Prefix;
use sealog_core::stats::{Histogram, Stats};

/// What went out so far, and to whom it belongs.
#[derive(Debug)]
pub(super) struct Exporter {
    prefix: SharedString,
    /// The figures as the recorder has them.
    exported: Stats,
    described: bool,
}

impl Exporter {
    pub(super) fn new(prefix: &Prefix) -> Exporter {
        let prefix = Arc::<str>::from(prefix.as_str()).into();
        Exporter { prefix, exported: Stats::default(), described: false }
    }

    /// Sets the gauges, and adds to counters and histograms what is new.
    ///
    /// Counters are incremented, rather than set to what this log counted: a log that is opened
    /// again in one process has the same label, and counts on from where the earlier one ended.
    pub(super) fn export(&mut self, stats: &Stats) {
        if !self.set_gauges(stats) {
            // There is no recorder: what is new stays new.
            return;
        }
        if !self.described {
            figures(stats).iter().for_each(describe);
            self.described = true;
        }
        for (figure, exported) in figures(stats).iter().zip(&figures(&self.exported)) {
            match (figure.value, exported.value) {
                (Value::Counter(now), Value::Counter(before)) => {
                    metrics::counter!(figure.name, "prefix" => self.prefix.clone())
                        .increment(now.saturating_sub(before));
                }
                (Value::Histogram(now), Value::Histogram(before)) => {
                    let handle = metrics::histogram!(figure.name, "prefix" => self.prefix.clone());
                    record(&handle, &figure.unit, now, before);
                }
                _ => {}
            }
        }
        self.exported = stats.clone();
    }

    /// Says whether there is a recorder that wants any of them.
    fn set_gauges(&self, stats: &Stats) -> bool {
        let wanted = Cell::new(false);
        for figure in &figures(stats) {
            if let Value::Gauge(value) = figure.value {
                let value = Probe { value: value as f64, wanted: &wanted };
                metrics::gauge!(figure.name, "prefix" => self.prefix.clone()).set(value);
            }
        }
        wanted.get()
    }
}

/// Tells whether there is a recorder, which the facade does not: it asks for the number in a value
/// only if there is somebody to hand it to.
struct Probe<'a> {
    value: f64,
    wanted: &'a Cell<bool>,
}

impl IntoF64 for Probe<'_> {
    fn into_f64(self) -> f64 {
        self.wanted.set(true);
        self.value
    }
}

fn record(handle: &metrics::Histogram, unit: &Unit, now: &Histogram, before: &Histogram) {
    // The machine's durations are in nanoseconds.
    let per_unit = if *unit == Unit::Seconds { 1e9 } else { 1.0 };
    for (bits, (now, before)) in now.buckets().iter().zip(before.buckets()).enumerate() {
        let new = usize::try_from(now.saturating_sub(*before)).unwrap_or(usize::MAX);
        if new > 0 {
            handle.record_many(middle(bits) / per_unit, new);
        }
    }
}

/// The value that stands for all in a bucket: the middle between the least and the largest number
/// of so many bits, so that sums and means come out about right. It is at most half too large
/// and a quarter too small, and 0 and 1 are exact.
fn middle(bits: usize) -> f64 {
    match i32::try_from(bits) {
        Ok(bits @ 1..) => 0.75 * 2f64.powi(bits) - 0.5,
        _ => 0.0,
    }
}

fn describe(figure: &Figure<'_>) {
    let Figure { name, unit, meaning, value } = figure;
    let (name, unit, meaning) = (*name, *unit, *meaning);
    match value {
        Value::Counter(_) => metrics::describe_counter!(name, unit, meaning),
        Value::Gauge(_) => metrics::describe_gauge!(name, unit, meaning),
        Value::Histogram(_) => metrics::describe_histogram!(name, unit, meaning),
    }
}

struct Figure<'a> {
    name: &'static str,
    unit: Unit,
    meaning: &'static str,
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Counter(u64),
    Gauge(u64),
    Histogram(&'a Histogram),
}

/// Every figure. The pattern names every field, so that one that is new is not forgotten.
fn figures(stats: &Stats) -> [Figure<'_>; 34] {
    let Stats {
        appends_total,
        appended_entries_total,
        appended_bytes_total,
        created_objects_total,
        create_failures_total,
        create_conflicts_total,
        guards_total,
        create_retries_total,
        rejected_appends_total,
        stalled_appends_total,
        overloaded_total,
        poisoned_total,
        rolled_back_batches_total,
        release_records_total,
        deleted_objects_total,
        failed_deletes_total,
        skipped_segments_total,
        refetched_segments_total,
        recovered_objects_total,
        indexed_objects,
        indexed_bytes,
        unpersisted_bytes,
        queued_bytes,
        in_flight_creates,
        failing,
        epoch,
        reclaim_boundary,
        append_ack,
        seal_to_durable,
        object_bytes,
        object_entries,
        stalled_append,
        recovery,
        read,
    } = stats;
    use Unit::{Bytes, Count, Seconds};
    let counter = |name, unit, value: &u64, meaning| {
        let value = Value::Counter(*value);
        Figure { name, unit, meaning, value }
    };
    let gauge = |name, unit, value: &u64, meaning| {
        let value = Value::Gauge(*value);
        Figure { name, unit, meaning, value }
    };
    let histogram = |name, unit, value, meaning| {
        let value = Value::Histogram(value);
        Figure { name, unit, meaning, value }
    };
    [
        counter("sealog_appends_total", Count, appends_total, "Appends that were admitted"),
        counter(
            "sealog_appended_entries_total",
            Count,
            appended_entries_total,
            "Entries of admitted appends",
        ),
        counter(
            "sealog_appended_bytes_total",
            Bytes,
            appended_bytes_total,
            "Bytes of payloads of admitted appends",
        ),
        counter(
            "sealog_created_objects_total",
            Count,
            created_objects_total,
            "Objects of this writer that became part of the log",
        ),
        counter(
            "sealog_create_failures_total",
            Count,
            create_failures_total,
            "Attempts to create an object that did not end with it created",
        ),
        counter(
            "sealog_create_conflicts_total",
            Count,
            create_conflicts_total,
            "Attempts to create an object that met another object at its key",
        ),
        counter(
            "sealog_guards_total",
            Count,
            guards_total,
            "Looks for objects of others before a batch became part of the log",
        ),
        counter(
            "sealog_create_retries_total",
            Count,
            create_retries_total,
            "Attempts to create an object that repeat an earlier one",
        ),
        counter(
            "sealog_rejected_appends_total",
            Count,
            rejected_appends_total,
            "Appends that failed without being admitted",
        ),
        counter(
            "sealog_stalled_appends_total",
            Count,
            stalled_appends_total,
            "Appends that had to wait for their place",
        ),
        counter(
            "sealog_overloaded_total",
            Count,
            overloaded_total,
            "Appends that were refused because too much waited already",
        ),
        counter(
            "sealog_poisoned_total",
            Count,
            poisoned_total,
            "Writers that a terminal error ended",
        ),
        counter(
            "sealog_rolled_back_batches_total",
            Count,
            rolled_back_batches_total,
            "Batches that were rolled back",
        ),
        counter(
            "sealog_release_records_total",
            Count,
            release_records_total,
            "Release records of objects that became part of the log",
        ),
        counter(
            "sealog_deleted_objects_total",
            Count,
            deleted_objects_total,
            "Objects that were deleted because nothing needs them",
        ),
        counter(
            "sealog_failed_deletes_total",
            Count,
            failed_deletes_total,
            "Objects whose delete failed, once per attempt",
        ),
        counter(
            "sealog_skipped_segments_total",
            Count,
            skipped_segments_total,
            "Damaged segments that were skipped, once each",
        ),
        counter(
            "sealog_refetched_segments_total",
            Count,
            refetched_segments_total,
            "Segments that were fetched once more because they did not decode",
        ),
        counter(
            "sealog_recovered_objects_total",
            Count,
            recovered_objects_total,
            "Objects that openings found and indexed",
        ),
        gauge(
            "sealog_indexed_objects",
            Count,
            indexed_objects,
            "Objects that are part of the log now",
        ),
        gauge("sealog_indexed_bytes", Bytes, indexed_bytes, "Bytes of the indexed objects"),
        gauge(
            "sealog_unpersisted_bytes",
            Bytes,
            unpersisted_bytes,
            "Bytes that are admitted and not durable yet",
        ),
        gauge(
            "sealog_queued_bytes",
            Bytes,
            queued_bytes,
            "Bytes of appends that wait for admission, payloads and 64 for each",
        ),
        gauge(
            "sealog_in_flight_creates",
            Count,
            in_flight_creates,
            "Create slots in use: under way, waiting for their repeat, or running out",
        ),
        gauge(
            "sealog_failing",
            Count,
            failing,
            "1 while the store refuses creates and the log takes nothing, else 0",
        ),
        gauge("sealog_epoch", Count, epoch, "The writer's epoch"),
        gauge(
            "sealog_reclaim_boundary",
            Count,
            reclaim_boundary,
            "Objects below this sequence are not needed",
        ),
        histogram(
            "sealog_append_ack_seconds",
            Seconds,
            append_ack,
            "From the arrival of an append to its acknowledgement",
        ),
        histogram(
            "sealog_seal_to_durable_seconds",
            Seconds,
            seal_to_durable,
            "From sealing a batch to its indexing",
        ),
        histogram("sealog_object_bytes", Bytes, object_bytes, "Sizes of indexed objects"),
        histogram("sealog_object_entries", Count, object_entries, "Entries of indexed objects"),
        histogram(
            "sealog_stalled_append_seconds",
            Seconds,
            stalled_append,
            "How long admitted appends had waited for their place",
        ),
        histogram("sealog_recovery_seconds", Seconds, recovery, "How long the opening took"),
        histogram("sealog_read_seconds", Seconds, read, "How long reads of one object took"),
    ]
}

#[cfg(test)]
mod tests;
