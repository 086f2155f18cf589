//! The log's options as flags, for commands that open a writer.

use std::time::Duration;

use bytesize::ByteSize;
use clap::{ArgAction, Args, ValueEnum};
use sealog_blocking::{AckMode, Error, OnCorruptedSegment, Options, Wal};
use sealog_shell::Location;

use crate::cli::exit::Failure;
use crate::cli::location::At;
use crate::cli::progress::Progress;

/// Durations are written as 100ms, 2s or 1h, sizes as 8MiB or in bytes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of the log")]
pub(crate) struct LogOptions {
    /// When an append is acknowledged: when it is durable, or when it is admitted
    #[arg(long, value_enum, default_value = "durable")]
    ack_mode: Ack,
    /// At most one object that leaves by time per interval; 0s: as soon as a create slot is free
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = humantime::parse_duration)]
    flush_interval: Duration,
    /// How long a lone append waits for company
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = humantime::parse_duration)]
    linger: Duration,
    /// The size at which a batch seals
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = size)]
    max_batch_bytes: u64,
    /// Larger records are refused
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    max_append_bytes: u64,
    /// How many creates run at once
    #[arg(long, value_name = "N", default_value = "4")]
    max_in_flight: u32,
    /// With durable: how long a create that fails transiently is repeated before it is given up
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = humantime::parse_duration)]
    retry_for: Duration,
    /// The time limit of a request to the store; a put gets a second more per 8 MiB
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    request_timeout: Duration,
    /// With enqueued: appends stall while more than this is not durable
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    max_unpersisted_bytes: u64,
    /// With enqueued: appends stall while something is not durable for this long
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = humantime::parse_duration)]
    max_unpersisted_age: Duration,
    /// What a read does with a segment that does not decode: report it and go on, or fail
    #[arg(long, value_enum, default_value = "skip")]
    on_corrupted_segment: OnCorrupted,
    /// How many requests an opening has under way at once
    #[arg(long, value_name = "N", default_value = "64")]
    open_concurrency: u32,
    /// How many requests a read has under way at once
    #[arg(long, value_name = "N", default_value = "64")]
    read_concurrency: u32,
    /// How much a read has under way or holds
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    read_ahead_bytes: u64,
    /// How long a read repeats what fails in a way that may pass
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    read_retry_for: Duration,
    /// Appends are let in while less than this waits for admission
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    max_queued_bytes: u64,
    /// How many delete requests run at once
    #[arg(long, value_name = "N", default_value = "4")]
    max_deletes_in_flight: u32,
    /// When an idle log makes an object so that others can be deleted; 0s: never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    reclaim_interval: Duration,
    /// How long an opening repeats what fails transiently
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    open_timeout: Duration,
    /// How often an opening starts again because another writer came in between
    #[arg(long, value_name = "N", default_value = "16")]
    open_attempts: u32,
    /// With enqueued: how long stopping repeats creates that fail
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    stop_deadline: Duration,
    /// Refuse to begin a new log where nothing is stored
    #[arg(long)]
    must_exist: bool,
    /// Check at the opening that the store honours conditional creates
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set)]
    verify_store: bool,
    /// How long what stands in the way of older writers is kept; 1 minute at least
    #[arg(long, value_name = "TIME", default_value = "7days", value_parser = humantime::parse_duration)]
    fence_retention: Duration,
    /// Shown by inspection and to a writer that loses the log [default: host and process id]
    #[arg(long, value_name = "NAME")]
    writer_name: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ack {
    Durable,
    Enqueued,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnCorrupted {
    Skip,
    Fail,
}

impl LogOptions {
    /// Opens the log for writing. What it tells the operator is shown on standard error.
    pub(crate) fn open(&self, at: &At) -> Result<Wal, Failure> {
        let options = self.options();
        // Before a directory is made.
        options.validate()?;
        let location = at.open(options.must_exist)?;
        self.open_at(location).map_err(|error| at.failed(error))
    }

    /// The same, of a log whose place is known.
    pub(crate) fn open_at(&self, Location { store, prefix }: Location) -> Result<Wal, Error> {
        show_notices();
        let _progress = Progress::waiting("opening the log");
        Wal::open(store, prefix.as_str(), self.options())
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            ack_mode: match self.ack_mode {
                Ack::Durable => AckMode::Durable,
                Ack::Enqueued => AckMode::Enqueued,
            },
            flush_interval: self.flush_interval,
            linger: self.linger,
            max_batch_bytes: self.max_batch_bytes,
            max_append_bytes: self.max_append_bytes,
            max_in_flight: self.max_in_flight,
            retry_for: self.retry_for,
            request_timeout: self.request_timeout,
            max_unpersisted_bytes: self.max_unpersisted_bytes,
            max_unpersisted_age: self.max_unpersisted_age,
            on_corrupted_segment: match self.on_corrupted_segment {
                OnCorrupted::Skip => OnCorruptedSegment::Skip,
                OnCorrupted::Fail => OnCorruptedSegment::Fail,
            },
            open_concurrency: self.open_concurrency,
            read_concurrency: self.read_concurrency,
            read_ahead_bytes: self.read_ahead_bytes,
            read_retry_for: self.read_retry_for,
            max_queued_bytes: self.max_queued_bytes,
            max_deletes_in_flight: self.max_deletes_in_flight,
            reclaim_interval: self.reclaim_interval,
            open_timeout: self.open_timeout,
            open_attempts: self.open_attempts,
            stop_deadline: self.stop_deadline,
            must_exist: self.must_exist,
            verify_store: self.verify_store,
            fence_retention: self.fence_retention,
            writer_name: self.writer_name.clone(),
        }
    }
}

/// Warnings of the log, which go to `tracing`.
fn show_notices() {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .without_time()
        .with_ansi(false)
        .with_target(true)
        .finish();
    // Only the first opening of a process finds none set.
    let _ = tracing_subscriber::util::SubscriberInitExt::try_init(subscriber);
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    text.parse::<ByteSize>().map(|size| size.as_u64())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: LogOptions,
    }

    #[test]
    fn without_flags_the_options_are_the_defaults() {
        let line = Line::parse_from(["log"]);
        assert_eq!(line.options.options(), Options::default());
    }

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        let line = Line::parse_from([
            "log",
            "--flush-interval=1m 5s",
            "--max-batch-bytes=2KiB",
            "--max-append-bytes=77",
            "--ack-mode=enqueued",
        ]);
        let expected = Options {
            flush_interval: Duration::from_secs(65),
            max_batch_bytes: 2048,
            max_append_bytes: 77,
            ack_mode: AckMode::Enqueued,
            ..Options::default()
        };
        assert_eq!(line.options.options(), expected);
    }
}
