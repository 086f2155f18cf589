//! Appends the lines of text files to a log, crashes, opens the log again, and checks that every
//! line is there.
//!
//! ```text
//! cargo run --release -p sealog-tokio --example quickstart
//! cargo run --release -p sealog-tokio --example quickstart -- --dir /tmp/log *.md
//! cargo run --release -p sealog-tokio --features aws --example quickstart -- --url s3://bucket/log
//! ```
//!
//! It can be run again on the same log: each run checks what it appended itself. Any difference
//! ends it with a code other than 0.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Parser;
use futures_util::{StreamExt, TryStreamExt, stream};
use sealog_tokio::{EntryId, Options, ReadItem, RegionId, Wal};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Appends the lines of text files to a log, crashes, and replays them.
#[derive(Parser)]
struct Arguments {
    /// The log's directory
    #[arg(long, default_value = "sealog-quickstart", conflicts_with = "url")]
    dir: PathBuf,
    /// The log's URL, such as s3://bucket/prefix; credentials and endpoint come from the
    /// environment
    #[arg(long)]
    url: Option<String>,
    /// The text files; by default Sealog's own Cargo.lock, README.md and core sources
    files: Vec<PathBuf>,
}

/// A file, and the region that its lines go to.
#[derive(Clone)]
struct Text {
    path: PathBuf,
    region: RegionId,
    lines: Vec<Bytes>,
}

/// How many lines of one file are under way at once.
const WINDOW: usize = 256;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Outcome<()> {
    let paths = if arguments.files.is_empty() { own_files()? } else { arguments.files.clone() };
    let texts = read_files(paths)?;
    let lines: usize = texts.iter().map(|text| text.lines.len()).sum();
    let bytes: usize = texts.iter().flat_map(|text| &text.lines).map(Bytes::len).sum();

    let wal = open(&arguments).await?;
    let location = arguments.url.clone().unwrap_or_else(|| arguments.dir.display().to_string());
    println!("opened     {location} as writer {} of this log", wal.epoch());

    let mut before = Vec::new();
    for text in &texts {
        before.push(wal.latest(text.region).await?);
    }
    let began = Instant::now();
    let mut latencies = append_all(&wal, &texts).await?;
    let took = began.elapsed();
    let objects = wal.stats().await?.created_objects_total;
    println!(
        "appended   {} lines of {} files, {} bytes, in {objects} objects, within {}",
        grouped(lines),
        texts.len(),
        grouped(bytes),
        shown(took)
    );
    latencies.sort_unstable();
    println!(
        "durable    after {} (median), {} (99th percentile)",
        shown(percentile(&latencies, 50)),
        shown(percentile(&latencies, 99))
    );

    drop(wal);
    println!("crashed    on purpose: the log was dropped without a stop");

    let began = Instant::now();
    let wal = open(&arguments).await?;
    let recovery = began.elapsed();
    let recovered = wal.stats().await?.recovered_objects_total;
    println!("recovered  {recovered} objects in {}", shown(recovery));

    let began = Instant::now();
    for (text, before) in texts.iter().zip(before) {
        compare(text, &replay(&wal, text.region, before.next()).await?)?;
    }
    println!(
        "replayed   {} lines of {} regions in {}: each is as in its file",
        grouped(lines),
        texts.len(),
        shown(began.elapsed())
    );
    wal.stop().await?;
    Ok(())
}

async fn open(arguments: &Arguments) -> Outcome<Wal> {
    Ok(match &arguments.url {
        Some(url) => Wal::open_url(url, Options::default()).await?,
        None => Wal::open_local(&arguments.dir, Options::default()).await?,
    })
}

/// A task per file, all at once. Returns how long each line took to become durable.
async fn append_all(wal: &Wal, texts: &[Text]) -> Outcome<Vec<Duration>> {
    let tasks: Vec<_> =
        texts.iter().map(|text| tokio::spawn(append_lines(wal.clone(), text.clone()))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    Ok(latencies)
}

async fn append_lines(wal: Wal, text: Text) -> Outcome<Vec<Duration>> {
    let appends = stream::iter(text.lines).map(|line| {
        let began = Instant::now();
        // Its place is fixed here, so that the lines keep their order.
        let submitted = wal.submit(text.region, line);
        async move {
            submitted.await?;
            Ok(began.elapsed())
        }
    });
    appends.buffered(WINDOW).try_collect().await
}

async fn replay(wal: &Wal, region: RegionId, from: EntryId) -> Outcome<Vec<Bytes>> {
    let mut lines = Vec::new();
    let mut read = wal.read(region, from);
    while let Some(item) = read.try_next().await? {
        match item {
            ReadItem::Entry(entry) => lines.push(entry.payload),
            ReadItem::Hole(hole) => {
                return Err(format!("{} is damaged: {}", hole.key, hole.error).into());
            }
        }
    }
    Ok(lines)
}

fn compare(text: &Text, replayed: &[Bytes]) -> Outcome<()> {
    let name = text.path.display();
    for (number, line) in text.lines.iter().enumerate() {
        let number = number + 1;
        match replayed.get(number - 1) {
            None => return Err(format!("line {number} of {name} is missing").into()),
            Some(found) if found != line => {
                return Err(format!("line {number} of {name} is {found:?}, not {line:?}").into());
            }
            Some(_) => {}
        }
    }
    let surplus = replayed.len() - text.lines.len();
    if surplus > 0 { Err(format!("{surplus} lines too many of {name}").into()) } else { Ok(()) }
}

fn read_files(paths: Vec<PathBuf>) -> Outcome<Vec<Text>> {
    let mut texts = Vec::new();
    for (path, region) in paths.into_iter().zip(1..) {
        let content = std::fs::read(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let content = Bytes::from(content);
        let lines = content.split(|byte| *byte == b'\n').map(|line| content.slice_ref(line));
        texts.push(Text { region: RegionId(region), lines: lines.collect(), path });
    }
    Ok(texts)
}

fn own_files() -> Outcome<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the sources are gone")?;
    let mut files = vec![root.join("Cargo.lock"), root.join("README.md")];
    let mut directories = vec![root.join("core/src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files[2..].sort();
    Ok(files)
}

/// Of sorted values.
fn percentile(values: &[Duration], percent: usize) -> Duration {
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

fn shown(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1000.0),
        seconds => format!("{seconds:.2} s"),
    }
}

/// With a comma between groups of three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
