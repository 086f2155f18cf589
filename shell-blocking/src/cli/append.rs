//! `sealog append`: records of files or standard input into regions.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use clap::Args;
use sealog_blocking::{Error, RegionId, Submitted, Wal};
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
            // Behind all that was submitted.
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

        // It would disturb who types, or who reads ids.
        let is_in_the_way =
            all.is_none() && std::io::stdin().is_terminal() || self.ids && output.is_terminal();
        let progress = if is_in_the_way { Progress::none() } else { Progress::bytes(all) };
        let mut acknowledged =
            Acknowledged { output, prints_ids: self.ids, window, progress, records: 0, bytes: 0 };
        let ended = acknowledged.until_the_end(told);
        acknowledged.window.close();
        // Also after a failure: what is under way runs out.
        let stopped = wal.stop();
        let Acknowledged { progress, records, bytes, .. } = acknowledged;
        drop(progress);
        // Of those that were acknowledged only when they are durable, none is missing here.
        let stored = wal.stats()?.object_entries.sum();
        let lost = match &stopped {
            Err(lost @ Error::Lost { .. }) => format!("; {lost}"),
            _ => String::new(),
        };
        let exit = ended.map_err(|failure| {
            failure.map(|text| format!("{text} (records stored before it: {stored}{lost})"))
        })?;
        stopped.map_err(|error| {
            Failure::from(error).map(|text| format!("{text} (records stored: {stored})"))
        })?;
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
        // Not if it was told to end: what told it also tells how.
        if !self.window.inside().is_closed {
            drop(self.tell.send(Told::End(end)));
        }
    }

    fn all_of(&self, input: Input) -> Result<(), Failure> {
        let mut records = input.records(self.division.clone(), self.most);
        while let Some(record) = records.next()? {
            let region = self.target.of(&record).map_err(|what| records.wrong(what))?;
            let bytes = record.len();
            let Some(_turn) = self.window.enter(bytes) else { break };
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
    /// Until the input ends, or a signal was heard and all is answered that was submitted.
    fn until_the_end(&mut self, told: Receiver<Told>) -> Outcome {
        loop {
            match told.recv().ok() {
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
                Some(Told::Signal(number)) => return Ok(Exit::Signal(number)),
                Some(Told::End(end)) => return end.map(|()| Exit::Good),
                None => return Ok(Exit::Good),
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

/// Bounds how much is under way, and ends it: once it is closed, nothing more is submitted.
#[derive(Default)]
struct Window {
    inside: Mutex<Inside>,
    changed: Condvar,
    /// Held while a record is submitted and told of.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Inside {
    bytes: usize,
    is_closed: bool,
}

impl Window {
    /// Waits for room, of which there is some for one record of any size, and gives the turn to
    /// submit it; none if it is closed.
    fn enter(&self, bytes: usize) -> Option<MutexGuard<'_, ()>> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |inside: &mut Inside| {
            !inside.is_closed && inside.bytes > 0 && inside.bytes + bytes > WINDOW_BYTES
        };
        let inside = self.changed.wait_while(self.inside(), is_full);
        let mut inside = inside.unwrap_or_else(PoisonError::into_inner);
        inside.bytes += bytes;
        (!inside.is_closed).then_some(turn)
    }

    fn leave(&self, bytes: usize) {
        self.inside().bytes -= bytes;
        self.changed.notify_all();
    }

    /// Whoever is told of records must go on with that until this returns, or not listen any more.
    fn close(&self) {
        self.inside().is_closed = true;
        self.changed.notify_all();
        drop(self.turn.lock());
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
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
