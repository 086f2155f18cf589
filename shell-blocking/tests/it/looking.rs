use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sealog_blocking::object_store::ObjectStoreExt;
use sealog_blocking::object_store::memory::InMemory;
use sealog_blocking::object_store::path::Path;
use sealog_blocking::object_store::throttle::{ThrottleConfig, ThrottledStore};
use sealog_blocking::{
    EntryId, Error, Fetcher, Key, ObjectStatus, Operation, Options, Reader, StoreErrorKind, Wal,
    survey,
};

use crate::{A, PREFIX};

fn log_in(store: &Arc<InMemory>) {
    let options = Options { flush_interval: Duration::ZERO, ..Options::default() };
    let wal = Wal::open(store.clone(), PREFIX, options).unwrap();
    for text in ["1", "2", "3"] {
        wal.append(A, text).unwrap();
    }
}

/// Within a runtime, to do something to a store.
fn at<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn a_survey_names_what_is_damaged_where_an_opening_fails_with_it() {
    let store = Arc::new(InMemory::new());
    let nothing = survey(store.clone(), PREFIX, Options::default()).unwrap();
    assert_eq!((nothing.objects.len(), nothing.problems().count()), (0, 0));
    let options = Options { must_exist: true, ..Options::default() };
    let missing = survey(store.clone(), PREFIX, options).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");

    log_in(&store);
    let whole = survey(store.clone(), PREFIX, Options::default()).unwrap();
    assert_eq!((whole.objects.len(), whole.problems().count()), (4, 0));
    let status: Vec<_> = whole.objects.iter().map(|object| object.status).collect();
    // Nobody needs the start object.
    assert_eq!(status[0], ObjectStatus::BelowBoundary);
    assert_eq!(status[1..], [ObjectStatus::Chain; 3]);

    let key = whole.objects[2].key.clone();
    at(store.put(&Path::from(&*key), "no object".into())).unwrap();
    let damaged = survey(store.clone(), PREFIX, Options::default()).unwrap();
    assert!(damaged.problems().any(|problem| problem.key == key), "{damaged:?}");
    let error = Reader::open(store, PREFIX, Options::default()).unwrap_err();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
}

#[test]
fn objects_are_fetched_several_at_once_and_given_in_order() {
    let store = Arc::new(InMemory::new());
    log_in(&store);
    let found = survey(store.clone(), PREFIX, Options::default()).unwrap();
    let whole = |key: &Key| at(async { store.get(&Path::from(&**key)).await?.bytes().await });
    let options = Options { read_retry_for: Duration::ZERO, ..Options::default() };
    let fetcher = Fetcher::new(store.clone(), options).unwrap();
    let wanted = || found.objects.iter().map(|object| (object.key.clone(), 0..object.size));
    for at_once in [0, 1, 3, 100] {
        let fetched: Vec<_> = fetcher.fetch_all(wanted(), at_once).map(Result::unwrap).collect();
        let expected: Vec<_> = wanted().map(|(key, _)| whole(&key).unwrap()).collect();
        assert_eq!(fetched, expected, "{at_once} at once");
    }
    let (key, range) = wanted().next().unwrap();
    assert_eq!(fetcher.fetch(&key, 0..8).unwrap(), whole(&key).unwrap()[..8]);
    assert_eq!(fetcher.fetch(&key, 5..5).unwrap(), Bytes::new());

    // One that fails is not the last.
    let missing = Key::from("logs/a/objects/missing");
    let list = [(missing.clone(), 0..1), (key.clone(), 0..range.end + 1), (key, range)];
    let fetched: Vec<_> = fetcher.fetch_all(list, 2).collect();
    let [Err(gone), Err(short), Ok(_)] = &fetched[..] else { panic!("{fetched:?}") };
    let Error::Store { operation: Operation::Read, key, source } = gone else { panic!("{gone}") };
    assert_eq!((key, source.kind), (&missing, StoreErrorKind::NotFound));
    assert!(matches!(short, Error::Store { operation: Operation::Read, .. }), "{short}");
}

#[test]
fn a_fetch_ends_with_its_time_limit_and_with_its_fetcher_does_its_thread() {
    let store = Arc::new(InMemory::new());
    let hour = Duration::from_secs(3600);
    let config = ThrottleConfig { wait_get_per_call: hour, ..ThrottleConfig::default() };
    let slow = ThrottledStore::new(store.clone(), config);
    let request_timeout = Duration::from_millis(10);
    let options =
        Options { request_timeout, read_retry_for: request_timeout, ..Options::default() };
    let fetcher = Fetcher::new(Arc::new(slow), options).unwrap();
    let error = fetcher.fetch(&Key::from("logs/a/objects/any"), 0..1).unwrap_err();
    let Error::Store { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind, StoreErrorKind::TimedOut);
    // The thread holds the store as long as it lives.
    drop(fetcher);
    while Arc::strong_count(&store) > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_and_its_reads_leave_no_thread_behind() {
    let store = Arc::new(InMemory::new());
    log_in(&store);
    while Arc::strong_count(&store) > 1 {
        std::thread::yield_now();
    }
    let reader = Reader::open(store.clone(), PREFIX, Options::default()).unwrap();
    let mut read = reader.read(A, EntryId::ZERO);
    assert!(read.next().unwrap().is_ok());
    drop(reader);
    assert!(read.next().unwrap().is_ok(), "the read holds a handle");
    drop(read);
    while Arc::strong_count(&store) > 1 {
        std::thread::yield_now();
    }
}
