//! The engine at work, without and with trouble.

use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::{FutureExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use sealog_tokio::{AckMode, EntryId, Outcome, RegionId, Wal, object_store};

use crate::engine::{Engine, EngineError};
use crate::store::{Asked, Client, Fate};
use crate::{A, B, BOTH_MODES, PREFIX, Process, ROOT, options, row};

#[tokio::test(start_paused = true)]
async fn rows_are_merged_from_memory_and_data_objects_and_outlive_a_crash() {
    for mode in BOTH_MODES {
        let bucket = Arc::new(InMemory::new());
        let mut process = Process::open(&bucket, mode).await;
        process.engine.create(A).await.unwrap();
        process.engine.create(B).await.unwrap();
        process.put(A, "1", "flushed").await;
        process.put(A, "2", "flushed").await;
        process.engine.flush(A).await.unwrap();
        process.put(A, "2", "flushed later").await;
        process.engine.flush(A).await.unwrap();
        process.put(A, "3", "only in the log").await;
        process.put(B, "1", "only in the log").await;
        process.wal.flush().await.unwrap();
        for _ in 0..2 {
            let [one, two, three] =
                [row("1", "flushed"), row("2", "flushed later"), row("3", "only in the log")];
            assert_eq!(process.rows(A).await, [one, two, three], "{mode:?}");
            assert_eq!(process.rows(B).await, [row("1", "only in the log")], "{mode:?}");
            process = process.crash(&bucket).await;
        }
        // Row sequences go on after a crash.
        process.put(A, "4", "new").await;
        let rows = process.engine.scan(A).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.sequence).collect::<Vec<_>>(), [0, 2, 3, 4]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flush_without_anything_new_writes_nothing() {
    let bucket = Arc::new(InMemory::new());
    let process = Process::open(&bucket, AckMode::Durable).await;
    process.engine.create(A).await.unwrap();
    process.put(A, "1", "a").await;
    process.engine.flush(A).await.unwrap();
    let requests = process.client.requests();
    process.engine.flush(A).await.unwrap();
    assert_eq!(process.client.requests(), requests);
}

#[tokio::test(start_paused = true)]
async fn a_region_is_created_once_and_may_be_created_again_after_its_drop() {
    let bucket = Arc::new(InMemory::new());
    let process = Process::open(&bucket, AckMode::Durable).await;
    process.engine.create(A).await.unwrap();
    assert!(matches!(process.engine.create(A).await, Err(EngineError::Exists(A))));
    process.put(A, "1", "before").await;
    let dropped = process.engine.drop_regions(&[A]).await.unwrap();
    assert_eq!(dropped.failures.len(), 0);
    process.engine.create(A).await.unwrap();
    process.put(A, "2", "after").await;
    let process = process.crash(&bucket).await;
    assert_eq!(process.rows(A).await, [row("2", "after")]);
}

#[tokio::test(start_paused = true)]
async fn a_put_whose_caller_went_away_loses_to_the_next_one_under_the_same_row_sequence() {
    for mode in BOTH_MODES {
        for flushed in [false, true] {
            let bucket = Arc::new(InMemory::new());
            let process = Process::open(&bucket, mode).await;
            process.engine.create(A).await.unwrap();
            let rows = vec![row("key", "given up"), row("other", "given up")];
            let put = process.engine.put(A, rows).now_or_never();
            assert!(put.is_none(), "nobody waited for it: {put:?}");
            process.put(A, "key", "acknowledged").await;
            process.wal.flush().await.unwrap();

            // Both stand in the log.
            let items = process.wal.read(A, EntryId::ZERO).try_collect::<Vec<_>>().await.unwrap();
            assert_eq!(items.len(), 2);
            if flushed {
                process.engine.flush(A).await.unwrap();
            }
            let rows = process.engine.scan(A).await.unwrap();
            assert_eq!((rows[0].sequence, rows.len()), (0, 1));
            let process = process.crash(&bucket).await;
            let rows = process.engine.scan(A).await.unwrap();
            assert_eq!(rows[0].value, "acknowledged");
            assert_eq!(rows[0].sequence, 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_that_failed_and_was_stored_does_not_come_back_once_another_is_acknowledged() {
    for another in [false, true] {
        let bucket = Arc::new(InMemory::new());
        let process = Process::open(&bucket, AckMode::Durable).await;
        process.engine.create(A).await.unwrap();
        // Stored, with a lost answer, and nobody can look.
        process.client.rule(|asked, _| match asked {
            Asked::Put => Fate::DoneAndFails,
            _ => Fate::Fails,
        });
        let error = process.engine.put(A, vec![row("key", "failed")]).await.unwrap_err();
        let EngineError::Log(error) = error else { panic!("{error}") };
        assert_eq!(error.outcome(), Outcome::Unknown);
        assert!(error.is_retryable(), "{error}");
        assert_eq!(process.rows(A).await, [], "it is not seen");
        process.client.behave();
        if another {
            process.put(A, "key", "acknowledged").await;
        }
        let process = process.crash(&bucket).await;
        let value = if another { "acknowledged" } else { "failed" };
        assert_eq!(process.rows(A).await, [row("key", value)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_fails_keeps_what_it_froze_and_can_be_made_again() {
    for (mode, part) in BOTH_MODES.iter().flat_map(|mode| [(mode, "data"), (mode, "manifests")]) {
        for fate in [Fate::Fails, Fate::DoneAndFails] {
            let bucket = Arc::new(InMemory::new());
            let process = Process::open(&bucket, *mode).await;
            process.engine.create(A).await.unwrap();
            process.put(A, "1", "a").await;
            process.client.rule(move |asked, key| match asked {
                Asked::Put if key.contains(part) => fate,
                _ => Fate::Done,
            });
            process.engine.flush(A).await.unwrap_err();
            process.client.behave();
            assert_eq!(process.rows(A).await, [row("1", "a")]);
            process.put(A, "2", "b").await;
            process.engine.flush(A).await.unwrap();
            let process = process.crash(&bucket).await;
            assert_eq!(process.rows(A).await, [row("1", "a"), row("2", "b")]);
            assert!(!process.logged(A).await, "all of it is flushed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hole_in_the_log_is_acknowledged_rows_and_refuses_the_opening() {
    let bucket = Arc::new(InMemory::new());
    let process = Process::open(&bucket, AckMode::Durable).await;
    process.engine.create(A).await.unwrap();
    process.put(A, "1", "to be damaged").await;
    process.client.cut();
    drop(process);
    let objects: Vec<_> = bucket.list(Some(&Path::from(PREFIX))).try_collect().await.unwrap();
    for ObjectMeta { location, .. } in objects {
        let mut bytes = bucket.get(&location).await.unwrap().bytes().await.unwrap().to_vec();
        if let Some(at) = bytes.windows(13).position(|found| found == b"to be damaged") {
            bytes[at] ^= 1;
            bucket.put(&location, bytes.into()).await.unwrap();
        }
    }
    match Process::with(Client::of(&bucket), AckMode::Durable).await {
        Err(EngineError::Lost(hole)) => assert_eq!(hole.region, A),
        other => panic!("{:?}", other.map(|process| process.wal)),
    }
}

#[tokio::test(start_paused = true)]
async fn regions_written_side_by_side_share_objects_and_are_replayed_in_one_pass() {
    const REGIONS: usize = 50;
    let bucket = Arc::new(InMemory::new());
    let process = Process::open(&bucket, AckMode::Durable).await;
    let regions: Vec<RegionId> = (0..REGIONS as u64).map(RegionId).collect();
    for region in &regions {
        process.engine.create(*region).await.unwrap();
    }
    for key in ["1", "2", "3"] {
        let puts = regions.iter().map(|region| process.engine.put(*region, vec![row(key, "a")]));
        let flushed = process.engine.flush(regions[7]);
        let (puts, flushed) = tokio::join!(join_all(puts), flushed);
        assert!(puts.iter().all(Result::is_ok), "{puts:?}");
        flushed.unwrap();
    }
    let objects = process.wal.stats().await.unwrap().created_objects_total;
    assert!(objects < REGIONS as u64 / 2, "{objects} objects");
    process.client.cut();
    drop(process);

    let client = Client::of(&bucket);
    let options = options(AckMode::Durable);
    let wal = Wal::open(client.clone(), PREFIX, options).await.unwrap();
    let before = client.requests();
    let engine = Engine::open(client.clone(), ROOT, Arc::new(wal)).await.unwrap();
    // Three listings, the manifests, and each object once.
    let requests = client.requests() - before;
    assert!(requests <= 3 + REGIONS + objects as usize, "{requests} of {objects} objects");
    for region in regions {
        assert_eq!(engine.scan(region).await.unwrap().len(), 3);
    }
}
