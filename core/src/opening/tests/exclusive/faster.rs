//! Rule 2, claims ahead: the newest opening wins also against a writer that makes objects faster than
//! an opening can list, read and claim.

use std::{println, vec};

use super::*;
use crate::types::EntryId;

/// A store with a writer at work, and how long each of its answers takes, in microseconds.
#[derive(Clone, Copy)]
struct Pace {
    list: u64,
    get: u64,
    put: u64,
    /// From one object of the writer to the next.
    interval: u64,
    unordered: bool,
}

/// What became of an opening beside that writer.
struct Race {
    result: Result<Box<Recovered>, Error>,
    /// How often it listed, the look aside.
    rounds: usize,
    took: Duration,
    /// How many objects the writer made meanwhile, all of them acknowledged.
    made: u64,
    objects: Objects,
}

/// So many objects are there at the beginning.
const BEFORE: u64 = 100;

/// The writer stops at the first object of a later epoch that stands at its next key.
struct Writing {
    store: Store,
    interval: u64,
    next: u64,
    due: u64,
    fenced: bool,
}

impl Writing {
    fn go_on(&mut self, until: u64) {
        while !self.fenced && self.due <= until {
            self.fenced = self.store.objects.contains_key(&key(self.next));
            if !self.fenced {
                let modified = self.due / 1_000;
                self.store.add(entry(self.next));
                self.store.modified.insert(key(self.next), modified);
                self.next += 1;
                self.due += self.interval;
            }
        }
    }
}

fn entry(sequence: u64) -> Make {
    make(sequence, 1).after(sequence - 1, 1).entry(7, 10)
}

/// A listing shows all that was there when it began. In no order, it also shows some of what came
/// until it ended.
fn listing(began: StorageAnswer, ended: StorageAnswer, unordered: bool) -> StorageAnswer {
    match (began, ended) {
        (StorageAnswer::Listed { id, result: Ok(began) }, StorageAnswer::Listed { result, .. }) => {
            let mut shown: Vec<_> = result.unwrap();
            let mut nth = 0;
            shown.retain(|listed| {
                nth += 1;
                began.contains(listed) || unordered && nth % 2 == 0
            });
            StorageAnswer::Listed { id, result: Ok(shown) }
        }
        (answer, _) => answer,
    }
}

fn race(pace: Pace) -> Race {
    let history = (1..BEFORE).map(entry).chain([make(0, 1).writer("a")]);
    let store = Store { unordered: pace.unordered, ..Store::of(history) };
    let mut writing =
        Writing { store, interval: pace.interval, next: BEFORE, due: 0, fenced: false };
    let mut opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity()).unwrap();
    // When each is answered, and what a listing showed when it began.
    let mut under_way: Vec<(u64, StorageEffect, StorageAnswer)> = Vec::new();
    let (mut now, mut rounds) = (0, 0);
    let result = loop {
        let mut end = None;
        while let Some(effect) = opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => {
                    let takes = match operation_of(&effect) {
                        Operation::List => pace.list,
                        Operation::Create => pace.put,
                        _ => pace.get,
                    };
                    let is_look = matches!(opening.phase, Phase::Looking(_));
                    let begins = matches!(effect, StorageEffect::List { after: None, .. });
                    rounds += usize::from(begins && !is_look);
                    let began = match operation_of(&effect) {
                        Operation::List => writing.store.carry_out(&effect),
                        _ => effect.failed(StoreError::new(StoreErrorKind::Transient)),
                    };
                    under_way.push((now + takes, effect, began));
                }
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(recovered) => end = Some(Ok(recovered)),
                OpeningEffect::Failed(error) => end = Some(Err(error)),
            }
        }
        if let Some(end) = end {
            break end;
        }
        let first = under_way.iter().enumerate().min_by_key(|(_, (due, ..))| *due);
        let first = first.map(|(at, (due, ..))| (at, *due));
        let tick = opening.next_tick().map(|due| due.as_nanos() / 1_000);
        match (first, tick) {
            (Some((at, due)), tick) if tick.is_none_or(|tick| due <= tick) => {
                now = due;
                writing.go_on(now);
                let (_, effect, began) = under_way.remove(at);
                let answer = writing.store.carry_out(&effect);
                let answer = match operation_of(&effect) {
                    Operation::List => listing(began, answer, pace.unordered),
                    _ => answer,
                };
                opening.handle(Time::from_nanos(now * 1_000), OpeningEvent::Storage(answer));
            }
            (_, Some(tick)) => {
                now = now.max(tick);
                writing.go_on(now);
                opening.handle(Time::from_nanos(now * 1_000), OpeningEvent::Tick);
            }
            _ => panic!("it waits for nothing"),
        }
    };
    writing.go_on(now + 10 * pace.interval);
    let took = Duration::from_micros(now);
    let made = writing.next - BEFORE;
    Race { result, rounds, took, made, objects: writing.store.objects }
}

/// What holds of every race: the opening has the log, with all that the writer had made.
#[expect(clippy::print_stdout, reason = "the table is wanted")]
fn won(pace: Pace, name: &str) -> Race {
    let race = race(pace);
    let Race { rounds, took, made, .. } = &race;
    println!("| {name:<44} | {rounds:>6} | {:>8} ms | {made:>7} |", took.as_millis());
    let recovered = match &race.result {
        Ok(recovered) => recovered,
        Err(error) => panic!("{name}: {error}"),
    };
    let last = BEFORE + made - 1;
    assert_eq!(
        recovered.catalog.durable(crate::types::RegionId(7)),
        EntryId::new(ObjectSeq(last), 1).unwrap(),
        "{name}: the last that was acknowledged"
    );
    assert_eq!(start_of(&race.objects[&key(recovered.start.sequence.0)]).0.predecessor, {
        Some(link(last, 1))
    });
    race
}

#[test]
fn the_newest_opening_has_the_log_within_six_rounds_whatever_the_latencies() {
    for list in [20, 100, 200] {
        for get in [20, 200] {
            for put in [20, 200] {
                for per_second in [1, 10, 100] {
                    let [list_us, get_us, put_us] = [list, get, put].map(|ms| ms * 1_000);
                    let interval = 1_000_000 / per_second;
                    let pace = Pace {
                        list: list_us,
                        get: get_us,
                        put: put_us,
                        interval,
                        unordered: false,
                    };
                    let name = std::format!(
                        "LIST {list}, GET {get}, PUT {put} ms, {per_second} objects/s"
                    );
                    let race = won(pace, &name);
                    assert!(race.rounds <= 6, "{name}: {} rounds", race.rounds);
                }
            }
        }
    }
}

/// A directory lists in no order, so a listing counts only once it settles, which it does not while
/// the writer runs.
#[test]
fn a_writer_at_full_speed_in_a_store_that_lists_in_no_order_meets_a_claim() {
    for (per_second, list) in [(100, 5), (1_000, 5), (2_000, 5), (2_000, 20)] {
        let (list, get, put) = (list * 1_000, 300, 1_000);
        let pace = Pace { list, get, put, interval: 1_000_000 / per_second, unordered: true };
        let name = std::format!("directory, {per_second} objects/s, LIST {} ms", list / 1_000);
        let race = won(pace, &name);
        assert!(race.rounds <= 6, "{name}: {} rounds", race.rounds);
    }
}

/// Whatever claims are put, those ahead too, another writer's object is there first.
#[test]
fn what_meets_every_claim_is_given_way_after_open_attempts() {
    for open_attempts in [1, 2, 5] {
        let mut store = free();
        for at in 1..2_000 {
            store.overtaken(at, entry(at).bytes());
        }
        let run = open_with(Options { open_attempts, ..Options::default() }, store);
        let (lost_at, epoch, writer) = contended(&run);
        assert_eq!((epoch, writer), (Epoch(1), Some("a")));
        assert!(run.store.objects.contains_key(&lost_at));
        assert_eq!(run.restarts(), open_attempts as usize);
        assert_eq!(run.times(Operation::List).len(), open_attempts as usize + 1);
    }
}

/// The holes below a late object are closed with one listing, 64 at a time; what is left of them when
/// an opening dies is less for the next.
#[test]
fn a_late_object_far_above_the_tip_costs_a_claim_for_each_hole_and_no_listing() {
    let late = || Store::of([make(0, 1).writer("a"), entry(1_000)]);
    let run = open(late());
    assert_eq!(run.opened().start, link(1_001, 1_002));
    assert_eq!(run.claims(), (1..1_000).collect::<Vec<_>>());
    // The second and the third show 1,000 keys, so what comes behind is asked for.
    assert_eq!(run.times(Operation::List).len(), 5);
    assert_eq!(run.restarts(), 0);
    assert_eq!(run.most_at_once, 64);

    let mut store = late();
    store.fault(Operation::Create, key(500), Fault::Fails(StoreErrorKind::Refused));
    let died = open(store);
    assert!(!died.failed().is_retryable());
    let claimed = died.store.objects.len() - 2;
    assert!((430..=563).contains(&claimed), "{claimed}");
    let run = open(died.store);
    assert_eq!(run.claims().len(), 999 - claimed);
    assert_eq!(run.opened().start, link(1_001, 1_002));
}

/// No log leaves so many sequences free: each would have to be claimed.
#[test]
fn a_gap_that_no_log_leaves_is_not_begun() {
    let far = (1 << 24) + 100;
    let run = open(Store::of([make(0, 1).writer("a"), entry(far)]));
    assert_eq!(corrupted(&run), key(far));
    assert!(run.puts().is_empty());
    let text = run.failed().to_string();
    assert!(text.contains("16777315 free") && text.contains("Nothing was changed"), "{text}");
}

/// Each answer "exists" with nothing there costs a delay, and in the end the error says so.
#[test]
fn a_claim_that_exists_where_nothing_is_shown_is_delayed_and_named() {
    let mut store = free();
    for _ in 0..40 {
        store.fault(Operation::Create, key(1), Fault::Fails(StoreErrorKind::Exists));
    }
    let run = open(store);
    let error = run.failed();
    assert!(matches!(error, Error::Store { operation: Operation::Create, key: at, .. }
        if *at == key(1)));
    assert!(error.is_retryable());
    assert!(error.to_string().contains("no listing shows it"), "{error}");
    assert_eq!(run.claims(), vec![1; 17]);
    let millis: Vec<_> = run.times(Operation::Create).iter().map(|d| d.as_millis()).collect();
    assert_eq!(millis[..8], [0, 100, 300, 700, 1500, 3100, 6300, 11300]);
    assert_eq!(run.times(Operation::List).len(), 17);

    // Once is only a delay.
    let mut store = free();
    store.fault(Operation::Create, key(1), Fault::Fails(StoreErrorKind::Exists));
    let run = open(store);
    assert_eq!((run.opened().start, run.claims()), (link(2, 3), vec![1, 1]));
    assert_eq!(run.opened().stats.took, Duration::from_millis(100));
}
