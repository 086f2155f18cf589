//! A write-ahead log that lives in an object store, for callers without a runtime.
//!
//! A storage engine appends entries of many regions; Sealog groups them into immutable objects,
//! creates each with a conditional put, and acknowledges an append once its object is durable.
//! After a crash the log is rebuilt from what the store holds: no local disk, no broker, no lock
//! service.
//!
//! ```
//! use sealog_blocking::{Options, ReadItem, RegionId, Wal};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().join("log");
//! let wal = Wal::open_local(&directory, Options::default())?;
//! let region = RegionId(7);
//!
//! // Acknowledged means durable.
//! let first = wal.append(region, "put a")?;
//!
//! // Submitting and waiting are two steps, so that one thread can have many appends under way.
//! let submitted = ["put b", "put c"].map(|text| wal.submit(region, text));
//! for append in submitted {
//!     append.wait()?;
//! }
//! drop(wal); // as a crash would
//!
//! let wal = Wal::open_local(&directory, Options::default())?;
//! let mut texts = Vec::new();
//! for item in wal.read(region, first) {
//!     if let ReadItem::Entry(entry) = item? {
//!         texts.push(entry.payload);
//!     }
//! }
//! assert_eq!(texts, ["put a", "put b", "put c"]);
//!
//! // What is applied elsewhere is no longer needed.
//! wal.obsolete(region, first)?;
//! wal.stop()?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Wal`] is the handle: cheap to clone, for any number of threads. Each log has one background
//! thread, which owns the state machine of `sealog-core` that holds all the rules, and which drives
//! the requests to the store. Calls send it commands and block until they are answered; reads go to
//! the store beside the appends: [`Wal::read`] of one region, and [`Wal::replay`] of many in one
//! pass over the objects, for an engine that starts. No set-up is needed, and calls may also be
//! made where futures run: they block, as any other blocking call does, so a tokio application is
//! better off with
//! `sealog-tokio`, the same log with futures.
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
//! the log's `prefix` and, where there is one, the `key`. They are told in the log's own thread, so
//! a subscriber of the whole process is needed. Figures of [`Wal::stats`] go to the recorder of the
//! `metrics` crate as `sealog_<name>` with the label `prefix`, once a second at most while something
//! changes, and at the log's end. These are the features `tracing` and `metrics`, which are on by
//! default. The features `aws`, `gcp` and `azure` build in the clients of those stores for
//! [`Wal::open_url`].

mod executor;
mod fetch;
mod open;
pub mod quarantine;
mod read;
mod reader;
mod submitted;
mod wait;
mod wal;

pub use fetch::{Fetched, Fetcher};
pub use object_store;
pub use open::{check_store, clear, survey};
pub use read::{Read, Replay};
pub use reader::Reader;
pub use sealog_core::catalog::{HeldBy, Holder, RegionHold, RegionInfo};
pub use sealog_core::error::{AppendUnit, Operation};
pub use sealog_core::format::{Entry, Header, Object, SegmentMeta, WriterRecord};
pub use sealog_core::opening::{
    ObjectKind, ObjectStatus, Problem, Survey, SurveyedObject, View, ViewedObject,
};
pub use sealog_core::read::{Hole, ReplayFilter};
pub use sealog_core::repair;
pub use sealog_core::stats::{Histogram, Stats};
pub use sealog_core::{
    AckMode, DecodeError, EntryId, Epoch, Error, Key, Link, ObjectSeq, OnCorruptedSegment, Options,
    Outcome, Part, Prefix, RegionId, StoreError, StoreErrorKind, WriteError,
};
pub use sealog_shell::{Checked, Demand, MANY, ReadItem, ReplayItem, StoreCheck};
pub use submitted::{Submitted, SubmittedBatch};
pub use wal::Wal;
