//! The guard after a skip and after silence (DESIGN.md section 12, rules 4 and 7).
//!
//! After a roll back and after a raised floor, the next sequence does not follow the last indexed
//! one: a claim may stand where this writer never writes. So the first batch after a skip is not
//! indexed before every object above the last indexed one was looked at.
//!
//! After silence, what stood in this writer's way may have been deleted: that is done once an object of
//! a later history stands above it for `fence_retention`. So a batch is guarded, too, if more than half
//! of that passed from the first put of the last indexed object to the answer of its create. The last
//! object of a later history is never deleted, so the guard meets it.
//!
//! Whether a batch is guarded for that is decided when it is the next to be indexed: by then the batch
//! before it is the last indexed object. So of several that are put at once after a silence the first
//! alone is guarded, in whatever order they are answered. That is enough, since nothing is indexed that
//! was created after an object of a later history, by induction over what is indexed. Let B be the next
//! batch, and L the last indexed object:
//!
//! - If B is guarded, the guard begins after B was created, and meets that object or one above it.
//! - If it is not, and what stood in its way still stood when B was created, B met it (rules 2 and 4).
//! - Otherwise that was deleted before B was created, because an object H of a later history was older
//!   than `fence_retention`. B was answered at most half of that after L was put, so H was there before
//!   L was put, if the clocks of store and writer differ by less than a factor of two in speed. Then L
//!   was created after H, and would not have been indexed. (The start object, which is the first L, was
//!   looked behind by the opening.)
//!
//! Batches behind one that becomes guarded may be created by then, or on their way. Nothing is asked of
//! them: none is indexed before the guard has ended, each is judged when it is the next, and no more are
//! started, so that holes stay as few as the pipeline is deep.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::pipeline::Create;
use super::{Effect, Writer};
use crate::error::{Error, Operation, StoreError, StoreErrorKind};
use crate::event::{Listed, ReadBack, RequestId, StorageEffect};
use crate::key::{Key, KeyKind};
use crate::types::Link;

impl<W> Writer<W> {
    /// The next batch to index, if it is created, was not guarded, and its create was answered long
    /// after the last indexed object was put.
    pub(super) fn created_after_silence(&self) -> Option<Link> {
        let batch = self.pipeline.first().filter(|batch| !batch.guarded)?;
        let Create::Created(answered) = batch.create else { return None };
        let silence = answered.since(self.last_put);
        let long = silence > self.options.fence_retention / 2 && self.rules.guard_after_silence;
        long.then_some(batch.link)
    }

    /// Begins to look: a batch was created that is guarded, or becomes so.
    pub(super) fn guard(&mut self, link: Link) {
        let id = self.request_id();
        let after = self.catalog.last().map(|last| self.prefix.object_key(last.sequence));
        self.pipeline.guard(link, id);
        let (prefix, time_limit) = (self.prefix.objects(), self.options.request_timeout);
        let list = StorageEffect::List { id, prefix, after, time_limit };
        self.emit(Effect::Storage(list));
    }

    pub(super) fn guard_listed(&mut self, id: RequestId, result: Result<Vec<Listed>, StoreError>) {
        if self.pipeline.ran_out(id) {
            return;
        }
        let Some(batch) = self.pipeline.find(id) else { return };
        if !matches!(batch.create, Create::Listing(_)) {
            return;
        }
        let link = batch.link;
        // This request has ended: whatever follows, nothing waits for it any more.
        batch.create = Create::Ended;
        let listing = match result {
            Ok(listing) => listing,
            Err(source) => {
                let key = self.prefix.objects();
                return self.guard_failed(link, Operation::List, key, source);
            }
        };
        let last = self.catalog.last().map(|last| last.sequence);
        let mut looks = BTreeMap::new();
        for listed in listing {
            let KeyKind::Object(sequence) = self.prefix.classify(&listed.key) else { continue };
            // The store may ignore from where on it was to list.
            let is_own = sequence == link.sequence || self.pipeline.has_created(sequence);
            if Some(sequence) <= last || is_own {
                continue;
            }
            let id = self.request_id();
            let (key, time_limit) = (listed.key, self.options.request_timeout);
            let look = StorageEffect::ReadBack { id, key, time_limit };
            self.emit(Effect::Storage(look));
            looks.insert(id, sequence);
        }
        if let Some(batch) = self.pipeline.get_mut(link) {
            batch.create = Create::Looking(looks);
        }
        self.end_guard(link);
    }

    /// What stands above the last indexed object is neither ours to index nor, if its epoch is
    /// later, harmless.
    pub(super) fn guard_looked(
        &mut self,
        id: RequestId,
        link: Link,
        result: Result<ReadBack, StoreError>,
    ) {
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        let Create::Looking(looks) = &mut batch.create else { return };
        let Some(sequence) = looks.remove(&id) else { return };
        let key = self.prefix.object_key(sequence);
        match result.map(|found| (found.header_at(sequence), found.size)) {
            Ok((Ok(header), size)) if header.epoch > self.epoch => {
                self.fence(key, header.link(), header.epoch, size);
            }
            Ok((Ok(header), _)) => {
                self.saw(header.link());
                self.end_guard(link);
            }
            // What is no object twice is none, and nobody can tell that it is harmless.
            Ok((Err(error), _)) if self.suspect == Some(sequence) => {
                self.stats.create_failures_total += 1;
                self.stats.create_conflicts_total += 1;
                self.pipeline.end_looks(link);
                self.poison(Error::corrupted(key, error));
            }
            Ok((Err(error), _)) => {
                self.suspect = Some(sequence);
                let cause: Arc<dyn core::error::Error + Send + Sync> = Arc::new(error);
                let source = StoreError::with_cause(StoreErrorKind::Transient, cause);
                self.guard_failed(link, Operation::ReadBack, key, source);
            }
            Err(source) => self.guard_failed(link, Operation::ReadBack, key, source),
        }
    }

    fn end_guard(&mut self, link: Link) {
        let looked = |create: &Create| matches!(create, Create::Looking(looks) if looks.is_empty());
        if self.pipeline.get_mut(link).is_some_and(|batch| looked(&batch.create)) {
            self.pipeline.created(link, self.now);
        }
    }

    /// A guard that cannot list or read is a transient outcome of its batch: the same bytes are put
    /// again, are found there, and are guarded again. Looks that are under way run out.
    fn guard_failed(&mut self, link: Link, operation: Operation, key: Key, source: StoreError) {
        self.pipeline.end_looks(link);
        self.stats.create_failures_total += 1;
        let source = StoreError { kind: StoreErrorKind::Transient, ..source };
        self.set_back(link, Error::Store { operation, key, source });
    }
}
