//! Admission and sealing: by size, by time, by flush, and what holds a batch open.

use super::*;

fn busy() -> Options {
    Options {
        linger: Duration::from_millis(1),
        flush_interval: Duration::from_millis(100),
        ..Options::default()
    }
}

#[test]
fn a_lone_append_on_an_idle_log_leaves_after_the_linger() {
    let mut log = Log::new(busy());
    assert_eq!(log.writer.next_tick(), None, "an idle log wants nothing");
    log.now = Time::from_millis(50);
    assert_eq!(log.append(1, "a"), [""; 0]);
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(51)));
    assert_eq!(log.tick_at(50), [""; 0], "a tick too many is harmless");
    assert_eq!(log.append(2, "company"), [""; 0]);
    assert_eq!(log.tick_at(51), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2: 6/1"]);
    assert_eq!(log.writer.next_tick(), None);
}

/// A shell hands in all that is there before it ticks.
#[test]
fn appends_that_come_together_share_an_object_even_without_linger() {
    let mut log = Log::new(at_once());
    for text in ["a", "b"] {
        let (append, waiter) = (Append::One(RegionId(1), Bytes::from(text)), log.waiter());
        log.writer.handle(log.now, Event::Append { append, waiter });
    }
    assert_eq!(log.writer.next_tick(), Some(log.now), "a batch is due");
    assert_eq!(log.append(2, "c"), ["put 6"]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2: 6/2", "ack 3: 6/1"]);
}

#[test]
fn a_busy_log_makes_one_timed_object_per_interval() {
    let mut log = Log::new(busy());
    log.append(1, "a");
    log.tick_at(1);
    log.now = Time::from_millis(2);
    log.append(1, "b");
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(101)));
    log.now = Time::from_millis(100);
    assert_eq!(log.append(1, "c"), [""; 0]);
    assert_eq!(log.tick_at(101), ["put 7"]);
    // Idle for longer than the interval: the next one lingers only.
    log.now = Time::from_millis(500);
    log.append(1, "d");
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(501)));
    assert_eq!(log.tick_at(501), ["put 8"]);
}

#[test]
fn a_slow_store_makes_batches_larger_rather_than_more() {
    let mut log = Log::new(Options { max_in_flight: 2, ..at_once() });
    assert_eq!(log.append(1, "a"), ["put 6"]);
    assert_eq!(log.append(1, "b"), ["put 7"]);
    for payload in ["c", "d", "e"] {
        assert_eq!(log.append(1, payload), [""; 0]);
    }
    // Only an answer frees a slot. The tick is for the operator, who is told of a slow create.
    assert_eq!(log.writer.next_tick(), Some(Time::from_millis(5000)));
    assert_eq!(log.created(6), ["ack 1: 6/1", "put 8"]);
    assert_eq!(log.created(7), ["ack 2: 7/1"]);
    assert_eq!(log.created(8), ["ack 3: 8/1", "ack 4: 8/2", "ack 5: 8/3"]);
}

#[test]
fn a_batch_seals_at_its_size_without_a_free_slot_and_at_most_twice_the_pipeline_is_sealed() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..busy() });
    assert_eq!(log.append(1, "a"), ["put 6"]);
    // One more is sealed behind it; the third stays open, and the fourth is not admitted.
    for payload in ["b", "c"] {
        assert!(log.writer.accepts_appends());
        assert_eq!(log.append(1, payload), [""; 0]);
    }
    assert!(!log.writer.accepts_appends());
    assert_eq!(log.append(1, "d"), [""; 0]);
    assert_eq!(log.append(2, "e"), [""; 0]);
    // The open batch seals first when there is room, then the queue goes on in its order.
    assert_eq!(log.created(6), ["ack 1: 6/1", "put 7"]);
    assert_eq!(log.created(7), ["ack 2: 7/1", "put 8"]);
    assert_eq!(log.created(8), ["ack 3: 8/1", "put 9"]);
    assert_eq!(log.created(9), ["ack 4: 9/1", "put 10"]);
    assert!(log.writer.accepts_appends());
    assert_eq!(log.created(10), ["ack 5: 10/1"]);
}

#[test]
fn the_size_is_that_of_the_object() {
    // 90 bytes without segments, 60 per region, 12 per entry and its payload.
    let size = 90 + 60 + 2 * (12 + 10);
    let mut log = Log::new(Options { max_batch_bytes: size, ..busy() });
    assert_eq!(log.append(1, "0123456789"), [""; 0]);
    assert_eq!(log.stats().unpersisted_bytes, size - 22);
    assert_eq!(log.append(1, "0123456789"), ["put 6"]);
    assert_eq!(log.payload(6).len(), size);
}

#[test]
fn an_append_larger_than_a_batch_is_one_object() {
    let mut log = Log::new(Options { max_batch_bytes: 100, ..busy() });
    assert_eq!(log.append_many(&[(1, "0123456789"); 40]), ["put 6"]);
    let acked = log.created(6);
    assert!(acked[0].ends_with("6/39 6/40"), "{acked:?}");
}

#[test]
fn an_append_goes_into_one_object_with_ids_per_region() {
    let mut log = Log::new(busy());
    log.append(2, "before");
    log.append_many(&[(1, "a"), (2, "b"), (1, "c"), (2, "d")]);
    log.tick_at(1);
    let object = Object::decode(&log.payload(6).to_bytes()).unwrap();
    let regions: Vec<_> =
        object.segments.iter().map(|(meta, entries)| (meta.region.0, entries.len())).collect();
    assert_eq!(regions, [(1, 2), (2, 3)]);
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2: 6/1 6/2 6/2 6/3"]);
}

#[test]
fn flush_seals_and_returns_when_all_that_was_admitted_is_indexed() {
    let mut log = Log::new(busy());
    assert_eq!(log.flush(), ["ack 1"], "nothing was admitted");
    log.append(1, "a");
    assert_eq!(log.flush(), ["put 6"]);
    assert_eq!(log.flush(), [""; 0], "nothing more to seal, and 6 is under way");
    log.append(1, "b");
    assert_eq!(log.created(6), ["ack 2: 6/1", "ack 3", "ack 4"]);
    assert_eq!(log.flush(), ["put 7"]);
    assert_eq!(log.created(7), ["ack 5: 7/1", "ack 6"]);
}

#[test]
fn a_flush_without_room_seals_when_there_is_room() {
    let mut log = Log::new(Options { max_in_flight: 1, ..busy() });
    log.append(1, "a");
    log.flush();
    log.append(1, "b");
    log.flush();
    log.append(1, "c");
    assert_eq!(log.flush(), [""; 0]);
    log.append(1, "d");
    assert_eq!(log.created(6), ["ack 1: 6/1", "ack 2", "put 7"]);
    assert_eq!(log.created(7), ["ack 3: 7/1", "ack 4", "put 8"]);
    assert_eq!(log.created(8), ["ack 5: 8/1", "ack 7: 8/2", "ack 6"]);
}

#[test]
fn a_flush_fails_with_its_batch() {
    let mut log = Log::new(busy());
    log.append(1, "a");
    log.flush();
    let said = log.fails(6, StoreErrorKind::Refused);
    assert_eq!(said, ["fail [1, 2]: Store creating Refused, Unknown"]);
}

#[test]
fn positions_that_run_out_open_the_next_batch() {
    let options = Options { max_batch_bytes: 1 << 30, ..busy() };
    let mut log = Log::new(options);
    let append =
        |entries: u32| Append::Many((0..entries).map(|_| (RegionId(1), Bytes::new())).collect());
    let most = EntryId::MAX_POSITION;
    log.handle(Event::Append { append: append(most - 1), waiter: 1 });
    assert_eq!(log.append(2, "another region has positions left"), [""; 0]);
    // Two more do not fit, and an append is not split.
    let append_two = Event::Append { append: append(2), waiter: 2 };
    assert_eq!(log.handle(append_two), ["put 6"]);
    assert_eq!(log.flush(), ["put 7"]);
    let acked = log.created(6);
    assert!(acked[0].ends_with(&format!("6/{}", most - 1)));
    assert_eq!(log.created(7)[0], "ack 2: 7/1 7/2");

    let too_large = Event::Append { append: append(most + 1), waiter: 9 };
    assert_eq!(log.handle(too_large), ["fail [9]: AppendTooLarge, NotWritten"]);
    let full = Event::Append { append: append(most), waiter: 10 };
    assert_eq!(log.handle(full), [""; 0]);
    assert_eq!(log.append(1, "one more"), ["put 8"]);
}

#[test]
fn what_is_refused_on_arrival_changes_nothing() {
    let mut log = Log::new(Options { max_append_bytes: 4, ..busy() });
    assert_eq!(log.append(u64::MAX - 15, "a"), ["fail [1]: InvalidRegion, NotWritten"]);
    let mixed = log.append_many(&[(1, "a"), (u64::MAX, "b")]);
    assert_eq!(mixed, ["fail [2]: InvalidRegion, NotWritten"]);
    assert_eq!(log.append(1, "12345"), ["fail [3]: AppendTooLarge, NotWritten"]);
    let many = log.append_many(&[(1, "123"), (2, "45")]);
    assert_eq!(many, ["fail [4]: AppendTooLarge, NotWritten"]);
    assert_eq!(log.append(1, "1234"), [""; 0]);
    let stats = log.stats();
    assert_eq!((stats.rejected_appends_total, stats.appends_total), (4, 1));
    assert_eq!(log.tick_at(1), ["put 6"]);
    assert_eq!(log.created(6), ["ack 5: 6/1"]);
}

#[test]
fn an_empty_append_is_acknowledged_at_once_and_fails_like_any_other() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..busy() });
    assert_eq!(log.append_many(&[]), ["ack 1: "]);
    for payload in ["a", "b", "c", "queued"] {
        log.append(1, payload);
    }
    assert_eq!(log.append_many(&[]), ["ack 6: "]);
    log.stop();
    assert_eq!(log.append_many(&[]), ["fail [8]: Stopped, NotWritten"]);
}

#[test]
fn queued_appends_outlive_a_roll_back() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..busy() });
    for payload in ["a", "b", "c", "d"] {
        log.append(1, payload);
    }
    let said = log.fails(6, StoreErrorKind::Refused);
    assert_eq!(
        said,
        [
            "fail [1]: Store creating Refused, Unknown",
            "fail [2]: Store creating Refused, NotWritten",
            "fail [3]: Store creating Refused, NotWritten",
            // The open batch used up its sequence, 8: its ids were handed out.
            "put 9",
        ]
    );
    assert_eq!(log.created(9), ["list after 5.wal"]);
    assert_eq!(log.lists(&[9]), ["ack 4: 9/1"]);
}

#[test]
fn a_boundary_is_carried_as_it_was_when_the_batch_was_sealed() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    log.created(6);
    log.append(1, "b");
    assert_eq!(log.header(7).boundary, ObjectSeq(6));
    log.obsolete(1, id(6, 1));
    assert_eq!(log.header(7).boundary, ObjectSeq(6), "7 is sealed");
    log.append(1, "c");
    assert_eq!(log.header(8).boundary, ObjectSeq(7), "nothing indexed holds a live segment");
    log.created(7);
    log.append(1, "d");
    assert_eq!(log.header(9).boundary, ObjectSeq(7), "7 does");
}
