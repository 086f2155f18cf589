//! Deletes that fail (fault 20 and DESIGN.md section 9): they cost few requests, and the log goes on.

use std::time::Duration;

use futures_util::TryStreamExt;
use sealog_tests::s3::{Fault, Kind, Rule};
use sealog_tokio::Wal;

use crate::log::{Log, REGION, key};
use crate::row::{Row, opened};
use crate::stage::{Checked, Stage, ensure, status};

/// How many objects become obsolete, one after the other.
const OBJECTS: u64 = 40;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for of in [301, 400, 403, 404, 405, 409, 412, 429, 500, 501, 503] {
        let refused = [301, 400, 403, 405, 501].contains(&of);
        rows.push(fails(format!("scripted_s3/{of} for every delete"), status(of), refused));
    }
    rows.extend([
        fails(
            "scripted_s3/each key of a delete is refused by itself".into(),
            Fault::RefusesEach("AccessDenied"),
            true,
        ),
        fails("scripted_s3/an HTML page for every delete".into(), Fault::html(), false),
        fails("scripted_s3/every delete breaks off".into(), Fault::Dropped, false),
        fails("scripted_s3/no delete is ever answered".into(), Fault::Held, false),
        goes_on("scripted_s3/the answers to deletes are lost", Fault::Lost, true),
        // Its client takes what is not spoken of for deleted; a later instance sees that it is not.
        goes_on("scripted_s3/a delete says nothing of one key", Fault::ForgetsOne, false),
        goes_on("scripted_s3/the first delete is refused", status(403), true),
    ]);
    rows
}

/// Makes each entry obsolete once the next one is there.
async fn obsolete_one_by_one(stage: &mut Stage, wal: &Wal) -> Checked {
    for number in 0..OBJECTS {
        let id = stage.append(wal, &format!("entry {number}")).await;
        let id = id.map_err(|error| format!("entry {number}: {error}"))?;
        let before: Vec<_> = stage.acknowledged.keys().copied().filter(|old| *old < id).collect();
        if let Some(last) = before.last() {
            wal.obsolete(REGION, *last).await.map_err(|error| error.to_string())?;
            stage.made_obsolete(*last);
        }
    }
    Ok(())
}

/// However many objects could be deleted, and however often the boundary rises, there are few
/// requests until `reclaim_interval`.
fn fails(name: String, fault: Fault, refused: bool) -> Row {
    let title = name.clone();
    Row::new(&title, move || async move {
        let mut stage = Stage::new(Log::Of(2)).await;
        // The others of these tests never try again.
        stage.options.reclaim_interval = Duration::from_secs(60);
        let wal = opened(&mut stage).await?;
        stage.script([Rule::on(Kind::Delete, fault)]);
        obsolete_one_by_one(&mut stage, &wal).await?;
        // What failed waits for its interval, however often the boundary rises: nothing is asked for
        // twice. While the store refuses, hardly anything is asked for at all.
        let most = if refused { OBJECTS / 4 } else { OBJECTS + 2 };
        stage.asked(Kind::Delete, 1..=most)?;
        ensure!(stage.s3.bucket().get(&key(1)).is_some(), "{name}: something was deleted");
        let failed = wal.stats().await.map_err(|error| error.to_string())?.failed_deletes_total;
        ensure!(failed <= 2 * OBJECTS, "{failed} failed deletes of {OBJECTS} objects");
        stage.s3.heal();
        wal.stop().await.map_err(|error| format!("stop: {error}"))?;
        // What is left is deleted by a later instance.
        stage.nothing_is_lost().await
    })
}

/// The first few fail; what comes later succeeds.
fn goes_on(name: &str, fault: Fault, again: bool) -> Row {
    Row::new(name, move || async move {
        let mut stage = Stage::new(Log::Of(2)).await;
        stage.options.reclaim_interval = Duration::from_secs(1);
        let wal = opened(&mut stage).await?;
        stage.script([Rule::on(Kind::Delete, fault).first(1)]);
        obsolete_one_by_one(&mut stage, &wal).await?;
        let gone = key(5);
        // After an interval of a second what failed is tried again.
        for _ in 0..200 {
            if !again || stage.s3.bucket().get(&gone).is_none() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ensure!(!again || stage.s3.bucket().get(&gone).is_none(), "it is never deleted");
        let found: Vec<_> = wal
            .read(REGION, sealog_tokio::EntryId::ZERO)
            .try_collect()
            .await
            .map_err(|error| error.to_string())?;
        ensure!(found.len() == stage.acknowledged.len(), "{found:?}");
        wal.stop().await.map_err(|error| format!("stop: {error}"))?;
        stage.nothing_is_lost().await
    })
}
