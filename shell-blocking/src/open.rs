//! Opening a log, in the thread that it then has.

use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};

use object_store::ObjectStore;
use sealog_core::{Error, Operation, Options, Prefix, StoreError, StoreErrorKind};
use sealog_shell::Location;

use crate::executor::{self, Executor};
use crate::wal::Wal;

pub(crate) fn open_local(directory: &Path, options: Options) -> Result<Wal, Error> {
    // Before the directory is touched.
    options.validate()?;
    open_at(sealog_shell::open_local(directory, options.must_exist)?, options)
}

pub(crate) fn open_url(url: &str, options: Options) -> Result<Wal, Error> {
    options.validate()?;
    let environment = sealog_shell::environment();
    open_at(sealog_shell::open_url(url, environment, options.must_exist)?, options)
}

fn open_at(location: Location, options: Options) -> Result<Wal, Error> {
    open(location.store, location.prefix, options)
}

pub(crate) fn open(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Wal, Error> {
    options.validate()?;
    let (reply, answer) = mpsc::sync_channel(1);
    let of = prefix.clone();
    let life = |executor: Executor| async move {
        match sealog_shell::open(executor, store, of, options).await {
            Ok((log, actor)) => {
                drop(reply.send(Ok(log)));
                actor.await;
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    };
    executor::start("sealog", life).map_err(|error| no_thread(&prefix, error))?;
    // A thread that gives no answer has panicked.
    answer.recv().unwrap_or(Err(Error::Stopped)).map(Wal::new)
}

/// The system has no thread to give now: nothing was asked of the store.
fn no_thread(prefix: &Prefix, error: io::Error) -> Error {
    let text = format!("no thread for the log could be started: {error}");
    let cause =
        Box::<dyn std::error::Error + Send + Sync>::from(io::Error::new(error.kind(), text));
    Error::Store {
        operation: Operation::List,
        key: prefix.as_str().into(),
        source: StoreError::with_cause(StoreErrorKind::Transient, cause),
    }
}
