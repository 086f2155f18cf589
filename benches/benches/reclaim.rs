//! What the events that move the reclaim boundary cost the machine: it should not depend on how many
//! objects and regions the log holds.
//!
//! The log is a window of so many indexed objects, of so many regions. Each round makes one object
//! more, makes the oldest one obsolete, and takes it away: of each round, one event is timed. With
//! many regions, what an event touches was last touched long ago: what it costs more then are
//! the processor's cache misses.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{
    Append, Effect, EntryId, Event, ObjectSeq, Options, Prefix, RegionId, StorageAnswer,
    StorageEffect, Time, Writer,
};

/// The events of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    /// The answer to a put, by which an object is indexed.
    Indexed,
    /// The oldest entry of a region becomes obsolete, by which the boundary rises.
    Obsolete,
    /// The answer to a delete, by which an object leaves the index.
    Deleted,
}

struct Log {
    writer: Writer<u64>,
    regions: u64,
    window: u64,
    /// The sequence of the next object.
    next: u64,
    first: u64,
    payload: Bytes,
}

/// The answer of a store that does all that it is asked for.
fn good(effect: &StorageEffect) -> StorageAnswer {
    let id = effect.id();
    match effect {
        StorageEffect::List { .. } => StorageAnswer::Listed { id, result: Ok(Vec::new()) },
        StorageEffect::PutObject { .. } => StorageAnswer::CreateResult { id, result: Ok(()) },
        StorageEffect::DeleteObjects { keys, .. } => {
            let deleted = keys.iter().map(|key| (key.clone(), Ok(())));
            StorageAnswer::DeleteResult { id, results: deleted.collect() }
        }
        other => panic!("{other:?} is asked of nothing"),
    }
}

fn open() -> Writer<u64> {
    let options = Options {
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        verify_store: false,
        ..Options::default()
    };
    let identity = Identity { nonce: [1; 16], opened_at_millis: 0, default_name: "bench".into() };
    let prefix = Prefix::new("bench").expect("a valid prefix");
    let mut opening = Opening::new(Time::ZERO, prefix, options, identity).expect("valid options");
    loop {
        match opening.poll_effect().expect("an opening in which nothing hangs") {
            OpeningEffect::Storage(effect) => {
                opening.handle(Time::ZERO, OpeningEvent::Storage(good(&effect)));
            }
            OpeningEffect::Opened(recovered) => return Writer::new(Time::ZERO, *recovered),
            OpeningEffect::Failed(error) => panic!("{error}"),
            OpeningEffect::Notice(_) => {}
        }
    }
}

impl Log {
    fn of(window: u64, regions: u64) -> Log {
        let payload = Bytes::from_static(b"some payload");
        let mut log = Log { writer: open(), regions, window, next: 1, first: 1, payload };
        for _ in 0..window {
            log.append();
            let mut spent = Duration::ZERO;
            log.answer(None, &mut spent);
        }
        log
    }

    fn region(&self, sequence: u64) -> RegionId {
        RegionId(sequence % self.regions)
    }

    fn append(&mut self) {
        let append = Append::One(self.region(self.next), self.payload.clone());
        self.writer.handle(Time::ZERO, Event::Append { append, waiter: 1 });
        self.writer.handle(Time::ZERO, Event::Tick);
        self.next += 1;
    }

    /// Answers all that is asked, and times what is to be timed of it.
    fn answer(&mut self, timed: Option<Timed>, spent: &mut Duration) {
        while let Some(effect) = self.writer.poll_effect() {
            let Effect::Storage(effect) = black_box(effect) else { continue };
            let event = match effect {
                StorageEffect::PutObject { .. } => Timed::Indexed,
                _ => Timed::Deleted,
            };
            let answer = good(&effect);
            let began = Instant::now();
            self.writer.handle(Time::ZERO, Event::Storage(answer));
            if Some(event) == timed {
                *spent += began.elapsed();
            }
        }
    }

    fn round(&mut self, timed: Timed, spent: &mut Duration) {
        let region = self.region(self.first);
        let id = EntryId::new(ObjectSeq(self.first), 1).expect("in range");
        self.first += 1;
        let began = Instant::now();
        self.writer.handle(Time::ZERO, Event::Obsolete { region, id, waiter: 2 });
        if timed == Timed::Obsolete {
            *spent += began.elapsed();
        }
        self.append();
        self.answer(Some(timed), spent);
    }
}

fn reclaim(criterion: &mut Criterion) {
    for timed in [Timed::Indexed, Timed::Obsolete, Timed::Deleted] {
        let mut group = criterion.benchmark_group(format!("{timed:?}"));
        for (window, regions) in [(100, 10), (100_000, 10), (100_000, 10_000)] {
            let mut log = Log::of(window, regions);
            let id = BenchmarkId::from_parameter(format!("{window} objects, {regions} regions"));
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    (0..rounds).for_each(|_| log.round(timed, &mut spent));
                    let objects = log.writer.stats().indexed_objects;
                    assert!((log.window..log.window + 4).contains(&objects), "{objects} objects");
                    spent
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, reclaim);
criterion_main!(benches);
