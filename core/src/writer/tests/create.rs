//! The rows of the create table, the pipeline, roll back and poison.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

#[test]
fn an_append_is_acknowledged_when_its_object_is_created() {
    let mut log = Log::new(at_once());
    assert_eq!(log.append(1, "a"), ["put 6"]);
    let header = log.header(6);
    assert_eq!(header.predecessor, Some(Link { sequence: START, epoch: EPOCH }));
    assert_eq!(header.boundary, ObjectSeq(6), "nothing before it holds anything");
    assert_eq!(log.created(6), ["ack 1: 6/1"]);
    assert_eq!(log.writer.durable(RegionId(1)), id(6, 1));
    let stats = log.stats();
    assert_eq!((stats.appends_total, stats.created_objects_total), (1, 1));
    assert_eq!((stats.create_failures_total, stats.unpersisted_bytes), (0, 0));
    assert_eq!((stats.append_ack.count(), stats.indexed_objects), (1, 2));
}

#[test]
fn a_lost_response_is_recognised_by_our_header_and_size() {
    // The client retried by itself and reports that the key exists; or the answer timed out.
    for failure in [Exists, TimedOut, Transient] {
        let mut log = Log::new(at_once());
        log.append(1, "a");
        let stored = log.payload(6).to_bytes();
        assert_eq!(log.fails(6, failure), ["read back 6"]);
        assert_eq!(log.finds(6, &stored), ["ack 1: 6/1"], "after {failure:?}");
        let stats = log.stats();
        assert_eq!((stats.create_conflicts_total, stats.create_retries_total), (0, 0));
        assert_eq!(stats.created_objects_total, 1);
    }
}

#[test]
fn a_key_that_exists_and_is_absent_is_transient() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    let first = log.payload(6);
    assert_eq!(log.fails(6, Exists), ["read back 6"]);
    assert_eq!(log.fails(6, NotFound), [""; 0]);
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(100)));
    assert_eq!(log.tick_at(99), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.payload(6), first, "the same bytes again");
    assert_eq!(log.created(6), ["ack 1: 6/1"]);
    assert_eq!(log.stats().create_retries_total, 1);
}

#[test]
fn a_read_back_that_fails_in_a_way_that_may_pass_is_transient() {
    for failure in [TimedOut, Transient] {
        let mut log = Log::new(at_once());
        log.append(1, "a");
        log.fails(6, TimedOut);
        assert_eq!(log.fails(6, failure), [""; 0]);
        assert_eq!(log.tick_at(100), ["put 6"]);
        assert_eq!(log.created(6), ["ack 1: 6/1"]);
    }
}

#[test]
fn transient_failures_are_repeated_with_doubling_delays_within_retry_for() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    // Attempts at 0, 100, 300, 700 and 1500 ms; the next would be at 3100, later than 2 s.
    for (at, next) in [(0, 100), (100, 300), (300, 700), (700, 1500)] {
        log.now = Time::from_millis(at);
        assert_eq!(log.fails(6, Transient), ["read back 6"]);
        assert_eq!(log.fails(6, NotFound), [""; 0]);
        assert_eq!(log.writer.next_tick(), Some(Time::from_millis(next)));
        assert_eq!(log.tick_at(next), ["put 6"]);
    }
    log.fails(6, Transient);
    assert_eq!(log.fails(6, NotFound), ["fail [1]: Store creating Transient, Unknown"]);
    assert_eq!(log.writer.next_tick(), None);
    // The log stays healthy: the next batch takes the next sequence and links over the gap.
    assert_eq!(log.append(1, "b"), ["put 7"]);
    assert_eq!(log.header(7).predecessor, Some(Link { sequence: START, epoch: EPOCH }));
    assert_eq!(log.created(7), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"]);
}

#[test]
fn with_no_time_to_retry_a_single_transient_failure_rolls_back() {
    let mut log = Log::new(Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(1, "a");
    log.fails(6, TimedOut);
    assert_eq!(log.fails(6, NotFound), ["fail [1]: Store creating TimedOut, Unknown"]);
}

#[test]
fn a_refused_put_rolls_back_without_a_read_back() {
    // Not found on a create: the bucket is missing.
    for refusal in [Refused, NotFound] {
        let mut log = Log::new(at_once());
        log.append(1, "a");
        let said = log.fails(6, refusal);
        assert_eq!(said, [format!("fail [1]: Store creating {refusal:?}, Unknown")]);
        assert_eq!(log.append(1, "b"), ["put 7"]);
    }
}

#[test]
fn a_refused_read_back_rolls_back() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, TimedOut);
    assert_eq!(log.fails(6, Refused), ["fail [1]: Store reading back Refused, Unknown"]);
}

#[test]
fn a_stale_object_at_the_key_rolls_back() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Exists);
    assert_eq!(log.finds(6, &bare_object(6, 5)), ["fail [1]: Conflict, Unknown"]);
    assert_eq!(log.stats().create_conflicts_total, 1);
    assert_eq!(log.append(1, "b"), ["put 7"]);
    assert_eq!(log.header(7).predecessor, Some(Link { sequence: START, epoch: EPOCH }));
    assert_eq!(log.created(7), ["list after 5.wal"]);
    // The stale one stands there still, and is harmless.
    assert_eq!(log.lists(&[6, 7]), ["read back 6"]);
    assert_eq!(log.finds(6, &bare_object(6, 5)), ["ack 2: 7/1"]);
}

#[test]
fn a_later_epochs_start_object_at_the_key_poisons_with_its_writers_name() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    let theirs = start_object(6, "other");
    log.fails(6, Exists);
    assert_eq!(log.finds(6, &theirs), [format!("fetch 6 0..{}", theirs.len())]);
    // Calls that come meanwhile are answered once the name is known.
    assert_eq!(log.append(1, "b"), [""; 0]);
    assert!(!log.writer.accepts_appends());
    assert_eq!(
        log.fetched(6, theirs),
        [
            "fail [1]: Fenced by 7 other, Unknown",
            "fail [2]: Poisoned Fenced by 7 other, NotWritten",
        ]
    );
    let text = log.append(1, "c");
    assert_eq!(text, ["fail [3]: Poisoned Fenced by 7 other, NotWritten"]);
    assert_eq!(log.stats().poisoned_total, 1);
    assert_eq!(log.stats().create_conflicts_total, 1);
}

#[test]
fn the_name_is_read_from_the_later_epochs_start_object_elsewhere() {
    let mut log = Log::new(at_once());
    for payload in ["a", "b", "c"] {
        log.append(1, payload);
    }
    // The first in order is created after the second met the other; it must not be acknowledged.
    log.fails(7, Exists);
    assert_eq!(log.finds(7, &bare_object(7, 12)), ["read back 11"]);
    assert_eq!(log.created(6), [""; 0]);
    let theirs = start_object(11, "elsewhere");
    assert_eq!(log.finds(11, &theirs), [format!("fetch 11 0..{}", theirs.len())]);
    assert_eq!(log.fetched(11, theirs), ["fail [1, 2, 3]: Fenced by 12 elsewhere, Unknown"]);
    assert_eq!(log.created(8), [""; 0], "what was in flight runs out and changes nothing");
}

#[test]
fn a_name_that_cannot_be_read_does_not_hold_up_the_end() {
    let fenced = |fail: &dyn Fn(&mut Log) -> Vec<String>| {
        let mut log = Log::new(at_once());
        log.append(1, "a");
        log.fails(6, Exists);
        log.finds(6, &bare_object(6, 12));
        fail(&mut log)
    };
    let nameless = ["fail [1]: Fenced by 12 ?, Unknown"];
    assert_eq!(fenced(&|log| log.fails(11, NotFound)), nameless);
    assert_eq!(fenced(&|log| log.finds(11, &[0; 20])), ["fetch 11 0..20"]);
    assert_eq!(fenced(&|log| log.finds(11, &[])), nameless);
    let fetch = |log: &mut Log, bytes: Bytes| {
        log.finds(11, &bytes);
        log.fetched(11, bytes)
    };
    assert_eq!(fenced(&|log| fetch(log, bare_object(11, 12))), nameless, "no writer record");
    assert_eq!(fenced(&|log| fetch(log, bare_object(11, 9))), nameless, "another epoch");
    assert_eq!(fenced(&|log| fetch(log, Bytes::from_static(&[1; 200]))), nameless);
    let failed = |log: &mut Log| {
        log.finds(11, &start_object(11, "other"));
        log.fails(11, TimedOut)
    };
    assert_eq!(fenced(&failed), nameless);
}

#[test]
fn an_object_of_our_epoch_that_is_not_ours_fences() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Exists);
    assert_eq!(log.finds(6, &bare_object(6, EPOCH.0)), ["fail [1]: Fenced by 6 ?, Unknown"]);
}

/// Two writers of one epoch, each of which puts one entry of one length at one sequence: what they put
/// has one header and one size.
#[test]
fn two_writers_of_one_epoch_do_not_take_each_others_object_for_their_own() {
    let (mut ours, mut theirs) = (Log::new(at_once()), Log::new(at_once()));
    ours.append(1, "a");
    theirs.append(1, "b");
    let stored = theirs.payload(6);
    assert_eq!(theirs.created(6), ["ack 1: 6/1"]);
    assert_eq!((ours.header(6), ours.payload(6).len()), (theirs_header(&stored), stored.len()));
    ours.fails(6, Exists);
    let said = ours.finds(6, &stored.to_bytes());
    assert_eq!(said, ["fail [1]: Fenced by 6 ?, Unknown"]);
}

fn theirs_header(stored: &Payload) -> Header {
    Header::decode(&stored.to_bytes()).unwrap()
}

/// Nothing was there in between: the two do not follow each other.
#[test]
fn what_is_no_object_and_then_nothing_and_then_no_object_is_transient() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Exists);
    assert_eq!(log.finds(6, b"short"), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 6"]);
    log.fails(6, Exists);
    assert_eq!(log.fails(6, NotFound), [""; 0]);
    assert_eq!(log.tick_at(300), ["put 6"]);
    log.fails(6, Exists);
    assert_eq!(log.finds(6, b"short"), [""; 0]);
    assert_eq!(log.tick_at(700), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1"]);
}

#[test]
fn something_that_is_no_object_at_the_key_twice_in_a_row_poisons() {
    let cases: [(&[u8], &str); 5] = [
        (&[], "object"),
        (&[0; 5], "object"),
        (&[0; 89], "object"),
        (&[0; 200], "header"),
        (&bare_object(7, 3), "header"),
    ];
    for (stored, part) in cases {
        let mut log = Log::new(at_once());
        log.append(1, "a");
        log.fails(6, Exists);
        // Once, the download may have been damaged.
        let said = log.finds_twice(6, stored);
        assert_eq!(said, [format!("fail [1]: Corrupted {part}, Unknown")]);
        assert_eq!(
            log.append(1, "b"),
            [format!("fail [2]: Poisoned Corrupted {part}, NotWritten")]
        );
    }
}

#[test]
fn a_batch_that_the_catalog_refuses_poisons() {
    let mut recovered = recovered(at_once(), ObjectSeq(6));
    // An id of an older scheme, far above its object's sequence.
    let meta = SegmentMeta {
        region: RegionId(1),
        min_id: id(90, 1),
        max_id: id(90, 1),
        count: 1,
        offset: 54,
        length: 24,
        crc: 0,
    };
    let at = Link { sequence: ObjectSeq(5), epoch: EPOCH };
    recovered.catalog = Catalog::new(ObjectSeq::ZERO);
    recovered.catalog.index(at, 200, &[meta]).unwrap();
    let mut log = Log::from(recovered);
    log.append(2, "a");
    log.append(1, "b");
    log.append(2, "c");
    log.created(7);
    log.created(8);
    let said = log.created(6);
    assert_eq!(
        said,
        ["ack 1: 6/1", "fail [2, 3]: Corrupted segment of region 1, Unknown"],
        "what was indexed before it stays acknowledged"
    );
}

#[test]
fn the_last_sequence_is_acknowledged_and_then_nothing_can_be_appended() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last));
    assert_eq!(log.append(1, "a"), [format!("put {last}")]);
    assert_eq!(log.append(1, "b"), ["fail [2]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.created(last), [format!("ack 1: {last}/1")]);
    assert_eq!(log.append(1, "c"), ["fail [3]: SequenceExhausted, NotWritten"]);
    assert_eq!(log.obsolete(1, id(last, 1)), ["ack 4"], "it needs no floor");
    assert_eq!(log.flush(), ["ack 5"]);
    assert_eq!(log.stop(), ["ack 6"]);
}

#[test]
fn a_log_whose_last_create_is_rolled_back_is_still_exhausted() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last));
    log.append(1, "a");
    assert_eq!(log.fails(last, Refused), ["fail [1]: Store creating Refused, Unknown"]);
    assert_eq!(log.append(1, "b"), ["fail [2]: SequenceExhausted, NotWritten"]);
}

/// Calls `with` with every order of `0..n`.
fn permutations(n: u64, with: &mut dyn FnMut(&[u64])) {
    fn extend(order: &mut Vec<u64>, n: u64, with: &mut dyn FnMut(&[u64])) {
        if order.len() as u64 == n {
            return with(order);
        }
        for next in 0..n {
            if !order.contains(&next) {
                order.push(next);
                extend(order, n, with);
                order.pop();
            }
        }
    }
    extend(&mut Vec::new(), n, with);
}

#[test]
fn four_creates_complete_in_any_order_and_are_acknowledged_in_sequence_order() {
    permutations(4, &mut |order| {
        let mut log = Log::new(at_once());
        for (n, payload) in ["a", "b", "c", "d"].into_iter().enumerate() {
            assert_eq!(log.append(1, payload), [format!("put {}", 6 + n)]);
            // Each links to the one before, though none is created yet.
            let before = log.header(6 + n as u64).predecessor.unwrap().sequence;
            assert_eq!(before, ObjectSeq(5 + n as u64));
        }
        let mut done = [false; 4];
        let mut acked = 0;
        for next in order {
            let said = log.created(6 + next);
            done[*next as usize] = true;
            let through = done.iter().take_while(|done| **done).count();
            let expected: Vec<String> =
                (acked..through).map(|n| format!("ack {}: {}/1", n + 1, 6 + n)).collect();
            assert_eq!(said, expected, "{order:?}");
            acked = through;
        }
        assert_eq!(acked, 4);
    });
}

#[test]
fn in_any_order_with_one_stale_exactly_what_was_indexed_before_is_acknowledged() {
    permutations(4, &mut |order| {
        for stale in 0..4 {
            let mut log = Log::new(at_once());
            for payload in ["a", "b", "c", "d"] {
                log.append(1, payload);
            }
            let mut done = [false; 4];
            let (mut acked, mut failed) = (Vec::new(), Vec::new());
            for next in order {
                let said = if *next == stale {
                    // Behind a roll back the answer is that of a batch that failed: no read-back.
                    log.fails(6 + next, Exists);
                    log.finds(6 + next, &bare_object(6 + next, 1))
                } else {
                    log.created(6 + next)
                };
                let before = done.iter().take_while(|done| **done).count();
                done[*next as usize] = *next != stale;
                for line in said {
                    if line.starts_with("fail") {
                        let waiters: Vec<_> = (before + 1..=4).collect();
                        assert_eq!(line, format!("fail {waiters:?}: Conflict, Unknown"));
                        failed.extend(waiters);
                    } else {
                        acked.push(line);
                    }
                }
            }
            assert_eq!(acked.len() + failed.len(), 4, "{order:?}, stale {stale}: {acked:?}");
            assert!(acked.len() <= stale as usize, "nothing at or after it is acknowledged");
            // The sequences are consumed, and the next batch links to what was indexed last.
            assert_eq!(log.append(1, "e"), ["put 10"]);
            let last = log.header(10).predecessor.unwrap().sequence;
            assert_eq!(last, ObjectSeq(5 + acked.len() as u64));
            let last = 5 + acked.len();
            assert_eq!(log.created(10), [format!("list after {last}.wal")]);
            assert_eq!(log.lists(&[10]), ["ack 5: 10/1"]);
        }
    });
}

#[test]
fn a_roll_back_takes_later_creates_and_the_open_batch_with_it() {
    let mut log = Log::new(Options { max_in_flight: 2, ..at_once() });
    log.append(1, "a");
    log.append(1, "b");
    // Both slots are taken: this one waits in the open batch.
    assert_eq!(log.append(1, "c"), [""; 0]);
    // 7 is created, so a slot is free and the open batch leaves by time.
    assert_eq!(log.created(7), ["put 8"]);
    log.append(1, "d");
    assert_eq!(
        log.fails(6, Refused),
        [
            "fail [1, 2, 3]: Store creating Refused, Unknown",
            "fail [4]: Store creating Refused, NotWritten",
        ]
    );
    assert_eq!(log.stats().rolled_back_batches_total, 4);
}

#[test]
fn a_failed_batch_in_flight_keeps_its_slot_and_changes_nothing_when_it_completes() {
    let mut log = Log::new(Options { max_in_flight: 2, ..at_once() });
    log.append(1, "a");
    log.append(1, "b");
    assert_eq!(log.fails(6, Refused), ["fail [1, 2]: Store creating Refused, Unknown"]);
    assert_eq!(log.stats().in_flight_creates, 1, "7 runs out");
    assert_eq!(log.append(1, "c"), ["put 8"]);
    assert_eq!(log.header(8).predecessor.unwrap().sequence, START);
    assert_eq!(log.append(1, "d"), [""; 0], "no slot is free");
    // 7 lands: an orphan, since nothing links to it. Its slot is free again, so the next batch is
    // sealed; it does not start behind a guarded one.
    assert_eq!(log.created(7), [""; 0]);
    assert_eq!(log.stats().in_flight_creates, 1);
    assert_eq!(log.created(8), ["list after 5.wal"]);
    assert_eq!(log.lists(&[7, 8]), ["ack 3: 8/1", "put 9"], "7 is known to be its own");
    assert_eq!(log.header(9).predecessor.unwrap().sequence, ObjectSeq(8));
    assert_eq!(log.created(9), ["ack 4: 9/1"]);
    assert_eq!(log.writer.durable(RegionId(1)), id(9, 1));
}

#[test]
fn a_failed_batch_that_fails_late_is_not_read_back() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, Refused);
    assert_eq!(log.fails(7, Exists), [""; 0]);
    assert_eq!(log.stats().in_flight_creates, 0);
}

#[test]
fn a_create_that_waits_for_its_repeat_keeps_its_slot() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append(1, "a");
    log.fails(6, Transient);
    log.fails(6, NotFound);
    assert_eq!(log.append(1, "b"), [""; 0]);
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "put 7"]);
}

#[test]
fn later_batches_wait_for_one_that_is_repeated() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, Transient);
    log.fails(6, NotFound);
    assert_eq!(log.created(7), [""; 0], "created, and not acknowledged before 6");
    assert_eq!(log.tick_at(100), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2: 7/1"]);
}

#[test]
fn answers_that_nobody_waits_for_change_nothing() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    let put = log.take(6).id();
    for id in [RequestId(77), RequestId(u64::MAX)] {
        let answers = [
            StorageAnswer::CreateResult { id, result: Ok(()) },
            StorageAnswer::ReadBackResult { id, result: Err(StoreError::new(NotFound)) },
            StorageAnswer::Fetched { id, result: Ok(Bytes::new()) },
            StorageAnswer::Listed { id, result: Ok(Vec::new()) },
        ];
        for answer in answers {
            assert_eq!(log.handle(Event::Storage(answer)), [""; 0]);
        }
    }
    // An answer of the wrong kind with the right id is none either.
    let wrong = StorageAnswer::ReadBackResult { id: put, result: Err(StoreError::new(NotFound)) };
    assert_eq!(log.handle(Event::Storage(wrong)), [""; 0]);
    let right = || StorageAnswer::CreateResult { id: put, result: Ok(()) };
    assert_eq!(log.handle(Event::Storage(right())), ["ack 1: 6/1"]);
    assert_eq!(log.handle(Event::Storage(right())), [""; 0], "a second time");
}

#[test]
fn a_put_has_a_second_more_per_8_mib() {
    let options = Options { max_batch_bytes: 1 << 30, ..Options::default() };
    let mut log = Log::new(options);
    let payload = Bytes::from(alloc::vec![0; 17 << 20]);
    log.handle(Event::Append { append: Append::One(RegionId(1), payload), waiter: 1 });
    log.tick_at(1);
    assert_eq!(log.take(6).time_limit(), Duration::from_secs(32));
}
