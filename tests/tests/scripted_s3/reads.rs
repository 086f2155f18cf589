//! Reads of what is open (fault 17; DESIGN.md section 8).

use std::time::Duration;

use futures_util::TryStreamExt;
use sealog_tests::s3::{Fault, Kind, Rule};
use sealog_tokio::{EntryId, OnCorruptedSegment, ReadItem};

use crate::log::{Log, REGION, key};
use crate::row::{Does, Row, Told, opened};
use crate::stage::{Stage, ensure, passing, status};

fn told(what: &str, log: Log) -> Told {
    Row::told(format!("scripted_s3/{what}"), log, Does::Replay)
}

fn get(fault: Fault) -> Rule {
    Rule::on(Kind::Get, fault)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        told("one 503 in a replay of 400 objects", Log::Of(400))
            .rule(get(status(503)).nth(200))
            .into(),
        told("every seventh read of a replay of 400 objects is throttled", Log::Of(400))
            .rule(get(status(503)).every(7))
            .into(),
        told("each first read of a replay is throttled", Log::Of(60))
            .rule(get(status(503)).first_of_each(1))
            .into(),
        told("each first body of a replay is short with ok", Log::Of(60))
            .rule(get(Fault::Short(3)).first_of_each(1))
            .into(),
        told("each first body of a replay is cut", Log::Of(60))
            .rule(get(Fault::Cut(3)).first_of_each(1))
            .into(),
        told("each first read of a replay breaks off", Log::Of(60))
            .rule(get(Fault::Dropped).first_of_each(1))
            .into(),
        told("each first body of a replay has a flipped bit", Log::Of(60))
            .rule(get(Fault::Flips(14)).first_of_each(1))
            .into(),
        told("one body of a replay is short with ok, always", Log::Of(5))
            .rule(get(Fault::Short(3)).of_object(3))
            .fails(passing("Store"))
            .into(),
        told("a replay ends with its first failure if it shall not repeat", Log::Of(5))
            .options(|options| options.read_retry_for = Duration::ZERO)
            .rule(get(status(503)).of_object(3))
            .fails(passing("Store"))
            .asks(Kind::Get, 1, 6)
            .into(),
        // The time counts from the last read that succeeded.
        told("a replay goes on as long as reads succeed", Log::Of(9))
            .options(|options| {
                options.read_concurrency = 1;
                options.read_retry_for = Duration::from_millis(350);
            })
            .rule(get(Fault::Takes(Duration::from_millis(60))).first(10))
            .rule(get(status(503)).nth(9))
            .into(),
        told("a read of a replay is never answered", Log::Of(5))
            .options(|options| options.request_timeout = Duration::from_millis(100))
            .rule(get(Fault::Held).of_object(3))
            .fails(passing("Store").not_saying(&["may still take effect"]))
            .into(),
        region(),
        region_is_damaged(),
        a_restart_through_a_throttled_bucket(),
        vanishes_beside_a_reader(),
    ]
}

/// The same of one region.
fn region() -> Row {
    Row::new("scripted_s3/each first read of a region is throttled", || async {
        let mut stage = Stage::new(Log::Of(20)).await;
        let wal = opened(&mut stage).await?;
        stage.script([get(status(503)).first_of_each(1)]);
        let found = crate::stage::read(&wal).await?;
        stage.is_whole(&found)?;
        stage.nothing_is_lost().await
    })
}

/// Twice damaged it is a hole, in its place, and the rest is there.
fn region_is_damaged() -> Row {
    Row::new("scripted_s3/a segment that never decodes is a hole in its place", || async {
        let mut stage = Stage::new(Log::Of(5)).await;
        stage.options.on_corrupted_segment = OnCorruptedSegment::Skip;
        let wal = opened(&mut stage).await?;
        stage.script([get(Fault::Flips(14)).of_object(3)]);
        let items: Vec<_> =
            wal.read(REGION, EntryId::ZERO).try_collect().await.map_err(|e| e.to_string())?;
        let holes: Vec<_> = items
            .iter()
            .enumerate()
            .filter(|(_, item)| matches!(item, ReadItem::Hole(_)))
            .map(|(place, _)| place)
            .collect();
        ensure!(holes == [2], "holes at {holes:?} of {items:?}");
        ensure!(items.len() == stage.acknowledged.len(), "{items:?}");
        stage.asked(Kind::Get, 7..=7)?;
        stage.nothing_is_lost().await
    })
}

/// What an engine does when it starts: an opening and a replay, each of whose requests is throttled
/// at first.
fn a_restart_through_a_throttled_bucket() -> Row {
    Row::new("scripted_s3/a restart through a throttled bucket", || async {
        let mut stage = Stage::new(Log::Of(60)).await;
        let kinds = [Kind::List, Kind::Get, Kind::Put];
        stage.options.open_timeout = Duration::from_secs(5);
        stage.options.read_retry_for = Duration::from_secs(2);
        stage.script(kinds.map(|kind| Rule::on(kind, status(503)).every(3)));
        let wal = stage.open().await.map_err(|error| format!("the opening: {error}"))?;
        let found = crate::stage::replay_all(&wal).await;
        stage.is_whole(&found.map_err(|error| format!("the replay: {error}"))?)?;
        stage.nothing_is_lost().await
    })
}

/// A reader's objects are collected by a writer between its listing and its read.
fn vanishes_beside_a_reader() -> Row {
    Row::new("scripted_s3/objects that a writer collected are skipped by a reader", || async {
        let mut stage = Stage::new(Log::Of(5)).await;
        let reader = stage.reader().await.map_err(|error| error.to_string())?;
        let wal = stage.open().await.map_err(|error| error.to_string())?;
        let through = EntryId::new(sealog_tokio::ObjectSeq(3), 1).unwrap();
        wal.obsolete(REGION, through).await.map_err(|error| error.to_string())?;
        stage.made_obsolete(through);
        stage
            .append(&wal, "which carries the boundary")
            .await
            .map_err(|error| error.to_string())?;
        for _ in 0..200 {
            if stage.s3.bucket().get(&key(3)).is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        ensure!(stage.s3.bucket().get(&key(3)).is_none(), "nothing was collected");
        let found = crate::stage::replay(reader.replay(sealog_tokio::ReplayFilter::all())).await;
        let found = found.map_err(|error| format!("the replay: {error}"))?;
        ensure!(found.keys().all(|id| *id > through), "what was collected was read: {found:?}");
        stage.nothing_is_lost().await
    })
}
