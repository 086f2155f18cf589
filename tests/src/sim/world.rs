//! The world: it carries a plan out.

mod calls;
mod effects;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::{Append, Event, StorageAnswer, StorageEffect};
use sealog_core::format::{Object, ReservedContent};
use sealog_core::opening::{Identity, Opening, OpeningEvent};
use sealog_core::read::PlannedSegment;
use sealog_core::{EntryId, Key, Options, Prefix, RegionId, RequestId, Time, Writer};

use super::Trace;
use super::journal::{Checked, Journal, Violation, Waiter, ensure};
use super::plan::Step;
use super::tally::Reached;
use crate::model::{Failure, Fate, ModelStore, Request};

/// A store, the instances that used and use it, and a clock.
#[derive(Debug)]
pub struct World {
    now: Time,
    prefix: Prefix,
    store: ModelStore,
    /// All that ever were; the ones before the last are gone.
    instances: Vec<Instance>,
    /// Puts and deletes that nobody waits for any more, and that may still land.
    adrift: Vec<StorageEffect>,
    /// The keys of puts that landed so since an opening began last.
    late: BTreeSet<Key>,
    /// How many objects were deleted when that was looked at last.
    deleted: u64,
    /// How many keys a delete request takes.
    keys_per_delete: usize,
    /// Reads that were planned, and not begun.
    planned: Vec<PlannedSegment>,
    options: Vec<Options>,
    journal: Journal,
    hasher: DefaultHasher,
    effects: u64,
    /// How many calls were made. Now and then one comes with an earlier time than before.
    calls: u64,
    /// How many payloads were made.
    payloads: u64,
}

#[derive(Debug)]
struct Instance {
    machine: Machine,
    /// What is under way, in the order in which it was asked for.
    requests: Vec<Request>,
    /// The latest time that the machine was told.
    told: Time,
    /// When its opening began.
    began: Time,
    /// What it asked for so far: no two requests are named alike.
    asked: BTreeSet<RequestId>,
    /// The answer that arrived last.
    answered: Option<StorageAnswer>,
    /// A request of its opening ended badly, so the opening may fail.
    faults: bool,
    /// How many fetches of each object arrived damaged.
    damaged: BTreeMap<Key, u32>,
}

#[derive(Debug)]
enum Machine {
    Opening(Box<Opening>),
    Writer(Box<Writer<Waiter>>),
    Gone,
}

/// The regions that a plan's small numbers stand for: the smallest, the largest, and some between.
const REGIONS: [RegionId; 5] =
    [RegionId(0), RegionId(1), RegionId(7), RegionId(1 << 40), RegionId(u64::MAX - 16)];

/// Whose durable position is watched.
const WATCHED: RegionId = REGIONS[1];

/// So many ticks at one moment are a loop.
const MANY: usize = 10_000;

impl World {
    /// A world with nothing in its store.
    pub fn new(options: Vec<Options>, keys_per_delete: usize, store: ModelStore) -> World {
        World {
            now: Time::from_millis(1),
            prefix: Prefix::new("log").unwrap_or_else(|error| panic!("{error}")),
            store,
            instances: Vec::new(),
            adrift: Vec::new(),
            late: BTreeSet::new(),
            deleted: 0,
            keys_per_delete,
            planned: Vec::new(),
            options,
            journal: Journal::default(),
            hasher: DefaultHasher::new(),
            effects: 0,
            calls: 0,
            payloads: 0,
        }
    }

    /// Carries out one step.
    ///
    /// # Errors
    ///
    /// A checker was violated.
    pub fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::Open => self.open_if_none(),
            Step::AppendOne(region, size) => {
                self.running()?;
                let (region, payload) = self.entry(*region, *size);
                self.append(Append::One(region, payload))
            }
            Step::Append(entries) => {
                self.running()?;
                let entries = entries.iter().map(|(region, size)| self.entry(*region, *size));
                let entries = entries.collect();
                self.append(Append::Many(entries))
            }
            Step::Flush => {
                let who = self.running()?;
                let waiter = self.journal.flush(who)?;
                self.call(who, Event::Flush { waiter })
            }
            Step::Obsolete(region, target) => {
                let who = self.running()?;
                let (region, _) = self.entry(*region, 0);
                match self.target(who, region, *target) {
                    Some(id) => {
                        let latest = match &self.instances[who].machine {
                            Machine::Writer(writer) => writer.latest(region),
                            Machine::Opening(_) | Machine::Gone => EntryId::ZERO,
                        };
                        let waiter = self.journal.obsolete(who, region, id, latest)?;
                        self.call(who, Event::Obsolete { region, id, waiter })
                    }
                    None => Ok(()),
                }
            }
            Step::Release { region, in_full } => {
                let who = self.running()?;
                let (region, _) = self.entry(*region, 0);
                self.release(who, region, *in_full)
            }
            Step::PlanRead(region) => {
                let who = self.running()?;
                let (region, _) = self.entry(*region, 0);
                self.plan_read(who, region)
            }
            Step::ReadPlanned => self.read_planned(),
            Step::Read => {
                let who = self.running()?;
                let observed = self.read(who)?;
                self.journal.reads(&observed)?;
                self.read_spans(who, &observed)?;
                self.drain(who)
            }
            Step::TakeEffect(pick) => {
                if let Some(instance) = self.instances.last_mut()
                    && !instance.requests.is_empty()
                {
                    let pick = usize::from(*pick) % instance.requests.len();
                    instance.requests[pick].take_effect(&mut self.store);
                }
                self.vanished()
            }
            Step::End(pick, fate) => match self.instances.last() {
                Some(instance) if !instance.requests.is_empty() => {
                    let pick = usize::from(*pick) % instance.requests.len();
                    self.end(self.instances.len() - 1, pick, *fate)
                }
                _ => Ok(()),
            },
            Step::Land(pick) => {
                if let Some(newest) = self.adrift.len().checked_sub(1) {
                    let any = usize::from(*pick) % self.adrift.len();
                    let put = self.adrift.remove(if pick % 2 == 0 { newest } else { any });
                    self.land(&put)?;
                    self.journal.tally.count(Reached::LandedLate);
                }
                Ok(())
            }
            Step::Tick => match self.instances.len().checked_sub(1) {
                Some(who) => self.tick(who),
                None => Ok(()),
            },
            Step::Pass(millis) => {
                let nanos = u64::from(*millis) * 1_000_000;
                self.pass(Time::from_nanos(self.now.as_nanos() + nanos))
            }
            Step::Reads(count) => {
                let is_put =
                    |request: &Request| matches!(request.effect, StorageEffect::PutObject { .. });
                for _ in 0..*count {
                    match self.instances.last() {
                        Some(Instance { requests, .. })
                            if !requests.is_empty() && !requests.iter().any(is_put) =>
                        {
                            self.end(self.instances.len() - 1, 0, Fate::Honest)?;
                        }
                        _ => break,
                    }
                }
                Ok(())
            }
            Step::Echo => match self.instances.len().checked_sub(1) {
                Some(who) => self.echo(who),
                None => Ok(()),
            },
            Step::Calm => match self.instances.len().checked_sub(1) {
                Some(who) => self.calm(who),
                None => Ok(()),
            },
            Step::Crash { abandon } => self.crash(*abandon),
            Step::Stop => self.stop(),
        }
    }

    /// Ends a simulation: whatever happened, with a store that does as it is told the log opens,
    /// holds what it must, takes appends, and stops.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn finish(mut self) -> Checked<Trace> {
        self.crash(false)?;
        for effect in std::mem::take(&mut self.adrift) {
            self.land(&effect)?;
        }
        let retention = Duration::from_secs(60);
        for options in &mut self.options {
            options.fence_retention = retention;
            options.reclaim_interval = Duration::from_secs(1);
        }
        // What one opening finds outside history stands below what the next one recovers, and may go
        // once that is old.
        for _ in 0..2 {
            self.open_if_none()?;
            let who = self.instances.len() - 1;
            self.calm(who)?;
            self.pass(self.now.after(retention + Duration::from_secs(1)))?;
            self.crash(false)?;
        }
        self.open_if_none()?;
        let who = self.instances.len() - 1;
        self.calm(who)?;
        ensure!(
            matches!(self.instances[who].machine, Machine::Writer(_)),
            "with nothing in the way, the log does not open"
        );
        self.appends_to_all(who)?;
        self.step(&Step::Read)?;
        for region in REGIONS {
            self.release(who, region, region == WATCHED)?;
        }
        self.calm(who)?;
        // What is idle sends nothing.
        let effects = self.effects;
        self.pass(self.now.after(Duration::from_secs(1_000_000)))?;
        ensure!(self.effects == effects, "an idle log does something");
        self.journal.is_empty(who, &self.store)?;
        // The records of the last releases go with what follows.
        self.appends_to_all(who)?;
        self.appends_to_all(who)?;
        ensure!(
            REGIONS.iter().all(|region| self.journal.takes_appends(who, *region)),
            "every record was collected, and appends may be refused"
        );
        self.appends_to_all(who)?;
        self.stop()?;
        self.calm(who)?;
        ensure!(self.journal.is_stopped(who), "with nothing in the way, the log does not stop");
        self.running()?;
        let (hash, tally) = (self.hasher.finish(), self.journal.tally.clone());
        Ok(Trace { hash, effects: self.effects, tally })
    }

    /// An append to each region that takes one is acknowledged.
    fn appends_to_all(&mut self, who: usize) -> Checked {
        let acknowledged = |world: &World| world.journal.tally.get(Reached::Acknowledged);
        let before = acknowledged(self);
        let mut expected = 0;
        for (number, region) in (0..).zip(REGIONS) {
            expected += u64::from(self.journal.takes_appends(who, region));
            let (region, payload) = self.entry(number, 100);
            self.append(Append::One(region, payload))?;
        }
        self.calm(who)?;
        ensure!(
            acknowledged(self) >= before + expected,
            "with nothing in the way, appends are not acknowledged"
        );
        Ok(())
    }

    /// The instance that takes calls; one is opened if there is none. What is under way of an
    /// opening, and of a writer that stops, ends well first.
    fn running(&mut self) -> Checked<usize> {
        for _ in 0..MANY {
            self.open_if_none()?;
            let who = self.instances.len() - 1;
            let is_writer = matches!(self.instances[who].machine, Machine::Writer(_));
            if is_writer && !self.journal.is_stopping(who) {
                return Ok(who);
            }
            self.calm(who)?;
        }
        Err(Violation("the log does not open, however often it is tried".into()))
    }

    fn open_if_none(&mut self) -> Checked {
        let runs = self.instances.last().is_some_and(|last| !matches!(last.machine, Machine::Gone));
        if runs {
            return Ok(());
        }
        self.late.clear();
        let who = self.instances.len();
        let options = self.options[who % self.options.len()].clone();
        let identity = Identity {
            nonce: nonce(who),
            opened_at_millis: self.now.as_nanos() / 1_000_000,
            default_name: format!("instance {who}").into(),
        };
        let opening = Opening::new(self.now, self.prefix.clone(), options, identity)
            .map_err(|error| Violation(format!("these options are valid: {error}")))?;
        let machine = Machine::Opening(Box::new(opening));
        self.instances.push(Instance {
            machine,
            requests: Vec::new(),
            told: self.now,
            began: self.now,
            asked: BTreeSet::new(),
            answered: None,
            faults: false,
            damaged: BTreeMap::new(),
        });
        self.drain(who)
    }

    fn call(&mut self, who: usize, event: Event<Waiter>) -> Checked {
        self.calls += 1;
        let early = Time::from_nanos(self.now.as_nanos() / 2);
        let now = if self.calls.is_multiple_of(7) { early } else { self.now };
        let instance = &mut self.instances[who];
        instance.told = instance.told.max(now);
        if let Machine::Writer(writer) = &mut instance.machine {
            writer.handle(now, event);
        }
        self.drain(who)
    }

    fn tick(&mut self, who: usize) -> Checked {
        let instance = &mut self.instances[who];
        instance.told = self.now;
        match &mut instance.machine {
            Machine::Opening(opening) => opening.handle(self.now, OpeningEvent::Tick),
            Machine::Writer(writer) => writer.handle(self.now, Event::Tick),
            Machine::Gone => {}
        }
        self.drain(who)
    }

    fn answer(&mut self, who: usize, answer: StorageAnswer) -> Checked {
        let instance = &mut self.instances[who];
        instance.told = self.now;
        match &mut instance.machine {
            Machine::Opening(opening) => opening.handle(self.now, OpeningEvent::Storage(answer)),
            Machine::Writer(writer) => {
                if let StorageAnswer::DeleteResult { results, .. } = &answer {
                    self.journal.deletes_answered(who, results)?;
                }
                writer.handle(self.now, Event::Storage(answer));
            }
            Machine::Gone => {}
        }
        self.drain(who)
    }

    /// An answer that nobody waits for changes nothing.
    fn echo(&mut self, who: usize) -> Checked {
        let Some(answer) = self.instances[who].answered.clone() else { return Ok(()) };
        // What time alone brings comes with a tick.
        if self.next_tick(who).is_some_and(|at| at <= self.now) {
            self.tick(who)?;
        }
        let effects = self.effects;
        self.answer(who, answer)?;
        ensure!(self.effects == effects, "an answer that came twice had an effect");
        Ok(())
    }

    /// A request lands that nobody waits for.
    fn land(&mut self, effect: &StorageEffect) -> Checked {
        if matches!(effect, StorageEffect::PutObject { .. }) {
            self.late.insert(effect.key().clone());
        }
        self.store.apply(effect);
        self.vanished()
    }

    /// What the store lost since it was looked at last was not needed.
    fn vanished(&mut self) -> Checked {
        if self.store.deleted() == self.deleted {
            return Ok(());
        }
        self.deleted = self.store.deleted();
        self.journal.objects_vanished(&self.store)
    }

    fn end(&mut self, who: usize, pick: usize, fate: Fate) -> Checked {
        let instance = &mut self.instances[who];
        let request = instance.requests.remove(pick);
        instance.faults |= fate != Fate::Honest;
        if fate == Fate::Damaged {
            *instance.damaged.entry(request.effect.key().clone()).or_default() += 1;
        }
        let (answer, late) = request.end(&mut self.store, fate);
        self.adrift.extend(late);
        self.vanished()?;
        self.instances[who].answered = Some(answer.clone());
        self.answer(who, answer)
    }

    fn set_now(&mut self, now: Time) {
        self.now = now;
        self.store.set_now(now);
    }

    /// Time passes. Requests time out, and ticks come, at their moments.
    fn pass(&mut self, until: Time) -> Checked {
        let Some(who) = self.instances.len().checked_sub(1) else {
            self.set_now(until);
            return Ok(());
        };
        for _ in 0..MANY {
            let requests = self.instances[who].requests.iter().enumerate();
            let first = requests.min_by_key(|(_, request)| request.deadline);
            let timeout = first.map(|(pick, request)| (request.deadline, pick));
            let tick = self.next_tick(who);
            match (timeout, tick) {
                (Some((at, pick)), _) if at <= until && tick.is_none_or(|tick| at <= tick) => {
                    self.set_now(self.now.max(at));
                    self.end(who, pick, Fate::Late(Failure::TimedOut))?;
                }
                (_, Some(at)) if at <= until => {
                    self.set_now(self.now.max(at));
                    self.tick(who)?;
                }
                _ => {
                    self.set_now(until);
                    return Ok(());
                }
            }
        }
        Err(Violation("a tick is wanted again and again".into()))
    }

    /// Everything under way ends well, oldest first, until nothing is left to do.
    fn calm(&mut self, who: usize) -> Checked {
        for _ in 0..MANY {
            if !self.instances[who].requests.is_empty() {
                self.end(who, 0, Fate::Honest)?;
            } else if let Some(at) = self.next_tick(who) {
                self.pass(self.now.max(at))?;
            } else {
                return match self.instances[who].machine {
                    Machine::Opening(_) => Err(Violation("the opening hangs".into())),
                    Machine::Writer(ref writer) => {
                        self.journal.at_rest(who)?;
                        let stats = writer.stats();
                        let (bytes, creates) = (stats.unpersisted_bytes, stats.in_flight_creates);
                        ensure!(
                            bytes == 0 && creates == 0,
                            "at rest, with {bytes} bytes and {creates} creates on their way"
                        );
                        self.journal.all_reclaimed(who, &self.store, &self.late)?;
                        self.end_if_stopped(who);
                        Ok(())
                    }
                    Machine::Gone => Ok(()),
                };
            }
        }
        Err(Violation("a store that does as it is told does not bring it to rest".into()))
    }

    fn next_tick(&self, who: usize) -> Option<Time> {
        match &self.instances[who].machine {
            Machine::Opening(opening) => opening.next_tick(),
            Machine::Writer(writer) => writer.next_tick(),
            Machine::Gone => None,
        }
    }

    fn end_if_stopped(&mut self, who: usize) {
        if self.journal.is_stopped(who) {
            self.journal.end(who);
            self.instances[who].machine = Machine::Gone;
        }
    }

    fn crash(&mut self, abandon: bool) -> Checked {
        let Some(who) = self.instances.len().checked_sub(1) else { return Ok(()) };
        if let Machine::Writer(writer) = &mut self.instances[who].machine
            && abandon
        {
            self.journal.abandon(who)?;
            writer.abandon();
            self.drain(who)?;
            self.journal.at_rest(who)?;
        }
        self.journal.end(who);
        let instance = &mut self.instances[who];
        instance.machine = Machine::Gone;
        self.planned.clear();
        let puts = std::mem::take(&mut instance.requests).into_iter().filter_map(Request::abandon);
        self.adrift.extend(puts);
        Ok(())
    }
}

fn nonce(who: usize) -> [u8; 16] {
    (who as u128).to_be_bytes()
}

fn is_start_object_of(bytes: &Bytes, who: usize) -> bool {
    let content = Object::decode(bytes).and_then(|object| object.reserved(RegionId::WRITER));
    matches!(content, Ok(Some(ReservedContent::Writer(record))) if record.nonce == nonce(who))
}
