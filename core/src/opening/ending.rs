//! The end of an opening that writes: it sees that its start object is the one that stands (DESIGN.md
//! section 12, rule 3), and hands over what it recovered.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use core::time::Duration;

use super::requests::{Ask, Body, Request};
use super::start::{Standing, Start};
use super::{Opening, OpeningEffect, Phase, Recovered, RecoveryStats};
use crate::catalog::{Catalog, Unindexed, UnindexedKind};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::event::{Notice, ReadBack};
use crate::types::{Epoch, ObjectSeq};

impl Opening {
    /// Reads the start object once after the look: a store that lets two creates of one key through
    /// holds another's there.
    pub(super) fn reread(&mut self, mut start: Start) {
        if !self.rules.start_object_is_read {
            return self.opened(start);
        }
        start.reread = false;
        self.requests.push(start.ask(Ask::Fetch(0..start.size)));
        self.phase = Phase::Rereading(Box::new(start));
    }

    pub(super) fn reread_fetched(&mut self, body: Body) {
        let Phase::Rereading(start) = &mut self.phase else { return };
        match body {
            Body::Bytes(bytes) if matches!(start.judge_whole(bytes.clone()), Standing::Ours) => {
                self.reread_ended();
            }
            // The download may be damaged, once.
            Body::Bytes(_) if !start.reread => {
                start.reread = true;
                let again = start.ask(Ask::Fetch(0..start.size));
                self.requests.push(again);
            }
            // Whatever comes of the download: header, size and checksum tell what stands there.
            Body::Bytes(_) | Body::Misfit(_) => {
                let ends = start.ask(Ask::ReadBack);
                self.requests.push(ends);
            }
            Body::Gone => self.start_is_gone(),
        }
    }

    pub(super) fn reread_back(&mut self, request: Request, result: Result<ReadBack, StoreError>) {
        let Phase::Rereading(start) = &mut self.phase else { return };
        let key = start.put.key.clone();
        if matches!(&result, Ok(found) if start.is_ours(found)) {
            return self.reread_ended();
        }
        match start.judge_read_back(result.clone()) {
            Standing::Absent => self.start_is_gone(),
            Standing::Unread => {
                let failure = result.err().unwrap_or(StoreError::new(StoreErrorKind::Transient));
                self.read_failed(request, failure);
            }
            Standing::Refused(error) => self.fail(request.failed(error)),
            Standing::Foreign(_) if !start.reread_back => {
                start.reread_back = true;
                let again = start.ask(Ask::ReadBack);
                self.requests.push(again);
            }
            Standing::Foreign(error) => self.fail(Error::corrupted(key, error)),
            // It was created, and another stands there now.
            _ => self.fail(Error::UnsafeStore { key }),
        }
    }

    fn reread_ended(&mut self) {
        if let Phase::Rereading(start) = core::mem::replace(&mut self.phase, Phase::Ended) {
            self.opened(*start);
        }
    }

    /// Somebody removed it: whoever did so has the log.
    fn start_is_gone(&mut self) {
        let Phase::Rereading(start) = &self.phase else { return };
        let (key, epoch) = (start.put.key.clone(), start.header.epoch);
        self.fail(Error::Contended { key, epoch, writer: None });
    }

    fn opened(&mut self, start: Start) {
        let Start { recovery, header, size, segments, first_put, .. } = start;
        let mut catalog = recovery.catalog;
        let recovered_objects = catalog.object_count();
        if let Err(error) = catalog.index(header.link(), size, &segments) {
            return self.fail(Error::corrupted(start.put.key, error));
        }
        self.note_what_stands(&mut catalog, &recovery.passed);
        let count = recovery.incomplete_above_tip;
        if count > 0 {
            self.notice(Notice::IncompleteObjects { count });
        }
        let took = self.now.since(self.began);
        self.notice(Notice::Opened { start: header.link(), recovered_objects, took });
        let recovered = Recovered {
            prefix: self.prefix.clone(),
            options: self.options.clone(),
            catalog,
            start: header.link(),
            start_put: first_put,
            durable_boundary: header.boundary,
            next_sequence: header.sequence.next(),
            next_request: self.requests.take_id(),
            stats: RecoveryStats { recovered_objects, took },
            rules: self.rules,
        };
        self.end(OpeningEffect::Opened(Box::new(recovered)));
    }
}

impl Opening {
    /// Notes what stands outside history, and for how long history stands above it, and keeps what
    /// stands in the way of older writers from being deleted (DESIGN.md section 12, rule 5).
    fn note_what_stands(&self, catalog: &mut Catalog, passed: &BTreeSet<ObjectSeq>) {
        let retention = self.options.fence_retention;
        // The first object of history above, on the way down. Above the recovered tip is none: the
        // own start object was not listed.
        let mut above = None;
        for (sequence, object) in self.known.iter().rev() {
            let link = object.header.link();
            let is_indexed = catalog.is_indexed(link);
            let is_passed = passed.contains(sequence);
            let kind = if object.header.links_to_itself() {
                UnindexedKind::Claim
            } else if link.epoch == Epoch::claimed_at(*sequence) {
                UnindexedKind::Start
            } else if is_passed {
                UnindexedKind::Passed
            } else {
                UnindexedKind::Other
            };
            let found = Unindexed { link, kind, age: self.age_that_counts(*sequence, above) };
            if !is_indexed {
                catalog.add_unindexed(found);
            } else if kind == UnindexedKind::Start && found.is_kept(retention) {
                catalog.keep(*sequence);
            }
            if is_indexed || is_passed {
                above = Some(*sequence);
            }
        }
        // The own start object is the newest of all.
        if let Some(own) = catalog.last().filter(|_| self.rules.keep_what_stands) {
            catalog.keep(own.sequence);
        }
    }

    /// How much older the first object of history above one is than the newest object of the same
    /// listing, by the store's clock.
    fn age_that_counts(&self, sequence: ObjectSeq, above: Option<ObjectSeq>) -> Option<Duration> {
        let counts = match (self.rules.keep_what_stands, self.rules.age_is_of_history_above) {
            (true, true) => above?,
            (true, false) => sequence,
            (false, _) => return Some(Duration::MAX),
        };
        let newest = self.shown.values().map(|shown| shown.modified_millis).max();
        let newest = newest.unwrap_or_default();
        let modified = self.shown.get(&counts).map_or(newest, |shown| shown.modified_millis);
        Some(Duration::from_millis(newest.saturating_sub(modified)))
    }
}
