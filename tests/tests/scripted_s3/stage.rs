//! One log on one scripted S3, and the judge of what it acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use sealog_core::Outcome;
use sealog_tests::s3::{Fault, Kind, Rule, S3};
use sealog_tokio::{
    EntryId, Error, Options, ReadItem, Reader, ReplayFilter, ReplayItem, Wal, WriteError,
};

use crate::log::{Log, Made, PREFIX, REGION, one_by_one};

/// What a row ends with: what is wrong, if something is.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// Fails a row unless something holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

pub(crate) use ensure;

pub(crate) struct Stage {
    pub(crate) s3: S3,
    pub(crate) options: Options,
    /// The test's own record.
    pub(crate) acknowledged: BTreeMap<EntryId, Bytes>,
    /// Payloads whose append failed and that may be there all the same.
    unknown: BTreeSet<Bytes>,
    /// Payloads that were never sent.
    not_written: BTreeSet<Bytes>,
    before: BTreeMap<String, Bytes>,
    /// Rules that come with every script.
    sticky: Vec<Rule>,
}

/// Everything that waits for a store waits little.
pub(crate) fn impatient() -> Options {
    Options {
        open_timeout: Duration::from_millis(800),
        retry_for: Duration::from_millis(600),
        read_retry_for: Duration::from_millis(800),
        open_attempts: 3,
        ..one_by_one()
    }
}

impl Stage {
    pub(crate) async fn new(log: Log) -> Stage {
        let s3 = S3::start();
        let Made { acknowledged, objects } = log.fill(&s3).await;
        let (unknown, not_written, sticky) = Default::default();
        let (options, before) = (impatient(), objects);
        Stage { s3, options, acknowledged, unknown, not_written, before, sticky }
    }

    /// From here on the script counts.
    pub(crate) fn script(&self, rules: impl IntoIterator<Item = Rule>) {
        self.s3.forget();
        for rule in self.sticky.iter().cloned().chain(rules) {
            self.s3.rule(rule);
        }
    }

    /// A rule of every script.
    pub(crate) fn sticky(&mut self, rule: Rule) {
        self.sticky.push(rule);
    }

    pub(crate) async fn open(&self) -> Result<Wal, Error> {
        Wal::open(self.s3.store(), PREFIX, self.options.clone()).await
    }

    pub(crate) async fn reader(&self) -> Result<Reader, Error> {
        Reader::open(self.s3.store(), PREFIX, self.options.clone()).await
    }

    /// Appends, and notes what was said of it.
    pub(crate) async fn append(&mut self, wal: &Wal, text: &str) -> Result<EntryId, WriteError> {
        let payload = Bytes::from(text.to_owned());
        let answer = wal.append(REGION, payload.clone()).await;
        match &answer {
            Ok(id) => drop(self.acknowledged.insert(*id, payload)),
            Err(error) if error.outcome() == Outcome::Unknown => {
                self.unknown.insert(payload);
            }
            Err(_) => drop(self.not_written.insert(payload)),
        }
        answer
    }

    /// These were submitted without the record, and may be there.
    pub(crate) fn may_have_come<const N: usize>(&mut self, texts: [&'static str; N]) {
        self.unknown.extend(texts.map(|text| Bytes::from_static(text.as_bytes())));
    }

    /// What is acknowledged up to here may be in a later history, or not.
    pub(crate) fn made_obsolete(&mut self, through: EntryId) {
        let left = self.acknowledged.split_off(&through.next());
        self.unknown.extend(std::mem::replace(&mut self.acknowledged, left).into_values());
    }

    /// That a reader of any kind saw exactly what was acknowledged.
    pub(crate) fn is_whole(&self, found: &BTreeMap<EntryId, Bytes>) -> Checked {
        for (id, payload) in &self.acknowledged {
            ensure!(
                found.get(id) == Some(payload),
                "{id} was acknowledged, and is found as {:?} among {} entries",
                found.get(id),
                found.len()
            );
        }
        for (id, payload) in found {
            let acknowledged = self.acknowledged.contains_key(id);
            ensure!(
                acknowledged || self.unknown.contains(payload),
                "{id} was not acknowledged, and is found as {payload:?}; it {} said to be nowhere",
                if self.not_written.contains(payload) { "was" } else { "was not" }
            );
        }
        Ok(())
    }

    /// Later openings, without faults, have what was acknowledged, each entry once.
    pub(crate) async fn nothing_is_lost(&mut self) -> Checked {
        self.s3.heal();
        for _ in 0..2 {
            let patient = Options { open_timeout: Duration::from_secs(20), ..one_by_one() };
            let wal = Wal::open(self.s3.store(), PREFIX, patient).await;
            let wal = wal.map_err(|error| format!("afterwards it does not open: {error}"))?;
            let found = read(&wal).await.map_err(|error| format!("afterwards: {error}"))?;
            self.is_whole(&found)?;
            let last = self.acknowledged.keys().last().copied().unwrap_or_default();
            let id = self.append(&wal, &format!("afterwards {last}")).await;
            let id = id.map_err(|error| format!("afterwards nothing can be appended: {error}"))?;
            ensure!(id > last, "{id} was acknowledged after {last}");
            wal.stop().await.map_err(|error| format!("afterwards: {error}"))?;
        }
        Ok(())
    }

    /// The bucket is as it was before.
    pub(crate) fn nothing_was_changed(&self) -> Checked {
        let bucket = self.s3.bucket();
        let puts = bucket.objects().keys().filter(|key| !self.before.contains_key(*key));
        let puts: Vec<_> = puts.collect();
        ensure!(puts.is_empty(), "it created {puts:?}, and says that nothing was changed");
        ensure!(bucket.objects().len() == self.before.len(), "something was deleted");
        Ok(())
    }

    /// Changes an object of the log before anybody looks.
    pub(crate) fn change(&mut self, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bucket = self.s3.bucket();
        let mut bytes = bucket.get(key).unwrap().bytes.to_vec();
        change(&mut bytes);
        self.before.insert(key.into(), bytes.clone().into());
        bucket.put(key, bytes);
    }

    /// How often something was asked is within bounds.
    pub(crate) fn asked(
        &self,
        kind: Kind,
        bounds: impl std::ops::RangeBounds<u64> + std::fmt::Debug,
    ) -> Checked {
        let counts = self.s3.counts();
        let count = self.s3.count(kind);
        ensure!(
            bounds.contains(&count),
            "{count} requests of {kind:?}, not {bounds:?}: {counts:?}"
        );
        Ok(())
    }
}

/// All entries of the region; a hole is an error.
pub(crate) async fn read(wal: &Wal) -> Result<BTreeMap<EntryId, Bytes>, String> {
    let mut read = wal.read(REGION, EntryId::ZERO);
    let mut found = BTreeMap::new();
    while let Some(item) = read.try_next().await.map_err(|error| error.to_string())? {
        match item {
            ReadItem::Entry(entry) => {
                let again = found.insert(entry.id, entry.payload);
                ensure!(again.is_none(), "{} came twice", entry.id);
            }
            ReadItem::Hole(hole) => return Err(format!("{hole:?}")),
        }
    }
    Ok(found)
}

/// The same through a replay of all regions.
pub(crate) async fn replay(
    mut replay: sealog_tokio::Replay,
) -> Result<BTreeMap<EntryId, Bytes>, Error> {
    let mut found = BTreeMap::new();
    while let Some(item) = replay.try_next().await? {
        match item {
            ReplayItem::Entry(_, entry) => drop(found.insert(entry.id, entry.payload)),
            ReplayItem::Hole(hole) => panic!("{hole:?}"),
        }
    }
    Ok(found)
}

pub(crate) async fn replay_all(wal: &Wal) -> Result<BTreeMap<EntryId, Bytes>, Error> {
    replay(wal.replay(ReplayFilter::all())).await
}

/// What an error should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrong {
    /// The variant; several are separated by `|`.
    pub(crate) is: &'static str,
    pub(crate) retryable: bool,
    /// What its text, or that of a cause, must say.
    pub(crate) says: &'static [&'static str],
    /// What none of them may say.
    pub(crate) not: &'static [&'static str],
}

/// A failure that does not pass.
pub(crate) const fn lasting(is: &'static str) -> Wrong {
    Wrong { is, retryable: false, says: &[], not: &[] }
}

/// A failure that may pass.
pub(crate) const fn passing(is: &'static str) -> Wrong {
    Wrong { is, retryable: true, says: &[], not: &[] }
}

impl Wrong {
    pub(crate) const fn saying(self, says: &'static [&'static str]) -> Wrong {
        Wrong { says, ..self }
    }

    pub(crate) const fn not_saying(self, not: &'static [&'static str]) -> Wrong {
        Wrong { not, ..self }
    }

    pub(crate) fn judge(self, error: &Error) -> Checked {
        let variant = format!("{error:?}");
        let variant = variant.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let text = with_causes(error);
        let is = self.is.split('|').any(|is| is == variant);
        ensure!(is, "{variant} instead of {}: {text}", self.is);
        let retryable = error.is_retryable();
        ensure!(retryable == self.retryable, "retryable is {retryable}: {text}");
        for says in self.says {
            let said = text.to_lowercase().contains(&says.to_lowercase());
            ensure!(said, "it does not say {says:?}: {text}");
        }
        for not in self.not {
            let said = text.to_lowercase().contains(&not.to_lowercase());
            ensure!(!said, "it says {not:?}: {text}");
        }
        Ok(())
    }
}

pub(crate) fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

/// A status with S3's words for it.
pub(crate) fn status(status: u16) -> Fault {
    let (code, message) = match status {
        301 => (
            "PermanentRedirect",
            "The bucket you are attempting to access must be addressed using the specified endpoint.",
        ),
        400 => (
            "AuthorizationHeaderMalformed",
            "The authorization header is malformed; the region 'eu-central-1' is wrong; expecting \
             'eu-west-1'",
        ),
        403 => ("AccessDenied", "Access Denied"),
        404 => ("NoSuchBucket", "The specified bucket does not exist"),
        405 => ("MethodNotAllowed", "The specified method is not allowed against this resource."),
        408 => {
            ("RequestTimeout", "Your socket connection was not read from or written to in time.")
        }
        409 => ("ConditionalRequestConflict", "A conflicting operation occurred."),
        412 => ("PreconditionFailed", "At least one of the pre-conditions did not hold"),
        423 => ("Locked", "The resource is locked."),
        425 => ("TooEarly", "Too early."),
        429 => ("TooManyRequests", "Please reduce your request rate."),
        500 => ("InternalError", "We encountered an internal error. Please try again."),
        501 => ("NotImplemented", "A header you provided implies functionality that is not there."),
        503 => ("SlowDown", "Please reduce your request rate."),
        _ => ("Unknown", "Unknown"),
    };
    Fault::Status { status, code, message }
}
