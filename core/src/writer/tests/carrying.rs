//! The carrier: an idle log whose watermarks moved makes one object that carries the boundary, and
//! never because of another (DESIGN.md section 9).

use proptest::prelude::*;

use super::*;
use crate::format::ReleaseRecord;
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
fn an_object_of_release_records_alone_is_worth_one() {
    let mut log = obsolete();
    // The release's own object carries that 6 is not needed, and holds the record.
    assert_eq!(log.release(1), ["put 7"]);
    assert_eq!(log.created(7), ["ack 3", "delete 6"]);
    log.deleted(6);
    assert_eq!(log.stats().reclaim_boundary, 8);
    assert_eq!(log.tick_at(60_000), ["put 8"]);
    assert_eq!(log.created(8), ["delete 7"]);
    log.deleted(7);
    assert_eq!(log.writer.next_tick(), None);
    assert_eq!(log.tick_at(1_000_000), [""; 0]);
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

/// Section 6: appends are refused "until the record's object was collected", which must not take an
/// append to another region.
#[test]
fn a_region_that_was_released_in_full_becomes_free_on_an_idle_log() {
    let mut log = Log::new(at_once());
    log.append_durable(1);
    log.release_all(1);
    log.created(7);
    assert_eq!(log.append(1, "a"), ["fail [3]: Released, NotWritten"]);
    log.tick_at(60_000);
    log.created(8);
    log.deleted(6);
    log.deleted(7);
    assert_eq!(log.append_durable(1), ["ack 4: 9/1", "delete 8"]);
}

#[test]
fn a_carrier_that_takes_carried_records_along_is_followed_by_one_that_holds_nothing() {
    let (reclaim_interval, flush_interval) = (Duration::from_secs(1), Duration::from_secs(60));
    let mut log = Log::new(Options { reclaim_interval, flush_interval, ..at_once() });
    log.append(1, "a");
    log.created(6);
    log.append(2, "b");
    log.flush();
    log.created(7);
    log.release(1);
    assert!(log.fails(8, Refused)[0].starts_with("fail [4]"));
    log.obsolete(1, id(6, 1));
    // The records alone would wait for the flush interval.
    assert_eq!(log.tick_at(1_000), ["put 9"]);
    assert_eq!(log.records(9), ["1 through 6/1"]);
    log.created(9);
    assert_eq!(log.lists(&[9]), ["delete 6"]);
    log.deleted(6);
    assert_eq!(log.writer.next_tick(), None, "region 2 needs what is before 9");
    assert_eq!(log.obsolete(2, id(7, 1)), ["ack 6"]);
    assert_eq!(log.tick_at(2_000), ["put 10"]);
    assert_eq!(log.records(10), [""; 0]);
    assert_eq!(log.created(10), ["delete 8", "delete 7", "delete 9"]);
    assert_eq!(log.tick_at(3_000), [""; 0]);
}

/// What an earlier instance left: its record's object is below the boundary that the start object
/// carries, or it has a carrier of its own.
#[test]
fn a_record_that_was_recovered_is_collected_on_an_idle_log() {
    for holder_is_obsolete in [false, true] {
        let mut recovered = with_history(at_once(), &[(2, &[1]), (3, &[2]), (4, &[])]);
        let record = ReleaseRecord { region: RegionId(1), through: EntryId::MAX };
        recovered.catalog.apply_releases(ObjectSeq(4), &[record]);
        if holder_is_obsolete {
            recovered.catalog.raise_watermark(RegionId(2), id(3, 1));
        }
        recovered.durable_boundary = recovered.catalog.boundary();
        let mut log = Log::from(recovered);
        let said = log.append(1, "a");
        assert_eq!(said[0], "fail [1]: Released, NotWritten");
        if holder_is_obsolete {
            assert_eq!(log.being_deleted(), [2, 3, 4]);
        } else {
            assert_eq!(log.being_deleted(), [2]);
            assert_eq!(log.tick_at(100_000), [""; 0]);
            assert_eq!(log.obsolete(2, id(3, 1)), ["ack 2", "put 6"]);
            assert_eq!(log.created(6), ["delete 3", "delete 4"]);
        }
        for sequence in log.being_deleted() {
            log.deleted(sequence);
        }
        assert_eq!(log.writer.next_tick(), None);
        log.append_durable(1);
        assert!(log.writer.latest(RegionId(1)) > EntryId::ZERO);
    }
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

#[derive(Clone, Copy, Debug)]
enum Step {
    Append(u64),
    Obsolete(u64),
    Release {
        region: u64,
        in_full: bool,
    },
    /// So many milliseconds later.
    Tick(u64),
    /// The first request is answered; with `false`, by a refusal.
    Answer(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u64).prop_map(Step::Append),
        2 => (0..3u64).prop_map(Step::Obsolete),
        2 => (0..3u64, any::<bool>()).prop_map(|(region, in_full)| Step::Release { region, in_full }),
        2 => prop_oneof![Just(1u64), Just(150), Just(1_000)].prop_map(Step::Tick),
        6 => prop_oneof![4 => Just(true), 1 => Just(false)].prop_map(Step::Answer),
    ]
}

/// Answers the first request: well, or with a refusal.
fn answer(log: &mut Log, well: bool) {
    let request = log.requests.remove(0);
    let id = request.id();
    let answer = match &request {
        _ if !well => request.failed(StoreError::new(Refused)),
        StorageEffect::PutObject { .. } => StorageAnswer::CreateResult { id, result: Ok(()) },
        StorageEffect::List { .. } => {
            let listed = log.put.iter().map(|(sequence, payload)| Listed {
                key: log.writer.prefix().object_key(ObjectSeq(*sequence)),
                size: payload.len(),
                modified_millis: 0,
            });
            StorageAnswer::Listed { id, result: Ok(listed.collect()) }
        }
        StorageEffect::ReadBack { key, .. } => {
            let KeyKind::Object(sequence) = log.writer.prefix().classify(key) else {
                panic!("{key}")
            };
            let result = Ok(ReadBack::of(&log.put[&sequence.0].to_bytes()));
            StorageAnswer::ReadBackResult { id, result }
        }
        StorageEffect::DeleteObjects { keys, .. } => {
            let results = keys.iter().map(|key| (key.clone(), Ok(()))).collect();
            StorageAnswer::DeleteResult { id, results }
        }
        request => request.failed(StoreError::new(NotFound)),
    };
    log.handle(Event::Storage(answer));
}

proptest! {
    /// Whatever was done before: a log that falls idle comes to rest, after few objects, and then
    /// nothing is left of what nobody needs, and every region takes appends, unless something that
    /// is needed stands before it.
    #[test]
    fn an_idle_log_comes_to_rest_with_nothing_left_to_collect(
        steps in prop::collection::vec(step(), 0..60),
        is_enqueued in any::<bool>(),
        flush_seconds in prop_oneof![Just(0u64), Just(30)],
        all_obsolete in any::<bool>(),
    ) {
        let reclaim_interval = Duration::from_secs(1);
        let flush_interval = Duration::from_secs(flush_seconds);
        let options = if is_enqueued { enqueued() } else { at_once() };
        let mut log = Log::new(Options { reclaim_interval, flush_interval, ..options });
        for step in steps {
            match step {
                Step::Append(region) => drop(log.append(region, "x")),
                Step::Obsolete(region) => {
                    let latest = log.writer.latest(RegionId(region));
                    log.obsolete(region, latest);
                }
                Step::Release { region, in_full: true } => drop(log.release_all(region)),
                Step::Release { region, in_full: false } => drop(log.release(region)),
                Step::Tick(millis) => {
                    log.now = log.now.after(Duration::from_millis(millis));
                    log.handle(Event::Tick);
                }
                Step::Answer(well) if !log.requests.is_empty() => answer(&mut log, well),
                Step::Answer(_) => {}
            }
        }
        let settle = |log: &mut Log| {
            let before = log.stats().created_objects_total;
            let mut pending = None;
            for round in 0.. {
                assert!(round < 10_000, "it never comes to rest");
                if !log.requests.is_empty() {
                    answer(log, true);
                } else if let Some(tick) = log.writer.next_tick() {
                    log.now = log.now.max(tick);
                    log.handle(Event::Tick);
                } else {
                    break;
                }
                if pending.is_none() && log.writer.stats().unpersisted_bytes == 0 {
                    pending = Some(log.stats().created_objects_total - before);
                }
            }
            log.stats().created_objects_total - before - pending.unwrap_or(0)
        };
        // What was under way, what is carried, and a carrier for what both of them held.
        let made = settle(&mut log);
        prop_assert!(made <= 3, "{made} objects on an idle log");
        if all_obsolete {
            for region in 0..3 {
                let latest = log.writer.latest(RegionId(region));
                log.obsolete(region, latest);
            }
            let made = settle(&mut log);
            prop_assert!(made <= 1, "{made} objects after everything became obsolete");
        }
        let boundary = ObjectSeq(log.stats().reclaim_boundary);
        let left = log.writer.catalog.next_garbage(ObjectSeq::ZERO..boundary);
        let holds = |at: ObjectSeq| log.writer.catalog.last_passed().is_some_and(|last| at <= last);
        prop_assert!(!left.is_some_and(holds), "{left:?} is left, below {boundary}");
        if all_obsolete {
            prop_assert_eq!(log.writer.catalog.region_count(), 0);
            for region in 0..3 {
                let said = log.append(region, "y");
                prop_assert!(!said.iter().any(|said| said.contains("Released")), "{:?}", said);
            }
        }
    }
}
