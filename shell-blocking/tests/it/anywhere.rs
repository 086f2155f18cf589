//! Callers inside of a tokio runtime, and none.

use std::path::Path;
use std::sync::Arc;

use sealog_blocking::object_store::local::LocalFileSystem;
use sealog_blocking::{Options, Wal};
use tokio::runtime::{Builder, Runtime};

use crate::{A, open, payloads};

fn runtimes() -> [Runtime; 2] {
    let one = Builder::new_current_thread().build().unwrap();
    let many = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    [one, many]
}

/// Opens a log in a directory, appends to it, and opens it anew.
fn live_twice(directory: &Path) {
    for life in 0..2 {
        let wal = Wal::open_local(directory, Options::default()).unwrap();
        assert_eq!(payloads(&wal).len(), 2 * life);
        let submitted = wal.submit(A, "1");
        wal.append(A, "2").unwrap();
        submitted.wait().unwrap();
        assert_eq!(payloads(&wal).len(), 2 * life + 2);
        wal.stop().unwrap();
    }
}

/// The client's own store of local files, and the one around it that certifies, both look for a
/// runtime.
#[test]
fn a_directory_is_a_log_with_and_without_a_runtime() {
    let parent = tempfile::tempdir().unwrap();
    live_twice(&parent.path().join("without"));
    for (n, runtime) in runtimes().into_iter().enumerate() {
        let directory = parent.path().join(format!("in-{n}"));
        runtime.block_on(async { live_twice(&directory) });
        let directory = parent.path().join(format!("in-a-task-of-{n}"));
        runtime
            .block_on(async { tokio::spawn(async move { live_twice(&directory) }).await.unwrap() });
    }
    let store = Arc::new(LocalFileSystem::new_with_prefix(parent.path()).unwrap());
    let wal = Wal::open(store, "bare", Options::default()).unwrap();
    wal.append(A, "1").unwrap();
    assert_eq!(payloads(&wal), ["1"]);
}

#[test]
fn a_log_outlives_the_runtime_that_it_was_opened_in() {
    let parent = tempfile::tempdir().unwrap();
    for (n, runtime) in runtimes().into_iter().enumerate() {
        let directory = parent.path().join(format!("log-{n}"));
        let wal = runtime.block_on(async {
            let wal = Wal::open_local(&directory, Options::default()).unwrap();
            wal.append(A, "inside").unwrap();
            wal
        });
        drop(runtime);
        wal.append(A, "outside").unwrap();
        assert_eq!(payloads(&wal), ["inside", "outside"]);
        wal.stop().unwrap();
    }
}

/// A runtime has its tasks yield after some hundred answers of its channels, and gives them no more
/// until they do. A thread that waits cannot.
#[test]
fn a_task_makes_any_number_of_calls_without_yielding() {
    const CALLS: usize = 1000;
    for runtime in runtimes() {
        let task = async {
            let wal = open(Options::default());
            let submitted: Vec<_> = (0..CALLS).map(|n| wal.submit(A, n.to_string())).collect();
            for append in submitted {
                append.wait().unwrap();
            }
            for _ in 0..CALLS {
                wal.latest(A).unwrap();
            }
            assert_eq!(payloads(&wal).len(), CALLS);
            wal.stop().unwrap();
        };
        runtime.block_on(async { tokio::spawn(task).await.unwrap() });
    }
}
