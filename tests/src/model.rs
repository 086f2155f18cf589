//! An object store in memory, for driving the core's machines: no clock, no thread, no client, and
//! the same calls always give the same answers.
//!
//! A request has two moments: when it takes effect in the store, and when its answer arrives. So a
//! lost answer, and a put that lands long after its writer gave up, are ordinary events here, not
//! special cases: whoever drives a machine keeps its [`Request`]s, and decides when each takes
//! effect, and with which [`Fate`] it ends.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use sealog_core::event::{Listed, Payload, ReadBack, StorageAnswer, StorageEffect};
use sealog_core::{Key, StoreError, StoreErrorKind, Time};

/// What is stored.
#[derive(Clone, Debug, Default)]
pub struct ModelStore {
    objects: BTreeMap<Key, Stored>,
    now: Time,
    lie: Option<Lie>,
    ignores_after: bool,
    /// Creates that were answered as successful.
    created: u64,
    /// Objects that were deleted.
    deleted: u64,
    /// Keys of deletes.
    to_delete: u64,
}

#[derive(Clone, Debug)]
struct Stored {
    bytes: Bytes,
    modified: Time,
}

/// How a store breaks its promises. With such a store, entries are lost; that the checkers see it
/// shows that they can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Every so many creates one succeeds, it says, and nothing is stored.
    DropsEvery(u64),
    /// Creates overwrite what is there.
    Overwrites,
    /// Every so many creates one is stored with a bit of its last payload flipped.
    DamagesEvery(u64),
    /// Every so many deletes take with them the object that follows theirs.
    DeletesOneMoreEvery(u64),
    /// Every so many deletes are answered as done, and are not.
    KeepsEvery(u64),
}

impl ModelStore {
    /// A store of nothing that keeps its promises.
    pub fn new() -> ModelStore {
        ModelStore::default()
    }

    /// A store of nothing that breaks a promise.
    pub fn lying(lie: Lie) -> ModelStore {
        ModelStore { lie: Some(lie), ..ModelStore::default() }
    }

    /// The same store, but that it lists all that begins with a prefix, wherever a listing is to
    /// begin, as some do.
    pub fn ignoring_after(self) -> ModelStore {
        ModelStore { ignores_after: true, ..self }
    }

    /// Carries a request out, now and whole.
    pub fn apply(&mut self, effect: &StorageEffect) -> StorageAnswer {
        let id = effect.id();
        match effect {
            StorageEffect::List { prefix, after, .. } => {
                let after = after.as_ref().filter(|_| !self.ignores_after);
                StorageAnswer::Listed { id, result: Ok(self.list(prefix, after)) }
            }
            StorageEffect::FetchRange { key, range, .. } => {
                let result = self.read(key).and_then(|bytes| {
                    let (start, end) = (range.start as usize, range.end as usize);
                    if start < end && end <= bytes.len() {
                        Ok(bytes.slice(start..end))
                    } else {
                        Err(StoreError::new(StoreErrorKind::Transient))
                    }
                });
                StorageAnswer::Fetched { id, result }
            }
            StorageEffect::PutObject { key, payload, .. } => {
                StorageAnswer::CreateResult { id, result: self.create(key, payload) }
            }
            StorageEffect::ReadBack { key, .. } => {
                let result = self.read(key).map(|bytes| ReadBack::of(&bytes));
                StorageAnswer::ReadBackResult { id, result }
            }
            StorageEffect::DeleteObjects { keys, .. } => {
                let deleted = keys.iter().map(|key| (key.clone(), self.delete(key)));
                StorageAnswer::DeleteResult { id, results: deleted.collect() }
            }
        }
    }

    /// What is stored at a key.
    pub fn get(&self, key: &str) -> Option<&Bytes> {
        self.objects.get(key).map(|stored| &stored.bytes)
    }

    /// When what is stored at a key was stored.
    pub fn modified(&self, key: &str) -> Option<Time> {
        self.objects.get(key).map(|stored| stored.modified)
    }

    /// What is stored from now on is stored at this time.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// How many objects were deleted.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// All that is stored, in the order of the keys.
    pub fn objects(&self) -> impl Iterator<Item = (&Key, &Bytes)> {
        self.objects.iter().map(|(key, stored)| (key, &stored.bytes))
    }

    fn list(&self, prefix: &Key, after: Option<&Key>) -> Vec<Listed> {
        let from = match after.filter(|after| *after >= prefix) {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(prefix),
        };
        let from = self.objects.range::<Key, _>((from, Bound::Unbounded));
        from.take_while(|(key, _)| key.starts_with(&**prefix))
            .map(|(key, stored)| Listed {
                key: key.clone(),
                size: stored.bytes.len() as u64,
                modified_millis: stored.modified.as_nanos() / 1_000_000,
            })
            .collect()
    }

    fn read(&self, key: &str) -> Result<Bytes, StoreError> {
        self.get(key).cloned().ok_or(StoreError::new(StoreErrorKind::NotFound))
    }

    fn create(&mut self, key: &Key, payload: &Payload) -> Result<(), StoreError> {
        if self.objects.contains_key(key) && self.lie != Some(Lie::Overwrites) {
            return Err(StoreError::new(StoreErrorKind::Exists));
        }
        self.created += 1;
        let mut bytes = payload.to_bytes();
        match self.lie {
            Some(Lie::DropsEvery(n)) if self.created.is_multiple_of(n) => return Ok(()),
            Some(Lie::DamagesEvery(n)) if self.created.is_multiple_of(n) => {
                // The last payload's last byte stands right before footer and trailer, whose
                // place the trailer tells.
                let footer = bytes.len().checked_sub(32).map(|at| &bytes[at..at + 8]);
                let at = footer.and_then(|at| at.try_into().ok()).map_or(0, u64::from_be_bytes);
                bytes = damaged(&bytes, (at as usize).saturating_sub(1));
            }
            _ => {}
        }
        self.objects.insert(key.clone(), Stored { bytes, modified: self.now });
        Ok(())
    }

    /// Some stores say it when there was nothing; this one does of every other key.
    fn delete(&mut self, key: &Key) -> Result<(), StoreError> {
        self.to_delete += 1;
        match self.lie {
            Some(Lie::KeepsEvery(n)) if self.to_delete.is_multiple_of(n) => return Ok(()),
            Some(Lie::DeletesOneMoreEvery(n)) if self.to_delete.is_multiple_of(n) => {
                let behind = (Bound::Excluded(key), Bound::Unbounded);
                let next =
                    self.objects.range::<Key, _>(behind).next().map(|(next, _)| next.clone());
                self.deleted += u64::from(next.is_some_and(|n| self.objects.remove(&n).is_some()));
            }
            _ => {}
        }
        let was_there = self.objects.remove(key).is_some();
        self.deleted += u64::from(was_there);
        if was_there || self.to_delete.is_multiple_of(2) {
            return Ok(());
        }
        Err(StoreError::new(StoreErrorKind::NotFound))
    }
}

/// A request under way.
#[derive(Clone, Debug)]
pub struct Request {
    /// What was asked.
    pub effect: StorageEffect,
    /// When the shell stops waiting for the answer.
    pub deadline: Time,
    /// The store's answer, once the request took effect.
    answer: Option<StorageAnswer>,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It takes effect, if it has not yet, and its answer arrives.
    Honest,
    /// It takes effect, if it has not yet, and its answer is lost: a failure of this kind arrives
    /// in its place.
    AnswerLost(Failure),
    /// It has no effect unless it had it already, and a failure of this kind arrives.
    NoEffect(Failure),
    /// A failure of this kind arrives, and if it is a put or a delete, it may still take effect
    /// later.
    Late(Failure),
    /// Of a delete of several keys: the last of them is not deleted, and not named in the answer;
    /// of one before it, a failure of this kind arrives. Anything else ends well.
    InPart(Failure),
    /// Of a create: the store says that the key is taken, and may be wrong.
    SaysExists,
    /// Of a fetch: one bit of what arrives is flipped.
    Damaged,
}

/// The kinds of failure that a store can have at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It may pass.
    Transient,
    /// The time limit passed.
    TimedOut,
    /// It does not pass.
    Refused,
}

impl Failure {
    /// As a shell maps it.
    pub fn error(self) -> StoreError {
        StoreError::new(match self {
            Failure::Transient => StoreErrorKind::Transient,
            Failure::TimedOut => StoreErrorKind::TimedOut,
            Failure::Refused => StoreErrorKind::Refused,
        })
    }
}

impl Request {
    /// A request that a machine makes now.
    pub fn new(now: Time, effect: StorageEffect) -> Request {
        let deadline = now.after(effect.time_limit());
        Request { effect, deadline, answer: None }
    }

    /// The first moment. What was carried out once is not carried out again.
    pub fn take_effect(&mut self, store: &mut ModelStore) {
        if self.answer.is_none() {
            self.answer = Some(store.apply(&self.effect));
        }
    }

    /// The second moment: the answer that arrives, and the put that may still land, if that is so.
    pub fn end(
        mut self,
        store: &mut ModelStore,
        fate: Fate,
    ) -> (StorageAnswer, Option<StorageEffect>) {
        let is_put = matches!(self.effect, StorageEffect::PutObject { .. });
        let lands = is_put || matches!(self.effect, StorageEffect::DeleteObjects { .. });
        self.turn_the_page(store);
        if let Fate::InPart(_) = fate
            && let StorageEffect::DeleteObjects { id, keys, time_limit } = &self.effect
            && self.answer.is_none()
            && keys.len() > 1
        {
            let keys = keys[..keys.len() - 1].into();
            let (id, time_limit) = (*id, *time_limit);
            self.effect = StorageEffect::DeleteObjects { id, keys, time_limit };
        }
        match fate {
            Fate::Honest | Fate::AnswerLost(_) | Fate::InPart(_) | Fate::Damaged => {
                self.take_effect(store)
            }
            Fate::NoEffect(_) | Fate::Late(_) | Fate::SaysExists => {}
        }
        let landed = self.answer.is_some();
        let answer = match (fate, self.answer) {
            (Fate::Honest, Some(answer)) => answer,
            (Fate::Damaged, Some(answer)) => damaged_answer(answer),
            (Fate::InPart(failure), Some(StorageAnswer::DeleteResult { id, mut results })) => {
                if results.len() > 1 {
                    results[0].1 = Err(failure.error());
                }
                StorageAnswer::DeleteResult { id, results }
            }
            (Fate::InPart(_), Some(answer)) => answer,
            (Fate::SaysExists, _) if is_put => {
                self.effect.failed(StoreError::new(StoreErrorKind::Exists))
            }
            (Fate::AnswerLost(failure) | Fate::NoEffect(failure) | Fate::Late(failure), _) => {
                self.effect.failed(failure.error())
            }
            (Fate::Honest | Fate::InPart(_) | Fate::Damaged | Fate::SaysExists, _) => {
                self.effect.failed(Failure::Transient.error())
            }
        };
        let may_land = lands && !landed && matches!(fate, Fate::Late(_));
        (answer, may_land.then_some(self.effect))
    }

    /// A listing of several pages is no snapshot: the first half of one that took effect before is
    /// as it was then, the second half as it is now.
    fn turn_the_page(&mut self, store: &mut ModelStore) {
        let Some(StorageAnswer::Listed { result: Ok(then), .. }) = &mut self.answer else { return };
        let StorageAnswer::Listed { result: Ok(now), .. } = store.apply(&self.effect) else {
            return;
        };
        then.truncate(then.len().div_ceil(2));
        let cursor = then.last().map(|listed| listed.key.clone());
        then.extend(now.into_iter().filter(|listed| Some(&listed.key) > cursor.as_ref()));
    }

    /// The one who asked is gone: the put or delete that may still land, if it is one.
    pub fn abandon(self) -> Option<StorageEffect> {
        let lands = matches!(
            self.effect,
            StorageEffect::PutObject { .. } | StorageEffect::DeleteObjects { .. }
        );
        (lands && self.answer.is_none()).then_some(self.effect)
    }
}

fn damaged_answer(answer: StorageAnswer) -> StorageAnswer {
    match answer {
        StorageAnswer::Fetched { id, result: Ok(bytes) } => {
            // Whatever is read ends with something that is verified.
            let last = bytes.len().saturating_sub(1);
            StorageAnswer::Fetched { id, result: Ok(damaged(&bytes, last)) }
        }
        answer => answer,
    }
}

fn damaged(bytes: &Bytes, at: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1;
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sealog_core::RequestId;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    fn put(key: &str, bytes: &'static [u8]) -> StorageEffect {
        let payload = Payload::new(vec![Bytes::from_static(bytes)]);
        StorageEffect::PutObject { id: RequestId(1), key: key.into(), payload, time_limit: LIMIT }
    }

    fn list(after: Option<&str>) -> StorageEffect {
        let (prefix, after) = ("p/".into(), after.map(Key::from));
        StorageEffect::List { id: RequestId(8), prefix, after, time_limit: LIMIT }
    }

    fn keys(keys: &[&str]) -> Vec<Key> {
        keys.iter().map(|key| Key::from(*key)).collect()
    }

    fn listed(answer: &StorageAnswer) -> Vec<Key> {
        match answer {
            StorageAnswer::Listed { result: Ok(listing), .. } => {
                listing.iter().map(|listed| listed.key.clone()).collect()
            }
            other => panic!("{other:?} answers no listing"),
        }
    }

    fn created(answer: &StorageAnswer) -> Result<(), StoreErrorKind> {
        match answer {
            StorageAnswer::CreateResult { result, .. } => result.clone().map_err(|e| e.kind),
            other => panic!("{other:?} answers no put"),
        }
    }

    fn ends(store: &mut ModelStore, request: Request, fate: Fate) -> (bool, bool) {
        let (answer, late) = request.end(store, fate);
        (created(&answer).is_ok(), late.is_some())
    }

    #[test]
    fn a_create_is_conditional() {
        let mut store = ModelStore::new();
        assert_eq!(created(&store.apply(&put("a", b"one"))), Ok(()));
        assert_eq!(created(&store.apply(&put("a", b"two"))), Err(StoreErrorKind::Exists));
        assert_eq!(store.get("a").unwrap(), &b"one"[..]);
    }

    #[test]
    fn ranges_are_exact_and_listings_are_of_their_prefix() {
        let mut store = ModelStore::new();
        for key in ["p/a", "p/b", "q/a"] {
            store.apply(&put(key, b"hello"));
        }
        let fetch = |key: &str, range| StorageEffect::FetchRange {
            id: RequestId(7),
            key: key.into(),
            range,
            time_limit: LIMIT,
        };
        let mut fetched = |key: &str, range| match store.apply(&fetch(key, range)) {
            StorageAnswer::Fetched { id, result } => {
                assert_eq!(id, RequestId(7));
                result.map_err(|error| error.kind)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(fetched("p/a", 1..3).unwrap(), &b"el"[..]);
        assert_eq!(fetched("p/a", 1..6), Err(StoreErrorKind::Transient));
        assert_eq!(fetched("p/c", 0..1), Err(StoreErrorKind::NotFound));
        assert_eq!(listed(&store.apply(&list(None))), keys(&["p/a", "p/b"]));
        assert_eq!(listed(&store.apply(&list(Some("p/a")))), keys(&["p/b"]));
        assert_eq!(listed(&store.apply(&list(Some("o")))), keys(&["p/a", "p/b"]));
        let mut store = store.ignoring_after();
        assert_eq!(listed(&store.apply(&list(Some("p/a")))), keys(&["p/a", "p/b"]));
    }

    #[test]
    fn a_listing_that_takes_its_time_is_no_snapshot() {
        let mut store = ModelStore::new();
        for key in ["p/b", "p/d"] {
            store.apply(&put(key, b"hello"));
        }
        let mut request = Request::new(Time::ZERO, list(None));
        request.take_effect(&mut store);
        for key in ["p/a", "p/c", "p/e"] {
            store.apply(&put(key, b"hello"));
        }
        let (answer, _) = request.end(&mut store, Fate::Honest);
        assert_eq!(listed(&answer), keys(&["p/b", "p/c", "p/d", "p/e"]));
    }

    #[test]
    fn a_put_takes_effect_and_is_answered_at_moments_of_their_own() {
        let failure = Failure::TimedOut;
        for (fate, stored, succeeds, may_land) in [
            (Fate::Honest, true, true, false),
            (Fate::AnswerLost(failure), true, false, false),
            (Fate::NoEffect(failure), false, false, false),
            (Fate::Late(failure), false, false, true),
            (Fate::SaysExists, false, false, false),
        ] {
            let mut store = ModelStore::new();
            let request = Request::new(Time::ZERO, put("a", b"one"));
            assert_eq!(ends(&mut store, request, fate), (succeeds, may_land), "{fate:?}");
            assert_eq!(store.get("a").is_some(), stored, "{fate:?}");

            let mut store = ModelStore::new();
            let mut request = Request::new(Time::ZERO, put("a", b"one"));
            request.take_effect(&mut store);
            assert_eq!(ends(&mut store, request, fate), (succeeds, false), "{fate:?}");
            assert!(store.get("a").is_some(), "{fate:?}: it had its effect");
        }
    }
}
