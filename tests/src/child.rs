//! A writer in a process of its own, which does as it is told line by line: what is said in both
//! directions, and the parent's end of it. The child's end is `bin/writer.rs`.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use sealog_tokio::{Error, Options};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

use crate::entries::{History, Stamped};
use crate::hooked::{Asked, Moment};
use crate::place::{Place, named};

/// What the parent says. Orders are obeyed one after the other; each is answered by any number of
/// reports and a last one, which it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Do this at a request that is made from now on. Not answered.
    Arm(Fault),
    /// Open a log and forget the one before. [`Report::Opened`] or [`Report::Failed`].
    Open {
        /// Its URL.
        url: String,
        /// The writer's name.
        name: String,
        /// What else.
        settings: Settings,
    },
    /// Append to several regions side by side, in each with several entries under way, until so
    /// many are acknowledged in each or the first one failed; what is under way then is waited
    /// for. [`Report::Acked`] and [`Report::Failed`], and [`Report::Done`] at the end.
    Append {
        /// The regions.
        regions: Vec<u64>,
        /// The author in the entries' stamps.
        author: u64,
        /// The first one's counter in each region.
        from: u64,
        /// How many in each region.
        count: u64,
        /// How many of a region are under way at once.
        window: u64,
    },
    /// Read all of it. [`Report::Read`] or [`Report::Failed`].
    Read,
}

/// Options of a log that tests choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The flush interval.
    pub flush_millis: u64,
    /// The size at which a batch seals.
    pub max_batch_bytes: u64,
    /// How often the opening starts again.
    pub open_attempts: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        let Options { max_batch_bytes, open_attempts, .. } = Options::default();
        Settings { flush_millis: 0, max_batch_bytes, open_attempts }
    }
}

impl Settings {
    /// Options with these settings.
    pub fn options(self, name: String) -> Options {
        Options {
            flush_interval: Duration::from_millis(self.flush_millis),
            max_batch_bytes: self.max_batch_bytes,
            open_attempts: self.open_attempts,
            ..named(name)
        }
    }
}

/// What becomes of the process at a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which requests are counted; without it all.
    pub asked: Option<Asked>,
    /// The request's number among those.
    pub number: u64,
    /// When.
    pub moment: Moment,
    /// What.
    pub act: Act,
}

/// What a process does to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
}

/// What the child says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The log is open.
    Opened {
        /// The writer's epoch.
        epoch: u64,
    },
    /// An entry was acknowledged.
    Acked(Stamped),
    /// An order, or one of its appends, failed.
    Failed(Failure),
    /// The appends are over.
    Done,
    /// What the log holds.
    Read(History),
}

/// A failure of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What it is, below a poison.
    pub kind: Kind,
    /// Whether it ended the log earlier.
    pub poisoned: bool,
    /// The other writer that it names.
    pub writer: Option<String>,
    /// Its text.
    pub text: String,
}

/// The errors that the tests tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Another opening came in between.
    Contended,
    /// Another writer has the log.
    Fenced,
    /// There is no log: the opening before failed.
    NotOpen,
    /// All others.
    Other,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        let text = error.to_string();
        let (poisoned, below) = match error {
            Error::Poisoned { cause } => (true, &**cause),
            error => (false, error),
        };
        let (kind, writer) = match below {
            Error::Contended { writer, .. } => (Kind::Contended, writer.clone()),
            Error::Fenced { writer, .. } => (Kind::Fenced, writer.clone()),
            _ => (Kind::Other, None),
        };
        Failure { kind, poisoned, writer: writer.map(|name| name.to_string()), text }
    }
}

/// How a series of appends went.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// What was acknowledged, in the order of the reports.
    pub acked: Vec<Stamped>,
    /// What failed.
    pub failures: Vec<Failure>,
}

/// The parent's end of a child. It is killed when this is dropped, and ends by itself when its
/// parent does.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    pid: Pid,
    orders: ChildStdin,
    reports: Lines<BufReader<ChildStdout>>,
}

/// No answer of a child takes this long, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(120);

impl Child {
    /// Starts the program at a path, for logs in a place: with one thread that runs the log, where
    /// a process that stops or kills itself does so at once, or with several.
    ///
    /// # Panics
    ///
    /// It cannot be started.
    pub fn start(program: &str, place: &Place, threads: usize) -> Child {
        let mut process = Command::new(program)
            .arg(threads.to_string())
            .envs(place.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let pid = process.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        match (pid, process.stdin.take(), process.stdout.take()) {
            (Some(pid), Some(orders), Some(reports)) => {
                Child { process, pid, orders, reports: BufReader::new(reports).lines() }
            }
            _ => panic!("{program} ended at once"),
        }
    }

    /// Gives orders, all at once.
    ///
    /// # Panics
    ///
    /// The child is gone.
    pub async fn order(&mut self, orders: &[Order]) {
        let mut lines = String::new();
        for order in orders {
            match serde_json::to_string(order) {
                Ok(line) => lines.extend([&line, "\n"]),
                Err(error) => panic!("{error}"),
            }
        }
        if let Err(error) = self.orders.write_all(lines.as_bytes()).await {
            panic!("the child takes no orders: {error}");
        }
    }

    /// The child's next report; nothing once it has ended. Dropping the future loses nothing.
    ///
    /// # Panics
    ///
    /// It says nothing for too long, or nonsense.
    pub async fn report(&mut self) -> Option<Report> {
        let line = within(LONGEST, "a report", self.reports.next_line()).await;
        match line {
            Ok(line) => line.map(|line| match serde_json::from_str(&line) {
                Ok(report) => report,
                Err(error) => panic!("{error} in {line:?}"),
            }),
            Err(error) => panic!("{error}"),
        }
    }

    /// The next report of a child that is to live.
    ///
    /// # Panics
    ///
    /// It has ended.
    pub async fn next(&mut self) -> Report {
        match self.report().await {
            Some(report) => report,
            None => panic!("the child has ended: {:?}", self.process.wait().await),
        }
    }

    /// Opens a log.
    ///
    /// # Errors
    ///
    /// Why it is not open.
    ///
    /// # Panics
    ///
    /// The child says something else.
    pub async fn open(&mut self, place: &Place, name: &str) -> Result<u64, Failure> {
        self.order(&[Order::open(place, name, Settings::default())]).await;
        self.opened().await
    }

    /// What became of an opening.
    ///
    /// # Errors
    ///
    /// Why it is not open.
    ///
    /// # Panics
    ///
    /// The child says something else.
    pub async fn opened(&mut self) -> Result<u64, Failure> {
        match self.next().await {
            Report::Opened { epoch } => Ok(epoch),
            Report::Failed(failure) => Err(failure),
            other => panic!("no opening: {other:?}"),
        }
    }

    /// What became of appends.
    ///
    /// # Panics
    ///
    /// The child says something else.
    pub async fn appended(&mut self) -> Appended {
        let mut appended = Appended::default();
        loop {
            match self.next().await {
                Report::Acked(entry) => appended.acked.push(entry),
                Report::Failed(failure) => appended.failures.push(failure),
                Report::Done => return appended,
                other => panic!("no append: {other:?}"),
            }
        }
    }

    /// Reads all of the log.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    ///
    /// # Panics
    ///
    /// The child says something else.
    pub async fn read(&mut self) -> Result<History, Failure> {
        self.order(&[Order::Read]).await;
        match self.next().await {
            Report::Read(history) => Ok(history),
            Report::Failed(failure) => Err(failure),
            other => panic!("no history: {other:?}"),
        }
    }

    /// Sends a signal.
    ///
    /// # Panics
    ///
    /// The child is gone.
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process(self.pid, signal) {
            panic!("{signal:?}: {error}");
        }
    }

    /// Waits until the child is stopped by a signal.
    ///
    /// # Panics
    ///
    /// It ends instead, or goes on for too long.
    pub async fn stopped(&self) {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let stopped = async {
            loop {
                match waitid(WaitId::Pid(self.pid), options) {
                    Ok(Some(status)) if status.stopped() => return,
                    Ok(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                    Err(error) => panic!("no stopped child: {error}"),
                }
            }
        };
        within(LONGEST, "SIGSTOP", stopped).await;
    }

    /// Waits until the child has ended, and gives all that it said before.
    ///
    /// # Panics
    ///
    /// It goes on for too long.
    pub async fn last_words(&mut self) -> Vec<Report> {
        let mut said = Vec::new();
        while let Some(report) = self.report().await {
            said.push(report);
        }
        if let Err(error) = within(LONGEST, "the child's end", self.process.wait()).await {
            panic!("{error}");
        }
        said
    }
}

impl Order {
    /// Opens the log at a place.
    pub fn open(place: &Place, name: &str, settings: Settings) -> Order {
        Order::Open { url: place.url.clone(), name: name.to_owned(), settings }
    }

    /// Appends one after the other to one region.
    pub fn append(region: u64, author: u64, counters: std::ops::Range<u64>) -> Order {
        let count = counters.end - counters.start;
        Order::Append { regions: vec![region], author, from: counters.start, count, window: 1 }
    }
}

/// Waits for what must come.
///
/// # Panics
///
/// It does not come in time.
pub async fn within<T>(time: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(time, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} did not come within {time:?}"),
    }
}

/// Sends a signal to this process.
///
/// # Errors
///
/// The system's.
pub fn signal_oneself(signal: Signal) -> io::Result<()> {
    Ok(kill_process(rustix::process::getpid(), signal)?)
}
