//! The journal: what was asked of the log, what it sent to the store, and what it answered. It is
//! the checkers' own model of the log, written from DESIGN.md: nothing here asks a machine what
//! ought to be.

mod answers;
mod index;
mod objects;
mod releases;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;
use sealog_core::event::{Append, Payload};
use sealog_core::read::SegmentRef;
use sealog_core::{EntryId, Epoch, Key, Link, ObjectSeq, Options, RegionId, Time};

use self::index::Index;
use self::releases::Releases;
use super::tally::Tally;

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
    /// What the instance that runs was told is obsolete, and assigns no id of again.
    floors: BTreeMap<RegionId, EntryId>,
    /// What is indexed.
    pub(super) index: Index,
    /// The appends, by their number, before which a region is released for good.
    pub(super) released: BTreeMap<RegionId, usize>,
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
        /// Entries of the region are admitted and not answered, and all of them are below the id.
        unsettled: bool,
    },
    Release {
        region: RegionId,
        in_full: bool,
        /// Entries of appends that were called before are released.
        place: usize,
    },
    /// A read of a segment failed.
    Verdict {
        segment: SegmentRef,
        /// Since the object was gone.
        gone: bool,
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
    /// What was the largest id handed out of its regions when it had been admitted.
    latest: BTreeMap<RegionId, EntryId>,
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
    Released,
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
    /// The reclaim boundary that it carries.
    pub(super) boundary: ObjectSeq,
    /// The regions that it releases, and through which id.
    pub(super) records: BTreeMap<RegionId, EntryId>,
    /// Where each of its entries comes from.
    pub(super) entries: BTreeMap<(RegionId, EntryId), Place>,
}

#[derive(Clone, Debug)]
pub(super) struct InstanceRecord {
    pub(super) start: Link,
    max_append_bytes: u64,
    max_in_flight: usize,
    retry_for: Duration,
    reclaim_interval: Duration,
    fence_retention: Duration,
    opened_at: Time,
    /// When an object without segments was put last.
    last_carrier: Option<Time>,
    /// What was put and is not indexed, in order.
    sealed: VecDeque<Link>,
    /// How many objects were indexed since the start object.
    indexed: u64,
    releases: Releases,
    /// Where objects of earlier epochs were found.
    conflicts: BTreeSet<Key>,
    /// The one object that follows a stop was put.
    last_object: bool,
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
    pub(super) fn begin(
        &mut self,
        instance: usize,
        now: Time,
        start: Link,
        options: &Options,
    ) -> Checked {
        ensure!(
            start.epoch == Epoch::claimed_at(start.sequence),
            "the start object is {start}, whose epoch is not one above its sequence"
        );
        let record = InstanceRecord {
            start,
            max_append_bytes: options.max_append_bytes,
            max_in_flight: options.max_in_flight as usize,
            retry_for: options.retry_for,
            reclaim_interval: options.reclaim_interval,
            fence_retention: options.fence_retention,
            opened_at: now,
            last_carrier: None,
            sealed: VecDeque::new(),
            indexed: 0,
            releases: Releases::in_full(self.index.released_in_full()),
            conflicts: BTreeSet::new(),
            last_object: false,
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
        self.watermarks = self.index.watermarks();
        self.floors.clear();
        Ok(())
    }

    /// An append is called.
    pub fn append(&mut self, instance: usize, append: &Append) -> Checked<Waiter> {
        let place = self.appends.len();
        let floor = |region| self.floors.get(&region).copied().unwrap_or_default();
        let floors = append.entries().map(|(region, _)| floor(region)).collect();
        let released = append.entries().any(|(region, _)| self.index.is_released_in_full(region));
        let state = self.instance(instance)?;
        let size: u64 = append.entries().map(|(_, payload)| payload.len() as u64).sum();
        let refused = if state.stopping {
            Some(Refusal::Stopped)
        } else if append.entries().any(|(region, _)| region.is_reserved()) {
            Some(Refusal::Region)
        } else if released {
            Some(Refusal::Released)
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
            latest: BTreeMap::new(),
            fate: AppendFate::Pending,
        });
        Ok(self.call(instance, What::Append(place)))
    }

    /// After an append was called: if it was admitted at once, its ids are the largest that were
    /// handed out.
    pub fn handed_out(&mut self, waiter: Waiter, latest: impl Fn(RegionId) -> EntryId) -> Checked {
        let Some(Call { instance, what: What::Append(place), .. }) = self.calls.get(waiter) else {
            return Ok(());
        };
        let state = of(&self.instances, *instance)?;
        if state.order[..state.admitted].last() == Some(place) && state.pending.contains(place) {
            let record = &mut self.appends[*place];
            let regions = record.append.entries().map(|(region, _)| (region, latest(region)));
            record.latest = regions.collect();
            return record.check_latest();
        }
        Ok(())
    }

    /// A flush is called.
    pub fn flush(&mut self, instance: usize) -> Checked<Waiter> {
        let state = self.instance(instance)?;
        let admitted = state.order[..state.admitted].iter();
        let waits = admitted.filter(|place| state.pending.contains(place)).copied().collect();
        Ok(self.call(instance, What::Flush(waits)))
    }

    /// An obsolete is called, when `latest` is the largest id of the region that was handed out.
    pub fn obsolete(
        &mut self,
        instance: usize,
        region: RegionId,
        id: EntryId,
        latest: EntryId,
    ) -> Checked<Waiter> {
        let appends = &self.appends;
        let state = of(&self.instances, instance)?;
        let has = |place: &usize| appends[*place].append.entries().any(|(of, _)| of == region);
        let mut admitted = state.order[..state.admitted].iter();
        let pending = admitted.any(|place| state.pending.contains(place) && has(place));
        let unsettled = pending && id > latest;
        Ok(self.call(instance, What::Obsolete { region, id, unsettled }))
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

    /// What is above the watermark of a region.
    pub(super) fn above(&self, region: RegionId) -> (Bound<EntryId>, Bound<EntryId>) {
        (Bound::Excluded(self.watermark(region)), Bound::Unbounded)
    }

    pub(super) fn payload(&self, (append, entry): Place) -> &Bytes {
        static EMPTY: Bytes = Bytes::new();
        self.appends[append].append.entries().nth(entry).map_or(&EMPTY, |(_, payload)| payload)
    }

    /// The first object that is still needed.
    fn first_live(&self) -> Option<ObjectSeq> {
        let first = |(region, log): (&RegionId, &BTreeMap<EntryId, Place>)| {
            log.range(self.above(*region)).next().map(|(id, _)| id.sequence())
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

impl AppendRecord {
    /// The ids it got are those that were said to be handed out.
    fn check_latest(&self) -> Checked {
        let regions = self.append.entries().map(|(region, _)| region);
        let last: BTreeMap<_, _> = regions.zip(self.ids.iter().copied()).collect();
        ensure!(
            self.latest.is_empty() || last.is_empty() || self.latest == last,
            "the latest ids were said to be {:?}, and are {last:?}",
            self.latest
        );
        Ok(())
    }
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
