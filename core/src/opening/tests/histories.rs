//! Random histories of a log: appends, releases, obsoletes, requests that fail in every way, stops,
//! crashes and openings (DESIGN.md section 13). A model that knows nothing of the code says what
//! must be there still, what must never be seen again, and what must be gone at the end.

use std::string::{String, ToString};
use std::vec;

use proptest::prelude::*;

use super::session::at_once;
use super::*;
use crate::error::Outcome;
use crate::event::{Answer, Append, Effect, Event};
use crate::format::Object;
use crate::options::AckMode;
use crate::types::{EntryId, RegionId};
use crate::writer::Writer;

const REGIONS: u64 = 3;

#[derive(Clone, Debug)]
enum Step {
    /// Of the regions whose bit is set.
    Append(u8),
    /// In full or not.
    Release(u64, bool),
    Obsolete(u64),
    /// A request is answered: which, and how.
    Answer(usize, u8),
    Tick(u64),
    /// A create that failed long ago lands, if its key is free.
    Late(usize),
    /// The process ends. What was under way lands, or not, or later.
    Crash(u8),
    Stop,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..8u8).prop_map(Step::Append),
        4 => (0..REGIONS, prop::bool::weighted(0.2))
            .prop_map(|(region, in_full)| Step::Release(region, in_full)),
        2 => (0..REGIONS).prop_map(Step::Obsolete),
        16 => (any::<usize>(), any::<u8>()).prop_map(|(which, how)| Step::Answer(which, how)),
        3 => prop_oneof![Just(100u64), Just(1_000), Just(60_000)].prop_map(Step::Tick),
        1 => any::<usize>().prop_map(Step::Late),
        1 => any::<u8>().prop_map(Step::Crash),
        1 => Just(Step::Stop),
    ]
}

/// What is known of one region.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What this instance recovered last, and the ids in objects that it put.
    put: BTreeSet<EntryId>,
    acknowledged: BTreeSet<EntryId>,
    /// Through this id a release holds in every later history.
    released: EntryId,
    /// Through this id something was asked to be hidden.
    may_hide: EntryId,
    /// A release failed through this id. It holds once an entry behind this sequence is durable.
    owed: Option<(EntryId, u64)>,
}

enum Called {
    Append,
    /// Of a region, through the largest id handed out.
    Release(u64, EntryId),
    Other,
    Stop,
}

struct World {
    options: Options,
    open: fn(Options, Store) -> Run,
    writer: Writer<u32>,
    now: Time,
    store: Store,
    requests: Vec<StorageEffect>,
    late: Vec<(Key, Bytes)>,
    calls: Vec<Called>,
    known: Vec<Known>,
    /// What this instance put where.
    objects: BTreeMap<u64, Vec<(u64, EntryId)>>,
    largest_put: u64,
}

impl World {
    fn new(options: Options, open: fn(Options, Store) -> Run) -> World {
        let run = open(options.clone(), Store::default());
        World {
            options,
            open,
            writer: Writer::new(Time::ZERO, run.opened().clone()),
            now: Time::ZERO,
            store: run.store,
            requests: Vec::new(),
            late: Vec::new(),
            calls: Vec::new(),
            known: vec![Known::default(); REGIONS as usize],
            objects: BTreeMap::new(),
            largest_put: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(regions) => {
                let wanted = (0..REGIONS).filter(|region| regions >> region & 1 == 1);
                let entry = |region| (RegionId(region), Bytes::from_static(b"x"));
                let append = Append::Many(wanted.map(entry).collect());
                let waiter = self.call(Called::Append);
                self.handle(Event::Append { append, waiter });
            }
            Step::Release(region, in_full) => {
                // In full it hides the same: nothing more of the region comes behind it.
                let put = self.known[*region as usize].put.last().copied().unwrap_or_default();
                let handed = self.writer.latest(RegionId(*region)).max(put);
                let waiter = self.call(Called::Release(*region, handed));
                let region = RegionId(*region);
                self.handle(match in_full {
                    true => Event::ReleaseAll { region, waiter },
                    false => Event::Release { region, waiter },
                });
            }
            Step::Obsolete(region) => {
                let id = self.writer.durable(RegionId(*region));
                let known = &mut self.known[*region as usize];
                known.may_hide = known.may_hide.max(id);
                let waiter = self.call(Called::Other);
                self.handle(Event::Obsolete { region: RegionId(*region), id, waiter });
            }
            Step::Answer(which, how) if !self.requests.is_empty() => {
                let effect = self.requests.remove(which % self.requests.len());
                self.answer(&effect, *how);
            }
            Step::Answer(..) => {}
            Step::Tick(millis) => {
                self.now = self.now.after(Duration::from_millis(*millis));
                self.handle(Event::Tick);
            }
            Step::Late(which) if !self.late.is_empty() => {
                let (key, bytes) = self.late.remove(which % self.late.len());
                self.store.objects.entry(key).or_insert(bytes);
            }
            Step::Late(_) => {}
            Step::Crash(how) => self.crash(*how),
            Step::Stop => {
                let waiter = self.call(Called::Stop);
                self.handle(Event::Stop { waiter });
            }
        }
        self.see();
    }

    fn call(&mut self, called: Called) -> u32 {
        self.calls.push(called);
        self.calls.len() as u32 - 1
    }

    fn answer(&mut self, effect: &StorageEffect, how: u8) {
        let failed = |kind| effect.failed(StoreError::new(kind));
        let answer = match (effect, how % 16) {
            (StorageEffect::PutObject { .. }, 10) => {
                self.store.answer(effect);
                failed(StoreErrorKind::TimedOut)
            }
            (StorageEffect::PutObject { .. }, 11) => {
                self.store.answer(effect);
                failed(StoreErrorKind::Refused)
            }
            (StorageEffect::PutObject { key, payload, .. }, 12) => {
                self.late.push((key.clone(), payload.to_bytes()));
                failed(StoreErrorKind::TimedOut)
            }
            (StorageEffect::PutObject { .. }, 13..) => failed(StoreErrorKind::Refused),
            (StorageEffect::DeleteObjects { .. }, 11..13) => {
                self.delete(effect);
                failed(StoreErrorKind::TimedOut)
            }
            (StorageEffect::DeleteObjects { .. }, 13..) => failed(StoreErrorKind::Transient),
            (StorageEffect::DeleteObjects { .. }, _) => self.delete(effect),
            (_, 13..) => failed(StoreErrorKind::Transient),
            _ => self.store.answer(effect),
        };
        self.handle(Event::Storage(answer));
    }

    fn delete(&mut self, effect: &StorageEffect) -> StorageAnswer {
        let StorageEffect::DeleteObjects { id, keys, .. } = effect else { panic!("no delete") };
        let gone = |key: &Key| match self.store.objects.remove(key) {
            Some(_) => (key.clone(), Ok(())),
            None => (key.clone(), Err(StoreError::new(StoreErrorKind::NotFound))),
        };
        StorageAnswer::DeleteResult { id: *id, results: keys.iter().map(gone).collect() }
    }

    fn handle(&mut self, event: Event<u32>) {
        self.writer.handle(self.now, event);
        loop {
            while let Some(effect) = self.writer.poll_effect() {
                self.take(effect);
            }
            if self.writer.next_tick().is_none_or(|at| at > self.now) {
                break;
            }
            self.writer.handle(self.now, Event::Tick);
        }
        self.writer.check();
        self.note_durable();
    }

    fn take(&mut self, effect: Effect<u32>) {
        match effect {
            Effect::Storage(effect) => {
                if let StorageEffect::PutObject { payload, .. } = &effect {
                    let object = Object::decode(&payload.to_bytes()).unwrap();
                    self.largest_put = self.largest_put.max(object.header.sequence.0);
                    let user =
                        object.segments.iter().filter(|(meta, _)| !meta.region.is_reserved());
                    let ids = user.flat_map(|(meta, entries)| {
                        entries.iter().map(|entry| (meta.region.0, entry.id))
                    });
                    let ids: Vec<_> = ids.collect();
                    for (region, id) in &ids {
                        self.known[*region as usize].put.insert(*id);
                    }
                    self.objects.insert(object.header.sequence.0, ids);
                }
                self.requests.push(effect);
            }
            Effect::Ack { waiter, answer } => match (&self.calls[waiter as usize], answer) {
                (Called::Append, Answer::Appended(ids))
                    if self.options.ack_mode == AckMode::Durable =>
                {
                    for id in ids.ids() {
                        // One append has an entry of each of its regions at most.
                        self.acknowledged(id.sequence().0);
                    }
                }
                (Called::Release(region, handed), _) => {
                    let (known, handed) = (&mut self.known[*region as usize], *handed);
                    known.released = known.released.max(handed);
                    known.may_hide = known.may_hide.max(handed);
                }
                (Called::Stop, _) => {
                    for known in &mut self.known {
                        let owed = known.owed.take().map_or(EntryId::ZERO, |(id, _)| id);
                        known.released = known.released.max(owed);
                    }
                }
                _ => {}
            },
            // One that was not written left no record.
            Effect::FailWaiters { outcome: Outcome::NotWritten, .. } => {}
            Effect::FailWaiters { waiters, .. } => {
                for waiter in waiters {
                    let call = &mut self.calls[waiter as usize];
                    if let Called::Release(region, handed) = core::mem::replace(call, Called::Other)
                    {
                        let known = &mut self.known[region as usize];
                        // What was handed out in an open batch that was dropped may be given again.
                        let put = known.put.range(..=handed).next_back().copied();
                        let through = match self.options.ack_mode {
                            AckMode::Durable => put.unwrap_or_default(),
                            AckMode::Enqueued => handed,
                        };
                        known.may_hide = known.may_hide.max(through);
                        let before = known.owed.map_or(EntryId::ZERO, |(id, _)| id);
                        let sealed = self.sealed();
                        self.known[region as usize].owed = Some((before.max(through), sealed));
                    }
                }
            }
            Effect::Durable { .. } | Effect::Notice(_) => {}
        }
    }

    /// No batch without its records is sealed above this sequence.
    fn sealed(&self) -> u64 {
        let latest = |region| self.writer.latest(RegionId(region)).sequence().0;
        (0..REGIONS).map(latest).max().unwrap_or_default().max(self.largest_put)
    }

    /// Whatever is durable is as good as acknowledged.
    fn note_durable(&mut self) {
        for region in 0..REGIONS {
            let durable = self.writer.durable(RegionId(region)).sequence().0;
            if self.objects.contains_key(&durable) {
                self.acknowledged(durable);
            }
        }
    }

    /// Everything in the object at this sequence is acknowledged.
    fn acknowledged(&mut self, sequence: u64) {
        for (region, id) in &self.objects[&sequence] {
            self.known[*region as usize].acknowledged.insert(*id);
        }
        for known in &mut self.known {
            if let Some((id, _)) = known.owed.filter(|(_, after)| sequence > *after) {
                known.released = known.released.max(id);
                known.owed = None;
            }
        }
    }

    /// The ids of a region that a read would yield now.
    fn visible(&self, region: u64) -> BTreeSet<EntryId> {
        let plan = self.writer.plan_read(RegionId(region), EntryId::ZERO, None, usize::MAX);
        let segments = plan.unwrap().segments;
        let ids = segments.iter().flat_map(|planned| {
            let object = self.store.objects.get(&planned.key);
            let object = object.unwrap_or_else(|| panic!("{} is needed, and gone", planned.key));
            let object = Object::decode(object).unwrap();
            let segment = object.segments.into_iter().find(|(meta, _)| meta.region.0 == region);
            let entries = segment.expect("an indexed segment").1;
            entries.into_iter().map(|entry| entry.id).filter(|id| *id >= planned.from)
        });
        ids.collect()
    }

    fn see(&self) {
        for (region, known) in (0..).zip(&self.known) {
            let visible = self.visible(region);
            for id in &known.acknowledged {
                assert!(*id <= known.may_hide || visible.contains(id), "{id:?} is not there");
            }
            let back = visible.iter().find(|id| **id <= known.released);
            assert!(back.is_none(), "{back:?} of region {region} was released: {known:?}");
        }
    }

    fn crash(&mut self, how: u8) {
        for (place, effect) in core::mem::take(&mut self.requests).into_iter().enumerate() {
            match &effect {
                StorageEffect::PutObject { key, payload, .. } => match (how >> (place % 8)) & 1 {
                    0 => self.late.push((key.clone(), payload.to_bytes())),
                    _ => drop(self.store.answer(&effect)),
                },
                StorageEffect::DeleteObjects { .. } if how & 1 == 1 => drop(self.delete(&effect)),
                _ => {}
            }
        }
        for call in core::mem::take(&mut self.calls) {
            if let Called::Release(region, handed) = call {
                let known = &mut self.known[region as usize];
                known.may_hide = known.may_hide.max(handed);
            }
        }
        self.objects.clear();
        let mut run = (self.open)(self.options.clone(), core::mem::take(&mut self.store));
        self.writer = Writer::new(self.now, run.opened().clone());
        self.store = core::mem::take(&mut run.store);
        self.largest_put = self.writer.stats().epoch;
        for (region, known) in (0..).map(RegionId).zip(&mut self.known) {
            // A record that nobody acknowledged may be lost with the process that held it.
            known.owed = None;
            // Whatever it hides was there before.
            known.may_hide = known.may_hide.min(EntryId(run.opened().start.sequence.0 << 20));
            known.put = [self.writer.durable(region)].into();
        }
        self.handle(Event::Tick);
    }

    /// From here on all goes well: everything is answered.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            if !self.requests.is_empty() {
                let effect = self.requests.remove(0);
                self.answer(&effect, 0);
            } else if let Some(at) = self.writer.next_tick() {
                self.now = self.now.max(at);
                self.handle(Event::Tick);
            } else {
                return self.see();
            }
        }
        panic!("it does not settle");
    }

    fn below(&self, boundary: u64) -> Vec<String> {
        let end = key(boundary);
        self.store.objects.keys().filter(|key| **key < end).map(|key| key.to_string()).collect()
    }
}

fn options() -> impl Strategy<Value = Options> {
    let retry_for = prop_oneof![Just(0u64), Just(300)];
    let pipelines = (1..4u32, 1..3u32);
    (retry_for, pipelines, prop::bool::ANY).prop_map(|(retry_for, (creates, deletes), enqueued)| {
        Options {
            ack_mode: if enqueued { AckMode::Enqueued } else { AckMode::Durable },
            retry_for: Duration::from_millis(retry_for),
            // Nothing is queued, so that what is handed out is known when a release is called.
            max_unpersisted_age: Duration::from_secs(1_000_000),
            max_in_flight: creates,
            max_deletes_in_flight: deletes,
            ..at_once()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn what_is_acknowledged_is_there_and_what_is_released_is_not(
        options in options(),
        keeps in prop::bool::ANY,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new(options, if keeps { open_with } else { open_keeping_nothing });
        for step in &steps {
            world.step(step);
        }
        world.settle();
        // Once everything has run out and every region was released, all is gone but what stands
        // above the boundary, or in the way of others.
        for _ in 0..2 {
            world.step(&Step::Crash(0));
            world.settle();
            for region in 0..REGIONS {
                world.step(&Step::Release(region, false));
            }
            world.settle();
            world.step(&Step::Append(7));
            world.settle();
        }
        for region in 0..REGIONS {
            prop_assert_eq!(world.visible(region).len(), 1);
        }
        let last = world.largest_put;
        if !keeps {
            prop_assert_eq!(world.below(last), Vec::<String>::new());
        }
        let stats = world.writer.stats();
        prop_assert_eq!(stats.reclaim_boundary, last);
    }
}
