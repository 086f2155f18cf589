//! A small storage engine on Sealog, put to work: it keeps the lines of a text file in a table of
//! two regions, crashes, opens again, compares, and drops the table.
//!
//! ```text
//! cargo run -p sealog-tokio --example engine
//! cargo run -p sealog-tokio --example engine -- --dir /tmp/engine --enqueued
//! cargo run -p sealog-tokio --example engine -- --memory
//! ```
//!
//! The engine is in the folder `engine`; the README here is the guide to embedding Sealog in one.
//! Any difference ends the program with a code other than 0.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

mod engine;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use engine::{Engine, MemoryLog};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use sealog_tokio::object_store;
use sealog_tokio::{AckMode, LogStore, Options, RegionId, Wal};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Keeps a text in a small storage engine, crashes, and looks for it.
#[derive(Parser)]
struct Arguments {
    /// Where the bucket is
    #[arg(long, default_value = "sealog-engine", conflicts_with = "memory")]
    dir: PathBuf,
    /// Acknowledge a row when the log has admitted it, not when it is durable
    #[arg(long)]
    enqueued: bool,
    /// Take a log in memory, which does not survive, and no Sealog: only what is flushed is kept
    #[arg(long)]
    memory: bool,
}

/// The two regions of a table: its lines, and how many there are.
const LINES: RegionId = RegionId(1);
const COUNTS: RegionId = RegionId(2);
const ROOT: &str = "engine";

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("engine failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Outcome<()> {
    let place = Place::new(&arguments)?;
    let (engine, log) = place.open().await?;
    engine.create(LINES).await?;
    engine.create(COUNTS).await?;
    let lines: Vec<&str> = include_str!("README.md").lines().collect();
    for (number, lines) in lines.chunks(20).enumerate() {
        let first = number * 20;
        let rows = lines.iter().zip(first..);
        let rows =
            rows.map(|(line, number)| (key(number), Bytes::from(line.to_string()))).collect();
        engine.put(LINES, rows).await?;
        let count = (first + lines.len()).to_string();
        engine.put(COUNTS, vec![("lines".into(), count.into())]).await?;
        if number % 3 == 0 || arguments.memory {
            engine.flush(LINES).await?;
        }
    }
    if arguments.memory {
        engine.flush(COUNTS).await?;
    }
    println!("put        {} lines, and their number", lines.len());
    if arguments.enqueued {
        // A crash may take what is not durable: this is how to know that it is.
        for region in [LINES, COUNTS] {
            log.wait_durable(region, log.latest(region).await?).await?;
        }
    }

    drop((engine, log));
    println!("crashed    on purpose");

    let (engine, log) = place.open().await?;
    let found = engine.scan(LINES).await?;
    if !found.iter().map(|row| &row.value[..]).eq(lines.iter().map(|line| line.as_bytes())) {
        return Err(format!("{} lines are not as they were put", found.len()).into());
    }
    let count = engine.scan(COUNTS).await?;
    if count.len() != 1 || count[0].value != lines.len().to_string() {
        return Err(format!("the number of lines is {count:?}").into());
    }
    println!("recovered  {} lines: each as it was put", found.len());

    let dropped = engine.drop_regions(&[LINES, COUNTS]).await?;
    for (region, error) in dropped.failures {
        println!("dropped    region {region}, though: {error}");
    }
    log.stop().await?;
    drop((engine, log));
    let (engine, log) = place.open().await?;
    if engine.scan(LINES).await.is_ok() || engine.scan(COUNTS).await.is_ok() {
        return Err("what was dropped is there".into());
    }
    println!("dropped    the table: it does not come back");
    log.stop().await?;
    Ok(())
}

fn key(number: usize) -> Bytes {
    format!("{number:06}").into()
}

/// The bucket, and what kind of log is on it.
enum Place {
    Directory(PathBuf, AckMode),
    Memory(Arc<InMemory>),
}

impl Place {
    fn new(arguments: &Arguments) -> Outcome<Place> {
        if arguments.memory {
            return Ok(Place::Memory(Arc::default()));
        }
        std::fs::create_dir_all(&arguments.dir)?;
        let ack_mode = if arguments.enqueued { AckMode::Enqueued } else { AckMode::Durable };
        Ok(Place::Directory(arguments.dir.clone(), ack_mode))
    }

    async fn open(&self) -> Outcome<(Engine, Arc<dyn LogStore>)> {
        let (store, log): (Arc<dyn ObjectStore>, Arc<dyn LogStore>) = match self {
            Place::Directory(directory, ack_mode) => {
                let options = Options { ack_mode: *ack_mode, ..Options::default() };
                let log = Wal::open_local(directory.join("log"), options).await?;
                let store = LocalFileSystem::new_with_prefix(directory)?.with_fsync(true);
                (Arc::new(store), Arc::new(log))
            }
            Place::Memory(store) => (store.clone(), Arc::new(MemoryLog::default())),
        };
        let engine = Engine::open(store, ROOT, log.clone()).await?;
        Ok((engine, log))
    }
}
