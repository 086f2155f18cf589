//! What the machines have to say, written to `tracing`.

use std::ffi::OsStr;
use std::path::Path;

use sealog_core::{Notice, Prefix};

/// Writes a notice down, as one event with the target `sealog`, the prefix, and the key if there
/// is one. The core decided that it is worth it; here it only gets a level:
///
/// - error: entries are lost, or the log takes nothing until somebody does something;
/// - warn: something failed or takes long, and may be worth a look;
/// - info: how the log goes.
///
/// Without the feature `tracing` it does nothing.
pub fn tell_operator(prefix: &Prefix, notice: &Notice) {
    #[cfg(feature = "tracing")]
    events::tell(prefix.as_str(), notice);
    #[cfg(not(feature = "tracing"))]
    let _ = (prefix, notice);
}

/// Writes down that a file was passed over, since no key can have its name: it is not UTF-8, or has
/// control characters. The one notice that is not the core's, which has no name for such a thing.
pub(crate) fn tell_unnameable(directory: &Path, name: &OsStr) {
    #[cfg(feature = "tracing")]
    events::unnameable(directory, name);
    #[cfg(not(feature = "tracing"))]
    let _ = (directory, name);
}

#[cfg(feature = "tracing")]
mod events {
    use std::ffi::OsStr;
    use std::path::Path;

    use sealog_core::{Error, Notice};
    use tracing::{error, info, warn};

    const TARGET: &str = "sealog";

    pub(super) fn unnameable(directory: &Path, name: &OsStr) {
        let directory = directory.display();
        warn!(
            target: TARGET, %directory, ?name,
            "a file whose name no key can have is ignored, and so are others like it"
        );
    }

    pub(super) fn tell(prefix: &str, notice: &Notice) {
        match notice {
            Notice::KeyIgnored { key } => {
                let key = &**key;
                warn!(
                    target: TARGET, prefix, key,
                    "a key with a sequence that no object can have is ignored"
                );
            }
            // Ordinary: the successors of a create that a crash cut off.
            Notice::IncompleteObjects { count } => {
                info!(
                    target: TARGET, prefix, count,
                    "objects whose predecessor never landed are not part of the log"
                );
            }
            Notice::OpeningAgain { key, epoch } => {
                let (key, epoch) = (&**key, epoch.0);
                info!(
                    target: TARGET, prefix, key, epoch,
                    "another writer's object came in between: opening again"
                );
            }
            Notice::OpeningRetries { error } => {
                let key = key_of(error);
                warn!(
                    target: TARGET, prefix, key, %error,
                    "a request of the opening failed and is repeated"
                );
            }
            Notice::Opened { start, recovered_objects, took } => {
                let (epoch, sequence) = (start.epoch.0, start.sequence.0);
                info!(
                    target: TARGET, prefix, epoch, sequence, recovered_objects, ?took,
                    "the log is open"
                );
            }
            Notice::CreateRetries { key, error, delay } => {
                let key = &**key;
                warn!(
                    target: TARGET, prefix, key, %error, ?delay,
                    "creating an object failed and is repeated"
                );
            }
            Notice::RolledBack { batches, error } => {
                let key = key_of(error);
                warn!(
                    target: TARGET, prefix, key, batches, %error,
                    "batches that were not durable are rolled back: their appends failed"
                );
            }
            Notice::Failing { error } => {
                let key = key_of(error);
                error!(
                    target: TARGET, prefix, key, %error,
                    "the store refuses to create objects: the log takes nothing until that passes"
                );
            }
            Notice::Healthy => {
                info!(
                    target: TARGET, prefix,
                    "the store creates objects again: the log takes appends"
                );
            }
            Notice::Stalled { appends, age, backlog } => {
                warn!(
                    target: TARGET, prefix, appends, ?age, backlog,
                    "appends have been waiting for their place for long"
                );
            }
            Notice::SlowCreate { key, age, backlog } => {
                let key = &**key;
                warn!(
                    target: TARGET, prefix, key, ?age, backlog,
                    "an object has been under way for long"
                );
            }
            Notice::Poisoned { error } => {
                let key = key_of(error);
                error!(target: TARGET, prefix, key, %error, "the log takes nothing more");
            }
            Notice::Hole(hole) => {
                let (key, region) = (&*hole.key, hole.region.0);
                let (min_id, max_id) = (hole.min_id.0, hole.max_id.0);
                error!(
                    target: TARGET, prefix, key, region, min_id, max_id, error = %hole.error,
                    "a segment is damaged: its entries are lost"
                );
            }
            Notice::DeleteFailed { key, count, error } => {
                let key = &**key;
                warn!(
                    target: TARGET, prefix, key, count, %error,
                    "objects that are not needed could not be deleted: they are tried again"
                );
            }
            // A core that is newer than this shell.
            other => warn!(target: TARGET, prefix, notice = ?other, "the log has something to say"),
        }
    }

    /// Where it happened, if it happened at a key.
    fn key_of(error: &Error) -> Option<&str> {
        match error {
            Error::Contended { key, .. }
            | Error::Store { key, .. }
            | Error::Conflict { key }
            | Error::Fenced { key, .. }
            | Error::Corrupted { key, .. }
            | Error::UnsafeStore { key } => Some(key),
            Error::Failing { cause } | Error::Poisoned { cause } | Error::Lost { cause, .. } => {
                key_of(cause)
            }
            _ => None,
        }
    }
}

#[cfg(all(test, feature = "tracing"))]
mod tests;
