//! Release records at stop (DESIGN.md section 7): the last object, and what is lost.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut};

/// In `durable`: region 1 is durable at 6 and was released; its record's batch was rolled back.
fn carried() -> Log {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    log.fails(7, Refused);
    log
}

/// What stop answered, with its cause.
fn lost(log: &mut Log, event: Event<u32>) -> Option<(u64, u64, String)> {
    log.writer.handle(log.now, event);
    core::iter::from_fn(|| log.writer.poll_effect()).find_map(|effect| match effect {
        Effect::FailWaiters { error: Error::Lost { entries, releases, cause }, .. } => {
            Some((entries, releases, kind(&cause)))
        }
        _ => None,
    })
}

#[test]
fn stop_makes_one_more_object_of_what_is_carried() {
    let mut log = carried();
    assert_eq!(log.stop(), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    let object = Object::decode(&log.payload(8).to_bytes()).unwrap();
    assert_eq!(object.segments.len(), 1, "just the records");
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.created(8), ["list after 6.wal"]);
    assert_eq!(log.lists(&[8]), ["ack 3", "ack 4"]);
    assert_eq!(log.stats().release_records_total, 1);
    assert_eq!(log.stop(), ["ack 5"]);
}

#[test]
fn the_last_object_is_repeated_within_retry_for() {
    let mut log = carried();
    log.stop();
    for at in [100, 300] {
        log.fails(8, TimedOut);
        assert_eq!(log.fails(8, NotFound), [""; 0]);
        assert_eq!(log.tick_at(at), ["put 8"]);
    }
    log.created(8);
    assert_eq!(log.lists(&[8]), ["ack 3"]);

    let mut log = carried();
    log.stop();
    let mut said = Vec::new();
    for at in [100, 300, 700, 1500, 3100] {
        log.fails(8, TimedOut);
        said = log.fails(8, NotFound);
        if !said.is_empty() {
            break;
        }
        log.tick_at(at);
    }
    assert_eq!(said, ["fail [3]: Lost 0 entries, 1 releases, NotWritten"]);
    assert_eq!(log.now, Time::from_millis(1500), "the next attempt would be after two seconds");
}

#[test]
fn a_last_object_that_is_refused_is_a_loss_and_there_is_no_other() {
    let mut log = carried();
    log.stop();
    let refused = log.take(8).failed(StoreError::new(Refused));
    let cause = lost(&mut log, Event::Storage(refused));
    assert_eq!(cause, Some((0, 1, "Store creating Refused".into())));
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    assert_eq!(log.stop(), ["fail [4]: Lost 0 entries, 1 releases, NotWritten"]);
}

#[test]
fn a_last_object_that_meets_a_stale_one_is_a_loss() {
    let mut log = carried();
    log.stop();
    log.fails(8, Exists);
    assert_eq!(
        log.finds(8, &bare_object(8, 2)),
        ["fail [3]: Lost 0 entries, 1 releases, NotWritten"]
    );
}

#[test]
fn a_last_object_that_meets_a_later_epoch_is_a_loss_with_that_cause() {
    let mut log = carried();
    log.stop();
    log.fails(8, Exists);
    let theirs = start_object(8, "other");
    log.finds(8, &theirs);
    let id = log.take(8).id();
    let fetched = StorageAnswer::Fetched { id, result: Ok(theirs) };
    let cause = lost(&mut log, Event::Storage(fetched));
    assert_eq!(cause, Some((0, 1, "Fenced by 9 other".into())));
    assert_eq!(log.release(1), ["fail [4]: Poisoned Fenced by 9 other, NotWritten"]);
}

#[test]
fn records_of_batches_that_stop_drops_are_in_the_last_object() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append_many(&[(1, "a"), (2, "b"), (3, "c")]);
    log.created(6);
    log.append(4, "under way");
    log.append(4, "sealed");
    log.release(1);
    log.append(4, "open");
    log.release(2);
    log.release_all(3);
    assert_eq!(
        log.stop(),
        [
            "fail [3]: Stopped, NotWritten",
            "fail [4]: Stopped, Unknown",
            "fail [5]: Stopped, NotWritten",
            "fail [6, 7]: Stopped, Unknown",
        ],
        "the records live on"
    );
    let said = log.created(7);
    assert_eq!(said, ["ack 2: 7/1", "put 10"]);
    assert_eq!(log.records(10), ["1 through 6/1", "2 through 6/1", "3 in full"]);
    assert_eq!(log.header(10).predecessor.unwrap().sequence, ObjectSeq(7));
    log.created(10);
    assert_eq!(log.lists(&[10]), ["ack 8"]);
    assert_eq!(log.stats().release_records_total, 3);
    assert_eq!(log.visible(4), [7]);
}

/// The batches that stop drops leave a gap before the last object, where an opening may have put
/// its claim: a skip like any other (section 12, rule 4).
#[test]
fn behind_batches_that_stop_dropped_the_last_object_is_guarded() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append_durable(1);
    log.append(2, "under way");
    log.release(1);
    log.stop();
    assert_eq!(log.created(7), ["ack 2: 7/1", "put 9"]);
    assert_eq!(log.created(9), ["list after 7.wal"]);
    assert_eq!(log.lists(&[8, 9]), ["read back 8"]);
    let theirs = bare_object(8, 9);
    assert_eq!(log.finds(8, &theirs), [format!("fetch 8 0..{}", theirs.len())]);
    assert_eq!(
        log.fetched(8, theirs),
        ["fail [4]: Lost 0 entries, 1 releases, NotWritten"],
        "that instance does not know of the record"
    );
}

#[test]
fn a_release_that_is_under_way_is_acknowledged_if_it_becomes_durable() {
    for options in [at_once(), enqueued()] {
        let mut log = Log::new(options);
        log.append(1, "a");
        log.created(6);
        log.release(1);
        assert_eq!(log.stop(), [""; 0]);
        assert_eq!(log.release(1), ["fail [4]: Stopped, NotWritten"]);
        assert_eq!(log.created(7), ["ack 2", "ack 3"]);
    }
}

#[test]
fn one_that_is_rolled_back_while_stopping_goes_into_the_last_object() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    log.append(2, "b");
    log.stop();
    assert_eq!(log.fails(7, Refused), ["fail [2, 3]: Store creating Refused, Unknown"]);
    // 8 runs out first.
    assert_eq!(log.created(8), ["put 9"]);
    assert_eq!(log.records(9), ["1 through 6/1"]);
    log.created(9);
    assert_eq!(log.lists(&[8, 9]), ["ack 4"]);
}

#[test]
fn a_queued_release_fails_and_leaves_no_record() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["under way", "sealed", "open", "queued"] {
        log.append(1, payload);
    }
    log.release(1);
    let said = log.stop();
    assert!(said.contains(&"fail [5]: Stopped, NotWritten".into()), "{said:?}");
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 6"]);
}

#[test]
fn without_a_sequence_left_the_records_are_lost() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last - 1));
    log.append_durable(1);
    log.release(1);
    log.fails(last, Refused);
    let waiter = log.waiter();
    let cause = lost(&mut log, Event::Stop { waiter });
    assert_eq!(cause, Some((0, 1, "SequenceExhausted".into())));
}

#[test]
fn poison_while_stopping_loses_them() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release(1);
    log.stop();
    log.fails(7, Exists);
    assert_eq!(
        log.finds_twice(7, &[0; 100]),
        ["fail [2]: Corrupted header, Unknown", "fail [3]: Lost 0 entries, 1 releases, NotWritten",]
    );
}

#[test]
fn the_last_object_waits_for_no_delete_and_stop_for_both() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.append_durable(2);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.append_durable(2), ["ack 4: 8/1", "delete 6"]);
    log.release(2);
    log.fails(9, Refused);
    assert_eq!(log.stop(), ["put 10"]);
    log.created(10);
    assert_eq!(log.lists(&[10]), [""; 0]);
    assert_eq!(log.deleted(6), ["ack 6"]);
}

/// In `enqueued`: region 1 is durable at 6, 7 is refused, and a release of region 1 was refused.
fn failing() -> Log {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.created(6);
    log.append(2, "b");
    log.fails(7, Refused);
    log.release(1);
    log
}

#[test]
fn a_failing_log_uploads_its_carried_records_too() {
    let mut log = failing();
    assert_eq!(log.stop(), ["put 8"]);
    assert_eq!(log.records(8), ["1 through 6/1"]);
    assert_eq!(log.created(8), ["healthy"]);
    assert_eq!(log.tick_at(100), ["put 7"]);
    assert_eq!(log.created(7), ["ack 4"]);
    assert_eq!(log.stats().release_records_total, 1);
}

#[test]
fn at_the_deadline_they_are_lost_with_the_backlog() {
    let mut log = failing();
    log.stop();
    let mut at = 0;
    let mut said = Vec::new();
    while said.is_empty() && at < 20_000 {
        for sequence in [7, 8] {
            if log.requests.iter().any(|effect| sequence_of(effect) == sequence) {
                said.extend(log.fails(sequence, Refused));
            }
        }
        at += 100;
        said.extend(log.tick_at(at).into_iter().filter(|line| line.starts_with("fail")));
    }
    assert_eq!(said, ["fail [4]: Lost 1 entries, 1 releases, NotWritten"]);
    assert_eq!(log.now, Time::from_millis(10_000));
}

#[test]
fn a_failing_log_without_sequences_loses_them() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(enqueued(), ObjectSeq(last - 1));
    log.append(1, "a");
    log.created(last - 1);
    log.append(2, "b");
    log.fails(last, Refused);
    log.release(1);
    assert_eq!(log.stop(), [""; 0]);
    log.tick_at(100);
    assert_eq!(log.created(last), ["healthy", "fail [4]: Lost 0 entries, 1 releases, NotWritten"]);
}
