//! Opening a log, and starting its actor.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::{Error, Options, Prefix};
use sealog_shell::Location;

use crate::runtime::{Tokio, gone};
use crate::wal::Wal;

pub(crate) async fn open_local(directory: PathBuf, options: Options) -> Result<Wal, Error> {
    // Before the directory is touched.
    options.validate()?;
    let must_exist = options.must_exist;
    locate(options, move || sealog_shell::open_local(directory, must_exist)).await
}

pub(crate) async fn open_url(url: String, options: Options) -> Result<Wal, Error> {
    options.validate()?;
    let must_exist = options.must_exist;
    locate(options, move || sealog_shell::open_url(&url, sealog_shell::environment(), must_exist))
        .await
}

async fn locate(
    options: Options,
    locate: impl FnOnce() -> Result<Location, Error> + Send + 'static,
) -> Result<Wal, Error> {
    // It may touch the file system.
    let location = tokio::task::spawn_blocking(locate).await.unwrap_or_else(|error| {
        gone(error);
        Err(Error::Stopped)
    })?;
    open(location.store, location.prefix, options).await
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
