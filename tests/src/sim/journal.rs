//! The journal: what was asked of the log, what it sent to the store, and what it answered. It is
//! the checkers' own model of the log, written from DESIGN.md: nothing here asks a machine what
//! ought to be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::{Answer, Append, Appended, Notice, Payload};
use sealog_core::format::{Header, Object};
use sealog_core::{
    EntryId, Epoch, Error, Key, Link, ObjectSeq, Options, Outcome, RegionId, Stats, Time,
};

use super::tally::{Reached, Tally};
use crate::model::ModelStore;

/// The number of a call, which the machines carry as the waiter.
pub type Waiter = usize;

/// Something that the log must never do, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// What a check says.
pub type Checked<T = ()> = Result<T, Violation>;

macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            return Err($crate::sim::Violation(format!($($said)+)));
        }
    };
}
pub(super) use ensure;

/// Everything that happened, by every instance.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    calls: Vec<Call>,
    pub(super) appends: Vec<AppendRecord>,
    pub(super) sent: BTreeMap<Link, SentObject>,
    pub(super) instances: BTreeMap<usize, InstanceRecord>,
    /// History as it must be: what was acknowledged, and what an opening brought back.
    pub(super) log: BTreeMap<RegionId, BTreeMap<EntryId, Place>>,
    /// What the instance that runs was told is obsolete.
    pub(super) watermarks: BTreeMap<RegionId, EntryId>,
    /// How often what was reached: a simulation that reaches nothing shows nothing.
    pub tally: Tally,
}

/// An entry: the append, and its place in it.
pub(super) type Place = (usize, usize);

#[derive(Clone, Debug)]
struct Call {
    instance: usize,
    what: What,
    answered: bool,
}

#[derive(Clone, Debug)]
enum What {
    Append(usize),
    /// The appends that were admitted and not answered when it was called.
    Flush(Vec<usize>),
    Obsolete {
        region: RegionId,
        id: EntryId,
        pending: bool,
    },
    Stop,
}

#[derive(Clone, Debug)]
pub(super) struct AppendRecord {
    pub(super) instance: usize,
    append: Append,
    /// Its answer is known from the call alone.
    refused: Option<Refusal>,
    /// Ids must be above these, entry by entry.
    floors: Vec<EntryId>,
    /// The object that holds it, once a request with it was sent.
    pub(super) sent: Option<Link>,
    pub(super) ids: Vec<EntryId>,
    pub(super) fate: AppendFate,
}

/// What is known of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppendFate {
    /// Not answered.
    Pending,
    /// Not answered, or failed with an unknown outcome: the next opening decides.
    Unknown,
    /// Acknowledged, or brought back by an opening: it is part of history.
    InLog,
    /// It is not, and never will be.
    Out,
}

/// Why an append must fail at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Region,
    Size,
    Stopped,
}

/// An object of entries as it was put first.
#[derive(Clone, Debug)]
pub(super) struct SentObject {
    pub(super) instance: usize,
    pub(super) predecessor: Option<Link>,
    payload: Payload,
    first_attempt: Time,
    last_attempt: Time,
    attempts: u32,
    /// Where each of its entries comes from.
    pub(super) entries: BTreeMap<(RegionId, EntryId), Place>,
}

#[derive(Clone, Debug)]
pub(super) struct InstanceRecord {
    pub(super) start: Link,
    max_append_bytes: u64,
    max_in_flight: usize,
    retry_for: Duration,
    /// The valid appends in the order of their calls, which is the order of their admission.
    order: Vec<usize>,
    /// How many of them were admitted.
    admitted: usize,
    /// Those of them that are not answered.
    pending: BTreeSet<usize>,
    /// Those of them that no request was sent for, and that did not fail.
    unsent: VecDeque<usize>,
    /// What the next object links to.
    tail: Link,
    /// The last object that was acknowledged.
    pub(super) durable: Link,
    last_put: ObjectSeq,
    boundary: ObjectSeq,
    stopping: bool,
    stopped: bool,
    abandoned: bool,
    rolled_back: bool,
    /// The positions of watched regions that were told last.
    told: BTreeMap<RegionId, EntryId>,
}

impl Journal {
    /// An instance opened the log.
    pub(super) fn begin(&mut self, instance: usize, start: Link, options: &Options) -> Checked {
        ensure!(
            start.epoch == Epoch::claimed_at(start.sequence),
            "the start object is {start}, whose epoch is not one above its sequence"
        );
        let record = InstanceRecord {
            start,
            max_append_bytes: options.max_append_bytes,
            max_in_flight: options.max_in_flight as usize,
            retry_for: options.retry_for,
            order: Vec::new(),
            admitted: 0,
            pending: BTreeSet::new(),
            unsent: VecDeque::new(),
            tail: start,
            durable: start,
            last_put: start.sequence,
            boundary: ObjectSeq::ZERO,
            stopping: false,
            stopped: false,
            abandoned: false,
            rolled_back: false,
            told: BTreeMap::new(),
        };
        self.instances.insert(instance, record);
        self.watermarks.clear();
        Ok(())
    }

    /// An append is called.
    pub fn append(&mut self, instance: usize, append: &Append) -> Checked<Waiter> {
        let place = self.appends.len();
        let floors = append.entries().map(|(region, _)| self.watermark(region)).collect();
        let state = self.instance(instance)?;
        let size: u64 = append.entries().map(|(_, payload)| payload.len() as u64).sum();
        let refused = if state.stopping {
            Some(Refusal::Stopped)
        } else if append.entries().any(|(region, _)| region.is_reserved()) {
            Some(Refusal::Region)
        } else {
            (size > state.max_append_bytes).then_some(Refusal::Size)
        };
        if refused.is_none() && append.entries().len() > 0 {
            state.order.push(place);
            state.pending.insert(place);
            state.unsent.push_back(place);
        }
        self.appends.push(AppendRecord {
            instance,
            append: append.clone(),
            refused,
            floors,
            sent: None,
            ids: Vec::new(),
            fate: AppendFate::Pending,
        });
        Ok(self.call(instance, What::Append(place)))
    }

    /// A flush is called.
    pub fn flush(&mut self, instance: usize) -> Checked<Waiter> {
        let state = self.instance(instance)?;
        let admitted = state.order[..state.admitted].iter();
        let waits = admitted.filter(|place| state.pending.contains(place)).copied().collect();
        Ok(self.call(instance, What::Flush(waits)))
    }

    /// An obsolete is called.
    pub fn obsolete(&mut self, instance: usize, region: RegionId, id: EntryId) -> Checked<Waiter> {
        let appends = &self.appends;
        let state = of(&self.instances, instance)?;
        let has = |place: &usize| appends[*place].append.entries().any(|(of, _)| of == region);
        let pending = state.order[..state.admitted]
            .iter()
            .any(|place| state.pending.contains(place) && has(place));
        Ok(self.call(instance, What::Obsolete { region, id, pending }))
    }

    /// A stop is called.
    pub fn stop(&mut self, instance: usize) -> Checked<Waiter> {
        self.instance(instance)?.stopping = true;
        Ok(self.call(instance, What::Stop))
    }

    /// The `back`th last acknowledged id of a region.
    pub fn acknowledged(&self, region: RegionId, back: usize) -> Option<EntryId> {
        self.log.get(&region)?.keys().rev().nth(back).copied()
    }

    /// A put is sent.
    pub(super) fn put(
        &mut self,
        instance: usize,
        now: Time,
        key: &Key,
        payload: &Payload,
    ) -> Checked {
        let first = payload.chunks().first().map_or(&[][..], |chunk| chunk);
        let header = Header::decode(first)
            .map_err(|error| Violation(format!("{key} was put without a header: {error}")))?;
        let link = header.link();
        ensure!(key.ends_with(&format!("{:020}.wal", link.sequence.0)), "{link} was put at {key}");
        if let Some(before) = self.sent.get_mut(&link) {
            ensure!(before.instance == instance, "{link} was put by two instances");
            ensure!(before.payload == *payload, "{link} was put again with other bytes");
            let (earliest, latest) = before.next_attempt(of(&self.instances, instance)?.retry_for);
            ensure!(
                earliest <= now && now <= latest,
                "{link} was put again at {now:?}, not between {earliest:?} and {latest:?}"
            );
            (before.last_attempt, before.attempts) = (now, before.attempts + 1);
            return Ok(());
        }
        let live = self.first_live();
        let state = self.instance(instance)?;
        ensure!(!state.stopping, "{link} was put for the first time after stop");
        ensure!(link.epoch == state.start.epoch, "{link} is not of {}", state.start);
        ensure!(link.sequence > state.last_put, "{link} does not come after {}", state.last_put);
        ensure!(
            header.predecessor == Some(state.tail),
            "{link} links to {:?}, not to {}",
            header.predecessor,
            state.tail
        );
        ensure!(header.boundary >= state.boundary, "{link}: the boundary moved down");
        ensure!(
            live.is_none_or(|live| header.boundary <= live),
            "{link} carries the boundary {}, and {live:?} is needed",
            header.boundary
        );
        (state.last_put, state.tail, state.boundary) = (link.sequence, link, header.boundary);
        let entries = self.expect_content(instance, link, payload)?;
        let predecessor = header.predecessor;
        let sent = SentObject {
            instance,
            predecessor,
            payload: payload.clone(),
            first_attempt: now,
            last_attempt: now,
            attempts: 1,
            entries,
        };
        self.sent.insert(link, sent);
        Ok(())
    }

    /// A new object holds exactly the appends that come next, whole, each region's entries in
    /// their order at the positions from 1.
    fn expect_content(
        &mut self,
        instance: usize,
        link: Link,
        payload: &Payload,
    ) -> Checked<BTreeMap<(RegionId, EntryId), Place>> {
        let object = Object::decode(&payload.to_bytes())
            .map_err(|error| Violation(format!("{link} was put damaged: {error}")))?;
        let count: usize = object.segments.iter().map(|(_, entries)| entries.len()).sum();
        ensure!(count > 0, "{link} holds no entry");
        let mut expected: BTreeMap<RegionId, Vec<(EntryId, Bytes)>> = BTreeMap::new();
        let mut places = BTreeMap::new();
        while places.len() < count {
            let Some(next) = self.instance(instance)?.unsent.pop_front() else { break };
            let record = &mut self.appends[next];
            record.sent = Some(link);
            for (place, (region, payload)) in record.append.entries().enumerate() {
                let entries = expected.entry(region).or_default();
                let id = EntryId::new(link.sequence, entries.len() as u32 + 1)
                    .ok_or_else(|| Violation(format!("{link} has no position left")))?;
                entries.push((id, payload.clone()));
                places.insert((region, id), (next, place));
                record.ids.push(id);
                let floor = record.floors[place];
                ensure!(id > floor, "id {id} of region {region} was obsolete before: {floor}");
            }
        }
        let holds: BTreeMap<RegionId, Vec<(EntryId, Bytes)>> = object
            .segments
            .into_iter()
            .map(|(meta, entries)| {
                (meta.region, entries.into_iter().map(|entry| (entry.id, entry.payload)).collect())
            })
            .collect();
        ensure!(holds == expected, "{link} does not hold the appends that come next, whole");
        Ok(places)
    }

    /// A waiter is answered.
    pub(super) fn ack(&mut self, waiter: Waiter, answer: &Answer, store: &ModelStore) -> Checked {
        let Call { instance, what, .. } = self.answer(waiter)?;
        match (what, answer) {
            (What::Append(place), Answer::Appended(ids)) => {
                self.acknowledge(instance, place, ids, store)
            }
            (What::Flush(waits), Answer::Done) => {
                let fates = &self.appends;
                let open = waits.iter().find(|place| fates[**place].fate != AppendFate::InLog);
                ensure!(open.is_none(), "flush {waiter} returned before append {open:?}");
                Ok(())
            }
            (What::Obsolete { region, id, .. }, Answer::Done) => {
                let state = self.instance(instance)?;
                ensure!(!state.stopped, "obsolete {waiter} was done after stop");
                let raises = id.sequence() > state.last_put.next();
                self.tally.count_if(raises, Reached::Floor);
                let watermark = self.watermarks.entry(region).or_default();
                *watermark = id.max(*watermark);
                Ok(())
            }
            (What::Stop, Answer::Done) => {
                let state = self.instance(instance)?;
                ensure!(state.pending.is_empty(), "stopped, with {:?} pending", state.pending);
                state.stopped = true;
                Ok(())
            }
            (what, answer) => Err(Violation(format!("{what:?} was answered with {answer:?}"))),
        }
    }

    fn acknowledge(
        &mut self,
        instance: usize,
        place: usize,
        ids: &Appended,
        store: &ModelStore,
    ) -> Checked {
        let record = &mut self.appends[place];
        let (entries, refused) = (record.append.entries().len(), record.refused);
        ensure!(refused.is_none(), "append {place} was acknowledged, not refused: {refused:?}");
        let alike = matches!(
            (&record.append, ids),
            (Append::One(..), Appended::One(_)) | (Append::Many(_), Appended::Many(_))
        );
        ensure!(alike, "append {place} was answered with {ids:?}");
        record.fate = AppendFate::InLog;
        if entries == 0 {
            ensure!(ids.ids().is_empty(), "an empty append got {ids:?}");
            return Ok(());
        }
        let Some(link) = record.sent else {
            return Err(Violation(format!("append {place} was acknowledged and never sent")));
        };
        ensure!(
            record.ids == ids.ids(),
            "append {place} was acknowledged with {ids:?}, and {link} holds {:?}",
            record.ids
        );
        let ids = record.ids.clone();
        let regions: Vec<_> = record.append.entries().map(|(region, _)| region).collect();
        for (at, (region, id)) in regions.into_iter().zip(ids).enumerate() {
            let log = self.log.entry(region).or_default();
            let last = log.keys().next_back().copied().unwrap_or_default();
            ensure!(last < id, "region {region} got id {id} after {last}");
            log.insert(id, (place, at));
        }
        let stored = store.objects().find(|(key, _)| is_key_of(key, link));
        let stored = stored.map(|(_, bytes)| bytes);
        let sent = self.sent.get(&link).map(|sent| sent.payload.to_bytes());
        ensure!(
            stored.is_some() && stored == sent.as_ref(),
            "append {place} was acknowledged, and {link} is not stored"
        );
        self.tally.count(Reached::Acknowledged);
        let state = self.instance(instance)?;
        let earlier = state.pending.first().copied().filter(|first| *first != place);
        ensure!(earlier.is_none(), "append {place} was acknowledged before {earlier:?}");
        state.pending.remove(&place);
        ensure!(link.sequence >= state.durable.sequence, "{link} came after {}", state.durable);
        state.durable = link;
        Ok(())
    }

    /// Waiters fail.
    pub(super) fn fail(&mut self, waiters: &[Waiter], error: &Error, outcome: Outcome) -> Checked {
        for waiter in waiters {
            let Call { instance, what, .. } = self.answer(*waiter)?;
            let of_stop = matches!(error, Error::Stopped);
            let fits = match error {
                Error::Stopped | Error::Store { .. } | Error::Conflict { .. } => true,
                Error::InvalidRegion { region } => match what {
                    What::Append(_) => true,
                    What::Obsolete { region: of, .. } => of == *region && of.is_reserved(),
                    What::Flush(_) | What::Stop => false,
                },
                Error::AppendTooLarge { .. } => matches!(what, What::Append(_)),
                Error::Unsettled { .. } => matches!(what, What::Obsolete { pending: true, .. }),
                Error::SequenceExhausted => matches!(
                    what,
                    What::Obsolete { id, .. } if !id.sequence().next().is_valid()
                ),
                _ => false,
            };
            ensure!(fits, "{what:?} failed: {error}");
            match what {
                What::Append(place) => self.fail_append(instance, place, error, outcome)?,
                What::Flush(_) | What::Obsolete { .. } => {}
                What::Stop => {
                    ensure!(of_stop && self.instance(instance)?.abandoned, "stop failed: {error}")
                }
            }
            ensure!(
                !of_stop || self.instance(instance)?.stopping,
                "call {waiter} failed as stopped, and nobody called stop"
            );
        }
        Ok(())
    }

    fn fail_append(
        &mut self,
        instance: usize,
        place: usize,
        error: &Error,
        outcome: Outcome,
    ) -> Checked {
        let record = &mut self.appends[place];
        ensure!(
            record.sent.is_some() == (outcome == Outcome::Unknown),
            "append {place} failed as {outcome:?}, and it was sent in {:?}",
            record.sent
        );
        match outcome {
            Outcome::Unknown => self.tally.count(Reached::Unknown),
            Outcome::NotWritten => self.tally.count(Reached::NotWritten),
        }
        record.fate = match outcome {
            Outcome::Unknown => AppendFate::Unknown,
            Outcome::NotWritten => AppendFate::Out,
        };
        let refusal = match error {
            Error::InvalidRegion { .. } => Some(Refusal::Region),
            Error::AppendTooLarge { .. } => Some(Refusal::Size),
            _ => None,
        };
        match record.refused {
            None => ensure!(refusal.is_none(), "append {place} is valid, and failed: {error}"),
            Some(Refusal::Stopped) => {
                ensure!(matches!(error, Error::Stopped), "append {place} after stop: {error}");
            }
            expected => ensure!(refusal == expected, "append {place} failed: {error}"),
        }
        if record.refused.is_none() {
            let state = self.instance(instance)?;
            let earlier = state.pending.first().copied().filter(|first| *first != place);
            ensure!(
                earlier.is_none() || state.stopping,
                "append {place} failed before {earlier:?} was answered"
            );
            state.pending.remove(&place);
            state.unsent.retain(|unsent| *unsent != place);
        }
        Ok(())
    }

    /// The operator is told something.
    pub(super) fn notice(
        &mut self,
        instance: usize,
        now: Time,
        notice: &Notice,
        store: &ModelStore,
    ) -> Checked {
        match notice {
            Notice::RolledBack { error, .. } => {
                self.tally.count(Reached::RolledBack);
                if let Error::Conflict { key } = error {
                    self.tally.count(Reached::Conflict);
                    let held = store.get(key).and_then(|bytes| Header::decode(bytes).ok());
                    let ours = self.instance(instance)?.start.epoch;
                    ensure!(
                        held.is_some_and(|header| header.epoch < ours),
                        "{key} holds {held:?}, which is no conflict"
                    );
                }
                if let Error::Store { key, source, .. } = error
                    && source.is_retryable()
                {
                    self.may_give_up(instance, now, key)?;
                }
                let state = self.instance(instance)?;
                state.rolled_back = true;
                state.tail = state.durable;
                Ok(())
            }
            // Nobody else writes here, and nothing damages what is stored.
            Notice::Poisoned { error } => Err(Violation(format!("poisoned: {error}"))),
            _ => Ok(()),
        }
    }

    /// A create that failed in a way that may pass is not repeated any more.
    fn may_give_up(&self, instance: usize, now: Time, key: &Key) -> Checked {
        let state = of(&self.instances, instance)?;
        let mut sent = self.sent.iter().rev();
        let sent = sent.find(|(link, sent)| sent.instance == instance && is_key_of(key, **link));
        let Some((link, sent)) = sent else {
            return Err(Violation(format!("{key} was rolled back and never put")));
        };
        let (earliest, latest) = sent.next_attempt(state.retry_for);
        let next = earliest.max(now.after(delay(sent.attempts)));
        ensure!(next > latest, "{link} was given up at {now:?}, {latest:?} is not over");
        Ok(())
    }

    /// The durable position of a watched region is told.
    pub(super) fn told(&mut self, instance: usize, region: RegionId, id: EntryId) -> Checked {
        let durable = self.durable(region);
        let told = self.instance(instance)?.told.insert(region, id);
        ensure!(told.is_none_or(|told| told < id), "region {region}: {id} was told after {told:?}");
        ensure!(id <= durable, "region {region}: {id} was told durable, and {durable} is");
        Ok(())
    }

    /// A writer has handled one event and its effects were taken.
    pub(super) fn after_event(
        &mut self,
        instance: usize,
        stats: &Stats,
        requests: usize,
    ) -> Checked {
        let live = self.first_live();
        let Journal { instances, tally, .. } = self;
        let state = instances.get_mut(&instance).ok_or_else(unknown_instance)?;
        let admitted = stats.appends_total as usize;
        ensure!(
            state.admitted <= admitted && admitted <= state.order.len(),
            "{admitted} appends were admitted, of {}",
            state.order.len()
        );
        if state.rolled_back {
            let left =
                state.order[..state.admitted].iter().find(|place| state.pending.contains(place));
            ensure!(left.is_none(), "append {left:?} outlived a roll back");
            state.rolled_back = false;
        }
        tally.count_if(state.order.len() > admitted, Reached::Queued);
        state.admitted = admitted;
        ensure!(
            requests <= state.max_in_flight,
            "{requests} creates run at once, {} may",
            state.max_in_flight
        );
        let boundary = live.unwrap_or(state.durable.sequence.next());
        ensure!(
            stats.reclaim_boundary == boundary.0,
            "the reclaim boundary is {}, and should be {boundary}",
            stats.reclaim_boundary
        );
        for (region, told) in &state.told {
            let durable = last(&self.log, *region);
            ensure!(*told == durable, "region {region}: {durable} is durable, told was {told}");
        }
        Ok(())
    }

    /// A writer has nothing under way and wants no tick: everybody must be answered.
    pub(super) fn at_rest(&self, instance: usize) -> Checked {
        let open = self.calls.iter().position(|call| call.instance == instance && !call.answered);
        ensure!(open.is_none(), "nothing is left to do, and call {open:?} waits");
        Ok(())
    }

    /// An instance is gone, and with it what its calls waited for.
    pub(super) fn end(&mut self, instance: usize) {
        for call in self.calls.iter_mut().filter(|call| call.instance == instance) {
            call.answered = true;
        }
        for record in self.appends.iter_mut().filter(|record| record.instance == instance) {
            if record.fate == AppendFate::Pending {
                let sent = record.sent.is_some();
                record.fate = if sent { AppendFate::Unknown } else { AppendFate::Out };
            }
        }
    }

    /// A shell goes away in order: its calls are going to fail as they do after stop.
    pub(super) fn abandon(&mut self, instance: usize) -> Checked {
        let state = self.instance(instance)?;
        (state.stopping, state.abandoned) = (true, true);
        Ok(())
    }

    /// Whether appends of this instance wait to be admitted.
    pub fn is_queueing(&self, instance: usize) -> bool {
        let queued = |state: &InstanceRecord| {
            state.order[state.admitted..].iter().any(|place| state.pending.contains(place))
        };
        self.instances.get(&instance).is_some_and(queued)
    }

    /// Whether a stop of this instance was answered.
    pub fn is_stopped(&self, instance: usize) -> bool {
        self.instances.get(&instance).is_some_and(|state| state.stopped)
    }

    /// Whether a stop of this instance was called.
    pub fn is_stopping(&self, instance: usize) -> bool {
        self.instances.get(&instance).is_some_and(|state| state.stopping)
    }

    /// The largest sequence that an instance has put an object at.
    pub fn last_put(&self, instance: usize) -> ObjectSeq {
        self.instances.get(&instance).map_or(ObjectSeq::ZERO, |state| state.last_put)
    }

    /// The largest id of a region that is known to be durable.
    pub fn durable(&self, region: RegionId) -> EntryId {
        last(&self.log, region)
    }

    pub(super) fn watermark(&self, region: RegionId) -> EntryId {
        self.watermarks.get(&region).copied().unwrap_or_default()
    }

    pub(super) fn payload(&self, (append, entry): Place) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        self.appends[append].append.entries().nth(entry).map_or(&EMPTY, |(_, payload)| payload)
    }

    /// The first object that is still needed.
    fn first_live(&self) -> Option<ObjectSeq> {
        let first = |(region, log): (&RegionId, &BTreeMap<EntryId, Place>)| {
            let above = self.watermark(*region).next();
            log.range(above..).next().map(|(id, _)| id.sequence())
        };
        self.log.iter().filter_map(first).min()
    }

    fn call(&mut self, instance: usize, what: What) -> Waiter {
        self.calls.push(Call { instance, what, answered: false });
        self.calls.len() - 1
    }

    fn answer(&mut self, waiter: Waiter) -> Checked<Call> {
        let call = self.calls.get_mut(waiter);
        let call = call.ok_or_else(|| Violation(format!("call {waiter} was never made")))?;
        ensure!(!call.answered, "call {waiter}, {:?}, was answered twice", call.what);
        call.answered = true;
        Ok(call.clone())
    }

    fn instance(&mut self, instance: usize) -> Checked<&mut InstanceRecord> {
        self.instances.get_mut(&instance).ok_or_else(unknown_instance)
    }
}

impl SentObject {
    /// From when and until when it may be put again.
    fn next_attempt(&self, retry_for: Duration) -> (Time, Time) {
        (self.last_attempt.after(delay(self.attempts)), self.first_attempt.after(retry_for))
    }
}

/// After so many attempts: 100 ms, doubling to 5 s.
fn delay(attempts: u32) -> Duration {
    Duration::from_millis(100 << (attempts - 1).min(6)).min(Duration::from_secs(5))
}

fn is_key_of(key: &Key, link: Link) -> bool {
    key.ends_with(&format!("{:020}.wal", link.sequence.0))
}

fn of(instances: &BTreeMap<usize, InstanceRecord>, instance: usize) -> Checked<&InstanceRecord> {
    instances.get(&instance).ok_or_else(unknown_instance)
}

fn last(log: &BTreeMap<RegionId, BTreeMap<EntryId, Place>>, region: RegionId) -> EntryId {
    log.get(&region).and_then(|log| log.keys().next_back()).copied().unwrap_or_default()
}

fn unknown_instance() -> Violation {
    Violation("an instance that never opened".into())
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
