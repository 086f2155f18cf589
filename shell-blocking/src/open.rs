//! Opening a log, in the thread that it then has.

use std::future::ready;
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use object_store::ObjectStore;
use sealog_core::opening::Survey;
use sealog_core::{Error, Operation, Options, Prefix, StoreError, StoreErrorKind};
use sealog_shell::{Location, StoreCheck};

use crate::executor::{self, Executor};
use crate::reader::Reader;
use crate::wal::Wal;

pub(crate) fn open_local(directory: &Path, options: Options) -> Result<Wal, Error> {
    // Before the directory is touched.
    options.validate()?;
    let Location { store, prefix } = sealog_shell::open_local(directory, options.must_exist)?;
    open(store, prefix, options)
}

pub(crate) fn open_url(url: &str, options: Options) -> Result<Wal, Error> {
    options.validate()?;
    let environment = sealog_shell::environment();
    let Location { store, prefix } = sealog_shell::open_url(url, environment, options.must_exist)?;
    open(store, prefix, options)
}

pub(crate) fn open(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Wal, Error> {
    options.validate()?;
    let of = prefix.clone();
    let opening = |executor| sealog_shell::open(executor, store, of, options);
    start(prefix.as_str(), opening).map(Wal::new)
}

pub(crate) fn read_local(directory: &Path, options: Options) -> Result<Reader, Error> {
    options.validate()?;
    let Location { store, prefix } = sealog_shell::read_local(directory, options.must_exist)?;
    read(store, prefix, options)
}

pub(crate) fn read_url(url: &str, options: Options) -> Result<Reader, Error> {
    options.validate()?;
    let environment = sealog_shell::environment();
    let Location { store, prefix } = sealog_shell::read_url(url, environment, options.must_exist)?;
    read(store, prefix, options)
}

pub(crate) fn read(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Reader, Error> {
    options.validate()?;
    let of = prefix.clone();
    let opening = |executor| sealog_shell::Reader::open(executor, store, of, options);
    start(prefix.as_str(), opening).map(Reader::new)
}

/// Looks at everything that is stored under `prefix` of a store, and at all that is wrong with it:
/// what an opening would fail with, what it would leave out, and what it would not look at. For
/// tools. It writes nothing and works beside a running writer; segments of entries are not read
/// ([`Fetcher`](crate::Fetcher) fetches them).
///
/// Costs one listing, or two, and one to three reads per object, one more for one with many release
/// records, and as many again for one that is damaged.
///
/// # Errors
///
/// [`Error::InvalidOptions`] before anything is touched; [`Error::Missing`] if
/// [`Options::must_exist`] is set and no object is there; [`Error::Store`] if the store cannot be
/// listed or read, or the system has no thread to give. What is wrong with the objects is no error.
pub fn survey(
    store: Arc<dyn ObjectStore>,
    prefix: &str,
    options: Options,
) -> Result<Survey, Error> {
    options.validate()?;
    let of = Prefix::new(prefix)?;
    start(prefix, |executor| async {
        Ok((sealog_shell::survey(executor, store, of, options).await?, ready(())))
    })
}

/// Asks of a store what a log does, to find out whether a log may live there: conditional creates,
/// also when many race for a key, listings after creates and deletes, and range reads. For tools,
/// before a log is begun. The objects are its own, under `scratch`, where nothing may be stored; they
/// are deleted in the end, whatever came of it. That all holds here and now is no proof that it
/// always does.
///
/// Each request may take as long as `time_limit`. `keys` is the number of keys of which a listing is to
/// show all ([`MANY`](crate::MANY), which is more than a page has, unless fewer are to do; none with
/// 0). Costs some 170 creates and one for each of these, and 30 each of listings, reads and deletes;
/// more deletes if one request deletes one key.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if `scratch` is no prefix, or something is stored under it;
/// [`Error::Store`] if a request fails, so that nothing can be said of the store, or the system has
/// no thread to give. What the store does wrong is no error.
pub fn check_store(
    store: Arc<dyn ObjectStore>,
    scratch: &str,
    time_limit: Duration,
    keys: u64,
) -> Result<StoreCheck, Error> {
    let prefix = Prefix::new(scratch)?;
    start(scratch, move |executor| async move {
        Ok((sealog_shell::check_store(executor, store, prefix, time_limit, keys).await?, ready(())))
    })
}

/// Deletes every object of the log under `prefix`, which is then gone for good. For tools that made
/// the log themselves: a writer that is at work would lose what it acknowledges. Costs a listing and
/// the deletes.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if it is no prefix; [`Error::Store`] if a request fails, each of which may take as
/// long as `time_limit`: then some objects are left.
pub fn clear(store: Arc<dyn ObjectStore>, prefix: &str, time_limit: Duration) -> Result<(), Error> {
    let of = Prefix::new(prefix)?;
    start(prefix, move |executor| async move {
        Ok((sealog_shell::clear(executor, store, of, time_limit).await?, ready(())))
    })
}

/// Starts a thread for what opens in it, and gives that; the thread then ends with the life.
pub(crate) fn start<T, L, F>(
    prefix: &str,
    opening: impl FnOnce(Executor) -> F + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    L: Future<Output = ()> + Send,
    F: Future<Output = Result<(T, L), Error>> + Send + 'static,
{
    let (reply, answer) = mpsc::sync_channel(1);
    let life = |executor: Executor| {
        let opening = opening(executor);
        async move {
            match opening.await {
                Ok((opened, life)) => {
                    drop(reply.send(Ok(opened)));
                    life.await;
                }
                Err(error) => drop(reply.send(Err(error))),
            }
        }
    };
    executor::start("sealog", life).map_err(|error| no_thread(prefix, error))?;
    // A thread that gives no answer has panicked.
    answer.recv().unwrap_or(Err(Error::Stopped))
}

/// The system has no thread to give now: nothing was asked of the store.
fn no_thread(prefix: &str, error: io::Error) -> Error {
    let text = format!("no thread for the log could be started: {error}");
    let cause =
        Box::<dyn std::error::Error + Send + Sync>::from(io::Error::new(error.kind(), text));
    Error::Store {
        operation: Operation::List,
        key: prefix.into(),
        source: StoreError::with_cause(StoreErrorKind::Transient, cause),
    }
}
