//! Regions come and go: what the log knows of a region is dropped with the last that is left of it
//! (DESIGN.md section 9), so that a million of them, one after the other, do not grow its memory.

use std::time::Duration;

use allocation_counter::measure;
use bytes::Bytes;
use sealog_core::event::{Append, Effect, Event, StorageAnswer, StorageEffect};
use sealog_core::opening::{Identity, Opening, OpeningEffect, OpeningEvent};
use sealog_core::{Options, Prefix, RegionId, StoreError, StoreErrorKind, Time, Writer};
use sealog_tests::model::ModelStore;

/// A log over a store that does what it is asked for at once.
struct Log {
    writer: Writer<()>,
    store: ModelStore,
    now: Time,
    /// Creates fail as if the store were gone.
    down: bool,
}

impl Log {
    fn open() -> Log {
        let options = Options {
            linger: Duration::ZERO,
            flush_interval: Duration::ZERO,
            retry_for: Duration::ZERO,
            ..Options::default()
        };
        let identity =
            Identity { nonce: [1; 16], opened_at_millis: 0, default_name: "churn".into() };
        let prefix = Prefix::new("churn").unwrap();
        let mut opening = Opening::new(Time::ZERO, prefix, options, identity).unwrap();
        let mut store = ModelStore::new();
        loop {
            match opening.poll_effect().expect("an opening that goes on") {
                OpeningEffect::Storage(effect) => {
                    let answer = store.apply(&effect);
                    opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
                }
                OpeningEffect::Opened(recovered) => {
                    let writer = Writer::new(Time::ZERO, *recovered);
                    return Log { writer, store, now: Time::ZERO, down: false };
                }
                OpeningEffect::Failed(error) => panic!("{error}"),
                OpeningEffect::Notice(_) => {}
            }
        }
    }

    fn handle(&mut self, event: Event<()>) {
        self.now = self.now.after(Duration::from_millis(1));
        self.writer.handle(self.now, event);
        self.writer.handle(self.now, Event::Tick);
        while let Some(effect) = self.writer.poll_effect() {
            if let Effect::Storage(effect) = effect {
                let answer = self.carry_out(&effect);
                self.writer.handle(self.now, Event::Storage(answer));
            }
        }
    }

    fn carry_out(&mut self, effect: &StorageEffect) -> StorageAnswer {
        match effect {
            StorageEffect::PutObject { .. } if self.down => {
                effect.failed(StoreError::new(StoreErrorKind::Refused))
            }
            effect => self.store.apply(effect),
        }
    }

    fn fill(&mut self, region: RegionId) {
        for payload in ["first", "second"] {
            let append = Append::One(region, Bytes::from_static(payload.as_bytes()));
            self.handle(Event::Append { append, waiter: () });
        }
    }
}

/// How a region goes away.
#[derive(Clone, Copy, Debug)]
enum End {
    Obsolete,
    Released,
    ReleasedInFull,
    /// Nothing of it ever became durable.
    RolledBack,
}

fn come_and_go(log: &mut Log, region: u64, end: End) {
    let region = RegionId(region);
    log.down = matches!(end, End::RolledBack);
    log.fill(region);
    log.down = false;
    match end {
        End::Obsolete => {
            let id = log.writer.durable(region);
            log.handle(Event::Obsolete { region, id, waiter: () });
        }
        End::Released => log.handle(Event::Release { region, waiter: () }),
        End::ReleasedInFull => log.handle(Event::ReleaseAll { region, waiter: () }),
        End::RolledBack => {
            let id = log.writer.latest(region);
            log.handle(Event::Obsolete { region, id, waiter: () });
        }
    }
}

fn kept_by(log: &mut Log, regions: std::ops::Range<u64>, end: End) -> i64 {
    measure(|| regions.for_each(|region| come_and_go(log, region, end))).bytes_current
}

fn stays_flat(end: End, regions: u64) {
    let mut log = Log::open();
    let early = kept_by(&mut log, 0..1_000, end);
    let late = kept_by(&mut log, 1_000..regions, end);
    let stats = log.writer.stats();
    // The lists that the first thousand needed are there already.
    assert!(late <= 4 << 10, "{end:?}: {early} bytes for a thousand regions, {late} for the rest");
    assert!(stats.indexed_objects < 10, "{end:?}: {} objects", stats.indexed_objects);
    assert!(log.store.objects().count() < 10, "{end:?}");
    assert_eq!(log.writer.regions().count(), 0);
    log.writer.check();
}

#[test]
fn a_million_regions_that_come_and_go_leave_nothing_behind() {
    stays_flat(End::Obsolete, 1_000_000);
}

#[test]
fn regions_that_are_released_leave_nothing_behind() {
    stays_flat(End::Released, 50_000);
    stays_flat(End::ReleasedInFull, 50_000);
}

#[test]
fn regions_of_which_all_is_rolled_back_leave_nothing_behind() {
    let mut log = Log::open();
    let kept = measure(|| {
        (0..20_000).for_each(|region| come_and_go(&mut log, region, End::RolledBack));
        // Until something is durable behind them, a restart could find one of them.
        log.fill(RegionId(20_000));
        come_and_go(&mut log, 20_000, End::Obsolete);
        come_and_go(&mut log, 20_001, End::Obsolete);
    });
    assert!(kept.bytes_current <= 8 << 10, "{} bytes", kept.bytes_current);
    // The keys of what failed were deleted, unseen.
    assert!(log.store.objects().count() < 10);
}
