//! What an operator is told.

use core::time::Duration;

use crate::error::Error;
use crate::key::Key;
use crate::read::Hole;
use crate::types::{Epoch, Link};

/// Something to tell the operator. The core decides that and when; the shell writes it down.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A key under the prefix that looks like an object's has a sequence that none can have.
    KeyIgnored {
        /// The key.
        key: Key,
    },
    /// Present objects above the tip are not part of history: successors of creates that never
    /// landed.
    IncompleteObjects {
        /// How many.
        count: u64,
    },
    /// An opening starts again, since another writer's object came in between.
    OpeningAgain {
        /// The key where it was met.
        key: Key,
        /// Its epoch.
        epoch: Epoch,
    },
    /// An opening repeats a request that failed.
    OpeningRetries {
        /// The failed request.
        error: Error,
    },
    /// The log is open.
    Opened {
        /// The start object.
        start: Link,
        /// How many objects were indexed.
        recovered_objects: u64,
        /// How long it took.
        took: Duration,
    },
    /// A create failed and is repeated.
    CreateRetries {
        /// The key.
        key: Key,
        /// How it failed.
        error: Error,
        /// How long after.
        delay: Duration,
    },
    /// Batches were rolled back: what they held failed.
    RolledBack {
        /// How many batches.
        batches: u64,
        /// Why.
        error: Error,
    },
    /// The store refuses creates, so the log takes nothing more until one succeeds.
    Failing {
        /// The refusal.
        error: Error,
    },
    /// A create succeeded: the log takes appends again.
    Healthy,
    /// Appends have been waiting for their place for long.
    Stalled {
        /// How many.
        appends: u64,
        /// For how long the first.
        age: Duration,
        /// Bytes that are admitted and not durable.
        backlog: u64,
    },
    /// A create has been under way for long.
    SlowCreate {
        /// The key.
        key: Key,
        /// For how long.
        age: Duration,
        /// Bytes that are admitted and not durable.
        backlog: u64,
    },
    /// The writer ended with a terminal error.
    Poisoned {
        /// The error.
        error: Error,
    },
    /// A read met a damaged segment.
    Hole(Hole),
    /// Objects that are not needed could not be deleted. They are tried again. It comes once per
    /// `reclaim_interval` at most.
    DeleteFailed {
        /// One of them, of the request that failed last.
        key: Key,
        /// How many deletes failed since the last time, each attempt counted.
        count: u64,
        /// How this one failed.
        error: Error,
    },
}
