//! `sealog bench`: how fast a log is in a store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use hdrhistogram::Histogram;
use sealog_blocking::{RegionId, Stats, Wal, clear};
use sealog_shell::Location;
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, Outcome, warn};
use crate::cli::location::At;
use crate::cli::options::{LogOptions, size};
use crate::cli::output::{Cell, Format, Output, Row, took};
use crate::cli::progress::Progress;
use crate::cli::signals::Heard;

/// Measure how fast appends are in a store
///
/// Appends to a log of its own, beside the location, under its name with ".bench-" and a number
/// behind it, and deletes that in the end. A log at the location itself is not touched. Each caller
/// is a thread that waits for an append before it begins the next one, and has a region to itself.
/// SIGINT and SIGTERM end the run early.
///
/// How often an object leaves is --flush-interval, of the log's options: with 0s, and more callers,
/// more appends go. While nothing fails, creates are all the requests that appends cost.
///
/// With --rate, an append is timed from when it was due: that one has to wait because those before
/// it took long counts.
#[derive(Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    at: At,
    /// How long appends begin
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    time: Duration,
    /// How many appends begin per second, of all callers [default: as many as go]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// The size of an entry; of several, each in turn, as in 100,4KiB
    #[arg(long = "size", value_name = "SIZE", value_delimiter = ',', default_value = "1KiB", value_parser = entry_size)]
    sizes: Vec<usize>,
    /// How many callers append at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=4096))]
    callers: u16,
    #[command(flatten)]
    options: LogOptions,
}

/// The largest latency that is told apart.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long a caller that waits for its time does not look whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

impl Bench {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let options = self.options.options();
        options.validate()?;
        let place = self.at.scratch("bench")?;
        let heard = Heard::listen()?;
        let measured = self.measure(&place, &heard);
        let progress = Progress::waiting("deleting what was appended");
        let Location { store, prefix } = place;
        let cleared = clear(store, prefix.as_str(), options.request_timeout)
            .map_err(|error| Failure::from(error).map(|e| format!("{prefix} is left behind: {e}")));
        drop(progress);
        let (run, summary) = measured?;
        tell(&run, &summary, output)?;
        cleared?;
        if run.missed > 0 {
            warn(&format!(
                "the log did not keep up with the rate: {} appends were due and not begun",
                run.missed
            ));
        }
        Ok(heard.signal().map_or(Exit::Good, Exit::Signal))
    }

    fn measure(&self, place: &Location, heard: &Heard) -> Result<(Run, Summary), Failure> {
        let wal = self.options.open_at(place.clone())?;
        let before = wal.stats()?;
        let run = self.append(&wal, heard);
        let after = wal.stats();
        // Also after a failure: what is under way runs out.
        let stopped = wal.stop();
        let run = run?;
        stopped?;
        let summary = Summary::of(&run, &before, &after?);
        Ok((run, summary))
    }

    /// Has all callers append until it is time.
    fn append(&self, wal: &Wal, heard: &Heard) -> Result<Run, Failure> {
        let largest = self.sizes.iter().copied().max().unwrap_or_default();
        let load = Load {
            wal,
            heard,
            progress: Progress::bytes(None),
            content: content(largest),
            sizes: &self.sizes,
            began: Instant::now(),
            time: self.time,
            rate: self.rate,
            tickets: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        };
        let ran = thread::scope(|scope| {
            let callers: Vec<_> = (0..self.callers)
                .map(|number| {
                    let load = &load;
                    let caller = thread::Builder::new().name(format!("caller {number}"));
                    caller
                        .spawn_scoped(scope, move || load.call(RegionId(number.into())))
                        .inspect_err(|_| load.has_failed.store(true, Ordering::Relaxed))
                        .map_err(|error| Failure::usage(format!("--callers: {error}")))
                })
                .collect();
            callers
                .into_iter()
                .map(|caller| match caller?.join() {
                    Ok(ran) => ran,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect::<Vec<_>>()
        });
        let mut run = Run::new()?;
        for caller in ran {
            run.add(&caller?)?;
        }
        // With enqueued, what was acknowledged need not be stored yet.
        wal.flush()?;
        run.took = load.began.elapsed();
        // Of those due before the end of the run. A signal ends it earlier than they are.
        if let (Some(rate), None) = (self.rate, heard.signal()) {
            let due = (self.time.as_secs_f64() * f64::from(rate)).ceil() as u64;
            run.missed = due.saturating_sub(run.latencies.len());
        }
        Ok(run)
    }
}

/// What the callers share.
struct Load<'a> {
    wal: &'a Wal,
    heard: &'a Heard,
    progress: Progress,
    content: Bytes,
    sizes: &'a [usize],
    began: Instant,
    time: Duration,
    rate: Option<u32>,
    /// Each append takes one, which says its size and, with a rate, when it is due.
    tickets: AtomicU64,
    has_failed: AtomicBool,
}

impl Load<'_> {
    fn call(&self, region: RegionId) -> Result<Run, Failure> {
        let mut run = Run::new()?;
        while let Some((ticket, due)) = self.next() {
            let size = self.sizes[(ticket % self.sizes.len() as u64) as usize];
            let appended = self.wal.append(region, self.content.slice(..size));
            appended.inspect_err(|_| self.has_failed.store(true, Ordering::Relaxed))?;
            run.record(due.elapsed());
            run.bytes += size as u64;
            self.progress.add(size as u64);
        }
        Ok(run)
    }

    /// Waits until the next append is due; none if that is after the end.
    fn next(&self) -> Option<(u64, Instant)> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let due = match self.rate {
            Some(rate) => {
                let after = Duration::try_from_secs_f64(ticket as f64 / f64::from(rate)).ok()?;
                Some(after).filter(|after| *after < self.time)?;
                self.began.checked_add(after)?
            }
            None => Instant::now(),
        };
        loop {
            if self.began.elapsed() >= self.time || self.is_to_end() {
                return None;
            }
            match due.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Some((ticket, due)),
                left => thread::sleep(left.min(GLANCE)),
            }
        }
    }

    fn is_to_end(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) || self.heard.signal().is_some()
    }
}

/// What came of appends.
struct Run {
    /// In microseconds.
    latencies: Histogram<u64>,
    bytes: u64,
    took: Duration,
    /// Appends that were due and did not begin.
    missed: u64,
}

impl Run {
    fn new() -> Result<Run, Failure> {
        let latencies = Histogram::new_with_bounds(1, LONGEST.as_micros() as u64, 3);
        let latencies = latencies.map_err(Failure::usage)?;
        Ok(Run { latencies, bytes: 0, took: Duration::ZERO, missed: 0 })
    }

    fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(micros);
    }

    fn add(&mut self, other: &Run) -> Result<(), Failure> {
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies).map_err(Failure::usage)
    }

    /// How many took from one power of two, in microseconds, up to the next.
    fn bars(&self) -> Vec<Bar> {
        let mut bars: Vec<Bar> = Vec::new();
        for found in self.latencies.iter_recorded() {
            let from_us = match found.value_iterated_to() {
                0 => 0,
                micros => 1 << micros.ilog2(),
            };
            match bars.last_mut() {
                Some(bar) if bar.from_us == from_us => bar.appends += found.count_at_value(),
                _ => {
                    // What lies between is empty, and shown as that.
                    while let Some(bar) = bars.last().filter(|bar| bar.to_us < from_us) {
                        let (from_us, to_us) = (bar.to_us, bar.to_us * 2);
                        bars.push(Bar { from_us, to_us, appends: 0 });
                    }
                    let to_us = (from_us * 2).max(1);
                    bars.push(Bar { from_us, to_us, appends: found.count_at_value() });
                }
            }
        }
        bars
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Bar {
    from_us: u64,
    /// Exclusive.
    to_us: u64,
    appends: u64,
}

#[derive(Serialize)]
struct Summary {
    appends: u64,
    bytes: u64,
    seconds: f64,
    appends_per_second: f64,
    bytes_per_second: f64,
    p50_us: u64,
    p90_us: u64,
    p99_us: u64,
    p999_us: u64,
    max_us: u64,
    /// Requests to create an object, those that failed included.
    creates: u64,
    failed_creates: u64,
    objects: u64,
    /// Appends that the rate asked for and that did not begin.
    missed: u64,
    histogram: Vec<Bar>,
}

impl Summary {
    fn of(run: &Run, before: &Stats, after: &Stats) -> Summary {
        let seconds = run.took.as_secs_f64();
        let at = |quantile| run.latencies.value_at_quantile(quantile);
        let objects = after.created_objects_total - before.created_objects_total;
        let failed_creates = after.create_failures_total - before.create_failures_total;
        Summary {
            appends: run.latencies.len(),
            bytes: run.bytes,
            seconds,
            appends_per_second: run.latencies.len() as f64 / seconds,
            bytes_per_second: run.bytes as f64 / seconds,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: run.latencies.max(),
            creates: objects + failed_creates,
            failed_creates,
            objects,
            missed: run.missed,
            histogram: run.bars(),
        }
    }
}

fn tell(run: &Run, summary: &Summary, output: &mut Output) -> Result<(), Failure> {
    if output.format() == Format::Json {
        return Ok(output.json(summary)?);
    }
    output.row(&Throughput(summary))?;
    output.line("")?;
    output.row(&Latency(summary))?;
    output.line("")?;
    output.row(&Requests(summary))?;
    let most = summary.histogram.iter().map(|bar| bar.appends).max().unwrap_or_default();
    if most > 0 {
        output.line("")?;
    }
    let mut rows = output.rows();
    for bar in &summary.histogram {
        rows.push(&Drawn { bar, most, all: run.latencies.len() })?;
    }
    Ok(rows.end()?)
}

#[derive(Serialize)]
struct Throughput<'a>(&'a Summary);

impl Row for Throughput<'_> {
    const COLUMNS: &'static [&'static str] =
        &["appends", "bytes", "time", "appends per second", "bytes per second"];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::count(self.0.appends),
            Cell::count(self.0.bytes),
            Cell::id(took(Duration::from_secs_f64(self.0.seconds))),
            Cell::count(self.0.appends_per_second as u64),
            Cell::count(self.0.bytes_per_second as u64),
        ]
    }
}

#[derive(Serialize)]
struct Latency<'a>(&'a Summary);

impl Row for Latency<'_> {
    const COLUMNS: &'static [&'static str] = &["median", "90 %", "99 %", "99.9 %", "longest"];

    fn cells(&self) -> Vec<Cell> {
        let Summary { p50_us, p90_us, p99_us, p999_us, max_us, .. } = self.0;
        [p50_us, p90_us, p99_us, p999_us, max_us].map(|micros| time(*micros)).into()
    }
}

#[derive(Serialize)]
struct Requests<'a>(&'a Summary);

impl Row for Requests<'_> {
    const COLUMNS: &'static [&'static str] =
        &["creates", "of them failed", "objects", "appends per object"];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::count(self.0.creates),
            Cell::count(self.0.failed_creates),
            Cell::count(self.0.objects),
            Cell::count(self.0.appends.checked_div(self.0.objects).unwrap_or_default()),
        ]
    }
}

#[derive(Serialize)]
struct Drawn<'a> {
    bar: &'a Bar,
    /// The largest bar's.
    most: u64,
    all: u64,
}

/// The columns of the largest bar.
const WIDTH: u64 = 40;

impl Row for Drawn<'_> {
    const COLUMNS: &'static [&'static str] = &["from", "to", "appends", "share", ""];

    fn cells(&self) -> Vec<Cell> {
        let appends = self.bar.appends;
        // Whatever is there is seen.
        let length = (appends * WIDTH).div_ceil(self.most.max(1)) as usize;
        vec![
            time(self.bar.from_us),
            time(self.bar.to_us),
            Cell::count(appends),
            Cell::id(format!("{:.1} %", appends as f64 * 100.0 / self.all.max(1) as f64)),
            Cell::text("#".repeat(length)),
        ]
    }
}

fn time(micros: u64) -> Cell {
    Cell::id(took(Duration::from_micros(micros)))
}

/// Bytes that no store or file system makes smaller.
fn content(length: usize) -> Bytes {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(length).collect()
}

fn entry_size(text: &str) -> Result<usize, String> {
    match usize::try_from(size(text)?) {
        Ok(size) if size <= 1 << 30 => Ok(size),
        _ => Err("at most 1GiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_a_power_of_two_and_those_in_between_are_there_too() {
        let mut run = Run::new().unwrap();
        assert_eq!(run.bars(), []);
        for micros in [4, 5, 7, 8, 40, 63] {
            run.record(Duration::from_micros(micros));
        }
        let bars: Vec<_> =
            run.bars().iter().map(|bar| (bar.from_us, bar.to_us, bar.appends)).collect();
        assert_eq!(bars, [(4, 8, 3), (8, 16, 1), (16, 32, 0), (32, 64, 2)]);
    }

    #[test]
    fn an_append_that_took_no_time_or_for_ever_has_a_bar_too() {
        let mut run = Run::new().unwrap();
        run.record(Duration::ZERO);
        run.record(Duration::MAX);
        let bars = run.bars();
        assert_eq!(bars.iter().map(|bar| bar.appends).sum::<u64>(), 2);
        assert_eq!((bars[0].from_us, bars[0].to_us), (0, 1));
        assert!(bars.windows(2).all(|pair| pair[0].to_us == pair[1].from_us));
    }
}
