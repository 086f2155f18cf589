//! Exclusive ownership (DESIGN.md section 12), as far as an opening is concerned.

mod changed;
mod claims;
mod confirmed;
mod costs;
mod crashed;
mod faster;
mod kept;
mod look;
mod two;
mod way;

use super::*;

/// One start object, and the way behind it is free.
fn free() -> Store {
    Store::of([make(0, 1).writer("a")])
}

/// A claim stands behind it, so that a start object comes at once, at 2.
fn blocked() -> Store {
    Store::of([make(0, 1).writer("a"), claim(1)])
}

fn contended(run: &Run) -> (Key, Epoch, Option<&str>) {
    assert!(run.failed().is_retryable());
    match run.failed() {
        Error::Contended { key, epoch, writer } => (key.clone(), *epoch, writer.as_deref()),
        other => panic!("{other}\n{}", run.transcript),
    }
}

fn corrupted(run: &Run) -> Key {
    assert!(!run.failed().is_retryable());
    match run.failed() {
        Error::Corrupted { key, .. } => key.clone(),
        other => panic!("{other}\n{}", run.transcript),
    }
}

/// Scripts that these appear before a listing.
fn appear(store: &mut Store, listing: usize, objects: impl IntoIterator<Item = (u64, Bytes)>) {
    let objects: Vec<_> = objects.into_iter().collect();
    store.before(listing, Operation::List, prefix().objects(), move |there| {
        there.extend(objects.into_iter().map(|(sequence, bytes)| (key(sequence), bytes)));
    });
}
