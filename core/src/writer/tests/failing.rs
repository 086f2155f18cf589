//! A log that the store refuses to write, in `enqueued`: how it becomes failing, what it refuses,
//! and how it becomes healthy.

use super::*;
use StoreErrorKind::{Exists, NotFound, NotSupported, Refused, TimedOut, Transient};

/// 6 and 7 are under way, 8 is sealed behind them; then the create of 6 is refused. Region 9 has
/// something durable, at 4.
fn failing() -> Log {
    let mut recovered = recovered(Options { max_in_flight: 2, ..enqueued() }, START.next());
    let mut catalog = Catalog::new(ObjectSeq::ZERO);
    let held = SegmentMeta {
        region: RegionId(9),
        min_id: id(4, 1),
        max_id: id(4, 3),
        count: 3,
        offset: 54,
        length: 100,
        crc: 0,
    };
    catalog.index(Link { sequence: ObjectSeq(4), epoch: Epoch(5) }, 200, &[held]).unwrap();
    catalog.index(recovered.start, 200, &[]).unwrap();
    recovered.catalog = catalog;
    let mut log = Log::from(recovered);
    for (region, payload) in [(1, "a"), (2, "b"), (1, "c")] {
        log.append(region, payload);
    }
    log.wait(1, id(6, 1));
    log.wait(2, id(7, 1));
    assert_eq!(log.flush(), [""; 0]);
    assert_eq!(
        log.fails(6, Refused),
        ["failing: Store creating Refused", "fail [4, 5, 6]: Failing, NotWritten"]
    );
    log
}

#[test]
fn a_refused_create_keeps_the_backlog_and_is_repeated_after_the_delay() {
    let mut log = failing();
    let stats = log.stats();
    assert_eq!((stats.failing, stats.create_failures_total), (1, 1));
    assert_eq!(stats.unpersisted_bytes, 3 * 163, "nothing is dropped");
    assert_eq!(stats.in_flight_creates, 2, "the one that waits keeps its slot");
    assert_eq!(log.tick_at(99), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 6"]);
    // Again, after a delay that doubles; it is failing already.
    assert_eq!(log.fails(6, NotFound), [""; 0]);
    assert_eq!(log.tick_at(299), [""; 0]);
    assert_eq!(log.tick_at(300), ["put 6"]);
    assert_eq!(log.stats().failing, 1);
    assert_eq!(log.created(6), ["healthy", "put 8"]);
    log.created(7);
    log.created(8);
    let stats = log.stats();
    assert_eq!((stats.failing, stats.unpersisted_bytes, stats.created_objects_total), (0, 0, 3));
}

#[test]
fn every_way_in_which_a_create_is_refused_makes_it_failing() {
    for refusal in [Refused, NotFound, NotSupported] {
        let mut log = Log::new(enqueued());
        log.append(1, "a");
        let said = log.fails(6, refusal);
        assert_eq!(said, [format!("failing: Store creating {refusal:?}")]);
    }
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.fails(6, TimedOut);
    assert_eq!(log.fails(6, Refused), ["failing: Store reading back Refused"]);
}

#[test]
fn appends_flushes_and_waits_are_refused_retryably() {
    let mut log = failing();
    assert_eq!(log.append(1, "x"), ["fail [7]: Failing, NotWritten"]);
    assert_eq!(log.append_many(&[]), ["fail [8]: Failing, NotWritten"]);
    assert_eq!(log.flush(), ["fail [9]: Failing, NotWritten"]);
    assert_eq!(log.wait(1, id(6, 1)), ["fail [10]: Failing, NotWritten"]);
    assert_eq!(log.wait(9, id(4, 3)), ["ack 11"], "it is durable");
    assert_eq!(log.stats().rejected_appends_total, 2);
    let waiter = log.waiter();
    log.writer.handle(log.now, Event::Flush { waiter });
    let Some(Effect::FailWaiters { error, .. }) = log.writer.poll_effect() else {
        panic!("a flush while failing is refused")
    };
    assert!(error.is_retryable(), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn obsolete_works_unless_it_needs_a_floor() {
    let mut log = failing();
    assert_eq!(log.obsolete(9, id(4, 3)), ["ack 7"]);
    assert_eq!(log.stats().reclaim_boundary, 6);
    assert_eq!(log.obsolete(9, id(50, 1)), ["fail [8]: Failing, NotWritten"]);
    log.tick_at(100);
    log.created(6);
    log.created(7);
    log.created(8);
    log.append(1, "d");
    assert_eq!(log.writer.latest(RegionId(1)), id(9, 1), "no floor was raised");
}

#[test]
fn the_first_create_that_succeeds_makes_it_healthy_whichever_batchs_it_is() {
    let mut log = failing();
    assert_eq!(log.created(7), ["healthy", "put 8"]);
    assert_eq!(log.stats().failing, 0);
    assert_eq!(log.writer.durable(RegionId(2)), EntryId::ZERO, "6 comes first");
    assert_eq!(log.append(1, "d"), ["ack 7: 9/1"]);
    assert_eq!(log.wait(2, id(7, 1)), [""; 0]);
    // Refused again: failing again.
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(
        log.fails(6, Refused),
        ["failing: Store creating Refused", "fail [8]: Failing, NotWritten"]
    );
}

#[test]
fn a_lost_response_that_is_recognised_is_a_success() {
    let mut log = failing();
    let stored = log.payload(7).to_bytes();
    log.fails(7, TimedOut);
    assert_eq!(log.finds(7, &stored), ["healthy", "put 8"]);
}

#[test]
fn a_transient_outcome_leaves_it_failing() {
    let mut log = failing();
    log.fails(7, Transient);
    assert_eq!(log.fails(7, NotFound), [""; 0]);
    assert_eq!(log.stats().failing, 1);
    assert_eq!(log.append(1, "x"), ["fail [7]: Failing, NotWritten"]);
    assert_eq!(log.tick_at(100), ["put 6", "put 7"]);
    assert_eq!(log.created(7), ["healthy", "put 8"]);
}

#[test]
fn a_stale_a_later_and_a_foreign_object_poison() {
    let found: [(Bytes, &str); 3] = [
        (bare_object(7, 5), "Displaced"),
        (bare_object(7, 6), "Fenced by 6 ?"),
        (Bytes::new(), "Corrupted object"),
    ];
    for (object, cause) in found {
        let mut log = failing();
        log.fails(7, Exists);
        let said =
            if object.is_empty() { log.finds_twice(7, &object) } else { log.finds(7, &object) };
        assert_eq!(said, [""; 0], "whoever waited was told before");
        assert_eq!(log.append(1, "x"), [format!("fail [7]: Poisoned {cause}, NotWritten")]);
        assert_eq!(log.writer.next_tick(), None);
        assert_eq!(log.stats().failing, 0, "it is worse than that");
        let mut said = log.stop();
        if object.is_empty() {
            // 6 was put again meanwhile.
            said.extend(log.created(6));
        }
        assert_eq!(said, ["fail [8]: Lost 3 entries, NotWritten"]);
    }
}

#[test]
fn timed_seals_go_on_while_a_slot_is_free() {
    let mut log = Log::new(Options { linger: Duration::from_millis(50), ..enqueued() });
    log.append(1, "a");
    log.flush();
    log.append(1, "b");
    assert_eq!(log.fails(6, Refused)[0], "failing: Store creating Refused");
    assert_eq!(log.tick_at(50), ["put 7"]);
    assert_eq!(log.created(7), ["healthy"]);
}

#[test]
fn stalled_appends_and_waiting_floors_fail_when_it_becomes_failing() {
    let mut log = Log::new(Options { max_unpersisted_bytes: 1, ..enqueued() });
    log.append(1, "a");
    log.append(1, "b");
    log.append(1, "c");
    log.obsolete(2, id(50, 1));
    assert_eq!(
        log.fails(6, Refused),
        [
            "failing: Store creating Refused",
            "fail [2, 3]: Failing, NotWritten",
            "fail [4]: Failing, NotWritten",
        ]
    );
    assert_eq!(log.stats().rejected_appends_total, 2);
    assert!(log.writer.accepts_appends(), "they are answered at once");
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.created(6), ["healthy"]);
    assert_eq!(log.append(1, "d"), ["ack 5: 7/1", "put 7"]);
}

#[test]
fn sixty_four_appends_behind_a_full_pipeline_are_answered_once_and_in_order() {
    let full = |ack_mode| {
        let options = Options { ack_mode, max_in_flight: 1, max_batch_bytes: 1, ..at_once() };
        let mut log = Log::new(options);
        for _ in 0..3 + 64 {
            log.append(1, "x");
        }
        log
    };
    let queued: Vec<u32> = (4..4 + 64).collect();
    let failed = |cause: &str| format!("fail {queued:?}: {cause}, NotWritten");

    let mut log = full(AckMode::Enqueued);
    let said = log.fails(6, Refused);
    assert_eq!(said, ["failing: Store creating Refused".into(), failed("Failing")]);
    assert_eq!(log.stats().rejected_appends_total, 64);

    for ack_mode in [AckMode::Durable, AckMode::Enqueued] {
        let mut log = full(ack_mode);
        log.fails(6, Exists);
        assert_eq!(log.finds_twice(6, &[]).last(), Some(&failed("Corrupted object")));
        assert_eq!(log.stats().rejected_appends_total, 64);

        let mut log = full(ack_mode);
        assert!(log.stop().contains(&failed("Stopped")), "{ack_mode:?}");
        assert_eq!(log.stats().rejected_appends_total, 64);
    }
}

#[test]
fn only_enqueued_fails() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    assert_eq!(log.fails(6, Refused), ["fail [1]: Store creating Refused, Unknown"]);
    assert_eq!(log.stats().failing, 0);
}

/// A log that has one create at a time, with two batches sealed and a third full.
pub(super) fn full() -> Log {
    let mut log = Log::new(Options { max_batch_bytes: 1, max_in_flight: 1, ..enqueued() });
    for payload in ["a", "b", "c"] {
        log.append(1, payload);
    }
    assert!(!log.writer.accepts_appends());
    log
}

/// Else a shell holds callers back for as long as the store refuses, instead of telling them
/// `Failing` (DESIGN.md section 5).
#[test]
fn a_failing_log_with_a_full_pipeline_takes_appends_to_refuse_them() {
    let mut log = full();
    log.fails(6, Refused);
    assert!(log.writer.accepts_appends(), "it refuses at once");
    assert_eq!(log.append(1, "d"), ["fail [4]: Failing, NotWritten"]);
}

/// In `enqueued` a stale object ends the log: an error that says "the log goes on, retry" is untrue.
#[test]
fn what_ends_the_log_is_not_told_as_something_that_passes() {
    let mut log = Log::new(Options { ack_mode: AckMode::Enqueued, ..at_once() });
    log.append(1, "a");
    log.flush();
    log.fails(6, Exists);
    let id = log.take(6).id();
    let stale = bare_object(6, 2);
    let found = ReadBack::of(&stale);
    let answer = StorageAnswer::ReadBackResult { id, result: Ok(found) };
    log.writer.handle(log.now, Event::Storage(answer));
    let error = core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error, .. } => Some(error),
        _ => None,
    });
    let error = error.expect("the flush failed");
    assert!(matches!(log.writer.state, State::Poisoned(_)));
    assert!(!error.is_retryable() && !error.to_string().contains("goes on"), "{error}");
}
