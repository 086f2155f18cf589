//! What machines want of the world; all of it is checked on its way.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use sealog_core::event::{Effect, Event, StorageEffect};
use sealog_core::opening::OpeningEffect;
use sealog_core::{Error, Key, Writer};

use super::{Machine, REGIONS, WATCHED, World, is_start_object_of};
use crate::model::Request;
use crate::sim::journal::{Checked, ensure};
use crate::sim::tally::Reached;

impl World {
    /// Takes what a machine wants, to dry, and checks all of it.
    pub(super) fn drain(&mut self, who: usize) -> Checked {
        match &self.instances[who].machine {
            Machine::Opening(_) => self.drain_opening(who),
            Machine::Writer(_) => self.drain_writer(who),
            Machine::Gone => Ok(()),
        }
    }

    pub(super) fn drain_opening(&mut self, who: usize) -> Checked {
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
                    self.instances[who].told = self.now;
                    self.instances[who].machine = Machine::Writer(Box::new(writer));
                    if let Machine::Writer(writer) = &mut self.instances[who].machine {
                        writer.set_keys_per_delete(self.keys_per_delete);
                    }
                    let observed = self.read(who)?;
                    self.journal.recover(start, &self.store)?;
                    self.journal.opened(&observed)?;
                    self.journal.recovered(&observed)?;
                    self.journal.begin(who, self.now, start, &options)?;
                    self.call(who, Event::Watch { region: WATCHED })?;
                }
                OpeningEffect::Failed(error) => {
                    self.trace(&error);
                    self.not_opened(who, &error)?;
                }
            }
        }
    }

    pub(super) fn not_opened(&mut self, who: usize, error: &Error) -> Checked {
        let instance = &self.instances[who];
        self.journal.tally.count(Reached::NotOpened);
        let excused = match error {
            Error::Store { .. } => instance.faults,
            // By an object of its own only after an answer was lost.
            Error::Contended { key, .. } => {
                self.journal.tally.count(Reached::Contended);
                let found = self.store.get(key);
                // What landed late may be deleted by now, and so may what came after.
                instance.faults || found.is_none_or(|bytes| !is_start_object_of(bytes, who))
            }
            // What does not verify is fetched once more.
            // And what was listed may have been deleted since, and another object have landed there.
            Error::Corrupted { key, .. } => {
                instance.damaged.get(key).is_some_and(|n| *n > 1)
                    || self.late.contains(key)
                        && self.store.modified(key).is_some_and(|at| at >= instance.began)
            }
            _ => false,
        };
        ensure!(excused, "the log does not open: {error}");
        self.crash(false)
    }

    pub(super) fn drain_writer(&mut self, who: usize) -> Checked {
        let told = self.instances[who].told;
        let stopped_before = self.journal.is_stopped(who);
        if let Machine::Writer(writer) = &self.instances[who].machine {
            let indexed = writer.stats().created_objects_total;
            self.journal.index_more(who, indexed, &self.store)?;
        }
        loop {
            let Machine::Writer(writer) = &mut self.instances[who].machine else { return Ok(()) };
            let Some(effect) = writer.poll_effect() else { break };
            match effect {
                Effect::Storage(effect) => {
                    ensure!(!stopped_before, "after stop: {effect:?}");
                    if let StorageEffect::PutObject { key, payload, .. } = &effect {
                        self.journal.put(who, told, key, payload)?;
                    }
                    if let StorageEffect::DeleteObjects { keys, .. } = &effect {
                        ensure!(keys.len() <= self.keys_per_delete, "{} keys at once", keys.len());
                        self.journal.asks_to_delete(who, keys, &self.store, &self.late)?;
                        self.not_being_created(who, keys)?;
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
                    self.journal.notice(who, told, &notice, &self.store)?;
                }
            }
        }
        let instance = &self.instances[who];
        let Machine::Writer(writer) = &instance.machine else { return Ok(()) };
        writer.check();
        // A guard may look at a key while its create is under way: that is one.
        let creates = instance.requests.iter().filter_map(|request| match &request.effect {
            StorageEffect::PutObject { key, .. } => Some(key),
            StorageEffect::ReadBack { key, .. } => {
                self.journal.is_creating(who, key).then_some(key)
            }
            StorageEffect::List { .. }
            | StorageEffect::FetchRange { .. }
            | StorageEffect::DeleteObjects { .. } => None,
        });
        let creates = creates.collect::<BTreeSet<_>>().len();
        self.journal.after_event(who, &writer.stats(), creates)?;
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

    /// Nothing is deleted while it is still being created.
    fn not_being_created(&self, who: usize, keys: &[Key]) -> Checked {
        let effects = self.instances[who].requests.iter().map(|request| &request.effect);
        let creates = effects.filter(|effect| matches!(effect, StorageEffect::PutObject { .. }));
        let creates = creates.map(StorageEffect::key);
        for key in creates {
            ensure!(!keys.contains(key), "{key} is being created, and is to be deleted");
        }
        Ok(())
    }

    pub(super) fn request(&mut self, who: usize, effect: StorageEffect) -> Checked {
        self.trace_storage(&effect);
        let instance = &mut self.instances[who];
        ensure!(instance.asked.insert(effect.id()), "{:?} names two requests", effect.id());
        instance.requests.push(Request::new(self.now, effect));
        Ok(())
    }

    pub(super) fn trace(&mut self, effect: &impl Debug) {
        self.effects += 1;
        format!("{effect:?}").hash(&mut self.hasher);
    }

    /// As [`trace`](World::trace); the bytes of a put are hashed as they are.
    pub(super) fn trace_storage(&mut self, effect: &StorageEffect) {
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
