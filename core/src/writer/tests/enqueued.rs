//! `enqueued`: acknowledgement on admission, and what comes of each create outcome then.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

fn planned(log: &Log, region: u64) -> Vec<u64> {
    let plan = log.writer.plan_read(RegionId(region), EntryId::ZERO, None, 100).unwrap();
    plan.segments.iter().map(|segment| segment.segment.object.sequence.0).collect()
}

#[test]
fn an_append_is_acknowledged_on_admission_with_its_ids() {
    let mut log = Log::new(enqueued());
    assert_eq!(log.append(1, "a"), ["ack 1: 6/1", "put 6"]);
    assert_eq!(log.append_many(&[(1, "b"), (2, "c")]), ["ack 2: 7/1 7/1", "put 7"]);
    let stats = log.stats();
    assert_eq!((stats.append_ack.count(), stats.append_ack.sum()), (2, 0));
    assert_eq!(stats.unpersisted_bytes, (150 + 13) + (210 + 26), "two objects on their way");
    assert_eq!(log.writer.latest(RegionId(1)), id(7, 1));
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
    assert_eq!(planned(&log, 1), [0; 0], "reads see what is durable");

    assert_eq!(log.created(6), [""; 0], "nobody is told again");
    assert_eq!(log.writer.durable(RegionId(1)), id(6, 1));
    assert_eq!(log.created(7), [""; 0]);
    let stats = log.stats();
    assert_eq!((stats.append_ack.count(), stats.created_objects_total), (2, 2));
    assert_eq!(stats.unpersisted_bytes, 0);
    assert_eq!(planned(&log, 1), [6, 7]);
}

#[test]
fn indexing_is_in_sequence_order() {
    let mut log = Log::new(enqueued());
    for payload in ["a", "b", "c"] {
        log.append(1, payload);
    }
    log.created(8);
    log.created(7);
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
    log.created(6);
    assert_eq!(log.writer.durable(RegionId(1)), id(8, 1));
}

#[test]
fn a_transient_create_is_repeated_without_end_with_the_same_bytes_and_a_delay_that_doubles() {
    let hour = Duration::from_secs(3600);
    let options = Options { retry_for: Duration::ZERO, max_unpersisted_age: hour, ..enqueued() };
    let mut log = Log::new(options);
    log.append(1, "a");
    let first = log.payload(6);
    let mut at = 0;
    for attempt in 0..30 {
        let failure = [Transient, TimedOut, Exists][attempt % 3];
        assert_eq!(log.fails(6, failure), ["read back 6"]);
        assert_eq!(log.fails(6, [NotFound, TimedOut][attempt % 2]), [""; 0]);
        assert_eq!(log.stats().failing, 0);
        at += (100 << attempt.min(10)).min(5000);
        assert!(log.tick_at(at - 1).iter().all(|said| said.contains("slow")));
        assert!(log.tick_at(at).contains(&"put 6".into()), "attempt {attempt}");
        assert_eq!(log.payload(6), first);
    }
    // What comes meanwhile is taken, and becomes durable after it.
    assert_eq!(log.append(1, "b"), ["ack 2: 7/1", "put 7"]);
    log.created(7);
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
    log.created(6);
    assert_eq!(log.writer.durable(RegionId(1)), id(7, 1));
    let stats = log.stats();
    assert_eq!((stats.create_failures_total, stats.create_retries_total), (30, 30));
    assert_eq!((stats.create_conflicts_total, stats.rolled_back_batches_total), (0, 0));
}

#[test]
fn a_stale_object_poisons_and_so_does_a_foreign_one_and_a_later_epochs() {
    type Found = (Bytes, &'static str);
    let found: [Found; 3] = [
        (bare_object(6, 5), "Displaced"),
        (Bytes::from_static(b"short"), "Corrupted object"),
        (bare_object(6, 6), "Fenced by 6 ?"),
    ];
    for (object, cause) in found {
        let mut log = Log::new(enqueued());
        log.append(1, "a");
        log.wait(1, id(6, 1));
        log.fails(6, Exists);
        let said =
            if object.len() < 90 { log.finds_twice(6, &object) } else { log.finds(6, &object) };
        assert_eq!(said, [format!("fail [2]: {cause}, Unknown")]);
        assert_eq!(log.append(1, "b"), [format!("fail [3]: Poisoned {cause}, NotWritten")]);
        let stats = log.stats();
        assert_eq!((stats.poisoned_total, stats.create_conflicts_total), (1, 1));
        assert_eq!((stats.rolled_back_batches_total, stats.unpersisted_bytes), (0, 0));
        // What was acknowledged and is not durable is lost, and stop says so.
        assert_eq!(log.stop(), ["fail [4]: Lost 1 entries, NotWritten"]);
        assert_eq!(log.stop(), ["fail [5]: Lost 1 entries, NotWritten"]);
    }
}

#[test]
fn the_last_sequence_is_used_and_later_appends_fail_exhausted() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(enqueued(), ObjectSeq(last));
    assert_eq!(log.append(1, "a"), [format!("ack 1: {last}/1"), format!("put {last}")]);
    assert_eq!(log.append(1, "b"), ["fail [2]: SequenceExhausted, NotWritten"]);
    log.fails(last, TimedOut);
    log.fails(last, NotFound);
    assert_eq!(log.append(1, "c"), ["fail [3]: SequenceExhausted, NotWritten"]);
    log.tick_at(100);
    log.created(last);
    assert_eq!(log.writer.durable(RegionId(1)), id(last, 1));
    assert_eq!(log.append(1, "d"), ["fail [4]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.obsolete(1, id(last, 1)), ["ack 5"], "needs no floor");
    assert_eq!(log.stop(), ["ack 6"]);
    assert_eq!(log.stats().rejected_appends_total, 3);
}

/// In the queue they were not admitted, so they count as rejected and not as having waited.
#[test]
fn a_queued_append_for_which_no_sequence_is_left_fails_in_its_turn() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let options = Options { max_unpersisted_bytes: 1, ..enqueued() };
    let mut log = Log::starting_at(options, ObjectSeq(last));
    log.append(1, "a");
    assert_eq!(log.append(1, "b"), [""; 0]);
    assert_eq!(
        log.created(last),
        ["fail [2]: SequenceExhausted, NotWritten"],
        "nothing is pending, and nothing is left"
    );
    let stats = log.stats();
    assert_eq!((stats.stalled_appends_total, stats.rejected_appends_total), (1, 1));
    assert_eq!(stats.stalled_append.count(), 0);
}

#[test]
fn the_watermark_is_clamped_to_what_is_durable() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.created(6);
    log.append(1, "b");
    assert_eq!(log.obsolete(1, id(7, 1)), ["ack 3"], "what was handed out may become obsolete");
    assert_eq!(planned(&log, 1), [0; 0], "6 is hidden");
    log.created(7);
    assert_eq!(planned(&log, 1), [7], "7 was not durable: a crash could have lost it");
    assert_eq!(log.obsolete(1, id(7, 1)), ["ack 4"]);
    assert_eq!(planned(&log, 1), [0; 0]);
}

#[test]
fn the_floor_is_not_clamped_and_the_batch_after_it_is_guarded() {
    let mut log = Log::new(enqueued());
    assert_eq!(log.obsolete(1, id(50, 3)), ["ack 1"]);
    assert_eq!(log.append(1, "a"), ["ack 2: 51/1", "put 51"]);
    assert_eq!(log.append(1, "b"), ["ack 3: 52/1"], "it waits behind the guarded one");
    assert_eq!(log.created(51), ["list after 5.wal"]);
    // A guard that cannot list is transient, without end.
    assert_eq!(log.listing_fails(Refused), [""; 0]);
    assert_eq!(log.stats().failing, 0);
    assert_eq!(log.tick_at(100), ["put 51"]);
    assert_eq!(log.created(51), ["list after 5.wal"]);
    assert_eq!(log.lists(&[51]), ["put 52"]);
    log.created(52);
    assert_eq!(planned(&log, 1), [51, 52], "above 50/3: visible");
}

#[test]
fn a_floor_waits_for_the_pipeline_and_the_watermark_is_clamped_when_it_is_raised() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    assert_eq!(log.obsolete(2, id(50, 3)), [""; 0]);
    assert_eq!(log.append(2, "queued"), [""; 0]);
    assert_eq!(log.obsolete(3, id(60, 1)), [""; 0], "the larger floor wins");
    assert_eq!(log.created(6), ["ack 2", "ack 4", "ack 3: 61/1", "put 61"]);
    log.created(61);
    log.lists(&[61]);
    assert_eq!(planned(&log, 2), [61]);
}

#[test]
fn an_id_in_the_open_batch_needs_no_floor_since_no_batch_is_rolled_back() {
    let mut log = Log::new(Options { linger: Duration::from_millis(1), ..enqueued() });
    assert_eq!(log.append(1, "a"), ["ack 1: 6/1"]);
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 2"]);
    assert_eq!(log.append(1, "b"), ["ack 3: 6/2"], "above it");
    // Of another region the open batch could still give lower ones.
    assert_eq!(log.obsolete(2, id(6, 1)), ["put 6"]);
    assert_eq!(log.created(6), ["ack 4"]);
    log.append(2, "c");
    assert_eq!(log.writer.latest(RegionId(2)), id(7, 1));
}

#[test]
fn an_id_above_entries_that_are_on_their_way_is_unsettled() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    for above in [id(6, 2), id(9, 1), id(1 << 20, 1)] {
        let waiter = log.calls + 1;
        let said = log.obsolete(1, above);
        assert_eq!(said, [format!("fail [{waiter}]: Unsettled, NotWritten")]);
    }
    assert_eq!(log.append(1, "b"), ["ack 5: 7/1", "put 7"], "no floor was raised");
    log.created(6);
    log.created(7);
    assert_eq!(planned(&log, 1), [6, 7], "nothing changed");
    let said = log.obsolete(1, EntryId::MAX);
    assert_eq!(said, ["fail [6]: IdTooFar, NotWritten"]);
}

#[test]
fn a_lost_response_is_recognised() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    let stored = log.payload(6).to_bytes();
    log.fails(6, Exists);
    assert_eq!(log.finds(6, &stored), [""; 0]);
    assert_eq!(log.writer.durable(RegionId(1)), id(6, 1));
    assert_eq!(log.stats().create_failures_total, 0);
}

#[test]
fn an_abandoned_log_is_no_good_stop() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.writer.abandon();
    log.created(6);
    assert_eq!(log.stop(), ["fail [2]: Lost 1 entries, NotWritten"]);
}
