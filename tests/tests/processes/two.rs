//! A second process opens the log while the first appends.

use sealog_tests::child::{Kind, Order, Report, Settings};
use sealog_tests::place::Place;

use crate::{recovered, start, tell};

/// At least so many entries are acknowledged before the second opens.
const BEFORE: usize = 40;
const WINDOW: u64 = 8;
/// An opening that a running writer overtakes again and again fails, and may be repeated.
const OPENINGS: u32 = 50;

#[tokio::test]
async fn the_first_of_two_processes_over_a_directory_loses_the_log_and_no_entry() {
    take_over(Place::directory(), "directory", 2).await;
}

#[tokio::test]
async fn the_first_of_two_processes_over_s3_loses_the_log_and_no_entry() {
    if let Some(place) = Place::bucket("two-processes") {
        take_over(place, "S3", 20).await;
    }
}

async fn take_over(place: Place, kind: &str, flush_millis: u64) {
    let mut first = start(&place);
    let append =
        Order::Append { regions: vec![1, 2], author: 1, from: 0, count: u64::MAX, window: WINDOW };
    let settings = Settings { flush_millis, ..Settings::default() };
    first.order(&[Order::open(&place, "the first", settings), append]).await;
    let first_epoch = first.opened().await.unwrap();
    let mut acked = Vec::new();
    while acked.len() < BEFORE {
        match first.next().await {
            Report::Acked(entry) => acked.push(entry),
            other => panic!("{other:?}"),
        }
    }

    let mut second = start(&place);
    let mut openings = 1;
    let second_epoch = loop {
        match second.open(&place, "the second").await {
            Ok(epoch) => break epoch,
            Err(failure) if failure.kind == Kind::Contended && openings < OPENINGS => openings += 1,
            Err(failure) => panic!("{failure:?}"),
        }
    };
    assert!(second_epoch > first_epoch);
    // As it was recovered: the first one is still at it, and must not get anything into it.
    let history = second.read().await.unwrap();

    let appended = first.appended().await;
    acked.extend(appended.acked);
    history.assert_holds(&acked, "the second opened");
    // The first may not have been told of all that is there. What is there beyond that was on its
    // way, in both regions.
    assert!(history.len() <= acked.len() + 2 * WINDOW as usize);
    assert!(!appended.failures.is_empty());
    for failure in &appended.failures {
        assert_eq!(failure.kind, Kind::Fenced, "{failure:?}");
        assert_eq!(failure.writer.as_deref(), Some("the second"), "{failure:?}");
        assert!(failure.text.contains("the second"), "{failure:?}");
    }
    first.order(&[Order::append(1, 1, 1_000_000..1_000_001)]).await;
    let appended = first.appended().await;
    assert_eq!(appended.acked, []);
    let failure = &appended.failures[0];
    assert_eq!((failure.kind, failure.poisoned), (Kind::Fenced, true), "{failure:?}");
    assert_eq!(failure.writer.as_deref(), Some("the second"), "{failure:?}");

    second.order(&[Order::append(1, 2, 0..5)]).await;
    let appended = second.appended().await;
    assert_eq!((appended.acked.len(), appended.failures.len()), (5, 0));
    let later = recovered(&place, "after both").await;
    assert!(later.continues(&history));
    later.assert_holds(&acked, "after both");
    later.assert_holds(&appended.acked, "after both");
    assert_eq!(later.len(), history.len() + 5);
    tell(&format!(
        "two processes, {kind}: the second opened at its attempt {openings}; the first had {} \
         entries acknowledged, the second found {}",
        acked.len(),
        history.len()
    ));
}
