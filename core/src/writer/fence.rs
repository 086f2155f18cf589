//! Meeting an object of a later epoch: whose it is, is read before the log ends with it
//! (DESIGN.md section 11, `Fenced`).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use super::pipeline::SealedBatch;
use super::{Effect, Error, Event, RequestId, Writer};
use crate::error::StoreError;
use crate::event::{ReadBack, StorageEffect};
use crate::format::{Object, ReservedContent, TAIL_WINDOW};
use crate::key::Key;
use crate::types::{Epoch, Link, ObjectSeq, RegionId};

/// The name of the other writer is being read. Nothing is indexed, started or admitted any more.
#[derive(Clone, Debug)]
pub(super) struct Fencing<W> {
    /// Where the other's object was met.
    key: Key,
    theirs: Epoch,
    step: Step,
    /// What was in the pipeline: it fails once the name is known.
    pub(super) batches: VecDeque<SealedBatch<W>>,
    /// Calls that came meanwhile, in order.
    pub(super) deferred: Vec<Event<W>>,
}

#[derive(Clone, Debug)]
enum Step {
    Begun,
    /// How large the other's start object is.
    Sizing(RequestId, ObjectSeq),
    /// What it holds.
    Fetching(RequestId),
}

impl<W> Writer<W> {
    /// Begins to end the log: an object of our epoch that is not ours, or of a later epoch, stands
    /// at `key`. It is `size` bytes long.
    pub(super) fn fence(&mut self, key: Key, met: Link, theirs: Epoch, size: u64) {
        self.stats.create_failures_total += 1;
        self.stats.create_conflicts_total += 1;
        let fencing = Fencing {
            key,
            theirs,
            step: Step::Begun,
            batches: self.pipeline.take_all(),
            deferred: Vec::new(),
        };
        self.fencing = Some(fencing);
        // At our own epoch, our own start object would be read: it names no other.
        match theirs.claim_sequence().filter(|_| theirs > self.epoch) {
            Some(start) if start == met.sequence => self.fetch_start(start, size),
            Some(start) => self.size_start(start),
            None => self.end_fencing(None),
        }
    }

    pub(super) fn fence_read_back(&mut self, id: RequestId, result: Result<ReadBack, StoreError>) {
        let Some(Fencing { step: Step::Sizing(of, start), .. }) = &self.fencing else { return };
        if *of != id {
            return;
        }
        let start = *start;
        match result {
            Ok(found) => self.fetch_start(start, found.size),
            Err(_) => self.end_fencing(None),
        }
    }

    pub(super) fn fence_fetched(&mut self, id: RequestId, result: Result<Bytes, StoreError>) {
        let Some(Fencing { step: Step::Fetching(of), theirs, .. }) = &self.fencing else { return };
        if *of != id {
            return;
        }
        let theirs = *theirs;
        let name = result.ok().and_then(|bytes| {
            let object = Object::decode(&bytes).ok().filter(|o| o.header.epoch == theirs)?;
            match object.reserved(RegionId::WRITER) {
                Ok(Some(ReservedContent::Writer(record))) => Some(record.name),
                _ => None,
            }
        });
        self.end_fencing(name);
    }

    fn size_start(&mut self, start: ObjectSeq) {
        let id = self.request_id();
        let (key, time_limit) = (self.prefix.object_key(start), self.options.request_timeout);
        self.emit(Effect::Storage(StorageEffect::ReadBack { id, key, time_limit }));
        self.step_to(Step::Sizing(id, start));
    }

    /// Reads a start object whole, if it is as small as they are.
    fn fetch_start(&mut self, start: ObjectSeq, size: u64) {
        if size == 0 || size > TAIL_WINDOW {
            return self.end_fencing(None);
        }
        let id = self.request_id();
        let (key, time_limit) = (self.prefix.object_key(start), self.options.request_timeout);
        let fetch = StorageEffect::FetchRange { id, key, range: 0..size, time_limit };
        self.emit(Effect::Storage(fetch));
        self.step_to(Step::Fetching(id));
    }

    fn step_to(&mut self, step: Step) {
        if let Some(fencing) = &mut self.fencing {
            fencing.step = step;
        }
    }

    fn end_fencing(&mut self, writer: Option<Arc<str>>) {
        let Some(fencing) = self.fencing.take() else { return };
        let Fencing { key, theirs, batches, deferred, .. } = fencing;
        let error = Error::Fenced {
            key,
            epoch: self.epoch,
            theirs,
            writer,
            ack_mode: self.options.ack_mode,
        };
        self.poison_with(error, batches);
        for event in deferred {
            self.handle(self.now, event);
        }
    }
}
