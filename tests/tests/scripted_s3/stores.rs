//! Stores that break a promise while a writer runs: what an acknowledged entry meets then is told,
//! not hidden.

use sealog_tests::s3::{Fault, Kind, Rule};

use crate::log::{Log, key};
use crate::row::{Row, opened};
use crate::stage::{Stage, ensure, lasting};

pub(crate) fn rows() -> Vec<Row> {
    vec![taken_over_meanwhile(), taken_over_while_the_answer_is_lost(), lost_object(), emptied()]
}

/// The old writer's next create meets the new one's objects.
fn taken_over_meanwhile() -> Row {
    Row::new("scripted_s3/a writer that was taken over is fenced at its next append", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let old = opened(&mut stage).await?;
        let new = stage.open().await.map_err(|error| format!("no take-over: {error}"))?;
        match stage.append(&old, "of the old one").await {
            Err(error) => lasting("Fenced").judge(error.error())?,
            Ok(id) => return Err(format!("{id} was acknowledged by the old writer")),
        }
        stage.append(&new, "of the new one").await.map_err(|error| error.to_string())?;
        stage.nothing_is_lost().await
    })
}

/// Its object landed, its answer did not come, and another opening is at work: either it is
/// acknowledged and in the new history, or neither.
fn taken_over_while_the_answer_is_lost() -> Row {
    Row::new("scripted_s3/an answer is lost while another opening is at work", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let old = opened(&mut stage).await?;
        stage.script([
            Rule::on(Kind::Put, Fault::Lost).first(1),
            Rule::on(Kind::Get, Fault::Dropped).first(1),
        ]);
        let appended = stage.append(&old, "of the old one").await;
        let new = stage.open().await.map_err(|error| format!("no take-over: {error}"))?;
        let found = crate::stage::read(&new).await?;
        stage.is_whole(&found)?;
        ensure!(appended.is_err() || found.values().any(|p| *p == "of the old one"), "{found:?}");
        stage.append(&new, "of the new one").await.map_err(|error| error.to_string())?;
        stage.nothing_is_lost().await
    })
}

/// An object in the middle is lost; a read says so, and the next opening does.
fn lost_object() -> Row {
    Row::new("scripted_s3/an object that somebody removed fails the read that needs it", || async {
        let mut stage = Stage::new(Log::Of(5)).await;
        let wal = opened(&mut stage).await?;
        let removed = stage.s3.bucket().remove(&key(3)).map(|stored| stored.bytes);
        match crate::stage::replay_all(&wal).await {
            Ok(found) => return Err(format!("it was read without it: {} entries", found.len())),
            Err(error) => ensure!(!error.is_retryable(), "{error}"),
        }
        // It is put back from a copy.
        stage.s3.bucket().put(key(3), removed.unwrap());
        stage.nothing_is_lost().await
    })
}

/// A prefix is emptied under a writer. What it acknowledged before is gone with it; whatever it
/// acknowledges from then on is in no history that begins anew, and it must not acknowledge for
/// long: the next opening fences it.
fn emptied() -> Row {
    Row::new(
        "scripted_s3/a writer under which a prefix was emptied ends when it is begun anew",
        || async {
            let mut stage = Stage::new(Log::Of(2)).await;
            let old = opened(&mut stage).await?;
            let keys: Vec<_> = stage.s3.bucket().objects().keys().cloned().collect();
            keys.iter().for_each(|key| drop(stage.s3.bucket().remove(key)));
            stage.acknowledged.clear();
            let new = stage.open().await.map_err(|error| format!("anew: {error}"))?;
            // It takes the keys that the old one is about to use.
            for number in 0..8 {
                let appended = stage.append(&new, &format!("anew {number}")).await;
                appended.map_err(|error| error.to_string())?;
            }
            let late = stage.append(&old, "of the old one").await;
            ensure!(late.is_err(), "the old writer acknowledged {late:?}");
            stage.nothing_is_lost().await
        },
    )
}
