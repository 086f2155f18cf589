//! What a read that failed is told of its object, while that may be collected (DESIGN.md
//! section 8).

use super::*;
use StoreErrorKind::{Exists, TimedOut, Transient};

/// Object 6 is being deleted; 7 is needed. Three calls.
fn deleting() -> Log {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.append_durable(2), ["ack 3: 7/1", "delete 6"]);
    log
}

#[test]
fn the_verdict_waits_while_a_delete_of_the_object_is_under_way() {
    let mut log = deleting();
    assert_eq!(log.judge(6, EPOCH), [""; 0]);
    assert_eq!(log.judge(7, EPOCH), ["ack 5: Indexed"], "nobody deletes this one");
    assert_eq!(log.judge(6, EPOCH), [""; 0]);
    assert_eq!(log.deleted(6), ["ack 4: Gone", "ack 6: Gone"]);
    assert_eq!(log.judge(6, EPOCH), ["ack 7: Gone"], "from now on at once");
}

#[test]
fn of_several_keys_each_read_is_told_of_its_own() {
    let mut log = Log::new(at_once());
    log.writer.set_keys_per_delete(2);
    log.append_durable(1);
    log.append_durable(1);
    log.obsolete(1, id(7, 1));
    assert_eq!(log.append_durable(2), ["ack 4: 8/1", "delete 6 7"]);
    log.judge(7, EPOCH);
    log.judge(6, EPOCH);
    assert_eq!(log.deletes(6, &[(7, Ok(())), (6, Ok(()))]), ["ack 6: Gone", "ack 5: Gone"]);
}

#[test]
fn before_a_delete_is_asked_for_the_error_stands() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.judge(6, EPOCH), ["ack 3: Indexed"], "obsolete, and not deleted");
    assert_eq!(log.judge(6, Epoch(2)), ["ack 4: Gone"], "another object, which is not indexed");
    assert_eq!(log.judge(9, EPOCH), ["ack 5: Gone"]);
}

#[test]
fn an_object_whose_delete_failed_may_be_gone_and_fails_no_read() {
    for failure in [TimedOut, Transient] {
        let mut log = deleting();
        log.judge(6, EPOCH);
        let said = log.fails(6, failure);
        let failed = format!("1 not deleted, 6 first: Store deleting {failure:?}");
        assert_eq!(said, ["ack 4: Gone".into(), failed]);
        assert_eq!(log.judge(6, EPOCH), ["ack 5: Gone"], "until it is tried again");
        log.tick_at(60_000);
        assert_eq!(log.judge(6, EPOCH), [""; 0], "it is being deleted again");
        assert_eq!(log.deleted(6), ["ack 6: Gone"]);
    }
}

#[test]
fn a_read_that_waits_is_answered_after_poison() {
    let mut log = deleting();
    log.judge(6, EPOCH);
    log.append(2, "b");
    log.fails(8, Exists);
    assert_eq!(log.finds_twice(8, &[0; 100]), ["fail [5]: Corrupted header, Unknown"]);
    assert_eq!(log.judge(6, EPOCH), [""; 0], "the delete runs out still");
    assert_eq!(log.deleted(6), ["ack 4: Gone", "ack 6: Gone"]);
    assert_eq!(log.judge(7, EPOCH), ["ack 7: Indexed"]);
}

#[test]
fn a_read_that_waits_is_answered_after_stop_began_and_one_that_asks_after_it_ended_too() {
    let mut log = deleting();
    log.judge(6, EPOCH);
    assert_eq!(log.stop(), [""; 0]);
    assert_eq!(log.judge(7, EPOCH), ["ack 6: Indexed"]);
    assert_eq!(log.judge(6, EPOCH), [""; 0]);
    assert_eq!(log.deleted(6), ["ack 4: Gone", "ack 7: Gone", "ack 5"]);
    // Whatever collection there was has ended, and no read may fail because of it.
    assert_eq!(log.judge(7, EPOCH), ["ack 8: Indexed"]);
    assert_eq!(log.judge(6, EPOCH), ["ack 9: Gone"]);
}

#[test]
fn an_abandoned_log_answers_reads_that_wait() {
    let mut log = deleting();
    log.judge(6, EPOCH);
    log.judge(6, EPOCH);
    log.writer.abandon();
    let said = log.handle(Event::Tick);
    assert_eq!(said, ["fail [4]: Stopped, NotWritten", "fail [5]: Stopped, NotWritten"]);
    // The delete that was under way answers nobody a second time.
    assert_eq!(log.deleted(6), [""; 0]);
}

#[test]
fn a_read_that_waits_while_another_writers_name_is_read_is_answered() {
    let mut log = deleting();
    log.append(2, "b");
    log.fails(8, Exists);
    log.finds(8, &bare_object(8, 99));
    assert_eq!(log.judge(6, EPOCH), [""; 0]);
    assert_eq!(log.judge(7, EPOCH), ["ack 6: Indexed"]);
    assert_eq!(log.deleted(6), ["ack 5: Gone"]);
}
