//! Carrying out a repair: the only requests beside the effects of the machines that write, and the
//! only ones that ever replace a key. What is kept and put where, `sealog_core::repair` says.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use object_store::path::Path;
use object_store::{
    Error as ClientError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};
use sealog_core::error::Operation;
use sealog_core::{Error, Key, Payload, StoreError, StoreErrorKind};

use crate::Runtime;
use crate::error::store_error;

/// Keeps what a repair replaces under a key of its own, where nothing else may stand but these very
/// bytes: they are written again then. Gives the time at which the store says that it was written,
/// in milliseconds since 1970, which tells the store's clock. Costs one to four requests. Dropping the
/// future leaves open whether it is kept.
///
/// # Errors
///
/// [`Error::Store`], of the kind *exists* if other bytes are kept there.
pub async fn keep<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    key: &Key,
    bytes: &Bytes,
    time_limit: Duration,
) -> Result<u64, Error> {
    let work = async {
        let path = path(key)?;
        let put = |mode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&path, bytes.clone().into(), options)
        };
        match put(PutMode::Create).await {
            Err(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. }) => {
                if store.get(&path).await.map_err(failed)?.bytes().await.map_err(failed)? != bytes {
                    return Err(exists("other bytes are kept under this key"));
                }
                // The same ones, to learn the time.
                put(PutMode::Overwrite).await.map_err(failed)?;
            }
            put => drop(put.map_err(failed)?),
        }
        let kept = store.get(&path).await.map_err(failed)?;
        let modified = kept.meta.last_modified.timestamp_millis();
        if kept.bytes().await.map_err(failed)? != bytes {
            let cause = "what was kept does not read back as it was written";
            return Err(StoreError::with_cause(StoreErrorKind::Transient, text(cause)));
        }
        Ok(modified.try_into().unwrap_or(0))
    };
    within(runtime, key, time_limit, work).await
}

/// Puts an object in the place of what stands at a key, if these bytes stand there: in one step where
/// the store can compare, else after a look. Costs two or three requests. Dropping the future leaves
/// open whether it is replaced.
///
/// # Errors
///
/// [`Error::Store`], of the kind *exists* if something else stands there.
pub async fn replace<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    key: &Key,
    bytes: &Bytes,
    object: &Payload,
    time_limit: Duration,
) -> Result<(), Error> {
    let work = async {
        let path = path(key)?;
        let found = store.get(&path).await.map_err(failed)?;
        let version =
            UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        if found.bytes().await.map_err(failed)? != bytes {
            return Err(exists("the object was replaced meanwhile"));
        }
        let put = |mode| {
            let payload = PutPayload::from_iter(object.chunks().iter().cloned());
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&path, payload, options)
        };
        let updated = put(PutMode::Update(version)).await;
        let put = match updated {
            Err(ClientError::NotImplemented { .. } | ClientError::NotSupported { .. }) => {
                put(PutMode::Overwrite).await
            }
            updated => updated,
        };
        put.map(drop).map_err(failed)
    };
    within(runtime, key, time_limit, work).await
}

async fn within<R: Runtime, T>(
    runtime: &R,
    key: &Key,
    time_limit: Duration,
    work: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, Error> {
    let work = std::pin::pin!(work);
    let result = match select(work, std::pin::pin!(runtime.sleep(time_limit))).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(StoreError::new(StoreErrorKind::TimedOut)),
    };
    result.map_err(|source| Error::Store { operation: Operation::Create, key: key.clone(), source })
}

fn path(key: &Key) -> Result<Path, StoreError> {
    Path::parse(key).map_err(|error| failed(error.into()))
}

fn failed(error: ClientError) -> StoreError {
    store_error(Operation::Create, error)
}

fn exists(cause: &str) -> StoreError {
    StoreError::with_cause(StoreErrorKind::Exists, text(cause))
}

fn text(cause: &str) -> Box<dyn std::error::Error + Send + Sync> {
    cause.into()
}
