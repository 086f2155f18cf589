//! Fetching what a tool wants of an object.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::{
    Error, Key, Operation, RequestId, StorageAnswer, StorageEffect, StoreError, StoreErrorKind,
};

use super::Runtime;
use crate::carry_out;

/// Fetches a range of an object, with one request and no repeat of it; nothing is asked for an empty
/// range. Dropping the future abandons it.
///
/// # Errors
///
/// [`Error::Store`] with the key, also if there are fewer bytes there, or if `time_limit` passes.
pub async fn fetch<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    key: Key,
    range: Range<u64>,
    time_limit: Duration,
) -> Result<Bytes, Error> {
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    let effect =
        StorageEffect::FetchRange { id: RequestId(0), key: key.clone(), range, time_limit };
    let result = match carry_out(store, effect, runtime.sleep(time_limit)).await {
        StorageAnswer::Fetched { result, .. } => result,
        // Not an answer to what was asked.
        _ => Err(StoreError::new(StoreErrorKind::Transient)),
    };
    result.map_err(|source| Error::Store { operation: Operation::Read, key, source })
}
