//! Carrying out a listing.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use futures_util::stream::StreamExt;
use object_store::{ObjectMeta, ObjectStore};
use sealog_core::error::Operation;
use sealog_core::{Key, Listed, StoreError, StoreErrorKind};

use super::{path, transient};
use crate::error::store_error;

/// All keys in the order in which the store gives them, or backwards if its order means nothing. Some
/// stores ignore where a listing is to begin: the core filters.
pub(super) async fn list<T: Future<Output = ()>>(
    store: &dyn ObjectStore,
    prefix: &str,
    after: Option<&str>,
    limit: &impl Fn() -> T,
) -> Result<Vec<Listed>, StoreError> {
    let failed = |error| store_error(Operation::List, error);
    let order = Order::of(store);
    let prefix = path(prefix).map_err(failed)?;
    let mut listing = match after {
        // Of a directory bucket the client asks for everything and lets only the rest through: its
        // pages would not be seen to come.
        Some(after) if order != Order::DirectoryBucket => {
            store.list_with_offset(Some(&prefix), &path(after).map_err(failed)?)
        }
        _ => store.list(Some(&prefix)),
    };
    let begins = after.filter(|_| order == Order::DirectoryBucket);
    let is_wanted = |key: &str| begins.is_none_or(|after| key > after);
    let (mut found, mut repeats) = (Vec::new(), Repeats::default());
    let mut time_limit = pin!(limit());
    let mut goes_on = false;
    poll_fn(|context| {
        loop {
            match listing.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(meta))) => {
                    goes_on = true;
                    let listed = listed(&meta);
                    repeats.see(&listed.key)?;
                    if is_wanted(&listed.key) {
                        found.push(listed);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failed(error))),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    // The end of a page, or of a part of one.
                    if std::mem::take(&mut goes_on) {
                        time_limit.set(limit());
                    }
                    let timed_out = |()| Err(StoreError::new(StoreErrorKind::TimedOut));
                    return time_limit.as_mut().poll(context).map(timed_out);
                }
            }
        }
    })
    .await?;
    if order != Order::Kept {
        found.sort_unstable_by(|a, b| b.key.cmp(&a.key));
        if let [only] = found.as_slice() {
            found.push(only.clone());
        }
    }
    Ok(found)
}

fn listed(meta: &ObjectMeta) -> Listed {
    Listed {
        key: meta.location.as_ref().into(),
        size: meta.size,
        modified_millis: meta.last_modified.timestamp_millis().try_into().unwrap_or(0),
    }
}

/// What is known of the order of a store's listings. Of a client only its name tells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Nothing is known against it: the core sees.
    Kept,
    /// Files are read in the order of the directory, which may look like that of the names.
    Files,
    /// Those of S3 list in no order, and tell so by the bucket's name.
    DirectoryBucket,
}

impl Order {
    fn of(store: &dyn ObjectStore) -> Order {
        let name = store.to_string();
        match () {
            () if name.contains("LocalFileSystem(") => Order::Files,
            () if name.contains("AmazonS3(") && name.contains("--x-s3)") => Order::DirectoryBucket,
            () => Order::Kept,
        }
    }
}

/// Finds out that a listing goes round in a circle, as that of a store whose pages lead back to
/// earlier ones: such a listing has no end. A key is kept and compared with those after it, then
/// another, twice as far on. One that comes again once is not enough: a store may show a key twice.
#[derive(Default)]
struct Repeats {
    seen: usize,
    kept: Option<Key>,
    again: u8,
}

impl Repeats {
    fn see(&mut self, key: &Key) -> Result<(), StoreError> {
        if self.kept.as_ref() == Some(key) {
            self.again += 1;
            if self.again == 2 {
                return Err(transient(format!("the listing shows {key} again and again")));
            }
        }
        self.seen += 1;
        if self.seen.is_power_of_two() && self.kept.as_ref() != Some(key) {
            (self.kept, self.again) = (Some(key.clone()), 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
