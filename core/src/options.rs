//! Every option of DESIGN.md section 10, validated once.

use alloc::format;
use alloc::string::String;
use core::fmt::Debug;
use core::ops::RangeBounds;
use core::time::Duration;

use crate::error::Error;

/// How a log behaves. All values are checked when the log is opened, before anything is touched.
///
/// ```
/// use sealog_core::Options;
/// use std::time::Duration;
///
/// let options = Options { flush_interval: Duration::from_millis(20), ..Options::default() };
/// assert!(options.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// When an append is acknowledged. Default: durable.
    pub ack_mode: AckMode,
    /// At most one object that leaves by time is made per interval; zero: as soon as a create
    /// slot is free. 0 to 1 h, default 100 ms.
    pub flush_interval: Duration,
    /// How long a lone append waits for company. 0 to 1 s, default 1 ms.
    pub linger: Duration,
    /// The size at which a batch seals, in bytes of the object. 1 B to 1 GiB, default 8 MiB.
    pub max_batch_bytes: u64,
    /// Larger appends are refused, in bytes of payloads. 1 B to 4 GiB - 1, default 1 GiB.
    pub max_append_bytes: u64,
    /// How many creates run at once. 1 to 64, default 4.
    pub max_in_flight: u32,
    /// In `durable`: how long after its first attempt a create that fails transiently is repeated,
    /// before the batch is rolled back. 0 to 1 h, default 2 s; with 0 a single failure rolls back.
    pub retry_for: Duration,
    /// The time limit of a storage request; a put gets a second more per 8 MiB. 1 ms to 1 h,
    /// default 30 s.
    pub request_timeout: Duration,
    /// In `enqueued`: appends stall while what is not durable would exceed this many bytes. It is
    /// a threshold of admission and does not bound what an outage can lose. From 1 B, default
    /// 64 MiB.
    pub max_unpersisted_bytes: u64,
    /// In `enqueued`: appends stall while something is not durable for this long. From 1 ms,
    /// default 8 s.
    pub max_unpersisted_age: Duration,
    /// What a read does with a segment that does not decode. Default: skip.
    pub on_corrupted_segment: OnCorruptedSegment,
    /// How many requests an opening has under way at once. 1 to 1024, default 64.
    pub open_concurrency: u32,
    /// How many requests a read has under way at once. 1 to 1024, default 64.
    pub read_concurrency: u32,
    /// How many bytes a read has under way or holds, what its caller has taken aside. From 1 MiB,
    /// default 64 MiB.
    pub read_ahead_bytes: u64,
    /// How long after the last success of a read its fetches are repeated that fail in a way that may
    /// pass. 0 to 1 h, default 30 s; with 0 the first failure ends the read.
    pub read_retry_for: Duration,
    /// Appends are let in while less than this many bytes wait for admission (payloads, and 64 bytes
    /// for each append), or nothing does. From 1 B, default 256 MiB.
    pub max_queued_bytes: u64,
    /// How many delete requests run at once. 1 to 1024, default 4.
    pub max_deletes_in_flight: u32,
    /// How long after the last object was sealed an idle log makes one more, if that is what lets
    /// entries that are obsolete be deleted; and how long after a failed delete it is tried again.
    /// Zero: never. Otherwise from 1 s, default 60 s.
    pub reclaim_interval: Duration,
    /// How long after its start an opening repeats what fails transiently. From 1 ns, default
    /// 60 s.
    pub open_timeout: Duration,
    /// How often an opening starts again because another writer's object came in between. From 1,
    /// default 16.
    pub open_attempts: u32,
    /// In `enqueued`: how long after `stop` began its creates are repeated. From 0, default 10 s.
    pub stop_deadline: Duration,
    /// Refuse to begin a new log where nothing is stored. Default off.
    pub must_exist: bool,
    /// Check at each opening that the store honours conditional creates. Default on.
    pub verify_store: bool,
    /// How long claims, start objects and other instances' objects outside history are kept, boundary or
    /// not, since they stand in the way of older writers (DESIGN.md section 12, rule 5). It counts from
    /// when the first object of history above them was written, by the store's own clock, and is taken
    /// at the opening: what must be kept then stays until a later opening. A writer of which nothing was
    /// indexed for half as long looks what stands above its last object before it acknowledges the
    /// next, which costs a listing (rule 7). From 1 min, default 7 days.
    pub fence_retention: Duration,
    /// Shown by inspection and in the error of a writer that loses the log. 1 to 255 bytes;
    /// without it the shell names host and process id.
    pub writer_name: Option<String>,
}

/// When an append is acknowledged (DESIGN.md section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AckMode {
    /// When its object is durable and indexed.
    #[default]
    Durable,
    /// On admission, with its ids: a crash can lose what is not durable yet.
    Enqueued,
}

/// What a read does with a segment that does not decode, also not when fetched once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnCorruptedSegment {
    /// Yield a hole in its place, warn, and go on.
    #[default]
    Skip,
    /// Fail the read.
    Fail,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            ack_mode: AckMode::Durable,
            flush_interval: Duration::from_millis(100),
            linger: Duration::from_millis(1),
            max_batch_bytes: 8 << 20,
            max_append_bytes: 1 << 30,
            max_in_flight: 4,
            retry_for: Duration::from_secs(2),
            request_timeout: Duration::from_secs(30),
            max_unpersisted_bytes: 64 << 20,
            max_unpersisted_age: Duration::from_secs(8),
            on_corrupted_segment: OnCorruptedSegment::Skip,
            open_concurrency: 64,
            read_concurrency: 64,
            read_ahead_bytes: 64 << 20,
            read_retry_for: Duration::from_secs(30),
            max_queued_bytes: 256 << 20,
            max_deletes_in_flight: 4,
            reclaim_interval: Duration::from_secs(60),
            open_timeout: Duration::from_secs(60),
            open_attempts: 16,
            stop_deadline: Duration::from_secs(10),
            must_exist: false,
            verify_store: true,
            fence_retention: Duration::from_secs(7 * 24 * 3600),
            writer_name: None,
        }
    }
}

impl Options {
    /// Checks every option against its range.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] names the first option that is out of range, its value and what
    /// is allowed.
    pub fn validate(&self) -> Result<(), Error> {
        const HOUR: Duration = Duration::from_secs(3600);
        let ms = Duration::from_millis(1);
        let s = Duration::from_secs(1);
        within("flush_interval", self.flush_interval, ..=HOUR, "0 to 1 h")?;
        within("linger", self.linger, ..=s, "0 to 1 s")?;
        within("max_batch_bytes", self.max_batch_bytes, 1..=1 << 30, "1 B to 1 GiB")?;
        let most = u64::from(u32::MAX);
        within("max_append_bytes", self.max_append_bytes, 1..=most, "1 B to 4 GiB - 1 B")?;
        within("max_in_flight", self.max_in_flight, 1..=64, "1 to 64")?;
        within("retry_for", self.retry_for, ..=HOUR, "0 to 1 h")?;
        within("request_timeout", self.request_timeout, ms..=HOUR, "1 ms to 1 h")?;
        within("max_unpersisted_bytes", self.max_unpersisted_bytes, 1.., "1 B or more")?;
        within("max_unpersisted_age", self.max_unpersisted_age, ms.., "1 ms or more")?;
        within("open_concurrency", self.open_concurrency, 1..=1024, "1 to 1024")?;
        within("read_concurrency", self.read_concurrency, 1..=1024, "1 to 1024")?;
        within("read_ahead_bytes", self.read_ahead_bytes, 1 << 20.., "1 MiB or more")?;
        within("read_retry_for", self.read_retry_for, ..=HOUR, "0 to 1 h")?;
        within("max_queued_bytes", self.max_queued_bytes, 1.., "1 B or more")?;
        within("max_deletes_in_flight", self.max_deletes_in_flight, 1..=1024, "1 to 1024")?;
        if !self.reclaim_interval.is_zero() {
            within("reclaim_interval", self.reclaim_interval, s.., "0, or 1 s or more")?;
        }
        within("open_timeout", self.open_timeout, Duration::from_nanos(1).., "more than 0")?;
        within("open_attempts", self.open_attempts, 1.., "1 or more")?;
        let minute = Duration::from_secs(60);
        within("fence_retention", self.fence_retention, minute.., "1 min or more")?;
        if let Some(name) = &self.writer_name
            && !(1..=255).contains(&name.len())
        {
            return Err(invalid("writer_name", name, "1 to 255 bytes"));
        }
        Ok(())
    }
}

fn within<T: PartialOrd + Debug>(
    option: &'static str,
    value: T,
    range: impl RangeBounds<T>,
    allowed: &'static str,
) -> Result<(), Error> {
    if range.contains(&value) { Ok(()) } else { Err(invalid(option, value, allowed)) }
}

fn invalid(option: &'static str, value: impl Debug, allowed: &'static str) -> Error {
    Error::InvalidOptions { option, value: format!("{value:?}").into(), allowed }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_defaults_are_within_their_ranges() {
        Options::default().validate().unwrap();
    }

    /// Every bound of section 10's table, and the first value beyond it.
    #[test]
    fn what_is_out_of_range_is_named_with_its_value() {
        let with = |change: &dyn Fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.validate()
        };
        type Change = fn(&mut Options);
        let good: &[Change] = &[
            |o| o.flush_interval = Duration::ZERO,
            |o| o.flush_interval = Duration::from_secs(3600),
            |o| o.linger = Duration::from_secs(1),
            |o| o.max_batch_bytes = 1,
            |o| o.max_batch_bytes = 1 << 30,
            |o| o.max_append_bytes = 1,
            |o| o.max_append_bytes = (4 << 30) - 1,
            |o| o.max_in_flight = 1,
            |o| o.max_in_flight = 64,
            |o| o.retry_for = Duration::ZERO,
            |o| o.request_timeout = Duration::from_millis(1),
            |o| o.max_unpersisted_bytes = 1,
            |o| o.max_unpersisted_age = Duration::from_millis(1),
            |o| o.stop_deadline = Duration::ZERO,
            |o| o.open_concurrency = 1024,
            |o| o.read_concurrency = 1,
            |o| o.read_ahead_bytes = 1 << 20,
            |o| o.read_retry_for = Duration::ZERO,
            |o| o.max_queued_bytes = 1,
            |o| o.max_deletes_in_flight = 1024,
            |o| o.reclaim_interval = Duration::ZERO,
            |o| o.reclaim_interval = Duration::from_secs(1),
            |o| o.open_attempts = 1,
            |o| o.fence_retention = Duration::from_secs(60),
            |o| o.fence_retention = Duration::MAX,
            |o| o.writer_name = Some("n".repeat(255)),
        ];
        for change in good {
            with(change).unwrap();
        }
        let bad: &[(&str, &str, Change)] = &[
            ("flush_interval", "3600.001s", |o| {
                o.flush_interval = Duration::from_millis(3_600_001)
            }),
            ("linger", "1.001s", |o| o.linger = Duration::from_millis(1001)),
            ("max_batch_bytes", "0", |o| o.max_batch_bytes = 0),
            ("max_batch_bytes", "1073741825", |o| o.max_batch_bytes = (1 << 30) + 1),
            ("max_append_bytes", "0", |o| o.max_append_bytes = 0),
            ("max_append_bytes", "4294967296", |o| o.max_append_bytes = 4 << 30),
            ("max_in_flight", "0", |o| o.max_in_flight = 0),
            ("max_in_flight", "65", |o| o.max_in_flight = 65),
            ("retry_for", "3601s", |o| o.retry_for = Duration::from_secs(3601)),
            ("request_timeout", "999µs", |o| o.request_timeout = Duration::from_micros(999)),
            ("max_unpersisted_bytes", "0", |o| o.max_unpersisted_bytes = 0),
            ("max_unpersisted_age", "999µs", |o| {
                o.max_unpersisted_age = Duration::from_micros(999)
            }),
            ("open_concurrency", "0", |o| o.open_concurrency = 0),
            ("open_concurrency", "1025", |o| o.open_concurrency = 1025),
            ("read_concurrency", "0", |o| o.read_concurrency = 0),
            ("read_ahead_bytes", "1048575", |o| o.read_ahead_bytes = (1 << 20) - 1),
            ("read_retry_for", "3601s", |o| o.read_retry_for = Duration::from_secs(3601)),
            ("max_queued_bytes", "0", |o| o.max_queued_bytes = 0),
            ("max_deletes_in_flight", "0", |o| o.max_deletes_in_flight = 0),
            ("max_deletes_in_flight", "1025", |o| o.max_deletes_in_flight = 1025),
            ("reclaim_interval", "999ms", |o| o.reclaim_interval = Duration::from_millis(999)),
            ("open_timeout", "0ns", |o| o.open_timeout = Duration::ZERO),
            ("open_attempts", "0", |o| o.open_attempts = 0),
            ("fence_retention", "59.999s", |o| o.fence_retention = Duration::from_millis(59_999)),
            ("writer_name", "\"\"", |o| o.writer_name = Some(String::new())),
            ("writer_name", "nnn", |o| o.writer_name = Some("n".repeat(256))),
        ];
        for (name, value, change) in bad {
            let error = with(change).unwrap_err();
            assert!(
                matches!(&error, Error::InvalidOptions { option, .. } if option == name),
                "{name}: {error}"
            );
            assert!(error.to_string().contains(value), "{name}: {error}");
        }
    }
}
