//! A writer that tests kill, stop and fence: takes orders as lines on its standard input, and
//! reports on its standard output, each report with one write. See `sealog_tests::child`.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{FutureExt, join_all};
use rustix::process::Signal;
use sealog_tests::child::{Act, Failure, Fault, Kind, Order, Report, signal_oneself};
use sealog_tests::entries::{History, Stamp, Stamped};
use sealog_tests::hooked::{Hooked, Request};
use sealog_tokio::{Options, RegionId, Wal};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

fn main() -> Result<(), Box<dyn Error>> {
    let threads: usize = std::env::args().nth(1).unwrap_or_default().parse()?;
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads).enable_all().build()?;
    let (orders, received) = mpsc::unbounded_channel();
    // Apart from the runtime: whatever the log is busy with, it must not outlive its parent.
    std::thread::spawn(move || {
        let code = match pass_on(&orders) {
            Ok(()) => 0,
            Err(_) => 2,
        };
        std::process::exit(code);
    });
    runtime.block_on(obey(received))
}

fn pass_on(orders: &mpsc::UnboundedSender<Order>) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let order = serde_json::from_str(&line?)?;
        orders.send(order).map_err(io::Error::other)?;
    }
    Ok(())
}

async fn obey(mut orders: mpsc::UnboundedReceiver<Order>) -> Result<(), Box<dyn Error>> {
    let armed = Armed::default();
    let mut wal = None;
    while let Some(order) = orders.recv().await {
        match (order, &wal) {
            (Order::Arm(fault), _) => armed.arm(fault),
            (Order::Open { url, name, settings }, _) => {
                // The log before is gone before this one opens.
                drop(wal.take());
                match open(&url, settings.options(name), &armed).await {
                    Ok(opened) => {
                        report(&Report::Opened { epoch: opened.epoch().0 })?;
                        wal = Some(opened);
                    }
                    Err(error) => report(&Report::Failed(Failure::from(&error)))?,
                }
            }
            (Order::Append { regions, author, from, count, window }, Some(wal)) => {
                let tasks = regions.into_iter().map(|region| {
                    let counters = from..from.saturating_add(count);
                    tokio::spawn(append(wal.clone(), region, author, counters, window))
                });
                for ended in join_all(tasks).await {
                    ended??;
                }
                report(&Report::Done)?;
            }
            (Order::Append { .. }, None) => {
                report(&Report::Failed(not_open()))?;
                report(&Report::Done)?;
            }
            (Order::Read, Some(wal)) => match History::read(wal).await {
                Ok(history) => report(&Report::Read(history))?,
                Err(text) => report(&Report::Failed(failure(Kind::Other, text)))?,
            },
            (Order::Read, None) => report(&Report::Failed(not_open()))?,
        }
    }
    Ok(())
}

async fn open(url: &str, options: Options, armed: &Armed) -> Result<Wal, sealog_tokio::Error> {
    let location = sealog_shell::open_url(url, sealog_shell::environment(), false)?;
    let armed = armed.clone();
    let store = Hooked::new(location.store, move |request| {
        armed.act(&request);
        std::future::ready(Ok(())).boxed()
    });
    Wal::open(store, location.prefix.as_str(), options).await
}

async fn append(
    wal: Wal,
    region: u64,
    author: u64,
    mut counters: std::ops::Range<u64>,
    window: u64,
) -> io::Result<()> {
    let submit = |counter| {
        let stamp = Stamp { region, author, counter };
        (stamp, wal.submit(RegionId(region), stamp.payload()))
    };
    let mut under_way = std::collections::VecDeque::new();
    for counter in counters.by_ref().take(window as usize) {
        under_way.push_back(submit(counter));
    }
    let mut failed = false;
    while let Some((stamp, submitted)) = under_way.pop_front() {
        match submitted.await {
            Ok(id) => report(&Report::Acked(Stamped { id: id.0, stamp }))?,
            Err(error) => {
                failed = true;
                report(&Report::Failed(Failure::from(error.error())))?;
            }
        }
        if !failed && let Some(counter) = counters.next() {
            under_way.push_back(submit(counter));
        }
    }
    Ok(())
}

fn not_open() -> Failure {
    failure(Kind::NotOpen, String::from("the log is not open"))
}

fn failure(kind: Kind, text: String) -> Failure {
    Failure { kind, poisoned: false, writer: None, text }
}

/// The whole line with one write, so that a kill leaves no half of it.
fn report(report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// A fault that waits for its request.
#[derive(Clone, Default)]
struct Armed(Arc<Mutex<Option<Counting>>>);

struct Counting {
    fault: Fault,
    /// How many requests are still let through, and the one whose later moment it is.
    left: u64,
    chosen: Option<u64>,
}

impl Armed {
    fn arm(&self, fault: Fault) {
        let left = fault.number.saturating_sub(1);
        let counting = Counting { fault, left, chosen: None };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(counting);
    }

    fn act(&self, request: &Request) {
        let mut armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counting) = &mut *armed else { return };
        if !counting.meets(request) {
            return;
        }
        let signal = match counting.fault.act {
            Act::Kill => Signal::KILL,
            Act::Stop => Signal::STOP,
        };
        *armed = None;
        drop(armed);
        if let Err(error) = signal_oneself(signal) {
            panic!("{signal:?}: {error}");
        }
    }
}

impl Counting {
    fn meets(&mut self, request: &Request) -> bool {
        use sealog_tests::hooked::Moment::Before;
        let counts = self.fault.asked.is_none_or(|asked| asked == request.asked);
        if request.moment == Before && counts && self.chosen.is_none() {
            match self.left {
                0 => self.chosen = Some(request.number),
                _ => self.left -= 1,
            }
        }
        self.chosen == Some(request.number) && request.moment == self.fault.moment
    }
}
