//! A real process on a real directory, killed at random.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use sealog_tokio::{AckMode, Wal, object_store};

use crate::engine::{Engine, EngineError};
use crate::{A, B, C, ROOT, options};

const DIRECTORY: &str = "SEALOG_ENGINE_DIRECTORY";
const SAYS: &str = "engine: ";
/// Row `n` has the key `n % KEYS`.
const KEYS: u64 = 20;

async fn open(directory: &Path) -> (Engine, Wal) {
    let wal = Wal::open_local(directory.join("log"), options(AckMode::Durable)).await.unwrap();
    let store = LocalFileSystem::new_with_prefix(directory).unwrap().with_fsync(true);
    let engine = Engine::open(Arc::new(store), ROOT, Arc::new(wal.clone())).await.unwrap();
    (engine, wal)
}

/// What a region holds: of each key, its number.
async fn numbers(engine: &Engine) -> Vec<u64> {
    let rows = engine.scan(A).await.unwrap();
    let mut numbers: Vec<u64> = rows
        .iter()
        .map(|row| String::from_utf8(row.value.to_vec()).unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The process that the test below starts and kills; started otherwise it does nothing.
#[tokio::test]
#[expect(clippy::print_stdout, reason = "its parent listens")]
async fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let (engine, _wal) = open(Path::new(&directory)).await;
    let first = numbers(&engine).await.last().map_or(0, |last| last + 1);
    println!("\n{SAYS}opened");
    for n in first.. {
        let key = (n % KEYS).to_string();
        engine.put(A, vec![(key.into(), n.to_string().into())]).await.unwrap();
        println!("{SAYS}put {n}");
        if n % 5 == 0 {
            engine.flush(A).await.unwrap();
        }
        // A table that comes and goes.
        match n % 4 {
            0 => {
                println!("{SAYS}creating");
                for region in [B, C] {
                    match engine.create(region).await {
                        Ok(()) | Err(EngineError::Exists(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                    engine.put(region, vec![("1".into(), "a".into())]).await.unwrap();
                }
                println!("{SAYS}created");
            }
            2 => match engine.drop_regions(&[B, C]).await {
                Ok(_) => println!("{SAYS}dropped"),
                // The process before was killed between the two creations, or had dropped them.
                Err(EngineError::NoRegion(_)) => {}
                Err(error) => panic!("{error}"),
            },
            _ => {}
        }
    }
}

/// Ends it if the test fails.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(directory: &Path) -> (Killed, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_process::child", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    (Killed(child), said)
}

/// What a child said before it was killed.
#[derive(Debug, Default)]
struct Heard {
    put: Option<u64>,
    /// The last thing it said of the table.
    table: Option<String>,
}

impl Heard {
    fn hear(&mut self, line: &str) -> bool {
        let Some(said) = line.strip_prefix(SAYS) else { return false };
        match said.strip_prefix("put ") {
            Some(number) => self.put = Some(number.parse().unwrap()),
            None if said != "opened" => self.table = Some(said.to_owned()),
            None => {}
        }
        true
    }
}

#[tokio::test]
async fn a_process_that_is_killed_at_random_loses_nothing_and_keeps_nothing_that_it_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, wal) = open(directory.path()).await;
    engine.create(A).await.unwrap();
    wal.stop().await.unwrap();
    drop((engine, wal));

    let mut heard = Heard::default();
    for round in 0..8u64 {
        let (mut child, mut said) = start(directory.path());
        // From one word to some dozens, and a moment.
        let mut words = 1 + round * 7;
        while words > 0 {
            let line = said.next().expect("the child ends by itself").unwrap();
            words -= u64::from(heard.hear(&line));
        }
        std::thread::sleep(Duration::from_micros(1 + 700 * (round * round % 7)));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        for line in said.map_while(Result::ok) {
            heard.hear(&line);
        }

        let (engine, wal) = open(directory.path()).await;
        let numbers = numbers(&engine).await;
        if let Some(put) = heard.put {
            // The one that was under way may be there.
            let last = *numbers.last().unwrap();
            assert!((put..=put + 1).contains(&last), "{last} of {heard:?}");
            let expected: BTreeMap<u64, u64> = (0..=last).map(|n| (n % KEYS, n)).collect();
            let mut expected = Vec::from_iter(expected.into_values());
            expected.sort_unstable();
            assert_eq!(numbers, expected, "{heard:?}");
        }
        let regions = wal.regions().await.unwrap();
        let mut there = Vec::new();
        for region in [B, C] {
            let found = engine.scan(region).await;
            let logged = regions.iter().any(|info| info.region == region);
            assert!(found.is_ok() || !logged, "the log holds {region}, which is gone");
            there.push(found.ok().map(|rows| rows.len()));
        }
        match heard.table.as_deref() {
            Some("dropped") => assert_eq!(there, [None; 2], "a dropped region is back"),
            // Whole, or a drop was under way.
            Some("created") => assert!(there == [None; 2] || there == [Some(1); 2], "{there:?}"),
            _ => {}
        }
        wal.stop().await.unwrap();
    }
    assert!(heard.put.is_some_and(|put| put > 50), "{heard:?}");
}
