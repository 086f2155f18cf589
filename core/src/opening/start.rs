//! Creating the start object, whatever becomes of its put, and checking the store (DESIGN.md
//! section 4, steps 6 and 7).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;

use bytes::Bytes;

use super::examine::examine_whole;
use super::recover::Recovery;
use super::requests::{Ask, Purpose, Request};
use super::{Identity, Opening, OpeningEffect, Phase, Recovered, RecoveryStats};
use crate::catalog::{Catalog, Unindexed, UnindexedKind};
use crate::error::{DecodeError, Error, StoreError, StoreErrorKind};
use crate::event::{Notice, Payload, ReadBack};
use crate::format::{Header, ObjectEncoder, SegmentMeta, TAIL_WINDOW, WriterRecord};
use crate::key::Key;
use crate::options::Options;
use crate::types::{EntryId, Epoch, Link, ObjectSeq, RegionId, Time};

/// Some stores limit how often one key is written.
const CHECK_DELAY: Duration = Duration::from_secs(1);
const CHECK_REPEATS: u32 = 3;

/// What a writer record can hold.
const MAX_NAME_LEN: usize = 255;

/// The start object on its way.
#[derive(Clone, Debug)]
pub(super) struct Start {
    recovery: Recovery,
    header: Header,
    record: WriterRecord,
    size: u64,
    segments: Vec<SegmentMeta>,
    put: Request,
    /// When the put was handed out first.
    first_put: Time,
    /// How the put was answered last.
    answer: Result<(), StoreError>,
    /// What stands at the key was read whole once, and did not decode.
    reread: bool,
    checks: u32,
}

/// What stands at the key of a put that failed.
#[derive(Clone, Debug)]
enum Standing {
    /// Nothing.
    Absent,
    /// It could not be read, which may pass.
    Unread,
    /// The store refuses to have it read.
    Refused(StoreError),
    /// No WAL object, or not one of this key.
    Foreign(DecodeError),
    /// An object of an earlier epoch.
    Earlier(Epoch),
    /// Another opening's claim, with its epoch.
    Claim(Epoch),
    /// An object of the epoch that only a start object at this key can have. It may be ours.
    OurEpoch {
        /// Its size.
        size: u64,
    },
    /// Ours: an answer was lost.
    Ours,
    /// Another opening's start object, with its name.
    Others(Option<Arc<str>>),
    /// An object of a later epoch.
    Later(Epoch),
}

/// What follows.
#[derive(Clone, Debug)]
enum Decision {
    Opened,
    /// See what stands at the key.
    ReadBack,
    /// See whose it is.
    ReadWhole {
        size: u64,
    },
    /// The outcome is unknown: the same put again.
    Repeat,
    /// Its entries may be acknowledged: start again from the listing.
    StartAgain(Epoch),
    /// Another opening has the prefix, and going on would take it over.
    Contended(Epoch, Option<Arc<str>>),
    Corrupted(DecodeError),
    /// The store has no conditional create.
    UnsafeStore,
    PutRefused(StoreError),
    ReadRefused(StoreError),
}

/// The table of step 6: how the put of a start object of epoch `ours` was answered, and what stands
/// at its key, if that was looked at.
fn decide(ours: Epoch, put: &Result<(), StoreError>, standing: Option<Standing>) -> Decision {
    use StoreErrorKind::*;
    let Err(error) = put else {
        return Decision::Opened;
    };
    match (error.kind, standing) {
        (NotSupported, _) => Decision::UnsafeStore,
        // Of a create, "not found" is the bucket.
        (Refused | NotFound, _) => Decision::PutRefused(error.clone()),
        (Exists | TimedOut | Transient, None) => Decision::ReadBack,
        (Exists | TimedOut | Transient, Some(standing)) => match standing {
            Standing::Absent | Standing::Unread => Decision::Repeat,
            Standing::Refused(error) => Decision::ReadRefused(error),
            Standing::Foreign(error) => Decision::Corrupted(error),
            Standing::Earlier(epoch) | Standing::Claim(epoch) => Decision::StartAgain(epoch),
            Standing::OurEpoch { size } => Decision::ReadWhole { size },
            Standing::Ours => Decision::Opened,
            Standing::Others(writer) => Decision::Contended(ours, writer),
            Standing::Later(epoch) => Decision::Contended(epoch, None),
        },
    }
}

impl Opening {
    /// Claims the epoch.
    pub(super) fn start(&mut self, recovery: Recovery) {
        let Some(sequence) = recovery.next_sequence else {
            return self.fail(Error::SequenceExhausted);
        };
        let record = record(&self.options, &self.own.identity);
        let key = self.prefix.object_key(sequence);
        let start = Start::new(recovery, sequence, key, record, self.now);
        self.requests.push(start.put.clone());
        self.phase = Phase::Starting(Box::new(start));
    }

    pub(super) fn put_answered(&mut self, request: Request, answer: Result<(), StoreError>) {
        match &mut self.phase {
            Phase::Starting(start) => {
                start.put = request;
                start.answer = answer;
                start.reread = false;
                self.go_on(None);
            }
            Phase::Checking(_) => self.check_answered(request, answer),
            _ => {}
        }
    }

    pub(super) fn read_back_answered(&mut self, result: Result<ReadBack, StoreError>) {
        if let Phase::Starting(start) = &self.phase {
            let standing = start.judge_read_back(result);
            self.go_on(Some(standing));
        }
    }

    /// What stands at the key, read whole; without bytes it is gone.
    pub(super) fn start_fetched(&mut self, bytes: Option<Bytes>) {
        let Phase::Starting(start) = &mut self.phase else {
            return;
        };
        let standing = match bytes {
            None => Standing::Absent,
            Some(bytes) => match start.judge_whole(bytes.clone()) {
                // The download may be damaged.
                Standing::Foreign(_) | Standing::Others(None) if !start.reread => {
                    start.reread = true;
                    let ask = Ask::Fetch(0..bytes.len() as u64);
                    return self.requests.push(start.ask(ask));
                }
                standing => standing,
            },
        };
        self.go_on(Some(standing));
    }

    fn go_on(&mut self, standing: Option<Standing>) {
        let Phase::Starting(start) = &mut self.phase else {
            return;
        };
        let key = start.put.key.clone();
        match decide(start.header.epoch, &start.answer, standing) {
            Decision::Opened => self.created(),
            Decision::ReadBack => self.requests.push(start.ask(Ask::ReadBack)),
            Decision::ReadWhole { size } => self.requests.push(start.ask(Ask::Fetch(0..size))),
            Decision::Repeat => {
                let mut put = start.put.clone();
                let failure = start.unclear();
                let delay = put.backoff.next();
                self.try_later(put, delay, failure);
            }
            Decision::StartAgain(epoch)
                if epoch >= start.header.epoch && !self.rules.start_again_at_a_claim =>
            {
                self.fail(Error::Contended { key, epoch, writer: None });
            }
            Decision::StartAgain(epoch) => {
                let writer = start.recovery.names.get(&epoch).cloned();
                self.start_again(key, epoch, writer);
            }
            Decision::Contended(epoch, writer) => {
                self.fail(Error::Contended { key, epoch, writer });
            }
            Decision::Corrupted(error) => self.fail(Error::corrupted(key, error)),
            Decision::UnsafeStore => self.fail(Error::UnsafeStore { key }),
            Decision::PutRefused(error) => {
                let error = start.put.failed(error);
                self.fail(error);
            }
            Decision::ReadRefused(error) => {
                let error = start.ask(Ask::ReadBack).failed(error);
                self.fail(error);
            }
        }
    }

    fn created(&mut self) {
        let Phase::Starting(start) = core::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        if self.options.verify_store {
            self.requests.push(start.check());
            self.phase = Phase::Checking(start);
        } else {
            self.look(*start);
        }
    }

    /// The check's key is taken, so an honest store says that it exists.
    fn check_answered(&mut self, request: Request, answer: Result<(), StoreError>) {
        let Phase::Checking(start) = &mut self.phase else {
            return;
        };
        let Err(failure) = answer else {
            return self.fail(Error::UnsafeStore { key: request.key });
        };
        if failure.kind == StoreErrorKind::Exists {
            if let Phase::Checking(start) = core::mem::replace(&mut self.phase, Phase::Ended) {
                self.look(*start);
            }
        } else if failure.is_retryable() && start.checks < CHECK_REPEATS {
            start.checks += 1;
            self.try_later(request, CHECK_DELAY, failure);
        } else {
            self.fail(request.failed(failure));
        }
    }

    pub(super) fn opened(&mut self, start: Start) {
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

impl Start {
    fn new(
        recovery: Recovery,
        sequence: ObjectSeq,
        key: Key,
        record: WriterRecord,
        now: Time,
    ) -> Start {
        let header = Header {
            sequence,
            epoch: Epoch::claimed_at(sequence),
            predecessor: recovery.tip,
            // At most one above the tip, so at most the sequence.
            boundary: recovery.catalog.boundary(),
        };
        let (payload, segments) = encode(&header, &record);
        Start {
            recovery,
            header,
            record,
            size: payload.len(),
            segments,
            put: Request::new(Purpose::Start, key, Ask::Put(payload)),
            first_put: now,
            answer: Ok(()),
            reread: false,
            checks: 0,
        }
    }

    /// What the start object links to.
    pub(super) fn tip(&self) -> Option<Link> {
        self.recovery.tip
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.header.epoch
    }

    /// Whether this is the start object, or was there before it.
    pub(super) fn knows(&self, sequence: ObjectSeq) -> bool {
        sequence == self.header.sequence || self.recovery.listed.contains(&sequence)
    }

    fn ask(&self, ask: Ask) -> Request {
        Request::new(Purpose::Start, self.put.key.clone(), ask)
    }

    /// A put that must not succeed: what it brings differs only in its nonce.
    fn check(&self) -> Request {
        let nonce = self.record.nonce.map(|byte| !byte);
        let record = WriterRecord { nonce, ..self.record.clone() };
        self.ask(Ask::Put(encode(&self.header, &record).0))
    }

    /// What an unknown outcome fails with when the time is over: always retryable, also where the
    /// put was answered "exists" and then nothing was there.
    fn unclear(&self) -> StoreError {
        match &self.answer {
            Err(error) if !error.is_retryable() => {
                let cause: Arc<dyn core::error::Error + Send + Sync> = Arc::new(error.clone());
                StoreError::with_cause(StoreErrorKind::Transient, cause)
            }
            Err(error) => error.clone(),
            Ok(()) => StoreError::new(StoreErrorKind::Transient),
        }
    }

    fn judge_read_back(&self, result: Result<ReadBack, StoreError>) -> Standing {
        let found = match result {
            Ok(found) => found,
            Err(error) if error.kind == StoreErrorKind::NotFound => return Standing::Absent,
            Err(error) if error.is_retryable() => return Standing::Unread,
            Err(error) => return Standing::Refused(error),
        };
        let size = found.size;
        if !found.is_whole() {
            return Standing::Unread;
        }
        let ours = self.header.link();
        let found = match found.header_at(ours.sequence) {
            Ok(found) => found,
            Err(error) => return Standing::Foreign(error),
        };
        if found.links_to_itself() {
            return Standing::Claim(found.epoch);
        }
        match found.epoch.cmp(&ours.epoch) {
            Ordering::Less => Standing::Earlier(found.epoch),
            Ordering::Greater => Standing::Later(found.epoch),
            // No start object is that large, and ours is not: it need not be fetched.
            Ordering::Equal if size > TAIL_WINDOW => Standing::Others(None),
            Ordering::Equal => Standing::OurEpoch { size },
        }
    }

    fn judge_whole(&self, bytes: Bytes) -> Standing {
        let object = match examine_whole(self.header.sequence, bytes) {
            Ok(object) => object,
            Err(error) => return Standing::Foreign(error),
        };
        match object.writer {
            // The nonce alone would do, were it not for an attempt of this opening that linked to
            // another tip.
            Some(writer) if writer.nonce == self.record.nonce && object.header == self.header => {
                Standing::Ours
            }
            writer => Standing::Others(writer.map(|writer| writer.name)),
        }
    }
}

pub(super) fn encode(header: &Header, record: &WriterRecord) -> (Payload, Vec<SegmentMeta>) {
    let mut object = ObjectEncoder::new();
    if let Some(id) = EntryId::new(header.sequence, 1) {
        object.push(RegionId::WRITER, id, &record.encode());
    }
    object.finish(header)
}

/// What a claim and a start object say of this writer.
pub(super) fn record(options: &Options, identity: &Identity) -> WriterRecord {
    WriterRecord {
        nonce: identity.nonce,
        opened_at_millis: identity.opened_at_millis,
        max_in_flight: u16::try_from(options.max_in_flight).unwrap_or(u16::MAX),
        name: writer_name(options, identity),
    }
}

/// The options are validated; what the shell names is cut to fit.
fn writer_name(options: &Options, identity: &Identity) -> Arc<str> {
    let name = options.writer_name.as_deref().unwrap_or(&identity.default_name);
    let fits = |end: &usize| *end <= MAX_NAME_LEN && name.is_char_boundary(*end);
    match (0..=name.len().min(MAX_NAME_LEN)).rev().find(fits) {
        Some(end) if end > 0 => name[..end].into(),
        _ => "unnamed".into(),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::error::Part;

    const OURS: Epoch = Epoch(7);

    /// Every row and column of the table, by its text.
    #[test]
    fn every_outcome_of_the_start_put_is_decided() {
        let error = |part| DecodeError::new(part, "no");
        let refused = || StoreError::new(StoreErrorKind::Refused);
        // What is found when a put failed in a way that does not say whose the key is.
        let found = [
            (None, "ReadBack"),
            (Some(Standing::Absent), "Repeat"),
            (Some(Standing::Unread), "Repeat"),
            (Some(Standing::Refused(refused())), "ReadRefused"),
            (Some(Standing::Foreign(error(Part::Header))), "Corrupted"),
            (Some(Standing::Earlier(Epoch(6))), "StartAgain(Epoch(6))"),
            (Some(Standing::Claim(Epoch(7))), "StartAgain(Epoch(7))"),
            (Some(Standing::OurEpoch { size: 200 }), "ReadWhole { size: 200 }"),
            (Some(Standing::Ours), "Opened"),
            (Some(Standing::Others(Some("b".into()))), "Contended(Epoch(7), Some(\"b\"))"),
            (Some(Standing::Others(None)), "Contended(Epoch(7), None)"),
            (Some(Standing::Later(Epoch(8))), "Contended(Epoch(8), None)"),
        ];
        let failed = |kind| Err(StoreError::new(kind));
        // What an answer decides by itself.
        let puts = [
            (Ok(()), Some("Opened")),
            (failed(StoreErrorKind::NotSupported), Some("UnsafeStore")),
            (failed(StoreErrorKind::Refused), Some("PutRefused")),
            (failed(StoreErrorKind::NotFound), Some("PutRefused")),
            (failed(StoreErrorKind::Exists), None),
            (failed(StoreErrorKind::TimedOut), None),
            (failed(StoreErrorKind::Transient), None),
        ];
        for (put, decided) in &puts {
            for (standing, by_what_stands) in &found {
                let expected = decided.unwrap_or(by_what_stands);
                let decision = format!("{:?}", decide(OURS, put, standing.clone()));
                assert!(decision.starts_with(expected), "{put:?}, {standing:?}: {decision}");
            }
        }
    }
}
