//! The sans-IO core of Sealog.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
pub mod catalog;
pub mod chain;
pub mod error;
pub mod event;
pub mod format;
pub mod key;
pub mod opening;
pub mod options;
pub mod read;
pub mod types;

pub use error::{DecodeError, Error, Outcome, Part, StoreError, StoreErrorKind, WriteError};
pub use event::*;
pub use key::{Key, KeyKind, Prefix};
pub use options::{OnCorruptedSegment, Options};
pub use types::{EntryId, Epoch, Link, ObjectSeq, RegionId, Time};
