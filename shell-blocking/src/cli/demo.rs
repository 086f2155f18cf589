//! `sealog demo`: a whole life of a log, in a directory of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::HumanCount;
use sealog_blocking::{EntryId, Options, RegionId, ReplayFilter, ReplayItem, Wal};
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, Outcome};
use crate::cli::output::{Format, Output, took};

/// See a log work: append, crash, recover, release, reclaim
///
/// Makes a log in a new directory on this machine, and says in a line per step what it does and what
/// came of it. Each step is checked; whatever is not as it must be ends it with a code other than 0.
#[derive(Args)]
pub(crate) struct Demo {
    /// Where the log is made: a directory that is missing or empty [default: sealog-demo, or the
    /// first of sealog-demo-2, -3 and so on that is not there]
    directory: Option<PathBuf>,
}

/// Files of this program, whose lines are appended: the region of each is its place, from 1.
const FILES: &[(&str, &str)] = &[
    ("input.rs", include_str!("input.rs")),
    ("append.rs", include_str!("append.rs")),
    ("output.rs", include_str!("output.rs")),
    ("wal.rs", include_str!("../wal.rs")),
    ("README.md", include_str!("../../README.md")),
    ("demo.rs", include_str!("demo.rs")),
];

/// The region that is released.
const RELEASED: RegionId = RegionId(1);

/// How many lines are handed to the program at a time.
const CHUNK: usize = 100;

/// How long to wait for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(30);

impl Demo {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let directory = fresh(self.directory)?;
        let shown = directory.display();
        let mut life = Life { directory: &directory, output, acknowledged: BTreeMap::new() };
        life.say("log", format!("{shown}, a new directory: nothing else is needed"))?;
        let on_their_way = life.append_and_crash()?;
        let wal = life.recover()?;
        life.replay(&wal, &on_their_way)?;
        life.release_and_reclaim(wal)?;
        life.reopen()?;
        let name = life.directory.display().to_string();
        life.say("look", format!("sealog regions {name}; sealog read {name} --region 5 --lines"))?;
        life.say("look", format!("sealog append {name} --region 7 adds what you type"))?;
        Ok(Exit::Good)
    }
}

/// A line that was acknowledged or is on its way, as it is stored.
type Line = String;

struct Life<'a> {
    directory: &'a Path,
    output: &'a mut Output,
    /// By region, in the order of the input.
    acknowledged: BTreeMap<RegionId, Vec<(EntryId, Line)>>,
}

impl Life<'_> {
    fn say(&mut self, step: &'static str, text: String) -> Result<(), Failure> {
        match self.output.format() {
            Format::Table => self.output.line(format_args!("{step:<10} {text}"))?,
            Format::Json => self.output.json(&Said { step, text })?,
        }
        Ok(self.output.flush()?)
    }

    /// Has another process append all lines, and kills it while more are on their way: returns
    /// those that were not acknowledged, with their region.
    fn append_and_crash(&mut self) -> Result<(RegionId, Vec<Line>), Failure> {
        let mut writer = Writer::start(self.directory)?;
        let began = Instant::now();
        let mut waited = Vec::new();
        for (region, (_, text)) in (1..).map(RegionId).zip(FILES) {
            let lines: Vec<Line> = text.lines().map(|line| format!("{region}\t{line}")).collect();
            for chunk in lines.chunks(CHUNK) {
                let handed = Instant::now();
                writer.write(chunk)?;
                for line in chunk {
                    let id = writer.acknowledged(region)?;
                    waited.push(handed.elapsed());
                    self.acknowledged.entry(region).or_default().push((id, line.clone()));
                }
            }
        }
        let all = began.elapsed();
        let lines = self.lines(|_| true);
        let bytes: usize = self.acknowledged.values().flatten().map(|(_, line)| line.len()).sum();
        self.say(
            "appended",
            format!(
                "{} lines of {} files, {} bytes, in {} objects, within {}: a file is a region",
                HumanCount(lines),
                FILES.len(),
                HumanCount(bytes as u64),
                self.objects(|_| true).len(),
                took(all),
            ),
        )?;
        waited.sort_unstable();
        let percentile = |percent: usize| waited[(waited.len() - 1) * percent / 100];
        self.say(
            "durable",
            format!(
                "after {} (median), {} (99th percentile): only then a line is acknowledged",
                took(percentile(50)),
                took(percentile(99)),
            ),
        )?;

        let region = RegionId(FILES.len() as u64);
        let more: Vec<Line> = (1..=CHUNK).map(|n| format!("{region}\tone more: {n}")).collect();
        writer.write(&more)?;
        let ids = writer.kill(region)?;
        let (acknowledged, on_their_way) = more.split_at(ids.len());
        let late = ids.into_iter().zip(acknowledged.iter().cloned());
        self.acknowledged.entry(region).or_default().extend(late);
        self.say(
            "crashed",
            format!(
                "on purpose: the process that appended was killed with {} more lines on their way",
                on_their_way.len()
            ),
        )?;
        Ok((region, on_their_way.to_vec()))
    }

    fn recover(&mut self) -> Result<Wal, Failure> {
        let began = Instant::now();
        let wal = Wal::open_local(self.directory, Options::default())?;
        let took_in_all = took(began.elapsed());
        let objects = wal.stats()?.recovered_objects_total;
        self.say(
            "recovered",
            format!("{objects} objects in {took_in_all}: this process has the log now"),
        )?;
        Ok(wal)
    }

    fn replay(&mut self, wal: &Wal, on_their_way: &(RegionId, Vec<Line>)) -> Result<(), Failure> {
        let began = Instant::now();
        let mut found = replayed(wal)?;
        let (region, lines) = on_their_way;
        let durable = self.acknowledged.get(region).map_or(0, Vec::len);
        let late = match found.get_mut(region) {
            Some(entries) if entries.len() > durable => entries.split_off(durable),
            _ => Vec::new(),
        };
        // They may be there or not: nobody was told that they are.
        if !late.iter().map(|(_, line)| line).eq(lines.iter().take(late.len())) {
            return Err(wrong("lines that were not acknowledged came back as others"));
        }
        self.compare(&found, |_| true)?;
        let others = match (lines.len(), late.len()) {
            (0, _) => String::new(),
            (_, 0) => "; the others are gone".into(),
            (all, late) if all == late => "; the others too".into(),
            (_, late) => format!("; {late} of the others too"),
        };
        self.say(
            "replayed",
            format!(
                "{} acknowledged lines in {}: each is there once, as in its file{others}",
                HumanCount(self.lines(|_| true)),
                took(began.elapsed()),
            ),
        )?;
        // What came back is history from now on.
        self.acknowledged.entry(*region).or_default().extend(late);
        Ok(())
    }

    fn release_and_reclaim(&mut self, wal: Wal) -> Result<(), Failure> {
        let (name, _) = FILES[0];
        let is_released = |region: RegionId| region == RELEASED;
        let held = wal.held_by()?;
        wal.release(RELEASED)?;
        self.say(
            "released",
            format!(
                "region {RELEASED} ({name}): its {} lines are needed no more; it held {} objects",
                HumanCount(self.lines(is_released)),
                held.most.first().map_or(0, |most| most.frees_objects),
            ),
        )?;
        if replayed(&wal)?.contains_key(&RELEASED) {
            return Err(wrong("a released region is replayed"));
        }

        let began = Instant::now();
        let files: Vec<PathBuf> =
            self.objects(is_released).iter().map(|sequence| self.file(*sequence)).collect();
        let bytes: u64 =
            files.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
        // What is deleted lies below the boundary of an object that is durable: one more is needed.
        let region = RegionId(2);
        let line = format!("{region}\tafter the release");
        let id = wal.append(region, line.clone())?;
        self.acknowledged.entry(region).or_default().push((id, line));
        while files.iter().any(|file| file.exists()) {
            if began.elapsed() > PATIENCE {
                return Err(wrong("objects that nobody needs are still there"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.say(
            "reclaimed",
            format!(
                "{} objects, {} bytes, deleted {} after the release",
                files.len(),
                HumanCount(bytes),
                took(began.elapsed()),
            ),
        )?;
        Ok(wal.stop()?)
    }

    fn reopen(&mut self) -> Result<(), Failure> {
        let wal = Wal::open_local(self.directory, Options::default())?;
        let found = replayed(&wal)?;
        wal.stop()?;
        if found.contains_key(&RELEASED) {
            return Err(wrong("a released region came back"));
        }
        self.compare(&found, |region| region != RELEASED)?;
        self.say(
            "reopened",
            format!(
                "the release holds, and the {} other regions have their {} lines",
                FILES.len() - 1,
                HumanCount(self.lines(|region| region != RELEASED)),
            ),
        )
    }

    fn lines(&self, of: impl Fn(RegionId) -> bool) -> u64 {
        let of = self.acknowledged.iter().filter(|(region, _)| of(**region));
        of.map(|(_, lines)| lines.len() as u64).sum()
    }

    /// The sequences of the objects that hold acknowledged lines of these regions.
    fn objects(&self, of: impl Fn(RegionId) -> bool) -> BTreeSet<u64> {
        let of = self.acknowledged.iter().filter(|(region, _)| of(**region));
        of.flat_map(|(_, lines)| lines).map(|(id, _)| id.sequence().0).collect()
    }

    fn file(&self, sequence: u64) -> PathBuf {
        self.directory.join(format!("objects/{sequence:020}.wal"))
    }

    /// That the regions have what was acknowledged, and nothing else.
    fn compare(&self, found: &Replayed, of: impl Fn(RegionId) -> bool) -> Result<(), Failure> {
        for (region, lines) in self.acknowledged.iter().filter(|(region, _)| of(**region)) {
            let found = found.get(region).map_or(&[][..], Vec::as_slice);
            if found != lines {
                return Err(wrong(format!(
                    "region {region} has {} lines that are not the {} that were acknowledged",
                    found.len(),
                    lines.len(),
                )));
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Said {
    step: &'static str,
    text: String,
}

type Replayed = BTreeMap<RegionId, Vec<(EntryId, Line)>>;

fn replayed(wal: &Wal) -> Result<Replayed, Failure> {
    let mut found = Replayed::new();
    for item in wal.replay(ReplayFilter::all()) {
        match item? {
            ReplayItem::Entry(region, entry) => {
                let line = String::from_utf8_lossy(&entry.payload).into_owned();
                found.entry(region).or_default().push((entry.id, line));
            }
            ReplayItem::Hole(hole) => return Err(wrong(format!("{} is damaged", hole.key))),
        }
    }
    Ok(found)
}

fn wrong(what: impl Into<String>) -> Failure {
    Failure::Damage(format!("{}: that is an error of sealog", what.into()))
}

/// A directory in which nothing is.
fn fresh(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match named {
        Some(named) => {
            let is_taken = match named.read_dir() {
                Ok(mut entries) => entries.next().is_some(),
                Err(_) => named.exists(),
            };
            if is_taken {
                let named = named.display();
                return Err(Failure::usage(format!("{named} is no new directory: name another")));
            }
            Ok(named)
        }
        None => {
            let names = (2..).map(|n| PathBuf::from(format!("sealog-demo-{n}")));
            let mut names = std::iter::once(PathBuf::from("sealog-demo")).chain(names);
            names.find(|name| !name.exists()).ok_or_else(|| Failure::usage("no name is left"))
        }
    }
}

/// This program in another process, which appends what it is told.
struct Writer {
    process: Child,
    to: ChildStdin,
    /// The lines that it prints.
    printed: Receiver<Line>,
}

impl Writer {
    fn start(directory: &Path) -> Result<Writer, Failure> {
        let mut process = std::env::current_exe()
            .and_then(|program| {
                Command::new(program)
                    .arg("append")
                    .arg(directory)
                    .args(["--key-column=1", "--ids", "--flush-interval=20ms"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
            })
            .map_err(|error| Failure::usage(format!("cannot start another process: {error}")))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(wrong("a process without input or output"));
        };
        let (tell, printed) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Writer { process, to, printed })
    }

    fn write(&mut self, lines: &[Line]) -> Result<(), Failure> {
        let mut text = lines.join("\n");
        text.push('\n');
        self.to.write_all(text.as_bytes()).map_err(|error| self.ended(error))
    }

    /// The id of the next line, of this region.
    fn acknowledged(&mut self, region: RegionId) -> Result<EntryId, Failure> {
        let printed = self.printed.recv_timeout(PATIENCE).map_err(|error| self.ended(error))?;
        id_of(region, &printed)
    }

    /// Ends it without a warning, and returns the ids that it printed before that.
    fn kill(mut self, region: RegionId) -> Result<Vec<EntryId>, Failure> {
        let killed = self.process.kill().and_then(|()| self.process.wait());
        killed.map_err(|error| self.ended(error))?;
        self.printed.iter().map(|line| id_of(region, &line)).collect()
    }

    fn ended(&self, error: impl std::fmt::Display) -> Failure {
        Failure::Store(format!("the process that appends does no more: {error}"))
    }
}

/// Whatever ends the demonstration, the process is not left behind.
impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn id_of(region: RegionId, printed: &str) -> Result<EntryId, Failure> {
    match printed.split_once(' ') {
        Some((of, id)) if of == region.to_string() => id.parse().ok().map(EntryId),
        _ => None,
    }
    .ok_or_else(|| wrong(format!("{printed:?} is not the id of a line of region {region}")))
}
