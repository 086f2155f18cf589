//! The Writer machine: state and dispatch (DESIGN.md section 5).

mod admit;
mod calls;
mod check;
mod create;
mod failing;
mod fence;
mod guard;
mod obsolete;
mod outcome;
mod pipeline;
mod reclaim;
mod release;
mod seal;
mod stall;
mod stop;
mod wait;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::{self, Vec};
use core::time::Duration;

use self::admit::QueuedCall;
use self::fence::Fencing;
use self::obsolete::Floor;
use self::pipeline::{Pipeline, SealedBatch};
use self::reclaim::Reclaim;
use self::release::{Carried, MayReturn, Release};
use self::stall::Warned;
use self::wait::FailedSequences;
use crate::batch::{Batch, WaitingAppend};
use crate::catalog::{Catalog, HeldBy, RegionInfo};
use crate::error::{Error, Outcome};
use crate::event::{Answer, Effect, Event, Notice, RequestId, StorageAnswer};
use crate::key::Prefix;
use crate::opening::Recovered;
use crate::options::Options;
use crate::read::{Hole, ReadPlan, ReplayFilter, ReplayPlan};
use crate::rules::Rules;
use crate::stats::Stats;
use crate::types::{EntryId, Epoch, ObjectSeq, RegionId, Time};

/// The machine that writes a log: it admits appends, makes objects of them, puts each under the
/// next sequence, and acknowledges what is durable.
///
/// How it is driven:
///
/// - [`handle`](Writer::handle) takes one event and the time at which it happened. It never blocks
///   and never panics, whatever the event. Time never goes back; an earlier time counts as the
///   latest one that was handed in.
/// - Then [`poll_effect`](Writer::poll_effect) is drained to dry. Several events that are there at
///   once may be handed in before: appends that come together share an object. Each
///   [`Effect::Storage`] is carried out once and answered once, with [`Event::Storage`]; answers
///   may come in any order, and one that is not waited for changes nothing.
/// - Then [`next_tick`](Writer::next_tick) says when to send [`Event::Tick`]; that may be now, and
///   other events do not stand in for it. A tick too many is harmless.
/// - A waiter `W` travels in with an event and out again in exactly one [`Effect::Ack`] or
///   [`Effect::FailWaiters`]. A shell that goes away calls [`abandon`](Writer::abandon), which
///   gives back all of them.
/// - The other methods are getters: they change nothing and ask nothing of the store.
///
/// The same events always give the same effects.
///
/// Invariants, which [`check`](Writer::check) verifies:
///
/// 1. The open batch has the next sequence, and at least one entry or release record.
/// 2. The sealed batches and the last indexed object form a chain, each linked to the one before.
/// 3. At most `2 * max_in_flight` batches are sealed and not indexed.
/// 4. The first call of the queue is there only while it cannot be admitted.
/// 5. A stopped or poisoned writer holds no batch and no queued append.
/// 6. The figure of unpersisted bytes is the size of all batches.
#[derive(Clone, Debug)]
pub struct Writer<W> {
    prefix: Prefix,
    options: Options,
    rules: Rules,
    epoch: Epoch,
    now: Time,
    state: State,
    catalog: Catalog,
    next_sequence: ObjectSeq,
    /// The next sequence does not follow the last indexed one: the next batch is guarded.
    skipped: bool,
    next_request: RequestId,
    /// Appends that cannot be admitted yet, and releases behind them, in the order of their
    /// arrival.
    queue: VecDeque<QueuedCall<W>>,
    open: Option<Batch<W>>,
    /// The open batch seals as soon as there is room, whatever its size and the time.
    seal_wanted: bool,
    last_timed_seal: Option<Time>,
    /// When a batch was sealed last, or the log was opened.
    last_seal: Time,
    pipeline: Pipeline<W>,
    /// When the first put of the last indexed object was handed out.
    last_put: Time,
    floor: Option<Floor<W>>,
    fencing: Option<Fencing<W>>,
    /// In `enqueued`: what writes fail with while the store refuses creates.
    failing: Option<Error>,
    failed: FailedSequences,
    reclaim: Reclaim<W>,
    carried: Carried,
    may_return: MayReturn,
    /// The regions that were released in full: nothing is appended to them.
    released: BTreeSet<RegionId>,
    /// In `durable`: what had this sequence or a later one was dropped by stop. The last object of
    /// the log, which holds no entries, may come behind it.
    dropped_from: Option<ObjectSeq>,
    /// The last object of a stop in `durable` was sealed: it is the only one.
    last_object_sealed: bool,
    /// Release records that were dropped for good.
    lost_releases: u64,
    /// In `enqueued`: acknowledged entries that were dropped.
    lost_entries: u64,
    /// What the first of them, or of lost release records, was lost for.
    loss_cause: Option<Error>,
    /// A guard found no object at this sequence; the download may have been damaged.
    suspect: Option<ObjectSeq>,
    warned: Warned,
    /// The callers of stop that are not answered yet.
    stops: Vec<W>,
    watched: BTreeSet<RegionId>,
    effects: VecDeque<Queued<W>>,
    /// Acknowledgements that are being polled.
    acks: vec::IntoIter<WaitingAppend<W>>,
    stats: Stats,
}

/// What is to be polled. The acknowledgements of a batch are not moved one by one.
#[derive(Clone, Debug)]
enum Queued<W> {
    Effect(Effect<W>),
    Acks(Vec<WaitingAppend<W>>),
}

#[derive(Clone, Debug)]
enum State {
    Running,
    /// Stop began; what is in flight runs out.
    Stopping {
        began: Time,
    },
    /// With what could not be saved.
    Stopped(Option<Error>),
    /// The first terminal error, which stays.
    Poisoned(Arc<Error>),
}

impl<W> Writer<W> {
    /// The writer of a log that was just opened.
    pub fn new(now: Time, recovered: Recovered) -> Writer<W> {
        let mut stats = Stats {
            epoch: recovered.start.epoch.0,
            recovered_objects_total: recovered.stats.recovered_objects,
            ..Stats::default()
        };
        stats.recovery.record_duration(recovered.stats.took);
        let retention = recovered.options.fence_retention;
        let unindexed = recovered.catalog.unindexed().filter(|found| !found.is_kept(retention));
        let outside = unindexed.map(|found| found.link.sequence);
        let reclaim = Reclaim::new(recovered.durable_boundary, outside);
        let released = recovered.catalog.released_in_full().collect();
        Writer {
            prefix: recovered.prefix,
            options: recovered.options,
            rules: recovered.rules,
            epoch: recovered.start.epoch,
            now,
            state: State::Running,
            catalog: recovered.catalog,
            next_sequence: recovered.next_sequence,
            skipped: false,
            next_request: recovered.next_request,
            queue: VecDeque::new(),
            open: None,
            seal_wanted: false,
            last_timed_seal: None,
            last_seal: now,
            pipeline: Pipeline::new(),
            last_put: recovered.start_put,
            floor: None,
            fencing: None,
            failing: None,
            failed: FailedSequences::default(),
            reclaim,
            carried: Carried::new(),
            may_return: MayReturn::new(),
            released,
            dropped_from: None,
            last_object_sealed: false,
            lost_releases: 0,
            lost_entries: 0,
            loss_cause: None,
            suspect: None,
            warned: Warned::default(),
            stops: Vec::new(),
            watched: BTreeSet::new(),
            effects: VecDeque::new(),
            acks: Vec::new().into_iter(),
            stats,
        }
    }

    /// Takes one event.
    pub fn handle(&mut self, now: Time, event: Event<W>) {
        self.now = self.now.max(now);
        if let Some(fencing) = &mut self.fencing
            && event.is_call()
        {
            // How they fail is known once the other writer's name is.
            fencing.deferred.push(event);
            return;
        }
        match event {
            Event::Tick => {
                self.seal_if_due();
                self.retry_deletes();
                self.warn();
            }
            Event::Append { append, waiter } => {
                self.append(append, waiter);
                // All that an append can bring about is that a batch should leave.
                if !self.seal_wanted && self.pipeline.is_all_started() {
                    return;
                }
            }
            Event::Flush { waiter } => self.flush(waiter),
            Event::WaitDurable { region, id, waiter } => self.wait_durable(region, id, waiter),
            Event::Obsolete { region, id, waiter } => self.obsolete(region, id, waiter),
            Event::Release { region, waiter } => {
                self.release(Release { region, in_full: false }, waiter);
            }
            Event::ReleaseAll { region, waiter } => {
                self.release(Release { region, in_full: true }, waiter);
            }
            Event::Stop { waiter } => self.stop(waiter),
            Event::Watch { region } => {
                if !region.is_reserved() {
                    self.watched.insert(region);
                }
                let id = self.catalog.durable(region);
                self.emit(Effect::Durable { region, id });
            }
            Event::Unwatch { region } => {
                self.watched.remove(&region);
            }
            Event::Storage(answer) => self.answered(answer),
            Event::SegmentReadFailed { segment, waiter } => self.judge_read(segment, waiter),
            Event::HoleFound(hole) => self.hole_found(hole),
            Event::ReadFinished { took, refetched } => {
                self.stats.read.record_duration(took);
                self.stats.refetched_segments_total += refetched;
            }
        }
        self.advance();
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<Effect<W>> {
        loop {
            if let Some(WaitingAppend { waiter, ids, .. }) = self.acks.next() {
                return Some(Effect::Ack { waiter, answer: Answer::Appended(ids) });
            }
            match self.effects.pop_front()? {
                Queued::Effect(effect) => return Some(effect),
                Queued::Acks(appends) => self.acks = appends.into_iter(),
            }
        }
    }

    /// When to send a tick, at the latest; it may be now or past. `None` while nothing depends on
    /// time.
    pub fn next_tick(&self) -> Option<Time> {
        if !self.is_active() {
            return None;
        }
        let over = self.deadline_passed();
        let repeat = self.pipeline.next_repeat().filter(|_| !over);
        let deadline = self.deadline().filter(|_| !over && !self.pipeline.is_empty());
        let seals = [self.next_timed_seal(), self.next_carried_seal(), self.next_carrier()];
        let deletes = [self.first_deletes(), self.next_delete_retry()];
        let others = [repeat, deadline, self.next_warning()];
        seals.into_iter().chain(deletes).chain(others).flatten().min()
    }

    /// A hint to hold callers back: whether an append that came now would be admitted or refused
    /// at once, rather than queued. The first one that a threshold of `enqueued` holds back is
    /// queued all the same: it is what seals the open batch, if nothing else is under way.
    pub fn accepts_appends(&self) -> bool {
        let blocked = !self.queue.is_empty() || self.floor.is_some();
        let full = self.open.as_ref().is_some_and(|open| self.is_full(open)) && !self.has_room();
        self.fencing.is_none() && (self.may_write().is_err() || !blocked && !full)
    }

    /// Gives back every waiter, failed as stopped: for a shell that goes away without a stop. Like
    /// a crash, it leaves in the store what is there. Only the waiters are to be polled then.
    pub fn abandon(&mut self) {
        self.effects.retain(|queued| {
            !matches!(
                queued,
                Queued::Effect(Effect::Storage(_) | Effect::Durable { .. } | Effect::Notice(_))
            )
        });
        if matches!(self.state, State::Running | State::Stopping { .. }) {
            self.state = State::Stopped(None);
        }
        let error = Error::Stopped;
        let (batches, deferred) = match self.fencing.take() {
            Some(fencing) => (fencing.batches, fencing.deferred),
            None => (VecDeque::new(), Vec::new()),
        };
        self.fail_batches(batches, &error);
        self.fail_everything(&error);
        for waiter in core::mem::take(&mut self.stops) {
            self.fail(waiter, error.clone());
        }
        for waiter in deferred.into_iter().filter_map(Event::into_waiter) {
            self.fail(waiter, error.clone());
        }
        for waiter in self.reclaim.take_reads() {
            self.fail(waiter, error.clone());
        }
        self.lose_carried(&error);
        if matches!(self.state, State::Stopped(None)) {
            self.state = State::Stopped(self.loss(None));
        }
    }

    /// The options the log was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// This writer's epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The largest id handed out for a region, batches that failed left aside; zero if there is
    /// none.
    pub fn latest(&self, region: RegionId) -> EntryId {
        self.pending(region).unwrap_or_else(|| self.catalog.durable(region))
    }

    /// The largest id of a region that is durable and indexed; zero if there is none.
    pub fn durable(&self, region: RegionId) -> EntryId {
        self.catalog.durable(region)
    }

    /// The regions that hold something above their watermark, in order.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.catalog.regions()
    }

    /// What keeps objects from being deleted. Costs a look at every region and every object.
    pub fn held_by(&self) -> HeldBy {
        self.catalog.held_by()
    }

    /// The holes of a region that reads found so far, in order.
    pub fn holes(&self, region: RegionId) -> impl Iterator<Item = &Hole> {
        self.catalog.holes(region)
    }

    /// The figures as they stand.
    pub fn stats(&self) -> Stats {
        Stats {
            indexed_objects: self.catalog.object_count(),
            indexed_bytes: self.catalog.byte_count(),
            failing: u64::from(self.failing.is_some() && self.is_active()),
            in_flight_creates: self.pipeline.slots() as u64,
            reclaim_boundary: self.catalog.boundary().0,
            ..self.stats.clone()
        }
    }

    /// Whether nothing more comes of this writer by itself: it was stopped, or ended with a
    /// terminal error, and nothing is in flight. Calls are still answered.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, State::Stopped(_))
            || matches!(self.state, State::Poisoned(_))
                && self.pipeline.is_quiet()
                && self.reclaim.is_quiet()
    }

    /// Plans a read of a region: the segments with entries at or above `from` and above the
    /// watermark, up to what is durable now, or up to `through` when a read goes on. The plan is
    /// cut after `at_most` segments.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a reserved region.
    pub fn plan_read(
        &self,
        region: RegionId,
        from: EntryId,
        through: Option<EntryId>,
        at_most: usize,
    ) -> Result<ReadPlan, Error> {
        self.catalog.plan_read(&self.prefix, region, from, through, at_most)
    }

    /// Plans a replay of many regions: see [`Catalog::plan_replay`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRegion`] for a filter that names a reserved region.
    pub fn plan_replay(
        &self,
        filter: &ReplayFilter,
        from: ObjectSeq,
        through: Option<ObjectSeq>,
        at_most: usize,
    ) -> Result<ReplayPlan, Error> {
        self.catalog.plan_replay(&self.prefix, filter, from, through, at_most)
    }

    fn flush(&mut self, waiter: W) {
        if let Err(error) = self.may_write() {
            return self.fail(waiter, error);
        }
        if let Some(open) = &mut self.open {
            open.waits.push(waiter);
            self.seal_wanted = true;
        } else if let Some(last) = self.pipeline.last_mut() {
            last.waits.push(waiter);
        } else {
            self.emit(Effect::Ack { waiter, answer: Answer::Done });
        }
    }

    fn answered(&mut self, answer: StorageAnswer) {
        match answer {
            StorageAnswer::DeleteResult { id, results } => self.delete_result(id, results),
            StorageAnswer::CreateResult { id, result } => self.create_result(id, result),
            StorageAnswer::ReadBackResult { id, result } => self.read_back_result(id, result),
            StorageAnswer::Fetched { id, result } => self.fence_fetched(id, result),
            StorageAnswer::Listed { id, result } => self.guard_listed(id, result),
        }
    }

    /// Everything that became possible by an event.
    fn advance(&mut self) {
        if self.is_active() {
            self.index_created();
            self.raise_floor();
            self.admit_queued();
            self.seal_if_wanted();
            self.start_creates();
            self.start_deletes();
        }
        self.finish_stop();
    }

    /// Whether batches are still made, started and indexed.
    fn is_active(&self) -> bool {
        self.fencing.is_none() && matches!(self.state, State::Running | State::Stopping { .. })
    }

    /// The largest id of a region that is admitted and not indexed.
    fn pending(&self, region: RegionId) -> Option<EntryId> {
        let open = self.open.as_ref().and_then(|open| open.latest(region));
        open.or_else(|| self.pipeline.latest(region))
    }

    /// What a call fails with, once the log is no longer running.
    fn is_running(&self) -> Result<(), Error> {
        match &self.state {
            State::Running => Ok(()),
            State::Stopping { .. } | State::Stopped(_) => Err(Error::Stopped),
            State::Poisoned(cause) => Err(Error::Poisoned { cause: cause.clone() }),
        }
    }

    fn hole_found(&mut self, hole: Hole) {
        if self.catalog.is_indexed(hole.object) && self.catalog.add_hole(hole.clone()) {
            self.stats.skipped_segments_total += 1;
            self.emit(Effect::Notice(Notice::Hole(hole)));
        }
    }

    fn emit(&mut self, effect: Effect<W>) {
        self.effects.push_back(Queued::Effect(effect));
    }

    /// Fails a waiter whose call changed nothing.
    fn fail(&mut self, waiter: W, error: Error) {
        let waiters = Vec::from([waiter]);
        self.emit(Effect::FailWaiters { waiters, error, outcome: Outcome::NotWritten });
    }

    fn request_id(&mut self) -> RequestId {
        let id = self.next_request;
        self.next_request = RequestId(id.0 + 1);
        id
    }

    fn time_limit_of_put(&self, bytes: u64) -> Duration {
        self.options.request_timeout + Duration::from_secs(bytes / (8 << 20))
    }
}

#[cfg(test)]
mod tests;
