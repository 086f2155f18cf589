//! What one event costs the machine while appends wait for their place: it should not depend on how
//! many wait.
//!
//! Each iteration is the life of one object: an append that queues, the answer to a put, which
//! lets the longest waiting append in, and a tick.

use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::options::AckMode;
use sealog_core::{
    Append, Effect, Event, Options, Prefix, RegionId, StorageAnswer, StorageEffect, Time, Writer,
};

/// A writer of a new log that takes one append at a time.
fn open() -> Writer<u64> {
    let options = Options {
        ack_mode: AckMode::Enqueued,
        max_unpersisted_bytes: 1,
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

/// The answer of a store in which nothing is.
fn good(effect: &StorageEffect) -> StorageAnswer {
    let id = effect.id();
    match effect {
        StorageEffect::List { .. } => StorageAnswer::Listed { id, result: Ok(Vec::new()) },
        StorageEffect::PutObject { .. } => StorageAnswer::CreateResult { id, result: Ok(()) },
        other => panic!("{other:?} is asked of nothing"),
    }
}

fn append(writer: &mut Writer<u64>, payload: &Bytes) {
    let append = Append::One(RegionId(1), payload.clone());
    writer.handle(Time::ZERO, Event::Append { append, waiter: 1 });
}

/// The answer to the put that the machine asks for.
fn put(writer: &mut Writer<u64>) -> Option<StorageAnswer> {
    let mut answer = None;
    while let Some(effect) = writer.poll_effect() {
        if let Effect::Storage(effect) = black_box(effect) {
            answer = Some(good(&effect));
        }
    }
    answer
}

fn queued(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an object while appends wait");
    for waiting in [10, 1_000_000] {
        let payload = Bytes::from_static(b"some payload");
        let mut writer = open();
        (0..=waiting).for_each(|_| append(&mut writer, &payload));
        writer.handle(Time::ZERO, Event::Tick);
        let mut answer = put(&mut writer);
        group.bench_function(BenchmarkId::from_parameter(waiting), |bencher| {
            bencher.iter(|| {
                append(&mut writer, &payload);
                let answered = answer.take().expect("a put is under way");
                writer.handle(Time::ZERO, Event::Storage(answered));
                writer.handle(Time::ZERO, Event::Tick);
                black_box((writer.accepts_appends(), writer.next_tick()));
                answer = put(&mut writer);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queued);
criterion_main!(benches);
