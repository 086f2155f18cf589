//! Whatever the events: no panic, the invariants hold, every waiter is answered exactly once, and
//! the same events give the same effects; in `enqueued` what was acknowledged becomes durable in
//! order, or stop says how much of it did not.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Append { region: u64, len: usize, many: bool },
    Flush,
    Obsolete { region: u64, sequence: u64 },
    Wait { region: u64, sequence: u64 },
    Stop,
    Tick { millis: u64 },
    Answer { which: usize, how: u8 },
    Nonsense { id: u64, kind: u8 },
    Judge { sequence: u64 },
    Release { region: u64, in_full: bool },
    Watch { region: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4u64, prop_oneof![0..40usize, Just(20_000)], any::<bool>())
            .prop_map(|(region, len, many)| Step::Append { region, len, many }),
        2 => Just(Step::Flush),
        6 => (0..4u64, 0..16u64).prop_map(|(region, sequence)| Step::Obsolete { region, sequence }),
        2 => (0..4u64, 0..30u64).prop_map(|(region, sequence)| Step::Wait { region, sequence }),
        1 => Just(Step::Stop),
        4 => prop_oneof![4 => 0..400u64, 1 => Just(6_000u64), 1 => Just(60_000u64)]
            .prop_map(|millis| Step::Tick { millis }),
        18 => (any::<usize>(), prop_oneof![3 => 0..140u8, 1 => any::<u8>()]).prop_map(|(which, how)| Step::Answer { which, how }),
        1 => (0..60u64, any::<u8>()).prop_map(|(id, kind)| Step::Nonsense { id, kind }),
        1 => (0..30u64).prop_map(|sequence| Step::Judge { sequence }),
        1 => (0..4u64).prop_map(|region| Step::Watch { region }),
        5 => (0..4u64, prop_oneof![3 => Just(false), 1 => Just(true)])
            .prop_map(|(region, in_full)| Step::Release { region, in_full }),
    ]
}

/// An answer to a request, good or bad.
fn answer(effect: &StorageEffect, how: u8, put: &BTreeMap<u64, Payload>) -> StorageAnswer {
    use StoreErrorKind::*;
    let (id, sequence) = (effect.id(), sequence_of(effect));
    let kinds = [Exists, NotFound, TimedOut, Refused, Transient, Transient];
    let failed = effect.failed(StoreError::new(kinds[usize::from(how) % kinds.len()]));
    match effect {
        StorageEffect::PutObject { .. } if how < 150 => {
            StorageAnswer::CreateResult { id, result: Ok(()) }
        }
        StorageEffect::ReadBack { .. } if how < 200 => {
            let object = match how % 8 {
                0 => start_object(sequence, "other"),
                1 => bare_object(sequence, 2),
                2 => bare_object(sequence, 40),
                3 => Bytes::from_static(b"short"),
                // An answer was lost: it is our own.
                4 | 5 if put.contains_key(&sequence) => put[&sequence].to_bytes(),
                _ => return failed,
            };
            let found = ReadBack::of(&object);
            StorageAnswer::ReadBackResult { id, result: Ok(found) }
        }
        StorageEffect::List { .. } if how < 200 => {
            let key = |sequence: u64| prefix().object_key(ObjectSeq(sequence));
            let size = |at| put.get(&at).map_or(100 + at, Payload::len);
            let some = 6..9 + u64::from(how) % 20;
            let all = some.chain(put.keys().copied()).collect::<BTreeSet<_>>();
            let listed = all.into_iter().map(|at| Listed {
                key: key(at),
                size: size(at),
                modified_millis: 0,
            });
            let mut listed: Vec<_> = listed.collect();
            match how % 11 {
                0 => listed.clear(),
                1 => listed.reverse(),
                2 => drop(listed.pop()),
                _ => {}
            }
            StorageAnswer::Listed { id, result: Ok(listed) }
        }
        StorageEffect::FetchRange { .. } if how < 200 => {
            StorageAnswer::Fetched { id, result: Ok(start_object(sequence, "other")) }
        }
        // Some keys may have no answer.
        StorageEffect::DeleteObjects { keys, .. } if how < 200 => {
            let answered = keys.iter().skip(usize::from(how % 3));
            let mut results: Vec<_> = answered.map(|key| (key.clone(), Ok(()))).collect();
            if how.is_multiple_of(5) {
                results.extend((0..20).map(|at| (prefix().object_key(ObjectSeq(at)), Ok(()))));
                results.push(("nonsense".into(), Ok(())));
                let other = Prefix::new("other").unwrap();
                results.push((other.object_key(ObjectSeq(7)), Err(StoreError::new(Refused))));
            }
            if how.is_multiple_of(7) {
                let again = results
                    .clone()
                    .into_iter()
                    .map(|(key, _)| (key, Err(StoreError::new(TimedOut))));
                results.extend(again.collect::<Vec<_>>());
            }
            StorageAnswer::DeleteResult { id, results }
        }
        _ => failed,
    }
}

/// The answer of a store in which nothing else is.
fn good_answer(effect: &StorageEffect, put: &BTreeMap<u64, Payload>) -> StorageAnswer {
    let id = effect.id();
    match effect {
        StorageEffect::PutObject { .. } => StorageAnswer::CreateResult { id, result: Ok(()) },
        StorageEffect::List { .. } => {
            let listed = put.iter().map(|(at, payload)| Listed {
                key: prefix().object_key(ObjectSeq(*at)),
                size: payload.len(),
                modified_millis: 0,
            });
            StorageAnswer::Listed { id, result: Ok(listed.collect()) }
        }
        StorageEffect::ReadBack { .. } if put.contains_key(&sequence_of(effect)) => {
            let found = put[&sequence_of(effect)].read_back();
            StorageAnswer::ReadBackResult { id, result: Ok(found) }
        }
        StorageEffect::DeleteObjects { keys, .. } => {
            let results = keys.iter().map(|key| (key.clone(), Ok(()))).collect();
            StorageAnswer::DeleteResult { id, results }
        }
        StorageEffect::ReadBack { .. } | StorageEffect::FetchRange { .. } => {
            effect.failed(StoreError::new(StoreErrorKind::NotFound))
        }
    }
}

fn prefix() -> Prefix {
    Prefix::new("log").unwrap()
}

fn nonsense(id: u64, kind: u8) -> StorageAnswer {
    let id = RequestId(id);
    match kind % 5 {
        4 => StorageAnswer::DeleteResult { id, results: Vec::new() },
        0 => StorageAnswer::Listed { id, result: Ok(Vec::new()) },
        1 => StorageAnswer::Fetched { id, result: Ok(Bytes::from_static(b"?")) },
        2 => {
            StorageAnswer::CreateResult { id, result: Err(StoreError::new(StoreErrorKind::Exists)) }
        }
        _ => StorageAnswer::ReadBackResult {
            id,
            result: Err(StoreError::new(StoreErrorKind::NotFound)),
        },
    }
}

/// What was acknowledged, and who waits for stop.
#[derive(Default)]
struct Model {
    acknowledged: u64,
    stops: BTreeSet<u32>,
}

impl Model {
    /// Stop was answered: what it says is lost is what was acknowledged and is not durable.
    fn stopped(&self, log: &Log, lost: u64) {
        let stats = log.writer.stats();
        let durable = stats.object_entries.sum() as u64;
        assert_eq!(
            self.acknowledged - durable,
            lost,
            "of {} acknowledged entries",
            self.acknowledged
        );
        assert_eq!((stats.unpersisted_bytes, stats.in_flight_creates), (0, 0));
    }
}

/// Runs the steps, and then on until everybody is answered, and returns every effect as text.
fn run(options: Options, steps: &[Step], next: u64, keys: usize) -> Vec<String> {
    let mut log = Log::starting_at(options, ObjectSeq(next));
    log.writer.set_keys_per_delete(keys);
    let mut trace = Vec::new();
    // What was put where.
    let mut put = BTreeMap::new();
    let mut open = BTreeSet::new();
    let mut appended: Vec<(u32, u64)> = Vec::new();
    let mut model = Model::default();
    let mut steps = steps.iter().cloned();
    let mut ended = false;
    while !ended {
        let step = steps.next();
        let waiter = log.calls + 1;
        let event = match step.clone() {
            Some(Step::Append { region, len, many }) => {
                let payload = Bytes::from(alloc::vec![7; len]);
                let append = if many {
                    Append::Many(
                        (0..len % 5)
                            .map(|n| (RegionId((region + n as u64) % 4), payload.clone()))
                            .collect(),
                    )
                } else {
                    Append::One(RegionId(region), payload)
                };
                Event::Append { append, waiter: log.waiter() }
            }
            Some(Step::Flush) => Event::Flush { waiter: log.waiter() },
            Some(Step::Obsolete { region, sequence }) => {
                let (region, id) = (
                    RegionId(region),
                    id(
                        (next + sequence).saturating_sub(8).min((1 << 44) - 1),
                        1 + (sequence % 2) as u32,
                    ),
                );
                Event::Obsolete { region, id, waiter: log.waiter() }
            }
            Some(Step::Release { region, in_full }) => {
                let (region, waiter) = (RegionId(region), log.waiter());
                match in_full {
                    true => Event::ReleaseAll { region, waiter },
                    false => Event::Release { region, waiter },
                }
            }
            Some(Step::Wait { region, sequence }) => {
                let (region, id) = (
                    RegionId(region),
                    id((next + sequence).saturating_sub(8).min((1 << 44) - 1), 2),
                );
                Event::WaitDurable { region, id, waiter: log.waiter() }
            }
            Some(Step::Stop) => {
                let waiter = log.waiter();
                model.stops.insert(waiter);
                Event::Stop { waiter }
            }
            Some(Step::Tick { millis }) => {
                log.now = log.now.after(Duration::from_millis(millis));
                Event::Tick
            }
            Some(Step::Answer { which, how }) => {
                if log.requests.is_empty() {
                    continue;
                }
                let effect = log.requests.remove(which % log.requests.len());
                Event::Storage(answer(&effect, how, &put))
            }
            Some(Step::Nonsense { id, kind }) => {
                // Not one that is waited for.
                if log.requests.iter().any(|effect| effect.id() == RequestId(id)) {
                    continue;
                }
                Event::Storage(nonsense(id, kind))
            }
            Some(Step::Judge { sequence }) => {
                let object =
                    Link { sequence: ObjectSeq((next + sequence).saturating_sub(8)), epoch: EPOCH };
                let segment = SegmentRef { object, region: RegionId(0) };
                Event::SegmentReadFailed { segment, waiter: log.waiter() }
            }
            Some(Step::Watch { region }) => Event::Watch { region: RegionId(region) },
            // From here on all goes well, until nothing is left to do.
            None if !log.requests.is_empty() => {
                Event::Storage(good_answer(&log.requests.remove(0), &put))
            }
            None if log.writer.next_tick().is_some() => {
                log.now = log.writer.next_tick().map_or(log.now, |tick| log.now.max(tick));
                Event::Tick
            }
            None => {
                assert!(open.is_empty(), "nothing is left to do, and waiters {open:?} wait");
                ended = true;
                log.writer.abandon();
                Event::Tick
            }
        };
        if log.calls == waiter {
            open.insert(waiter);
        }
        log.writer.handle(log.now, event);
        log.writer.check();
        while let Some(effect) = log.writer.poll_effect() {
            trace.push(format!("{effect:?}"));
            match &effect {
                Effect::Ack { waiter, answer } => {
                    assert!(open.remove(waiter), "waiter {waiter} was answered twice");
                    if let Answer::Appended(Appended::One(id)) = answer {
                        appended.push((*waiter, id.0));
                    }
                    match answer {
                        Answer::Appended(ids) => model.acknowledged += ids.ids().len() as u64,
                        Answer::Done if model.stops.contains(waiter) => model.stopped(&log, 0),
                        Answer::Done | Answer::Verdict(_) => {}
                    }
                }
                Effect::FailWaiters { waiters, error, .. } => {
                    for waiter in waiters {
                        assert!(open.remove(waiter), "waiter {waiter} was answered twice");
                        match error {
                            _ if !model.stops.contains(waiter) => {}
                            Error::Lost { entries, .. } => model.stopped(&log, *entries),
                            error => {
                                assert!(matches!(error, Error::Poisoned { .. }), "{error}");
                                model.stopped(&log, 0);
                            }
                        }
                    }
                }
                Effect::Storage(effect) => {
                    if let StorageEffect::PutObject { payload, .. } = effect {
                        put.insert(sequence_of(effect), payload.clone());
                    }
                    log.requests.push(effect.clone());
                    let puts = log
                        .requests
                        .iter()
                        .filter(|effect| matches!(effect, StorageEffect::PutObject { .. }));
                    assert!(puts.count() <= log.writer.options().max_in_flight as usize);
                }
                Effect::Durable { .. } | Effect::Notice(_) => {}
            }
        }
        if matches!(step, Some(Step::Tick { .. })) {
            let due = log.writer.next_tick().is_some_and(|at| at <= log.now);
            assert!(!due, "ticked, and due again");
        }
    }
    assert!(appended.is_sorted(), "acknowledged out of order: {appended:?}");
    let sequences = appended.iter().map(|(_, id)| id >> 20);
    assert!(sequences.is_sorted(), "ids do not ascend: {appended:?}");
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_waiter_is_answered_once_and_the_same_events_give_the_same_effects(
        steps in prop::collection::vec(step(), 1..120),
        max_in_flight in 1..4u32,
        next in prop_oneof![2 => Just(6u64), 1 => (1u64 << 44) - 6..=(1u64 << 44)],
        keys in 1..4usize,
        reclaim_interval in prop_oneof![Just(0u64), Just(1000), Just(60_000)],
        max_deletes_in_flight in 1..3u32,
        max_batch_bytes in prop_oneof![Just(1u64), Just(300), Just(1 << 20)],
        retry_for in prop_oneof![Just(0u64), Just(300), Just(2000)],
        at_once in any::<bool>(),
        enqueued in any::<bool>(),
        max_unpersisted_bytes in prop_oneof![Just(1u64), Just(400), Just(64 << 20)],
        max_unpersisted_age in prop_oneof![Just(1u64), Just(300), Just(8000)],
        stop_deadline in prop_oneof![Just(0u64), Just(300), Just(10_000)],
    ) {
        let options = Options {
            ack_mode: if enqueued { AckMode::Enqueued } else { AckMode::Durable },
            max_unpersisted_bytes,
            max_unpersisted_age: Duration::from_millis(max_unpersisted_age),
            stop_deadline: Duration::from_millis(stop_deadline),
            max_in_flight,
            reclaim_interval: Duration::from_millis(reclaim_interval),
            max_deletes_in_flight,
            max_batch_bytes,
            retry_for: Duration::from_millis(retry_for),
            linger: Duration::from_millis(if at_once { 0 } else { 1 }),
            flush_interval: Duration::from_millis(if at_once { 0 } else { 100 }),
            ..Options::default()
        };
        let first = run(options.clone(), &steps, next, keys);
        prop_assert_eq!(first, run(options, &steps, next, keys));
    }
}
