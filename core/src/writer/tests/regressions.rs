//! Inputs that once went wrong, as the simulation found and shrank them.

use alloc::vec;

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

/// The listing that had just failed was kept as one that still runs out, and stop waited for it
/// for ever.
#[test]
fn stop_does_not_wait_for_a_guard_whose_listing_failed() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.listing_fails(TimedOut), ["fail [2]: Store listing Transient, Unknown"]);
    assert_eq!(log.stop(), ["ack 3"]);
}

#[test]
fn a_release_after_a_failed_append_is_written_down_since_an_opening_may_bring_that_back() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    assert_eq!(log.append(1, "a"), ["put 6"]);
    log.fails(6, TimedOut);
    let failed = log.fails(6, NotFound);
    assert_eq!(failed, ["fail [1]: Store creating TimedOut, Unknown"]);
    // The put at 6 may land yet: nothing but an object that leaves it aside makes it no part of
    // history.
    assert_eq!(log.release(1), ["put 7"]);
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 2"]);
    assert_eq!(log.release(1), ["ack 3"], "nothing of it is there or can come back");
}

#[test]
fn an_object_of_an_earlier_epoch_that_held_a_sequence_is_not_deleted_with_the_failed_batch() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Exists);
    let failed = log.finds(6, &bare_object(6, 5));
    assert_eq!(failed, ["fail [1]: Conflict, Unknown"]);
    log.append(1, "b");
    log.created(7);
    log.lists(&[6, 7]);
    assert_eq!(log.finds(6, &bare_object(6, 5)), ["ack 2: 7/1"], "7 carries a boundary above 6");
    log.obsolete(1, id(7, 1));
    log.append(2, "c");
    assert_eq!(log.created(8), ["ack 4: 8/1", "delete 7"]);
}

/// A release of another kind that was on its way kept the region closed.
#[test]
fn a_region_takes_appends_again_once_the_record_that_released_it_in_full_was_collected() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.created(6);
    assert_eq!(log.release_all(1), ["put 7"]);
    assert_eq!(log.created(7), ["ack 2"]);
    assert_eq!(log.append(2, "b"), ["put 8"]);
    assert_eq!(log.release(1), ["put 9"]);
    assert_eq!(log.created(8), ["ack 3: 8/1", "delete 6", "delete 7"]);
    assert_eq!(log.append(1, "c"), ["fail [5]: Released, NotWritten"]);
    for sequence in [6, 7] {
        let id = log.take(sequence).id();
        let results = vec![(log.writer.prefix().object_key(ObjectSeq(sequence)), Ok(()))];
        log.handle(Event::Storage(StorageAnswer::DeleteResult { id, results }));
    }
    assert_eq!(log.append(1, "d"), ["put 10"]);
    assert_eq!(log.created(9), ["ack 4"]);
    assert_eq!(log.created(10), ["ack 6: 10/1"]);
    assert_eq!(log.writer.regions().count(), 2, "the release hides what was there before");
}
