//! A write-ahead log that lives in an object store, for tokio applications.
//!
//! A storage engine appends entries of many regions; Sealog groups them into immutable objects,
//! creates each with a conditional put, and acknowledges an append once its object is durable.
//! After a crash the log is rebuilt from what the store holds: no local disk, no broker, no lock
//! service.
//!
//! ```
//! use futures_util::TryStreamExt;
//! use sealog_tokio::{Options, ReadItem, RegionId, Wal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().join("log");
//! let wal = Wal::open_local(&directory, Options::default()).await?;
//! let region = RegionId(7);
//!
//! // Acknowledged means durable.
//! let first = wal.append(region, "put a").await?;
//!
//! // Submitting and waiting are two steps, so that one caller can have many appends under way.
//! let submitted = ["put b", "put c"].map(|text| wal.submit(region, text));
//! for append in submitted {
//!     append.await?;
//! }
//! drop(wal); // as a crash would
//!
//! let wal = Wal::open_local(&directory, Options::default()).await?;
//! let mut read = wal.read(region, first);
//! let mut texts = Vec::new();
//! while let Some(item) = read.try_next().await? {
//!     if let ReadItem::Entry(entry) = item {
//!         texts.push(entry.payload);
//!     }
//! }
//! assert_eq!(texts, ["put a", "put b", "put c"]);
//!
//! // What is applied elsewhere is no longer needed.
//! wal.obsolete(region, first).await?;
//! wal.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Wal`] is the handle: cheap to clone, for any number of tasks. One task of its own, the actor,
//! owns the state machine of `sealog-core` that holds all the rules; handles send it commands, and
//! requests to the store run in tasks beside it. Reads go to the store directly and do not hold up
//! appends. [`Wal::read`] reads one region, and [`Wal::replay`] many in one pass over the objects,
//! for an engine that starts. An engine that takes other kinds of logs too takes a [`LogStore`].
//!
//! Acknowledged means durable unless [`Options::ack_mode`] is [`AckMode::Enqueued`]: then an append
//! returns on admission with its id, and [`Wal::wait_durable`] says when it is durable. A crash can
//! lose what is not durable yet, which is the figure `unpersisted_bytes`.
//!
//! Callers are held back while the log cannot take more: their appends wait in the order in which
//! they were submitted, and everything else (reads, [`stop`](Wal::stop),
//! [`wait_durable`](Wal::wait_durable), [`obsolete`](Wal::obsolete), figures) is answered
//! meanwhile. How much waits is bounded by [`Options::max_queued_bytes`]: beyond it
//! [`append`](Wal::append) waits in line, by turns, and [`try_submit`](Wal::try_submit) fails with
//! [`Error::Overloaded`]. [`submit`](Wal::submit) takes any number, at the caller's own risk.
//!
//! One writer at a time has a log. A later opening of the same prefix takes it over, and the
//! earlier one gets [`Error::Fenced`] at its next object. A [`Reader`] reads it beside whoever
//! writes it, and never writes.
//!
//! What the log tells the operator goes to `tracing`: events with the target `sealog`, each with
//! the log's `prefix` and, where there is one, the `key`. That is the feature `tracing`, which is
//! on by default, as is `metrics`, below. The features `aws`, `gcp` and `azure` build in the
//! clients of those stores for [`Wal::open_url`].
#![doc = include_str!("figures.md")]

mod log_store;
mod open;
mod reader;
mod runtime;
mod stream;
mod submitted;
mod wal;

pub use log_store::{LogError, LogFuture, LogStore, LogStream};
pub use object_store;
pub use reader::Reader;
pub use sealog_core::catalog::{HeldBy, Holder, RegionHold, RegionInfo};
pub use sealog_core::error::{AppendUnit, Operation};
pub use sealog_core::format::Entry;
pub use sealog_core::opening::{ObjectKind, ObjectStatus, View, ViewedObject};
pub use sealog_core::read::{Hole, ReplayFilter};
pub use sealog_core::stats::{Histogram, Stats};
pub use sealog_core::{
    AckMode, DecodeError, EntryId, Epoch, Error, Key, Link, ObjectSeq, OnCorruptedSegment, Options,
    Outcome, Part, Prefix, RegionId, StoreError, StoreErrorKind, WriteError,
};
pub use sealog_shell::{DurableWatch, ReadItem, ReplayItem};
pub use stream::{Read, Replay};
pub use submitted::{Submitted, SubmittedBatch};
pub use wal::Wal;
