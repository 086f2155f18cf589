//! An S3 of the tests' own, on a port of this machine, so that the real client is in between: a
//! bucket in memory that answers what `object_store`'s S3 client asks, counts it, and misbehaves by
//! a script.
//!
//! A [`Rule`] says which requests ([`Kind`], a part of the key, which of them in the order of their
//! arrival) meet which [`Fault`]. Rules are looked through in the order in which they were given;
//! all that match apply. Without rules it keeps the promises of DESIGN.md section 12.

mod bucket;
mod fault;
mod http;
mod text;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{ObjectStore, RetryConfig};

use self::http::{Reply, Request};

pub use self::bucket::{Bucket, Order, Stored};
pub use self::fault::{Fault, Rule, Token};

/// The bucket's name.
pub const BUCKET: &str = "bucket";

/// The kinds of requests that are counted and can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A page of a listing. Its key is the listing's prefix.
    List,
    /// An object, or a range of it.
    Get,
    /// An object's size.
    Head,
    /// An object's creation.
    Put,
    /// The delete of any number of keys. Its key is the first of them.
    Delete,
}

/// The server. It goes away with this value.
pub struct S3 {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Shared {
    bucket: Mutex<Bucket>,
    /// Something of the bucket changed that a held answer may wait for.
    changed: Condvar,
    ends: AtomicBool,
}

impl S3 {
    /// Starts a server with a bucket of nothing.
    ///
    /// # Panics
    ///
    /// There is no port.
    pub fn start() -> S3 {
        let listener = TcpListener::bind(("127.0.0.1", 0));
        let (listener, address) = match listener.and_then(|l| Ok((l.local_addr()?, l))) {
            Ok((address, listener)) => (listener, address),
            Err(error) => panic!("no port: {error}"),
        };
        let shared = Arc::new(Shared {
            bucket: Mutex::new(Bucket::default()),
            changed: Condvar::new(),
            ends: AtomicBool::new(false),
        });
        let serving = shared.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if serving.ends.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(connection), serving) = (connection, serving.clone()) else { return };
                // A client that goes away is nothing to complain of.
                std::thread::spawn(move || drop(serving.serve(connection)));
            }
        });
        S3 { shared, address }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of it that repeats nothing by itself.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        self.store_with(&[])
    }

    /// The same with more settings of the client's.
    ///
    /// # Panics
    ///
    /// They are none.
    pub fn store_with(&self, settings: &[(AmazonS3ConfigKey, &str)]) -> Arc<dyn ObjectStore> {
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_endpoint(self.url())
            .with_allow_http(true)
            .with_bucket_name(BUCKET)
            .with_region("eu-central-1")
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_retry(retry);
        for (key, value) in settings {
            builder = builder.with_config(*key, *value);
        }
        match builder.build() {
            Ok(store) => Arc::new(store),
            Err(error) => panic!("{error}"),
        }
    }

    /// The settings of [`sealog_shell::open_url`] for `s3://bucket/…`.
    pub fn settings(&self) -> Vec<(String, String)> {
        [
            ("aws_endpoint", &*self.url()),
            ("aws_allow_http", "true"),
            ("aws_region", "eu-central-1"),
            ("aws_access_key_id", "key"),
            ("aws_secret_access_key", "secret"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// The bucket, to look at and to change. No request is answered meanwhile.
    pub fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.shared.lock()
    }

    /// Adds a rule behind those that are there.
    pub fn rule(&self, rule: Rule) {
        self.bucket().rules.push(rule);
    }

    /// Drops all rules, and lets held answers go.
    pub fn heal(&self) {
        self.bucket().rules.clear();
        self.shared.changed.notify_all();
    }

    /// How often what was asked since the last [`forget`](S3::forget).
    pub fn count(&self, kind: Kind) -> u64 {
        self.bucket().counts.get(&kind).copied().unwrap_or(0)
    }

    /// All of [`count`](S3::count).
    pub fn counts(&self) -> BTreeMap<Kind, u64> {
        self.bucket().counts.clone()
    }

    /// How many requests of a kind were under way at once since the last [`forget`](S3::forget).
    pub fn peak(&self, kind: Kind) -> u64 {
        self.bucket().peaks.get(&kind).copied().unwrap_or(0)
    }

    /// Begins to count anew.
    pub fn forget(&self) {
        let mut bucket = self.bucket();
        bucket.counts.clear();
        bucket.peaks.clear();
    }

    /// What came in late takes effect now, as it would have then: a create only where nothing is.
    pub fn land(&self) {
        self.bucket().land();
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        self.heal();
        // It waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, connection: TcpStream) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let mut from = BufReader::new(connection.try_clone()?);
        let mut to = connection;
        loop {
            let request = Request::read(&mut from)?;
            let answer = self.answer(&request);
            if let Some((kind, _)) = request.kind() {
                self.lock().leaves(kind);
            }
            match answer {
                Some(reply) => {
                    to.write_all(&reply.encode(request.is_head()))?;
                    if reply.is_cut() {
                        return Ok(());
                    }
                }
                None => return Ok(()),
            }
        }
    }

    /// `None`: the connection is closed instead.
    fn answer(&self, request: &Request) -> Option<Reply> {
        let (kind, key) = request.kind()?;
        let faults = {
            let mut bucket = self.lock();
            bucket.enters(kind);
            bucket.faults(kind, &key)
        };
        let mut reply = None;
        for fault in &faults {
            match fault {
                Fault::Takes(time) => std::thread::sleep(*time),
                Fault::Held => self.hold(),
                Fault::Waits { kind, more } => self.wait_for(*kind, *more),
                Fault::Before(hook) => hook(&mut self.lock()),
                Fault::Dropped => return None,
                Fault::Status { status, code, message } => {
                    reply.get_or_insert_with(|| Reply::error(*status, code, message));
                }
                Fault::Says(body) => {
                    reply.get_or_insert_with(|| Reply::xml(body.clone()));
                }
                Fault::Late => {
                    self.lock().late.push((key.clone(), Bytes::from(request.body.clone())));
                    return None;
                }
                _ => {}
            }
        }
        let reply = match reply {
            Some(reply) => reply,
            None => {
                let mut bucket = self.lock();
                let reply = bucket.answer(kind, &key, request, &faults);
                for fault in &faults {
                    if let Fault::After(hook) = fault {
                        hook(&mut bucket);
                    }
                }
                self.changed.notify_all();
                reply
            }
        };
        let lost = faults.iter().any(|fault| matches!(fault, Fault::Lost));
        (!lost).then(|| faults.iter().fold(reply, Reply::with))
    }

    /// Until the script is dropped.
    fn hold(&self) {
        let held = |bucket: &mut Bucket| !bucket.rules.is_empty();
        drop(self.changed.wait_while(self.lock(), held));
    }

    /// Until so many requests of the kind have come in since the server began to count. It does not
    /// wait for ever: a test that waits in vain shall fail, not hang.
    fn wait_for(&self, kind: Kind, count: u64) {
        let patience = Duration::from_secs(10);
        let missing = |bucket: &mut Bucket| {
            bucket.counts.get(&kind).copied().unwrap_or(0) < count && !bucket.rules.is_empty()
        };
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(self.lock(), patience, missing));
    }
}

#[cfg(test)]
mod tests;
