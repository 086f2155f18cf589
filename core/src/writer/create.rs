//! Creating objects: attempts, their outcomes, indexing, and what a failure takes with it
//! (DESIGN.md section 5).

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::admit::{Call, QueuedCall};
use super::outcome::{AtKey, Consequence, CreateOutcome, PutAnswer, consequence, decide};
use super::pipeline::Create;
use super::{Effect, Error, Outcome, Queued, SealedBatch, State, Writer};
use crate::error::{DecodeError, Operation, Part, StoreError, StoreErrorKind};
use crate::event::{Answer, Notice, ReadBack, RequestId, StorageEffect};
use crate::format::Header;
use crate::options::AckMode;
use crate::types::Link;

impl<W> Writer<W> {
    /// Starts what may start: repeats that are due, then new creates while a slot is free.
    pub(super) fn start_creates(&mut self) {
        if self.deadline_passed() {
            return;
        }
        let rules = self.rules;
        loop {
            let free = self.has_free_slot();
            let id = self.next_request;
            let due = self.pipeline.due(self.now);
            let repeat = due.is_some();
            let batch = match due {
                Some(batch) => batch,
                None if free => match self.pipeline.start(rules) {
                    Some(batch) => batch,
                    None => return,
                },
                None => return,
            };
            if !repeat {
                batch.first_attempt = self.now;
            }
            batch.create = Create::Putting(id);
            let (key, payload) = (batch.key.clone(), batch.payload.clone());
            self.next_request = RequestId(id.0 + 1);
            self.stats.create_retries_total += u64::from(repeat);
            let time_limit = self.time_limit_of_put(payload.len());
            let put = StorageEffect::PutObject { id, key, payload, time_limit };
            self.emit(Effect::Storage(put));
        }
    }

    pub(super) fn create_result(&mut self, id: RequestId, result: Result<(), StoreError>) {
        if self.pipeline.ran_out(id) {
            return;
        }
        let Some(batch) = self.pipeline.find(id) else { return };
        if !matches!(batch.create, Create::Putting(_)) {
            return;
        }
        let link = batch.link;
        match (PutAnswer::of(&result), result) {
            (PutAnswer::Failed, Err(cause)) => {
                let key = batch.key.clone();
                let id = self.next_request;
                batch.create = Create::ReadingBack(id, cause);
                self.next_request = RequestId(id.0 + 1);
                let time_limit = self.options.request_timeout;
                let read_back = StorageEffect::ReadBack { id, key, time_limit };
                self.emit(Effect::Storage(read_back));
            }
            (put, result) => {
                batch.create = Create::Ended;
                let failure = result.err().map(|source| Error::Store {
                    operation: Operation::Create,
                    key: batch.key.clone(),
                    source,
                });
                self.settle(link, decide(put, AtKey::Unknown, link.epoch), failure);
            }
        }
    }

    pub(super) fn read_back_result(&mut self, id: RequestId, result: Result<ReadBack, StoreError>) {
        if let (Some(sequence), Ok(found)) = (self.pipeline.runs_out_for(id), &result)
            && let Ok(header) = found.header_at(sequence)
        {
            self.saw(header.link());
        }
        if self.pipeline.ran_out(id) {
            return;
        }
        let Some(batch) = self.pipeline.find(id) else {
            return self.fence_read_back(id, result);
        };
        let (link, key) = (batch.link, batch.key.clone());
        let cause = match &batch.create {
            Create::ReadingBack(_, cause) => cause.clone(),
            _ => return self.guard_looked(id, link, result),
        };
        batch.create = Create::Ended;
        let at_key = AtKey::of(&result, link, batch.header(), &batch.payload);
        let outcome = decide(PutAnswer::Failed, at_key, link.epoch);
        let failure = match (outcome, result) {
            (CreateOutcome::Created, _) => None,
            // What ends the log must not read as something that passes.
            (CreateOutcome::Stale, Ok(found)) if self.options.ack_mode == AckMode::Enqueued => {
                Some(Error::corrupted(key, stale(&found)))
            }
            (CreateOutcome::Stale, _) => Some(Error::Conflict { key }),
            (CreateOutcome::Fenced(theirs), found) => {
                let size = found.map_or(0, |found| found.size);
                return self.fence(key, link, theirs, size);
            }
            (CreateOutcome::Foreign, Ok(found)) => {
                found.header_at(link.sequence).err().map(|error| Error::corrupted(key, error))
            }
            (CreateOutcome::Refused, Err(source)) => {
                Some(Error::Store { operation: Operation::ReadBack, key, source })
            }
            (CreateOutcome::Transient | CreateOutcome::Refused | CreateOutcome::Foreign, _) => {
                // That the client says "exists" of a key where nothing is, passes.
                let kind = match cause.kind {
                    StoreErrorKind::TimedOut => StoreErrorKind::TimedOut,
                    _ => StoreErrorKind::Transient,
                };
                let source = StoreError { kind, cause: cause.cause };
                Some(Error::Store { operation: Operation::Create, key, source })
            }
        };
        self.settle(link, outcome, failure);
    }

    /// Does what the second table of section 5 says. Fenced comes here without a failure only: the
    /// name of the other writer is read first.
    fn settle(&mut self, link: Link, outcome: CreateOutcome, failure: Option<Error>) {
        let failure = match (outcome, failure) {
            (CreateOutcome::Created, _) | (_, None) => return self.created(link),
            (_, Some(failure)) => failure,
        };
        self.stats.create_failures_total += 1;
        let conflict = matches!(outcome, CreateOutcome::Stale | CreateOutcome::Foreign);
        self.stats.create_conflicts_total += u64::from(conflict);
        match consequence(outcome, self.options.ack_mode) {
            Consequence::Index => self.created(link),
            Consequence::Repeat => self.repeat(link, failure),
            Consequence::RepeatOrRollBack => self.repeat_or_roll_back(link, failure),
            Consequence::RollBack => self.roll_back(failure),
            Consequence::FailAndRepeat => {
                self.become_failing(&failure);
                self.repeat(link, failure);
            }
            Consequence::Poison => self.poison(failure),
        }
    }

    /// A create succeeded. A guarded batch is looked at before it counts as created.
    fn created(&mut self, link: Link) {
        self.become_healthy();
        if self.pipeline.get_mut(link).is_some_and(|batch| batch.guarded) {
            self.guard(link);
        } else {
            self.pipeline.created(link, self.now);
        }
    }

    /// A transient outcome of a batch.
    pub(super) fn set_back(&mut self, link: Link, failure: Error) {
        match consequence(CreateOutcome::Transient, self.options.ack_mode) {
            Consequence::Repeat => self.repeat(link, failure),
            _ => self.repeat_or_roll_back(link, failure),
        }
    }

    fn repeat_or_roll_back(&mut self, link: Link, failure: Error) {
        let last = self
            .pipeline
            .get_mut(link)
            .map(|batch| batch.first_attempt.after(self.options.retry_for));
        let next = self.pipeline.get_mut(link).map(|batch| batch.backoff.clone().next());
        match (next, last) {
            (Some(delay), Some(last)) if self.now.after(delay) > last => self.roll_back(failure),
            _ => self.repeat(link, failure),
        }
    }

    /// The same bytes again under the same sequence, after a delay.
    fn repeat(&mut self, link: Link, failure: Error) {
        let now = self.now;
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        let delay = batch.backoff.next();
        batch.create = Create::Waiting(now.after(delay));
        let key = batch.key.clone();
        batch.failure = Some(failure.clone());
        let notice = Notice::CreateRetries { key, error: failure, delay };
        self.emit(Effect::Notice(notice));
    }

    /// Indexes what is created and has nothing before it, and acknowledges it.
    pub(super) fn index_created(&mut self) {
        loop {
            if let Some(link) = self.created_after_silence() {
                return self.guard(link);
            }
            let Some(batch) = self.pipeline.pop_created() else { return };
            let size = batch.payload.len();
            if let Err(error) = self.catalog.index(batch.link, size, &batch.segments) {
                let error = Error::corrupted(batch.key.clone(), error);
                return self.poison_with(error, VecDeque::from([batch]));
            }
            if !batch.records.is_empty() {
                self.catalog.apply_releases(batch.link.sequence, &batch.records);
                self.stats.release_records_total += batch.records.len() as u64;
                self.carried.succeeded();
            }
            self.last_put = batch.first_attempt;
            self.may_return.clear();
            self.reclaim.raise(batch.boundary);
            self.stats.unpersisted_bytes -= size;
            self.stats.created_objects_total += 1;
            self.stats.object_bytes.record(size);
            self.stats.object_entries.record(batch.entries);
            self.stats.seal_to_durable.record_duration(self.now.since(batch.sealed_at));
            for append in &batch.appends {
                self.stats.append_ack.record_duration(self.now.since(append.arrived));
            }
            if !batch.appends.is_empty() {
                self.effects.push_back(Queued::Acks(batch.appends));
            }
            for waiter in batch.waits {
                self.emit(Effect::Ack { waiter, answer: Answer::Done });
            }
            self.failed.indexed(batch.link.sequence, self.catalog.boundary());
            if self.watched.is_empty() {
                continue;
            }
            for meta in batch.segments {
                if self.watched.contains(&meta.region) {
                    let (region, id) = (meta.region, meta.max_id);
                    self.emit(Effect::Durable { region, id });
                }
            }
        }
    }

    /// Fails every batch that is not indexed, the open one included: an entry must not be
    /// acknowledged when one before it was not. The log stays healthy.
    fn roll_back(&mut self, error: Error) {
        let batches = self.pipeline.take_all();
        let count = batches.len() as u64 + u64::from(self.open.is_some());
        self.stats.rolled_back_batches_total += count;
        self.skipped |= self.rules.guard_after_roll_back;
        let first_failed = batches.front().map(|batch| batch.link.sequence);
        if let (Some(first), Some(last)) = (batches.front(), batches.back()) {
            self.failed.add(first.link.sequence, last.link.sequence, &error);
        }
        // What stands in the way of older writers stays (DESIGN.md section 12, rule 5).
        let is_others =
            |batch: &SealedBatch<W>| matches!(&error, Error::Conflict { key } if *key == batch.key);
        for batch in batches.iter().filter(|batch| batch.outcome() == Outcome::Unknown) {
            if !is_others(batch) {
                self.reclaim.add_failed_batch(batch.link.sequence);
            }
            let user = batch.segments.iter().filter(|meta| !meta.region.is_reserved());
            self.may_return.extend(user.map(|meta| (meta.region, meta.max_id)));
        }
        let notice = Notice::RolledBack { batches: count, error: error.clone() };
        self.emit(Effect::Notice(notice));
        self.fail_batches(batches, &error);
        self.fail_open(&error);
        self.delay_carried();
        // A carrier is tried again in the next interval.
        self.last_seal = self.now;
        if matches!(self.state, State::Stopping { .. }) {
            let first = first_failed.filter(|first| self.dropped_from.is_none_or(|d| *first < d));
            self.dropped_from = first.or(self.dropped_from);
            self.loss_cause = Some(error);
        }
    }

    /// Ends the writer with its first terminal error.
    pub(super) fn poison(&mut self, error: Error) {
        self.poison_with(error, VecDeque::new());
    }

    /// `first` are batches that were taken out of the pipeline already.
    pub(super) fn poison_with(&mut self, error: Error, first: VecDeque<SealedBatch<W>>) {
        self.stats.poisoned_total += 1;
        self.state = State::Poisoned(Arc::new(error.clone()));
        self.emit(Effect::Notice(Notice::Poisoned { error: error.clone() }));
        let mut batches = first;
        batches.extend(self.pipeline.take_all());
        self.fail_batches(batches, &error);
        self.fail_everything(&error);
        self.lose_carried(&error);
    }

    /// Fails every call that is not answered, those of stop aside.
    pub(super) fn fail_everything(&mut self, error: &Error) {
        let batches = self.pipeline.take_all();
        self.fail_batches(batches, error);
        self.fail_open(error);
        self.fail_queue(error);
        self.fail_floor(error);
    }

    /// Fails the waiters of batches, in order, one effect per run with the same outcome.
    pub(super) fn fail_batches(&mut self, batches: VecDeque<SealedBatch<W>>, error: &Error) {
        let mut runs: Vec<(Outcome, Vec<W>)> = Vec::new();
        let mut gone = BTreeSet::new();
        for batch in batches {
            self.stats.unpersisted_bytes -= batch.payload.len();
            let outcome = batch.outcome();
            self.count_loss(batch.entries, batch.failure);
            self.carried.add_records(&batch.records);
            let appends: Vec<W> = batch.appends.into_iter().map(|append| append.waiter).collect();
            // A release's record is not given up with its batch.
            let lives_on = !batch.records.is_empty() && !matches!(self.state, State::Poisoned(_));
            let of_waits = if lives_on { Outcome::Unknown } else { outcome };
            for (outcome, waiters) in [(outcome, appends), (of_waits, batch.waits)] {
                match runs.last_mut() {
                    Some((of, run)) if *of == outcome => run.extend(waiters),
                    _ => runs.push((outcome, waiters)),
                }
            }
            gone.extend(batch.segments.into_iter().map(|meta| meta.region));
        }
        for (outcome, waiters) in runs {
            self.fail_all(waiters, error, outcome);
        }
        for region in gone {
            self.forget_if_nothing_is_left(region);
        }
    }

    /// Drops the open batch. It never used its sequence: the next batch takes it.
    pub(super) fn fail_open(&mut self, error: &Error) {
        self.seal_wanted = false;
        if let Some(open) = self.open.take() {
            self.stats.unpersisted_bytes -= open.bytes();
            self.count_loss(open.entries(), None);
            let regions: Vec<_> = open.regions().collect();
            let records = open.releases();
            self.carried.add(records.iter().map(|(region, through)| (*region, *through)));
            let lives_on = !records.is_empty() && !matches!(self.state, State::Poisoned(_));
            let outcome = if lives_on { Outcome::Unknown } else { Outcome::NotWritten };
            let appends = open.appends.into_iter().map(|append| append.waiter);
            self.fail_all(appends.collect(), error, Outcome::NotWritten);
            self.fail_all(open.waits, error, outcome);
            for region in regions {
                self.forget_if_nothing_is_left(region);
            }
        }
    }

    pub(super) fn fail_queue(&mut self, error: &Error) {
        let mut appends = Vec::new();
        for QueuedCall { call, waiter, .. } in core::mem::take(&mut self.queue) {
            match call {
                Call::Append { .. } => {
                    self.stats.rejected_appends_total += 1;
                    appends.push(waiter);
                }
                Call::Release(release) => {
                    self.fail_all(core::mem::take(&mut appends), error, Outcome::NotWritten);
                    match self.failing.clone().filter(|_| self.is_running().is_ok()) {
                        Some(failing) => self.refuse_release(release, waiter, &failing),
                        None => self.fail(waiter, error.clone()),
                    }
                }
            }
        }
        self.fail_all(appends, error, Outcome::NotWritten);
    }

    /// In `enqueued`, entries that fail were acknowledged.
    fn count_loss(&mut self, entries: u64, failure: Option<Error>) {
        if self.options.ack_mode == AckMode::Enqueued {
            self.lost_entries += entries;
            self.loss_cause = self.loss_cause.take().or(failure);
        }
    }

    pub(super) fn fail_all(&mut self, waiters: Vec<W>, error: &Error, outcome: Outcome) {
        if !waiters.is_empty() {
            let error = error.clone();
            self.emit(Effect::FailWaiters { waiters, error, outcome });
        }
    }
}

/// Says why acknowledged entries cannot go where they must.
fn stale(found: &ReadBack) -> DecodeError {
    let epoch = Header::decode(&found.header).map_or(0, |header| header.epoch.0);
    let reason = format!(
        "expected a free key for acknowledged entries, found an object of the earlier epoch {epoch}"
    );
    DecodeError::new(Part::Object, reason)
}
