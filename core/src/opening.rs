//! The Opening machine (DESIGN.md section 4): from what the store holds to a log that can be
//! written, to a view of it, or to a survey of all that is there.
//!
//! The rooms follow the document's steps: `examine` fetches and verifies what was listed,
//! `recover` selects history, `claim` sees to it that no older writer can go on unnoticed
//! (section 12), `recover` indexes history and applies its release records, `start` creates the
//! start object and checks the store, `look` looks whether something came in between (section
//! 12), and `ending` ends. `requests` numbers, limits and delays what is asked of the store meanwhile.
//!
//! Two ways put nothing (`aim` says where they part): `view` ends once history is recovered, and
//! `survey`, which examines objects with `thorough`, reports every problem instead of failing with
//! the first.

#![allow(private_interfaces, reason = "only the three ways of here can implement `Steps`")]

mod aim;
mod claim;
mod ending;
mod examine;
mod look;
mod objects;
mod parts;
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

use crate::backoff::Backoff;
use crate::catalog::Catalog;
use crate::error::{Error, Operation, StoreError, StoreErrorKind};
use crate::event::{Listed, Notice, RequestId, StorageAnswer, StorageEffect};
use crate::key::{Key, KeyKind, Prefix};
use crate::listing::{Listing, Round, Trust};
use crate::options::Options;
use crate::rules::Rules;
use crate::types::{Link, ObjectSeq, Time};

use aim::Steps;
use claim::Claims;
use examine::{Examination, Examined, Found};
use look::Look;
use recover::{Recovery, Selected, Setback};
use requests::{Body, Purpose, Request, Requests};
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
/// the last answer that succeeded, and a listing is asked again at most `open_attempts` times,
/// whatever the reason: that it was not believed or did not settle, that it is to confirm a
/// suspicion, or that the opening starts again. (A listing after claims that were created does not
/// count, since each of those closes a hole for good.)
#[derive(Clone, Debug)]
pub struct Opening<T: Steps = Recovered> {
    prefix: Prefix,
    options: Options,
    own: T::Own,
    rules: Rules,
    began: Time,
    /// When an answer succeeded last.
    last_success: Time,
    now: Time,
    phase: Phase,
    requests: Requests,
    effects: VecDeque<OpeningEffect<T>>,
    /// How often a listing was asked again.
    restarts: u32,
    /// A listing was asked again once since it did not settle.
    was_unsettled: bool,
    /// A listing came in no order: none of this store is believed at its first word any more.
    unordered: bool,
    /// What the last listing says of its objects.
    shown: BTreeMap<ObjectSeq, Shown>,
    /// How many objects of others the last listing showed that the one before did not.
    came: u64,
    /// What was read of the objects that the last listing showed.
    known: BTreeMap<ObjectSeq, Examined>,
    /// Of these, the claims of this opening that no listing has shown yet.
    unlisted: BTreeSet<ObjectSeq>,
    /// What the last listing would have failed the opening with, if the next one says the same.
    suspicion: Option<Suspicion>,
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

/// What would fail an opening if the next listing agreed (DESIGN.md section 12, rule 6).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Suspicion {
    doubt: Doubt,
    key: Key,
    /// What the listing showed at that key.
    shown: Option<Shown>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// Something is missing.
    Lacking,
    /// Something does not verify.
    Damaged,
}

/// The steps of DESIGN.md section 4, and of section 12 between them.
#[derive(Clone, Debug)]
enum Phase {
    /// Step 1.
    Listing(Box<Listing>),
    /// Steps 1 and 2.
    Examining(Examination),
    /// Steps 3 to 5 are done but for release records that are still read.
    Recovering(Box<Recovery>),
    /// Section 12, rule 2; then the listing comes again.
    Claiming(Box<Claims>),
    /// Step 6.
    Starting(Box<Start>),
    /// Step 7.
    Checking(Box<Start>),
    /// Section 12, rule 3.
    Looking(Box<Look>),
    /// The end of that rule: is it our start object that stands there?
    Rereading(Box<Start>),
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
            last_success: now,
            now,
            phase: Phase::Ended,
            requests,
            effects: VecDeque::new(),
            restarts: 0,
            unordered: false,
            was_unsettled: false,
            shown: BTreeMap::new(),
            came: 0,
            known: BTreeMap::new(),
            unlisted: BTreeSet::new(),
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
        if self.is_progress(&answer) {
            self.last_success = self.now;
        }
        match (&self.phase, answer) {
            (Phase::Listing(_), StorageAnswer::Listed { result, .. }) => match result {
                Ok(keys) => self.listed(keys),
                Err(error) => self.read_failed(request, error),
            },
            (Phase::Examining(_) | Phase::Recovering(_), StorageAnswer::Fetched { result, .. }) => {
                match request.body(result) {
                    Ok(body) => self.fetched(request.purpose, body),
                    Err(error) => self.read_failed(request, error),
                }
            }
            (_, answer) => T::answered(self, request, answer),
        }
    }

    /// Whether an answer is one that `open_timeout` counts from.
    fn is_progress(&self, answer: &StorageAnswer) -> bool {
        match (&self.phase, answer) {
            // The check is to be answered so.
            (Phase::Checking(_), StorageAnswer::CreateResult { result: Err(error), .. }) => {
                error.kind == StoreErrorKind::Exists
            }
            (_, StorageAnswer::CreateResult { result, .. }) => result.is_ok(),
            // Reads that only tell what became of a put succeed as often as the put is repeated.
            (Phase::Starting(_) | Phase::Rereading(_), _) => false,
            (_, answer) => answer.succeeded(),
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

    /// Repeats a request after a delay, if that is within `open_timeout` of the last success.
    fn try_later(&mut self, mut request: Request, delay: Duration, failure: StoreError) {
        let error = request.failed(failure);
        let due = self.now.after(delay);
        if due > self.last_success.after(self.options.open_timeout) {
            return self.fail(error);
        }
        if !request.repeated {
            request.repeated = true;
            self.notice(Notice::OpeningRetries { error });
        }
        self.requests.delay(request, due);
    }

    fn list(&mut self, due: Time) {
        let listing = Listing::new(&self.prefix, None, self.trust());
        self.phase = Phase::Listing(Box::new(listing));
        self.requests.delay(Request::list(self.prefix.objects(), None), due);
    }

    /// How far the order of a listing decides whether it is believed.
    fn trust(&self) -> Trust {
        match (T::TAKES_ANY_ORDER, self.unordered) {
            (true, _) => Trust::AnyOrder,
            (false, true) => Trust::Settled,
            (false, false) => Trust::InOrder,
        }
    }

    /// An answer to the listing: more of it may be asked for before it is believed.
    fn listed(&mut self, keys: Vec<Listed>) {
        let Phase::Listing(listing) = &mut self.phase else { return };
        let step = listing.take(keys);
        self.unordered |= listing.is_unordered();
        match step {
            Round::Done(listing) => self.show(listing),
            // Every listing ends so.
            Round::More { after } => {
                self.requests.push(Request::list(self.prefix.objects(), after));
            }
            Round::Unsettled { after, largest } => {
                let key = self.prefix.objects();
                if T::unsettled(self, after.clone(), largest) {
                    return;
                }
                if !self.may_start_again() {
                    return self.fail(unsettled(key));
                }
                // Others that open the log at the same time need a moment.
                let is_first = core::mem::replace(&mut self.was_unsettled, true);
                let due = if is_first { self.now.after(self.relist.next()) } else { self.now };
                self.requests.delay(Request::list(key, after), due);
            }
        }
    }

    /// What a listing shows, once it is believed.
    fn show(&mut self, listing: Vec<Listed>) {
        let objects = self.sorted(listing);
        if let Some(key) = self.lacks_what_was_created(&objects) {
            return self.disbelieve(key);
        }
        let shown = objects.into_iter().map(|(sequence, Listed { size, modified_millis, .. })| {
            (sequence, Shown { size, modified_millis })
        });
        let before = core::mem::replace(&mut self.shown, shown.collect());
        let came = |sequence: &&ObjectSeq| {
            !before.contains_key(sequence) && !self.unlisted.contains(sequence)
        };
        self.came = match T::counts_what_came(self) {
            true => self.shown.keys().filter(came).count() as u64,
            false => 0,
        };
        if self.shown.is_empty() && self.options.must_exist {
            return self.fail(Error::Missing { prefix: self.prefix.as_str().into() });
        }
        // An object is the one that was read only while its key, its size and its time are the same.
        let unlisted = core::mem::take(&mut self.unlisted);
        let mut known = core::mem::take(&mut self.known);
        known.retain(|sequence, object| match self.shown.get(sequence) {
            Some(shown) if unlisted.contains(sequence) => shown.size == object.size,
            shown => shown.is_some() && shown == before.get(sequence),
        });
        let sizes = self.shown.iter().map(|(sequence, shown)| (*sequence, shown.size)).collect();
        self.phase = Phase::Examining(T::begin(Examination::new(sizes, known)));
        self.examine();
    }

    /// The first key that was just created and is not in a listing.
    fn lacks_what_was_created(&self, objects: &BTreeMap<ObjectSeq, Listed>) -> Option<Key> {
        let is_shown = |key: &Key| match self.prefix.classify(key) {
            KeyKind::Object(sequence) => objects.contains_key(&sequence),
            KeyKind::OutOfRange | KeyKind::Foreign => false,
        };
        T::expected(self).into_iter().find(|key| !is_shown(key))
    }

    /// A listing that lacks what this opening has just created shows nothing that can be relied on.
    fn disbelieve(&mut self, key: Key) {
        let text = alloc::format!("the listing does not show {key}, which was just created");
        let source = StoreError::with_text(StoreErrorKind::Transient, text);
        let error = Error::Store { operation: Operation::List, key: self.prefix.objects(), source };
        if !self.may_start_again() {
            return self.fail(error);
        }
        self.notice(Notice::OpeningRetries { error });
        let due = self.now.after(self.relist.next());
        T::list_again(self, due);
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

    fn fetched(&mut self, purpose: Purpose, body: Body) {
        match (&mut self.phase, purpose) {
            (Phase::Examining(examination), Purpose::Piece(sequence, piece)) => {
                examination.fetched(&self.prefix, &mut self.requests, sequence, piece, body);
                self.examine();
            }
            (Phase::Recovering(recovery), Purpose::Releases(sequence)) => {
                match recovery.fetched(&self.prefix, &mut self.requests, sequence, body) {
                    Ok(whole) => {
                        if let (Some(object), Some(whole)) = (self.known.get_mut(&sequence), whole)
                        {
                            object.releases = Some(whole);
                        }
                        self.recover();
                    }
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

    /// Goes on from what was examined: selects history and recovers it, unless something is wrong.
    fn select(&mut self, found: Found, forgiving: bool) {
        let selected = Selected::new(&self.prefix, &found, forgiving);
        self.known = found.objects;
        match selected {
            Ok(selected) => self.recover_selected(selected),
            Err(setback) => self.set_back(setback),
        }
    }

    /// What was found, unless there is something in it that does not verify, or that no opening of
    /// this version may touch.
    fn sound(&mut self, examination: Examination) -> Option<Found> {
        let found = examination.finish();
        let setback = match (found.later_version(&self.prefix), found.damage(&self.prefix)) {
            (Some(later), _) => Setback::Failed(later),
            (None, Some(damage)) => Setback::Damaged(damage),
            (None, None) => return Some(found),
        };
        self.known = found.objects;
        self.set_back(setback);
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
            // In a listing in no order something may be missing that is there.
            Setback::Lacking(error) => {
                let accuses = !(self.trust() == Trust::AnyOrder && self.unordered);
                self.suspect(error, Doubt::Lacking, accuses);
            }
            Setback::Damaged(error) => self.suspect(error, Doubt::Damaged, true),
        }
    }

    /// What was listed does not fit together: it is damage only if the next listing agrees, since
    /// a collection of an earlier instance may be running (section 12, rule 6), and what was read may
    /// have taken the place of what was listed. That costs a start anew like any other, so that
    /// listings that never agree do not keep an opening for ever; and from the second time on a
    /// delay, since the store may just lag behind.
    fn suspect(&mut self, error: Error, doubt: Doubt, accuses: bool) {
        if self.is_confirmed(&error, doubt) {
            return self.fail(if accuses { error } else { unconfirmed(error) });
        }
        if !self.may_start_again() {
            return self.fail(unconfirmed(error));
        }
        self.confirm(error, doubt);
    }

    /// Whether the listing before said the same: that an object which was gone is damaged now says
    /// that it came again.
    fn is_confirmed(&self, error: &Error, doubt: Doubt) -> bool {
        let agree = match (&self.suspicion, error) {
            (Some(before), Error::Corrupted { key, .. }) => {
                let now = Suspicion { doubt, key: key.clone(), shown: self.shown_at(key) };
                *before == now
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

    /// Lists again to see whether that says the same.
    fn confirm(&mut self, error: Error, doubt: Doubt) {
        let is_first = self.suspicion.is_none();
        if let Error::Corrupted { key, .. } = &error {
            let shown = self.shown_at(key);
            self.suspicion = Some(Suspicion { doubt, key: key.clone(), shown });
        }
        self.notice(Notice::OpeningRetries { error });
        self.requests.clear();
        let due = if is_first { self.now } else { self.now.after(self.relist.next()) };
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

    fn fail(&mut self, mut error: Error) {
        if let Error::Corrupted { created, .. } = &mut error {
            *created =
                Some(T::put(self).into_iter().map(|at| self.prefix.object_key(at)).collect());
        }
        self.end(OpeningEffect::Failed(error));
    }

    fn end(&mut self, last: OpeningEffect<T>) {
        self.phase = Phase::Ended;
        self.requests.clear();
        self.effects.push_back(last);
    }
}

/// The listings of a store without order never showed the same twice.
fn unsettled(key: Key) -> Error {
    let text = "the store lists in no order, and no two listings in a row showed the same: more is \
                written there than can be listed in between";
    let source = StoreError::with_text(StoreErrorKind::Transient, text);
    Error::Store { operation: Operation::List, key, source }
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
