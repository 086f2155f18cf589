//! What the log keeps alive while its creates are held, against what it reports as unpersisted: a
//! small payload must not keep the large buffer that it is a slice of.

use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use sealog_core::event::{Append, Effect, Event};
use sealog_core::format::COPY_LIMIT;
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{AckMode, Options, Prefix, RegionId, Time, Writer};
use sealog_tests::model::ModelStore;

/// Each payload is a slice of a buffer of its own, of this size.
const BUFFER: usize = 1 << 20;

fn open(options: Options) -> Writer<u64> {
    let mut store = ModelStore::new();
    let identity = Identity { nonce: [1; 16], opened_at_millis: 0, default_name: "memory".into() };
    let prefix = Prefix::new("memory").unwrap();
    let mut opening = Opening::new(Time::ZERO, prefix, options, identity).unwrap();
    loop {
        match opening.poll_effect() {
            Some(OpeningEffect::Storage(effect)) => {
                let answer = store.apply(&effect);
                opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
            }
            Some(OpeningEffect::Opened(recovered)) => return Writer::new(Time::ZERO, *recovered),
            Some(OpeningEffect::Failed(error)) => panic!("{error}"),
            Some(OpeningEffect::Notice(_)) => {}
            None => panic!("the opening hangs"),
        }
    }
}

/// Appends `total` bytes in payloads of `size`, to so many regions in turn, while creates are held.
/// Returns how much memory is kept for each byte that is reported.
fn kept(ack_mode: AckMode, size: usize, regions: u64, total: usize) -> f64 {
    let options = Options {
        ack_mode,
        max_batch_bytes: 1 << 20,
        max_unpersisted_bytes: 1 << 30,
        ..Options::default()
    };
    let mut writer = open(options);
    let mut held = Vec::new();
    let measured = measure(|| {
        for number in 0..(total / size) as u64 {
            let buffer = Bytes::from(vec![number as u8; BUFFER]);
            let payload = buffer.slice(BUFFER / 2..BUFFER / 2 + size);
            let append = Append::One(RegionId(number % regions), payload);
            let now = Time::ZERO.after(Duration::from_micros(number));
            writer.handle(now, Event::Append { append, waiter: number });
            while let Some(effect) = writer.poll_effect() {
                // A put that is under way; its chunks are those that the machine keeps.
                if let Effect::Storage(effect) = effect {
                    held.push(effect);
                }
            }
        }
    });
    let stats = writer.stats();
    assert_eq!(stats.stalled_appends_total, 0, "everything is admitted");
    assert!(stats.in_flight_creates > 0 && stats.created_objects_total == 0);
    measured.bytes_current as f64 / stats.unpersisted_bytes as f64
}

#[test]
fn memory_kept_alive_is_within_one_and_a_half_times_what_is_reported() {
    for ack_mode in [AckMode::Durable, AckMode::Enqueued] {
        for (size, regions) in
            [(1 << 10, 1), (1 << 10, 16), (4 << 10, 1), (4 << 10, 16), (COPY_LIMIT - 1, 16)]
        {
            let kept = kept(ack_mode, size, regions, 6 << 20);
            assert!(kept < 1.5, "{ack_mode:?}, {size} B, {regions} regions: {kept:.2}");
        }
    }
}

/// In `enqueued` nothing but the entries is kept, however small they are; in `durable` each append
/// has a waiter, and its ids, to be answered with.
#[test]
fn entries_of_few_bytes_are_kept_as_densely_where_nobody_waits() {
    let kept = kept(AckMode::Enqueued, 100, 4, 4 << 20);
    assert!(kept < 1.5, "{kept:.2}");
}
