//! What is stored, and the answers to what is asked of it.

use std::collections::BTreeMap;
use std::hash::Hasher;

use bytes::Bytes;
use rustc_hash::FxHasher;

use super::fault::{Fault, Rule, Token};
use super::http::{Reply, Request};
use super::text::{self, Page};
use super::{BUCKET, Kind};

/// A bucket in memory. Its clock stands unless a test moves it, but that each object is stored a
/// millisecond after the one before.
pub struct Bucket {
    objects: BTreeMap<String, Stored>,
    /// Milliseconds since 1970.
    now: u64,
    versions: u64,
    pub(super) rules: Vec<Rule>,
    pub(super) counts: BTreeMap<Kind, u64>,
    /// How many requests are under way, and how many were at most.
    under_way: BTreeMap<Kind, u64>,
    pub(super) peaks: BTreeMap<Kind, u64>,
    pub(super) late: Vec<(String, Bytes)>,
    /// How many keys a page has.
    pub page: usize,
    /// In which order listings come.
    pub order: Order,
}

/// An object.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its bytes.
    pub bytes: Bytes,
    /// When it was stored, in milliseconds since 1970.
    pub modified: u64,
    pub(super) version: u64,
}

/// In which order a listing comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As S3 does.
    #[default]
    Ascending,
    /// From the last key to the first.
    Descending,
    /// As directory buckets do: in none, and always the same.
    Scattered,
}

impl Order {
    fn of(self, key: &str) -> (u64, &str) {
        let mut hasher = FxHasher::default();
        hasher.write(key.as_bytes());
        match self {
            Order::Ascending | Order::Descending => (0, key),
            Order::Scattered => (hasher.finish(), key),
        }
    }
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket {
            objects: BTreeMap::new(),
            now: 1_767_225_600_000,
            versions: 0,
            rules: Vec::new(),
            counts: BTreeMap::new(),
            under_way: BTreeMap::new(),
            peaks: BTreeMap::new(),
            late: Vec::new(),
            page: 1_000,
            order: Order::Ascending,
        }
    }
}

impl Bucket {
    /// Stores an object, whatever is there.
    pub fn put(&mut self, key: impl Into<String>, bytes: impl Into<Bytes>) {
        self.now += 1;
        self.versions += 1;
        let (modified, version) = (self.now, self.versions);
        self.objects.insert(key.into(), Stored { bytes: bytes.into(), modified, version });
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &str) -> Option<Stored> {
        self.objects.remove(key)
    }

    /// What is stored at a key.
    pub fn get(&self, key: &str) -> Option<&Stored> {
        self.objects.get(key)
    }

    /// All that is stored.
    pub fn objects(&self) -> &BTreeMap<String, Stored> {
        &self.objects
    }

    /// Sets when an object was stored.
    pub fn set_modified(&mut self, key: &str, millis: u64) {
        if let Some(stored) = self.objects.get_mut(key) {
            stored.modified = millis;
        }
    }

    /// The clock, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Drops the script; answers that are held stay held until [`S3::heal`](super::S3::heal).
    pub fn rules_are_over(&mut self) {
        self.rules.clear();
    }

    /// Moves the clock.
    pub fn pass(&mut self, millis: u64) {
        self.now += millis;
    }

    pub(super) fn enters(&mut self, kind: Kind) {
        *self.counts.entry(kind).or_default() += 1;
        let under_way = self.under_way.entry(kind).or_default();
        *under_way += 1;
        let peak = self.peaks.entry(kind).or_default();
        *peak = (*peak).max(*under_way);
    }

    pub(super) fn leaves(&mut self, kind: Kind) {
        if let Some(under_way) = self.under_way.get_mut(&kind) {
            *under_way -= 1;
        }
    }

    pub(super) fn land(&mut self) {
        for (key, bytes) in std::mem::take(&mut self.late) {
            if !self.objects.contains_key(&key) {
                self.put(key, bytes);
            }
        }
    }

    pub(super) fn faults(&mut self, kind: Kind, key: &str) -> Vec<Fault> {
        self.rules.iter_mut().filter_map(|rule| rule.meets(kind, key)).collect()
    }

    pub(super) fn answer(
        &mut self,
        kind: Kind,
        key: &str,
        request: &Request,
        faults: &[Fault],
    ) -> Reply {
        match kind {
            Kind::List => self.list(request, faults),
            Kind::Get | Kind::Head => self.read(key, request),
            Kind::Put => self.create(key, request, faults),
            Kind::Delete => self.delete(request, faults),
        }
    }

    fn create(&mut self, key: &str, request: &Request, faults: &[Fault]) -> Reply {
        let is = |wanted: fn(&Fault) -> bool| faults.iter().any(wanted);
        let has_checksum = request.headers.keys().any(|name| name.starts_with("x-amz-checksum-"));
        if is(|fault| matches!(fault, Fault::WantsChecksum)) && !has_checksum {
            return Reply::error(
                400,
                "InvalidRequest",
                "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests \
                 with Object Lock parameters",
            );
        }
        let conditional = request.headers.get("if-none-match").is_some_and(|value| value == "*");
        let overwrites = is(|fault| matches!(fault, Fault::Overwrites));
        if conditional && !overwrites && self.objects.contains_key(key) {
            return Reply::error(
                412,
                "PreconditionFailed",
                "At least one of the pre-conditions you specified did not hold",
            );
        }
        self.put(key, request.body.clone());
        let tag = self.objects.get(key).map(text::etag).unwrap_or_default();
        Reply::new(200, Vec::new()).header("ETag", tag)
    }

    fn read(&self, key: &str, request: &Request) -> Reply {
        let Some(stored) = self.objects.get(key) else {
            return Reply::error(404, "NoSuchKey", "The specified key does not exist.");
        };
        let tag = text::etag(stored);
        if request.headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
            return Reply::error(412, "PreconditionFailed", "The object is another one.");
        }
        let size = stored.bytes.len();
        let reply = match request.range(size) {
            Ok(None) => Reply::new(200, stored.bytes.to_vec()),
            Ok(Some(range)) => {
                let said = format!("bytes {}-{}/{size}", range.start, range.end - 1);
                Reply::new(206, stored.bytes[range].to_vec()).header("Content-Range", said)
            }
            Err(()) => {
                let message = "The requested range is not satisfiable";
                return Reply::error(416, "InvalidRange", message)
                    .header("Content-Range", format!("bytes */{size}"));
            }
        };
        reply
            .header("ETag", tag)
            .header("Last-Modified", text::date_in_header(stored.modified))
            .header("Content-Type", "application/octet-stream".into())
    }

    fn delete(&mut self, request: &Request, faults: &[Fault]) -> Reply {
        let mut keys = request.keys();
        let mut refused = None;
        for fault in faults {
            match fault {
                Fault::RefusesEach(code) => refused = Some(*code),
                Fault::ForgetsOne => drop(keys.pop()),
                _ => {}
            }
        }
        let answers = keys.into_iter().map(|key| {
            if refused.is_none() {
                self.objects.remove(&key);
            }
            (key, refused)
        });
        let answers: Vec<_> = answers.collect();
        match request.is_of_many() {
            true => Reply::xml(text::deleted(&answers)),
            false => Reply::new(204, Vec::new()),
        }
    }

    fn list(&self, request: &Request, faults: &[Fault]) -> Reply {
        let (prefix, after) = (request.asked("prefix"), request.asked("start-after"));
        let mut token = request.asked("continuation-token");
        let (mut order, mut keys, mut says, mut gives) =
            (self.order, self.page, true, Token::Right);
        let mut hidden = Vec::new();
        let mut sizes = BTreeMap::new();
        for fault in faults {
            match fault {
                Fault::Ordered(wanted) => order = *wanted,
                Fault::Truncated { keys: most, says: flag, token } => {
                    (keys, says, gives) = (*most, *flag, *token);
                }
                Fault::Again => token = "",
                Fault::Hides(part) => hidden.push(part.as_str()),
                Fault::Shows(part, size) => drop(sizes.insert(part.as_str(), *size)),
                _ => {}
            }
        }
        let asked = request.asked("max-keys").parse().unwrap_or(usize::MAX);
        let keys = keys.min(asked).max(1);
        let from = request.asked("continuation-token");
        let mut shown: Vec<_> = self
            .objects
            .iter()
            .filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after)
            .filter(|(key, _)| !hidden.iter().any(|part| key.contains(part)))
            .collect();
        shown.sort_by(|a, b| order.of(a.0).cmp(&order.of(b.0)));
        if order == Order::Descending {
            shown.reverse();
        }
        if !token.is_empty() {
            let behind = |key: &str| match order {
                Order::Descending => order.of(key) < order.of(token),
                _ => order.of(key) > order.of(token),
            };
            shown.retain(|(key, _)| behind(key));
        }
        let more = shown.len() > keys;
        shown.truncate(keys);
        let next = match gives {
            Token::Right => more.then(|| shown.last().map(|(key, _)| (*key).clone())).flatten(),
            Token::Missing => None,
            Token::Empty => Some(String::new()),
            // What leads here again.
            Token::Loops => Some(if from.is_empty() { "!".into() } else { from.into() }),
        };
        let contents = shown.into_iter().map(|(key, stored)| {
            let size = sizes.iter().find(|(part, _)| key.contains(**part)).map(|(_, size)| *size);
            (key.as_str(), size.unwrap_or(stored.bytes.len() as u64), stored.modified)
        });
        let contents = contents.collect();
        let is_truncated = more && says;
        Reply::xml(Page { prefix, contents, is_truncated, token: next }.xml())
    }
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = self.objects.iter().map(|(key, stored)| (key, stored.bytes.len()));
        f.write_str(BUCKET)?;
        f.debug_map().entries(sizes).finish()
    }
}
