//! All that crosses the boundary between a machine and its shell.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use crate::error::{DecodeError, Error, Outcome, Part, StoreError};
use crate::format::{Header, MIN_OBJECT_LEN};
use crate::key::Key;
use crate::read::{Hole, SegmentRef};
use crate::types::{EntryId, Epoch, Link, ObjectSeq, RegionId};

/// Names one storage effect; its answer carries it back. Unique within a machine, and an answer
/// with an id that the machine does not wait for changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that the shell does with the store, once, and answers once.
#[derive(Clone, Debug)]
pub enum StorageEffect {
    /// List every key that begins with `prefix`, from behind `after` on. Answered by
    /// [`StorageAnswer::Listed`].
    List {
        /// To be carried back.
        id: RequestId,
        /// What the keys begin with.
        prefix: Key,
        /// Keys up to this one are not wanted; a store may list them all the same.
        after: Option<Key>,
        /// After this long the answer is "timed out".
        time_limit: Duration,
    },
    /// Read exactly these bytes of an object. Answered by [`StorageAnswer::Fetched`]; a body of
    /// another length is a transient failure.
    FetchRange {
        /// To be carried back.
        id: RequestId,
        /// The object.
        key: Key,
        /// Which of its bytes; never empty.
        range: Range<u64>,
        /// After this long the answer is "timed out".
        time_limit: Duration,
    },
    /// Create an object if the key is free. Answered by [`StorageAnswer::CreateResult`].
    PutObject {
        /// To be carried back.
        id: RequestId,
        /// The object.
        key: Key,
        /// Its bytes.
        payload: Payload,
        /// After this long the answer is "timed out", though the request may still land.
        time_limit: Duration,
    },
    /// Read the first 54 bytes of an object, and its size. Answered by
    /// [`StorageAnswer::ReadBackResult`].
    ReadBack {
        /// To be carried back.
        id: RequestId,
        /// The object.
        key: Key,
        /// After this long the answer is "timed out".
        time_limit: Duration,
    },
    /// Delete these objects, at most 1,000, in one request if the store has one for many keys.
    /// Answered by [`StorageAnswer::DeleteResult`].
    DeleteObjects {
        /// To be carried back.
        id: RequestId,
        /// The objects; at least one.
        keys: Arc<[Key]>,
        /// After this long the answer is "timed out" for what has none yet.
        time_limit: Duration,
    },
}

impl StorageEffect {
    /// The id to be carried back.
    pub fn id(&self) -> RequestId {
        match self {
            StorageEffect::List { id, .. }
            | StorageEffect::FetchRange { id, .. }
            | StorageEffect::PutObject { id, .. }
            | StorageEffect::ReadBack { id, .. }
            | StorageEffect::DeleteObjects { id, .. } => *id,
        }
    }

    /// The key, what the keys of a listing begin with, or the first key of a delete.
    pub fn key(&self) -> &Key {
        match self {
            StorageEffect::List { prefix, .. } => prefix,
            StorageEffect::FetchRange { key, .. }
            | StorageEffect::PutObject { key, .. }
            | StorageEffect::ReadBack { key, .. } => key,
            StorageEffect::DeleteObjects { keys, .. } => &keys[0],
        }
    }

    /// After this long without an answer of the client's, the answer is "timed out".
    pub fn time_limit(&self) -> Duration {
        match self {
            StorageEffect::List { time_limit, .. }
            | StorageEffect::FetchRange { time_limit, .. }
            | StorageEffect::PutObject { time_limit, .. }
            | StorageEffect::ReadBack { time_limit, .. }
            | StorageEffect::DeleteObjects { time_limit, .. } => *time_limit,
        }
    }

    /// The failed answer to this effect: what a shell hands back when the client fails or the
    /// time limit passes.
    pub fn failed(&self, error: StoreError) -> StorageAnswer {
        let id = self.id();
        match self {
            StorageEffect::List { .. } => StorageAnswer::Listed { id, result: Err(error) },
            StorageEffect::FetchRange { .. } => StorageAnswer::Fetched { id, result: Err(error) },
            StorageEffect::PutObject { .. } => {
                StorageAnswer::CreateResult { id, result: Err(error) }
            }
            StorageEffect::ReadBack { .. } => {
                StorageAnswer::ReadBackResult { id, result: Err(error) }
            }
            StorageEffect::DeleteObjects { keys, .. } => {
                let failed = keys.iter().map(|key| (key.clone(), Err(error.clone())));
                StorageAnswer::DeleteResult { id, results: failed.collect() }
            }
        }
    }
}

/// The answer to a [`StorageEffect`].
#[derive(Clone, Debug)]
pub enum StorageAnswer {
    /// To [`StorageEffect::List`]: all of the listing, in any order. It may hold keys that were
    /// not asked for.
    Listed {
        /// The effect's.
        id: RequestId,
        /// What is there.
        result: Result<Vec<Listed>, StoreError>,
    },
    /// To [`StorageEffect::FetchRange`]: exactly the bytes asked for.
    Fetched {
        /// The effect's.
        id: RequestId,
        /// The bytes.
        result: Result<Bytes, StoreError>,
    },
    /// To [`StorageEffect::PutObject`].
    CreateResult {
        /// The effect's.
        id: RequestId,
        /// Created, or why it is not known to be.
        result: Result<(), StoreError>,
    },
    /// To [`StorageEffect::ReadBack`].
    ReadBackResult {
        /// The effect's.
        id: RequestId,
        /// What stands at the key.
        result: Result<ReadBack, StoreError>,
    },
    /// To [`StorageEffect::DeleteObjects`].
    DeleteResult {
        /// The effect's.
        id: RequestId,
        /// What became of each key, in any order. A key that is not named failed.
        results: Vec<(Key, Result<(), StoreError>)>,
    },
}

impl StorageAnswer {
    /// The id of the effect that this answers.
    pub fn id(&self) -> RequestId {
        match self {
            StorageAnswer::Listed { id, .. }
            | StorageAnswer::Fetched { id, .. }
            | StorageAnswer::CreateResult { id, .. }
            | StorageAnswer::ReadBackResult { id, .. }
            | StorageAnswer::DeleteResult { id, .. } => *id,
        }
    }
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listed {
    /// The full key.
    pub key: Key,
    /// Its size in bytes.
    pub size: u64,
    /// When the store says it was written, in milliseconds since 1970. Only differences within one
    /// listing are used.
    pub modified_millis: u64,
}

/// What stands at a key whose create failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadBack {
    /// The object's size in bytes.
    pub size: u64,
    /// Its first 54 bytes; empty if it is shorter than that.
    pub header: Bytes,
}

impl ReadBack {
    /// The header of the object, if what was found is one of this sequence.
    pub(crate) fn header_at(&self, sequence: ObjectSeq) -> Result<Header, DecodeError> {
        if self.size < MIN_OBJECT_LEN {
            let reason = format!("expected at least {MIN_OBJECT_LEN} bytes, found {}", self.size);
            return Err(DecodeError::new(Part::Object, reason));
        }
        let header = Header::decode(&self.header)?;
        if header.sequence != sequence {
            let found = header.sequence;
            let reason = format!("expected sequence {sequence}, as the key says, found {found}");
            return Err(DecodeError::new(Part::Header, reason));
        }
        Ok(header)
    }
}

/// The bytes of an object as a list of chunks; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Payload {
    chunks: Arc<[Bytes]>,
    len: u64,
}

impl Payload {
    /// A payload of these chunks, one after the other.
    pub fn new(chunks: Vec<Bytes>) -> Payload {
        let len = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        Payload { chunks: chunks.into(), len }
    }

    /// The chunks in order.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// How many bytes that are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is not one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one buffer: a copy, for tests and tools.
    pub fn to_bytes(&self) -> Bytes {
        self.chunks.concat().into()
    }
}

/// What the shell tells a [`Writer`](crate::Writer).
#[derive(Clone, Debug)]
pub enum Event<W> {
    /// Time has passed. Wanted at [`next_tick`](crate::Writer::next_tick); a tick too many is
    /// harmless.
    Tick,
    /// Append these entries, all in one object. Acknowledged with [`Answer::Appended`].
    Append {
        /// The entries.
        append: Append,
        /// Answered once.
        waiter: W,
    },
    /// Seal what is open, and answer [`Answer::Done`] when all that was admitted is durable.
    Flush {
        /// Answered once.
        waiter: W,
    },
    /// Answer [`Answer::Done`] when no id of the region at or below `id` waits to become durable.
    WaitDurable {
        /// The region.
        region: RegionId,
        /// The id; one above everything handed out waits for what was handed out.
        id: EntryId,
        /// Answered once.
        waiter: W,
    },
    /// Raise the region's watermark: entries at or below `id` are hidden and no longer keep
    /// objects. Answered with [`Answer::Done`].
    Obsolete {
        /// The region.
        region: RegionId,
        /// The largest id that is no longer needed.
        id: EntryId,
        /// Answered once.
        waiter: W,
    },
    /// Release the region through the largest id handed out for it, in a record that survives a
    /// restart (DESIGN.md section 6). Answered with [`Answer::Done`] once the record is durable.
    Release {
        /// The region.
        region: RegionId,
        /// Answered once.
        waiter: W,
    },
    /// Release the region in full: from now on appends to it are refused, until the record was
    /// collected. Answered as [`Release`](Event::Release).
    ReleaseAll {
        /// The region.
        region: RegionId,
        /// Answered once.
        waiter: W,
    },
    /// End the log (DESIGN.md section 7). Answered with [`Answer::Done`] once nothing is in
    /// flight.
    Stop {
        /// Answered once.
        waiter: W,
    },
    /// From now on tell every change of the region's durable position, with [`Effect::Durable`];
    /// its position now is told at once.
    Watch {
        /// The region.
        region: RegionId,
    },
    /// Stop telling.
    Unwatch {
        /// The region.
        region: RegionId,
    },
    /// The answer to a storage effect.
    Storage(StorageAnswer),
    /// A read of this segment failed for good: is the object still part of the log? Answered with
    /// [`Answer::Verdict`].
    SegmentReadFailed {
        /// The segment.
        segment: SegmentRef,
        /// Answered once.
        waiter: W,
    },
    /// A read met a hole: count it and keep it for `holes`.
    HoleFound(Hole),
    /// A read of one object's segments ended, for the figures.
    ReadFinished {
        /// How long it took.
        took: Duration,
        /// How many segments were fetched once more because they did not decode.
        refetched: u64,
    },
}

/// What a [`Writer`](crate::Writer) wants of the shell.
#[derive(Clone, Debug)]
pub enum Effect<W> {
    /// Carry this out, and answer with [`Event::Storage`].
    Storage(StorageEffect),
    /// Answer one waiter.
    Ack {
        /// The waiter.
        waiter: W,
        /// Its answer.
        answer: Answer,
    },
    /// Fail these waiters, in this order, for one reason.
    FailWaiters {
        /// The waiters.
        waiters: Vec<W>,
        /// The reason.
        error: Error,
        /// For those that appended: what that means for their entries.
        outcome: Outcome,
    },
    /// The durable position of a watched region.
    Durable {
        /// The region.
        region: RegionId,
        /// The largest id that is durable and indexed.
        id: EntryId,
    },
    /// Tell the operator.
    Notice(Notice),
}

/// What a waiter is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Event::Append`]: the entries are durable, or in `enqueued` admitted.
    Appended(Appended),
    /// To [`Event::Flush`], [`Event::WaitDurable`], [`Event::Obsolete`], [`Event::Release`],
    /// [`Event::ReleaseAll`] and [`Event::Stop`].
    Done,
    /// To [`Event::SegmentReadFailed`].
    Verdict(Verdict),
}

/// Whether an object is still part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was collected: the read skips it.
    Gone,
    /// It is indexed: the failure stands.
    Indexed,
}

/// The entries of one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// One entry.
    One(RegionId, Bytes),
    /// Any number of entries, of one or many regions.
    Many(Vec<(RegionId, Bytes)>),
}

impl Append {
    /// The entries in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (RegionId, &Bytes)> {
        match self {
            Append::One(region, payload) => {
                Entries { one: Some((*region, payload)), many: [].iter() }
            }
            Append::Many(entries) => Entries { one: None, many: entries.iter() },
        }
    }
}

struct Entries<'a> {
    one: Option<(RegionId, &'a Bytes)>,
    many: core::slice::Iter<'a, (RegionId, Bytes)>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (RegionId, &'a Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        self.one.take().or_else(|| self.many.next().map(|(region, payload)| (*region, payload)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = usize::from(self.one.is_some()) + self.many.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// The ids of an append's entries, in the order of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Of [`Append::One`].
    One(EntryId),
    /// Of [`Append::Many`].
    Many(Vec<EntryId>),
}

impl Appended {
    /// The ids in the order of the entries.
    pub fn ids(&self) -> &[EntryId] {
        match self {
            Appended::One(id) => core::slice::from_ref(id),
            Appended::Many(ids) => ids,
        }
    }
}

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
    /// Objects that are not needed could not be deleted. They are tried again.
    DeleteFailed {
        /// The first of them.
        key: Key,
        /// How many of one request.
        count: u64,
        /// How the first of them failed.
        error: Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are moved through queues for every append: growth should be a decision.
    #[test]
    fn events_and_effects_stay_small() {
        assert!(size_of::<Event<u64>>() <= 128, "{}", size_of::<Event<u64>>());
        assert!(size_of::<Effect<u64>>() <= 136, "{}", size_of::<Effect<u64>>());
        assert!(size_of::<Answer>() <= 32, "{}", size_of::<Answer>());
    }
}
