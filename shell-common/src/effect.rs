//! Carrying out one storage effect.

mod list;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::iter::repeat;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, FutureExt, select};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Error as ClientError, GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, PutMode,
    PutOptions, PutPayload,
};
use sealog_core::error::Operation;
use sealog_core::format::{HEADER_LEN, MIN_OBJECT_LEN, TRAILER_LEN};
use sealog_core::{
    Key, Payload, ReadBack, StorageAnswer, StorageEffect, StoreError, StoreErrorKind,
};

use list::list;

use crate::error::{may_be_too_short, store_error};

/// Carries out a storage effect once, and answers it once (DESIGN.md section 1).
///
/// `timer` makes a timer of the shell's that ends after so long. When one of
/// [`StorageEffect::time_limit`] ends first, the answer is "timed out" and the client's future is
/// dropped, though the request may still land. The limit of a listing counts anew whenever the client
/// has waited for the store and then gave keys, so for each page: one that goes on is not cut off. A
/// panic of the client is a transient answer with its text. A body is handed over as it came: of
/// another length than was asked for too, empty if the object ends before the range does and the store
/// answers that with an error; of one that is longer, not more than it takes to see that.
///
/// Dropping the future abandons the request in the same way. Each effect costs one request; a
/// listing one per page, a read-back two, for both ends of the object, and a read that fails as one of
/// a range beyond the end may fail, one more for the size. A delete of several keys costs one request if the
/// store has one for so many ([`keys_per_delete`]), else one per key; of a key that the client does
/// not speak of, it is a failure.
pub async fn carry_out<T: Future<Output = ()>>(
    store: &Arc<dyn ObjectStore>,
    effect: StorageEffect,
    timer: impl Fn(Duration) -> T,
) -> StorageAnswer {
    let limit = || timer(effect.time_limit());
    let time_limit = async {
        match effect {
            // It has its own, one after the other.
            StorageEffect::List { .. } => pending().await,
            _ => limit().await,
        }
    };
    let work = pin!(AssertUnwindSafe(perform(store.as_ref(), &effect, &limit)).catch_unwind());
    match select(work, pin!(time_limit)).await {
        Either::Left((Ok(answer), _)) => answer,
        Either::Left((Err(panic), _)) => effect.failed(panicked(panic.as_ref())),
        Either::Right(((), _)) => effect.failed(StoreError::new(StoreErrorKind::TimedOut)),
    }
}

async fn perform<T: Future<Output = ()>>(
    store: &dyn ObjectStore,
    effect: &StorageEffect,
    limit: &impl Fn() -> T,
) -> StorageAnswer {
    let id = effect.id();
    match effect {
        StorageEffect::List { prefix, after, .. } => {
            StorageAnswer::Listed { id, result: list(store, prefix, after.as_deref(), limit).await }
        }
        StorageEffect::FetchRange { key, range, .. } => {
            StorageAnswer::Fetched { id, result: fetch(store, key, range.clone()).await }
        }
        StorageEffect::PutObject { key, payload, .. } => {
            StorageAnswer::CreateResult { id, result: create(store, key, payload).await }
        }
        StorageEffect::ReadBack { key, .. } => {
            StorageAnswer::ReadBackResult { id, result: read_back(store, key).await }
        }
        StorageEffect::DeleteObjects { keys, .. } => {
            StorageAnswer::DeleteResult { id, results: delete(store, keys).await }
        }
    }
}

/// The body as it came, of whatever length: the core judges it.
async fn fetch(store: &dyn ObjectStore, key: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
    let failed = |error| store_error(Operation::Read, error);
    let read = async {
        let options =
            GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        let found = store.get_opts(&path(key)?, options).await?;
        body(found, range.end.saturating_sub(range.start)).await
    };
    let error = match read.await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    if may_be_too_short(&error)
        && let Ok(size) = size(store, key).await
        && size < range.end
    {
        return Ok(Bytes::new());
    }
    Err(failed(error))
}

/// What was read. Of a body that is longer than was asked for, no more than shows that: it may have
/// no end.
pub(crate) async fn body(found: GetResult, asked: u64) -> Result<Bytes, ClientError> {
    let GetResult { payload: GetResultPayload::Stream(mut body), .. } = found else {
        return found.bytes().await;
    };
    let first = body.try_next().await?.unwrap_or_default();
    if first.len() as u64 > asked {
        return Ok(first);
    }
    // Most come in one piece, which need not be copied.
    let Some(mut next) = body.try_next().await? else { return Ok(first) };
    let mut whole = Vec::with_capacity(asked.try_into().unwrap_or(0));
    whole.extend_from_slice(&first);
    loop {
        whole.extend_from_slice(&next);
        match whole.len() as u64 <= asked {
            true => match body.try_next().await? {
                Some(more) => next = more,
                None => return Ok(whole.into()),
            },
            false => return Ok(whole.into()),
        }
    }
}

async fn create(store: &dyn ObjectStore, key: &str, payload: &Payload) -> Result<(), StoreError> {
    let failed = |error| store_error(Operation::Create, error);
    let path = path(key).map_err(failed)?;
    let payload = PutPayload::from_iter(payload.chunks().iter().cloned());
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(&path, payload, options).await.map(drop).map_err(failed)
}

async fn read_back(store: &dyn ObjectStore, key: &str) -> Result<ReadBack, StoreError> {
    let error = match read_ends(store, key).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    if error.may_be_too_short()
        && let Ok(size) = size(store, key).await
        && size < HEADER_LEN as u64
    {
        return Ok(ReadBack { size, header: Bytes::new(), trailer: Bytes::new() });
    }
    Err(error.mapped(Operation::ReadBack))
}

/// First the header, which says how large the object is, then its last bytes.
async fn read_ends(store: &dyn ObjectStore, key: &str) -> Result<ReadBack, FetchError> {
    let path = path(key)?;
    let (size, header) = read_part(store, &path, 0..HEADER_LEN as u64).await?;
    if size < MIN_OBJECT_LEN {
        return Ok(ReadBack { size, header: Bytes::new(), trailer: Bytes::new() });
    }
    let (size_again, trailer) = read_part(store, &path, size - TRAILER_LEN as u64..size).await?;
    if size_again != size {
        let text = format!("it had {size} bytes, then {size_again}: another took its place");
        return Err(FetchError::Body(transient(text)));
    }
    Ok(ReadBack { size, header, trailer })
}

/// The size of an object, and a part of it; of an object that ends before the part does, nothing.
async fn read_part(
    store: &dyn ObjectStore,
    path: &Path,
    range: Range<u64>,
) -> Result<(u64, Bytes), FetchError> {
    let (end, expected) = (range.end, range.end - range.start);
    let options = GetOptions { range: Some(GetRange::Bounded(range)), ..Default::default() };
    let found = store.get_opts(path, options).await?;
    let size = found.meta.size;
    if size < end {
        return Ok((size, Bytes::new()));
    }
    let part = body(found, expected).await?;
    if part.len() as u64 == expected {
        Ok((size, part))
    } else {
        Err(wrong_length(expected, &part))
    }
}

async fn size(store: &dyn ObjectStore, key: &str) -> Result<u64, ClientError> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    Ok(store.get_opts(&path(key)?, options).await?.meta.size)
}

/// The client answers for one key after the other in their order, unless the whole request fails. It
/// names what it deleted; of the rest it says at most why, not which. It panics if the store answers for
/// a key that was not asked for, or spells one differently: then what it has not spoken of failed.
async fn delete(store: &dyn ObjectStore, keys: &[Key]) -> Vec<(Key, Result<(), StoreError>)> {
    let mut answers = Vec::with_capacity(keys.len());
    let asking = AssertUnwindSafe(async {
        let paths: Vec<_> = keys.iter().map(|key| path(key)).collect();
        let mut deleting = store.delete_stream(stream::iter(paths).boxed());
        while let Some(answer) = deleting.next().await {
            answers.push(answer.map(String::from).map_err(|error| {
                // A local store names the file.
                let gone = match &error {
                    ClientError::NotFound { path, .. } => {
                        keys.iter().find(|key| path.ends_with(&***key))
                    }
                    _ => None,
                };
                (gone.cloned(), store_error(Operation::Delete, error))
            }));
        }
    });
    let panic = asking.catch_unwind().await.err().map(|panic| panicked(panic.as_ref()));
    let (mut deleted, mut own, mut failure) = (BTreeSet::new(), BTreeMap::new(), panic);
    let in_order = answers.len() == keys.len();
    for (answer, asked) in answers.into_iter().zip(keys.iter().map(Some).chain(repeat(None))) {
        match answer {
            Ok(key) => {
                deleted.insert(Key::from(key));
            }
            // Some stores say so of a key that is gone; that is as good as deleting it.
            Err((Some(gone), _)) => {
                deleted.insert(gone);
            }
            Err((None, error)) => {
                failure.get_or_insert(error.clone());
                if in_order && let Some(key) = asked {
                    own.insert(key.clone(), error);
                }
            }
        }
    }
    let unanswered = || transient("the store's client did not say what became of it".into());
    let failure = failure.unwrap_or_else(unanswered);
    let result = |key: &Key| match deleted.contains(key) {
        true => Ok(()),
        false => Err(own.get(key).unwrap_or(&failure).clone()),
    };
    keys.iter().map(|key| (key.clone(), result(key))).collect()
}

/// How many keys one delete request of a store takes. Of a client only its name tells: 1,000 for
/// S3, 256 for Azure, and 1 for all others, which have no request for many.
pub fn keys_per_delete(store: &dyn ObjectStore) -> usize {
    let name = store.to_string();
    match () {
        () if name.contains("AmazonS3(") => 1000,
        () if name.contains("MicrosoftAzure {") => 256,
        () => 1,
    }
}

/// A failed read: of the client's, or a body that is not what was asked for.
enum FetchError {
    Client(ClientError),
    Body(StoreError),
}

impl FetchError {
    fn may_be_too_short(&self) -> bool {
        match self {
            FetchError::Client(error) => may_be_too_short(error),
            FetchError::Body(_) => true,
        }
    }

    fn mapped(self, operation: Operation) -> StoreError {
        match self {
            FetchError::Client(error) => store_error(operation, error),
            FetchError::Body(error) => error,
        }
    }
}

impl From<ClientError> for FetchError {
    fn from(error: ClientError) -> FetchError {
        FetchError::Client(error)
    }
}

fn wrong_length(expected: u64, found: &Bytes) -> FetchError {
    let found = found.len();
    FetchError::Body(transient(format!("asked for {expected} bytes and got {found}")))
}

fn panicked(panic: &(dyn Any + Send)) -> StoreError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    transient(format!("the store's client panicked: {}", text.unwrap_or("no text")))
}

fn transient(text: String) -> StoreError {
    let cause: Box<dyn std::error::Error + Send + Sync> = text.into();
    StoreError::with_cause(StoreErrorKind::Transient, cause)
}

/// The key as the client wants it, taken as it is: nothing is escaped.
fn path(key: &str) -> Result<Path, ClientError> {
    Ok(Path::parse(key)?)
}

#[cfg(test)]
mod tests;
