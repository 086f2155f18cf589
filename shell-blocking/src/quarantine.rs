//! Carrying out a repair, for tools.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::repair::Replacement;
use sealog_core::{Error, Key};
use sealog_shell::Runtime;

use crate::open::start;

/// Keeps these bytes under a key at which no others may stand, so that a repair can replace them
/// where they are. Gives the time at which the store says that it was written, in milliseconds since
/// 1970: it tells the store's clock.
///
/// # Errors
///
/// [`Error::Store`], of the kind [`Exists`](sealog_core::StoreErrorKind::Exists) if other bytes are
/// kept there.
pub fn keep(
    store: Arc<dyn ObjectStore>,
    key: &Key,
    bytes: &Bytes,
    time_limit: Duration,
) -> Result<u64, Error> {
    let (key, bytes, of) = (key.clone(), bytes.clone(), key.clone());
    start(&of, move |executor| async move {
        let kept = sealog_shell::keep(&store, &key, &bytes, executor.sleep(time_limit)).await?;
        Ok((kept, ready(())))
    })
}

/// Puts an object in the place of what stands at its key, if these bytes stand there. It is the one
/// thing that ever replaces a key of a log: see [`sealog_core::repair`] for what must be seen to
/// before.
///
/// # Errors
///
/// [`Error::Store`], of the kind [`Exists`](sealog_core::StoreErrorKind::Exists) if something else
/// stands there.
pub fn replace(
    store: Arc<dyn ObjectStore>,
    bytes: &Bytes,
    replacement: &Replacement,
    time_limit: Duration,
) -> Result<(), Error> {
    let (key, object) = (replacement.key.clone(), replacement.object.clone());
    let (bytes, of) = (bytes.clone(), key.clone());
    start(&of, move |executor| async move {
        let limit = executor.sleep(time_limit);
        sealog_shell::replace(&store, &key, &bytes, &object, limit).await?;
        Ok(((), ready(())))
    })
}
