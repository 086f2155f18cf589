//! Carrying out a repair: the only requests beside the effects of the machines that write, and the
//! only ones that ever replace a key. What is kept and put where, `sealog_core::repair` says.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{Either, select};
use object_store::path::Path;
use object_store::{
    Error as ClientError, GetResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};
use sealog_core::error::Operation;
use sealog_core::{Error, Key, Payload, StoreError, StoreErrorKind};

use crate::effect::body;
use crate::error::store_error;

/// Keeps what a repair replaces under a key of its own, where nothing else may stand but these very
/// bytes: they are written again then. Gives the time at which the store says that it was written,
/// in milliseconds since 1970, which tells the store's clock. Costs one to four requests. Dropping the
/// future leaves open whether it is kept; so does the end of `time_limit`, the shell's timer.
///
/// # Errors
///
/// [`Error::Store`], of the kind *exists* if other bytes are kept there.
pub async fn keep(
    store: &Arc<dyn ObjectStore>,
    key: &Key,
    bytes: &Bytes,
    time_limit: impl Future<Output = ()>,
) -> Result<u64, Error> {
    let work = async {
        let path = path(key)?;
        let put = |mode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            store.put_opts(&path, bytes.clone().into(), options)
        };
        match put(PutMode::Create).await {
            Err(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. }) => {
                if !holds(store.get(&path).await.map_err(failed)?, bytes).await? {
                    return Err(exists("other bytes are kept under this key"));
                }
                // The same ones, to learn the time.
                put(PutMode::Overwrite).await.map_err(failed)?;
            }
            put => drop(put.map_err(failed)?),
        }
        let kept = store.get(&path).await.map_err(failed)?;
        let modified = kept.meta.last_modified.timestamp_millis();
        if !holds(kept, bytes).await? {
            let cause = "what was kept does not read back as it was written";
            return Err(StoreError::with_cause(StoreErrorKind::Transient, text(cause)));
        }
        Ok(modified.try_into().unwrap_or(0))
    };
    within(key, time_limit, work).await
}

/// Puts an object in the place of what stands at a key, if these bytes stand there: in one step where
/// the store can compare, else after a look. Costs two or three requests. Dropping the future leaves
/// open whether it is replaced.
///
/// # Errors
///
/// [`Error::Store`], of the kind *exists* if something else stands there.
pub async fn replace(
    store: &Arc<dyn ObjectStore>,
    key: &Key,
    bytes: &Bytes,
    object: &Payload,
    time_limit: impl Future<Output = ()>,
) -> Result<(), Error> {
    let work = async {
        let path = path(key)?;
        let found = store.get(&path).await.map_err(failed)?;
        let version =
            UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        if !holds(found, bytes).await? {
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
    within(key, time_limit, work).await
}

/// Whether an object has these bytes. One of another size is not read: it may have any.
async fn holds(found: GetResult, bytes: &Bytes) -> Result<bool, StoreError> {
    let length = bytes.len() as u64;
    Ok(found.meta.size == length && body(found, length).await.map_err(failed)? == bytes)
}

async fn within<T>(
    key: &Key,
    time_limit: impl Future<Output = ()>,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, Error> {
    let result = match select(pin!(work), pin!(time_limit)).await {
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_executor::block_on;
    use object_store::local::LocalFileSystem;
    use object_store::memory::InMemory;

    use super::*;

    type Store = Arc<dyn ObjectStore>;

    /// One that compares before it replaces, and one that cannot.
    fn stores() -> (tempfile::TempDir, [Store; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        (directory, [Arc::new(InMemory::new()), Arc::new(local)])
    }

    fn kept(store: &Store, bytes: &'static [u8]) -> Result<u64, StoreErrorKind> {
        let key = Key::from("p/quarantine/7");
        block_on(keep(store, &key, &Bytes::from_static(bytes), pending())).map_err(kind)
    }

    fn replaced(
        store: &Store,
        bytes: &'static [u8],
        by: &'static [u8],
    ) -> Result<(), StoreErrorKind> {
        let (key, object) = (Key::from("p/7"), Payload::new(vec![Bytes::from_static(by)]));
        block_on(replace(store, &key, &Bytes::from_static(bytes), &object, pending())).map_err(kind)
    }

    fn kind(error: Error) -> StoreErrorKind {
        match error {
            Error::Store { operation: Operation::Create, source, .. } => source.kind,
            other => panic!("{other}"),
        }
    }

    fn read(store: &Store, key: &str) -> Bytes {
        block_on(async { store.get(&Path::from(key)).await.unwrap().bytes().await.unwrap() })
    }

    #[test]
    fn what_is_kept_is_kept_once_and_nothing_else_takes_its_place() {
        let (_directory, stores) = stores();
        for store in stores {
            let first = kept(&store, b"bytes").unwrap();
            assert!(kept(&store, b"bytes").unwrap() >= first, "the store's time, anew");
            assert_eq!(kept(&store, b"others"), Err(StoreErrorKind::Exists));
            assert_eq!(read(&store, "p/quarantine/7"), "bytes");
        }
    }

    #[test]
    fn only_what_is_expected_is_replaced() {
        let (_directory, stores) = stores();
        for store in stores {
            let absent = replaced(&store, b"old", b"new");
            assert!(matches!(absent, Err(StoreErrorKind::NotFound | StoreErrorKind::Refused)));
            block_on(store.put(&Path::from("p/7"), "old".into())).unwrap();
            assert_eq!(replaced(&store, b"older", b"new"), Err(StoreErrorKind::Exists));
            assert_eq!(read(&store, "p/7"), "old");
            assert_eq!(replaced(&store, b"old", b"new"), Ok(()));
            assert_eq!(read(&store, "p/7"), "new");
        }
    }

    #[test]
    fn the_time_limit_ends_it() {
        let key = Key::from("p/7");
        // As of a client that never answers.
        let late = within(&key, ready(()), pending::<Result<(), _>>());
        assert_eq!(block_on(late).map_err(kind), Err(StoreErrorKind::TimedOut));
    }
}
