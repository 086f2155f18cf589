//! A local directory that goes away under its writer (DESIGN.md section 1).

use std::path::Path;

use sealog_tokio::{Error, Options, StoreErrorKind, Wal, WriteError};

use crate::{A, one_by_one, payloads};

/// Appends until the directory is gone, in a way that begins once some entries are acknowledged; gives
/// what was acknowledged and what the first append that was not failed with.
async fn append_until(
    wal: &Wal,
    goes: impl FnOnce() + Send + 'static,
) -> (Vec<String>, WriteError) {
    let mut goes = Some(goes);
    let mut acknowledged = Vec::new();
    let mut going = None;
    let mut first = None;
    for n in 0_u64.. {
        if n == 20 {
            let goes = goes.take().unwrap();
            going = Some(tokio::task::spawn_blocking(goes));
        }
        match wal.append(A, n.to_string()).await {
            Ok(_) => {
                assert!(first.is_none(), "{n} was acknowledged after all");
                acknowledged.push(n.to_string());
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
        if n > 40 && first.is_some() {
            break;
        }
    }
    going.unwrap().await.unwrap();
    (acknowledged, first.unwrap())
}

fn says(error: &WriteError, directory: &Path, texts: &[&str]) {
    let Error::Store { source, .. } = error.error() else { panic!("{error}") };
    assert_eq!(source.kind, StoreErrorKind::Refused, "{error}");
    let said = error.to_string();
    for text in texts.iter().chain([&directory.to_str().unwrap()]) {
        assert!(said.contains(text), "{text}: {said}");
    }
}

async fn stored(directory: &Path) -> Vec<String> {
    let wal = Wal::open_local(directory, Options::default()).await.unwrap();
    let all = payloads(&wal, A).await;
    all.into_iter().map(|payload| String::from_utf8(payload.into()).unwrap()).collect()
}

/// What was acknowledged is there, in order; what was not may be.
fn holds(stored: &[String], acknowledged: &[String]) {
    assert!(acknowledged.len() >= 20, "{acknowledged:?}");
    assert_eq!(stored.get(..acknowledged.len()), Some(acknowledged));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_in_the_directory_that_was_renamed() {
    let parent = tempfile::tempdir().unwrap();
    let (directory, moved) = (parent.path().join("log"), parent.path().join("moved"));
    let wal = Wal::open_local(&directory, one_by_one()).await.unwrap();
    let (from, to) = (directory.clone(), moved.clone());
    let goes = move || std::fs::rename(from, to).unwrap();
    let (acknowledged, error) = append_until(&wal, goes).await;
    says(&error, &directory, &["not the one at its path", "All that was acknowledged is in"]);
    drop(wal);
    assert!(!directory.exists());
    holds(&stored(&moved).await, &acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_appears_in_a_directory_that_takes_the_place_of_the_log() {
    let parent = tempfile::tempdir().unwrap();
    let (directory, moved) = (parent.path().join("log"), parent.path().join("moved"));
    let wal = Wal::open_local(&directory, one_by_one()).await.unwrap();
    let (from, to) = (directory.clone(), moved.clone());
    let goes = move || {
        std::fs::rename(&from, to).unwrap();
        std::fs::create_dir_all(from.join("objects")).unwrap();
    };
    let (acknowledged, error) = append_until(&wal, goes).await;
    says(&error, &directory, &["not the one at its path", "All that was acknowledged is in"]);
    drop(wal);
    assert_eq!(directory.join("objects").read_dir().unwrap().count(), 0);
    holds(&stored(&moved).await, &acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_was_removed_is_not_made_anew() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let wal = Wal::open_local(&directory, one_by_one()).await.unwrap();
    let removed = directory.clone();
    // Again if the writer added something meanwhile.
    let goes = move || while std::fs::remove_dir_all(&removed).is_err() {};
    // The first failure may be of a file that was removed while it was written.
    append_until(&wal, goes).await;
    let error = wal.append(A, "later").await.unwrap_err();
    says(&error, &directory, &["the log's directory"]);
    let error = wal.append(A, "more").await.unwrap_err();
    says(&error, &directory, &["was removed", "is lost unless a copy was made"]);
    drop(wal);
    assert!(!directory.exists());
}
