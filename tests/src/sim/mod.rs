//! A simulation of logs over a model store, under virtual time.
//!
//! - [`plan`]: what happens, as data: calls, the order and the outcome of every request, crashes.
//! - [`model`](crate::model): the store.
//! - [`journal`], [`history`]: the checkers, with a model of the log of their own.
//! - here: the world, which carries the plan out.
//!
//! The same plan always gives the same trace.

pub mod history;
pub mod journal;
pub mod plan;
mod reader;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use sealog_core::event::{Append, Effect, Event, StorageAnswer, StorageEffect};
use sealog_core::format::{Object, ReservedContent};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{
    EntryId, Error, Key, ObjectSeq, Options, Prefix, RegionId, RequestId, Time, Writer,
};

pub use journal::{Checked, Violation, Waiter};
use journal::{Journal, ensure};
use plan::{Plan, Step, Target};
use reader::Span;
pub use tally::{Reached, Tally};

use crate::model::{Failure, Fate, Lie, ModelStore, Request};

/// What a simulation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Of every effect, in order.
    pub hash: u64,
    /// How many effects.
    pub effects: u64,
    /// What was reached.
    pub tally: Tally,
}

/// Carries a plan out, in a world whose store keeps its promises.
///
/// # Errors
///
/// A checker, or an invariant of a machine, was violated: what, and at which step.
pub fn run(plan: &Plan) -> Checked<Trace> {
    run_with(plan, ModelStore::new())
}

/// Carries a plan out in a world whose store lies. The checkers should see it.
///
/// # Errors
///
/// They did.
pub fn run_lying(plan: &Plan, lie: Lie) -> Checked<Trace> {
    run_with(plan, ModelStore::lying(lie))
}

fn run_with(plan: &Plan, store: ModelStore) -> Checked<Trace> {
    let mut at = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan.options.clone(), store);
        for (number, step) in plan.steps.iter().enumerate() {
            at = Some(number);
            world.step(step)?;
        }
        at = None;
        world.finish()
    }));
    let violated = match outcome {
        Ok(Ok(trace)) => return Ok(trace),
        Ok(Err(Violation(said))) => said,
        // An invariant that a machine checks itself.
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(said), _) => said.clone(),
            (None, Some(said)) => (*said).into(),
            (None, None) => "a panic without a message".into(),
        },
    };
    let place = at.map_or("at the end".into(), |at| format!("at step {at}, {:?}", plan.steps[at]));
    Err(Violation(format!("{place}: {violated}")))
}

/// A store, the instances that used and use it, and a clock.
#[derive(Debug)]
pub struct World {
    now: Time,
    prefix: Prefix,
    store: ModelStore,
    /// All that ever were; the ones before the last are gone.
    instances: Vec<Instance>,
    /// Puts that nobody waits for any more, and that may still land.
    adrift: Vec<StorageEffect>,
    options: Vec<Options>,
    journal: Journal,
    hasher: DefaultHasher,
    effects: u64,
    /// How many payloads were made.
    payloads: u64,
}

#[derive(Debug)]
struct Instance {
    machine: Machine,
    /// What is under way, in the order in which it was asked for.
    requests: Vec<Request>,
    /// What it asked for so far: no two requests are named alike.
    asked: BTreeSet<RequestId>,
    /// The answer that arrived last.
    answered: Option<StorageAnswer>,
    /// A request of its opening ended badly, so the opening may fail.
    faults: bool,
    /// A fetch of its opening arrived damaged.
    damage: bool,
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
    pub fn new(options: Vec<Options>, store: ModelStore) -> World {
        World {
            now: Time::from_millis(1),
            prefix: Prefix::new("log").unwrap_or_else(|error| panic!("{error}")),
            store,
            instances: Vec::new(),
            adrift: Vec::new(),
            options,
            journal: Journal::default(),
            hasher: DefaultHasher::new(),
            effects: 0,
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
                        let waiter = self.journal.obsolete(who, region, id)?;
                        self.call(who, Event::Obsolete { region, id, waiter })
                    }
                    None => Ok(()),
                }
            }
            Step::Read => {
                let who = self.running()?;
                let observed = self.read(who)?;
                self.journal.reads(&observed)?;
                self.read_spans(who, &observed)
            }
            Step::TakeEffect(pick) => {
                if let Some(instance) = self.instances.last_mut()
                    && !instance.requests.is_empty()
                {
                    let pick = usize::from(*pick) % instance.requests.len();
                    instance.requests[pick].take_effect(&mut self.store);
                }
                Ok(())
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
                    self.store.apply(&put);
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
        for put in std::mem::take(&mut self.adrift) {
            self.store.apply(&put);
        }
        self.open_if_none()?;
        let who = self.instances.len() - 1;
        self.calm(who)?;
        ensure!(
            matches!(self.instances[who].machine, Machine::Writer(_)),
            "with nothing in the way, the log does not open"
        );
        for region in 0..REGIONS.len() as u8 {
            let (region, payload) = self.entry(region, 100);
            self.append(Append::One(region, payload))?;
        }
        let acknowledged = |world: &World| world.journal.tally.get(Reached::Acknowledged);
        let before = acknowledged(&self);
        self.calm(who)?;
        ensure!(
            acknowledged(&self) == before + REGIONS.len() as u64,
            "with nothing in the way, appends are not acknowledged"
        );
        self.step(&Step::Read)?;
        self.stop()?;
        self.calm(who)?;
        ensure!(self.journal.is_stopped(who), "with nothing in the way, the log does not stop");
        self.running()?;
        let (hash, tally) = (self.hasher.finish(), self.journal.tally.clone());
        Ok(Trace { hash, effects: self.effects, tally })
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
            asked: BTreeSet::new(),
            answered: None,
            faults: false,
            damage: false,
        });
        self.drain(who)
    }

    fn append(&mut self, append: Append) -> Checked {
        let who = self.instances.len() - 1;
        let accepts = match &self.instances[who].machine {
            Machine::Writer(writer) => writer.accepts_appends(),
            Machine::Opening(_) | Machine::Gone => true,
        };
        let waiter = self.journal.append(who, &append)?;
        self.call(who, Event::Append { append, waiter })?;
        let queued = self.journal.is_queueing(who);
        ensure!(!(accepts && queued), "appends were said to be accepted, and one was queued");
        Ok(())
    }

    fn call(&mut self, who: usize, event: Event<Waiter>) -> Checked {
        if let Machine::Writer(writer) = &mut self.instances[who].machine {
            writer.handle(self.now, event);
        }
        self.drain(who)
    }

    fn tick(&mut self, who: usize) -> Checked {
        match &mut self.instances[who].machine {
            Machine::Opening(opening) => opening.handle(self.now, OpeningEvent::Tick),
            Machine::Writer(writer) => writer.handle(self.now, Event::Tick),
            Machine::Gone => {}
        }
        self.drain(who)
    }

    fn answer(&mut self, who: usize, now: Time, answer: StorageAnswer) -> Checked {
        match &mut self.instances[who].machine {
            Machine::Opening(opening) => opening.handle(now, OpeningEvent::Storage(answer)),
            Machine::Writer(writer) => writer.handle(now, Event::Storage(answer)),
            Machine::Gone => {}
        }
        self.drain(who)
    }

    /// An answer that nobody waits for, by a clock that goes wrong, changes nothing.
    fn echo(&mut self, who: usize) -> Checked {
        let Some(answer) = self.instances[who].answered.clone() else { return Ok(()) };
        let effects = self.effects;
        self.answer(who, Time::ZERO, answer)?;
        ensure!(self.effects == effects, "an answer that came twice had an effect");
        Ok(())
    }

    fn end(&mut self, who: usize, pick: usize, fate: Fate) -> Checked {
        let instance = &mut self.instances[who];
        let request = instance.requests.remove(pick);
        instance.faults |= fate != Fate::Honest;
        instance.damage |= fate == Fate::Damaged;
        let (answer, late) = request.end(&mut self.store, fate);
        self.adrift.extend(late);
        self.instances[who].answered = Some(answer.clone());
        self.answer(who, self.now, answer)
    }

    /// Time passes. Requests time out, and ticks come, at their moments.
    fn pass(&mut self, until: Time) -> Checked {
        let Some(who) = self.instances.len().checked_sub(1) else {
            self.now = until;
            return Ok(());
        };
        for _ in 0..MANY {
            let requests = self.instances[who].requests.iter().enumerate();
            let first = requests.min_by_key(|(_, request)| request.deadline);
            let timeout = first.map(|(pick, request)| (request.deadline, pick));
            let tick = self.next_tick(who);
            match (timeout, tick) {
                (Some((at, pick)), _) if at <= until && tick.is_none_or(|tick| at <= tick) => {
                    self.now = self.now.max(at);
                    self.end(who, pick, Fate::Late(Failure::TimedOut))?;
                }
                (_, Some(at)) if at <= until => {
                    self.now = self.now.max(at);
                    self.tick(who)?;
                }
                _ => {
                    self.now = until;
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

    fn stop(&mut self) -> Checked {
        let who = self.running()?;
        let waiter = self.journal.stop(who)?;
        self.call(who, Event::Stop { waiter })?;
        // Whatever is called from now on fails, but for another stop.
        let (region, payload) = self.entry(0, 10);
        self.append(Append::One(region, payload))?;
        let waiter = self.journal.flush(who)?;
        self.call(who, Event::Flush { waiter })?;
        let waiter = self.journal.stop(who)?;
        self.call(who, Event::Stop { waiter })
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
        let puts = std::mem::take(&mut instance.requests).into_iter().filter_map(Request::abandon);
        self.adrift.extend(puts);
        Ok(())
    }

    /// Takes what a machine wants, to dry, and checks all of it.
    fn drain(&mut self, who: usize) -> Checked {
        match &self.instances[who].machine {
            Machine::Opening(_) => self.drain_opening(who),
            Machine::Writer(_) => self.drain_writer(who),
            Machine::Gone => Ok(()),
        }
    }

    fn drain_opening(&mut self, who: usize) -> Checked {
        loop {
            let Machine::Opening(opening) = &mut self.instances[who].machine else {
                return Ok(());
            };
            let Some(effect) = opening.poll_effect() else { return Ok(()) };
            match effect {
                OpeningEffect::Storage(effect) => self.request(who, effect)?,
                OpeningEffect::Notice(notice) => self.trace(&notice),
                OpeningEffect::Opened(recovered) => {
                    self.trace(&recovered.start);
                    let (start, options) = (recovered.start, recovered.options.clone());
                    let writer = Writer::new(self.now, *recovered);
                    self.instances[who].machine = Machine::Writer(Box::new(writer));
                    let observed = self.read(who)?;
                    self.journal.opened(&observed)?;
                    self.journal.begin(who, start, &options)?;
                    self.call(who, Event::Watch { region: WATCHED })?;
                }
                OpeningEffect::Failed(error) => {
                    self.trace(&error);
                    self.not_opened(who, &error)?;
                }
            }
        }
    }

    fn not_opened(&mut self, who: usize, error: &Error) -> Checked {
        let instance = &self.instances[who];
        self.journal.tally.count(Reached::NotOpened);
        let excused = match error {
            Error::Store { .. } => instance.faults,
            Error::Contended { key, .. } => {
                self.journal.tally.count(Reached::Contended);
                self.store.get(key).is_some_and(|bytes| !is_start_object_of(bytes, who))
            }
            Error::Corrupted { .. } => instance.damage,
            _ => false,
        };
        ensure!(excused, "the log does not open: {error}");
        self.crash(false)
    }

    fn drain_writer(&mut self, who: usize) -> Checked {
        let stopped_before = self.journal.is_stopped(who);
        loop {
            let Machine::Writer(writer) = &mut self.instances[who].machine else { return Ok(()) };
            let Some(effect) = writer.poll_effect() else { break };
            match effect {
                Effect::Storage(effect) => {
                    ensure!(!stopped_before, "after stop: {effect:?}");
                    if let StorageEffect::PutObject { key, payload, .. } = &effect {
                        self.journal.put(who, self.now, key, payload)?;
                    }
                    self.request(who, effect)?;
                }
                Effect::Ack { waiter, answer } => {
                    self.trace(&(waiter, &answer));
                    self.journal.ack(waiter, &answer, &self.store)?;
                }
                Effect::FailWaiters { waiters, error, outcome } => {
                    self.trace(&(&waiters, &error, outcome));
                    self.journal.fail(&waiters, &error, outcome)?;
                }
                Effect::Durable { region, id } => {
                    self.trace(&(region, id));
                    self.journal.told(who, region, id)?;
                }
                Effect::Notice(notice) => {
                    self.trace(&notice);
                    self.journal.notice(who, self.now, &notice, &self.store)?;
                }
            }
        }
        let instance = &self.instances[who];
        let Machine::Writer(writer) = &instance.machine else { return Ok(()) };
        writer.check();
        self.journal.after_event(who, &writer.stats(), instance.requests.len())?;
        for region in REGIONS {
            let (durable, latest) = (writer.durable(region), writer.latest(region));
            let expected = self.journal.durable(region);
            ensure!(durable == expected, "region {region}: {durable} is durable, not {expected}");
            ensure!(latest >= durable, "region {region}: latest {latest} below {durable}");
        }
        if self.journal.is_stopped(who) {
            ensure!(writer.is_stopped(), "stop was answered, and the writer goes on");
            ensure!(writer.next_tick().is_none(), "a stopped writer wants a tick");
            ensure!(instance.requests.is_empty(), "stopped, with requests under way");
        }
        Ok(())
    }

    fn request(&mut self, who: usize, effect: StorageEffect) -> Checked {
        self.trace_storage(&effect);
        let instance = &mut self.instances[who];
        ensure!(instance.asked.insert(effect.id()), "{:?} names two requests", effect.id());
        instance.requests.push(Request::new(self.now, effect));
        Ok(())
    }

    fn read(&mut self, who: usize) -> Checked<history::Observed> {
        let Machine::Writer(writer) = &mut self.instances[who].machine else {
            return Err(Violation("nobody is there to read".into()));
        };
        reader::read_all(writer, &mut self.store, self.now, REGIONS)
    }

    /// Reads the middle of each region: exactly what was read of it before.
    fn read_spans(&mut self, who: usize, observed: &history::Observed) -> Checked {
        let Machine::Writer(writer) = &mut self.instances[who].machine else { return Ok(()) };
        for (region, entries) in observed {
            let middle = entries.len() / 3..(2 * entries.len()).div_ceil(3);
            let (from, through) = (entries[middle.start].id, entries[middle.end - 1].id);
            let span = Span { from, through: Some(through) };
            let read = reader::read_region(writer, &mut self.store, self.now, *region, span)?;
            ensure!(
                read == entries[middle],
                "region {region} from {from} through {through}: {read:?}"
            );
        }
        Ok(())
    }

    /// An entry as a plan names it: no two payloads of 8 bytes or more are alike.
    fn entry(&mut self, region: u8, size: u32) -> (RegionId, Bytes) {
        self.payloads += 1;
        let mut payload = vec![self.payloads as u8; size as usize];
        let name = self.payloads.to_le_bytes();
        let named = name.len().min(payload.len());
        payload[..named].copy_from_slice(&name[..named]);
        // One number in 256 stands for a region that callers may not use.
        let region = match region {
            u8::MAX => RegionId::FIRST_RESERVED,
            region => REGIONS[usize::from(region) % REGIONS.len()],
        };
        (region, payload.into())
    }

    fn target(&self, who: usize, region: RegionId, target: Target) -> Option<EntryId> {
        let Machine::Writer(writer) = &self.instances[who].machine else { return None };
        match target {
            Target::Back(back) => self.journal.acknowledged(region, usize::from(back)),
            Target::Latest => Some(writer.latest(region)),
            Target::Beyond(by) => {
                let last = REGIONS.iter().map(|region| writer.latest(*region).sequence()).max();
                let last = last.unwrap_or_default().max(self.journal.last_put(who));
                EntryId::new(ObjectSeq(last.0 + u64::from(by)), 3)
            }
            Target::Max => Some(EntryId::MAX),
        }
    }

    fn trace(&mut self, effect: &impl Debug) {
        self.effects += 1;
        format!("{effect:?}").hash(&mut self.hasher);
    }

    /// As [`trace`](World::trace); the bytes of a put are hashed as they are.
    fn trace_storage(&mut self, effect: &StorageEffect) {
        match effect {
            StorageEffect::PutObject { id, key, payload, time_limit } => {
                let key: &Key = key;
                self.trace(&(id, key, time_limit));
                payload.hash(&mut self.hasher);
            }
            effect => self.trace(effect),
        }
    }
}

fn nonce(who: usize) -> [u8; 16] {
    (who as u128).to_be_bytes()
}

fn is_start_object_of(bytes: &Bytes, who: usize) -> bool {
    let content = Object::decode(bytes).and_then(|object| object.reserved(RegionId::WRITER));
    matches!(content, Ok(Some(ReservedContent::Writer(record))) if record.nonce == nonce(who))
}
