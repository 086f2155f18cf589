//! What ends `sealog append` from outside: SIGKILL, SIGINT, SIGTERM, and a reader that goes away.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sealog_blocking::{EntryId, Options, ReadItem, RegionId, Wal};

use crate::program::{command, start};

const REGIONS: u64 = 3;
/// How many lines may be under way beside those that were acknowledged: fewer than the program
/// takes, so that there is always something to kill.
const AHEAD: usize = 500;

/// A program that appends what a pipe feeds it, without an end.
struct Appending {
    process: Child,
    feed: Option<ChildStdin>,
    printed: Receiver<String>,
    lines: Vec<String>,
    ids: Vec<(u64, u64)>,
}

impl Appending {
    fn start(log: &Path) -> Appending {
        let arguments =
            ["append", log.to_str().unwrap(), "--key-column=1", "--ids", "--flush-interval=5ms"];
        let mut process = start(command(arguments));
        let feed = process.stdin.take();
        let out = process.stdout.take().unwrap();
        let (tell, printed) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines() {
                tell.send(line.unwrap()).unwrap();
            }
        });
        Appending { process, feed, printed, lines: Vec::new(), ids: Vec::new() }
    }

    fn feed_one(&mut self) {
        let number = self.lines.len();
        let line = format!("{}\tline {number}", number as u64 % REGIONS);
        writeln!(self.feed.as_mut().unwrap(), "{line}").unwrap();
        self.lines.push(line);
    }

    /// Feeds until so many are acknowledged, with more always on their way.
    fn until(&mut self, acknowledged: usize) {
        while self.ids.len() < acknowledged {
            while self.lines.len() < self.ids.len() + AHEAD {
                self.feed_one();
            }
            let printed = self.printed.recv_timeout(Duration::from_secs(60)).unwrap();
            self.ids.push(id(&printed));
        }
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let kill = std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(kill.success());
    }

    /// What it ended with, after all that it printed was taken.
    fn ended(&mut self) -> (std::process::ExitStatus, String) {
        self.ids.extend(self.printed.iter().map(|printed| id(&printed)));
        let status = self.process.wait().unwrap();
        let mut err = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status, err)
    }

    /// That each printed id is that of the line in its place, and that nothing else is there but
    /// lines that followed. Returns how many of these there are.
    fn check(&self, log: &Path) -> usize {
        let wal = Wal::open_local(log, Options::default()).unwrap();
        let mut stored: HashMap<u64, Vec<(u64, String)>> = HashMap::new();
        for region in 0..REGIONS {
            for item in wal.read(RegionId(region), EntryId::ZERO) {
                let ReadItem::Entry(entry) = item.unwrap() else { panic!("a hole") };
                let line = String::from_utf8(entry.payload.to_vec()).unwrap();
                stored.entry(region).or_default().push((entry.id.0, line));
            }
        }
        let all: usize = stored.values().map(Vec::len).sum();
        let mut places: HashMap<u64, std::vec::IntoIter<(u64, String)>> =
            stored.into_iter().map(|(region, lines)| (region, lines.into_iter())).collect();
        for (number, line) in self.lines.iter().enumerate().take(all) {
            let region = number as u64 % REGIONS;
            let (id, found) = places.get_mut(&region).unwrap().next().unwrap();
            assert_eq!(&found, line);
            if let Some(printed) = self.ids.get(number) {
                assert_eq!(*printed, (region, id), "line {number}");
            }
        }
        assert!(all >= self.ids.len(), "{all} stored, {} acknowledged", self.ids.len());
        all - self.ids.len()
    }
}

fn id(printed: &str) -> (u64, u64) {
    let (region, id) = printed.split_once(' ').unwrap();
    (region.parse().unwrap(), id.parse().unwrap())
}

#[test]
fn every_printed_id_is_read_back_after_a_kill() {
    let parent = tempfile::tempdir().unwrap();
    for (round, acknowledged) in [1, 40, 900].into_iter().enumerate() {
        let log = parent.path().join(round.to_string());
        let mut appending = Appending::start(&log);
        appending.until(acknowledged);
        appending.process.kill().unwrap();
        let (status, _) = appending.ended();
        assert_eq!(status.code(), None);
        assert!(appending.ids.len() >= acknowledged);
        appending.check(&log);
    }
}

#[cfg(unix)]
#[test]
fn sigint_and_sigterm_stop_the_log_in_order() {
    let parent = tempfile::tempdir().unwrap();
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let log = parent.path().join(name);
        let mut appending = Appending::start(&log);
        appending.until(100);
        appending.signal(name);
        let (status, err) = appending.ended();
        assert_eq!((status.code(), err.as_str()), (Some(code), ""));
        // What it took it also acknowledged.
        assert_eq!(appending.check(&log), 0);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_is_heard_while_the_input_says_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let mut appending = Appending::start(&log);
    appending.feed_one();
    let printed = appending.printed.recv_timeout(Duration::from_secs(60)).unwrap();
    appending.ids.push(id(&printed));
    appending.signal("TERM");
    let (status, err) = appending.ended();
    assert_eq!((status.code(), err.as_str()), (Some(143), ""));
    assert_eq!(appending.check(&log), 0);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let mut process = start(command(["append", log.to_str().unwrap(), "--region=1", "--ids"]));
    drop(process.stdout.take());
    process.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let wal = Wal::open_local(&log, Options::default()).unwrap();
    assert!(wal.read(RegionId(1), EntryId::ZERO).count() >= 1);
}
