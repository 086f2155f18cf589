use sealog_tokio::{Error, Options, Outcome, Wal};

use crate::store::{Asked, TestStore};
use crate::{A, B, PREFIX, entries, one_by_one, payloads};

#[tokio::test(start_paused = true)]
async fn stop_is_answered_again_and_again_and_to_all_at_once() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    store.hold(Asked::Put);
    let submitted = wal.submit(A, "1");
    while store.count(Asked::Put) < 3 {
        tokio::task::yield_now().await;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let stops: Vec<_> = (0..3)
        .map(|_| {
            let wal = wal.clone();
            tokio::spawn(async move { wal.stop().await })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert!(stops.iter().all(|stop| !stop.is_finished()), "a create is in flight");
    store.let_pass(1);
    for stop in stops {
        stop.await.unwrap().unwrap();
    }
    submitted.await.unwrap();
    wal.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_after_stop_fail_and_reads_go_on() {
    let wal = Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap();
    let id = wal.append(A, "1").await.unwrap();
    let mut watch = wal.watch_durable(A).await.unwrap();
    wal.stop().await.unwrap();

    let error = wal.append(A, "2").await.unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    let error = wal.append_batch(vec![]).await.unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
    assert!(matches!(wal.flush().await, Err(Error::Stopped)));
    assert!(matches!(wal.obsolete(A, id).await, Err(Error::Stopped)));
    assert!(matches!(watch.changed().await, Err(Error::Stopped)));
    let mut late = wal.watch_durable(A).await.unwrap();
    assert_eq!(late.get(), id);
    assert!(matches!(late.changed().await, Err(Error::Stopped)));

    assert_eq!(entries(&wal, A).await.unwrap(), [(id, "1".into())]);
    assert_eq!(wal.durable(A).await.unwrap(), id);
    assert_eq!(wal.latest(A).await.unwrap(), id);
    assert_eq!(wal.regions().await.unwrap().len(), 1);
    assert_eq!(wal.stats().await.unwrap().appends_total, 1);
}

#[tokio::test(start_paused = true)]
async fn stop_fails_what_is_not_under_way_and_is_not_held_up_by_it() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    store.hold(Asked::Put);
    let submitted: Vec<_> = (0..300).map(|n| wal.submit(A, format!("{n}"))).collect();
    let stopping = tokio::spawn({
        let wal = wal.clone();
        async move { wal.stop().await }
    });
    let mut submitted = submitted.into_iter();
    let under_way = submitted.next().unwrap();
    for append in submitted {
        let error = append.await.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
    }
    store.behave();
    store.let_pass(1);
    stopping.await.unwrap().unwrap();
    under_way.await.unwrap();
    drop(wal);
    let wal = Wal::open(store, PREFIX, Options::default()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["0"]);
}

#[tokio::test(start_paused = true)]
async fn while_appends_are_held_back_everything_else_is_answered() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    let id = wal.append(B, "b").await.unwrap();
    store.hold(Asked::Put);
    let submitted: Vec<_> = (0..100).map(|n| wal.submit(A, format!("{n}"))).collect();
    assert_eq!(payloads(&wal, B).await, ["b"]);
    assert_eq!(wal.durable(B).await.unwrap(), id);
    assert_eq!(wal.stats().await.unwrap().in_flight_creates, 1);
    assert!(wal.latest(A).await.unwrap() > wal.durable(A).await.unwrap());
    wal.obsolete(B, id).await.unwrap();
    assert_eq!(wal.regions().await.unwrap(), []);
    store.behave();
    store.let_pass(1);
    for append in submitted {
        append.await.unwrap();
    }
}
