//! Inputs of a hostile reviewer.

use super::*;
use StoreErrorKind::{Exists, NotFound, Refused, TimedOut, Transient};

/// Object 6 of region 1 was durable, obsolete and deleted: nothing of the region is left.
fn dropped(options: Options) -> Log {
    let mut log = Log::new(options);
    log.append_durable(1);
    assert_eq!(log.writer.latest(RegionId(1)), id(6, 1));
    log.obsolete(1, id(6, 1));
    log.append_durable(2);
    log.deleted(6);
    log
}

/// Section 14: "stopping: new wait: `Stopped` (a wait for a durable id succeeds)"; section 5, poison:
/// only a "wait for an id that is not durable" fails.
#[test]
fn a_wait_for_a_durable_id_of_a_dropped_region_succeeds_after_stop() {
    let mut log = dropped(at_once());
    let before = log.wait(1, id(6, 1));
    assert!(before[0].starts_with("ack"), "{before:?}");
    log.stop();
    let said = log.wait(1, id(6, 1));
    assert!(said[0].starts_with("ack"), "the id is durable: {said:?}");
}

#[test]
fn a_wait_for_a_durable_id_of_a_dropped_region_succeeds_after_poison() {
    let mut log = dropped(at_once());
    log.append(2, "x");
    log.fails(8, Exists);
    log.finds_twice(8, b"no object");
    assert!(log.wait(2, id(7, 1))[0].starts_with("ack"), "of a region that is there");
    let said = log.wait(1, id(6, 1));
    assert!(said[0].starts_with("ack"), "the id is durable: {said:?}");
}

/// Section 9: what is kept per region is dropped once nothing of it is left, its ids included. What is
/// assigned later is greater all the same.
#[test]
fn of_a_region_of_which_nothing_is_left_no_id_is_known() {
    let mut log = dropped(at_once());
    assert_eq!(log.writer.latest(RegionId(1)), EntryId::ZERO);
    assert_eq!(log.writer.durable(RegionId(1)), EntryId::ZERO);
    log.append(1, "b");
    assert!(log.writer.latest(RegionId(1)) > id(6, 1));
}

/// Section 12, rule 5: orphans of other instances are not deleted, boundary or not, until they are
/// older than `fence_retention`. Here one stands at a key of ours, and it is not the one that
/// rolled the batch back.
#[test]
fn an_orphan_of_another_instance_at_the_key_of_a_rolled_back_batch_stays() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, Exists);
    log.fails(7, Exists);
    let said = log.finds(6, &bare_object(6, 3));
    assert!(said.iter().any(|line| line.contains("Conflict")), "{said:?}");
    log.finds(7, &bare_object(7, 3));
    log.append(1, "c");
    log.created(8);
    // The guard reads that it is of epoch 3, so it is known not to be ours.
    assert_eq!(log.lists(&[6, 7, 8]), ["read back 6", "read back 7"]);
    log.finds(6, &bare_object(6, 3));
    log.finds(7, &bare_object(7, 3));
    log.obsolete(1, id(8, 1));
    log.append(2, "d");
    let said = log.created(9);
    assert!(said.contains(&"delete 8".into()), "{said:?}");
    assert!(!said.contains(&"delete 6".into()), "{said:?}");
    assert!(!said.contains(&"delete 7".into()), "rule 5: {said:?}");
}

/// Section 14: "carrier: after a roll back, the next interval tries again".
#[test]
fn a_carrier_that_was_rolled_back_late_is_tried_again_after_an_interval() {
    let options = Options { reclaim_interval: Duration::from_secs(1), ..at_once() };
    let mut log = Log::new(options);
    log.append_durable(1);
    log.obsolete(1, id(6, 1));
    assert_eq!(log.tick_at(1000), ["put 7"]);
    log.now = Time::from_millis(31_000);
    assert_eq!(log.fails(7, TimedOut)[0], "read back 7");
    let said = log.fails(7, NotFound);
    assert_eq!(log.stats().rolled_back_batches_total, 1);
    assert_eq!(said, [""; 0], "not before the next interval");
}

/// Keys that were not asked for, twice the same, and of other prefixes.
#[test]
fn odd_answers_of_a_delete_delete_nothing_else() {
    let mut log = Log::new(at_once());
    log.writer.set_keys_per_delete(1000);
    for _ in 6..=9 {
        log.append_durable(1);
    }
    log.obsolete(1, id(8, 1));
    assert_eq!(log.append_durable(2), ["ack 6: 10/1", "delete 6 7 8"]);
    let id_of = log.take(6).id();
    let key = |prefix: &str, at| Prefix::new(prefix).unwrap().object_key(ObjectSeq(at));
    let results = Vec::from([
        (key("log", 5), Ok(())),
        (key("log", 9), Ok(())),
        (key("log", 10), Ok(())),
        (key("other", 7), Ok(())),
        (key("log", 6), Ok(())),
        (key("log", 6), Ok(())),
        (key("log", 8), Err(StoreError::new(Transient))),
        (key("log", 8), Ok(())),
        ("log/objects/7.wal".into(), Ok(())),
        ("".into(), Ok(())),
    ]);
    let said = log.handle(Event::Storage(StorageAnswer::DeleteResult { id: id_of, results }));
    assert_eq!(said, ["1 not deleted, 7 first: Store deleting Transient"]);
    let stats = log.stats();
    assert_eq!((stats.deleted_objects_total, stats.failed_deletes_total), (2, 1));
    assert_eq!(stats.indexed_objects, 4, "5, 7, 9, 10");
    assert_eq!(log.visible(1), [9]);
}

/// `Wal::release` says of `Error::Stopped`: "nothing of them is written". Its record is.
#[test]
fn a_release_that_failed_as_stopped_is_written() {
    let mut log = Log::new(Options { max_in_flight: 1, ..at_once() });
    log.append_durable(1);
    log.append(2, "x");
    assert_eq!(log.release(1), [""; 0]);
    let said = log.stop();
    assert_eq!(said, ["fail [3]: Stopped, Unknown"]);
    log.created(7);
    assert_eq!(log.records(9), ["1 through 6/1"]);
}

/// Section 5: an id whose batch was dropped is never certified, also not by an object behind it.
#[test]
fn the_last_object_of_stop_certifies_nothing_that_stop_dropped() {
    for rolled_back in [false, true] {
        let mut log =
            Log::new(Options { max_in_flight: 1, retry_for: Duration::ZERO, ..at_once() });
        log.append(1, "a");
        log.created(6);
        assert_eq!(log.append(2, "under way"), ["put 7"]);
        log.append(3, "sealed");
        log.flush();
        log.release(1);
        log.append(4, "open");
        log.stop();
        let said = if rolled_back { log.fails(7, Refused) } else { log.created(7) };
        let put = said.iter().find_map(|said| said.strip_prefix("put ")).expect("a last object");
        let last: u64 = put.parse().unwrap();
        assert_eq!(log.records(last), ["1 through 6/1"]);
        log.created(last);
        log.lists(&[last]);
        for (region, sequence) in [(3, 8), (3, 9), (4, 9)] {
            let said = log.wait(region, id(sequence, 1));
            assert!(said[0].contains("Stopped"), "{region}, {sequence}: {said:?}");
        }
        let said = log.wait(2, id(7, 1));
        assert_eq!(said[0].starts_with("ack"), !rolled_back, "{said:?}");
    }
}
