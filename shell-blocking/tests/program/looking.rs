//! What holds of every command that looks at a whole log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sealog_blocking::{Options, RegionId, Wal};
use serde_json::Value;

use crate::logs::lived_in;
use crate::made::Log;
use crate::program::run;

const COMMANDS: [&str; 4] = ["inspect", "verify", "report", "quarantine"];

#[test]
fn a_log_that_has_lived_has_no_problem_and_its_objects_are_what_they_are() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    lived_in(&directory);
    let at = directory.to_str().unwrap();
    let out = run(["inspect", at, "--format=json"]).good();
    let rows: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            (row["seq"].as_u64().unwrap(), text("kind"), text("status"), text("writer"))
        })
        .collect();
    let writers: Vec<_> = told.iter().map(|(seq, .., writer)| (*seq, writer.as_str())).collect();
    assert!(writers.contains(&(0, "first")) && writers.contains(&(7, "second")), "{told:?}");
    let kind = |seq: u64| told.iter().find(|row| row.0 == seq).map(|row| row.1.as_str());
    let kinds = [0, 3, 6, 7, 8, 9].map(kind).map(Option::unwrap);
    assert_eq!(kinds, ["start", "data", "claim", "start", "data", "release"]);
    let status = |seq: u64| told.iter().find(|row| row.0 == seq).map(|row| row.2.as_str());
    let statuses = [0, 3, 6, 7, 11, 12].map(status).map(Option::unwrap);
    assert_eq!(statuses, ["below_boundary", "chain", "orphan", "chain", "chain", "orphan"]);
    assert_eq!(rows.iter().filter(|row| row["tip"] == true).count(), 1);
    assert!(run(["verify", at]).good().ends_with("11 objects, no problem\n"));
    assert_eq!(run(["report", at]).good().matches("<tr data-seq").count(), 11);
    assert!(run(["quarantine", at]).good().contains("nothing to repair"));
}

#[test]
fn files_of_others_are_neither_looked_at_nor_changed() {
    let log = Log::new();
    let objects = log.path().join("objects");
    for name in ["readme", "7.wal", "00000000000000000003.wal.tmp"] {
        std::fs::write(objects.join(name), "not a log's").unwrap();
    }
    let before = log.all();
    for command in COMMANDS {
        let out = run([command, &log.at()]).good();
        assert!(!out.contains("readme") && !out.contains("tmp"), "{out}");
    }
    assert_eq!(log.all(), before);
}

#[test]
fn a_log_of_which_nothing_verifies_is_shown_all_the_same() {
    let log = Log::new();
    for sequence in [3, 4, 6, 7, 8, 9, 10, 11, 12] {
        log.damage_header(sequence);
    }
    let ran = run(["inspect", &log.at()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.starts_with("no history"), "{}", ran.out);
    assert_eq!(ran.out.matches("damaged").count(), 9);
    let ran = run(["report", &log.at()]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.out.matches("<tr data-seq").count(), 9);
    assert_eq!(run(["verify", &log.at(), "--format=json"]).out.matches("\"header\"").count(), 9);
    // Nothing says what stood before: the operator may begin a history with what is left.
    let err = run(["quarantine", &log.at(), "--yes", "--quiet-for=0s"]).failed(2);
    assert!(err.contains("--prev none --epoch 4 --boundary 0"), "{err}");
    let err = run(["quarantine", &log.at(), "--yes", "--cut", "--quiet-for=0s"]).failed(2);
    assert!(err.contains("nothing would remain"), "{err}");
    let arguments = ["--yes", "--prev=none", "--epoch=1", "--boundary=3", "--quiet-for=0s"];
    let at = log.at();
    let ran = run(["quarantine", &at].iter().chain(&arguments));
    assert_eq!(ran.code, Some(1), "others are left: {ran:?}");
    let rows = run(["inspect", &at, "--format=json"]).out;
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&first["status"], &first["tip"]), (&"chain".into(), &true.into()));
}

/// Objects come and go while they are looked at.
#[test]
fn a_running_writer_and_its_collections_are_no_problem() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let options = Options { flush_interval: Duration::ZERO, ..Options::default() };
    let wal = Wal::open_local(&directory, options).unwrap();
    let at = directory.to_str().unwrap();
    let (written, ends) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let ids: Vec<_> =
                    (0..20).map(|_| wal.append(RegionId(7), vec![7; 3000]).unwrap()).collect();
                wal.obsolete(RegionId(7), ids[ids.len() - 3]).unwrap();
                written.store(true, Ordering::Relaxed);
            }
        });
        while !written.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..4 {
            for command in ["inspect", "verify", "report"] {
                let ran = run([command, at]);
                assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{command}: {}", ran.out);
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(wal.stats().unwrap().deleted_objects_total > 0);
    wal.stop().unwrap();
}
