//! `sealog bench`.

use serde_json::Value;

use crate::logs::{files, lived_in};
use crate::program::run;

fn measured(arguments: &[&str]) -> Value {
    let ran = run([&["bench", "--format=json"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let found = serde_json::from_str(&ran.out).unwrap();
    // A machine that was busy begins fewer appends than a rate asks for, and says so.
    let kept_up = number(&found, "missed") == 0.0;
    assert_eq!(ran.err.is_empty(), kept_up, "{ran:#?}");
    assert!(kept_up || ran.err.starts_with("warning: the log did not keep up"), "{ran:#?}");
    found
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name} of {of}"))
}

/// What must be so of any run.
fn fits_together(found: &Value) {
    let bars = found["histogram"].as_array().unwrap();
    let drawn: f64 = bars.iter().map(|bar| number(bar, "appends")).sum();
    assert_eq!(drawn, number(found, "appends"), "{found}");
    let quantiles = ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"];
    assert!(quantiles.map(|name| number(found, name)).is_sorted(), "{found}");
    let requests = number(found, "objects") + number(found, "failed_creates");
    assert_eq!(number(found, "creates"), requests, "{found}");
    for (total, rate) in [("appends", "appends_per_second"), ("bytes", "bytes_per_second")] {
        let product = number(found, rate) * number(found, "seconds");
        assert!((product - number(found, total)).abs() < 1.0, "{found}");
    }
}

#[test]
fn a_rate_gives_as_many_appends_as_it_says_with_sizes_in_turn() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let log = log.to_str().unwrap();
    let flags = ["--for=500ms", "--rate=40", "--size=10,2KiB", "--callers=20"];
    let found = measured(&[&[log], &flags[..]].concat());
    fits_together(&found);
    let (appends, missed) = (number(&found, "appends"), number(&found, "missed"));
    assert_eq!(appends + missed, 20.0, "{found}");
    if missed == 0.0 {
        assert_eq!(number(&found, "bytes"), 10.0 * (10.0 + 2048.0));
    }
    assert!(number(&found, "objects") >= 1.0, "{found}");
    assert_eq!(parent.path().read_dir().unwrap().count(), 0, "something is left");
}

#[test]
fn it_appends_as_fast_as_it_goes_and_touches_no_log_that_is_there() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let before = files(parent.path());
    let found = measured(&[log.to_str().unwrap(), "--for=300ms", "--callers=3", "--linger=0s"]);
    fits_together(&found);
    assert!(number(&found, "appends") > 3.0, "{found}");
    assert_eq!(number(&found, "bytes"), number(&found, "appends") * 1024.0);
    assert_eq!(files(parent.path()), before);
}

#[test]
fn what_is_enqueued_is_counted_once_it_is_stored() {
    let flags = ["--for=100ms", "--callers=2", "--ack-mode=enqueued", "--rate=100"];
    let found = measured(&[&["memory:///log"], &flags[..]].concat());
    fits_together(&found);
    assert!(number(&found, "objects") >= 1.0, "{found}");
}

#[test]
fn people_get_tables_and_a_histogram() {
    let flags = ["--for=200ms", "--callers=2", "--flush-interval=0s"];
    let out = run([&["bench", "memory:///log"], &flags[..]].concat()).good();
    let heads: Vec<_> = out.split("\n\n").map(|table| table.lines().next().unwrap()).collect();
    let heads: Vec<_> = heads.iter().map(|head| head.split_whitespace().next().unwrap()).collect();
    assert_eq!(heads, ["appends", "median", "creates", "from"], "{out}");
    let longest = out.lines().map(|line| line.matches('#').count()).max();
    assert_eq!(longest, Some(40), "{out}");
}

#[test]
fn what_cannot_be_measured_is_said_before_anything_is_made() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let log = log.to_str().unwrap();
    let refused: &[&[&str]] = &[
        &["bench", log, "--callers=0"],
        &["bench", log, "--rate=0"],
        &["bench", log, "--size=2GiB"],
        &["bench", log, "--size="],
        &["bench", log, "--for=soon"],
        &["bench", log, "--max-in-flight=0"],
        &["bench", log, "--max-append-bytes=10", "--for=1s"],
        &["bench", log, "--store=a=b"],
        &["bench", log, "--must-exist"],
        &["bench", "memory://"],
    ];
    for arguments in refused {
        run(*arguments).failed(2);
        assert_eq!(parent.path().read_dir().unwrap().count(), 0, "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_early_with_what_was_measured_and_nothing_left() {
    use crate::program::{Ran, command, start};
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let mut child = start(command(["bench", log.to_str().unwrap(), "--for=1h", "--format=json"]));
    // Once something is made, it listens.
    while parent.path().read_dir().unwrap().count() == 0 {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    let kill = std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap();
    assert!(kill.success());
    let ran = Ran::of(child, b"");
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""), "{ran:?}");
    fits_together(&serde_json::from_str(&ran.out).unwrap());
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
}
