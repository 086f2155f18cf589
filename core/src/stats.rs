//! The figures of DESIGN.md section 11.

use core::time::Duration;

/// What a log has done and how it stands. Counters count since this writer was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Appends that were admitted.
    pub appends_total: u64,
    /// Entries of admitted appends.
    pub appended_entries_total: u64,
    /// Bytes of payloads of admitted appends.
    pub appended_bytes_total: u64,
    /// Objects of this writer that became part of the log.
    pub created_objects_total: u64,
    /// Attempts to create an object that did not end with it created: transient, refused, or a
    /// conflict.
    pub create_failures_total: u64,
    /// Attempts to create an object that met another object at its key.
    pub create_conflicts_total: u64,
    /// Attempts to create an object that repeat an earlier one.
    pub create_retries_total: u64,
    /// Guards: how often it was looked for objects of others before a batch that follows a skip, or a
    /// silence, became part of the log, repeats included.
    pub guards_total: u64,
    /// Appends that failed without being admitted.
    pub rejected_appends_total: u64,
    /// Appends that had to wait for their place in the machine.
    pub stalled_appends_total: u64,
    /// Appends that were refused because too much waited already.
    pub overloaded_total: u64,
    /// 1 once a terminal error ended the writer.
    pub poisoned_total: u64,
    /// Batches that were rolled back, the open one included.
    pub rolled_back_batches_total: u64,
    /// Release records of objects that became part of the log.
    pub release_records_total: u64,
    /// Objects that were deleted; keys where none was ever seen are not counted.
    pub deleted_objects_total: u64,
    /// Objects whose delete failed, once per attempt.
    pub failed_deletes_total: u64,
    /// Segments that did not decode and were skipped, once per segment.
    pub skipped_segments_total: u64,
    /// Segments that were fetched once more because they did not decode.
    pub refetched_segments_total: u64,
    /// Objects that the opening found and indexed.
    pub recovered_objects_total: u64,

    /// Objects that are part of the log now.
    pub indexed_objects: u64,
    /// Their bytes.
    pub indexed_bytes: u64,
    /// Bytes that are admitted and not indexed yet, as they will stand in objects.
    pub unpersisted_bytes: u64,
    /// Bytes of appends that wait for admission: payloads, and 64 for each.
    pub queued_bytes: u64,
    /// Create slots in use: creates under way, waiting for their repeat, or running out.
    pub in_flight_creates: u64,
    /// 1 while the store refuses creates and the log takes nothing, else 0.
    pub failing: u64,
    /// This writer's epoch.
    pub epoch: u64,
    /// Objects below this sequence are not needed.
    pub reclaim_boundary: u64,

    /// From the arrival of an append to its acknowledgement.
    pub append_ack: Histogram,
    /// From sealing a batch to its indexing.
    pub seal_to_durable: Histogram,
    /// Sizes of indexed objects in bytes.
    pub object_bytes: Histogram,
    /// Entries of indexed objects.
    pub object_entries: Histogram,
    /// How long appends waited for their place, of those that were admitted then.
    pub stalled_append: Histogram,
    /// How long the opening took.
    pub recovery: Histogram,
    /// How long reads of one object took.
    pub read: Histogram,
}

/// A histogram whose buckets are powers of two. Durations are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; 65],
    sum: u128,
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.buckets[(u64::BITS - value.leading_zeros()) as usize] += 1;
        self.sum += u128::from(value);
    }

    /// Counts a duration, in nanoseconds.
    pub fn record_duration(&mut self, duration: Duration) {
        self.record(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The counts: bucket `n` holds the values of `n` bits, which are below `2^n` and at or above
    /// `2^(n-1)`; bucket 0 holds zeros.
    pub fn buckets(&self) -> &[u64; 65] {
        &self.buckets
    }

    /// A value that at least this fraction of all values is at or below, as the upper edge of its
    /// bucket; zero if nothing was counted.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let wanted = fraction * self.count() as f64;
        let mut seen = 0;
        for (bits, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen > 0 && seen as f64 >= wanted {
                return if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            }
        }
        0
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [0; 65], sum: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_keeps_powers_of_two() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0);
        for value in [0, 1, 2, 3, 4, 1000, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.count(), 7);
        assert_eq!(histogram.sum(), 1010 + u128::from(u64::MAX));
        assert_eq!(histogram.buckets()[2], 2, "2 and 3");
        assert_eq!(histogram.quantile(0.5), 3);
        assert_eq!(histogram.quantile(1.0), u64::MAX);
    }
}
