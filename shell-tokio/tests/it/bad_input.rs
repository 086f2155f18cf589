//! Bad input: a clear error each, and nothing lost or touched.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sealog_tokio::{Error, Operation, Options, Outcome, Part, RegionId, Wal};

use crate::store::{Asked, Reaction, TestStore, no_bucket};
use crate::{A, PREFIX, payloads};

async fn refused(store: &Arc<TestStore>, prefix: &str, options: Options) -> Error {
    Wal::open(store.clone(), prefix, options).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_prefix_that_is_none_is_named_and_the_store_is_not_asked() {
    let store = TestStore::new();
    for prefix in ["", "/absolute", "a/../b", "..", "a//b", "a/", "with space"] {
        let error = refused(&store, prefix, Options::default()).await;
        assert!(matches!(error, Error::InvalidOptions { option: "prefix", .. }), "{error}");
        assert!(error.to_string().contains(&format!("{prefix:?}")), "{error}");
    }
    assert_eq!(store.count(Asked::List), 0);
}

#[tokio::test(start_paused = true)]
async fn an_option_out_of_range_is_named_and_nothing_is_touched() {
    let store = TestStore::new();
    let options = Options { max_in_flight: 65, ..Options::default() };
    let error = refused(&store, PREFIX, options.clone()).await;
    let Error::InvalidOptions { option: "max_in_flight", value, allowed } = &error else {
        panic!("{error}")
    };
    assert_eq!((&**value, *allowed), ("65", "1 to 64"));
    assert_eq!(store.count(Asked::List), 0);

    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    assert!(Wal::open_local(&directory, options.clone()).await.is_err());
    let url = format!("file://{}", directory.display());
    assert!(Wal::open_url(&url, options).await.is_err());
    assert!(!directory.exists());
}

#[tokio::test(start_paused = true)]
async fn a_reserved_region_is_refused_and_nothing_is_written() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let puts = store.count(Asked::Put);
    for region in [RegionId(u64::MAX), RegionId(u64::MAX - 1), RegionId(u64::MAX - 15)] {
        let error = wal.append_batch(vec![(A, "x".into()), (region, "y".into())]).await;
        let error = error.unwrap_err();
        assert!(matches!(error.error(), Error::InvalidRegion { .. }), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
        assert!(error.to_string().contains(&region.0.to_string()), "{error}");
        let error = wal.obsolete(region, sealog_tokio::EntryId(1)).await.unwrap_err();
        assert!(matches!(error, Error::InvalidRegion { .. }), "{error}");
    }
    assert_eq!(store.count(Asked::Put), puts);
    wal.append(RegionId(u64::MAX - 16), "the last region").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_append_that_is_too_large_is_refused_and_the_next_one_passes() {
    let options = Options { max_append_bytes: 10, ..Options::default() };
    let wal = Wal::open(TestStore::new(), PREFIX, options).await.unwrap();
    let error = wal.append(A, Bytes::from_static(&[0; 11])).await.unwrap_err();
    let Error::AppendTooLarge { size: 11, limit: 10, .. } = error.error() else {
        panic!("{error}")
    };
    assert_eq!(error.outcome(), Outcome::NotWritten);
    assert!(wal.append_batch(vec![(A, "123456".into()), (A, "78901".into())]).await.is_err());
    wal.append(A, "1234567890").await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["1234567890"]);
}

/// A file in the way stands for a missing permission, which a test that may run as root cannot
/// rely on.
#[tokio::test]
async fn a_directory_that_cannot_be_made_or_written_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "taken").unwrap();
    let error = Wal::open_local(file.join("log"), Options::default()).await.unwrap_err();
    assert!(error.to_string().contains(file.join("log").to_str().unwrap()), "{error}");

    let directory = parent.path().join("log");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("objects"), "in the way").unwrap();
    let error = Wal::open_local(&directory, Options::default()).await.unwrap_err();
    let Error::Store { operation: Operation::Create, .. } = &error else { panic!("{error}") };
    assert!(!error.is_retryable(), "{error}");
    assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    assert_eq!(std::fs::read(directory.join("objects")).unwrap(), b"in the way");
}

#[tokio::test(start_paused = true)]
async fn with_must_exist_a_prefix_without_a_log_is_missing_and_stays_empty() {
    let store = TestStore::new();
    let must_exist = Options { must_exist: true, ..Options::default() };
    let error = refused(&store, PREFIX, must_exist.clone()).await;
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert!(error.to_string().contains(PREFIX), "{error}");
    assert_eq!(store.keys().await, Vec::<String>::new());

    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let error = Wal::open_local(&directory, must_exist).await.unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert!(!directory.exists());
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_does_not_exist_is_said_at_once() {
    let store = TestStore::new();
    store.react(|_, _| Reaction::Fail(no_bucket()));
    let began = tokio::time::Instant::now();
    let error = refused(&store, PREFIX, Options::default()).await;
    assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    assert!(error.to_string().contains("bucket exists"), "{error}");
    assert!(!error.is_retryable());
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_no_bytes_fails_the_opening_and_is_left_alone() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    let id = wal.append(A, "1").await.unwrap();
    drop(wal);
    let empty = format!("{PREFIX}/objects/{:020}.wal", (id.0 >> 20) + 1);
    store.plant(&empty, vec![]).await;
    let keys = store.keys().await;
    let error = refused(&store, PREFIX, Options::default()).await;
    let Error::Corrupted { key, part: Part::Object, .. } = &error else { panic!("{error}") };
    assert_eq!(**key, empty);
    assert_eq!(store.keys().await, keys);
}

#[tokio::test(start_paused = true)]
async fn foreign_files_are_ignored_and_left_alone() {
    let store = TestStore::new();
    let foreign = [
        format!("{PREFIX}/objects/notes.txt"),
        format!("{PREFIX}/objects/0.wal"),
        format!("{PREFIX}/elsewhere/00000000000000000000.wal"),
        format!("{PREFIX}-b/objects/00000000000000000000.wal"),
    ];
    for key in &foreign {
        store.plant(key, b"not ours".to_vec()).await;
    }
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    wal.append(A, "1").await.unwrap();
    drop(wal);
    let wal = Wal::open(store.clone(), PREFIX, Options::default()).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["1"]);
    for key in &foreign {
        assert_eq!(store.bytes(key).await, b"not ours");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_ignores_the_condition_of_a_create_is_unsafe() {
    let store = TestStore::new();
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Overwrite,
        _ => Reaction::Pass,
    });
    let error = refused(&store, PREFIX, Options::default()).await;
    assert!(matches!(error, Error::UnsafeStore { .. }), "{error}");
    assert!(error.to_string().contains("conditional create"), "{error}");
    let unchecked = Options { verify_store: false, ..Options::default() };
    Wal::open(store, PREFIX, unchecked).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_without_conditional_creates_is_unsafe() {
    use sealog_tokio::object_store::Error as ClientError;
    let store = TestStore::new();
    store.react(|asked, _| match asked {
        Asked::Put => Reaction::Fail(ClientError::NotImplemented {
            operation: "put if absent".into(),
            implementer: "test".into(),
        }),
        _ => Reaction::Pass,
    });
    let error = refused(&store, PREFIX, Options::default()).await;
    assert!(matches!(error, Error::UnsafeStore { .. }), "{error}");
    assert_eq!(store.keys().await, Vec::<String>::new());
}
