//! What comes of one event for one instance.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use sealog_core::{
    Answer, Append, Effect, EntryId, Error, Event, Notice, OpeningEffect, OpeningEvent, Recovered,
    RegionId, RequestId, StorageAnswer, StorageEffect, StoreError, StoreErrorKind, Time, Writer,
};

use super::instance::{
    Asked, End, Fate, Happened, Happening, Instance, Keys, Opened, Phase, Reply, Setup, What,
    history_of, tags,
};
use super::objects::{
    ERA, ObjectId, Objects, REGION, Tag, key_of, listed_answer, read_answer, sequence_of,
};
use super::transcript::Transcript;

/// The region whose watermark raises the floor: nothing is appended to it.
const ELSEWHERE: RegionId = RegionId(2);

/// A waiter is the number of an append, or this for a call of obsolete.
const OBSOLETE: u8 = u8::MAX;

/// What becomes of an instance when something happens to it. A panic of the machine is a violation
/// like any other.
pub(crate) fn meet(
    instance: &Instance,
    setup: &Setup,
    objects: &mut Objects,
    happening: Happening,
    era: u8,
    transcript: &mut Transcript,
) -> Happened {
    let mut instance = instance.clone();
    // An instance that does nothing any more has no time.
    if !matches!(instance.phase, Phase::Ended(_)) {
        instance.now = instance.now.max(Time::ZERO.after(ERA * u32::from(era)));
    }
    let mut meeting = Meeting {
        instance,
        setup,
        objects,
        transcript,
        shown: Vec::new(),
        answers: Vec::new(),
        back: None,
        late: Vec::new(),
        late_deletes: Keys::default(),
        violation: None,
    };
    let ran = catch_unwind(AssertUnwindSafe(|| meeting.run(happening)));
    let violation = meeting.violation.or_else(|| ran.err().map(|cause| panicked(&*cause)));
    let Meeting { instance, late, late_deletes, .. } = meeting;
    Happened { instance, late, late_deletes, violation }
}

fn panicked(cause: &(dyn std::any::Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no text");
    format!("the machine panicked: {text}")
}

struct Meeting<'a> {
    instance: Instance,
    setup: &'a Setup,
    objects: &'a mut Objects,
    transcript: &'a mut Transcript,
    /// The objects that the event shows, and that are never deleted.
    shown: Vec<ObjectId>,
    /// Answers to reads of them.
    answers: Vec<StorageAnswer>,
    /// Where the put stood that was answered.
    back: Option<u64>,
    late: Vec<ObjectId>,
    late_deletes: Keys,
    violation: Option<String>,
}

impl Meeting<'_> {
    fn run(&mut self, happening: Happening) {
        match happening {
            Happening::Start => {
                self.say(|_| "begins to open".into());
                let opening = self.setup.opening(self.instance.name());
                self.instance.phase = Phase::Opening(Box::new(opening));
            }
            Happening::Append => self.append(),
            Happening::RaiseFloor(sequence) => {
                self.say(|_| format!("is told that ids through object {sequence} are obsolete"));
                let id = EntryId(sequence << 20 | 1);
                self.hand(Event::Obsolete { region: ELSEWHERE, id, waiter: OBSOLETE });
            }
            Happening::Obsolete => self.obsolete(),
            Happening::Tick => self.tick(),
            Happening::Answer(place, reply) => self.reply(place as usize, reply),
        }
        self.settle();
    }

    fn append(&mut self) {
        let place = self.instance.told.appends.len();
        let tag = Tag::new(self.instance.who, place);
        self.say(|_| format!("appends {tag}"));
        self.instance.appends_left -= 1;
        self.instance.told.appends.push(Fate::Waiting);
        let append = Append::One(REGION, tag.payload());
        self.hand(Event::Append { append, waiter: place as u8 });
    }

    fn obsolete(&mut self) {
        let Phase::Writing(writer) = &self.instance.phase else { return };
        let id = writer.durable(REGION);
        self.instance.told.obsolete = id;
        self.say(|_| {
            format!("is told that all through {}/{} is obsolete", id.sequence(), id.position())
        });
        self.hand(Event::Obsolete { region: REGION, id, waiter: OBSOLETE });
    }

    fn tick(&mut self) {
        let due = match &self.instance.phase {
            Phase::Opening(opening) => opening.next_tick(),
            Phase::Writing(writer) => writer.next_tick(),
            _ => None,
        };
        let Some(due) = due else { return };
        self.instance.now = self.instance.now.max(due);
        let now = self.instance.now;
        self.say(|_| format!("gets a tick at {} ms", now.as_nanos() / 1_000_000));
        match &mut self.instance.phase {
            Phase::Opening(opening) => opening.handle(now, OpeningEvent::Tick),
            Phase::Writing(writer) => writer.handle(now, Event::Tick),
            _ => {}
        }
    }

    fn reply(&mut self, place: usize, reply: Reply) {
        match reply {
            Reply::Applied => {
                match &mut self.instance.asked[place].what {
                    What::Put { applied, .. } | What::Delete { applied, .. } => *applied = true,
                    what => panic!("it has no effect: {what:?}"),
                }
                return;
            }
            Reply::Begun(now) => {
                if let What::List { begun, .. } = &mut self.instance.asked[place].what {
                    *begun = Some(now);
                }
                let there = self.objects.sequences(now.there);
                return self.say(|_| match now.through {
                    Some(last) => format!("lists {there}, but so far through {last} only"),
                    None => format!("begins to list, while there is {there}"),
                });
            }
            _ => {}
        }
        let Asked { id, what } = self.instance.asked.remove(place);
        let id = RequestId(id);
        if let What::Put { object, .. } = &what {
            self.back = Some(self.objects.get(*object).sequence());
        }
        let answer = match (what, reply) {
            (What::Put { object, .. }, Reply::Created) => {
                self.shown.push(object);
                self.say_object("is told that it created", object);
                StorageAnswer::CreateResult { id, result: Ok(()) }
            }
            (What::Put { .. }, Reply::Exists(object)) => {
                self.shown.push(object);
                self.say_object("is told that there is already", object);
                not_created(id, StoreErrorKind::Exists)
            }
            (What::Put { object, applied }, Reply::TimedOut | Reply::AnswerLost) => {
                if applied || reply == Reply::AnswerLost {
                    self.shown.push(object);
                } else {
                    self.late.push(object);
                }
                self.say_object("is told that time ran out for the put of", object);
                not_created(id, StoreErrorKind::TimedOut)
            }
            (What::Delete { sequence, .. }, Reply::Deleted) => {
                self.say(|_| format!("is told that {sequence} is deleted"));
                deleted(id, sequence, Ok(()))
            }
            (What::Delete { sequence, applied }, Reply::TimedOut) => {
                if !applied {
                    self.late_deletes.add(sequence);
                }
                self.say(|_| format!("is told that time ran out for the delete of {sequence}"));
                deleted(id, sequence, Err(StoreError::new(StoreErrorKind::TimedOut)))
            }
            (What::Read { sequence, fetch, .. }, Reply::Read(object)) => {
                let effect = read_effect(id, sequence, fetch);
                self.shown.extend(object);
                match object {
                    Some(object) => self.say_object("reads", object),
                    None => self.say(|_| format!("reads {sequence}: nothing there")),
                }
                read_answer(&effect, object.map(|object| &self.objects.get(object).bytes))
            }
            (What::List { after, begun }, Reply::Listed(set)) => {
                if self.setup.deletes && matches!(self.instance.phase, Phase::Opening(_)) {
                    self.instance.looked = Some(begun.map_or(set, |begun| begun.there));
                }
                let members = self.objects.members(set);
                self.shown.extend(members.iter());
                let text = self.objects.sequences(set);
                self.say(|_| match after {
                    Some(after) => format!("lists what is behind {after}: {text}"),
                    None => format!("lists: {text}"),
                });
                let objects = members.iter().map(|id| self.objects.get(*id));
                let shown =
                    objects.map(|object| (object.sequence(), &object.bytes, object.written));
                listed_answer(id, self.setup.lists_in_order, shown)
            }
            (What::List { .. }, Reply::Failed) => {
                self.say(|_| "cannot list".into());
                let result = Err(StoreError::new(StoreErrorKind::Transient));
                StorageAnswer::Listed { id, result }
            }
            (what, reply) => panic!("{reply:?} is no answer to {what:?}"),
        };
        self.hand_answer(answer);
    }

    fn hand_answer(&mut self, answer: StorageAnswer) {
        let now = self.instance.now;
        match &mut self.instance.phase {
            Phase::Opening(opening) => opening.handle(now, OpeningEvent::Storage(answer)),
            Phase::Writing(writer) => writer.handle(now, Event::Storage(answer)),
            Phase::NotStarted | Phase::Ended(_) => {}
        }
    }

    fn hand(&mut self, event: Event<u8>) {
        if let Phase::Writing(writer) = &mut self.instance.phase {
            writer.handle(self.instance.now, event);
        }
    }

    /// Drains the machine, and hands it what it can get at once.
    fn settle(&mut self) {
        loop {
            match &mut self.instance.phase {
                Phase::Opening(opening) => {
                    if let Some(effect) = opening.poll_effect() {
                        self.opening_wants(effect);
                        continue;
                    }
                }
                Phase::Writing(writer) => {
                    if let Some(effect) = writer.poll_effect() {
                        self.writer_wants(effect);
                        continue;
                    }
                    writer.check();
                }
                Phase::NotStarted | Phase::Ended(_) => {}
            }
            if !self.answers.is_empty() {
                let answer = self.answers.remove(0);
                self.hand_answer(answer);
            } else if self.waits_for_nothing_else() {
                self.tick();
            } else {
                break;
            }
        }
        if self.is_idle() {
            self.end(End::Idle);
        }
    }

    fn waits_for_nothing_else(&self) -> bool {
        match &self.instance.phase {
            Phase::Opening(opening) => {
                self.instance.asked.is_empty() && opening.next_tick().is_some()
            }
            _ => false,
        }
    }

    /// Whether this writer can neither acknowledge nor append anything any more, nor ask for more
    /// deletes, which may wait for its puts.
    fn is_idle(&self) -> bool {
        let Instance { phase, appends_left, told, .. } = &self.instance;
        let Setup { floors, carriers, deletes, .. } = *self.setup;
        let may_delete = deletes && self.instance.asked.iter().any(is_put);
        matches!(phase, Phase::Writing(_))
            && *appends_left == 0
            && !(floors || carriers || may_delete)
            && !told.appends.contains(&Fate::Waiting)
    }

    fn end(&mut self, end: End) {
        self.instance.phase = Phase::Ended(end);
        self.instance.appends_left = 0;
        self.instance.now = Time::ZERO;
        self.instance.looked = None;
        self.answers.clear();
        for Asked { what, .. } in self.instance.asked.drain(..) {
            match what {
                What::Put { object, applied: false } => self.late.push(object),
                What::Delete { sequence, applied: false } => self.late_deletes.add(sequence),
                _ => {}
            }
        }
    }

    fn opening_wants(&mut self, effect: OpeningEffect) {
        match effect {
            OpeningEffect::Storage(effect) => self.ask(effect),
            OpeningEffect::Notice(_) => {}
            OpeningEffect::Opened(_) if self.setup.dies_opening == Some(self.instance.who) => {
                self.say(|_| "dies".into());
                self.end(End::Died);
            }
            OpeningEffect::Opened(recovered) => self.opened(*recovered),
            OpeningEffect::Failed(error) => {
                self.say(|_| format!("fails to open: {error}"));
                let met = match &error {
                    Error::Contended { epoch, .. } => epoch.0,
                    _ => 0,
                };
                // A store in which late deletes and creates change a key between each listing and its
                // reads keeps an opening from its end; it says that this may pass.
                if met == 0 && error.is_retryable() {
                    return self.end(End::Died);
                }
                if met == 0 {
                    self.violates(format!("an opening failed: {error}"));
                }
                self.end(End::Contended { met });
            }
        }
    }

    fn opened(&mut self, recovered: Recovered) {
        // Within an era its clock begins anew, so that how long an opening took tells no states apart.
        let eras = self.instance.now.as_nanos() / ERA.as_nanos() as u64;
        let now = Time::ZERO.after(ERA * eras as u32);
        let writer = Writer::new(now, recovered);
        let (epoch, history) = (writer.epoch().0, history_of(self.objects, &writer));
        let tags = tags(&history);
        self.say(|_| format!("is open at epoch {epoch}, with {tags}"));
        self.instance.told.opened = Some(Opened { epoch, history });
        self.instance.looked = None;
        self.instance.now = now;
        self.instance.phase = Phase::Writing(Box::new(writer));
    }

    fn writer_wants(&mut self, effect: Effect<u8>) {
        match effect {
            Effect::Storage(effect) => self.ask(effect),
            Effect::Ack { waiter, answer: Answer::Appended(appended) } => {
                self.answer(waiter, Fate::Acknowledged(appended.ids()[0]));
            }
            Effect::Ack { waiter: OBSOLETE, .. } => {}
            Effect::Ack { waiter, answer } => {
                self.violates(format!("append {waiter} was answered {answer:?}"));
            }
            Effect::FailWaiters { waiters, error, .. } => {
                for waiter in waiters.into_iter().filter(|waiter| *waiter != OBSOLETE) {
                    self.say(|me| format!("fails {}: {error}", me.tag(waiter)));
                    self.answer(waiter, Fate::Failed);
                }
            }
            Effect::Durable { .. } => {}
            Effect::Notice(Notice::Poisoned { error }) => {
                self.say(|_| format!("is poisoned: {error}"));
                if !matches!(error, Error::Fenced { .. }) {
                    self.violates(format!("a writer was poisoned: {error}"));
                }
                self.poisoned();
            }
            Effect::Notice(_) => {}
        }
    }

    /// Takes the last words of a poisoned writer, and sees that it acknowledges nothing more,
    /// whatever its requests are answered.
    fn poisoned(&mut self) {
        let now = self.instance.now;
        let Phase::Writing(writer) = &mut self.instance.phase else { return };
        let mut writer = writer.clone();
        let mut effects: Vec<_> = std::iter::from_fn(|| writer.poll_effect()).collect();
        let created = |asked: &Asked| {
            let id = RequestId(asked.id);
            Event::Storage(StorageAnswer::CreateResult { id, result: Ok(()) })
        };
        self.instance.asked.iter().map(created).for_each(|event| writer.handle(now, event));
        let (append, waiter) = (Append::One(REGION, Tag::new(0, 0).payload()), OBSOLETE);
        writer.handle(now, Event::Append { append, waiter });
        effects.extend(std::iter::from_fn(|| writer.poll_effect()));
        for effect in effects {
            match effect {
                Effect::FailWaiters { .. } => self.writer_wants(effect),
                Effect::Ack { waiter, .. } if waiter != OBSOLETE => {
                    self.violates(format!("{} was acknowledged after poison", self.tag(waiter)));
                }
                _ => {}
            }
        }
        if self.instance.told.appends.contains(&Fate::Waiting) {
            self.violates("an append is not answered by poison".into());
        }
        self.end(End::Fenced);
    }

    fn tag(&self, waiter: u8) -> Tag {
        Tag::new(self.instance.who, waiter as usize)
    }

    fn answer(&mut self, waiter: u8, fate: Fate) {
        let tag = self.tag(waiter);
        if let Fate::Acknowledged(id) = fate {
            let (sequence, position) = (id.sequence(), id.position());
            self.say(|_| format!("acknowledges {tag} as {sequence}/{position}"));
        }
        match self.instance.told.appends.get_mut(waiter as usize) {
            Some(waiting @ Fate::Waiting) => *waiting = fate,
            _ => self.violates(format!("{tag} is answered twice")),
        }
    }

    fn ask(&mut self, effect: StorageEffect) {
        let id = effect.id().0;
        let read = |sequence, fetch| What::Read { sequence, fetch, back: false };
        let what = match &effect {
            StorageEffect::PutObject { payload, .. } => {
                let object = self.objects.intern(payload.to_bytes());
                self.say_object("asks to put", object);
                What::Put { object, applied: false }
            }
            StorageEffect::List { after, .. } => {
                What::List { after: after.as_ref().map(|key| sequence_of(key)), begun: None }
            }
            StorageEffect::FetchRange { key, range, .. } => {
                read(sequence_of(key), Some((range.start, range.end)))
            }
            StorageEffect::ReadBack { key, .. } => read(sequence_of(key), None),
            StorageEffect::DeleteObjects { .. } if !self.setup.deletes => return,
            StorageEffect::DeleteObjects { keys, .. } => {
                assert_eq!(keys.len(), 1, "what a store takes that has no request for many");
                let sequence = sequence_of(&keys[0]);
                self.say(|_| format!("asks to delete {sequence}"));
                What::Delete { sequence, applied: false }
            }
        };
        if let What::Read { sequence, fetch, .. } = what {
            if self.setup.deletes {
                // What a writer fetches is the name of another, which ends it: found or not.
                if fetch.is_some() && matches!(self.instance.phase, Phase::Writing(_)) {
                    return self.answers.push(read_answer(&effect, None));
                }
                return self.instance.asked.push(Asked { id, what });
            }
            let is_it = |id: &&ObjectId| self.objects.get(**id).sequence() == sequence;
            if let Some(object) = self.shown.iter().find(is_it) {
                let bytes = &self.objects.get(*object).bytes;
                return self.answers.push(read_answer(&effect, Some(bytes)));
            }
            let back = self.back == Some(sequence);
            return self
                .instance
                .asked
                .push(Asked { id, what: What::Read { sequence, fetch, back } });
        }
        self.instance.asked.push(Asked { id, what });
    }

    fn violates(&mut self, what: String) {
        let name = self.instance.name();
        self.violation.get_or_insert(format!("{name}: {what}"));
    }

    fn say(&mut self, text: impl FnOnce(&Self) -> String) {
        if self.transcript.is_written() {
            let line = format!("{} {}", self.instance.name(), text(self));
            self.transcript.line(line);
        }
    }

    fn say_object(&mut self, what: &str, object: ObjectId) {
        self.say(|me| format!("{what} {}", me.objects.get(object)));
    }
}

fn is_put(asked: &Asked) -> bool {
    matches!(asked.what, What::Put { .. })
}

fn deleted(id: RequestId, sequence: u64, result: Result<(), StoreError>) -> StorageAnswer {
    StorageAnswer::DeleteResult { id, results: vec![(key_of(sequence), result)] }
}

fn not_created(id: RequestId, why: StoreErrorKind) -> StorageAnswer {
    StorageAnswer::CreateResult { id, result: Err(StoreError::new(why)) }
}

fn read_effect(id: RequestId, sequence: u64, fetch: Option<(u64, u64)>) -> StorageEffect {
    let (key, time_limit) = (key_of(sequence), Duration::ZERO);
    match fetch {
        Some((from, to)) => StorageEffect::FetchRange { id, key, range: from..to, time_limit },
        None => StorageEffect::ReadBack { id, key, time_limit },
    }
}
