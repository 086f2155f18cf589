//! The script: which requests meet what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Bucket, Kind, Order};

/// Something that a test does to the bucket at a moment of its script.
pub(super) type Hook = Arc<dyn Fn(&mut Bucket) + Send + Sync>;

/// What a request meets.
#[derive(Clone)]
pub enum Fault {
    /// It has no effect, and an error of S3's is the answer.
    Status {
        /// The status.
        status: u16,
        /// S3's word for it.
        code: &'static str,
        /// S3's sentence.
        message: &'static str,
    },
    /// It has no effect, and this is the answer's body, under status 200.
    Says(String),
    /// It takes effect, and the connection is closed in place of an answer.
    Lost,
    /// The connection is closed, and the effect of a put comes with [`S3::land`](super::S3::land).
    Late,
    /// It has no effect, and the connection is closed.
    Dropped,
    /// It takes so long before anything of it happens.
    Takes(Duration),
    /// Nothing of it happens before the script is dropped.
    Held,
    /// Nothing of it happens before so many requests of a kind came in.
    Waits {
        /// Of this kind.
        kind: Kind,
        /// So many, since the count began.
        more: u64,
    },
    /// A create takes effect although something is there.
    Overwrites,
    /// A put without a checksum of its content is refused, as by a bucket with object lock.
    WantsChecksum,
    /// The body ends after so many bytes, and with it the connection.
    Cut(usize),
    /// The body has so many bytes, and its length says so.
    Short(usize),
    /// One bit of the body's byte at this place is another one.
    Flips(usize),
    /// The same, counted from the end: 1 is the last byte.
    FlipsFromEnd(usize),
    /// The answer says that the object has this size.
    OfSize(u64),
    /// Before the request takes effect, this happens to the bucket.
    Before(Hook),
    /// After the request took effect, and before it is answered, this happens to the bucket.
    After(Hook),
    /// A page has at most so many keys, and this is all that it says of what follows.
    Truncated {
        /// So many keys.
        keys: usize,
        /// What it says in `IsTruncated`.
        says: bool,
        /// What it gives to go on with.
        token: Token,
    },
    /// A page is the first one, whatever is asked for, and goes on behind itself.
    Again,
    /// The keys come in this order.
    Ordered(Order),
    /// A listing does not show keys that contain this.
    Hides(String),
    /// A listing shows this size of keys that contain the text.
    Shows(String, u64),
    /// Of a delete of many keys: each is refused by itself, under status 200, with this code.
    RefusesEach(&'static str),
    /// Of a delete of many keys: nothing is said of the last, which is not deleted.
    ForgetsOne,
}

/// What a truncated page gives to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// What is right.
    Right,
    /// Nothing.
    Missing,
    /// An empty one.
    Empty,
    /// Always the one that leads to this page.
    Loops,
}

impl Fault {
    /// An error of S3's.
    pub fn status(status: u16, code: &'static str) -> Fault {
        Fault::Status { status, code, message: "Said by a script" }
    }

    /// What happens to the bucket before the request takes effect.
    pub fn before(hook: impl Fn(&mut Bucket) + Send + Sync + 'static) -> Fault {
        Fault::Before(Arc::new(hook))
    }

    /// What happens to the bucket after the request took effect, before it is answered.
    pub fn after(hook: impl Fn(&mut Bucket) + Send + Sync + 'static) -> Fault {
        Fault::After(Arc::new(hook))
    }

    /// An HTML page, as a proxy or a portal answers.
    pub fn html() -> Fault {
        Fault::Says(
            "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"
                .into(),
        )
    }

    /// A document of S3's that is an error, under status 200.
    pub fn error_document() -> Fault {
        Fault::Says(super::text::error_document("AccessDenied", "Access Denied"))
    }

    /// A listing that shows nothing.
    pub fn empty_listing() -> Fault {
        Fault::Hides(String::new())
    }
}

/// Which requests meet a fault.
#[derive(Clone)]
pub struct Rule {
    kind: Kind,
    part: String,
    which: Which,
    fault: Fault,
    /// How many matched so far, of each key.
    seen: BTreeMap<String, u64>,
    total: u64,
}

#[derive(Clone, Copy)]
enum Which {
    All,
    /// Counted from 1.
    These(u64, u64),
    FirstOfEach(u64),
    /// Each that can be divided by it.
    Every(u64),
}

impl Rule {
    /// All requests of a kind.
    pub fn on(kind: Kind, fault: Fault) -> Rule {
        let (part, which) = (String::new(), Which::All);
        Rule { kind, part, which, fault, seen: BTreeMap::new(), total: 0 }
    }

    /// Only those whose key contains this.
    pub fn of(self, part: &str) -> Rule {
        Rule { part: part.into(), ..self }
    }

    /// Only those of the object with this sequence.
    pub fn of_object(self, sequence: u64) -> Rule {
        self.of(&format!("{sequence:020}.wal"))
    }

    /// Only the first so many of them.
    pub fn first(self, count: u64) -> Rule {
        Rule { which: Which::These(1, count), ..self }
    }

    /// Only one of them, counted from 1.
    pub fn nth(self, number: u64) -> Rule {
        Rule { which: Which::These(number, number), ..self }
    }

    /// All of them from one on, counted from 1.
    pub fn from(self, number: u64) -> Rule {
        Rule { which: Which::These(number, u64::MAX), ..self }
    }

    /// Of each key the first so many.
    pub fn first_of_each(self, count: u64) -> Rule {
        Rule { which: Which::FirstOfEach(count), ..self }
    }

    /// One of so many.
    pub fn every(self, count: u64) -> Rule {
        Rule { which: Which::Every(count), ..self }
    }

    /// What the request meets, if it is one of these.
    pub(super) fn meets(&mut self, kind: Kind, key: &str) -> Option<Fault> {
        if kind != self.kind || !key.contains(&self.part) {
            return None;
        }
        self.total += 1;
        let seen = self.seen.entry(key.into()).or_default();
        *seen += 1;
        let meets = match self.which {
            Which::All => true,
            Which::These(first, last) => (first..=last).contains(&self.total),
            Which::FirstOfEach(count) => *seen <= count,
            Which::Every(count) => self.total.is_multiple_of(count),
        };
        meets.then(|| self.fault.clone())
    }
}
