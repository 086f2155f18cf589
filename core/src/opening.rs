//! The Opening machine (DESIGN.md section 4): from what the store holds to a log that can be
//! written, to a view of it, or to a survey of all that is there.
//!
//! The rooms follow the document's steps: `examine` fetches and verifies what was listed,
//! `recover` selects history, `claim` sees to it that no older writer can go on unnoticed
//! (section 12), `recover` indexes history and applies its release records, `start` creates the
//! start object and checks the store, `look` looks whether something came in between (section
//! 12). `requests` numbers, limits and delays what is asked of the store meanwhile.
//!
//! Two ways put nothing (`aim` says where they part): `view` ends once history is recovered, and
//! `survey`, which examines objects with `thorough`, reports every problem instead of failing with
//! the first.

#![allow(private_interfaces, reason = "only the three ways of here can implement `Steps`")]

mod aim;
mod claim;
mod doubt;
mod examine;
mod look;
mod objects;
mod recover;
mod requests;
mod start;
mod survey;
mod thorough;
mod view;
mod way;
mod writing;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::backoff::Backoff;
use crate::catalog::Catalog;
use crate::error::{Error, Operation, StoreError, StoreErrorKind};
use crate::event::{Listed, Notice, RequestId, StorageAnswer, StorageEffect};
use crate::key::{Key, KeyKind, Prefix};
use crate::options::Options;
use crate::rules::Rules;
use crate::types::{Link, ObjectSeq, Time};

use aim::Steps;
use claim::Claim;
use doubt::Doubt;
use examine::{Examination, Examined};
use look::Look;
use recover::{Recovery, Selected, Setback};
use requests::{Purpose, Request, Requests};
use start::Start;

pub use aim::Aim;
pub use objects::{ObjectKind, ObjectStatus};
pub use survey::{Problem, Survey, SurveyedObject};
pub use view::{View, ViewedObject};

/// Opens a log: to write it ([`new`](Opening::new)), to read it beside whoever writes it
/// ([`read_only`](Opening::read_only)), or to see everything that is there and all that is wrong
/// with it ([`survey`](Opening::survey)). What it ends with is `T`.
///
/// Hand in an event with [`handle`](Opening::handle), then take effects with
/// [`poll_effect`](Opening::poll_effect) until there is none, then see
/// [`next_tick`](Opening::next_tick) for when to send a tick at the latest; a tick too many is
/// harmless. The first effect is there at once. The last one is [`OpeningEffect::Opened`] or
/// [`OpeningEffect::Failed`]: after it nothing more comes, whatever is handed in. An opening can be
/// dropped at any point; what it left in the store counts at the next one.
///
/// It ends if every request is answered: a transient answer is repeated until `open_timeout` after
/// the opening began, and it starts again from the listing at most `open_attempts` times, whatever
/// the reason. (A listing after a claim of its own is no start anew, since each closes one hole; a
/// claim that does not stay is one.)
#[derive(Clone, Debug)]
pub struct Opening<T: Steps = Recovered> {
    prefix: Prefix,
    options: Options,
    own: T::Own,
    rules: Rules,
    began: Time,
    now: Time,
    phase: Phase,
    requests: Requests,
    effects: VecDeque<OpeningEffect<T>>,
    /// How often it started again from the listing.
    restarts: u32,
    /// What the last listing says of its objects.
    shown: BTreeMap<ObjectSeq, Shown>,
    /// What was read of the objects that the last listing showed.
    known: BTreeMap<ObjectSeq, Examined>,
    /// What the last listing would have failed the opening with, if the next one says the same, and
    /// what it showed at that key.
    suspicion: Option<(Error, Option<Shown>)>,
    /// Before a listing that is repeated to confirm a suspicion.
    relist: Backoff,
    /// Keys that the operator was told of, so that listing again does not tell them again.
    ignored: BTreeSet<Key>,
}

/// What a listing says of an object. It tells an object from another that had its key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    size: u64,
    modified_millis: u64,
}

/// The steps of DESIGN.md section 4, and of section 12 between them.
#[derive(Clone, Debug)]
enum Phase {
    /// Step 1.
    Listing,
    /// Steps 1 and 2.
    Examining(Examination),
    /// An object does not verify: is it the one that was listed?
    Doubting(Box<Doubt>),
    /// Section 12, rule 2; then the listing comes again.
    Claiming(Claim),
    /// Steps 3 to 5 are done but for release records that are still read.
    Recovering(Box<Recovery>),
    /// Step 6.
    Starting(Box<Start>),
    /// Step 7.
    Checking(Box<Start>),
    /// Section 12, rule 3.
    Looking(Box<Look>),
    Ended,
}

/// What tells one opening from every other: the core has no clock and no randomness of its own.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random.
    pub nonce: [u8; 16],
    /// The wall clock, in milliseconds since 1970. It is shown to people, and decides nothing.
    pub opened_at_millis: u64,
    /// The writer's name when [`Options::writer_name`] is not set: host and process id. What
    /// exceeds 255 bytes of it is cut off.
    pub default_name: Arc<str>,
}

/// What the shell tells an [`Opening`].
#[derive(Clone, Debug)]
pub enum OpeningEvent {
    /// Time has passed.
    Tick,
    /// The answer to a storage effect.
    Storage(StorageAnswer),
}

/// What an [`Opening`] wants of the shell.
#[derive(Clone, Debug)]
pub enum OpeningEffect<T = Recovered> {
    /// Carry this out, and answer with [`OpeningEvent::Storage`].
    Storage(StorageEffect),
    /// Tell the operator.
    Notice(Notice),
    /// The end: the log is open.
    Opened(Box<T>),
    /// The end: it is not.
    Failed(Error),
}

/// What an opening hands to the writer.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The log's prefix.
    pub prefix: Prefix,
    /// The log's options.
    pub options: Options,
    /// History with its watermarks and its boundary, the start object included.
    pub catalog: Catalog,
    /// The start object, which is the tip.
    pub start: Link,
    /// When its put was handed out first, by the clock of the opening: the writer goes on with it.
    pub start_put: Time,
    /// The reclaim boundary that the start object carries: what is below it may be deleted.
    pub durable_boundary: ObjectSeq,
    /// The sequence after the start object. At [`ObjectSeq::LIMIT`] the log is exhausted.
    pub next_sequence: ObjectSeq,
    /// Ids of storage effects go on from here, so that no answer to the opening is taken for one
    /// to the writer.
    pub next_request: RequestId,
    /// Figures.
    pub stats: RecoveryStats,
    pub(crate) rules: Rules,
}

/// Figures of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryStats {
    /// How many objects were indexed, without the start object.
    pub recovered_objects: u64,
    /// How long the opening took.
    pub took: Duration,
}

impl<T: Steps> Opening<T> {
    /// With options that are valid.
    fn begin(now: Time, prefix: Prefix, options: Options, own: T::Own) -> Self {
        let requests = Requests::new(options.open_concurrency, options.request_timeout);
        let mut opening = Opening {
            prefix,
            options,
            own,
            rules: Rules::ALL,
            began: now,
            now,
            phase: Phase::Listing,
            requests,
            effects: VecDeque::new(),
            restarts: 0,
            shown: BTreeMap::new(),
            known: BTreeMap::new(),
            suspicion: None,
            relist: Backoff::new(),
            ignored: BTreeSet::new(),
        };
        opening.list(now);
        opening.send();
        opening
    }

    /// Takes an event. An answer that is not waited for changes nothing.
    pub fn handle(&mut self, now: Time, event: OpeningEvent) {
        self.now = self.now.max(now);
        if let OpeningEvent::Storage(answer) = event {
            self.answered(answer);
        }
        self.send();
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<OpeningEffect<T>> {
        self.effects.pop_front()
    }

    /// When the next tick is wanted at the latest, if one is.
    pub fn next_tick(&self) -> Option<Time> {
        self.requests.next_due()
    }

    fn send(&mut self) {
        while let Some(effect) = self.requests.send(self.now) {
            self.effects.push_back(OpeningEffect::Storage(effect));
        }
    }

    fn answered(&mut self, answer: StorageAnswer) {
        let Some(request) = self.requests.take(&answer) else {
            return;
        };
        match (&self.phase, answer) {
            (Phase::Listing, StorageAnswer::Listed { result, .. }) => match result {
                Ok(listing) => self.listed(listing),
                Err(error) => self.read_failed(request, error),
            },
            (Phase::Examining(_) | Phase::Recovering(_), StorageAnswer::Fetched { result, .. }) => {
                match request.body(result) {
                    Ok(bytes) => self.fetched(request.purpose, bytes),
                    Err(error) => self.read_failed(request, error),
                }
            }
            (Phase::Doubting(_), StorageAnswer::ReadBackResult { result, .. }) => {
                self.doubted(request, result);
            }
            (_, answer) => T::answered(self, request, answer),
        }
    }

    /// A listing or a fetch has no effect in the store: what may pass is simply repeated.
    fn read_failed(&mut self, mut request: Request, failure: StoreError) {
        if failure.is_retryable() {
            let delay = request.backoff.next();
            self.try_later(request, delay, failure);
        } else {
            self.fail(request.failed(failure));
        }
    }

    /// Repeats a request after a delay, if that is not after `open_timeout`.
    fn try_later(&mut self, mut request: Request, delay: Duration, failure: StoreError) {
        let error = request.failed(failure);
        let due = self.now.after(delay);
        if due > self.began.after(self.options.open_timeout) {
            return self.fail(error);
        }
        if !request.repeated {
            request.repeated = true;
            self.notice(Notice::OpeningRetries { error });
        }
        self.requests.delay(request, due);
    }

    fn list(&mut self, due: Time) {
        self.phase = Phase::Listing;
        self.requests.delay(Request::list(self.prefix.objects()), due);
    }

    fn listed(&mut self, listing: Vec<Listed>) {
        let listed = self.sorted(listing).into_iter();
        self.shown = listed
            .map(|(sequence, Listed { size, modified_millis, .. })| {
                (sequence, Shown { size, modified_millis })
            })
            .collect();
        let objects: BTreeMap<_, _> =
            self.shown.iter().map(|(sequence, shown)| (*sequence, shown.size)).collect();
        if objects.is_empty() && self.options.must_exist {
            return self.fail(Error::Missing { prefix: self.prefix.as_str().into() });
        }
        let known = core::mem::take(&mut self.known);
        self.phase = Phase::Examining(T::begin(Examination::new(objects, known)));
        self.examine();
    }

    /// The log's objects in a listing.
    fn sorted(&mut self, listing: Vec<Listed>) -> BTreeMap<ObjectSeq, Listed> {
        let mut objects = BTreeMap::new();
        for listed in listing {
            match self.prefix.classify(&listed.key) {
                KeyKind::Object(sequence) => {
                    objects.insert(sequence, listed);
                }
                KeyKind::OutOfRange => {
                    let key = listed.key;
                    if self.ignored.insert(key.clone()) {
                        self.notice(Notice::KeyIgnored { key });
                    }
                }
                KeyKind::Foreign => {}
            }
        }
        objects
    }

    /// The bytes that were asked for; `None` if their object is gone.
    fn fetched(&mut self, purpose: Purpose, bytes: Option<Bytes>) {
        match (&mut self.phase, purpose) {
            (Phase::Examining(examination), Purpose::Piece(sequence, piece)) => {
                examination.fetched(&self.prefix, &mut self.requests, sequence, piece, bytes);
                self.examine();
            }
            (Phase::Recovering(recovery), Purpose::Releases(sequence)) => {
                if let Some(object) = self.known.get_mut(&sequence) {
                    object.releases = bytes.clone();
                }
                match recovery.fetched(&self.prefix, &mut self.requests, sequence, bytes) {
                    Ok(()) => self.recover(),
                    Err(setback) => self.set_back(setback),
                }
            }
            _ => {}
        }
    }

    fn examine(&mut self) {
        let Phase::Examining(examination) = &mut self.phase else {
            return;
        };
        examination.begin_more(&self.prefix, &mut self.requests);
        if !examination.is_done() {
            return;
        }
        let examination = core::mem::take(examination);
        T::examined(self, examination);
    }

    /// Selects history, unless that ends the listing.
    fn select(&mut self, examination: Examination) -> Option<Selected> {
        let found = examination.finish();
        if let Some(doubt) = found.damage(&self.prefix) {
            self.known = found.objects;
            self.doubt(doubt);
            return None;
        }
        let selected = Selected::new(&self.prefix, &found);
        self.known = found.objects;
        match selected {
            Ok(selected) => return Some(selected),
            Err(setback) => self.set_back(setback),
        }
        None
    }

    fn recover_selected(&mut self, selected: Selected) {
        match Recovery::new(&self.prefix, &mut self.requests, &self.known, selected) {
            Ok(recovery) => {
                self.phase = Phase::Recovering(Box::new(recovery));
                self.recover();
            }
            Err(setback) => self.set_back(setback),
        }
    }

    fn recover(&mut self) {
        if !matches!(&self.phase, Phase::Recovering(recovery) if recovery.is_done()) {
            return;
        }
        if let Phase::Recovering(recovery) = core::mem::replace(&mut self.phase, Phase::Ended) {
            self.suspicion = None;
            T::recovered(self, *recovery);
        }
    }

    fn set_back(&mut self, setback: Setback) {
        match setback {
            Setback::Failed(error) => self.fail(error),
            Setback::Suspect(error) => self.suspect(error),
        }
    }

    /// What was listed does not fit together: it is damage only if the next listing agrees, since
    /// a collection of an earlier instance may be running (section 12, rule 6). That costs a start
    /// anew like any other, so that listings that never agree do not keep an opening for ever; and
    /// a delay, since the store may just lag behind. Two listings do not agree on an object if it
    /// was created again between them, as a claim or a late create may be after a collection.
    fn suspect(&mut self, error: Error) {
        if self.is_confirmed(&error) {
            return self.fail(error);
        }
        if !self.may_start_again() {
            return self.fail(unconfirmed(error));
        }
        self.list_again(error);
    }

    /// Whether the listing before said the same.
    fn is_confirmed(&self, error: &Error) -> bool {
        let agree = match (&self.suspicion, error) {
            (Some((Error::Corrupted { key, .. }, before)), Error::Corrupted { key: again, .. }) => {
                key == again && *before == self.shown_at(key)
            }
            _ => false,
        };
        agree || !self.rules.confirm_corruption
    }

    /// What the last listing said of the object at this key.
    fn shown_at(&self, key: &Key) -> Option<Shown> {
        match self.prefix.classify(key) {
            KeyKind::Object(sequence) => self.shown.get(&sequence).copied(),
            KeyKind::OutOfRange | KeyKind::Foreign => None,
        }
    }

    fn list_again(&mut self, suspicion: Error) {
        let shown = match &suspicion {
            Error::Corrupted { key, .. } => self.shown_at(key),
            _ => None,
        };
        self.suspicion = Some((suspicion.clone(), shown));
        self.notice(Notice::OpeningRetries { error: suspicion });
        self.requests.clear();
        let due = self.now.after(self.relist.next());
        self.list(due);
    }

    fn may_start_again(&mut self) -> bool {
        let may = self.restarts < self.options.open_attempts;
        self.restarts += u32::from(may);
        may
    }

    fn notice(&mut self, notice: Notice) {
        self.effects.push_back(OpeningEffect::Notice(notice));
    }

    fn fail(&mut self, error: Error) {
        self.end(OpeningEffect::Failed(error));
    }

    fn end(&mut self, last: OpeningEffect<T>) {
        self.phase = Phase::Ended;
        self.requests.clear();
        self.effects.push_back(last);
    }
}

/// What no two listings in a row agreed on is not known to be damage: it may pass.
fn unconfirmed(error: Error) -> Error {
    match &error {
        Error::Corrupted { key, .. } => {
            let key = key.clone();
            let cause: Arc<dyn core::error::Error + Send + Sync> = Arc::new(error);
            let source = StoreError::with_cause(StoreErrorKind::Transient, cause);
            Error::Store { operation: Operation::Read, key, source }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests;
