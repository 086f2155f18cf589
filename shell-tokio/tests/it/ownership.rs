use futures_util::TryStreamExt;
use sealog_tokio::{Error, Options, Wal};

use crate::store::{Asked, TestStore};
use crate::{A, B, PREFIX, one_by_one, payloads};

fn named(name: &str) -> Options {
    Options { writer_name: Some(name.into()), ..Options::default() }
}

#[tokio::test(start_paused = true)]
async fn the_second_writer_takes_over_and_the_first_is_told_by_whom() {
    let store = TestStore::new();
    let first = Wal::open(store.clone(), PREFIX, named("alpha")).await.unwrap();
    first.append(A, "acknowledged").await.unwrap();
    let mut watch = first.watch_durable(A).await.unwrap();
    let second = Wal::open(store.clone(), PREFIX, named("beta on host 7")).await.unwrap();
    assert!(second.epoch() > first.epoch());

    let error = first.append(A, "too late").await.unwrap_err();
    let Error::Fenced { writer, theirs, epoch, .. } = error.error() else { panic!("{error}") };
    assert_eq!(writer.as_deref(), Some("beta on host 7"));
    assert_eq!(*epoch, first.epoch());
    // It met the other's claim or its start object, whichever stood in its way.
    assert!(*theirs > first.epoch() && *theirs <= second.epoch(), "{error}");
    assert!(error.to_string().contains("\"beta on host 7\""), "{error}");
    assert!(!error.is_retryable());

    let error = first.append(A, "later still").await.unwrap_err();
    let Error::Poisoned { cause } = error.error() else { panic!("{error}") };
    assert!(matches!(**cause, Error::Fenced { .. }), "{cause}");
    assert!(error.to_string().contains("beta on host 7"), "{error}");
    let ended = watch.changed().await.unwrap_err();
    assert!(ended.to_string().contains("beta on host 7"), "{ended}");
    assert!(matches!(first.flush().await, Err(Error::Poisoned { .. })));
    assert_eq!(payloads(&first, A).await, ["acknowledged"], "reads go on");
    assert!(matches!(first.stop().await, Err(Error::Poisoned { .. })));
    assert!(matches!(first.stop().await, Err(Error::Poisoned { .. })));
    assert_eq!(payloads(&first, A).await, ["acknowledged"]);

    second.append(B, "mine").await.unwrap();
    assert_eq!(payloads(&second, A).await, ["acknowledged"]);
    drop((first, second));
    let third = Wal::open(store, PREFIX, named("gamma")).await.unwrap();
    assert_eq!(payloads(&third, A).await, ["acknowledged"]);
    assert_eq!(payloads(&third, B).await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn many_appends_of_a_fenced_writer_all_fail() {
    let store = TestStore::new();
    let first = Wal::open(store.clone(), PREFIX, named("alpha")).await.unwrap();
    let _second = Wal::open(store.clone(), PREFIX, named("beta")).await.unwrap();
    let appends: Vec<_> = (0..50).map(|n| first.submit(A, format!("{n}"))).collect();
    let stop = first.stop();
    for append in appends {
        let error = append.await.unwrap_err();
        assert!(error.to_string().contains("beta"), "{error}");
    }
    assert!(stop.await.unwrap_err().to_string().contains("beta"));
}

#[tokio::test(start_paused = true)]
async fn an_unnamed_writer_is_known_by_its_process() {
    let store = TestStore::new();
    let first = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let _second = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let error = first.append(A, "x").await.unwrap_err().to_string();
    assert!(error.contains(&format!(":{}\"", std::process::id())), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_opening_costs_what_it_is_said_to_cost() {
    let store = TestStore::new();
    let costs = || (store.count(Asked::List), store.count(Asked::Get), store.count(Asked::Put));
    let _first = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    // The first listing twice, since it is empty; the start object, its check, the look, and its read.
    assert_eq!(costs(), (3, 1, 2));
    let _second = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let (lists, gets, puts) = costs();
    assert_eq!((lists, puts), (3 + 3, 2 + 3), "a claim and a listing more");
    assert!(gets >= 1, "each object is read");
}

/// The prefix is emptied under a writer, and a second one opens: both have epoch 1. Objects of the same
/// sequence then have the same header and size, and differ by what they hold alone.
#[tokio::test(start_paused = true)]
async fn two_writers_of_one_epoch_never_acknowledge_over_each_other() {
    let store = std::sync::Arc::new(object_store::memory::InMemory::new());
    let first = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    first.append(A, "1").await.unwrap();
    let stored: Vec<_> = object_store::ObjectStore::list(store.as_ref(), None)
        .map_ok(|meta| meta.location)
        .try_collect()
        .await
        .unwrap();
    for key in stored {
        object_store::ObjectStoreExt::delete(store.as_ref(), &key).await.unwrap();
    }
    let second = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    assert_eq!(first.epoch(), second.epoch());
    second.append(A, "x").await.unwrap();
    second.append(A, "y").await.unwrap();

    let error = first.append(A, "2").await.unwrap_err();
    let Error::Fenced { epoch, theirs, .. } = error.error() else { panic!("{error}") };
    assert_eq!(epoch, theirs);
    assert!(error.to_string().contains("may have gone with them"), "{error}");
    second.append(A, "z").await.unwrap();
    assert!(first.append(A, "3").await.is_err());
}
