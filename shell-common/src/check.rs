//! Finding out whether a log may live in a store, by asking of it what a log does.

mod many;

use std::fmt;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use sealog_core::format::HEADER_LEN;
use sealog_core::{
    Error, Key, Listed, ObjectSeq, Operation, Payload, Prefix, RequestId, StorageAnswer,
    StorageEffect, StoreError, StoreErrorKind,
};

use crate::log::Runtime;
use crate::{carry_out, store_error};

/// How many creates race for one key.
pub const RACING: usize = 32;
const ROUNDS: u64 = 4;
/// How many objects are created, listed and deleted one after the other.
const STEPS: u64 = 8;
const SMALL: usize = 1 << 10;
/// More than an opening reads of an object at once, and no round number.
const LARGE: usize = (300 << 10) + 17;
/// Of how many keys a listing is to show all: more than the 1,000 that a page of most stores has.
pub const MANY: u64 = 1100;
/// How many deletes share a time limit: few enough for stores that delete one key per request.
const KEYS_PER_DELETE: usize = 100;

/// What a log relies on (DESIGN.md sections 1, 4 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Demand {
    /// A free key is created; a second create of it is refused, and changes nothing.
    CreateOnce,
    /// Of [`RACING`] creates of one key at once, one succeeds, and its bytes are what is there.
    CreateRace,
    /// A listing shows all that was created before it began, with its size.
    ListCreated,
    /// A range read gives exactly the bytes of the range.
    ReadRange,
    /// What was deleted cannot be read any more, and a delete of what is gone succeeds.
    Delete,
    /// A listing shows nothing that was deleted before it began, and all the rest.
    ListDeleted,
    /// Listings show all of many keys, more than one page has. In which order, and from where on, is a
    /// remark: a log can do without.
    ListMany,
}

impl Demand {
    const ALL: [Demand; 7] = [
        Demand::CreateOnce,
        Demand::CreateRace,
        Demand::ListCreated,
        Demand::ReadRange,
        Demand::Delete,
        Demand::ListDeleted,
        Demand::ListMany,
    ];
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Demand::CreateOnce => "conditional create",
            Demand::CreateRace => "racing creates",
            Demand::ListCreated => "listing after create",
            Demand::ReadRange => "range read",
            Demand::Delete => "delete",
            Demand::ListDeleted => "listing after delete",
            Demand::ListMany => "listing of many",
        })
    }
}

/// What came of one demand.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The demand.
    pub demand: Demand,
    /// How long its requests took (creates, listings, reads or deletes, as its name says), the
    /// shortest first.
    pub latencies: Vec<Duration>,
    /// How the store broke it; empty if it did not.
    pub problems: Vec<String>,
    /// What else was seen that a log can live with, and what follows from it.
    pub remarks: Vec<String>,
}

/// What came of a check of a store.
#[derive(Clone, Debug)]
pub struct StoreCheck {
    /// One for each demand. The last one is the one that the store does not support at all, if
    /// there is one: what comes after it is not asked.
    pub checked: Vec<Checked>,
}

impl StoreCheck {
    /// Whether a log may live in the store, as far as a check can tell.
    pub fn is_fit(&self) -> bool {
        self.checked.iter().all(|checked| checked.problems.is_empty())
    }
}

/// Asks of a store what a log does, with objects of its own under `scratch`, where nothing may be
/// stored, and deletes them in the end, whatever came of it. That a demand held here and now is no
/// proof that it always does; that one did not hold is proof enough.
///
/// Each request may take as long as `time_limit`. `keys` is the number of keys of which a listing is to
/// show all ([`MANY`], unless fewer are to do). Costs some 170 creates and one for each of these, and 30
/// each of listings, reads and deletes; more deletes if one request deletes one key. Dropping the future leaves objects
/// under `scratch`, and so do a delete that fails in the end, and a create that failed and lands
/// later.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if something is stored under `scratch`; [`Error::Store`] if a request
/// fails, so that nothing can be said of the store. What the store does wrong is no error.
pub async fn check_store<R: Runtime>(
    runtime: R,
    store: Arc<dyn ObjectStore>,
    scratch: Prefix,
    time_limit: Duration,
    keys: u64,
) -> Result<StoreCheck, Error> {
    let mut check = Check { runtime, store, scratch, time_limit, keys, made: Vec::new() };
    if !check.list(None).await?.0.is_empty() {
        return Err(Error::InvalidOptions {
            option: "scratch",
            value: format!("{:?}", check.scratch.as_str()).into(),
            allowed: "a prefix under which nothing is stored",
        });
    }
    let checked = check.all().await;
    let cleared = check.clear_away().await;
    let mut checked = checked?;
    cleared?;
    let left = check.list(None).await?.0;
    let deletes = checked.iter_mut().find(|checked| checked.demand == Demand::ListDeleted);
    if let (Some(deletes), Some(left)) = (deletes, left.first()) {
        deletes.problems.push(format!("{} is listed after everything was deleted", left.key));
    }
    Ok(StoreCheck { checked })
}

/// Deletes every object of a log, for tools that made the log themselves. Costs a listing and the
/// deletes. Dropping the future leaves some.
///
/// # Errors
///
/// [`Error::Store`] if a request fails: then some are left.
pub async fn clear<R: Runtime>(
    runtime: R,
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    time_limit: Duration,
) -> Result<(), Error> {
    let made = Vec::new();
    let mut all = Check { runtime, store, scratch: prefix, time_limit, keys: 0, made };
    all.made = all.list(None).await?.0.into_iter().map(|listed| listed.key).collect();
    all.clear_away().await
}

struct Check<R> {
    runtime: R,
    store: Arc<dyn ObjectStore>,
    scratch: Prefix,
    time_limit: Duration,
    keys: u64,
    /// Every key whose create was asked for.
    made: Vec<Key>,
}

impl<R: Runtime> Check<R> {
    async fn all(&mut self) -> Result<Vec<Checked>, Error> {
        let mut all = Vec::new();
        for demand in Demand::ALL {
            let (latencies, problems, remarks) = Default::default();
            let mut checked = Checked { demand, latencies, problems, remarks };
            let asked = self.ask_for(&mut checked).await;
            checked.latencies.sort_unstable();
            all.push(checked);
            match (asked, all.last_mut()) {
                (Err(Error::Store { source, .. }), Some(last))
                    if source.kind == StoreErrorKind::NotSupported =>
                {
                    last.problems.push(source.to_string());
                    break;
                }
                (asked, _) => asked?,
            }
        }
        Ok(all)
    }

    async fn ask_for(&mut self, checked: &mut Checked) -> Result<(), Error> {
        match checked.demand {
            Demand::CreateOnce => self.create_once(checked).await,
            Demand::CreateRace => self.create_race(checked).await,
            Demand::ListCreated => self.list_created(checked).await,
            Demand::ReadRange => self.read_ranges(checked).await,
            Demand::Delete => self.delete(checked).await,
            Demand::ListDeleted => self.list_deleted(checked).await,
            Demand::ListMany => self.list_many(checked).await,
        }
    }

    async fn create_once(&mut self, checked: &mut Checked) -> Result<(), Error> {
        for step in 0..STEPS {
            let key = self.key(step);
            let (first, second) = (bytes(step, SMALL), bytes(step + STEPS, SMALL));
            let (created, took) = self.create(&key, &first).await?;
            checked.latencies.push(took);
            if !created {
                checked.problems.push(format!("{key} was free, and is said to exist"));
                continue;
            }
            let (created, took) = self.create(&key, &second).await?;
            checked.latencies.push(took);
            if created {
                checked.problems.push(format!("{key} was created twice: a create overwrites"));
            }
            if self.read(&key, 0..SMALL as u64).await?.0.as_ref() != Some(&first) {
                let problem = format!("{key} does not hold what its first create brought");
                checked.problems.push(problem);
            }
        }
        Ok(())
    }

    async fn create_race(&mut self, checked: &mut Checked) -> Result<(), Error> {
        for round in 0..ROUNDS {
            let key = self.key(100 + round);
            self.made.push(key.clone());
            let racers: Vec<_> = (0..RACING as u64).map(|n| bytes(n << 8 | round, SMALL)).collect();
            let tasks: Vec<_> = racers
                .iter()
                .map(|content| {
                    let (runtime, store) = (self.runtime.clone(), self.store.clone());
                    let effect = self.put(&key, content);
                    self.runtime.spawn(async move { timed(&runtime, &store, effect).await })
                })
                .collect();
            let (mut winners, mut unknown) = (Vec::new(), None);
            for (content, answer) in racers.iter().zip(join_all(tasks).await) {
                // Only if the runtime went away.
                let Some((answer, took)) = answer else { return Err(Error::Stopped) };
                match created(answer) {
                    Ok(true) => winners.push(content),
                    Ok(false) => {}
                    // A store may be unable to tell under such a rush: that is ordinary.
                    Err(error) if error.is_retryable() => unknown = Some(error),
                    Err(error) => return Err(self.failed(Operation::Create, &key, error)),
                }
                checked.latencies.push(took);
            }
            let problem = match (winners.as_slice(), unknown) {
                ([], Some(error)) => return Err(self.failed(Operation::Create, &key, error)),
                ([], None) => format!("none of {RACING} creates of {key} succeeded"),
                ([winner], _) => match self.read(&key, 0..SMALL as u64).await?.0 {
                    Some(found) if found == **winner => continue,
                    _ => format!("{key} does not hold what the create that succeeded brought"),
                },
                (many, _) => {
                    format!("{} of {RACING} creates of {key} succeeded, not one", many.len())
                }
            };
            checked.problems.push(problem);
        }
        Ok(())
    }

    async fn list_created(&mut self, checked: &mut Checked) -> Result<(), Error> {
        let key = |step| self.key(200 + step);
        let keys: Vec<_> = (0..STEPS).map(key).collect();
        for (step, key) in keys.iter().enumerate() {
            self.create(key, &bytes(200, SMALL + step)).await?;
            // All of it, and as a writer that looks for what came after a key.
            for after in [None, step.checked_sub(1)] {
                let (listed, took) = self.list(after.map(|before| &keys[before])).await?;
                checked.latencies.push(took);
                let first = after.map_or(0, |before| before + 1);
                for (step, key) in keys.iter().enumerate().take(step + 1).skip(first) {
                    let size = (SMALL + step) as u64;
                    match listed.iter().find(|found| found.key == *key) {
                        Some(found) if found.size == size => {}
                        Some(found) => checked.problems.push(format!(
                            "{key} has {size} bytes and is listed with {}",
                            found.size
                        )),
                        None => checked.problems.push(format!(
                            "{key} was created and is missing in the listing after it"
                        )),
                    }
                }
            }
        }
        Ok(())
    }

    async fn read_ranges(&mut self, checked: &mut Checked) -> Result<(), Error> {
        let key = self.key(300);
        let content = bytes(300, LARGE);
        self.create(&key, &content).await?;
        let end = LARGE as u64;
        let header = HEADER_LEN as u64;
        let ranges = [
            0..end,
            0..1,
            0..header,
            header..header + 1,
            (64 << 10) - 1..(64 << 10) + 1,
            4095..4096,
            1000..200_000,
            end - (64 << 10)..end,
            end - 1..end,
        ];
        for range in ranges {
            let (found, took) = self.read(&key, range.clone()).await?;
            checked.latencies.push(took);
            let expected = content.slice(range.start as usize..range.end as usize);
            let is_wrong = match found {
                Some(found) if found == expected => continue,
                Some(found) if found.len() == expected.len() => "other bytes".into(),
                Some(found) => format!("{} bytes", found.len()),
                None => "nothing: it is not found".into(),
            };
            checked.problems.push(format!(
                "bytes {}..{} of {key}, {} of them, were asked for, and the answer is {is_wrong}",
                range.start,
                range.end,
                expected.len(),
            ));
        }
        Ok(())
    }

    async fn delete(&mut self, checked: &mut Checked) -> Result<(), Error> {
        let keys: Vec<_> = (0..STEPS).map(|step| self.key(400 + step)).collect();
        for key in &keys {
            self.create(key, &bytes(400, SMALL)).await?;
        }
        let (one, many) = (&keys[..1], &keys[1..]);
        // The first once more: it is gone by then.
        for keys in [one, many, one] {
            checked.latencies.push(self.delete_these(keys).await?);
        }
        for key in &keys {
            if self.read(key, 0..1).await?.0.is_some() {
                checked.problems.push(format!("{key} was deleted and can still be read"));
            }
        }
        Ok(())
    }

    async fn list_deleted(&mut self, checked: &mut Checked) -> Result<(), Error> {
        let keys: Vec<_> = (0..STEPS).map(|step| self.key(500 + step)).collect();
        for key in &keys {
            self.create(key, &bytes(500, SMALL)).await?;
        }
        for (step, key) in keys.iter().enumerate() {
            self.delete_these(std::slice::from_ref(key)).await?;
            let (listed, took) = self.list(None).await?;
            checked.latencies.push(took);
            for (other, key) in keys.iter().enumerate() {
                match (other <= step, listed.iter().any(|found| found.key == *key)) {
                    (true, true) => checked
                        .problems
                        .push(format!("{key} was deleted and is in the listing after it")),
                    (false, false) => checked
                        .problems
                        .push(format!("{key} is missing in the listing after another's delete")),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn clear_away(&mut self) -> Result<(), Error> {
        let made = std::mem::take(&mut self.made);
        let Some((first, rest)) = made.split_first() else { return Ok(()) };
        for keys in rest.chunks(KEYS_PER_DELETE) {
            self.delete_these(keys).await?;
        }
        // Alone, so that a local directory does not go while another delete has yet to sync it.
        self.delete_these(std::slice::from_ref(first)).await?;
        Ok(())
    }

    fn key(&self, number: u64) -> Key {
        self.scratch.object_key(ObjectSeq(number))
    }

    fn put(&self, key: &Key, content: &Bytes) -> StorageEffect {
        StorageEffect::PutObject {
            id: RequestId(0),
            key: key.clone(),
            payload: Payload::new(vec![content.clone()]),
            time_limit: self.time_limit,
        }
    }

    /// Whether it was created, or stood there already.
    async fn create(&mut self, key: &Key, content: &Bytes) -> Result<(bool, Duration), Error> {
        self.made.push(key.clone());
        let (answer, took) = timed(&self.runtime, &self.store, self.put(key, content)).await;
        let created = created(answer).map_err(|e| self.failed(Operation::Create, key, e))?;
        Ok((created, took))
    }

    async fn list(&self, after: Option<&Key>) -> Result<(Vec<Listed>, Duration), Error> {
        let prefix = self.scratch.objects();
        let effect = StorageEffect::List {
            id: RequestId(0),
            prefix: prefix.clone(),
            after: after.cloned(),
            time_limit: self.time_limit,
        };
        let (answer, took) = timed(&self.runtime, &self.store, effect).await;
        let StorageAnswer::Listed { result, .. } = answer else { return Err(Error::Stopped) };
        let listed = result.map_err(|error| self.failed(Operation::List, &prefix, error))?;
        Ok((listed, took))
    }

    async fn delete_these(&self, keys: &[Key]) -> Result<Duration, Error> {
        let effect = StorageEffect::DeleteObjects {
            id: RequestId(0),
            keys: keys.into(),
            time_limit: self.time_limit,
        };
        let (answer, took) = timed(&self.runtime, &self.store, effect).await;
        let StorageAnswer::DeleteResult { results, .. } = answer else {
            return Err(Error::Stopped);
        };
        for (key, result) in results {
            match result {
                Err(error) if error.kind != StoreErrorKind::NotFound => {
                    return Err(self.failed(Operation::Delete, &key, error));
                }
                _ => {}
            }
        }
        Ok(took)
    }

    /// What a read of the range gives, of whatever length, or nothing if there is no such object.
    /// By itself, since an answer of another length is what is looked for.
    async fn read(&self, key: &Key, range: Range<u64>) -> Result<(Option<Bytes>, Duration), Error> {
        let began = self.runtime.now();
        let read = async {
            let options =
                GetOptions { range: Some(GetRange::Bounded(range)), ..Default::default() };
            self.store.get_opts(&Path::parse(key)?, options).await?.bytes().await
        };
        let limit = self.runtime.sleep(self.time_limit);
        let found = match select(pin!(read), pin!(limit)).await {
            Either::Left((found, _)) => found.map_err(|e| store_error(Operation::Read, e)),
            Either::Right(((), _)) => Err(StoreError::new(StoreErrorKind::TimedOut)),
        };
        let found = match found {
            Ok(found) => Some(found),
            Err(error) if error.kind == StoreErrorKind::NotFound => None,
            Err(error) => return Err(self.failed(Operation::Read, key, error)),
        };
        Ok((found, self.runtime.now().since(began)))
    }

    fn failed(&self, operation: Operation, key: &Key, source: StoreError) -> Error {
        Error::Store { operation, key: key.clone(), source }
    }
}

async fn timed<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    effect: StorageEffect,
) -> (StorageAnswer, Duration) {
    let began = runtime.now();
    let answer = carry_out(store, effect, |limit| runtime.sleep(limit)).await;
    (answer, runtime.now().since(began))
}

fn created(answer: StorageAnswer) -> Result<bool, StoreError> {
    match answer {
        StorageAnswer::CreateResult { result: Ok(()), .. } => Ok(true),
        StorageAnswer::CreateResult { result: Err(error), .. } => match error.kind {
            StoreErrorKind::Exists => Ok(false),
            _ => Err(error),
        },
        // Not an answer to what was asked.
        _ => Err(StoreError::new(StoreErrorKind::Transient)),
    }
}

/// Bytes that differ from place to place and from seed to seed, the same each time.
fn bytes(seed: u64, length: usize) -> Bytes {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}
