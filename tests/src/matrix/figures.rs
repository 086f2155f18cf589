//! The exact change of every figure.

use std::collections::BTreeMap;

use sealog_core::{Histogram, Stats};

/// The figures that changed, and by how much.
pub type Change = BTreeMap<&'static str, i64>;

/// What changed of every figure there is. Of a histogram it is how many values it took; of sizes
/// also their sum, of durations not.
pub fn change(before: &Stats, after: &Stats) -> Change {
    let before = all(before);
    let mut change = all(after);
    for (name, figure) in &mut change {
        *figure -= before.get(name).copied().unwrap_or_default();
    }
    change.retain(|_, figure| *figure != 0);
    change
}

/// Names every field: a new figure does not compile before it is here.
fn all(stats: &Stats) -> Change {
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
    let numbers = [
        ("appends", appends_total),
        ("appended entries", appended_entries_total),
        ("appended bytes", appended_bytes_total),
        ("created objects", created_objects_total),
        ("create failures", create_failures_total),
        ("create conflicts", create_conflicts_total),
        ("guards", guards_total),
        ("create retries", create_retries_total),
        ("rejected appends", rejected_appends_total),
        ("stalled appends", stalled_appends_total),
        ("overloaded", overloaded_total),
        ("poisoned", poisoned_total),
        ("rolled back batches", rolled_back_batches_total),
        ("release records", release_records_total),
        ("deleted objects", deleted_objects_total),
        ("failed deletes", failed_deletes_total),
        ("skipped segments", skipped_segments_total),
        ("refetched segments", refetched_segments_total),
        ("recovered objects", recovered_objects_total),
        ("indexed objects", indexed_objects),
        ("indexed bytes", indexed_bytes),
        ("unpersisted bytes", unpersisted_bytes),
        ("queued bytes", queued_bytes),
        ("in flight creates", in_flight_creates),
        ("failing", failing),
        ("epoch", epoch),
        ("reclaim boundary", reclaim_boundary),
    ];
    let counts = [
        ("acknowledged appends", append_ack),
        ("sealed to durable", seal_to_durable),
        ("sized objects", object_bytes),
        ("objects with entries", object_entries),
        ("stalled and admitted appends", stalled_append),
        ("recoveries", recovery),
        ("reads", read),
    ];
    let sums = [("object bytes", object_bytes), ("object entries", object_entries)];
    let number = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    let numbers = numbers.map(|(name, figure)| (name, number(u128::from(*figure))));
    let counts = counts.map(|(name, of)| (name, number(u128::from(Histogram::count(of)))));
    let sums = sums.map(|(name, of)| (name, number(of.sum())));
    numbers.into_iter().chain(counts).chain(sums).collect()
}
