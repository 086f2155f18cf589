//! A row against the machine: calls and answers are events, and time is a number.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::{Append, Event, StorageAnswer, StorageEffect};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{
    Answer, Effect, EntryId, Error, Key, ObjectSeq, Prefix, RegionId, RequestId, Stats, Time,
    Writer,
};

use super::{Came, Contents, FAILS, How, Row, Step, labelled, options, say};
use crate::model::{Fate, ModelStore, Request};
use crate::sim::reader;

/// Where the logs of the matrix are.
pub(super) const PREFIX: &str = "matrix";

/// The region that is appended to after a row.
pub(super) const PROBE: RegionId = RegionId(99);

struct Machine {
    row: &'static Row,
    writer: Writer<usize>,
    opened: Stats,
    instance: u8,
    now: Time,
    store: ModelStore,
    pending: Vec<Request>,
    adrift: Vec<StorageEffect>,
    calls: usize,
    /// The calls whose failure says what it means for what they wrote.
    writes: BTreeSet<usize>,
    /// Appends, releases and flushes that are held back while the machine takes none.
    held: VecDeque<Event<usize>>,
    dropped: Vec<usize>,
    answers: Vec<(u32, String)>,
}

/// Runs a row.
///
/// # Panics
///
/// The row asks for what is not there: an answer to no request, or a call that must be answered
/// by then and is not.
pub fn run(row: &'static Row) -> Came {
    let mut store = ModelStore::new();
    let first = open(&mut store, row, 1, Time::ZERO);
    first.unwrap_or_else(|error| panic!("{}: {error}", row.name));
    let writer = open(&mut store, row, 2, Time::ZERO);
    let writer = writer.unwrap_or_else(|error| panic!("{}: {error}", row.name));
    let mut machine = Machine {
        row,
        opened: writer.stats(),
        instance: 2,
        writer,
        now: Time::ZERO,
        store,
        pending: Vec::new(),
        adrift: Vec::new(),
        calls: 0,
        writes: BTreeSet::new(),
        held: VecDeque::new(),
        dropped: Vec::new(),
        answers: Vec::new(),
    };
    machine.drain();
    machine.steps(row.steps);
    let stats = (machine.opened.clone(), machine.writer.stats());
    let now = machine.now;
    let reads = read(&mut machine.writer, &mut machine.store, now);
    let recovers = recovered(machine.store.clone(), row);
    let answers = machine.answers.clone();
    let then = machine.probe();
    Came { answers, then, stats, reads, recovers }
}

/// What an opening recovers of a store.
pub(super) fn recovered(mut store: ModelStore, row: &Row) -> Contents {
    match open(&mut store, row, u8::MAX, Time::ZERO) {
        Ok(mut writer) => read(&mut writer, &mut store, Time::ZERO),
        Err(error) => Contents::from([(FAILS, vec![say::failed(&error)])]),
    }
}

/// Opens the log of a store that does as it is told.
fn open(
    store: &mut ModelStore,
    row: &Row,
    instance: u8,
    mut now: Time,
) -> Result<Writer<usize>, Error> {
    let identity =
        Identity { nonce: [instance; 16], opened_at_millis: 0, default_name: "one".into() };
    let prefix = Prefix::new(PREFIX).unwrap_or_else(|error| panic!("{error}"));
    let mut opening = Opening::new(now, prefix, options(row), identity)?;
    loop {
        match opening.poll_effect() {
            Some(OpeningEffect::Storage(effect)) => {
                let answer = store.apply(&effect);
                opening.handle(now, OpeningEvent::Storage(answer));
            }
            Some(OpeningEffect::Notice(_)) => {}
            Some(OpeningEffect::Opened(recovered)) => {
                let mut writer = Writer::new(now, *recovered);
                writer.set_keys_per_delete(row.keys_per_delete);
                return Ok(writer);
            }
            Some(OpeningEffect::Failed(error)) => return Err(error),
            None => {
                now = opening.next_tick().unwrap_or_else(|| panic!("the opening hangs"));
                opening.handle(now, OpeningEvent::Tick);
            }
        }
    }
}

fn read(writer: &mut Writer<usize>, store: &mut ModelStore, now: Time) -> Contents {
    let regions: Vec<RegionId> = writer.regions().map(|info| info.region).collect();
    let observed = reader::read_all(writer, store, now, regions);
    let observed = observed.unwrap_or_else(|error| panic!("{error}"));
    let texts =
        |seen: Vec<crate::sim::history::Seen>| say::payloads(seen.iter().map(|e| &e.payload));
    observed.into_iter().map(|(region, seen)| (region.0, texts(seen))).collect()
}

/// A step as an append, if it is one.
pub(super) fn append(step: Step) -> Option<Append> {
    let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
    match step {
        Step::Append(region, text) => Some(Append::One(RegionId(region), bytes(text))),
        Step::Batch(entries) => Some(Append::Many(
            entries.iter().map(|(region, text)| (RegionId(*region), bytes(text))).collect(),
        )),
        Step::Bulk(region, count) => {
            Some(Append::Many(vec![(RegionId(region), Bytes::new()); count as usize]))
        }
        Step::Spread(first, count) => {
            let regions = first..first + u64::from(count);
            Some(Append::Many(regions.map(|region| (RegionId(region), Bytes::new())).collect()))
        }
        _ => None,
    }
}

/// An id that a row names.
pub(super) fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position)
        .unwrap_or_else(|| panic!("{sequence}/{position} is no id"))
}

impl Machine {
    fn steps(&mut self, steps: &'static [Step]) {
        for step in steps {
            self.step(*step);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append(..)
            | Step::Batch(_)
            | Step::Bulk(..)
            | Step::Spread(..)
            | Step::Flush
            | Step::Wait(..)
            | Step::Obsolete(..)
            | Step::Release(_)
            | Step::ReleaseAll(_)
            | Step::Stop => {
                let event = self.call(step);
                self.handle([event]);
            }
            Step::ReleaseEach(first, count) => {
                let regions = first..first + u64::from(count);
                let calls: Vec<_> =
                    regions.map(|region| self.call(Step::Release(region))).collect();
                self.handle(calls);
            }
            Step::Together(calls) => {
                let calls: Vec<_> = calls.iter().map(|call| self.call(*call)).collect();
                let (first, last): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_held_back);
                let before = self.answers.len();
                self.handle(first.into_iter().chain(last));
                self.answers[before..].sort();
            }
            Step::Drop(call) => self.dropped.push(call as usize),
            Step::Put(sequence, how) => {
                self.answer(how, |effect| {
                    matches!(effect, StorageEffect::PutObject { .. }) && is_of(effect, sequence)
                });
            }
            Step::Back(sequence, how) => {
                self.answer(how, |effect| {
                    matches!(effect, StorageEffect::ReadBack { .. }) && is_of(effect, sequence)
                });
            }
            Step::Fetch(sequence, how) => {
                self.answer(how, |effect| {
                    matches!(effect, StorageEffect::FetchRange { .. }) && is_of(effect, sequence)
                });
            }
            Step::List(how) => {
                self.answer(how, |effect| matches!(effect, StorageEffect::List { .. }));
            }
            Step::Delete(sequences, how) => self.answer(how, |effect| match effect {
                StorageEffect::DeleteObjects { keys, .. } => {
                    keys.iter().map(|key| sequence_of(key)).eq(sequences.iter().copied())
                }
                _ => false,
            }),
            Step::Land(sequence) => {
                let at = self.adrift.iter().position(|effect| is_of(effect, sequence));
                let at =
                    at.unwrap_or_else(|| panic!("{}: {sequence} is not adrift", self.row.name));
                let put = self.adrift.remove(at);
                self.store.apply(&put);
            }
            Step::Plant(sequence, planted) => {
                plant(&mut self.store, &key(sequence), planted.bytes(sequence));
            }
            // A shell's matter: the answer is the same.
            Step::RangesFail => {}
            Step::Pass(millis) => {
                self.pass(self.now.after(Duration::from_millis(millis)));
            }
            Step::Answered(calls) => {
                let mut answered: Vec<u32> = self.answers.iter().map(|(call, _)| *call).collect();
                answered.sort_unstable();
                let expected: Vec<u32> = labelled(calls).map(|(call, _)| call).collect();
                assert_eq!(answered, expected, "{}: answered at {step:?}", self.row.name);
            }
            Step::UnderWay(count) => {
                let requests: Vec<_> = self.pending.iter().map(|r| r.effect.key()).collect();
                assert_eq!(requests.len(), count, "{}: {requests:?}", self.row.name);
            }
            Step::Stored(sequences) => {
                let stored: Vec<u64> =
                    self.store.objects().map(|(key, _)| sequence_of(key)).collect();
                assert_eq!(stored, sequences, "{}: stored", self.row.name);
            }
            Step::Reopen => self.reopen(),
            Step::Times(count, steps) => (0..count).for_each(|_| self.steps(steps)),
        }
    }

    fn reopen(&mut self) {
        self.instance += 1;
        self.held.clear();
        self.adrift.extend(self.pending.drain(..).filter_map(Request::abandon));
        let writer = open(&mut self.store, self.row, self.instance, self.now);
        self.writer = writer.unwrap_or_else(|error| panic!("{}: {error}", self.row.name));
        self.opened = self.writer.stats();
        self.drain();
    }

    fn call(&mut self, step: Step) -> Event<usize> {
        self.calls += 1;
        let waiter = self.calls;
        let writes = matches!(step, Step::Release(_) | Step::ReleaseAll(_));
        if writes || append(step).is_some() {
            self.writes.insert(waiter);
        }
        match (append(step), step) {
            (Some(append), _) => Event::Append { append, waiter },
            (None, Step::Flush) => Event::Flush { waiter },
            (None, Step::Wait(region, sequence, position)) => {
                Event::WaitDurable { region: RegionId(region), id: id(sequence, position), waiter }
            }
            (None, Step::Obsolete(region, sequence, position)) => {
                Event::Obsolete { region: RegionId(region), id: id(sequence, position), waiter }
            }
            (None, Step::Release(region)) => Event::Release { region: RegionId(region), waiter },
            (None, Step::ReleaseAll(region)) => {
                Event::ReleaseAll { region: RegionId(region), waiter }
            }
            (None, Step::Stop) => Event::Stop { waiter },
            (None, step) => panic!("{}: {step:?} is no call", self.row.name),
        }
    }

    fn answer(&mut self, how: How, of: impl Fn(&StorageEffect) -> bool) {
        let at = self.pending.iter().position(|request| of(&request.effect));
        let asked: Vec<_> = self.pending.iter().map(|request| request.effect.key()).collect();
        let at = at.unwrap_or_else(|| panic!("{}: {how:?} to nothing; {asked:?}", self.row.name));
        let mut request = self.pending.remove(at);
        let answer = match how {
            How::Well => request.end(&mut self.store, Fate::Honest).0,
            How::Fails(failure) => request.effect.failed(failure.as_mapped()),
            How::DoneBut(failure) => {
                request.take_effect(&mut self.store);
                request.effect.failed(failure.as_mapped())
            }
            How::AllBut(failing, failure) => {
                let StorageEffect::DeleteObjects { id, keys, time_limit } = request.effect else {
                    panic!("{}: {how:?} is no answer", self.row.name)
                };
                let mut delete = |key: &Key| match failing.contains(&sequence_of(key)) {
                    true => Err(failure.as_mapped()),
                    false => {
                        let keys = [key.clone()].into();
                        self.store.apply(&StorageEffect::DeleteObjects { id, keys, time_limit });
                        Ok(())
                    }
                };
                let results = keys.iter().map(|key| (key.clone(), delete(key))).collect();
                StorageAnswer::DeleteResult { id, results }
            }
        };
        self.handle([Event::Storage(answer)]);
    }

    /// As a shell does: what is there at once is handed in, as far as it is not held back, and then
    /// comes a tick, if one is due.
    fn handle(&mut self, events: impl IntoIterator<Item = Event<usize>>) {
        let takes_appends = self.held.is_empty() && self.writer.accepts_appends();
        let events: Vec<_> = events.into_iter().collect();
        // A check costs a walk over everything.
        let few = events.len() < 100;
        for event in events {
            if is_held_back(&event) && !takes_appends {
                self.held.push_back(event);
            } else {
                self.writer.handle(self.now, event);
                if few {
                    self.writer.check();
                }
            }
        }
        self.writer.check();
        self.hand_over();
        if self.writer.next_tick().is_some_and(|at| at <= self.now) {
            self.writer.handle(self.now, Event::Tick);
            self.writer.check();
        }
        self.drain();
        if !self.held.is_empty() && self.writer.accepts_appends() {
            self.handle([]);
        }
    }

    fn hand_over(&mut self) {
        while self.writer.accepts_appends()
            && let Some(event) = self.held.pop_front()
        {
            self.writer.handle(self.now, event);
            self.writer.check();
        }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.writer.poll_effect() {
            match effect {
                Effect::Storage(effect) => self.pending.push(Request::new(self.now, effect)),
                Effect::Ack { waiter, answer } => self.answered(
                    waiter,
                    match answer {
                        Answer::Appended(ids) => say::appended(&ids),
                        Answer::Done | Answer::Verdict(_) => "ok".into(),
                    },
                ),
                Effect::FailWaiters { waiters, error, outcome } => {
                    for waiter in waiters {
                        let failed = match self.writes.contains(&waiter) {
                            true => say::append_failed(&error, outcome),
                            false => say::failed(&error),
                        };
                        self.answered(waiter, failed);
                    }
                }
                Effect::Durable { .. } | Effect::Notice(_) => {}
            }
        }
    }

    fn answered(&mut self, waiter: usize, answer: String) {
        if !self.dropped.contains(&waiter) {
            self.answers.push((waiter as u32, answer));
        }
    }

    fn pass(&mut self, until: Time) {
        loop {
            let timeout = self.pending.iter().map(|request| request.deadline).min();
            let next = [timeout, self.writer.next_tick()].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            let over = self.pending.iter().position(|request| request.deadline <= at);
            match over.map(|over| self.pending.remove(over)) {
                Some(request) => {
                    let error = sealog_core::StoreError::new(sealog_core::StoreErrorKind::TimedOut);
                    let answer = request.effect.failed(error);
                    self.adrift.extend(request.abandon());
                    self.handle([Event::Storage(answer)]);
                }
                None => self.handle([]),
            }
        }
        self.now = until;
    }

    /// Appends once more, and says what comes of it.
    fn probe(&mut self) -> String {
        let (asked, answered) = (self.pending.len(), self.answers.len());
        let append = Append::One(PROBE, Bytes::from_static(b"probe"));
        let (probe, flush) = (self.calls + 1, self.calls + 2);
        self.writes.insert(probe);
        self.handle([Event::Append { append, waiter: probe }, Event::Flush { waiter: flush }]);
        let answers = self.answers[answered..].iter().filter(|(call, _)| *call == probe as u32);
        let failed = answers.map(|(_, answer)| answer).find(|answer| answer.contains(','));
        match (failed, self.pending.get(asked)) {
            (Some(failed), _) => failed.clone(),
            (None, Some(request)) => format!("goes to {}", sequence_of(request.effect.key())),
            (None, None) => "waits".into(),
        }
    }
}

/// The key of the object at a sequence.
pub(super) fn key(sequence: u64) -> String {
    format!("{PREFIX}/objects/{sequence:020}.wal")
}

/// The sequence of a key, 0 of a listing.
pub(super) fn sequence_of(key: &str) -> u64 {
    let name = key.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(".wal").parse().unwrap_or_default()
}

/// What a shell holds back while the machine takes no appends.
fn is_held_back(event: &Event<usize>) -> bool {
    matches!(
        event,
        Event::Append { .. }
            | Event::Release { .. }
            | Event::ReleaseAll { .. }
            | Event::Flush { .. }
    )
}

fn is_of(effect: &StorageEffect, sequence: u64) -> bool {
    **effect.key() == key(sequence)
}

/// Puts something at a key, behind the log's back.
pub(super) fn plant(store: &mut ModelStore, key: &str, bytes: Bytes) {
    let answer = store.apply(&StorageEffect::PutObject {
        id: RequestId(u64::MAX),
        key: key.into(),
        payload: say::payload(bytes),
        time_limit: Duration::MAX,
    });
    let created = matches!(answer, StorageAnswer::CreateResult { result: Ok(()), .. });
    assert!(created, "something stands at {key}");
}
