//! A whole log on the store in memory: an opening, and the writer that comes of it.

use super::*;
use crate::event::{Append, Effect, Event};
use crate::types::{EntryId, RegionId};
use crate::writer::Writer;

/// Whatever is asked of the store is carried out at once, so that each call ends before the next.
pub(super) struct Session {
    pub(super) writer: Writer<u32>,
    pub(super) store: Store,
    pub(super) now: Time,
    /// What was deleted, in order.
    pub(super) deleted: Vec<u64>,
    open: fn(Options, Store) -> Run,
}

pub(super) fn at_once() -> Options {
    Options { linger: Duration::ZERO, flush_interval: Duration::ZERO, ..Options::default() }
}

impl Session {
    /// Nothing is left standing for older writers, so that all that is not needed goes.
    pub(super) fn open(store: Store) -> Session {
        Session::open_by(open_keeping_nothing, at_once(), store)
    }

    pub(super) fn open_with(options: Options, store: Store) -> Session {
        Session::open_by(open_with, options, store)
    }

    fn open_by(open: fn(Options, Store) -> Run, options: Options, store: Store) -> Session {
        let run = open(options, store);
        let (now, deleted) = (Time::ZERO, Vec::new());
        let writer = Writer::new(now, run.opened().clone());
        let mut session = Session { writer, store: run.store, now, deleted, open };
        session.drain();
        session
    }

    /// The process ends, and another opens what is there.
    pub(super) fn crash(self) -> Session {
        let options = self.writer.options().clone();
        Session::open_by(self.open, options, self.store)
    }

    /// Whether the call was acknowledged.
    pub(super) fn call(&mut self, event: Event<u32>) -> bool {
        self.writer.handle(self.now, event);
        let acknowledged = self.drain();
        self.writer.check();
        acknowledged
    }

    pub(super) fn append(&mut self, region: u64) -> bool {
        let payload = Bytes::from_static(b"entry");
        self.call(Event::Append { append: Append::One(RegionId(region), payload), waiter: 0 })
    }

    pub(super) fn append_many(&mut self, regions: &[u64]) -> bool {
        let entry = |region: &u64| (RegionId(*region), Bytes::from_static(b"entry"));
        let append = Append::Many(regions.iter().map(entry).collect());
        self.call(Event::Append { append, waiter: 0 })
    }

    pub(super) fn release(&mut self, region: u64) -> bool {
        self.call(Event::Release { region: RegionId(region), waiter: 0 })
    }

    pub(super) fn release_all(&mut self, region: u64) -> bool {
        self.call(Event::ReleaseAll { region: RegionId(region), waiter: 0 })
    }

    pub(super) fn obsolete(&mut self, region: u64) -> bool {
        let region = RegionId(region);
        let id = self.writer.durable(region);
        self.call(Event::Obsolete { region, id, waiter: 0 })
    }

    /// The objects that a read of a region would fetch something of.
    pub(super) fn visible(&self, region: u64) -> Vec<u64> {
        let plan = self.writer.plan_read(RegionId(region), EntryId::ZERO, None, 100).unwrap();
        plan.segments.iter().map(|planned| planned.segment.object.sequence.0).collect()
    }

    /// The sequences that are there.
    pub(super) fn stored(&self) -> Vec<u64> {
        let sequence = |key: &Key| match prefix().classify(key) {
            KeyKind::Object(sequence) => Some(sequence.0),
            KeyKind::OutOfRange | KeyKind::Foreign => None,
        };
        self.store.objects.keys().filter_map(sequence).collect()
    }

    fn drain(&mut self) -> bool {
        let mut acknowledged = false;
        loop {
            while let Some(effect) = self.writer.poll_effect() {
                match effect {
                    Effect::Storage(StorageEffect::DeleteObjects { id, keys, .. }) => {
                        for key in keys.iter() {
                            if self.store.objects.remove(key).is_some()
                                && let KeyKind::Object(sequence) = prefix().classify(key)
                            {
                                self.deleted.push(sequence.0);
                            }
                        }
                        let results = keys.iter().map(|key| (key.clone(), Ok(()))).collect();
                        let answer = StorageAnswer::DeleteResult { id, results };
                        self.writer.handle(self.now, Event::Storage(answer));
                    }
                    Effect::Storage(effect) => {
                        let answer = self.store.answer(&effect);
                        self.writer.handle(self.now, Event::Storage(answer));
                    }
                    Effect::Ack { .. } => acknowledged = true,
                    Effect::FailWaiters { .. } | Effect::Durable { .. } | Effect::Notice(_) => {}
                }
            }
            if self.writer.next_tick().is_none_or(|at| at > self.now) {
                return acknowledged;
            }
            self.writer.handle(self.now, Event::Tick);
        }
    }
}
