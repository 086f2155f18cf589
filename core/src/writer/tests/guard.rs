//! The guard after a skip: DESIGN.md section 12, rule 4.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

/// A log whose first batch, at 6, was refused and rolled back, and whose next batch, at 7, is
/// created: it is guarded.
fn guarded() -> Log {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Refused);
    assert_eq!(log.append(1, "b"), ["put 7"]);
    assert_eq!(log.created(7), ["list after 5.wal"]);
    log
}

#[test]
fn without_a_skip_nothing_is_listed() {
    let mut log = Log::new(at_once());
    for (sequence, waiter) in [(6, 1), (7, 2)] {
        log.append(1, "a");
        assert_eq!(log.created(sequence), [format!("ack {waiter}: {sequence}/1")]);
    }
}

#[test]
fn only_the_first_batch_after_a_skip_is_guarded() {
    let mut log = guarded();
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
    log.append(1, "c");
    // It carries that nothing below 7 is needed, the key of the batch that was rolled back included.
    assert_eq!(log.created(8), ["ack 3: 8/1", "delete 6"]);
}

#[test]
fn what_stands_above_the_last_indexed_object_is_looked_at() {
    let mut log = guarded();
    // 4 and 5 are not above it: the store ignores from where on it is to list.
    assert_eq!(log.lists(&[4, 5, 6, 7, 9]), ["read back 6", "read back 9"]);
    assert_eq!(log.finds(9, &bare_object(9, 2)), [""; 0]);
    // Our own, of the batch that was rolled back: it landed after all.
    assert_eq!(log.finds(6, &bare_object(6, EPOCH.0)), ["ack 2: 7/1"]);
}

#[test]
fn a_later_epoch_poisons_be_it_a_claim_or_not() {
    let theirs = start_object(9, "other");
    let mut log = guarded();
    assert_eq!(log.lists(&[6, 7, 9]), ["read back 6", "read back 9"]);
    assert_eq!(log.finds(9, &theirs), [format!("fetch 9 0..{}", theirs.len())]);
    assert_eq!(log.fetched(9, theirs), ["fail [2]: Fenced by 10 other, Unknown"]);
    // The look that is under way runs out, and stop waits for it.
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.fails(6, TimedOut), ["fail [3]: Poisoned Fenced by 10 other, NotWritten"]);
}

#[test]
fn behind_a_guarded_batch_no_create_starts_until_it_is_indexed() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Refused);
    assert_eq!(log.append(1, "b"), ["put 7"]);
    assert_eq!(log.append(1, "c"), [""; 0], "sealed, and not started");
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.append(1, "d"), [""; 0]);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1", "put 8", "put 9"]);
}

#[test]
fn a_guard_that_cannot_list_is_a_transient_outcome_of_its_batch() {
    for failure in [TimedOut, Transient, NotFound, Refused] {
        let mut log = guarded();
        assert_eq!(log.listing_fails(failure), [""; 0]);
        // The same bytes again, which are found there, and the guard again.
        let stored = bare_object(7, 6);
        assert_eq!(log.tick_at(100), ["put 7"]);
        let payload = log.payload(7).to_bytes();
        assert_ne!(stored, payload);
        assert_eq!(log.fails(7, Exists), ["read back 7"]);
        assert_eq!(log.finds(7, &payload), ["list after 5.wal"]);
        assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
    }
}

#[test]
fn a_guard_that_cannot_read_is_a_transient_outcome_of_its_batch() {
    type Look = fn(&mut Log) -> Vec<String>;
    let unreadable: [Look; 6] = [
        |log| log.fails(6, TimedOut),
        |log| log.fails(6, NotFound),
        |log| log.finds(6, &[]),
        |log| log.finds(6, &[1; 100]),
        // A header of a later epoch, and too short for an object.
        |log| log.finds(6, &bare_object(6, 9)[..89]),
        // What stands at the wrong key.
        |log| log.finds(6, &bare_object(8, 9)),
    ];
    for look in unreadable {
        let mut log = guarded();
        log.lists(&[6, 7, 8]);
        assert_eq!(look(&mut log), [""; 0]);
        // The other look runs out and changes nothing, though it is of a later epoch.
        assert_eq!(log.finds(8, &bare_object(8, 9)), [""; 0]);
        assert_eq!(log.tick_at(100), ["put 7"]);
        assert_eq!(log.created(7), ["list after 5.wal"]);
    }
}

#[test]
fn what_is_no_object_twice_ends_the_log() {
    let mut log = guarded();
    log.lists(&[6, 7]);
    assert_eq!(log.finds(6, b"damaged on the way?"), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 7"]);
    assert_eq!(log.created(7), ["list after 5.wal"]);
    log.lists(&[6, 7]);
    assert_eq!(log.finds(6, b"damaged"), ["fail [2]: Corrupted object, Unknown"]);
}

#[test]
fn a_guard_that_fails_for_too_long_rolls_back_and_the_next_batch_is_guarded_too() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.append(1, "c");
    log.created(7);
    assert_eq!(
        log.listing_fails(TimedOut),
        [
            "fail [2]: Store listing Transient, Unknown",
            "fail [3]: Store listing Transient, NotWritten",
        ]
    );
    assert_eq!(log.append(1, "d"), ["put 9"]);
    assert_eq!(log.created(9), ["list after 5.wal"]);
    assert_eq!(log.lists(&[9]), ["ack 4: 9/1"]);
}

#[test]
fn a_guarded_batch_runs_out_when_stop_begins() {
    let mut log = guarded();
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.lists(&[6, 7]), ["read back 6"]);
    assert_eq!(log.finds(6, &bare_object(6, 2)), ["ack 2: 7/1", "ack 3"]);
}

#[test]
fn a_guard_that_was_rolled_back_keeps_no_slot_and_changes_nothing() {
    let mut log = guarded();
    log.append(1, "c");
    log.lists(&[6, 7]);
    // A second batch behind it cannot fail it, since none is started; poison by its own look can.
    assert_eq!(log.stats().in_flight_creates, 1);
    log.writer.abandon();
    assert_eq!(
        log.handle(Event::Tick),
        ["fail [2]: Stopped, Unknown", "fail [3]: Stopped, NotWritten"]
    );
    assert_eq!(log.stats().in_flight_creates, 0);
    assert_eq!(log.finds(6, &bare_object(6, 9)), [""; 0]);
}

/// It is repeated as a guard that cannot read (section 12, rule 4), and if it stays, every append
/// fails like this: so the error must say what it is that stands there, and not just "it may pass".
#[test]
fn a_guard_that_meets_what_is_no_object_says_what_it_met() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    log.lists(&[7, 9]);
    let id = log.take(9).id();
    let found = Ok(ReadBack::of(&Bytes::from_static(b"short")));
    let answer = StorageAnswer::ReadBackResult { id, result: found };
    log.writer.handle(log.now, Event::Storage(answer));
    let error = core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error, .. } => Some(error.to_string()),
        _ => None,
    });
    let error = error.expect("the append failed");
    assert!(error.contains("00009.wal") && error.contains("found 5"), "{error}");
}
