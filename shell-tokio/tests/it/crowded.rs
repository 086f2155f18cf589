//! While too much waits for its place: the line that `append` stands in.

use futures_util::FutureExt;
use sealog_tokio::{Error, LogStore, Options, Outcome, Wal};
use tokio::runtime::Builder;

use crate::store::{Asked, TestStore};
use crate::{A, PREFIX, one_by_one, payloads};

/// Three appends have their place while the first create hangs, and one more waits.
fn crowded() -> Options {
    Options { max_queued_bytes: 1, ..one_by_one() }
}

const TAKEN: [&str; 4] = ["under way", "sealed", "open", "waits"];

/// Lets the log's task go as far as it can.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// Submits [`TAKEN`], while the store hangs.
async fn fill(wal: &Wal) -> Vec<sealog_tokio::Submitted> {
    let mut taken = Vec::new();
    for text in TAKEN {
        taken.push(wal.try_submit(A, text).unwrap());
        settle().await;
    }
    let error = wal.try_submit(A, "one too many").unwrap_err();
    assert!(matches!(error.error(), Error::Overloaded { limit: 1 }), "{error}");
    taken
}

#[tokio::test(start_paused = true)]
async fn those_in_the_line_come_in_by_turns_and_whoever_is_dropped_there_left_nothing() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, crowded()).await.unwrap();
    store.hold(Asked::Put);
    let taken = fill(&wal).await;
    let mut line = Vec::new();
    for text in ["first", "gone", "second", "third"] {
        line.push(Box::pin(wal.append(A, text)));
        assert!(line.last_mut().unwrap().now_or_never().is_none());
    }
    drop(line.remove(1));
    settle().await;
    assert_eq!(wal.stats().await.unwrap().queued_bytes, 64 + 5, "of the one that was let in");
    store.behave();
    store.let_pass(10);
    // Whoever is asked last has come first.
    for append in line.into_iter().rev() {
        append.await.unwrap();
    }
    for append in taken {
        append.await.unwrap();
    }
    let expected = [&TAKEN[..], &["first", "second", "third"]].concat();
    assert_eq!(payloads(&wal, A).await, expected);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_dropped_after_it_came_in_is_stored() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, crowded()).await.unwrap();
    store.hold(Asked::Put);
    let taken = fill(&wal).await;
    let mut append = Box::pin(wal.append(A, "came in"));
    assert!(append.as_mut().now_or_never().is_none());
    // The first two become durable, which lets one in.
    store.let_pass(2);
    settle().await;
    drop(append);
    store.behave();
    store.let_pass(10);
    for append in taken {
        append.await.unwrap();
    }
    wal.flush().await.unwrap();
    assert_eq!(payloads(&wal, A).await, [&TAKEN[..], &["came in"]].concat());
}

/// Its place is fixed by the call, not when the future is polled.
#[tokio::test(start_paused = true)]
async fn an_engine_has_its_place_in_the_line_with_the_call() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, crowded()).await.unwrap();
    store.hold(Asked::Put);
    let taken = fill(&wal).await;
    let log: &dyn LogStore = &wal;
    let appends = ["1", "2", "3", "4"].map(|text| log.append(A, text.into()));
    let [one, two, three, four] = appends;
    drop(two);
    store.behave();
    store.let_pass(10);
    let four = four.await.unwrap();
    let (three, one) = (three.await.unwrap(), one.await.unwrap());
    assert!(one < three && three < four);
    drop(taken);
    assert_eq!(payloads(&wal, A).await, [&TAKEN[..], &["1", "3", "4"]].concat());
}

#[test]
fn whoever_waits_in_line_is_answered_when_the_runtime_goes_away() {
    let runtime =
        || Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let log = runtime();
    let (wal, mut append) = log.block_on(async {
        let store = TestStore::new();
        let wal = Wal::open(store.clone(), PREFIX, crowded()).await.unwrap();
        store.hold(Asked::Put);
        drop(fill(&wal).await);
        let of = wal.clone();
        let mut append = Box::pin(async move { of.append(A, "in line").await });
        assert!(append.as_mut().now_or_never().is_none());
        (wal, append)
    });
    drop(log);
    let error = append.as_mut().now_or_never().unwrap().unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    // And whoever comes later is not told to retry.
    let error = wal.try_submit(A, "late").unwrap().now_or_never().unwrap().unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
    let error = wal.append(A, "late").now_or_never().unwrap().unwrap_err();
    assert!(matches!(error.error(), Error::Stopped), "{error}");
}
