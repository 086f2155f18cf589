//! The guard after a skip (DESIGN.md section 12, rule 4).
//!
//! After a roll back and after a raised floor, the next sequence does not follow the last indexed
//! one: a claim may stand where this writer never writes. So the first batch after a skip is not
//! indexed before every object above the last indexed one was looked at.

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
    /// Begins to look: a guarded batch was created.
    pub(super) fn guard(&mut self, link: Link) {
        let id = self.request_id();
        let after = self.catalog.last().map(|last| self.prefix.object_key(last.sequence));
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        batch.create = Create::Listing(id);
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
            if Some(sequence) <= last || sequence == link.sequence {
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
            self.pipeline.created(link);
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
