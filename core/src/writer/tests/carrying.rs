//! The carrier: an idle log whose watermarks moved makes one object that carries the boundary, and
//! never because of another (DESIGN.md section 9).

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

/// Object 6 is durable and obsolete, and nothing carries that.
fn obsolete() -> Log {
    obsolete_with(at_once())
}

fn obsolete_with(options: Options) -> Log {
    let mut log = Log::new(options);
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    log
}

fn millis(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}

#[test]
fn one_carrier_is_made_when_nothing_was_sealed_for_the_interval_and_never_another() {
    let mut log = obsolete();
    assert_eq!(log.writer.next_tick(), millis(60_000));
    assert_eq!(log.tick_at(59_999), [""; 0]);
    assert_eq!(log.tick_at(60_000), ["put 7"]);
    assert_eq!(log.header(7).boundary, ObjectSeq(7));
    let object = Object::decode(&log.payload(7).to_bytes()).unwrap();
    assert!(object.segments.is_empty(), "it has no segments");
    assert_eq!(log.writer.next_tick(), millis(65_000), "to warn of it, and nothing else");
    assert_eq!(log.created(7), ["delete 6"]);
    assert_eq!(log.deleted(6), [""; 0]);
    // The boundary has passed the carrier, and that is not worth another.
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    let stats = log.stats();
    assert_eq!((stats.created_objects_total, stats.unpersisted_bytes), (2, 0));
}

#[test]
fn an_idle_log_wants_no_tick_and_sends_nothing() {
    let mut log = Log::new(Options::default());
    assert_eq!(log.writer.next_tick(), None, "its boundary is above the start object's own");
    log.append(1, "a");
    log.tick_at(1);
    log.created(6);
    assert_eq!(log.writer.next_tick(), None);
    // An obsolete that frees no object.
    log.append_many(&[(1, "b"), (2, "c")]);
    log.tick_at(101);
    log.created(7);
    log.obsolete(2, id(7, 1));
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn the_interval_counts_from_the_last_seal_or_the_opening() {
    let mut log = Log::from(with_history(at_once(), &[(4, &[1])]));
    log.now = Time::from_millis(10_000);
    log.obsolete(1, id(4, 1));
    assert_eq!(log.writer.next_tick(), millis(60_000), "the opening");
    log.now = Time::from_millis(20_000);
    // What the boundary waits for is sealed with the next append anyway.
    assert_eq!(log.append_durable(1), ["ack 2: 6/1", "delete 4"]);
    log.deleted(4);
    assert_eq!(log.writer.next_tick(), None);
    log.now = Time::from_millis(30_000);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.writer.next_tick(), millis(80_000), "the seal");
}

#[test]
fn a_log_that_was_idle_for_longer_makes_it_at_once_and_the_next_one_after_the_interval() {
    let mut log = Log::from(with_history(at_once(), &[(3, &[1]), (4, &[2])]));
    log.now = Time::from_millis(500_000);
    assert_eq!(log.obsolete(1, id(3, 1)), ["ack 1", "put 6"]);
    assert_eq!(log.created(6), ["delete 3"]);
    log.deleted(3);
    assert_eq!(log.obsolete(2, id(4, 1)), ["ack 2"]);
    assert_eq!(log.writer.next_tick(), millis(560_000));
}

#[test]
fn a_log_without_the_interval_makes_none() {
    let mut log = obsolete_with(Options { reclaim_interval: Duration::ZERO, ..at_once() });
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    assert_eq!(log.append_durable(2), ["ack 3: 7/1", "delete 6"]);
}

#[test]
fn an_object_of_release_records_alone_is_not_worth_one() {
    let mut log = obsolete();
    // The release's own object carries that 6 is not needed.
    assert_eq!(log.release(1), ["put 7"]);
    assert_eq!(log.created(7), ["ack 3", "delete 6"]);
    log.deleted(6);
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.writer.next_tick(), None);
}

#[test]
fn a_release_that_frees_an_object_is_followed_by_one() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    assert_eq!(log.header(7).boundary, ObjectSeq(6), "the record counts when it is durable");
    assert_eq!(log.created(7), ["ack 2"]);
    assert_eq!(log.tick_at(60_000), ["put 8"]);
    assert_eq!(log.created(8), ["delete 6", "delete 7"]);
    log.deleted(6);
    log.deleted(7);
    assert_eq!(log.writer.next_tick(), None);
}

#[test]
fn none_is_made_while_a_batch_is_open_or_on_its_way() {
    let linger = Duration::from_secs(1);
    let mut log = Log::new(Options { linger, ..at_once() });
    log.append(1, "a");
    log.tick_at(1_000);
    log.created(6);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.writer.next_tick(), millis(61_000));
    log.now = Time::from_millis(60_999);
    log.append(2, "b");
    assert_eq!(log.tick_at(61_000), [""; 0], "the open batch carries it");
    assert_eq!(log.tick_at(61_999), ["put 7"]);
    assert_eq!(log.tick_at(64_000), [""; 0], "7 carries it");
    assert_eq!(log.tick_at(200_000), ["7.wal slow for 138.001s, 163 B"]);
    assert_eq!(log.created(7), ["ack 3: 7/1", "delete 6"]);
}

#[test]
fn none_is_made_while_a_floor_waits() {
    let mut log = obsolete();
    log.append(2, "b");
    assert_eq!(log.obsolete(3, id(50, 1)), [""; 0]);
    assert_eq!(log.tick_at(100_000), ["7.wal slow for 100s, 163 B"]);
    assert_eq!(log.created(7), ["ack 3: 7/1", "ack 4", "delete 6"]);
}

#[test]
fn none_is_made_while_the_log_is_failing() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.created(6);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.tick_at(60_000), ["put 7"]);
    // A refused carrier makes it failing like any other batch.
    assert_eq!(log.fails(7, Refused), ["failing: Store creating Refused"]);
    assert_eq!(log.tick_at(60_100), ["put 7"]);
    assert_eq!(log.fails(7, Refused), [""; 0]);
    let said = log.tick_at(130_000);
    assert_eq!(said, ["7.wal slow for 70s, 90 B", "put 7"], "the same one");
    assert_eq!(log.created(7), ["healthy", "delete 6"]);
}

#[test]
fn none_is_made_once_stop_began_or_the_log_was_poisoned() {
    let mut log = obsolete();
    log.append_durable(2);
    assert_eq!(log.obsolete(2, id(7, 1)), ["ack 4"]);
    // The delete of 6 is under way, so stop has not ended.
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    assert_eq!(log.deleted(6), ["ack 5"]);

    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.append(2, "b");
    log.obsolete(1, id(6, 1));
    log.fails(7, Exists);
    log.finds_twice(7, &[0; 100]);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn an_exhausted_log_makes_none() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last));
    log.append_durable(1);
    log.obsolete(1, id(last, 1));
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn after_a_roll_back_the_next_interval_tries_again() {
    let mut log = obsolete();
    log.tick_at(60_000);
    assert_eq!(log.fails(7, Refused), [""; 0], "nobody waits for it");
    assert_eq!(log.stats().rolled_back_batches_total, 1);
    assert_eq!(log.writer.next_tick(), millis(120_000));
    assert_eq!(log.tick_at(119_999), [""; 0]);
    assert_eq!(log.tick_at(120_000), ["put 8"]);
    // It comes after a skip, so it is guarded like any other.
    assert_eq!(log.created(8), ["list after 6.wal"]);
    assert_eq!(log.lists(&[8]), ["delete 6"]);
    log.deleted(6);
    assert_eq!(log.writer.next_tick(), None);
}

#[test]
fn a_transient_outcome_is_repeated_as_of_any_batch() {
    let mut log = obsolete();
    log.tick_at(60_000);
    log.fails(7, TimedOut);
    log.fails(7, NotFound);
    assert_eq!(log.tick_at(60_100), ["put 7"]);
    assert_eq!(log.created(7), ["delete 6"]);
}

#[test]
fn an_append_that_comes_meanwhile_goes_its_way() {
    let mut log = obsolete();
    log.tick_at(60_000);
    assert_eq!(log.append(2, "b"), ["put 8"]);
    assert_eq!(log.created(8), [""; 0]);
    assert_eq!(log.created(7), ["ack 3: 8/1", "delete 6"]);
}

#[test]
fn a_flush_waits_for_it() {
    let mut log = obsolete();
    log.tick_at(60_000);
    assert_eq!(log.flush(), [""; 0]);
    assert_eq!(log.created(7), ["ack 3", "delete 6"]);
}
