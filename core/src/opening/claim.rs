//! Claiming what is free behind the tip, where every older writer would have to pass (DESIGN.md
//! section 12, rules 1 and 2).

#![allow(clippy::single_range_in_vec_init, reason = "holes are ranges, and one may be alone")]

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use super::examine::{Examination, Examined};
use super::recover::{Recovery, boundary, exhausted_by, names};
use super::requests::{Ask, Purpose, Request};
use super::start::{encode, record};
use super::{Listing, Opening, Phase, unsettled};
use crate::backoff::Backoff;
use crate::error::{DecodeError, Error, Operation, Part, StoreError, StoreErrorKind};
use crate::event::Notice;
use crate::format::Header;
use crate::key::Key;
use crate::types::{Epoch, Link, ObjectSeq};

/// No claim is put further ahead than this.
const FURTHEST: u64 = 65_536;

/// So many claims are made by one opening at most, which remembers each.
const MOST_CLAIMS: u64 = 1 << 20;

/// No log leaves more sequences free than this: a floor is raised by at most 2^20.
const MOST_HOLES: u64 = 1 << 24;

/// The claims of one round, between two listings.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    /// What the listing before them showed.
    before: Before,
    boundary: ObjectSeq,
    /// The tip of that listing: without rule 1, claims link to it.
    tip: Option<Link>,
    /// Not asked for yet, ascending.
    waiting: VecDeque<Range<u64>>,
    under_way: BTreeMap<ObjectSeq, UnderWay>,
    /// How many were created.
    created: u64,
    /// Where something stood already.
    lost: Option<ObjectSeq>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    header: Header,
    /// No earlier round put a claim there of which it is not known what came.
    is_first: bool,
}

/// What came before the claims of a round, and comes after them.
#[derive(Clone, Debug)]
enum Before {
    /// A whole listing; then comes another.
    Recovered(Box<Recovery>),
    /// A listing that has not settled; it goes on behind this key.
    Unsettled(Box<Listing>, Option<Key>),
}

/// What an opening remembers of its claims from one listing to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Claimed {
    /// Claims that were created, and must be shown by every listing from then on.
    pub(super) created: BTreeMap<ObjectSeq, u64>,
    /// Where the store said that something stands, and no listing has shown it since: with the delay
    /// before the next attempt there.
    phantoms: BTreeMap<ObjectSeq, Backoff>,
    /// Where something stood when a claim came, in the round before.
    lost: Option<ObjectSeq>,
    /// How many rounds were lost to objects of writers.
    losses: u32,
    /// Of which epoch the last of these was.
    met: Option<Epoch>,
    /// The last round was, so one claim of the next goes ahead.
    goes_ahead: bool,
    /// How many claims were put ahead of listings that did not settle.
    unsettled: u32,
    /// How many of these found that something stood there already.
    overtaken: u32,
}

impl Claimed {
    /// Whether something stood where a claim of the last round was to stand.
    pub(super) fn was_lost(&self) -> bool {
        self.lost.is_some()
    }
}

impl Opening {
    /// A client that repeats below us answers "exists" of what it has just created: such a claim was
    /// created like any other, and is no start again.
    pub(super) fn know_own_claims(&mut self, examination: &Examination) {
        let nonce = self.own.identity.nonce;
        let is_own = |object: &Examined| {
            let header = object.header;
            header.links_to_itself() && object.writer.as_ref().is_some_and(|w| w.nonce == nonce)
        };
        let claims = &mut self.own.claims;
        let own = claims.phantoms.keys().filter_map(|sequence| {
            let object = examination.object(*sequence).filter(|object| is_own(object))?;
            Some((*sequence, object.size))
        });
        for (sequence, size) in own.collect::<Vec<_>>() {
            claims.phantoms.remove(&sequence);
            claims.created.insert(sequence, size);
            self.own.put.insert(sequence);
            if claims.lost == Some(sequence) {
                claims.lost = None;
                self.restarts = self.restarts.saturating_sub(1);
            }
        }
    }

    /// Sees what a listing shows where claims found something, and tells the operator.
    pub(super) fn meet_what_was_lost_to(&mut self) {
        let claims = &mut self.own.claims;
        claims.phantoms.retain(|sequence, _| !self.known.contains_key(sequence));
        let Some(sequence) = claims.lost.take() else { return };
        let key = self.prefix.object_key(sequence);
        let Some(object) = self.known.get(&sequence) else {
            return self.notice(Notice::OpeningRetries { error: shown_by_none(key) });
        };
        let epoch = object.header.epoch;
        if !object.header.links_to_itself() {
            claims.losses += 1;
            claims.goes_ahead = true;
            claims.met = Some(epoch);
        }
        self.notice(Notice::OpeningAgain { key, epoch });
    }

    /// Claims these sequences, and if an earlier claim was lost to a writer that goes on, one ahead
    /// of it: far enough that the writer is still behind it when this opening comes to it.
    pub(super) fn claim(&mut self, holes: &[Range<u64>], recovery: Recovery) {
        let next = holes.first().map_or(0, |hole| hole.start);
        let last = holes.last().map_or(0, |hole| hole.end - 1);
        let (tip, room) =
            (recovery.tip, recovery.next_sequence_after(ObjectSeq(last), &self.known));
        let (Some(tip), Some(_)) = (tip, room) else {
            return self.exhausted();
        };
        self.suspicion = None;
        if let Some(error) = self.too_many(holes) {
            return self.fail(error);
        }
        let mut waiting: VecDeque<_> = holes.iter().cloned().collect();
        let losses = self.own.claims.losses;
        let goes_ahead = core::mem::take(&mut self.own.claims.goes_ahead);
        if goes_ahead && self.rules.claims_go_ahead && !self.is_stopped_from(ObjectSeq(next)) {
            let far = (2 * self.came).max(2).saturating_mul(1 << (losses - 1).min(16));
            let largest = recovery.listed.last().map_or(0, |largest| largest.0);
            let ahead = next.max(last).max(largest) + far.min(FURTHEST);
            if recovery.next_sequence_after(ObjectSeq(ahead), &self.known).is_some() {
                // Right behind the first, since it is what stops the writer.
                let first = waiting.pop_front().unwrap_or(next..next + 1);
                waiting.push_front(first.start + 1..first.end);
                waiting.push_front(ahead..ahead + 1);
                waiting.push_front(first.start..first.start + 1);
            }
        }
        self.put_claims(Claims {
            boundary: boundary(&self.known, tip),
            before: Before::Recovered(Box::new(recovery)),
            tip: Some(tip),
            waiting,
            under_way: BTreeMap::new(),
            created: 0,
            lost: None,
        });
    }

    /// Whether a claim stands somewhere from here on that stops every writer of what is there: it will
    /// come to it, so that one further ahead would only make more holes.
    fn is_stopped_from(&self, next: ObjectSeq) -> bool {
        let epoch = self.tip_epoch();
        let stops = |header: &Header| header.links_to_itself() && header.epoch > epoch;
        self.known.range(next..).any(|(_, object)| stops(&object.header))
    }

    /// Why these are more holes than this opening claims, if they are. Each is one request and stands
    /// for good, so another opening goes on from there; but what no log leaves behind is not begun.
    fn too_many(&self, holes: &[Range<u64>]) -> Option<Error> {
        let free: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
        let largest = holes.iter().max_by_key(|hole| hole.end - hole.start)?;
        let key = self.prefix.object_key(ObjectSeq(largest.end));
        if free > MOST_HOLES {
            let reason = format!(
                "expected it within {MOST_HOLES} sequences of the objects below it, found {free} free \
                 ones: each would have to be claimed before the log can be opened"
            );
            return Some(Error::corrupted(key, DecodeError::new(Part::Object, reason)));
        }
        if (self.own.claims.created.len() as u64) < MOST_CLAIMS {
            return None;
        }
        let text = format!(
            "{MOST_CLAIMS} sequences were claimed by this opening, and {free} are free still, most of \
             them below {key}: the next opening goes on from there"
        );
        let source = StoreError::with_text(StoreErrorKind::Transient, text);
        Some(Error::Store { operation: Operation::Create, key, source })
    }

    /// A listing does not settle, since a writer is at work: a claim ahead of it stops the writer.
    /// The listing then goes on behind `after`. Not at the first two times: something may have come by
    /// itself, or other openings are at it, which are through after a moment.
    pub(super) fn claim_ahead_of(&mut self, largest: ObjectSeq, after: Option<Key>) -> bool {
        if !self.rules.claims_go_ahead {
            return false;
        }
        let claims = &mut self.own.claims;
        // One stands there already, which no writer passes: another would leave holes for nothing.
        if claims.created.last_key_value().is_some_and(|(own, _)| *own >= largest) {
            return false;
        }
        claims.unsettled += 1;
        let Phase::Listing(listing) = &self.phase else { return false };
        // Further each time; far beyond that only for what is written so fast, since whatever lies
        // between is claimed in the end.
        let far = (2 * listing.came()).max(1 << (claims.unsettled - 1).min(6));
        let far = far.saturating_mul(1 << claims.overtaken.min(2));
        let far = far.min(FURTHEST);
        let ahead = largest.0.saturating_add(far);
        if claims.unsettled <= 2 || !ObjectSeq(ahead).next().is_valid() {
            return false;
        }
        let Phase::Listing(listing) = core::mem::replace(&mut self.phase, Phase::Ended) else {
            return false;
        };
        self.put_claims(Claims {
            before: Before::Unsettled(listing, after),
            boundary: ObjectSeq::ZERO,
            tip: None,
            waiting: core::iter::once(ahead..ahead + 1).collect(),
            under_way: BTreeMap::new(),
            created: 0,
            lost: None,
        });
        true
    }

    fn put_claims(&mut self, mut claims: Claims) {
        let most = MOST_CLAIMS.saturating_sub(self.own.claims.created.len() as u64) as usize;
        while claims.under_way.len() < self.rules.claims_at_once.min(most) && claims.lost.is_none()
        {
            let Some(sequence) = claims.take_next() else { break };
            self.put_claim(sequence, &mut claims);
        }
        let is_done = claims.under_way.is_empty();
        self.phase = Phase::Claiming(Box::new(claims));
        if is_done {
            self.claims_ended();
        }
    }

    fn put_claim(&mut self, sequence: ObjectSeq, claims: &mut Claims) {
        let itself = Link { sequence, epoch: Epoch::claimed_at(sequence) };
        let links_to = if self.rules.claims_link_to_themselves { Some(itself) } else { claims.tip };
        let header = Header {
            sequence,
            epoch: itself.epoch,
            predecessor: links_to,
            boundary: claims.boundary.min(sequence),
        };
        let record = record(&self.options, &self.own.identity);
        let key = self.prefix.object_key(sequence);
        let put = Ask::Put(encode(&header, &record).0);
        let request = Request::new(Purpose::Claim(sequence), key, put);
        let is_first = self.own.put.insert(sequence);
        claims.under_way.insert(sequence, UnderWay { header, is_first });
        match self.own.claims.phantoms.get_mut(&sequence) {
            Some(backoff) => {
                let due = self.now.after(backoff.next());
                self.requests.delay(request, due);
            }
            None => self.requests.push(request),
        }
    }

    pub(super) fn claim_answered(&mut self, request: Request, answer: Result<(), StoreError>) {
        let (Phase::Claiming(claims), Purpose::Claim(sequence)) =
            (&mut self.phase, request.purpose)
        else {
            return;
        };
        match answer {
            Ok(()) => {
                claims.created += 1;
                let put = claims.under_way.remove(&sequence);
                self.claim_created(put.map(|put| put.header));
            }
            Err(failure) if failure.kind == StoreErrorKind::Exists => {
                let put = claims.under_way.remove(&sequence);
                self.own.claims.phantoms.entry(sequence).or_insert_with(Backoff::new);
                // It may be our own, whose answer was lost: the next listing tells.
                if !request.repeated {
                    claims.lost.get_or_insert(sequence);
                    if put.is_some_and(|put| put.is_first) {
                        self.own.put.remove(&sequence);
                    }
                }
            }
            Err(failure) if failure.kind == StoreErrorKind::NotSupported => {
                return self.fail(Error::UnsafeStore { key: request.key });
            }
            Err(failure) if failure.is_retryable() => {
                let mut request = request;
                let delay = request.backoff.next();
                return self.try_later(request, delay, failure);
            }
            Err(failure) => {
                let is_first = claims.under_way.get(&sequence).is_some_and(|put| put.is_first);
                if !request.repeated && is_first {
                    self.own.put.remove(&sequence);
                }
                return self.fail(request.failed(failure));
            }
        }
        if let Phase::Claiming(claims) = core::mem::replace(&mut self.phase, Phase::Ended) {
            self.put_claims(*claims);
        }
    }

    /// Our own claim need not be read.
    fn claim_created(&mut self, header: Option<Header>) {
        let Some(header) = header else { return };
        let record = record(&self.options, &self.own.identity);
        let (payload, segments) = encode(&header, &record);
        let size = payload.len();
        let object =
            Examined { header, size, segments, releases: None, writer: Some(Box::new(record)) };
        self.known.insert(header.sequence, object);
        self.unlisted.insert(header.sequence);
        self.own.claims.created.insert(header.sequence, size);
    }

    /// Whatever the claims found at their keys, only another listing tells what that means.
    fn claims_ended(&mut self) {
        let Phase::Claiming(claims) = core::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        let Claims { before, created, lost, .. } = *claims;
        self.own.claims.lost = lost;
        if matches!(before, Before::Unsettled(..)) {
            self.own.claims.overtaken += u32::from(lost.is_some());
        }
        // Each round with nothing but claims that stand closes holes for good. Of those ahead of a
        // listing that does not settle, the furthest should have stopped whoever keeps it moving.
        let was_furthest =
            matches!(before, Before::Unsettled(..)) && self.own.claims.unsettled > 17;
        let is_free = lost.is_none() && created > 0 && !was_furthest;
        if !is_free && !self.may_start_again() {
            return self.lost_for_good(lost);
        }
        match before {
            Before::Unsettled(mut listing, after) => {
                listing.begin_again();
                self.requests.push(Request::list(self.prefix.objects(), after));
                self.phase = Phase::Listing(listing);
            }
            Before::Recovered(recovery) if is_free && !self.rules.list_after_claim => {
                let mut recovery = recovery;
                for sequence in self.own.claims.created.keys() {
                    recovery.add_claim(*sequence, &self.known);
                }
                self.clear_the_way(*recovery);
            }
            Before::Recovered(_) => self.list(self.now),
        }
    }

    /// Most often the tip's writer still runs. But a store may also say of a free key that something
    /// is there.
    fn lost_for_good(&mut self, lost: Option<ObjectSeq>) {
        let phantom = self.own.claims.phantoms.iter().find(|(_, backoff)| backoff.was_used());
        // Without a loss, answers got lost, and what was created by them is not shown either.
        let unknown = || self.own.claims.phantoms.keys().next().filter(|_| lost.is_none());
        if lost.is_none() && self.own.claims.phantoms.is_empty() {
            return self.fail(unsettled(self.prefix.objects()));
        }
        if let Some(sequence) = phantom.map(|(sequence, _)| sequence).or_else(unknown).copied() {
            return self.fail(shown_by_none(self.prefix.object_key(sequence)));
        }
        let key = self.prefix.object_key(lost.unwrap_or_default());
        // What stands there now is most likely of the writer that was met before.
        let epoch = self.own.claims.met.unwrap_or_else(|| self.tip_epoch());
        let writer = names(&self.known).get(&epoch).cloned();
        self.fail(Error::Contended { key, epoch, writer });
    }

    fn tip_epoch(&self) -> Epoch {
        let history = self.known.values().filter(|object| !object.header.links_to_itself());
        history.map(|object| object.header.epoch).max().unwrap_or(Epoch(0))
    }

    /// No object can follow what is there.
    pub(super) fn exhausted(&mut self) {
        let error = exhausted_by(&self.prefix, &self.known);
        self.fail(error.unwrap_or(Error::SequenceExhausted));
    }
}

/// What may be the store's word alone.
fn shown_by_none(key: Key) -> Error {
    let text = "the store says that something is at the key, and no listing shows it";
    let source = StoreError::with_text(StoreErrorKind::Transient, text);
    Error::Store { operation: Operation::Create, key, source }
}

impl Claims {
    fn take_next(&mut self) -> Option<ObjectSeq> {
        loop {
            let range = self.waiting.front_mut()?;
            match range.next() {
                Some(sequence) => return Some(ObjectSeq(sequence)),
                None => self.waiting.pop_front(),
            };
        }
    }
}
