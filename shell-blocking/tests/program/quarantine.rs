//! `sealog quarantine`.

use sealog_blocking::{EntryId, Options, ReadItem, Wal};
use sealog_core::RegionId;
use serde_json::{Value, json};

use crate::made::{Log, id};
use crate::program::{Ran, run, run_with};

fn quarantine(log: &Log, arguments: &[&str]) -> Ran {
    let at = log.at();
    // The objects were written just now.
    let base = ["quarantine", &at, "--quiet-for", "0s"];
    run(base.iter().chain(arguments))
}

/// What it says, as JSON: the spans, and the summary.
fn said(ran: &Ran) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    (lines, summary)
}

fn entries(log: &Log, region: u64) -> Vec<EntryId> {
    let wal = Wal::open_local(log.path(), Options::default()).unwrap();
    let read = wal.read(RegionId(region), EntryId::ZERO).map(|item| match item.unwrap() {
        ReadItem::Entry(entry) => entry.id,
        ReadItem::Hole(hole) => panic!("{hole:?}"),
    });
    read.collect()
}

/// What is kept of an object.
fn kept(log: &Log, sequence: u64) -> Vec<u8> {
    let wanted = format!("quarantine/{sequence:020}-");
    let all = log.all();
    let found: Vec<_> = all.iter().filter(|(name, _)| name.starts_with(&wanted)).collect();
    assert_eq!(found.len(), 1);
    found[0].1.clone()
}

#[test]
fn a_sound_log_is_left_alone() {
    let log = Log::new();
    let before = log.all();
    let out = quarantine(&log, &["--yes"]).good();
    assert_eq!(out, "every object verifies: there is nothing to repair\n");
    assert!(quarantine(&log, &["--yes", "--seq", "9"]).good().contains("nothing to repair"));
    assert!(quarantine(&log, &["--yes", "--seq", "5"]).failed(2).contains("no object is listed"));
    assert_eq!(log.all(), before);
}

#[test]
fn of_a_damaged_segment_the_rest_is_kept_and_it_says_first_what_goes() {
    let log = Log::new();
    log.damage_segment(9, RegionId(7));
    let damaged = log.bytes(9);
    let before = log.all();
    let arguments = ["--seq", "9", "--format", "json"];
    let dry = quarantine(&log, &[&arguments[..], &["--dry-run"]].concat());
    assert_eq!((dry.code, log.all()), (Some(0), before), "{}", dry.err);
    let (spans, summary) = said(&dry);
    let (first, last) = (id(9, 1).0, id(9, 2).0);
    let gone = json!({
        "what": "gives_up", "region": 7, "min_id": first, "max_id": last, "entries": 2, "object": 9,
    });
    assert_eq!(spans, [gone]);
    assert_eq!((&summary["replaces"], &summary["unknown"]), (&json!([9]), &json!([])));

    let ran = quarantine(&log, &[&arguments[..], &["--yes"]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), dry.out.as_str()), "{}", ran.err);
    assert_eq!(kept(&log, 9), damaged);
    run(["verify", &log.at()]).good();
    assert_eq!(entries(&log, 7), [id(3, 1), id(3, 2), id(3, 3), id(4, 1)]);
    assert_eq!(entries(&log, 9).len(), 41);
    assert_eq!(entries(&log, 8), [id(9, 1)], "the release still counts");
}

#[test]
fn without_a_sequence_it_takes_the_first_that_fails_and_says_what_is_left() {
    let log = Log::new();
    log.damage_segment(3, RegionId(8));
    log.damage_footer(9);
    let out = quarantine(&log, &["--yes"]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.out.contains("object 3 is repaired"), "{}", out.out);
    assert!(out.err.contains("00000000000000000009.wal: footer"), "{}", out.err);
    let out = quarantine(&log, &["--yes"]).good();
    assert!(out.contains("table of object 9 does not verify"), "{out}");
    // The row of region 9 was the damaged one.
    assert_eq!((entries(&log, 7).len(), entries(&log, 9).len()), (6, 1));
}

#[test]
fn it_asks_and_anything_but_yes_changes_nothing() {
    let log = Log::new();
    log.damage_segment(9, RegionId(7));
    let before = log.all();
    let at = log.at();
    let arguments = ["quarantine", &at, "--quiet-for", "0s"];
    for answer in ["", "no\n", "y\n", "YES\n"] {
        let ran = run_with(arguments, answer.as_bytes());
        assert!(ran.out.contains("It gives up:"), "before it asks: {}", ran.out);
        assert!(ran.failed(2).contains("not confirmed"));
        assert_eq!(log.all(), before);
    }
    let ran = run_with(arguments, b"yes\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    run(["verify", &at]).good();
}

#[test]
fn a_lost_header_is_named_by_the_operator() {
    let log = Log::new();
    let whole = log.all();
    log.damage_header(9);
    let err = quarantine(&log, &["--yes"]).failed(2);
    assert!(err.contains("--prev 8:9 --epoch 9 --boundary 3"), "{err}");
    let impossible = quarantine(&log, &["--yes", "--prev", "9:9"]).failed(2);
    assert!(impossible.contains("no object 9 can have"), "{impossible}");
    assert!(!log.path().join("quarantine").exists());
    quarantine(&log, &["--yes", "--prev", "8:9"]).good();
    let objects: Vec<_> =
        log.all().into_iter().filter(|(name, _)| name.starts_with("objects/")).collect();
    assert_eq!(objects, whole, "byte for byte");
}

#[test]
fn a_cut_gives_up_what_follows() {
    let log = Log::new();
    log.damage_header(9);
    let ran = quarantine(&log, &["--yes", "--cut", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let (spans, summary) = said(&ran);
    let mut regions: Vec<_> = spans
        .iter()
        .map(|span| {
            (
                span["what"].as_str().unwrap(),
                span["region"].as_u64().unwrap(),
                span["object"].as_u64().unwrap(),
            )
        })
        .collect();
    regions.sort_unstable();
    // With object 10 goes the release of region 8.
    let expected = [
        ("brings_back", 8, 3),
        ("gives_up", 7, 9),
        ("gives_up", 8, 9),
        ("gives_up", 9, 9),
        ("gives_up", 9, 12),
    ];
    assert_eq!(regions, expected);
    assert_eq!(summary["tip_after"], json!({"seq": 8, "epoch": 9}));
    assert_eq!(entries(&log, 7), [id(3, 1), id(3, 2), id(3, 3), id(4, 1)]);
    assert_eq!(entries(&log, 8), [id(3, 1), id(3, 2)]);
}

#[test]
fn it_refuses_while_a_writer_can_be_seen() {
    let log = Log::new();
    log.damage_segment(9, RegionId(7));
    let objects = log.bytes(9);
    let ran = run(["quarantine", &log.at(), "--yes"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("a writer may be at work: object"), "{}", ran.err);
    assert_eq!(log.bytes(9), objects);
    // A second try is not hindered by the copy of the first.
    quarantine(&log, &["--yes"]).good();
    assert_eq!(kept(&log, 9), objects);
}

#[test]
fn what_is_kept_from_an_earlier_repair_is_not_replaced() {
    let log = Log::new();
    log.damage_segment(9, RegionId(7));
    let first = log.bytes(9);
    quarantine(&log, &["--yes"]).good();
    log.damage_segment(9, RegionId(8));
    quarantine(&log, &["--yes"]).good();
    let all = log.all();
    let kept: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("quarantine/")).collect();
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().any(|(_, bytes)| *bytes == first));
}
