//! The guard after a skip and after silence (DESIGN.md section 12, rules 4 and 7).
//!
//! After a roll back, after a raised floor and after batches that stop dropped, the next sequence does
//! not follow the last indexed one: a claim may stand where this writer never writes. So the first
//! batch after a skip is not indexed before every object above the last indexed one was looked at.
//!
//! After silence, what stood in this writer's way may have been deleted: that is done once an object of
//! a later history stands above it for `fence_retention`. So a batch is guarded, too, if more than half
//! of that passed from the first put of the last indexed object to the answer of its create. The last
//! object of a later history is never deleted, so the guard meets it.
//!
//! Whether a batch is guarded for that is decided when it is the next to be indexed: by then the batch
//! before it is the last indexed object. So of several that are put at once after a silence the first
//! alone is guarded, in whatever order they are answered. That is enough, since nothing is indexed that
//! was created after an object of a later history, by induction over what is indexed. Let B be the next
//! batch, and L the last indexed object:
//!
//! - If B is guarded, the guard begins after B was created, and meets that object or one above it.
//! - If it is not, and what stood in its way still stood when B was created, B met it (rules 2 and 4).
//! - Otherwise that was deleted before B was created, because an object H of a later history was older
//!   than `fence_retention`. B was answered at most half of that after L was put, so H was there before
//!   L was put, if the clocks of store and writer differ by less than a factor of two in speed. Then L
//!   was created after H, and would not have been indexed. (The start object, which is the first L, was
//!   looked behind by the opening.)
//!
//! Batches behind one that becomes guarded may be created by then, or on their way. Nothing is asked of
//! them: none is indexed before the guard has ended, each is judged when it is the next, and no more are
//! started, so that holes stay as few as the pipeline is deep.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::outcome::{AtKey, Look, look};
use super::pipeline::{Create, SealedBatch};
use super::{Effect, Writer};
use crate::error::{Error, Operation, StoreError, StoreErrorKind};
use crate::event::{Listed, ReadBack, RequestId, StorageEffect};
use crate::key::{Key, KeyKind};
use crate::listing::{Listing, Round, Trust};
use crate::types::{Link, ObjectSeq};

/// A store that goes on answering pages of a listing is given up after so many: a million keys above
/// the last indexed object.
const MOST_PAGES: u32 = 1000;

/// So many failed batches are remembered by what was sent. More fail between two indexed objects only
/// in a store that is down for long.
const MOST_SENT: usize = 1024;

/// What this writer knows of the keys above its last indexed object. What is at or below it is
/// forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct Above {
    /// What was read and is harmless, as long as size and time stay the same.
    read: BTreeMap<ObjectSeq, Stamp>,
    /// Where no object was found once; the download may have been damaged.
    suspects: BTreeSet<ObjectSeq>,
    /// What was sent of batches that failed.
    sent: BTreeMap<ObjectSeq, Sent>,
    /// What was sent up to here is not remembered.
    forgotten: Option<ObjectSeq>,
    /// A listing came in no order.
    unordered: bool,
}

/// Size, and time by the store's clock, as a listing shows them.
type Stamp = (u64, u64);

#[derive(Clone, Debug)]
struct Sent {
    /// By what it is recognised.
    object: ReadBack,
    /// The store said that it stands there.
    created: bool,
}

/// The listing of a guard, while it is judged.
#[derive(Clone, Debug)]
pub(super) struct GuardListing {
    listing: Listing,
    /// How often the same question was asked again.
    repeats: u32,
    pages: u32,
}

/// The headers that a guard reads.
#[derive(Clone, Debug)]
pub(super) struct Looks {
    pub(super) under_way: BTreeMap<RequestId, (ObjectSeq, Stamp)>,
    to_do: VecDeque<(ObjectSeq, Stamp)>,
    /// One could not be read. Those under way still count.
    failed: Option<Error>,
}

impl Above {
    /// A batch failed that may be stored, or come to be.
    pub(super) fn failed<W>(&mut self, batch: &SealedBatch<W>) {
        let created =
            matches!(batch.create, Create::Created(_) | Create::Listing(..) | Create::Looking(_));
        let sent = Sent { object: batch.payload.read_back(), created };
        self.sent.insert(batch.link.sequence, sent);
        if self.sent.len() > MOST_SENT {
            self.forgotten = self.sent.pop_first().map(|(sequence, _)| sequence);
        }
    }

    /// The create of a batch that had failed succeeded after all.
    pub(super) fn created_late(&mut self, sequence: ObjectSeq) {
        if let Some(sent) = self.sent.get_mut(&sequence) {
            sent.created = true;
        }
    }

    pub(super) fn indexed(&mut self, last: ObjectSeq) {
        self.read.retain(|sequence, _| *sequence > last);
        self.suspects.retain(|sequence| *sequence > last);
        self.sent.retain(|sequence, _| *sequence > last);
        self.forgotten = self.forgotten.filter(|through| *through > last);
    }

    /// Notes what a read found: whether it is the second time that it is no object.
    pub(super) fn found(&mut self, sequence: ObjectSeq, at_key: AtKey) -> bool {
        match at_key {
            AtKey::NoObject => !self.suspects.insert(sequence),
            _ => false,
        }
    }

    /// Nothing is at the key of a create, so what was there is not found twice in a row.
    pub(super) fn is_absent(&mut self, sequence: ObjectSeq) {
        self.suspects.remove(&sequence);
    }

    /// Whether a guard need not read this: the writer created it itself, or it was read before.
    fn is_known(&self, sequence: ObjectSeq, stamp: Stamp) -> bool {
        let own = |sent: &Sent| sent.created && sent.object.size == stamp.0;
        self.read.get(&sequence) == Some(&stamp) || self.sent.get(&sequence).is_some_and(own)
    }

    /// Whether this is what the writer sent.
    fn is_own(&self, sequence: ObjectSeq, found: &ReadBack) -> bool {
        match self.sent.get(&sequence) {
            Some(sent) => sent.object == *found,
            None => self.forgotten.is_some_and(|through| sequence <= through),
        }
    }
}

impl<W> Writer<W> {
    /// The next batch to index, if it is created, was not guarded, and its create was answered long
    /// after the last indexed object was put.
    pub(super) fn created_after_silence(&self) -> Option<Link> {
        let batch = self.pipeline.first().filter(|batch| !batch.guarded)?;
        let Create::Created(answered) = batch.create else { return None };
        let silence = answered.since(self.last_put);
        let long = silence > self.options.fence_retention / 2 && self.rules.guard_after_silence;
        long.then_some(batch.link)
    }

    /// Begins to look: a batch was created that is guarded, or becomes so.
    pub(super) fn guard(&mut self, link: Link) {
        self.stats.guards_total += 1;
        let from = self.catalog.last().map(|last| self.prefix.object_key(last.sequence));
        let trust = if self.above.unordered { Trust::Settled } else { Trust::InOrder };
        let listing = Listing::new(&self.prefix, from.clone(), trust);
        self.list(link, Box::new(GuardListing { listing, repeats: 0, pages: 0 }), from);
    }

    fn list(&mut self, link: Link, guard: Box<GuardListing>, after: Option<Key>) {
        let id = self.request_id();
        self.pipeline.guard(link, id, guard);
        let (prefix, time_limit) = (self.prefix.objects(), self.options.request_timeout);
        let list = StorageEffect::List { id, prefix, after, time_limit };
        self.emit(Effect::Storage(list));
    }

    pub(super) fn guard_listed(&mut self, id: RequestId, result: Result<Vec<Listed>, StoreError>) {
        if self.pipeline.ran_out(id) {
            return;
        }
        let Some(batch) = self.pipeline.find(id) else { return };
        if !matches!(batch.create, Create::Listing(..)) {
            return;
        }
        let link = batch.link;
        // This request has ended: whatever follows, nothing waits for it any more.
        let create = core::mem::replace(&mut batch.create, Create::Ended);
        let Create::Listing(_, mut guard) = create else { return };
        let answer = match result {
            Ok(answer) => answer,
            Err(source) => return self.listing_failed(link, source),
        };
        let round = guard.listing.take(answer);
        self.above.unordered |= guard.listing.is_unordered();
        let after = match round {
            Round::Done(listed) => return self.look(link, listed),
            Round::More { after } => {
                guard.pages += 1;
                after
            }
            Round::Unsettled { after, .. } => {
                guard.repeats += 1;
                after
            }
        };
        if guard.repeats > self.options.open_attempts || guard.pages > MOST_PAGES {
            return self.not_believed(link, "the listing never settled");
        }
        self.list(link, guard, after);
    }

    /// Reads what stands above the last indexed object, unless that is known.
    fn look(&mut self, link: Link, listing: Vec<Listed>) {
        let last = self.catalog.last().map(|last| last.sequence);
        let own = self.pipeline.get_mut(link).map_or(0, |batch| batch.payload.len());
        let mut shows_own = false;
        let mut to_do = VecDeque::new();
        for Listed { key, size, modified_millis } in listing {
            let KeyKind::Object(sequence) = self.prefix.classify(&key) else { continue };
            let stamp = (size, modified_millis);
            if sequence == link.sequence {
                shows_own = size == own;
                continue;
            }
            // What follows in the pipeline is our own, too.
            let known = self.above.is_known(sequence, stamp) || self.pipeline.has_created(sequence);
            if Some(sequence) > last && !known {
                to_do.push_back((sequence, stamp));
            }
        }
        if !shows_own {
            return self.not_believed(link, "the listing does not show what was just created");
        }
        if let Some(batch) = self.pipeline.get_mut(link) {
            let under_way = BTreeMap::new();
            batch.create = Create::Looking(Looks { under_way, to_do, failed: None });
        }
        self.go_on_looking(link);
    }

    /// Asks for the next headers, or ends the guard when there is none to ask for.
    fn go_on_looking(&mut self, link: Link) {
        loop {
            let id = self.next_request;
            let most = self.options.open_concurrency as usize;
            let Some(batch) = self.pipeline.get_mut(link) else { return };
            let Create::Looking(looks) = &mut batch.create else { return };
            if looks.under_way.len() >= most {
                return;
            }
            let next = if looks.failed.is_none() { looks.to_do.pop_front() } else { None };
            let Some((sequence, stamp)) = next else { break };
            looks.under_way.insert(id, (sequence, stamp));
            self.next_request = RequestId(id.0 + 1);
            let (key, time_limit) =
                (self.prefix.object_key(sequence), self.options.request_timeout);
            self.emit(Effect::Storage(StorageEffect::ReadBack { id, key, time_limit }));
        }
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        let Create::Looking(looks) = &mut batch.create else { return };
        if !looks.under_way.is_empty() {
            return;
        }
        match looks.failed.take() {
            None => self.pipeline.created(link, self.now),
            Some(failure) => self.guard_failed(link, failure),
        }
    }

    /// What stands above the last indexed object is neither ours to index nor, if its epoch is later
    /// or it is of our epoch and not ours, harmless.
    pub(super) fn guard_looked(
        &mut self,
        id: RequestId,
        link: Link,
        result: Result<ReadBack, StoreError>,
    ) {
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        let Create::Looking(looks) = &mut batch.create else { return };
        let Some((sequence, stamp)) = looks.under_way.remove(&id) else { return };
        let key = self.prefix.object_key(sequence);
        // After a silence others of this writer may be on their way behind the one that is guarded.
        let own = result.as_ref().is_ok_and(|found| {
            self.above.is_own(sequence, found) || self.pipeline.is_own(sequence, found)
        });
        let at_key = if own { AtKey::Ours } else { AtKey::found(&result, sequence) };
        let again = self.above.found(sequence, at_key);
        match (look(at_key, again, self.epoch), result) {
            (Look::Fenced(theirs), found) => {
                let met = Link { sequence, epoch: theirs };
                return self.fence(key, met, theirs, found.map_or(0, |found| found.size));
            }
            (Look::Harmless, _) => {
                if let AtKey::Other(epoch) = at_key {
                    self.saw(Link { sequence, epoch });
                }
                self.above.read.insert(sequence, stamp);
            }
            // What is no object twice is none, and nobody can tell that it is harmless.
            (Look::Foreign, Ok(found)) => {
                if let Err(error) = found.header_at(sequence) {
                    self.stats.create_failures_total += 1;
                    self.stats.create_conflicts_total += 1;
                    self.pipeline.end_looks(link);
                    return self.poison(Error::corrupted(key, error));
                }
            }
            (Look::Transient | Look::Foreign, result) => self.look_failed(link, key, &result),
        }
        self.go_on_looking(link);
    }

    fn look_failed(&mut self, link: Link, key: Key, result: &Result<ReadBack, StoreError>) {
        let sequence = match self.prefix.classify(&key) {
            KeyKind::Object(sequence) => sequence,
            KeyKind::OutOfRange | KeyKind::Foreign => return,
        };
        let failure = Error::Store {
            operation: Operation::ReadBack,
            source: passing(not_read(result, sequence)),
            key,
        };
        let Some(batch) = self.pipeline.get_mut(link) else { return };
        if let Create::Looking(looks) = &mut batch.create {
            looks.failed.get_or_insert(failure);
        }
    }

    fn not_believed(&mut self, link: Link, why: &'static str) {
        let cause: Box<dyn core::error::Error + Send + Sync> = why.into();
        let cause: Arc<dyn core::error::Error + Send + Sync> = cause.into();
        self.listing_failed(link, StoreError::with_cause(StoreErrorKind::Transient, cause));
    }

    fn listing_failed(&mut self, link: Link, source: StoreError) {
        let (operation, key) = (Operation::List, self.prefix.objects());
        self.guard_failed(link, Error::Store { operation, key, source: passing(source) });
    }

    /// A guard that cannot list or read is a transient outcome of its batch: the same bytes are put
    /// again, are found there, and are guarded again.
    fn guard_failed(&mut self, link: Link, failure: Error) {
        self.pipeline.end_looks(link);
        self.stats.create_failures_total += 1;
        self.set_back(link, failure);
    }
}

/// Why a read-back did not say what stands at a sequence.
pub(super) fn not_read(result: &Result<ReadBack, StoreError>, at: ObjectSeq) -> StoreError {
    match result {
        Err(source) => source.clone(),
        Ok(found) => match found.header_at(at) {
            Ok(_) => StoreError::new(StoreErrorKind::Transient),
            Err(error) => {
                let cause: Arc<dyn core::error::Error + Send + Sync> = Arc::new(error);
                StoreError::with_cause(StoreErrorKind::Transient, cause)
            }
        },
    }
}

/// It is repeated, whatever it was.
fn passing(source: StoreError) -> StoreError {
    StoreError { kind: StoreErrorKind::Transient, ..source }
}
