//! What is the blocking shell's own: how its callers wait, and where they may be. What it has in
//! common with the tokio shell is tested over both, in the crate `sealog-tests`.

mod anywhere;
mod looking;
mod lying;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod told;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use sealog_blocking::object_store::memory::InMemory;
use sealog_blocking::{EntryId, Options, ReadItem, RegionId, Wal};

const A: RegionId = RegionId(1);
const PREFIX: &str = "logs/a";

fn open(options: Options) -> Wal {
    Wal::open(Arc::new(InMemory::new()), PREFIX, options).unwrap()
}

#[cfg(any(feature = "metrics", feature = "tracing"))]
fn open_at(prefix: &str) -> Wal {
    Wal::open(Arc::new(InMemory::new()), prefix, Options::default()).unwrap()
}

/// A log whose next append waits for an hour unless it is flushed.
fn slow() -> Wal {
    let wal = open(Options { flush_interval: Duration::from_secs(3600), ..Options::default() });
    wal.append(A, "leaves by its time").unwrap();
    wal
}

/// All payloads of a region in order; a hole among them fails the test.
fn payloads(wal: &Wal) -> Vec<String> {
    let payload = |item| match item {
        Ok(ReadItem::Entry(entry)) => String::from_utf8(entry.payload.into()).unwrap(),
        other => panic!("{other:?}"),
    };
    wal.read(A, EntryId::ZERO).map(payload).collect()
}
