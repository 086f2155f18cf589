//! Deleting what is below the durable boundary, and nothing else (DESIGN.md section 9, and section
//! 12, rule 5).

use super::*;
use crate::catalog::{Unindexed, UnindexedKind};
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

/// Objects 6 to 9 of region 1 are durable and obsolete; nothing carries that yet. Five calls.
fn obsolete() -> Log {
    obsolete_with(at_once())
}

fn obsolete_with(options: Options) -> Log {
    let mut log = Log::new(options);
    for _ in 6..=9 {
        log.append_durable(1);
    }
    assert_eq!(log.obsolete(1, id(9, 1)), ["ack 5"]);
    assert_eq!(log.stats().reclaim_boundary, 10);
    log
}

#[test]
fn nothing_is_deleted_before_a_batch_that_carries_the_boundary_is_indexed() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    // 7 is sealed before the boundary rises, 8 and 9 after.
    log.append(2, "b");
    assert_eq!(log.obsolete(1, id(6, 1)), ["ack 3"]);
    log.append(2, "c");
    log.append(2, "d");
    let carried = [7, 8, 9].map(|sequence| log.header(sequence).boundary.0);
    assert_eq!(carried, [6, 7, 7]);
    assert_eq!(log.created(9), [""; 0], "created is not indexed");
    assert_eq!(log.created(7), ["ack 2: 7/1"], "it carries the boundary of before");
    assert_eq!(log.created(8), ["ack 4: 8/1", "ack 5: 9/1", "delete 6"]);
    assert_eq!(log.stats().indexed_objects, 5, "until it is gone");
    assert_eq!(log.deleted(6), [""; 0]);
    assert_eq!(log.stats().indexed_objects, 4);
    assert_eq!(log.stats().deleted_objects_total, 1);
}

#[test]
fn a_boundary_that_was_rolled_back_deletes_nothing() {
    let mut log = obsolete();
    log.append(2, "b");
    assert_eq!(log.header(10).boundary, ObjectSeq(10));
    assert_eq!(log.fails(10, Refused), ["fail [6]: Store creating Refused, Unknown"]);
    log.append(2, "c");
    assert_eq!(log.created(11), ["list after 9.wal"]);
    assert_eq!(
        log.lists(&[11]),
        ["ack 7: 11/1", "delete 6", "delete 7", "delete 8", "delete 9"],
        "once the next one is indexed, and not its key: that is at the boundary"
    );
}

#[test]
fn deletes_go_in_order_and_never_more_at_once_than_allowed() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 2, ..at_once() });
    assert_eq!(log.append_durable(2), ["ack 6: 10/1", "delete 6", "delete 7"]);
    assert_eq!(log.deleted(7), ["delete 8"]);
    assert_eq!(log.deleted(8), ["delete 9"]);
    assert_eq!(log.deleted(6), [""; 0]);
    assert_eq!(log.deleted(9), [""; 0]);
    let stats = log.stats();
    assert_eq!((stats.deleted_objects_total, stats.failed_deletes_total), (4, 0));
    assert_eq!(stats.indexed_objects, 2, "the start object and 10");
}

#[test]
fn a_request_takes_as_many_keys_as_the_store_does() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 1, ..at_once() });
    log.writer.set_keys_per_delete(3);
    assert_eq!(log.append_durable(2), ["ack 6: 10/1", "delete 6 7 8"]);
    assert_eq!(log.deleted(6), ["delete 9"]);
    assert_eq!(log.take(9).time_limit(), Options::default().request_timeout);
}

#[test]
fn each_key_of_a_request_is_judged_by_its_own_answer() {
    let mut log = obsolete();
    log.writer.set_keys_per_delete(1000);
    assert_eq!(log.append_durable(2), ["ack 6: 10/1", "delete 6 7 8 9"]);
    // What is not there is deleted; a key without an answer failed, and so did nothing else.
    let answers = [(9, Err(NotFound)), (8, Err(Refused)), (3, Err(Refused)), (6, Ok(()))];
    assert_eq!(log.deletes(6, &answers), ["2 not deleted, 7 first: Store deleting Transient"]);
    let stats = log.stats();
    assert_eq!((stats.deleted_objects_total, stats.failed_deletes_total), (2, 2));
    assert_eq!(stats.indexed_objects, 4, "7 and 8 stay");
    assert_eq!(log.tick_at(59_999), [""; 0]);
    assert_eq!(log.tick_at(60_000), ["delete 7 8"]);
    assert_eq!(log.deleted(7), [""; 0]);
    assert_eq!(log.stats().deleted_objects_total, 4);
}

#[test]
fn a_failed_delete_is_tried_again_after_the_interval() {
    for failure in [Exists, TimedOut, Refused, Transient] {
        let mut log = Log::new(at_once());
        log.append_durable(1);
        log.obsolete(1, id(6, 1));
        log.append_durable(2);
        log.now = Time::from_millis(1_000);
        let said = [format!("1 not deleted, 6 first: Store deleting {failure:?}")];
        assert_eq!(log.fails(6, failure), said);
        assert_eq!(log.writer.next_tick(), Some(Time::from_millis(61_000)));
        assert_eq!(log.tick_at(60_999), [""; 0]);
        assert_eq!(log.tick_at(61_000), ["delete 6"]);
        assert_eq!(log.writer.next_tick(), None, "it is under way");
        assert_eq!(log.fails(6, failure), said);
        assert_eq!(log.writer.next_tick(), Some(Time::from_millis(121_000)));
        assert_eq!(log.tick_at(121_000), ["delete 6"]);
        assert_eq!(log.deleted(6), [""; 0]);
        assert_eq!(log.writer.next_tick(), None);
        let stats = log.stats();
        assert_eq!((stats.deleted_objects_total, stats.failed_deletes_total), (1, 2));
    }
}

#[test]
fn a_failed_delete_is_tried_again_when_the_durable_boundary_rises() {
    for reclaim_interval in [Duration::ZERO, Duration::from_secs(60)] {
        let mut log = obsolete_with(Options { reclaim_interval, ..at_once() });
        log.writer.set_keys_per_delete(4);
        log.append_durable(2);
        log.fails(6, Refused);
        // The boundary stays where it is: 10 is needed.
        assert_eq!(log.append_durable(2), ["ack 7: 11/1"]);
        log.obsolete(2, id(11, 1));
        log.append(3, "c");
        // It rises with what carries it, not before. What failed before comes last, so that it does not
        // hold up the rest.
        let said = log.created(12);
        assert_eq!(said, ["ack 9: 12/1", "delete 10 11 6 7", "delete 8 9"]);
    }
}

#[test]
fn without_an_interval_time_alone_brings_no_repeat() {
    let mut log = Log::new(Options { reclaim_interval: Duration::ZERO, ..at_once() });
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    log.append_durable(2);
    log.fails(6, TimedOut);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn an_answer_that_nobody_waits_for_deletes_nothing() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    log.append_durable(2);
    let key = log.writer.prefix().object_key(ObjectSeq(7));
    let results = alloc::vec![(key.clone(), Ok(()))];
    let answer = StorageAnswer::DeleteResult { id: RequestId(99), results: results.clone() };
    assert_eq!(log.handle(Event::Storage(answer)), [""; 0]);
    // Nor does one that names what was not asked for.
    let id = log.take(6).id();
    let answer = || StorageAnswer::DeleteResult { id, results: results.clone() };
    let failed = ["1 not deleted, 6 first: Store deleting Transient"];
    assert_eq!(log.handle(Event::Storage(answer())), failed);
    assert_eq!(log.handle(Event::Storage(answer())), [""; 0], "a second time");
    assert_eq!(log.stats().indexed_objects, 3);
}

/// What an opening found outside history, below the boundary of its start object.
fn found(kind: UnindexedKind, age_hours: Option<u64>) -> Vec<String> {
    let hours = |hours: u64| Duration::from_secs(3600 * hours);
    let mut recovered =
        recovered(Options { fence_retention: hours(168), ..at_once() }, START.next());
    recovered.durable_boundary = START;
    let link = Link { sequence: ObjectSeq(3), epoch: Epoch(4) };
    recovered.catalog.add_unindexed(Unindexed { link, kind, age: age_hours.map(hours) });
    let mut log = Log::from(recovered);
    let said = log.handle(Event::Tick);
    if let [_] = said[..] {
        log.deleted(3);
        assert_eq!(log.stats().deleted_objects_total, 1, "it was seen");
    }
    // What is kept is kept as long as this writer lives.
    assert_eq!(log.tick_at(1_000_000_000), [""; 0]);
    said
}

#[test]
fn what_stands_in_the_way_of_older_writers_is_kept_until_it_is_old() {
    for kind in [UnindexedKind::Claim, UnindexedKind::Start, UnindexedKind::Other] {
        assert_eq!(found(kind, Some(0)), [""; 0], "{kind:?}");
        assert_eq!(found(kind, Some(167)), [""; 0], "{kind:?}");
        assert_eq!(found(kind, Some(168)), ["delete 3"], "{kind:?}");
        assert_eq!(found(kind, None), [""; 0], "{kind:?} above the recovered tip");
    }
}

#[test]
fn history_that_an_earlier_collection_did_not_get_to_is_deleted_at_once() {
    assert_eq!(found(UnindexedKind::Passed, Some(0)), ["delete 3"]);
}

#[test]
fn what_is_outside_history_goes_when_the_durable_boundary_has_passed_it() {
    let mut recovered = with_history(at_once(), &[(1, &[1]), (3, &[2]), (4, &[3])]);
    assert_eq!(recovered.durable_boundary, ObjectSeq(1));
    let link = Link { sequence: ObjectSeq(2), epoch: Epoch(1) };
    let (kind, age) = (UnindexedKind::Other, Some(Duration::from_secs(8 * 24 * 3600)));
    recovered.catalog.add_unindexed(Unindexed { link, kind, age });
    let mut log = Log::from(recovered);
    assert_eq!(log.handle(Event::Tick), [""; 0]);
    log.obsolete(1, id(1, 1));
    assert_eq!(log.append_durable(9), ["ack 2: 6/1", "delete 2", "delete 1"]);
}

#[test]
fn the_own_start_object_stays() {
    let mut log = obsolete();
    log.append_durable(2);
    assert_eq!(log.being_deleted(), [6, 7, 8, 9], "and not 5");
    for sequence in 6..=9 {
        log.deleted(sequence);
    }
    assert_eq!(log.stats().indexed_objects, 2);
}

#[test]
fn a_start_object_that_is_not_kept_goes() {
    // No opening leaves its own so.
    let mut recovered = recovered(at_once(), START.next());
    recovered.catalog = Catalog::new(ObjectSeq::ZERO);
    recovered.catalog.index(recovered.start, 200, &[]).unwrap();
    let mut log = Log::from(recovered);
    assert_eq!(log.append_durable(1), ["ack 1: 6/1", "delete 5"]);
}

#[test]
fn what_an_earlier_instance_did_not_get_to_is_deleted_after_the_opening() {
    let mut recovered = with_history(at_once(), &[(1, &[1]), (2, &[1]), (4, &[2])]);
    recovered.catalog.raise_watermark(RegionId(1), id(2, 1));
    recovered.durable_boundary = recovered.catalog.boundary();
    let mut log = Log::from(recovered);
    // The first event brings what was there before it.
    assert_eq!(log.handle(Event::Tick), ["delete 1", "delete 2"]);
}

#[test]
fn the_key_of_a_batch_that_failed_is_deleted_once_and_unseen() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.fails(6, Refused);
    log.append(1, "b");
    log.created(7);
    assert_eq!(log.lists(&[7]), ["ack 2: 7/1"], "7 carries the boundary of before");
    assert_eq!(log.append_durable(1), ["ack 3: 8/1", "delete 6"]);
    // A delete that failed is tried again, also of what nobody saw.
    log.fails(6, TimedOut);
    assert_eq!(log.tick_at(60_000), ["delete 6"]);
    assert_eq!(log.deleted(6), [""; 0]);
    let stats = log.stats();
    assert_eq!((stats.deleted_objects_total, stats.failed_deletes_total), (0, 1));
    assert_eq!(log.obsolete(1, id(8, 1)), ["ack 4", "put 9"]);
    assert_eq!(log.created(9), ["delete 7", "delete 8"], "6 was once");
}

#[test]
fn it_is_not_deleted_while_its_create_runs_out() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.append(1, "c");
    assert_eq!(log.fails(6, Refused), ["fail [1, 2, 3]: Store creating Refused, Unknown"]);
    log.append(2, "d");
    log.created(9);
    log.lists(&[9]);
    assert_eq!(log.append_durable(2), ["ack 5: 10/1", "delete 6"], "7 and 8 are under way");
    // Whatever becomes of them.
    assert_eq!(log.created(8), ["delete 8"]);
    assert_eq!(log.fails(7, TimedOut), ["delete 7"]);
    log.deleted(6);
    log.deleted(7);
    assert_eq!(log.deleted(8), [""; 0]);
}

#[test]
fn a_batch_that_was_never_sent_left_nothing() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append(1, "a");
    log.append(1, "b");
    log.flush();
    let rolled_back = log.fails(6, Refused);
    assert_eq!(rolled_back.len(), 2, "7 was sealed and not started: {rolled_back:?}");
    log.append(2, "c");
    log.created(8);
    log.lists(&[8]);
    assert_eq!(log.append_durable(2), ["ack 5: 9/1", "delete 6"]);
    assert_eq!(log.deleted(6), [""; 0]);
}

#[test]
fn nothing_is_deleted_after_stop_began_and_stop_waits_for_what_is_under_way() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 2, ..at_once() });
    assert_eq!(log.append_durable(2), ["ack 6: 10/1", "delete 6", "delete 7"]);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.deleted(6), [""; 0], "8 and 9 are left to the next opening");
    assert_eq!(log.stats().indexed_objects, 5);
    assert!(!log.writer.is_stopped());
    // One that fails then is not tried again.
    let said = log.fails(7, TimedOut);
    assert_eq!(said, ["1 not deleted, 7 first: Store deleting TimedOut", "ack 7"]);
    assert!(log.writer.is_stopped());
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn a_boundary_that_becomes_durable_while_stopping_deletes_nothing() {
    let mut log = obsolete();
    log.append(2, "b");
    log.stop();
    assert_eq!(log.created(10), ["ack 6: 10/1", "ack 7"]);
}

#[test]
fn nothing_is_deleted_after_poison_and_what_is_under_way_leaves_the_index() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 2, ..at_once() });
    log.append_durable(2);
    log.append(2, "b");
    log.fails(11, Exists);
    log.finds(11, &[0; 100]);
    assert!(!log.writer.is_stopped(), "two deletes are under way");
    assert_eq!(log.deleted(6), [""; 0]);
    assert_eq!(log.stats().indexed_objects, 5);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.deleted(7), ["fail [8]: Poisoned Corrupted header, NotWritten"]);
    assert!(log.writer.is_stopped());
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
    assert_eq!(log.stats().deleted_objects_total, 2);
}

#[test]
fn nothing_is_deleted_while_another_writers_name_is_read() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 1, ..at_once() });
    log.append_durable(2);
    log.append(2, "b");
    log.fails(11, Exists);
    assert_eq!(log.finds(11, &bare_object(11, 99)), ["read back 98"]);
    assert_eq!(log.deleted(6), [""; 0]);
    assert_eq!(log.fails(98, NotFound), ["fail [7]: Fenced by 99 ?, Unknown"]);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
}

#[test]
fn deletes_go_on_while_the_log_is_failing() {
    let mut log = obsolete_with(Options { max_deletes_in_flight: 2, ..enqueued() });
    // Each append was acknowledged on admission.
    log.append(2, "b");
    assert_eq!(log.created(10), ["delete 6", "delete 7"]);
    log.append(2, "c");
    assert_eq!(log.fails(11, Refused), ["failing: Store creating Refused"]);
    assert_eq!(log.deleted(6), ["delete 8"]);
    let said = log.fails(7, TimedOut);
    assert_eq!(said, ["1 not deleted, 7 first: Store deleting TimedOut", "delete 9"]);
    log.deleted(9);
    log.tick_at(59_999);
    assert_eq!(log.stats().failing, 1);
    let said = log.tick_at(60_000);
    assert!(said.contains(&"delete 7".into()), "{said:?}");
}

#[test]
fn an_exhausted_log_deletes_what_its_last_object_lets_go() {
    let last = ObjectSeq::LIMIT.0 - 1;
    let mut log = Log::starting_at(at_once(), ObjectSeq(last - 1));
    log.append_durable(1);
    log.obsolete(1, id(last - 1, 1));
    let said = log.append_durable(2);
    assert_eq!(said, [format!("ack 3: {last}/1"), format!("delete {}", last - 1)]);
    assert_eq!(log.deleted(last - 1), [""; 0]);
}

#[test]
fn an_abandoned_log_answers_stop_whatever_is_under_way() {
    let mut log = obsolete();
    log.append_durable(2);
    log.append(2, "b");
    log.writer.abandon();
    assert_eq!(log.handle(Event::Tick), ["fail [7]: Stopped, Unknown"]);
    assert_eq!(log.stop(), ["ack 8"]);
}

impl Log {
    /// The sequences of all deletes that are under way.
    fn being_deleted(&self) -> Vec<u64> {
        let deletes = self.requests.iter();
        let deletes = deletes.filter(|e| matches!(e, StorageEffect::DeleteObjects { .. }));
        deletes.map(sequence_of).collect()
    }
}
