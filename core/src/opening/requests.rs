//! What an opening has asked of the store, is about to ask, and will ask again.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use super::examine::Piece;
use crate::backoff::Backoff;
use crate::error::{DecodeError, Error, Operation, Part, StoreError, StoreErrorKind};
use crate::event::{Payload, RequestId, StorageAnswer, StorageEffect};
use crate::key::Key;
use crate::types::{ObjectSeq, Time};

/// The requests of one opening: at most `limit` of them are under way at once. One that waits for
/// its repeat keeps its place, so that a store in trouble is not asked more.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    limit: usize,
    time_limit: Duration,
    next_id: RequestId,
    /// Not asked yet, in order.
    queued: VecDeque<Request>,
    /// To be asked at a time, and among those of one time in the order of their arrival.
    delayed: BTreeMap<(Time, RequestId), Request>,
    /// Asked and not answered.
    sent: BTreeMap<RequestId, Request>,
    /// Asked and not wanted any more. Until they are answered they are under way.
    void: BTreeMap<RequestId, Request>,
}

/// One request, and what it takes to repeat it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) purpose: Purpose,
    pub(super) key: Key,
    pub(super) ask: Ask,
    pub(super) backoff: Backoff,
    /// The operator was told that it is repeated.
    pub(super) repeated: bool,
}

/// What a fetch found.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The bytes that were asked for.
    Bytes(Bytes),
    /// No object.
    Gone,
    /// Another number of bytes: a failed fetch rather than data, or another object than was listed.
    Misfit(DecodeError),
}

/// What its answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Listing,
    Piece(ObjectSeq, Piece),
    Releases(ObjectSeq),
    /// At this sequence.
    Claim(ObjectSeq),
    /// The start object, and whatever stands at its key.
    Start,
    /// An object that came in between.
    Look(ObjectSeq),
}

#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// From behind this key on.
    List(Option<Key>),
    Fetch(Range<u64>),
    Put(Payload),
    ReadBack,
}

impl Request {
    pub(super) fn new(purpose: Purpose, key: Key, ask: Ask) -> Request {
        Request { purpose, key, ask, backoff: Backoff::new(), repeated: false }
    }

    pub(super) fn list(prefix: Key, after: Option<Key>) -> Request {
        Request::new(Purpose::Listing, prefix, Ask::List(after))
    }

    pub(super) fn fetch(purpose: Purpose, key: Key, range: Range<u64>) -> Request {
        Request::new(purpose, key, Ask::Fetch(range))
    }

    /// What a fetch found.
    pub(super) fn body(&self, result: Result<Bytes, StoreError>) -> Result<Body, StoreError> {
        let bytes = match result {
            Ok(bytes) => bytes,
            Err(error) if error.kind == StoreErrorKind::NotFound => return Ok(Body::Gone),
            Err(error) => return Err(error),
        };
        let Ask::Fetch(range) = &self.ask else {
            return Err(StoreError::new(StoreErrorKind::Transient));
        };
        let (expected, found) = (range.end.saturating_sub(range.start), bytes.len() as u64);
        if expected == found {
            return Ok(Body::Bytes(bytes));
        }
        let reason =
            format!("expected {expected} bytes from {} on, as listed, found {found}", range.start);
        Ok(Body::Misfit(DecodeError::new(Part::Object, reason)))
    }

    /// This request failed for good.
    pub(super) fn failed(&self, source: StoreError) -> Error {
        let operation = match self.ask {
            Ask::List(_) => Operation::List,
            Ask::Fetch(_) => Operation::Read,
            Ask::Put(_) => Operation::Create,
            Ask::ReadBack => Operation::ReadBack,
        };
        Error::Store { operation, key: self.key.clone(), source }
    }

    fn effect(&self, id: RequestId, time_limit: Duration) -> StorageEffect {
        let key = self.key.clone();
        match &self.ask {
            Ask::List(after) => {
                StorageEffect::List { id, prefix: key, after: after.clone(), time_limit }
            }
            Ask::Fetch(range) => {
                StorageEffect::FetchRange { id, key, range: range.clone(), time_limit }
            }
            Ask::Put(payload) => {
                StorageEffect::PutObject { id, key, payload: payload.clone(), time_limit }
            }
            Ask::ReadBack => StorageEffect::ReadBack { id, key, time_limit },
        }
    }

    fn is_answered_by(&self, answer: &StorageAnswer) -> bool {
        matches!(
            (&self.ask, answer),
            (Ask::List(_), StorageAnswer::Listed { .. })
                | (Ask::Fetch(_), StorageAnswer::Fetched { .. })
                | (Ask::Put(_), StorageAnswer::CreateResult { .. })
                | (Ask::ReadBack, StorageAnswer::ReadBackResult { .. })
        )
    }
}

impl Requests {
    pub(super) fn new(limit: u32, time_limit: Duration) -> Requests {
        Requests {
            limit: limit as usize,
            time_limit,
            next_id: RequestId(0),
            queued: VecDeque::new(),
            delayed: BTreeMap::new(),
            sent: BTreeMap::new(),
            void: BTreeMap::new(),
        }
    }

    /// Whether one more could be asked at once.
    pub(super) fn has_room(&self) -> bool {
        self.queued.len() + self.delayed.len() + self.under_way() < self.limit
    }

    fn under_way(&self) -> usize {
        self.sent.len() + self.void.len()
    }

    /// To be asked after all others.
    pub(super) fn push(&mut self, request: Request) {
        self.queued.push_back(request);
    }

    /// To be asked before all others: it ends something that was begun.
    pub(super) fn push_first(&mut self, request: Request) {
        self.queued.push_front(request);
    }

    /// To be asked at this time.
    pub(super) fn delay(&mut self, request: Request, due: Time) {
        let ticket = self.take_id();
        self.delayed.insert((due, ticket), request);
    }

    /// The next request that goes out now. Every attempt has an id of its own, which no stale
    /// answer can match.
    pub(super) fn send(&mut self, now: Time) -> Option<StorageEffect> {
        if self.under_way() >= self.limit {
            return None;
        }
        let places = self.under_way() + self.delayed.len();
        let request = match self.delayed.first_entry() {
            Some(first) if first.key().0 <= now => first.remove(),
            _ if places < self.limit => self.queued.pop_front()?,
            _ => return None,
        };
        let id = self.take_id();
        let effect = request.effect(id, self.time_limit);
        self.sent.insert(id, request);
        Some(effect)
    }

    /// The request that this answers; `None` if there is none, and then nothing changes.
    pub(super) fn take(&mut self, answer: &StorageAnswer) -> Option<Request> {
        let id = answer.id();
        if self.void.get(&id).is_some_and(|request| request.is_answered_by(answer)) {
            self.void.remove(&id);
        }
        if !self.sent.get(&id)?.is_answered_by(answer) {
            return None;
        }
        self.sent.remove(&id)
    }

    /// When a delayed request is due; none while no request could go out.
    pub(super) fn next_due(&self) -> Option<Time> {
        let ((due, _), _) = self.delayed.first_key_value()?;
        (self.under_way() < self.limit).then_some(*due)
    }

    /// Drops every request: answers that are still to come find none.
    pub(super) fn clear(&mut self) {
        self.queued.clear();
        self.delayed.clear();
        self.void.append(&mut self.sent);
    }

    /// An id that was never used.
    pub(super) fn take_id(&mut self) -> RequestId {
        let id = self.next_id;
        self.next_id = RequestId(id.0.saturating_add(1));
        id
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_is_not_wanted_any_more_is_under_way_until_it_is_answered() {
        let mut requests = Requests::new(2, Duration::from_secs(1));
        let list = || Request::list("p/objects/".into(), None);
        requests.push(list());
        requests.push(list());
        let sent: Vec<_> = core::iter::from_fn(|| requests.send(Time::ZERO)).collect();
        requests.clear();
        requests.delay(list(), Time::from_millis(5));
        assert!(requests.send(Time::from_millis(5)).is_none());
        assert_eq!(requests.next_due(), None, "a tick would not help");

        let error = StoreError::new(StoreErrorKind::TimedOut);
        let other = StorageAnswer::CreateResult { id: sent[1].id(), result: Err(error.clone()) };
        assert!(requests.take(&other).is_none());
        assert_eq!(requests.next_due(), None, "it is no answer to a listing");
        let answer = sent[1].failed(error);
        assert!(requests.take(&answer).is_none(), "nobody waits for it");
        assert_eq!(requests.next_due(), Some(Time::from_millis(5)));
        assert!(!requests.has_room());
        let again = requests.send(Time::from_millis(5)).unwrap();
        let answer = again.failed(StoreError::new(StoreErrorKind::TimedOut));
        assert_eq!(requests.take(&answer).unwrap().purpose, Purpose::Listing);
    }
}
