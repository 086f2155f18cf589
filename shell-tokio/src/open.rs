//! Opening a log, and starting its actor.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::{Error, Options, Prefix};
use sealog_shell::Location;

use crate::reader::Reader;
use crate::runtime::{Tokio, gone};
use crate::wal::Wal;

pub(crate) async fn open_local(directory: PathBuf, options: Options) -> Result<Wal, Error> {
    // Before the directory is touched.
    options.validate()?;
    let must_exist = options.must_exist;
    let at = locate(move || sealog_shell::open_local(directory, must_exist)).await?;
    open(at.store, at.prefix, options).await
}

pub(crate) async fn open_url(url: String, options: Options) -> Result<Wal, Error> {
    options.validate()?;
    let must_exist = options.must_exist;
    let at = locate(move || sealog_shell::open_url(&url, sealog_shell::environment(), must_exist));
    let at = at.await?;
    open(at.store, at.prefix, options).await
}

pub(crate) async fn open(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Wal, Error> {
    let (log, actor) = sealog_shell::open(Tokio::new(), store, prefix, options).await?;
    tokio::spawn(actor);
    Ok(Wal::new(log))
}

pub(crate) async fn read_local(directory: PathBuf, options: Options) -> Result<Reader, Error> {
    options.validate()?;
    let must_exist = options.must_exist;
    let at = locate(move || sealog_shell::read_local(directory, must_exist)).await?;
    read(at.store, at.prefix, options).await
}

pub(crate) async fn read_url(url: String, options: Options) -> Result<Reader, Error> {
    options.validate()?;
    let must_exist = options.must_exist;
    let at = locate(move || sealog_shell::read_url(&url, sealog_shell::environment(), must_exist));
    let at = at.await?;
    read(at.store, at.prefix, options).await
}

pub(crate) async fn read(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Reader, Error> {
    // The runtime is there for others too.
    let (reader, _) = sealog_shell::Reader::open(Tokio::new(), store, prefix, options).await?;
    Ok(Reader::new(reader))
}

/// It may touch the file system.
async fn locate(
    locate: impl FnOnce() -> Result<Location, Error> + Send + 'static,
) -> Result<Location, Error> {
    tokio::task::spawn_blocking(locate).await.unwrap_or_else(|error| {
        gone(error);
        Err(Error::Stopped)
    })
}
