//! The world of a take-over: what happens when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::Hasher;
use std::time::Duration;

use rustc_hash::FxHasher;
use sealog_core::event::{Event, Listed, StorageAnswer, StorageEffect};
use sealog_core::format::Header;
use sealog_core::opening::{Opening, OpeningEffect, OpeningEvent};
use sealog_core::{Key, RequestId, Time};

use super::old::{Old, opening};
use super::{Listings, Setting, TakenOver, history, options};
use crate::model::ModelStore;

/// So many keys a page has.
const PAGE: usize = 1_000;

/// So often an opening is begun anew before the take-over counts as failed.
const MOST_ATTEMPTS: u32 = 3;

/// Between an opening that failed and the next one, as whoever starts processes does it.
const BETWEEN: Duration = Duration::from_secs(1);

/// After this long it counts as failed too.
const MOST_TIME: Duration = Duration::from_secs(600);

/// After so many listings too: it does not end.
const MOST_LISTINGS: u32 = 300;

/// So much happens in no take-over that ends.
const MOST_EVENTS: u64 = 1_000_000;

/// The writer that waits for so many appends gets no more.
const MOST_WAITING: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Old,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A request takes effect, or a page of a listing is made.
    Effect(u64),
    Answer(u64),
    Tick(Who),
    Append,
    Open,
}

struct Request {
    who: Who,
    effect: StorageEffect,
    /// What a listing has so far.
    listed: Vec<Listed>,
    answer: Option<StorageAnswer>,
}

enum New {
    NotYet,
    Opening(Box<Opening>),
    Open(Box<Old>),
}

pub(super) struct World {
    setting: Setting,
    now: Time,
    store: ModelStore,
    old: Old,
    new: New,
    queue: BinaryHeap<Reverse<(Time, u64, What)>>,
    scheduled: u64,
    requests: BTreeMap<u64, Request>,
    /// When each machine gets its next tick.
    ticks: BTreeMap<Who, Time>,
    began: Time,
    taken: TakenOver,
    /// The last thing that the opening asked for was a claim.
    claiming: bool,
    made_before: u64,
}

impl World {
    pub(super) fn new(setting: Setting) -> World {
        let mut store = ModelStore::new();
        let mut old = Old::open(&mut store, options(), 1);
        for _ in 1..setting.objects {
            old.append(Time::ZERO);
            old.settle(Time::ZERO, &mut store);
        }
        let mut world = World {
            setting,
            now: Time::ZERO,
            store,
            old,
            new: New::NotYet,
            queue: BinaryHeap::new(),
            scheduled: 0,
            requests: BTreeMap::new(),
            ticks: BTreeMap::new(),
            began: Time::from_millis(1_000),
            taken: TakenOver::default(),
            claiming: false,
            made_before: 0,
        };
        world.at(Time::ZERO, What::Append);
        world.at(world.began, What::Open);
        world
    }

    pub(super) fn run(mut self) -> TakenOver {
        while let Some(Reverse((at, _, what))) = self.queue.pop() {
            self.now = at;
            self.store.set_now(at);
            self.happens(what);
            if self.is_over() {
                break;
            }
        }
        self.taken.ended = self.old.ended.clone();
        let mut acknowledged = self.old.acknowledged;
        let tip = match &self.new {
            New::Open(new) => {
                acknowledged.extend(&new.acknowledged);
                new.acknowledged.iter().map(|id| id.sequence()).max()
            }
            _ => acknowledged.iter().map(|id| id.sequence()).max(),
        };
        let history = history(&self.store, tip);
        self.taken.lost = acknowledged.difference(&history).copied().collect();
        self.taken
    }

    fn is_over(&self) -> bool {
        let late = self.now > self.began.after(MOST_TIME);
        let late = late || self.taken.listings > MOST_LISTINGS || self.scheduled > MOST_EVENTS;
        let failed = matches!(self.new, New::NotYet) && self.taken.attempts >= MOST_ATTEMPTS;
        let done = matches!(&self.new, New::Open(new) if !new.acknowledged.is_empty());
        late || failed || done && self.old.ended.is_some()
    }

    fn at(&mut self, time: Time, what: What) {
        self.scheduled += 1;
        self.queue.push(Reverse((time, self.scheduled, what)));
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Append => {
                if self.old.ended.is_none() {
                    if self.old.waiting < MOST_WAITING {
                        self.old.append(self.now);
                    }
                    let every = Duration::from_secs(1) / self.setting.rate;
                    self.at(self.now.after(every), What::Append);
                }
                self.drain(Who::Old);
            }
            What::Open => {
                self.taken.attempts += 1;
                if self.taken.attempts == 1 {
                    self.made_before = self.made();
                }
                let number = 1 + u64::from(self.taken.attempts);
                self.new = New::Opening(Box::new(opening(self.now, options(), number)));
                self.drain(Who::New);
            }
            What::Effect(number) => self.takes_effect(number),
            What::Answer(number) => self.is_answered(number),
            What::Tick(who) => {
                if self.ticks.get(&who).is_some_and(|tick| *tick <= self.now) {
                    self.ticks.remove(&who);
                    match (who, &mut self.new) {
                        (Who::Old, _) => self.old.writer.handle(self.now, Event::Tick),
                        (Who::New, New::Opening(o)) => o.handle(self.now, OpeningEvent::Tick),
                        (Who::New, New::Open(new)) => new.writer.handle(self.now, Event::Tick),
                        (Who::New, New::NotYet) => {}
                    }
                    self.drain(who);
                }
            }
        }
    }

    fn latency(&self, effect: &StorageEffect) -> Duration {
        match effect {
            StorageEffect::List { .. } => self.setting.latencies.list,
            StorageEffect::FetchRange { .. } | StorageEffect::ReadBack { .. } => {
                self.setting.latencies.get
            }
            StorageEffect::PutObject { .. } | StorageEffect::DeleteObjects { .. } => {
                self.setting.latencies.put
            }
        }
    }

    fn ask(&mut self, who: Who, effect: StorageEffect) {
        if who == Who::New && matches!(self.new, New::Opening(_)) {
            self.count(&effect);
        }
        let latency = self.latency(&effect);
        let number = self.scheduled;
        self.requests.insert(number, Request { who, effect, listed: Vec::new(), answer: None });
        // A directory is read from the moment on at which it is asked.
        let directory = self.setting.listings == Listings::AsADirectory;
        let is_listing = matches!(self.requests[&number].effect, StorageEffect::List { .. });
        if directory && is_listing {
            self.list_directory(number, |hash| hash % 2 == 0);
            return self.at(self.now.after(latency), What::Answer(number));
        }
        self.at(self.now.after(latency / 2), What::Effect(number));
    }

    fn count(&mut self, effect: &StorageEffect) {
        let claims = match effect {
            StorageEffect::List { .. } => {
                self.taken.listings += 1;
                false
            }
            StorageEffect::PutObject { payload, .. } => {
                Header::decode(&payload.to_bytes()).is_ok_and(|header| header.links_to_itself())
            }
            _ => false,
        };
        self.taken.claims += u32::from(claims);
        self.taken.rounds += u32::from(claims && !self.claiming);
        self.claiming = claims;
    }

    /// What is there now, of the keys whose hash is of this half.
    fn list_directory(&mut self, number: u64, half: impl Fn(u64) -> bool) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let StorageAnswer::Listed { result: Ok(now), .. } = self.store.apply(&request.effect)
        else {
            return;
        };
        request.listed.extend(now.into_iter().filter(|listed| half(hash(&listed.key))));
    }

    fn takes_effect(&mut self, number: u64) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let latency = match &mut request.effect {
            StorageEffect::List { .. } => {
                let answer = self.store.apply(&request.effect);
                let StorageAnswer::Listed { id, result: Ok(mut page) } = answer else { return };
                let more = page.len() > PAGE;
                page.truncate(PAGE);
                let StorageEffect::List { after, .. } = &mut request.effect else { return };
                *after = page.last().map(|listed| listed.key.clone()).or(after.take());
                request.listed.extend(page);
                if more {
                    return self
                        .at(self.now.after(self.setting.latencies.list), What::Effect(number));
                }
                let listed = std::mem::take(&mut request.listed);
                request.answer = Some(StorageAnswer::Listed { id, result: Ok(listed) });
                self.setting.latencies.list
            }
            effect => {
                request.answer = Some(self.store.apply(effect));
                self.latency(&self.requests[&number].effect)
            }
        };
        self.at(self.now.after(latency / 2), What::Answer(number));
    }

    fn is_answered(&mut self, number: u64) {
        if self.requests[&number].answer.is_none() {
            self.list_directory(number, |hash| hash % 2 == 1);
        }
        let Some(mut request) = self.requests.remove(&number) else { return };
        let id: RequestId = request.effect.id();
        let answer = request.answer.take().unwrap_or_else(|| {
            let mut listed = std::mem::take(&mut request.listed);
            listed.sort_by_key(|listed| hash(&listed.key));
            StorageAnswer::Listed { id, result: Ok(listed) }
        });
        match (request.who, &mut self.new) {
            (Who::Old, _) => self.old.answered(self.now, answer),
            (Who::New, New::Opening(opening)) => {
                opening.handle(self.now, OpeningEvent::Storage(answer));
            }
            (Who::New, New::Open(new)) => new.answered(self.now, answer),
            // Its opening is gone.
            (Who::New, New::NotYet) => {}
        }
        self.drain(request.who);
    }

    fn drain(&mut self, who: Who) {
        let wanted = match (who, &mut self.new) {
            (Who::Old, _) => self.old.wants(),
            (Who::New, New::Open(new)) => new.wants(),
            (Who::New, New::Opening(_)) => return self.drain_opening(),
            (Who::New, New::NotYet) => return,
        };
        for effect in wanted {
            self.ask(who, effect);
        }
        let tick = match (who, &self.new) {
            (Who::New, New::Open(new)) => new.writer.next_tick(),
            _ => self.old.writer.next_tick(),
        };
        self.tick(who, tick);
    }

    fn drain_opening(&mut self) {
        loop {
            let New::Opening(opening) = &mut self.new else { return };
            let Some(effect) = opening.poll_effect() else { break };
            match effect {
                OpeningEffect::Storage(effect) => self.ask(Who::New, effect),
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(recovered) => {
                    self.taken.opened = true;
                    self.taken.time = self.now.since(self.began);
                    self.taken.made = self.made() - self.made_before;
                    let mut new = Box::new(Old::new(self.now, *recovered));
                    new.append(self.now);
                    self.new = New::Open(new);
                    return self.drain(Who::New);
                }
                OpeningEffect::Failed(error) => {
                    assert!(error.is_retryable(), "it fails for good: {error}");
                    self.taken.time = self.now.since(self.began);
                    self.taken.made = self.made() - self.made_before;
                    self.new = New::NotYet;
                    self.ticks.remove(&Who::New);
                    self.requests.retain(|_, request| request.who == Who::Old || request.is_put());
                    if self.taken.attempts < MOST_ATTEMPTS {
                        self.at(self.now.after(BETWEEN), What::Open);
                    }
                    return;
                }
            }
        }
        let tick = match &self.new {
            New::Opening(opening) => opening.next_tick(),
            _ => None,
        };
        self.tick(Who::New, tick);
    }

    fn tick(&mut self, who: Who, tick: Option<Time>) {
        let Some(tick) = tick.map(|tick| tick.max(self.now)) else { return };
        if self.ticks.get(&who).is_none_or(|earlier| *earlier > tick) {
            self.ticks.insert(who, tick);
            self.at(tick, What::Tick(who));
        }
    }

    /// How many objects the old writer has made.
    fn made(&self) -> u64 {
        self.old.writer.stats().created_objects_total
    }
}

impl Request {
    /// It lands although nobody waits for it any more.
    fn is_put(&self) -> bool {
        matches!(self.effect, StorageEffect::PutObject { .. })
    }
}

fn hash(key: &Key) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(key.as_bytes());
    hasher.finish() >> 7
}
