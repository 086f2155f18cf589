//! Fetching from objects: what the machines that read have carried out, and what a tool wants.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::ObjectStore;
use sealog_core::read::{RangeRead, RangeReadEffect, ReadProgress, SegmentReadEvent};
use sealog_core::{Error, Key, Operation, Options, StorageEffect, Time};

use super::Runtime;
use crate::carry_out;

/// Fetches a range of an object, in parts of at most 16 MiB; nothing is asked for an empty range.
/// What fails and may pass is repeated for [`Options::read_retry_for`], as a read does (DESIGN.md
/// section 8). Dropping the future abandons it.
///
/// Of the options count `request_timeout`, for each request, and `read_retry_for`.
///
/// # Errors
///
/// [`Error::Store`] with the key, also if there are fewer bytes there.
pub async fn fetch<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    key: Key,
    range: Range<u64>,
    options: &Options,
) -> Result<Bytes, Error> {
    let mut progress = ReadProgress::default();
    let mut read = RangeRead::new(key.clone(), range, options);
    loop {
        let event = match read.poll_effect() {
            Some(RangeReadEffect::Storage(effect)) => answered(runtime, store, effect).await,
            Some(RangeReadEffect::Done(result)) => {
                let operation = Operation::Read;
                return result.map_err(|source| Error::Store { operation, key, source });
            }
            None => tick(runtime, read.next_tick()).await,
        };
        read.handle(runtime.now(), &mut progress, event);
    }
}

/// What the tasks of one read have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Mutex<ReadProgress>>);

impl Progress {
    pub(crate) fn lock(&self) -> MutexGuard<'_, ReadProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out what a machine wants, within its time limit.
pub(crate) async fn answered<R: Runtime>(
    runtime: &R,
    store: &Arc<dyn ObjectStore>,
    effect: StorageEffect,
) -> SegmentReadEvent {
    SegmentReadEvent::Storage(carry_out(store, effect, |limit| runtime.sleep(limit)).await)
}

/// Waits until a machine wants a tick, which it does whenever it wants nothing else.
pub(crate) async fn tick<R: Runtime>(runtime: &R, next: Option<Time>) -> SegmentReadEvent {
    runtime.sleep_until(next.unwrap_or_else(|| runtime.now())).await;
    SegmentReadEvent::Tick
}
