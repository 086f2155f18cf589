//! What a shell does with the store, and what it answers.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use crate::error::{DecodeError, Part, StoreError};
use crate::format::{HEADER_LEN, Header, MIN_OBJECT_LEN, TRAILER_LEN};
use crate::key::Key;
use crate::types::ObjectSeq;

/// Names one storage effect; its answer carries it back. Unique within a machine, and an answer
/// with an id that the machine does not wait for changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that the shell does with the store, once, and answers once.
#[derive(Clone, Debug)]
pub enum StorageEffect {
    /// List every key that begins with `prefix`, from behind `after` on, in the order in which the
    /// store gives them: the machine judges by the order of the keys whether the store promises one
    /// (DESIGN.md section 4). Answered by [`StorageAnswer::Listed`].
    List {
        /// To be carried back.
        id: RequestId,
        /// What the keys begin with.
        prefix: Key,
        /// Keys up to this one are not wanted; a store may list them all the same.
        after: Option<Key>,
        /// After this long without another key or page the answer is "timed out": what goes on
        /// answering may go on.
        time_limit: Duration,
    },
    /// Read exactly these bytes of an object. Answered by [`StorageAnswer::Fetched`]: the machine
    /// judges a body of another length.
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
    /// Read the first 54 bytes of an object, its last 32 bytes, and its size. Answered by
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
    /// To [`StorageEffect::List`]: all of the listing, every page of it, in the order in which the
    /// store gave it. It may hold keys that were not asked for.
    ///
    /// A shell sorts it only if it knows that the store lists in no order, and then by descending
    /// keys, with a single key given twice, so that an order by luck never passes for a promise.
    Listed {
        /// The effect's.
        id: RequestId,
        /// What is there.
        result: Result<Vec<Listed>, StoreError>,
    },
    /// To [`StorageEffect::FetchRange`]: the bytes that came, also if they are more or fewer than were
    /// asked for. Of an object that ends before the range, whatever is there of the range, or nothing.
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
    /// Whether the request did what was asked. A delete did if it deleted one key.
    pub(crate) fn succeeded(&self) -> bool {
        match self {
            StorageAnswer::Listed { result, .. } => result.is_ok(),
            StorageAnswer::Fetched { result, .. } => result.is_ok(),
            StorageAnswer::CreateResult { result, .. } => result.is_ok(),
            StorageAnswer::ReadBackResult { result, .. } => result.is_ok(),
            StorageAnswer::DeleteResult { results, .. } => {
                results.iter().any(|(_, result)| result.is_ok())
            }
        }
    }

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
    /// Its first 54 bytes; empty if the object has fewer than 90 bytes.
    pub header: Bytes,
    /// Its last 32 bytes, which hold the checksum of the whole object; empty if the object has
    /// fewer than 90 bytes.
    pub trailer: Bytes,
}

impl ReadBack {
    /// What a read-back of an object with these bytes answers.
    pub fn of(object: &Bytes) -> ReadBack {
        let size = object.len() as u64;
        if size < MIN_OBJECT_LEN {
            return ReadBack { size, header: Bytes::new(), trailer: Bytes::new() };
        }
        let trailer = object.slice(object.len() - TRAILER_LEN..);
        ReadBack { size, header: object.slice(..HEADER_LEN), trailer }
    }

    /// Whether it holds what a read-back of an object of its size must hold. A shell that answers
    /// otherwise has read nothing that can be relied on.
    pub(crate) fn is_whole(&self) -> bool {
        self.size < MIN_OBJECT_LEN
            || self.header.len() == HEADER_LEN && self.trailer.len() == TRAILER_LEN
    }

    /// Whether header and trailer are those of the object with this header and these bytes.
    pub(crate) fn is_of(&self, header: &[u8], payload: &Payload) -> bool {
        *self.header == *header && payload.ends_with(&self.trailer)
    }

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

    /// What a read-back of it would answer. A copy of few bytes.
    pub(crate) fn read_back(&self) -> ReadBack {
        let mut first = self.chunks.iter().flat_map(|chunk| chunk.iter().copied());
        let header = first.by_ref().take(HEADER_LEN).collect();
        let last = self.chunks.iter().rev().flat_map(|chunk| chunk.iter().rev().copied());
        let mut trailer: Vec<u8> = last.take(TRAILER_LEN).collect();
        trailer.reverse();
        ReadBack { size: self.len, header, trailer: trailer.into() }
    }

    /// Whether these are its last bytes.
    pub(crate) fn ends_with(&self, mut end: &[u8]) -> bool {
        for chunk in self.chunks.iter().rev() {
            let common = chunk.len().min(end.len());
            let (rest, last) = end.split_at(end.len() - common);
            if !chunk.ends_with(last) {
                return false;
            }
            end = rest;
            if end.is_empty() {
                return true;
            }
        }
        end.is_empty()
    }

    /// All bytes in one buffer: a copy, for tests and tools.
    pub fn to_bytes(&self) -> Bytes {
        self.chunks.concat().into()
    }
}
