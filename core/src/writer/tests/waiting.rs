//! `wait_durable`, in both modes.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

const MODES: [AckMode; 2] = [AckMode::Durable, AckMode::Enqueued];

fn mode(ack_mode: AckMode) -> Options {
    Options { ack_mode, ..at_once() }
}

/// What was said, but for the acknowledgements of appends.
fn waits(said: Vec<String>) -> Vec<String> {
    said.into_iter().filter(|said| !said.contains(':') || said.starts_with("fail")).collect()
}

#[test]
fn it_returns_once_no_id_at_or_below_waits() {
    for ack_mode in MODES {
        let mut log = Log::new(mode(ack_mode));
        for (region, payload) in [(1, "a"), (2, "b"), (1, "c")] {
            log.append(region, payload);
        }
        assert_eq!(log.wait(1, id(6, 1)), [""; 0]);
        assert_eq!(log.wait(1, id(7, 9)), [""; 0], "6/1 is the largest at or below");
        assert_eq!(log.wait(2, id(7, 1)), [""; 0]);
        assert_eq!(log.wait(1, id(8, 1)), [""; 0]);
        assert_eq!(log.wait(2, id(6, 5)), ["ack 8"], "nothing of the region is that low");
        assert_eq!(waits(log.created(7)), [""; 0], "6 comes first");
        assert_eq!(waits(log.created(6)), ["ack 4", "ack 5", "ack 6"]);
        assert_eq!(log.wait(1, id(6, 1)), ["ack 9"], "it is durable");
        assert_eq!(waits(log.created(8)), ["ack 7"]);
    }
}

#[test]
fn an_id_above_everything_handed_out_waits_for_what_was() {
    for ack_mode in MODES {
        let mut log = Log::new(mode(ack_mode));
        assert_eq!(log.wait(1, EntryId::MAX), ["ack 1"], "nothing waits");
        log.append(1, "a");
        assert_eq!(log.wait(1, EntryId::MAX), [""; 0]);
        assert_eq!(log.wait(2, EntryId::MAX), ["ack 4"], "nothing of this region waits");
        assert_eq!(log.wait(1, EntryId::ZERO), ["ack 5"]);
        assert_eq!(waits(log.created(6)), ["ack 3"]);
        assert_eq!(log.wait(1, EntryId::MAX), ["ack 6"]);
    }
}

#[test]
fn ids_of_the_open_batch_wait_with_it_and_do_not_seal_it() {
    for ack_mode in MODES {
        let mut log = Log::new(Options { linger: Duration::from_millis(10), ..mode(ack_mode) });
        log.append(1, "a");
        assert_eq!(log.wait(1, id(6, 1)), [""; 0]);
        assert_eq!(log.tick_at(10), ["put 6"]);
        assert_eq!(waits(log.created(6)), ["ack 2"]);
    }
}

#[test]
fn a_reserved_region_is_refused() {
    let mut log = Log::new(at_once());
    assert_eq!(log.wait(u64::MAX, id(1, 1)), ["fail [1]: InvalidRegion, NotWritten"]);
}

#[test]
fn an_id_whose_batch_failed_is_never_certified() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.wait(1, id(6, 1));
    log.wait(1, id(7, 1));
    assert_eq!(
        log.fails(6, Refused),
        ["fail [1, 3, 2, 4]: Store creating Refused, Unknown"],
        "the waiters fail with their batches"
    );
    log.created(7);
    assert_eq!(log.wait(1, id(6, 1)), ["fail [5]: Store creating Refused, NotWritten"]);
    assert_eq!(log.append(1, "c"), ["put 8"]);
    log.created(8);
    // 7 was created by this writer: it is not looked at.
    log.lists(&[7, 8]);
    assert_eq!(short(log.writer.durable(RegionId(1))), "8/1");
    // Though larger ids are durable.
    assert_eq!(log.wait(1, id(6, 1)), ["fail [7]: Store creating Refused, NotWritten"]);
    assert_eq!(log.wait(1, id(7, 1)), ["fail [8]: Store creating Refused, NotWritten"]);
    assert_eq!(log.wait(1, id(8, 1)), ["ack 9"]);
}

#[test]
fn failed_ranges_are_kept_until_the_boundary_passes_them() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    log.lists(&[7]);
    assert_eq!(log.wait(1, id(6, 1)), ["fail [3]: Store creating Refused, NotWritten"]);
    log.obsolete(1, id(7, 1));
    log.append(1, "c");
    log.created(8);
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.wait(1, id(6, 1)), ["ack 6"], "nobody needs to know any more");
}

#[test]
fn a_batch_rolls_back_while_the_next_is_under_way_and_created() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "n");
    log.append(1, "n + 1");
    assert_eq!(log.created(7), [""; 0]);
    log.fails(6, TimedOut);
    assert_eq!(log.fails(6, NotFound), ["fail [1, 2]: Store creating TimedOut, Unknown"]);
    assert_eq!(log.wait(1, id(6, 1)), ["fail [3]: Store creating TimedOut, NotWritten"]);
    assert_eq!(log.wait(1, id(7, 1)), ["fail [4]: Store creating TimedOut, NotWritten"]);
}

#[test]
fn waiters_fail_at_poison_and_later_waits_fail_unless_the_id_is_durable() {
    for ack_mode in MODES {
        let mut log = Log::new(mode(ack_mode));
        log.append(1, "a");
        log.created(6);
        log.append(1, "b");
        log.wait(1, id(7, 1));
        log.fails(7, Exists);
        let said = log.finds_twice(7, &[]);
        assert!(said.last().unwrap().ends_with("3]: Corrupted object, Unknown"), "{said:?}");
        assert_eq!(log.wait(1, id(6, 1)), ["ack 4"]);
        let said = log.wait(1, id(7, 1));
        assert_eq!(said, ["fail [5]: Poisoned Corrupted object, NotWritten"]);
    }
}

#[test]
fn waits_that_came_before_stop_are_answered_with_their_batch_and_new_ones_fail() {
    for ack_mode in MODES {
        let mut log = Log::new(mode(ack_mode));
        log.append(1, "a");
        log.created(6);
        log.append(1, "b");
        log.wait(1, id(7, 1));
        log.stop();
        assert_eq!(log.wait(1, id(7, 1)), ["fail [5]: Stopped, NotWritten"]);
        assert_eq!(log.wait(1, id(6, 1)), ["ack 6"], "it is durable");
        assert_eq!(waits(log.created(7)), ["ack 3", "ack 4"]);
        assert_eq!(log.wait(1, id(7, 1)), ["ack 7"]);
        assert_eq!(log.wait(1, id(8, 1)), ["fail [8]: Stopped, NotWritten"]);
    }
}

#[test]
fn a_transient_outcome_keeps_them_waiting() {
    for ack_mode in MODES {
        let mut log = Log::new(mode(ack_mode));
        log.append(1, "a");
        log.wait(1, id(6, 1));
        log.fails(6, TimedOut);
        assert_eq!(log.fails(6, NotFound), [""; 0]);
        log.tick_at(100);
        assert_eq!(waits(log.created(6)), ["ack 2"]);
    }
}
