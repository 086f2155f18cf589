//! What a bucket may hold or lack: a clear error each, and nothing lost or touched.

use std::time::{Duration, Instant};

use sealog_tests::place::{Place, named};
use sealog_tests::proxy::{Proxy, Treatment};
use sealog_tokio::object_store::ObjectStoreExt;
use sealog_tokio::{Error, Operation, Options, Part, StoreErrorKind};

use crate::{append, bytes, history, history_of, object_path, plant};

#[tokio::test]
async fn a_bucket_that_does_not_exist_is_named_at_once() {
    let Some(place) = Place::bucket("no-bucket") else { return };
    let began = Instant::now();
    let place = place.at("s3://sealog-no-such-bucket/log");
    let options = Options { open_timeout: Duration::from_secs(300), ..named("lost") };
    for must_exist in [false, true] {
        let error = place.open(Options { must_exist, ..options.clone() }).await.unwrap_err();
        let Error::Store { operation: Operation::List, source, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(source.kind, StoreErrorKind::Refused, "{error}");
        assert!(!error.is_retryable());
        let text = error.to_string();
        assert!(text.contains("sealog-no-such-bucket"), "{text}");
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_object_of_no_bytes_fails_the_opening_and_is_named() {
    let Some(place) = Place::bucket("empty-object") else { return };
    let wal = place.open(named("before")).await.unwrap();
    let acked = [append(&wal, 1, 1, 0).await.unwrap()];
    drop(wal);
    let path = object_path(&place, 50);
    plant(&place, &path, Vec::new()).await;
    let error = place.open(named("refused")).await.unwrap_err();
    let Error::Corrupted { key, part: Part::Object, .. } = &error else { panic!("{error}") };
    assert_eq!(&**key, path.as_ref(), "{error}");
    assert_eq!(bytes(&place, &path).await, "", "it is left as it is");
    // Whoever planted it can take it away.
    let store = place.location().store;
    store.delete(&path).await.unwrap();
    let wal = place.open(named("after")).await.unwrap();
    assert_eq!(history(&wal).await, history_of(&acked));
}

#[tokio::test]
async fn an_object_of_no_bytes_in_the_way_of_a_writer_ends_it() {
    let Some(place) = Place::bucket("empty-in-the-way") else { return };
    let wal = place.open(named("writer")).await.unwrap();
    let acked = [append(&wal, 1, 1, 0).await.unwrap()];
    let path = object_path(&place, (acked[0].id >> 20) + 1);
    plant(&place, &path, Vec::new()).await;
    let error = append(&wal, 1, 1, 1).await.unwrap_err();
    let Error::Corrupted { key, .. } = error.error() else { panic!("{error}") };
    assert_eq!(&**key, path.as_ref(), "{error}");
    assert_eq!(history(&wal).await, history_of(&acked), "reads go on");
}

#[tokio::test]
async fn foreign_files_below_the_prefix_are_neither_read_nor_touched() {
    let Some(place) = Place::bucket("foreign") else { return };
    let prefix = place.location().prefix;
    let files = [
        "objects/README.txt",
        "objects/00000000000000000001.wal.bak",
        "objects/1.wal",
        "objects/sub/00000000000000000001.wal",
        "notes",
    ];
    let paths = files.map(|name| format!("{}/{name}", prefix.as_str()).into());
    for path in &paths {
        plant(&place, path, "not a log").await;
    }
    let wal = place.open(named("writer")).await.unwrap();
    let acked = [append(&wal, 1, 1, 0).await.unwrap(), append(&wal, 2, 1, 0).await.unwrap()];
    drop(wal);
    let wal = place.open(named("reader")).await.unwrap();
    assert_eq!(history(&wal).await, history_of(&acked));
    for path in &paths {
        assert_eq!(bytes(&place, path).await, "not a log", "{path}");
    }
}

#[tokio::test]
async fn a_store_that_ignores_the_condition_of_a_create_is_unsafe_and_loses_nothing() {
    let Some(place) = Place::bucket("unsafe") else { return };
    let wal = place.open(named("before")).await.unwrap();
    let acked = [append(&wal, 1, 1, 0).await.unwrap()];
    drop(wal);
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    proxy.treat(|_| Treatment::Unconditionally);
    let error = place.by_way_of(proxy.endpoint()).open(named("unsafe")).await.unwrap_err();
    assert!(matches!(error, Error::UnsafeStore { .. }), "{error}");
    assert!(error.to_string().contains("conditional create"), "{error}");
    let wal = place.open(named("after")).await.unwrap();
    assert_eq!(history(&wal).await, history_of(&acked));
}
