//! What breaks if an engine makes its calls in another order: each test does it wrong by hand, and
//! shows the loss; the engine does it right in the tests of its life, of drops and of kills.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use sealog_tokio::{AckMode, EntryId, Wal, object_store};

use crate::engine::{Bucket, Engine, EngineError, Manifest};
use crate::store::{Asked, Client, Fate};
use crate::{A, B, BOTH_MODES, PREFIX, Process, ROOT, options, row};

/// A process with the regions A and B.
async fn process(bucket: &Arc<InMemory>, mode: AckMode) -> Process {
    let process = Process::open(bucket, mode).await;
    process.engine.create(A).await.unwrap();
    process.engine.create(B).await.unwrap();
    process
}

fn by_hand(bucket: &Arc<InMemory>) -> Bucket {
    Bucket::new(bucket.clone(), ROOT)
}

fn fail_log_puts(process: &Process, fate: Fate) {
    process.client.rule(move |asked, key| match asked {
        Asked::Put if key.starts_with(PREFIX) => fate,
        _ => Fate::Done,
    });
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_seen_before_its_append_is_acknowledged_may_vanish() {
    let bucket = Arc::new(InMemory::new());
    let process = process(&bucket, AckMode::Durable).await;
    fail_log_puts(&process, Fate::Fails);
    // Whoever had applied it by now would show it until the crash.
    process.engine.put(A, vec![row("1", "a")]).await.unwrap_err();
    assert_eq!(process.rows(A).await, [], "the engine does not");
    let process = process.crash(&bucket).await;
    assert_eq!(process.rows(A).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_flushed_id_that_is_the_logs_latest_loses_what_is_not_applied_yet() {
    for mode in BOTH_MODES {
        let bucket = Arc::new(InMemory::new());
        let process = process(&bucket, mode).await;
        {
            let mut put = pin!(process.engine.put(A, vec![row("1", "acknowledged")]));
            assert!(put.as_mut().now_or_never().is_none());
            // A flush at this moment that asks the log, instead of knowing what it applied.
            let flushed = process.wal.latest(A).await.unwrap();
            assert!(flushed > EntryId::ZERO);
            let manifest = Manifest { flushed, ..Manifest::default() };
            by_hand(&bucket).write_manifest(A, &manifest).await.unwrap();
            put.await.unwrap();
        }
        process.wal.flush().await.unwrap();
        let process = process.crash(&bucket).await;
        assert_eq!(process.rows(A).await, [], "lost");

        // The engine's flush waits for the put.
        let (put, flushed) = tokio::join!(
            process.engine.put(A, vec![row("2", "acknowledged")]),
            process.engine.flush(A),
        );
        put.unwrap();
        flushed.unwrap();
        process.wal.flush().await.unwrap();
        let process = process.crash(&bucket).await;
        assert_eq!(process.rows(A).await, [row("2", "acknowledged")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_is_written_before_its_data_object_names_nothing_after_a_crash() {
    let bucket = Arc::new(InMemory::new());
    let process = process(&bucket, AckMode::Durable).await;
    let flushed = process.engine.put(A, vec![row("1", "a")]).await.unwrap();
    let manifest = Manifest { flushed, next_sequence: 1, objects: vec![flushed] };
    by_hand(&bucket).write_manifest(A, &manifest).await.unwrap();
    let process = process.crash(&bucket).await;
    let error = process.engine.scan(A).await.unwrap_err();
    assert!(matches!(error, EngineError::Bucket(object_store::Error::NotFound { .. })), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_manifest_that_does_not_wait_for_the_log_keeps_a_later_row_without_an_earlier_one() {
    for waits in [false, true] {
        let bucket = Arc::new(InMemory::new());
        let process = process(&bucket, AckMode::Enqueued).await;
        fail_log_puts(&process, Fate::Fails);
        process.put(B, "1", "first").await;
        process.put(A, "1", "second").await;
        if waits {
            let flush = process.engine.flush(A);
            let flushed = tokio::time::timeout(Duration::from_secs(60), flush).await;
            assert!(flushed.is_err(), "{flushed:?}");
        } else {
            // What a flush does, without waiting.
            let flushed = process.wal.latest(A).await.unwrap();
            let other = Arc::new(InMemory::new());
            let copy = Process::open(&other, AckMode::Durable).await;
            copy.engine.create(A).await.unwrap();
            copy.put(A, "1", "second").await;
            copy.engine.flush(A).await.unwrap();
            let named = Bucket::new(other.clone(), ROOT).read_manifest(A).await.unwrap().objects[0];
            let from = Path::from(format!("{ROOT}/data/{A}/{named}"));
            let rows = other.get(&from).await.unwrap().bytes().await.unwrap();
            let to = Path::from(format!("{ROOT}/data/{A}/{flushed}"));
            bucket.put(&to, rows.into()).await.unwrap();
            let manifest = Manifest { flushed, next_sequence: 1, objects: vec![flushed] };
            by_hand(&bucket).write_manifest(A, &manifest).await.unwrap();
        }
        let process = process.crash(&bucket).await;
        assert_eq!(process.rows(B).await, [], "it was not durable");
        let kept = if waits { vec![] } else { vec![row("1", "second")] };
        assert_eq!(process.rows(A).await, kept);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_made_obsolete_before_the_manifest_says_so_is_lost_in_a_crash() {
    let bucket = Arc::new(InMemory::new());
    let process = process(&bucket, AckMode::Durable).await;
    let id = process.engine.put(A, vec![row("1", "acknowledged")]).await.unwrap();
    process.wal.obsolete(A, id).await.unwrap();
    // The log goes on, and collects.
    process.put(B, "1", "b").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(process.wal.stats().await.unwrap().deleted_objects_total, 1);
    let process = process.crash(&bucket).await;
    assert_eq!(process.rows(A).await, []);
}

#[tokio::test(start_paused = true)]
async fn watermarks_that_are_not_said_again_after_an_opening_keep_the_log() {
    let bucket = Arc::new(InMemory::new());
    let process = process(&bucket, AckMode::Durable).await;
    process.put(A, "1", "a").await;
    process.engine.flush(A).await.unwrap();
    assert!(!process.logged(A).await);
    process.client.cut();
    drop(process);

    let client = Client::of(&bucket);
    let wal = Wal::open(client.clone(), PREFIX, options(AckMode::Durable)).await.unwrap();
    let holders = wal.held_by().await.unwrap().holders;
    assert_eq!(holders.iter().map(|holder| holder.region).collect::<Vec<_>>(), [A]);
    // The engine's opening says them.
    let _engine = Engine::open(client, ROOT, Arc::new(wal.clone())).await.unwrap();
    assert_eq!(wal.held_by().await.unwrap().holders.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn watermarks_that_are_not_said_to_another_log_hide_what_is_appended_to_it() {
    for said in [false, true] {
        let bucket = Arc::new(InMemory::new());
        let process = process(&bucket, AckMode::Durable).await;
        for key in ["1", "2", "3"] {
            process.put(A, key, "flushed").await;
        }
        process.engine.flush(A).await.unwrap();
        process.client.cut();
        drop(process);
        // The log is begun anew: its ids begin anew too.
        let objects: Vec<_> = bucket.list(Some(&Path::from(PREFIX))).try_collect().await.unwrap();
        for object in objects {
            bucket.delete(&object.location).await.unwrap();
        }
        let process = if said {
            let process = Process::open(&bucket, AckMode::Durable).await;
            process.put(A, "4", "acknowledged").await;
            process
        } else {
            let wal = Wal::open(bucket.clone(), PREFIX, options(AckMode::Durable)).await.unwrap();
            let id = wal.append(A, "a row, by an engine that said nothing").await.unwrap();
            let flushed = by_hand(&bucket).read_manifest(A).await.unwrap().flushed;
            assert!(id <= flushed, "the manifest says that it is in a data object");
            drop(wal);
            Process::open(&bucket, AckMode::Durable).await
        };
        let process = process.crash(&bucket).await;
        assert_eq!(process.rows(A).await.len(), if said { 4 } else { 3 });
    }
}

#[tokio::test(start_paused = true)]
async fn a_region_that_is_released_before_its_drop_is_written_down_comes_back_in_part() {
    let bucket = Arc::new(InMemory::new());
    let process = process(&bucket, AckMode::Durable).await;
    process.put(A, "1", "flushed").await;
    process.engine.flush(A).await.unwrap();
    process.put(A, "2", "acknowledged").await;
    process.wal.release(A).await.unwrap();
    let process = process.crash(&bucket).await;
    assert_eq!(
        process.rows(A).await,
        [row("1", "flushed")],
        "half of a region that is not dropped"
    );
}

#[tokio::test(start_paused = true)]
async fn a_region_that_is_dropped_without_a_release_keeps_the_log_for_ever() {
    let bucket = Arc::new(InMemory::new());
    let mut process = process(&bucket, AckMode::Durable).await;
    process.put(A, "1", "a").await;
    let id = process.wal.latest(A).await.unwrap();
    by_hand(&bucket).remove_manifest(A).await.unwrap();
    process.wal.obsolete(A, id).await.unwrap();
    for _ in 0..2 {
        process = process.crash(&bucket).await;
        assert!(process.is_gone(A).await);
        process.put(B, "1", "b").await;
        process.engine.flush(B).await.unwrap();
        let holders = process.wal.held_by().await.unwrap().holders;
        assert_eq!(holders.iter().map(|holder| holder.region).collect::<Vec<_>>(), [A]);
    }
}
