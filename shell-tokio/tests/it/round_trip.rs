use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use sealog_tokio::object_store::ObjectStore;
use sealog_tokio::object_store::memory::InMemory;
use sealog_tokio::{EntryId, Options, RegionId, Wal};
use tokio::time::Instant;

use crate::store::{Asked, TestStore};
use crate::{A, B, PREFIX, entries, one_by_one, payloads};

async fn in_memory() -> Wal {
    Wal::open(TestStore::new(), PREFIX, Options::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_appended_is_read_in_order_and_by_region() {
    let wal = in_memory().await;
    let first = wal.append(A, "a1").await.unwrap();
    let second = wal.append(A, Bytes::from_static(b"a2")).await.unwrap();
    let ids = wal.append_batch(vec![(B, "b1".into()), (A, "a3".into())]).await.unwrap();
    assert!(first < second && second < ids[1]);
    let expected = [(first, "a1"), (second, "a2"), (ids[1], "a3")];
    assert_eq!(entries(&wal, A).await.unwrap(), expected.map(|(id, text)| (id, text.into())));
    assert_eq!(entries(&wal, B).await.unwrap(), [(ids[0], "b1".into())]);
    assert_eq!(entries(&wal, RegionId(3)).await.unwrap(), []);
    assert_eq!(wal.durable(A).await.unwrap(), ids[1]);
    assert_eq!(wal.latest(A).await.unwrap(), ids[1]);
    assert_eq!(wal.latest(RegionId(3)).await.unwrap(), EntryId::ZERO);
    let regions: Vec<_> = wal.regions().await.unwrap().iter().map(|info| info.region).collect();
    assert_eq!(regions, [A, B]);
}

#[tokio::test(start_paused = true)]
async fn an_append_of_nothing_is_acknowledged_at_once_and_an_empty_payload_is_an_entry() {
    let wal = in_memory().await;
    assert_eq!(wal.append_batch(vec![]).await.unwrap(), []);
    assert_eq!(wal.durable(A).await.unwrap(), EntryId::ZERO);
    wal.append(A, "").await.unwrap();
    assert_eq!(payloads(&wal, A).await, [""]);
}

#[tokio::test(start_paused = true)]
async fn what_is_submitted_keeps_its_order_whoever_is_awaited_first() {
    let wal = in_memory().await;
    let submitted: Vec<_> = (0..100).map(|n| wal.submit(A, format!("{n}"))).collect();
    let mut ids = Vec::new();
    for append in submitted.into_iter().rev() {
        ids.push(append.await.unwrap());
    }
    assert!(ids.is_sorted_by(|later, earlier| later > earlier), "{ids:?}");
    let expected: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    assert_eq!(payloads(&wal, A).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_flush_covers_what_was_submitted_before_and_does_not_wait_for_the_interval() {
    let store = TestStore::new();
    let hour = Duration::from_secs(3600);
    let options = Options { flush_interval: hour, ..Options::default() };
    let wal = Wal::open(store.clone(), PREFIX, options).await.unwrap();
    wal.append(A, "leaves at once, the log is idle").await.unwrap();
    let began = Instant::now();
    let submitted = wal.submit(A, "waits for the interval");
    wal.flush().await.unwrap();
    assert_eq!(wal.durable(A).await.unwrap(), submitted.await.unwrap());
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let puts = store.count(Asked::Put);
    wal.flush().await.unwrap();
    assert_eq!(store.count(Asked::Put), puts, "there was nothing to flush");
}

/// `flush` "stores what was submitted so far, and returns when all of it is durable".
#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_appends_that_were_submitted_before_it_and_that_wait_for_their_place() {
    let store = TestStore::new();
    let wal = Wal::open(store.clone(), PREFIX, one_by_one()).await.unwrap();
    store.hold(Asked::Put);
    let submitted: Vec<_> = (0..10).map(|n| wal.submit(A, format!("{n}"))).collect();
    let mut flush = Box::pin(wal.flush());
    // Submitted and asked at once, before the log gets to see any of it.
    let mut flushed = flush.as_mut().now_or_never();
    // One create after the other, until the flush says that all is durable.
    while flushed.is_none() {
        store.let_pass(1);
        tokio::time::sleep(Duration::from_millis(1)).await;
        flushed = flush.as_mut().now_or_never();
    }
    flushed.unwrap().unwrap();
    let durable = payloads(&wal, A).await.len();
    assert_eq!(durable, submitted.len(), "entries are durable after the flush");
}

#[tokio::test(start_paused = true)]
async fn what_is_submitted_before_a_question_counts_in_its_answer() {
    let wal = in_memory().await;
    let submitted = wal.submit(A, "x");
    let latest = wal.latest(A).await.unwrap();
    assert_eq!(submitted.await.unwrap(), latest);
}

#[tokio::test(start_paused = true)]
async fn obsolete_entries_are_hidden() {
    let wal = in_memory().await;
    let ids = wal.append_batch(vec![(A, "1".into()), (A, "2".into()), (A, "3".into())]);
    let ids = ids.await.unwrap();
    wal.obsolete(A, ids[1]).await.unwrap();
    assert_eq!(payloads(&wal, A).await, ["3"]);
    wal.obsolete(A, ids[2]).await.unwrap();
    assert_eq!(payloads(&wal, A).await, Vec::<Bytes>::new());
    assert_eq!(wal.regions().await.unwrap(), []);
    assert!(wal.append(A, "4").await.unwrap() > ids[2]);
}

#[tokio::test(start_paused = true)]
async fn the_figures_count_what_was_done() {
    let wal = in_memory().await;
    wal.append(A, "12345").await.unwrap();
    wal.append_batch(vec![(A, "1".into()), (B, "2".into())]).await.unwrap();
    let stats = wal.stats().await.unwrap();
    assert_eq!(stats.appends_total, 2);
    assert_eq!(stats.appended_entries_total, 3);
    assert_eq!(stats.appended_bytes_total, 7);
    assert_eq!(stats.append_ack.count(), 2);
    assert_eq!(stats.epoch, wal.epoch().0);
    assert_eq!(wal.prefix().as_str(), PREFIX);
}

/// Many tasks share handles of one log; each has a region of its own and all share one.
async fn many_tasks(wal: &Wal) {
    let tasks: Vec<_> = (0..32)
        .map(|task: u64| {
            let wal = wal.clone();
            tokio::spawn(async move {
                let own = RegionId(100 + task);
                for n in 0..20 {
                    wal.append(own, format!("{n}")).await.unwrap();
                    wal.append_batch(vec![(A, format!("{task}/{n}").into())]).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn all_is_there_once(wal: &Wal) {
    let expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let mut shared: Vec<_> =
        payloads(wal, A).await.iter().map(|p| String::from_utf8(p.to_vec()).unwrap()).collect();
    let mut counts = std::collections::BTreeMap::new();
    for text in &shared {
        let (task, n) = text.split_once('/').unwrap();
        let next = counts.entry(task.to_owned()).or_insert(0);
        assert_eq!(n.parse::<i32>().unwrap(), *next, "task {task} is out of order");
        *next += 1;
    }
    shared.dedup();
    assert_eq!(shared.len(), 32 * 20);
    for task in 0..32 {
        assert_eq!(payloads(wal, RegionId(100 + task)).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_append_at_once_and_all_of_it_is_there_once_and_after_a_reopening() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let options = Options { flush_interval: Duration::from_millis(2), ..Options::default() };
    let wal = Wal::open(store.clone(), PREFIX, options.clone()).await.unwrap();
    many_tasks(&wal).await;
    all_is_there_once(&wal).await;
    drop(wal);
    let wal = Wal::open(store, PREFIX, options).await.unwrap();
    all_is_there_once(&wal).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_directory_keeps_the_log_and_its_url_names_the_same() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let options = Options { flush_interval: Duration::from_millis(2), ..Options::default() };
    let wal = Wal::open_local(&directory, options.clone()).await.unwrap();
    let first = wal.append(A, "one").await.unwrap();
    wal.stop().await.unwrap();
    drop(wal);
    assert!(directory.join("objects").is_dir());

    let url = format!("file://{}", directory.display());
    let options = Options { must_exist: true, ..options };
    let wal = Wal::open_url(&url, options).await.unwrap();
    let second = wal.append(A, "two").await.unwrap();
    let expected = [(first, "one".into()), (second, "two".into())];
    assert_eq!(entries(&wal, A).await.unwrap(), expected);
}
