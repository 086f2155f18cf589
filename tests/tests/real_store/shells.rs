//! Both shells, from threads without a runtime: the client of the store needs a reactor, which each
//! of them has.

use std::thread;

use sealog_core::{EntryId, RegionId};
use sealog_shell::ReadItem;
use sealog_tests::place::{Place, named};
use sealog_tests::shells::{Blocking, Log, Tokio};

#[test]
fn threads_have_a_log_through_the_blocking_shell() {
    two_lives::<Blocking>("shells-blocking");
}

#[test]
fn threads_have_a_log_through_the_tokio_shell() {
    two_lives::<Tokio>("shells-tokio");
}

fn two_lives<L: Log>(test: &str) {
    const REGIONS: u64 = 4;
    let Some(place) = Place::bucket(test) else { return };
    for life in 1..=2 {
        let location = place.location();
        let log = L::open(location.store, location.prefix.as_str(), named(format!("life {life}")))
            .unwrap();
        thread::scope(|scope| {
            for region in 0..REGIONS {
                let log = &log;
                scope.spawn(move || {
                    for n in 0..5 {
                        log.append(RegionId(region), format!("{region} {life} {n}")).unwrap();
                    }
                });
            }
        });
        for region in 0..REGIONS {
            let read =
                log.read(RegionId(region), EntryId::ZERO).into_iter().map(|item| match item {
                    Ok(ReadItem::Entry(entry)) => entry.payload,
                    other => panic!("{other:?}"),
                });
            let wanted = (1..=life).flat_map(|life| (0..5).map(move |n| (life, n)));
            let wanted: Vec<_> =
                wanted.map(|(life, n)| format!("{region} {life} {n}").into_bytes()).collect();
            assert_eq!(read.collect::<Vec<_>>(), wanted);
        }
        // The first life ends as by a crash.
        if life == 2 {
            log.stop().unwrap();
        }
    }
}
