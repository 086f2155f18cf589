//! The guard after a skip and after silence: DESIGN.md section 12, rules 4 and 7.

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
    let own = log.put[&6].to_bytes();
    assert_eq!(log.finds(6, &own), ["ack 2: 7/1"]);
    assert_eq!(log.stats().guards_total, 1);
}

/// Two writers of one epoch: the prefix was emptied, or an older copy put back, under one of them.
#[test]
fn an_object_of_our_epoch_that_is_not_ours_poisons() {
    for at in [6, 9] {
        let mut log = guarded();
        log.lists(if at < 7 { &[6, 7] } else { &[7, 9] });
        let said = log.finds(at, &bare_object(at, EPOCH.0));
        assert_eq!(said, ["fail [2]: Fenced by 6 ?, Unknown"], "{at}");
    }
}

/// What this writer created is known to be its own; what it read stays read, as long as the listing
/// shows the same; and the headers are read a few at a time.
#[test]
fn a_guard_reads_a_few_headers_at_a_time_and_none_of_them_again() {
    let mut log = Log::new(Options { open_concurrency: 2, ..at_once() });
    log.append(1, "a");
    log.append(1, "created, and rolled back");
    log.created(7);
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(8);
    assert_eq!(log.lists(&[7, 8, 9, 10, 11]), ["read back 9", "read back 10"]);
    assert_eq!(log.finds(9, &bare_object(9, 2)), ["read back 11"]);
    // One fails: the batch is guarded again, once what is under way has ended.
    assert_eq!(log.fails(10, TimedOut), [""; 0]);
    assert_eq!(log.finds(11, &bare_object(11, 2)), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 8"]);
    assert_eq!(log.created(8), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7, 8, 9, 10, 11]), ["read back 10"]);
    assert_eq!(log.finds(10, &bare_object(10, 2)), ["ack 3: 8/1"]);
    assert_eq!(log.stats().guards_total, 2);
}

#[test]
fn a_guard_that_has_nothing_new_to_read_costs_one_listing() {
    let mut log = guarded();
    log.lists(&[7, 20]);
    log.finds(20, &bare_object(20, 2));
    for waiter in [3, 5] {
        // Rolled back, and the next batch guarded.
        let refused = 5 + waiter;
        log.append(1, "c");
        log.fails(refused, Refused);
        log.append(1, "d");
        assert!(log.created(refused + 1)[0].starts_with("list after"));
        let said = log.lists(&[refused + 1, 20]);
        assert_eq!(said[0], format!("ack {}: {}/1", waiter + 1, refused + 1));
    }
}

#[test]
fn what_was_read_is_read_again_if_it_has_another_size() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    log.lists(&[7, 9, 10]);
    log.finds(9, &bare_object(9, 2));
    log.fails(10, TimedOut);
    log.tick_at(100);
    log.created(7);
    // Removed, and put there again.
    log.put.insert(9, Payload::new(Vec::from([start_object(9, "longer")])));
    assert_eq!(log.lists(&[7, 9]), ["read back 9"]);
}

/// Section 4: what a listing is believed.
#[test]
fn a_listing_that_does_not_show_the_guarded_batch_is_a_transient_outcome() {
    let mut log = guarded();
    assert_eq!(log.lists(&[]), ["list after 5.wal"], "nothing is asked again");
    assert_eq!(log.lists(&[6]), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 7"]);
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
}

#[test]
fn a_listing_without_order_must_settle_and_so_must_all_later_ones() {
    let mut log = guarded();
    assert_eq!(log.lists(&[9, 7]), ["list after 5.wal"]);
    assert_eq!(log.lists(&[9, 7]), ["read back 9"]);
    assert_eq!(log.finds(9, &bare_object(9, 2)), ["ack 2: 7/1"]);
    log.append(1, "c");
    log.fails(8, Refused);
    log.append(1, "d");
    log.created(9);
    assert_eq!(log.lists(&[9]), ["list after 7.wal"]);
    assert_eq!(log.lists(&[9])[0], "ack 4: 9/1");
}

#[test]
fn a_listing_that_never_settles_is_a_transient_outcome() {
    let mut log = Log::new(Options { open_attempts: 3, ..at_once() });
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    for at in 9..13 {
        // What is lowest changes again and again.
        log.put.insert(6, Payload::new(Vec::from([start_object(6, &"n".repeat(at))])));
        assert_eq!(log.lists(&[9, 7, 6]), ["list after 5.wal"]);
    }
    log.put.insert(6, Payload::new(Vec::from([start_object(6, "n")])));
    assert_eq!(log.lists(&[9, 7, 6]), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 7"]);
}

/// Two suspects that are answered in turns end as well: once for each sequence.
#[test]
fn two_suspects_in_turns_end_the_log() {
    let mut log = guarded();
    let mut said = Vec::new();
    for (at, round) in [(8, 1), (9, 2), (8, 3)] {
        log.lists(&[7, at]);
        said = log.finds(at, b"damaged");
        if said.is_empty() {
            log.tick_at(round * 1000);
            log.created(7);
        }
    }
    assert_eq!(said, ["fail [2]: Corrupted object, Unknown"]);
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
        // The other look still counts, and is not made again.
        assert_eq!(log.finds(8, &bare_object(8, 2)), [""; 0]);
        assert_eq!(log.tick_at(100), ["put 7"]);
        assert_eq!(log.created(7), ["list after 5.wal"]);
        assert_eq!(log.lists(&[6, 7, 8]), ["read back 6"]);
    }
}

/// A later epoch ends the log, whatever else could not be read.
#[test]
fn a_later_epoch_beside_what_could_not_be_read_poisons() {
    let mut log = guarded();
    log.lists(&[6, 7, 8]);
    assert_eq!(log.fails(6, TimedOut), [""; 0]);
    assert_eq!(log.finds(8, &bare_object(8, 9)), ["fetch 8 0..90"]);
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

/// Section 12, rule 7: half a minute, with a retention of one.
const SILENCE: u64 = 30_000;

/// Without the warnings that creates are slow.
fn but_slow(said: Vec<String>) -> Vec<String> {
    said.into_iter().filter(|line| !line.contains(" slow for ")).collect()
}

fn silent() -> Options {
    Options { fence_retention: Duration::from_secs(60), ..at_once() }
}

#[test]
fn a_batch_that_is_answered_long_after_the_last_one_was_put_is_guarded() {
    let mut log = Log::new(silent());
    // At first it is the start object that counts, which was put at 0.
    log.now = Time::from_millis(SILENCE);
    log.append(1, "a");
    assert_eq!(log.created(6), ["ack 1: 6/1"], "half of it, and no more");
    log.now = Time::from_millis(2 * SILENCE + 1);
    log.append(1, "b");
    assert_eq!(log.created(7), ["list after 6.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
    log.append(1, "c");
    assert_eq!(log.created(8), ["ack 3: 8/1"], "7 was put just now");
}

#[test]
fn the_guard_after_silence_meets_the_history_that_came_meanwhile() {
    let theirs = start_object(9, "other");
    let mut log = Log::new(silent());
    log.now = Time::from_millis(SILENCE + 1);
    log.append(1, "a");
    assert_eq!(log.created(6), ["list after 5.wal"]);
    assert_eq!(log.lists(&[6, 9]), ["read back 9"]);
    log.finds(9, &theirs);
    assert_eq!(log.fetched(9, theirs), ["fail [1]: Fenced by 10 other, Unknown"]);
}

/// What counts is when the create was answered, however early it was put, and when the last indexed one
/// was put first, however late it was answered.
#[test]
fn time_counts_from_the_first_put_to_the_answer() {
    let mut log = Log::new(silent());
    assert_eq!(log.append(1, "a"), ["put 6"]);
    assert_eq!(log.append(1, "b"), ["put 7"]);
    log.now = Time::from_millis(SILENCE);
    assert_eq!(but_slow(log.created(6)), ["ack 1: 6/1"]);
    log.now = Time::from_millis(SILENCE + 1);
    assert_eq!(but_slow(log.created(7)), ["list after 6.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
}

#[test]
fn a_put_that_is_repeated_counts_from_the_first() {
    let mut log = Log::new(Options { retry_for: Duration::from_secs(3600), ..silent() });
    log.append(1, "a");
    log.fails(6, TimedOut);
    log.fails(6, NotFound);
    assert_eq!(but_slow(log.tick_at(20_000)), ["put 6"]);
    assert_eq!(but_slow(log.created(6)), ["ack 1: 6/1"]);
    log.now = Time::from_millis(SILENCE + 1);
    log.append(1, "b");
    assert_eq!(log.created(7), ["list after 6.wal"]);
}

/// Of batches that are put at once after a silence the first alone is guarded, in whatever order they
/// are answered; what is behind it waits, created or not, and no more are started.
#[test]
fn of_many_batches_after_a_silence_the_first_is_guarded() {
    let mut log = Log::new(Options { max_in_flight: 3, ..silent() });
    log.now = Time::from_millis(SILENCE + 1);
    for at in 6..=8 {
        assert_eq!(log.append(1, "a"), [format!("put {at}")]);
    }
    assert_eq!(log.append(1, "d"), [""; 0]);
    assert_eq!(log.created(7), ["put 9"], "nothing is known to be guarded yet");
    assert_eq!(log.created(6), ["list after 5.wal"]);
    assert_eq!(log.append(1, "e"), [""; 0]);
    assert_eq!(log.created(8), [""; 0], "no more are started");
    let said = log.lists(&[6, 7, 8]);
    assert_eq!(said, ["ack 1: 6/1", "ack 2: 7/1", "ack 3: 8/1", "put 10"]);
    // One that was answered long after the one before it was put is guarded when its turn comes.
    log.now = Time::from_millis(3 * SILENCE);
    assert_eq!(but_slow(log.created(10)), [""; 0]);
    assert_eq!(log.created(9), ["list after 8.wal"]);
    assert_eq!(log.lists(&[9, 10]), ["ack 4: 9/1", "list after 9.wal"]);
    assert_eq!(log.stats().in_flight_creates, 1);
    assert_eq!(log.lists(&[10]), ["ack 5: 10/1"]);
    assert_eq!(log.stats().in_flight_creates, 0);
}

#[test]
fn a_guard_after_silence_that_fails_for_too_long_takes_what_is_behind_it_along() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..silent() });
    log.now = Time::from_millis(SILENCE + 1);
    log.append(1, "a");
    log.append(1, "b");
    log.created(7);
    assert_eq!(log.created(6), ["list after 5.wal"]);
    let said = log.listing_fails(TimedOut);
    assert_eq!(said, ["fail [1, 2]: Store listing Transient, Unknown"]);
    log.append(1, "c");
    assert_eq!(log.created(8), ["list after 5.wal"]);
}

#[test]
fn without_an_end_of_the_retention_no_silence_is_too_long() {
    let mut log = Log::new(Options { fence_retention: Duration::MAX, ..at_once() });
    log.now = Time::from_millis(u64::MAX / 2_000_000);
    log.append(1, "a");
    assert_eq!(log.created(6), ["ack 1: 6/1"]);
}

/// Of a batch behind the guarded one nothing may be known but that it was sent: it is stored, and its
/// answer is on the way.
#[test]
fn what_is_on_its_way_behind_a_guard_is_its_own() {
    let mut log = Log::new(Options { max_in_flight: 3, ..silent() });
    log.now = Time::from_millis(SILENCE + 1);
    for at in 6..=8 {
        assert_eq!(log.append(1, "a"), [format!("put {at}")]);
    }
    assert_eq!(log.created(6), ["list after 5.wal"]);
    assert_eq!(log.lists(&[6, 8]), ["read back 8"]);
    let own = ReadBack::of(&log.put[&8].to_bytes());
    let at = log.requests.iter().position(|e| matches!(e, StorageEffect::ReadBack { .. }));
    let id = log.requests.remove(at.unwrap()).id();
    let answer = StorageAnswer::ReadBackResult { id, result: Ok(own) };
    assert_eq!(log.handle(Event::Storage(answer)), ["ack 1: 6/1"]);
}
