//! The sans-IO core of Sealog.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod batch;
pub mod catalog;
pub mod chain;
pub mod error;
pub mod event;
pub mod format;
pub mod key;
pub mod opening;
pub mod options;
pub mod read;
pub mod stats;
pub mod types;
pub mod writer;

pub use error::{DecodeError, Error, Outcome, Part, StoreError, StoreErrorKind, WriteError};
pub use event::*;
pub use key::{Key, KeyKind, Prefix};
pub use opening::{Identity, Opening, OpeningEffect, OpeningEvent, Recovered, RecoveryStats};
pub use options::{OnCorruptedSegment, Options};
pub use stats::{Histogram, Stats};
pub use types::{EntryId, Epoch, Link, ObjectSeq, RegionId, Time};
pub use writer::Writer;
