//! What can go wrong, said for people: what happened, to which key or region, what it means for
//! the data, and what to do (DESIGN.md section 11).

mod store;

use alloc::sync::Arc;
use core::fmt;

use crate::key::Key;
use crate::options::AckMode;
use crate::types::{EntryId, Epoch, RegionId};

pub use store::{Operation, StoreError, StoreErrorKind};

/// A failure of the log. Cheap to clone: many waiters share one cause.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option or the prefix is out of range. Nothing was touched.
    #[error("invalid {option}: {value}; allowed is {allowed}. Nothing was read or written")]
    InvalidOptions {
        /// The option's name.
        option: &'static str,
        /// Its value.
        value: Arc<str>,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A caller named one of the top 16 regions, which are Sealog's own. Nothing was touched.
    #[error(
        "region {region} is reserved: callers use regions below {first}. Nothing was written",
        first = RegionId::FIRST_RESERVED
    )]
    InvalidRegion {
        /// The region.
        region: RegionId,
    },
    /// An append to a region that was released in full. Nothing of it was written.
    #[error(
        "region {region} was released in full, so nothing is appended to it until the record of \
         that is collected: nothing was written. Use another region id"
    )]
    Released {
        /// The region.
        region: RegionId,
    },
    /// An append was larger than the log takes. Nothing of it was written.
    #[error(
        "an append of {size} {unit} exceeds the limit of {limit} {unit}; nothing of it was written. \
         Split it, or raise max_append_bytes if it is bytes"
    )]
    AppendTooLarge {
        /// How large it was.
        size: u64,
        /// The limit.
        limit: u64,
        /// What was counted.
        unit: AppendUnit,
    },
    /// `must_exist` is set and no object of a log is there. Nothing was written.
    #[error(
        "no log at {prefix:?}: nothing is stored there and must_exist is set. \
         Check the prefix, or open without must_exist to begin a new log"
    )]
    Missing {
        /// The prefix.
        prefix: Arc<str>,
    },
    /// An opening met another opening, or kept meeting a running writer's new objects.
    #[error(
        "opening was overtaken at {key} by {}, epoch {epoch}: another process opens or writes this \
         log. What is stored is untouched; retry if this process should have the log",
        Writer(writer)
    )]
    Contended {
        /// Where they met.
        key: Key,
        /// The other's epoch.
        epoch: Epoch,
        /// The other's name, if it could be read.
        writer: Option<Arc<str>>,
    },
    /// An `obsolete` above everything handed out, while entries of the region are on their way:
    /// they would be acknowledged and hidden at once. Nothing changed.
    #[error(
        "region {region} has entries that are not durable yet, and {id} is above all of them: \
         nothing was made obsolete. Retry when they are durable"
    )]
    Unsettled {
        /// The region.
        region: RegionId,
        /// The id that was to become obsolete.
        id: EntryId,
    },
    /// The store refuses to create objects, so an `enqueued` log takes nothing more until it does
    /// again. What was acknowledged is kept and tried again.
    #[error(
        "the store refuses what the log writes ({cause}): nothing more is taken until that passes. \
         What was acknowledged is kept and tried again; mend the cause, and retry"
    )]
    Failing {
        /// The refusal.
        cause: Arc<Error>,
    },
    /// A request to the store failed.
    #[error("{operation} {key} failed: {source}. {}", source.advice_after(*operation))]
    Store {
        /// What was asked of the store.
        operation: Operation,
        /// Of which key.
        key: Key,
        /// How it failed. The text of this error holds its text, so it is no
        /// [`source`](core::error::Error::source) too: whoever prints a chain would print it twice.
        r#source: StoreError,
    },
    /// A stale object held the sequence; the batches that were not durable are rolled back.
    #[error(
        "{key} is held by an object of an earlier writer, so what was to be stored there is rolled \
         back. The log goes on with other sequences; retry"
    )]
    Conflict {
        /// The key.
        key: Key,
    },
    /// In `enqueued`: the object of an earlier writer that landed late took the place of acknowledged
    /// entries. This writer ends; `stop` says what was lost.
    #[error(
        "{key} is held by a late object of an earlier writer (epoch {epoch}), where acknowledged \
         entries were to be stored: this writer ends, and what it had not stored by then is lost, as \
         stop reports. The log itself is sound: open it again to go on"
    )]
    Displaced {
        /// The key.
        key: Key,
        /// The epoch of the object that stands there.
        epoch: Epoch,
    },
    /// An object was written by a later version of Sealog. Nothing is wrong with it, and this version
    /// changes nothing of such a log.
    #[error(
        "{key} has format version {version}, which this version of Sealog does not know: it is not \
         damaged. The log is left as it is; use a version of Sealog that knows the format"
    )]
    NewerFormat {
        /// The object.
        key: Key,
        /// Its version.
        version: u16,
    },
    /// More waits for admission than `max_queued_bytes` allows. Nothing of the append was written.
    #[error(
        "more than {limit} bytes wait for the log to take them (max_queued_bytes): nothing of this \
         append was written. Retry when the store has caught up, or wait for a place with append"
    )]
    Overloaded {
        /// The limit, in bytes.
        limit: u64,
    },
    /// An `obsolete` so far above everything in the log that the sequences between would be used up.
    /// Nothing changed.
    #[error(
        "{id} is too far above everything in the log to make obsolete: at most {limit} is possible \
         now, since every sequence between may cost a later opening a claim. Nothing was changed; \
         check where the id comes from"
    )]
    IdTooFar {
        /// The id that was to become obsolete.
        id: EntryId,
        /// The largest id that could be made obsolete now.
        limit: EntryId,
    },
    /// A wait for an id whose batch failed so long ago that the cause is not kept.
    #[error(
        "nothing with the id {id} became durable in region {region}: its batch failed, longer ago than \
         causes are kept, or it was never handed out. Waiting does not help"
    )]
    NotStored {
        /// The region.
        region: RegionId,
        /// The id.
        id: EntryId,
    },
    /// Another writer has the prefix: this one acknowledges nothing more.
    #[error(
        "this writer (epoch {epoch}) has lost the log to {} (epoch {theirs}), whose object stands \
         at {key}. {} Nothing more is acknowledged here. \
         Stop, and open again only if this process should have the log",
        Writer(writer),
        what_is_kept(*ack_mode, epoch == theirs)
    )]
    Fenced {
        /// Where the other's object was met.
        key: Key,
        /// This writer's epoch.
        epoch: Epoch,
        /// The other's epoch.
        theirs: Epoch,
        /// The other's name, if its start object could be read.
        writer: Option<Arc<str>>,
        /// When this writer acknowledges, which decides what is kept of it.
        ack_mode: AckMode,
    },
    /// What is stored is damaged, or something is lost.
    #[error(
        "{key} is damaged: {part}: {reason}. {}eep the objects as they are and inspect the log",
        Changed(created)
    )]
    Corrupted {
        /// The object.
        key: Key,
        /// The part of the object.
        part: Part,
        /// What was expected and what was found.
        reason: Arc<str>,
        /// Of an opening: the claims and start objects that it had put before it met the damage, or
        /// may have put, where an answer was lost; empty if it changed nothing. `None` where nothing
        /// is said of that, as by a writer or a read.
        created: Option<Arc<[Key]>>,
    },
    /// The store does not honour conditional creates, so it could silently overwrite entries.
    #[error(
        "the store does not honour conditional create (put if absent), seen at {key}: a log there \
         could be overwritten silently. It can be read, but not written; use a store or a \
         configuration of it that supports conditional create"
    )]
    UnsafeStore {
        /// The key that showed it.
        key: Key,
    },
    /// The log has used its last sequence, `2^44 - 1`.
    #[error(
        "the log has used its last object sequence: nothing more can be appended. What is stored \
         stays readable; begin a new log under another prefix"
    )]
    SequenceExhausted,
    /// The log was stopped.
    #[error("the log is stopped: open it again to go on")]
    Stopped,
    /// An earlier terminal error ended this writer.
    #[error("the log ended earlier: {cause}")]
    Poisoned {
        /// The first terminal error.
        cause: Arc<Error>,
    },
    /// What `stop` could not save.
    #[error(
        "stopping could not save {entries} acknowledged entries and {releases} release records: {cause}. \
         Append again what an engine still has, and release those regions again, once the log is \
         open"
    )]
    Lost {
        /// Acknowledged entries that are not durable.
        entries: u64,
        /// Release records that are not durable.
        releases: u64,
        /// Why.
        cause: Arc<Error>,
    },
}

impl Error {
    /// Whether the same call may succeed if it is made again later, on this log or on one opened
    /// anew.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Contended { .. }
            | Error::Unsettled { .. }
            | Error::Failing { .. }
            | Error::Conflict { .. }
            | Error::Overloaded { .. } => true,
            Error::Store { source, .. } => source.is_retryable(),
            Error::InvalidOptions { .. }
            | Error::InvalidRegion { .. }
            | Error::Released { .. }
            | Error::AppendTooLarge { .. }
            | Error::Missing { .. }
            | Error::Displaced { .. }
            | Error::NewerFormat { .. }
            | Error::IdTooFar { .. }
            | Error::NotStored { .. }
            | Error::Fenced { .. }
            | Error::Corrupted { .. }
            | Error::UnsafeStore { .. }
            | Error::SequenceExhausted
            | Error::Stopped
            | Error::Poisoned { .. }
            | Error::Lost { .. } => false,
        }
    }

    /// A damaged or lost object.
    pub(crate) fn corrupted(key: Key, error: DecodeError) -> Error {
        Error::Corrupted { key, part: error.part, reason: error.reason, created: None }
    }
}

/// What a failed append means for its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// No request that held the entries was ever sent: they are nowhere.
    NotWritten,
    /// The entries may be stored: they may be replayed by a later opening, if nothing was
    /// acknowledged after them.
    Unknown,
}

/// Why an append failed, and what that means for its entries.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error} ({})", what_became_of_the_entries(error, *outcome))]
pub struct WriteError {
    error: Error,
    outcome: Outcome,
}

impl WriteError {
    /// Pairs a cause with what it means for the entries.
    pub fn new(error: Error, outcome: Outcome) -> WriteError {
        WriteError { error, outcome }
    }

    /// What happened.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// What may have become of the entries.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether the same append may succeed if it is made again.
    pub fn is_retryable(&self) -> bool {
        self.error.is_retryable()
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Error {
        error.error
    }
}

/// What a limit on appends counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppendUnit {
    /// Bytes of payloads, against `max_append_bytes`.
    Bytes,
    /// Entries of one region, against the positions of one object.
    Entries,
}

impl fmt::Display for AppendUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AppendUnit::Bytes => "bytes",
            AppendUnit::Entries => "entries of one region",
        })
    }
}

/// The parts of an object that errors name (FORMAT.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The object as a whole: too short for one, or missing.
    Object,
    /// The first 54 bytes.
    Header,
    /// The table of segments.
    Footer,
    /// The last 32 bytes.
    Trailer,
    /// The segment of a region.
    Segment(RegionId),
    /// The payload of the reserved region of release records.
    ReleaseRecords,
    /// The payload of the reserved region of the writer record.
    WriterRecord,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Object => f.write_str("object"),
            Part::Header => f.write_str("header"),
            Part::Footer => f.write_str("footer"),
            Part::Trailer => f.write_str("trailer"),
            Part::Segment(region) => write!(f, "segment of region {region}"),
            Part::ReleaseRecords => f.write_str("release records"),
            Part::WriterRecord => f.write_str("writer record"),
        }
    }
}

/// Bytes that do not decode: the part, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{part}: {reason}")]
pub struct DecodeError {
    /// The part that does not decode.
    pub part: Part,
    /// What was expected and what was found.
    pub reason: Arc<str>,
}

impl DecodeError {
    /// A part that does not decode.
    pub(crate) fn new(part: Part, reason: impl Into<Arc<str>>) -> DecodeError {
        DecodeError { part, reason: reason.into() }
    }
}

/// What an opening that met damage had changed by then, up to the first letter of "keep".
struct Changed<'a>(&'a Option<Arc<[Key]>>);

impl fmt::Display for Changed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(created) = self.0 else { return f.write_str("K") };
        let Some(first) = created.first() else { return f.write_str("Nothing was changed; k") };
        write!(f, "Before that, this opening had put {first}")?;
        match created.len() - 1 {
            0 => f.write_str(", which holds")?,
            more => write!(f, " and {more} more, which hold")?,
        }
        f.write_str(" no entries but may end a writer that still runs; k")
    }
}

/// What a writer that lost the log may still count on.
fn what_is_kept(ack_mode: AckMode, same_epoch: bool) -> &'static str {
    match (same_epoch, ack_mode) {
        // Two writers have one epoch only if objects were removed or put back under one of them.
        (true, _) => {
            "Both have one epoch: objects of this log were removed, or older ones put back, while \
             this writer ran, and what was acknowledged may have gone with them."
        }
        (false, AckMode::Durable) => "What was acknowledged is kept in the log.",
        (false, AckMode::Enqueued) => {
            "What was acknowledged and durable is kept in the log; what was acknowledged and not yet \
             durable is lost, and stop says how much that is."
        }
    }
}

/// The failure may be that of another batch: then the error's key is not where the entries were to be.
fn what_became_of_the_entries(error: &Error, outcome: Outcome) -> &'static str {
    let of_a_batch = matches!(error, Error::Store { .. } | Error::Conflict { .. });
    match outcome {
        Outcome::NotWritten if of_a_batch => {
            "the entries of this call were to be stored behind what failed there: no request with \
             them was sent, and they were not written"
        }
        Outcome::NotWritten => "the entries were not written",
        Outcome::Unknown if of_a_batch => {
            "the entries of this call were on their way, there or behind it, and may come back at the \
             next opening, if nothing is acknowledged after them"
        }
        Outcome::Unknown => {
            "the entries may come back at the next opening, if nothing is acknowledged after them"
        }
    }
}

/// Names the other writer, where its name is known.
struct Writer<'a>(&'a Option<Arc<str>>);

impl fmt::Display for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "the writer {name:?}"),
            None => f.write_str("a writer whose name could not be read"),
        }
    }
}

#[cfg(test)]
mod tests;
