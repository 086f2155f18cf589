//! What the machines have to say, written to `tracing`.

use sealog_core::{Notice, Prefix};
use tracing::{error, info, warn};

/// Writes a notice down. The core decided that it is worth it.
pub(crate) fn tell(prefix: &Prefix, notice: &Notice) {
    let prefix = prefix.as_str();
    match notice {
        Notice::KeyIgnored { key } => {
            warn!(prefix, %key, "a key with a sequence that no object can have is ignored");
        }
        Notice::IncompleteObjects { count } => {
            warn!(prefix, count, "objects whose predecessor never landed are not part of the log");
        }
        Notice::OpeningAgain { key, epoch } => {
            info!(prefix, %key, epoch = epoch.0, "another writer's object came in between: opening again");
        }
        Notice::OpeningRetries { error } => {
            warn!(prefix, %error, "a request of the opening failed and is repeated");
        }
        Notice::Opened { start, recovered_objects, took } => {
            info!(
                prefix,
                epoch = start.epoch.0,
                sequence = start.sequence.0,
                recovered_objects,
                ?took,
                "the log is open"
            );
        }
        Notice::CreateRetries { key, error, delay } => {
            warn!(prefix, %key, %error, ?delay, "creating an object failed and is repeated");
        }
        Notice::RolledBack { batches, error } => {
            warn!(prefix, batches, %error, "batches that were not durable are rolled back: their appends failed");
        }
        Notice::Poisoned { error } => {
            error!(prefix, %error, "the log takes nothing more");
        }
        Notice::Hole(hole) => {
            warn!(
                prefix,
                key = %hole.key,
                region = hole.region.0,
                min_id = hole.min_id.0,
                max_id = hole.max_id.0,
                error = %hole.error,
                "a segment is damaged: its entries are lost"
            );
        }
        other => warn!(prefix, notice = ?other, "the log has something to say"),
    }
}
