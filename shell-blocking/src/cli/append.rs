//! `sealog append`: records of files or standard input into regions.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use clap::Args;
use sealog_blocking::{RegionId, Submitted, Wal};
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, Outcome};
use crate::cli::input::{Division, Input, Target};
use crate::cli::location::At;
use crate::cli::options::LogOptions;
use crate::cli::output::{Cell, Format, Output, Row};
use crate::cli::progress::Progress;
use crate::cli::signals;

/// Append the lines of files or of standard input, or other records
///
/// A log that is not there is begun, and a writer that has the log loses it to this one. SIGINT and
/// SIGTERM stop in order: what was read by then is stored first. A second one ends at once. Whatever
/// ends the program, what it acknowledged is stored.
#[derive(Args)]
pub(crate) struct Append {
    #[command(flatten)]
    at: At,
    /// What to append, in this order; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The region that all records go to
    #[arg(long, value_name = "REGION", required_unless_present = "key_column")]
    region: Option<u64>,
    /// Each line goes to the region whose number is in this column, counted from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["region", "records"], value_parser = clap::value_parser!(u32).range(1..))]
    key_column: Option<u32>,
    /// What separates columns
    #[arg(long, value_name = "TEXT", requires = "key_column", default_value = "\\t", value_parser = delimiter)]
    delimiter: String,
    /// Records with their length before them, four bytes big-endian, instead of lines
    #[arg(long)]
    records: bool,
    /// Print region and id of each record once it is acknowledged, in the order of the input
    #[arg(long)]
    ids: bool,
    #[command(flatten)]
    options: LogOptions,
}

/// How many records are under way at once, and how many of their bytes.
const WINDOW: usize = 1 << 15;
const WINDOW_BYTES: usize = 64 << 20;

impl Append {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        // Before anything is made or a writer loses the log.
        let inputs = Input::all(&self.files)?;
        let all: Option<u64> = inputs.iter().map(Input::len).sum();
        let wal = self.options.open(&self.at)?;

        let (tell, told) = sync_channel(WINDOW);
        let window = Arc::new(Window::default());
        let signalled = tell.clone();
        let of = window.clone();
        signals::listen(move |number| {
            of.close();
            // Behind what was read by then.
            drop(signalled.send(Told::Signal(number)));
        })?;
        let feed = Feed {
            wal: wal.clone(),
            division: if self.records { Division::Lengths } else { Division::Lines },
            target: match (self.region, self.key_column) {
                (Some(region), _) => Target::Region(RegionId(region)),
                (None, number) => {
                    Target::Column(number.unwrap_or(1) as usize, self.delimiter.clone())
                }
            },
            most: self.options.options().max_append_bytes,
            window: window.clone(),
            tell,
        };
        thread::spawn(move || feed.run(inputs));

        let mut acknowledged = Acknowledged {
            output,
            prints_ids: self.ids,
            window,
            progress: Progress::bytes(all),
            records: 0,
            bytes: 0,
        };
        let ended = acknowledged.until_the_end(&told);
        acknowledged.window.close();
        // Also after a failure: what is under way runs out.
        let stopped = wal.stop().map_err(Failure::from);
        let Acknowledged { progress, records, bytes, .. } = acknowledged;
        drop(progress);
        let exit = ended.map_err(|failure| {
            failure.map(|text| format!("{text} (before it, {records} records were stored)"))
        })?;
        stopped?;
        if !self.ids {
            let objects = wal.stats()?.created_objects_total;
            output.row(&Summary { records, bytes, objects, epoch: wal.epoch().0 })?;
        }
        Ok(exit)
    }
}

/// What the feeding thread and the one that listens to signals say.
enum Told {
    Submitted { region: RegionId, bytes: usize, submitted: Submitted },
    End(Result<(), Failure>),
    Signal(i32),
}

/// Reads the input in a thread of its own, which may wait for it without an end.
struct Feed {
    wal: Wal,
    division: Division,
    target: Target,
    most: u64,
    window: Arc<Window>,
    tell: SyncSender<Told>,
}

impl Feed {
    fn run(self, inputs: Vec<Input>) {
        let end = inputs.into_iter().try_for_each(|input| self.all_of(input));
        drop(self.tell.send(Told::End(end)));
    }

    fn all_of(&self, input: Input) -> Result<(), Failure> {
        let mut records = input.records(self.division.clone(), self.most);
        while let Some(record) = records.next()? {
            let region = self.target.of(&record).map_err(|what| records.wrong(what))?;
            let bytes = record.len();
            if !self.window.enter(bytes) {
                break;
            }
            let submitted = self.wal.submit(region, record);
            if self.tell.send(Told::Submitted { region, bytes, submitted }).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Takes the acknowledgements, in the order of the input.
struct Acknowledged<'a> {
    output: &'a mut Output,
    prints_ids: bool,
    window: Arc<Window>,
    progress: Progress,
    records: u64,
    bytes: u64,
}

impl Acknowledged<'_> {
    fn until_the_end(&mut self, told: &Receiver<Told>) -> Outcome {
        let mut exit = Exit::Good;
        loop {
            // After a signal the input may go on for ever, and nothing more is read of it.
            let next = match exit {
                Exit::Signal(_) => told.try_recv().ok(),
                _ => told.recv().ok(),
            };
            match next {
                Some(Told::Submitted { region, bytes, submitted }) => {
                    let id = submitted.wait()?;
                    self.window.leave(bytes);
                    self.records += 1;
                    self.bytes += bytes as u64;
                    self.progress.add(bytes as u64 + 1);
                    if self.prints_ids {
                        self.print(AppendedId { region: region.0, id: id.0 })?;
                    }
                }
                Some(Told::Signal(number)) => exit = Exit::Signal(number),
                Some(Told::End(end)) => {
                    end?;
                    return Ok(exit);
                }
                None => return Ok(exit),
            }
        }
    }

    fn print(&mut self, appended: AppendedId) -> Result<(), Failure> {
        match self.output.format() {
            Format::Table => {
                self.output.line(format_args!("{} {}", appended.region, appended.id))?;
            }
            Format::Json => self.output.json(&appended)?,
        }
        // Whoever reads it may rely on it from now on.
        Ok(self.output.flush()?)
    }
}

/// How many bytes are under way; closed when nothing more is to be read.
#[derive(Default)]
struct Window {
    bytes: Mutex<usize>,
    left: Condvar,
    is_closed: AtomicBool,
}

impl Window {
    /// Waits for room, of which there is some for one record of any size. False if it is closed.
    fn enter(&self, bytes: usize) -> bool {
        let inside = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |inside: &mut usize| {
            *inside > 0 && *inside + bytes > WINDOW_BYTES && !self.is_closed.load(Ordering::SeqCst)
        };
        let mut inside =
            self.left.wait_while(inside, is_full).unwrap_or_else(PoisonError::into_inner);
        *inside += bytes;
        !self.is_closed.load(Ordering::SeqCst)
    }

    fn leave(&self, bytes: usize) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.left.notify_all();
    }

    fn close(&self) {
        let _inside = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::SeqCst);
        self.left.notify_all();
    }
}

#[derive(Serialize)]
struct AppendedId {
    region: u64,
    id: u64,
}

/// What was appended, all in all.
#[derive(Serialize)]
struct Summary {
    records: u64,
    bytes: u64,
    /// That hold them.
    objects: u64,
    epoch: u64,
}

impl Row for Summary {
    const COLUMNS: &'static [&'static str] = &["records", "bytes", "objects", "epoch"];

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::count(self.records),
            Cell::count(self.bytes),
            Cell::count(self.objects),
            Cell::id(self.epoch),
        ]
    }
}

/// With `\t` for a tab, which is hard to write in a shell.
fn delimiter(text: &str) -> Result<String, String> {
    match text.replace("\\t", "\t") {
        text if text.is_empty() => Err("it must not be empty".into()),
        text => Ok(text),
    }
}
