//! Opening a log, in the thread that it then has.

use std::future::ready;
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};

use object_store::ObjectStore;
use sealog_core::opening::Survey;
use sealog_core::{Error, Operation, Options, Prefix, StoreError, StoreErrorKind};
use sealog_shell::Location;

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
