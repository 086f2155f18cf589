//! Answers that are lost, and puts that land when nobody waits for them any more.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use sealog_tests::place::{Place, named};
use sealog_tests::proxy::{Gate, Proxy, Treatment};
use sealog_tokio::{Options, Outcome};

use crate::{append, history, history_of};

/// The client repeats the put, and is told that the key exists.
#[tokio::test]
async fn a_put_whose_answer_is_lost_is_recognised_as_ones_own() {
    let Some(place) = Place::bucket("lost-answers") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    let way = place.by_way_of(proxy.endpoint());
    let seen = Mutex::new(BTreeSet::new());
    proxy.treat(move |head| {
        let first = head.method == "PUT" && seen.lock().unwrap().insert(head.target.clone());
        if first { Treatment::LoseAnswer } else { Treatment::Pass }
    });
    let mut acked = Vec::new();
    for author in 0..2 {
        let wal = way.open(named(format!("writer {author}"))).await.unwrap();
        for counter in 0..3 {
            acked.push(append(&wal, 1, author, counter).await.unwrap());
        }
        assert_eq!(history(&wal).await, history_of(&acked));
        assert_eq!(wal.stats().await.unwrap().rolled_back_batches_total, 0);
    }
    assert_eq!(history(&place.open(named("reader")).await.unwrap()).await, history_of(&acked));
}

/// The client gives up, and what stands at the key tells.
#[tokio::test]
async fn a_put_none_of_whose_answers_arrives_is_acknowledged_when_its_header_is_there() {
    let Some(place) = Place::bucket("no-answers") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    let wal = place.by_way_of(proxy.endpoint()).open(named("writer")).await.unwrap();
    proxy.treat(|head| if head.method == "PUT" { Treatment::LoseAnswer } else { Treatment::Pass });
    let acked = [append(&wal, 1, 1, 0).await.unwrap(), append(&wal, 1, 1, 1).await.unwrap()];
    let stats = wal.stats().await.unwrap();
    assert_eq!((stats.created_objects_total, stats.rolled_back_batches_total), (2, 0));
    drop(wal);
    assert_eq!(history(&place.open(named("reader")).await.unwrap()).await, history_of(&acked));
}

/// The writer rolls the batch back and goes on behind it, if it appends again.
#[tokio::test]
async fn a_put_that_lands_after_its_writer_gave_it_up_is_no_history() {
    let Some(place) = Place::bucket("given-up") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    for (goes_on, lands_first) in [(true, true), (true, false), (false, false)] {
        let situation = format!("goes on {goes_on}, lands before the next opening {lands_first}");
        let place = place.log(format!("{goes_on}-{lands_first}"));
        let options = Options {
            // Long enough for what is not held.
            request_timeout: Duration::from_secs(2),
            retry_for: Duration::ZERO,
            ..named("writer")
        };
        let wal = place.by_way_of(proxy.endpoint()).open(options).await.unwrap();
        let mut acked = vec![append(&wal, 1, 1, 0).await.unwrap()];
        let gate = Gate::new();
        proxy.treat_next_put(Treatment::Hold(gate.clone()));
        let error = append(&wal, 1, 1, 1).await.unwrap_err();
        assert!(error.is_retryable(), "{situation}: {error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{situation}");
        if goes_on {
            acked.push(append(&wal, 1, 1, 2).await.unwrap());
        }
        let land = async || {
            gate.open();
            gate.landed().await;
        };
        if lands_first {
            land().await;
        }
        let second = place.open(named("second")).await.unwrap();
        assert_eq!(history(&second).await, history_of(&acked), "{situation}");
        if !lands_first {
            land().await;
        }
        acked.push(append(&second, 1, 2, 0).await.unwrap());
        assert_eq!(history(&second).await, history_of(&acked), "{situation}");
        drop(second);
        let third = place.open(named("third")).await.unwrap();
        assert_eq!(history(&third).await, history_of(&acked), "{situation}");
        drop(wal);
    }
}
