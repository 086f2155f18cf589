use std::future::pending;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_executor::block_on;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use sealog_core::{
    Key, Payload, ReadBack, RequestId, StorageAnswer, StorageEffect, StoreError, StoreErrorKind,
};

use crate::{carry_out, open_local};

const ID: RequestId = RequestId(1);
const LIMIT: Duration = Duration::from_secs(30);

struct Log {
    parent: tempfile::TempDir,
    store: Arc<dyn ObjectStore>,
}

impl Log {
    fn open() -> Log {
        let parent = tempfile::tempdir().unwrap();
        let store = open_local(parent.path().join("log"), false).unwrap().store;
        Log { parent, store }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.parent.path().join(name)
    }

    fn move_away(&self) {
        std::fs::rename(self.path("log"), self.path("moved")).unwrap();
    }

    fn answer(&self, effect: StorageEffect) -> StorageAnswer {
        block_on(carry_out(&self.store, effect, |_| pending()))
    }

    fn create(&self, name: &str) -> Result<(), StoreError> {
        let payload =
            Payload::new(vec![Bytes::from_static(&[7; 60]), Bytes::from_static(&[8; 60])]);
        let effect =
            StorageEffect::PutObject { id: ID, key: key(name), payload, time_limit: LIMIT };
        match self.answer(effect) {
            StorageAnswer::CreateResult { result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let keys = [key(name)].into();
        match self.answer(StorageEffect::DeleteObjects { id: ID, keys, time_limit: LIMIT }) {
            StorageAnswer::DeleteResult { mut results, .. } => results.remove(0).1,
            other => panic!("{other:?}"),
        }
    }

    fn read_back(&self, name: &str) -> Result<ReadBack, StoreError> {
        let key = key(name);
        match self.answer(StorageEffect::ReadBack { id: ID, key, time_limit: LIMIT }) {
            StorageAnswer::ReadBackResult { result, .. } => result,
            other => panic!("{other:?}"),
        }
    }

    fn is_refused<T: std::fmt::Debug>(&self, result: Result<T, StoreError>, texts: &[&str]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
        let said = format!("{error} {}", error.advice.unwrap_or_default());
        let path = self.path("log/objects");
        for text in texts.iter().chain([&path.to_str().unwrap()]) {
            assert!(said.contains(text), "{text}: {said}");
        }
    }
}

fn key(name: &str) -> Key {
    format!("log/objects/{name}").into()
}

fn names(directory: &FilePath) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_create_leaves_one_file_with_its_bytes_and_a_taken_name_as_it_was() {
    let log = Log::open();
    log.create("0").unwrap();
    assert_eq!(log.create("0").unwrap_err().kind, StoreErrorKind::Exists);
    let bytes = [[7; 60], [8; 60]].concat();
    assert_eq!(std::fs::read(log.path("log/objects/0")).unwrap(), bytes);
    assert_eq!(log.read_back("0").unwrap(), ReadBack::of(&bytes.into()));
    // What a process that was killed left behind does not stand in the way, and stays.
    std::fs::write(log.path("log/objects/1#1"), "half").unwrap();
    log.create("1").unwrap();
    assert_eq!(names(&log.path("log/objects")), ["0", "1", "1#1"]);
    log.delete("0").unwrap();
    log.delete("0").unwrap();
    assert_eq!(names(&log.path("log/objects")), ["1", "1#1"]);
}

#[test]
fn a_replaced_object_has_the_new_bytes() {
    let log = Log::open();
    log.create("0").unwrap();
    let path = Path::from(&*key("0"));
    let options = PutOptions { mode: PutMode::Overwrite, ..PutOptions::default() };
    block_on(log.store.put_opts(&path, "new".into(), options)).unwrap();
    assert_eq!(std::fs::read(log.path("log/objects/0")).unwrap(), b"new");
    assert_eq!(names(&log.path("log/objects")), ["0"]);
    // Of another folder of the log.
    let elsewhere = Path::from("log/quarantine/0");
    block_on(log.store.put(&elsewhere, "kept".into())).unwrap();
    assert_eq!(std::fs::read(log.path("log/quarantine/0")).unwrap(), b"kept");
}

#[test]
fn what_was_renamed_takes_nothing_until_it_is_back() {
    let log = Log::open();
    log.create("0").unwrap();
    log.move_away();
    let texts =
        ["not the one at its path any more: nothing stands there", "was acknowledged is in"];
    log.is_refused(log.create("1"), &texts);
    log.is_refused(log.delete("0"), &texts);
    assert_eq!(log.read_back("0").unwrap_err().kind, StoreErrorKind::NotFound);
    assert_eq!(names(log.parent.path()), ["moved"]);
    assert_eq!(names(&log.path("moved/objects")), ["0"]);
    std::fs::rename(log.path("moved"), log.path("log")).unwrap();
    log.create("1").unwrap();
    assert_eq!(names(&log.path("log/objects")), ["0", "1"]);
}

#[test]
fn nothing_is_written_to_another_directory_nor_deleted_or_certified_there() {
    let log = Log::open();
    log.create("0").unwrap();
    log.move_away();
    // As a copy does.
    std::fs::create_dir_all(log.path("log/objects")).unwrap();
    std::fs::copy(log.path("moved/objects/0"), log.path("log/objects/0")).unwrap();
    let texts = ["another directory stands there", "was acknowledged is in"];
    log.is_refused(log.create("1"), &texts);
    log.is_refused(log.create("0"), &texts);
    log.is_refused(log.delete("0"), &texts);
    log.is_refused(log.read_back("0"), &texts);
    for directory in ["log/objects", "moved/objects"] {
        assert_eq!(names(&log.path(directory)), ["0"]);
    }
}

/// The system gives the inode of a directory that is gone to the next one, unless it is held.
#[test]
fn what_was_removed_is_not_made_anew_nor_taken_for_what_is() {
    let log = Log::open();
    log.create("0").unwrap();
    std::fs::remove_dir_all(log.path("log")).unwrap();
    log.is_refused(log.create("1"), &["was removed", "nothing stands there", "is lost unless"]);
    assert!(!log.path("log").exists());
    for _ in 0..10 {
        std::fs::create_dir_all(log.path("log/objects")).unwrap();
        log.is_refused(log.create("1"), &["was removed", "another directory stands there"]);
        assert_eq!(names(&log.path("log/objects")), [""; 0]);
        std::fs::remove_dir_all(log.path("log")).unwrap();
    }
    std::fs::write(log.path("log"), "a file").unwrap();
    log.is_refused(log.create("1"), &["was removed", "nothing stands there"]);
}

#[test]
fn a_directory_without_a_folder_for_objects_gets_none() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::create_dir(parent.path().join("log")).unwrap();
    let store = open_local(parent.path().join("log"), true).unwrap().store;
    let log = Log { parent, store };
    log.is_refused(log.create("0"), &["nothing stands there"]);
    assert_eq!(names(&log.path("log")), [""; 0]);
    // Another process begins the log.
    std::fs::create_dir(log.path("log/objects")).unwrap();
    log.create("0").unwrap();
}

#[test]
fn a_link_to_the_folder_is_the_folder() {
    let parent = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(parent.path().join("log")).unwrap();
    std::fs::create_dir_all(parent.path().join("disk")).unwrap();
    let link = parent.path().join("log/objects");
    std::os::unix::fs::symlink(parent.path().join("disk"), &link).unwrap();
    let store = open_local(parent.path().join("log"), false).unwrap().store;
    let log = Log { parent, store };
    log.create("0").unwrap();
    assert_eq!(names(&log.path("disk")), ["0"]);
    std::fs::create_dir_all(log.path("other")).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(log.path("other"), &link).unwrap();
    log.is_refused(log.create("1"), &["another directory stands there"]);
}
