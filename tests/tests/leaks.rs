//! Logs of the blocking shell that are opened and dropped, many in one process, leave nothing. In a
//! process of its own, since threads and memory are the process's.

use std::fs;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use object_store::memory::InMemory;
use sealog_blocking::{Error, Options, RegionId, Wal};
use sealog_tests::hooked::{Asked, Hooked};

const A: RegionId = RegionId(1);

#[test]
fn a_thousand_logs_leave_no_thread_no_store_and_no_memory() {
    let mut stores = Vec::new();
    // What is set up once for the process, and what the allocator keeps.
    (0..100).for_each(|n| stores.push(live(n)));
    all_gone(&mut stores);
    let (threads, resident) = (settled_threads(usize::MAX), resident_bytes());
    (0..1000).for_each(|n| stores.push(live(n)));
    all_gone(&mut stores);
    assert_eq!(settled_threads(threads), threads);
    // A log that stayed would hold its thread's stack and its payloads.
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < 8 << 20, "grown by {grown} bytes, {} per log", grown / 1000);
}

/// A log that is opened and dropped, in one of several conditions; gives its store.
fn live(n: usize) -> Weak<InMemory> {
    let inner = Arc::new(InMemory::new());
    let hangs = Arc::new(AtomicBool::new(false));
    let store = Hooked::new(inner.clone(), {
        let hangs = hangs.clone();
        move |request| {
            let hangs = request.asked == Asked::Put && hangs.load(Ordering::SeqCst);
            async move { if hangs { pending().await } else { Ok(()) } }.boxed()
        }
    });
    let wal = Wal::open(store, "log", Options::default()).unwrap();
    wal.append(A, vec![0; 32 << 10]).unwrap();
    match n % 4 {
        0 => {}
        1 => wal.stop().unwrap(),
        // With a read that is under way.
        2 => drop(wal.read(A, Default::default()).next()),
        // With a request that is, and a thread that waits for it.
        _ => {
            hangs.store(true, Ordering::SeqCst);
            let submitted = wal.submit(A, vec![0; 32 << 10]);
            let waiting = thread::spawn(|| submitted.wait());
            drop(wal);
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error.error(), Error::Stopped), "{error}");
        }
    }
    Arc::downgrade(&inner)
}

fn patience() -> impl FnMut() {
    let began = Instant::now();
    move || {
        assert!(began.elapsed() < Duration::from_secs(60), "something stays");
        sleep(Duration::from_millis(5));
    }
}

/// The threads of logs end by themselves, a moment after their last handle.
fn all_gone(stores: &mut Vec<Weak<InMemory>>) {
    let mut wait = patience();
    for store in stores.drain(..) {
        while store.strong_count() > 0 {
            wait();
        }
    }
}

/// The number of threads, once it is no larger than wanted and stays the same for a while.
fn settled_threads(at_most: usize) -> usize {
    let mut wait = patience();
    let (mut last, mut same) = (threads(), 0);
    while last > at_most || same < 20 {
        wait();
        let now = threads();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

fn threads() -> usize {
    status("Threads:")
}

fn resident_bytes() -> usize {
    status("VmRSS:") << 10
}

fn status(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
