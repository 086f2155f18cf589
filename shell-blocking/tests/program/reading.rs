//! `sealog read` and `sealog replay`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use expect_test::{Expect, expect};
use sealog_blocking::{Options, RegionId, Wal};

use crate::logs::{damage, damage_at, files, foreign, lived_in};
use crate::program::{Ran, command, run, run_with, start};

/// Runs a command on the log with further arguments.
fn on(log: &Path, command: &str, further: &[&str]) -> Ran {
    run([&[command, log.to_str().unwrap()], further].concat())
}

fn prints(ran: Ran, expected: Expect) {
    expected.assert_eq(&ran.good());
}

#[test]
fn a_region_is_printed_as_a_table_as_json_as_lines_as_records_or_raw() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    prints(
        on(&log, "read", &["--region=2"]),
        expect![[r#"
            region                  id  payload
            2                  3145729  three
            2                  5242881  five
            2                 10485761  eight
        "#]],
    );
    prints(
        on(&log, "read", &["--region=2", "--format=json"]),
        expect![[r#"
        {"region":2,"id":3145729,"payload":"dGhyZWU="}
        {"region":2,"id":5242881,"payload":"Zml2ZQ=="}
        {"region":2,"id":10485761,"payload":"ZWlnaHQ="}
    "#]],
    );
    prints(
        on(&log, "read", &["--region=2", "--lines"]),
        expect![[r#"
        three
        five
        eight
    "#]],
    );
    prints(on(&log, "read", &["--region=2", "--raw"]), expect!["threefiveeight"]);
    let records = on(&log, "read", &["--region=2", "--records"]).good();
    assert_eq!(records, "\0\0\0\x05three\0\0\0\x04five\0\0\0\x05eight");
}

#[test]
fn a_read_begins_where_it_is_told_to() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let five = (5_u64 << 20 | 1).to_string();
    let after_five = (5_u64 << 20 | 2).to_string();
    let from = |id: &str| on(&log, "read", &["--region=2", "--lines", "--from", id]).good();
    assert_eq!(from("0"), "three\nfive\neight\n");
    assert_eq!(from(&five), "five\neight\n");
    assert_eq!(from(&after_five), "eight\n");
    assert_eq!(from(&u64::MAX.to_string()), "");
    // Released, and never there.
    for region in ["--region=1", "--region=77"] {
        assert_eq!(on(&log, "read", &[region, "--lines"]).good(), "");
        assert_eq!(on(&log, "read", &[region]).good(), "");
    }
}

#[test]
fn a_replay_is_in_the_order_of_the_log() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    prints(
        on(&log, "replay", &[]),
        expect![[r#"
            region                  id  payload
            2                  3145729  three
            3                  4194305  four
            2                  5242881  five
            3                  8388609  six
            4                  8388609  seven
            2                 10485761  eight
            3                 11534337  nine
        "#]],
    );
    prints(
        on(&log, "replay", &["--format=json"]),
        expect![[r#"
        {"region":2,"id":3145729,"payload":"dGhyZWU="}
        {"region":3,"id":4194305,"payload":"Zm91cg=="}
        {"region":2,"id":5242881,"payload":"Zml2ZQ=="}
        {"region":3,"id":8388609,"payload":"c2l4"}
        {"region":4,"id":8388609,"payload":"c2V2ZW4="}
        {"region":2,"id":10485761,"payload":"ZWlnaHQ="}
        {"region":3,"id":11534337,"payload":"bmluZQ=="}
    "#]],
    );
    let lines = |further: &[&str]| on(&log, "replay", &[&["--lines"], further].concat()).good();
    assert_eq!(lines(&["--region=4", "--region=2"]), "three\nfive\nseven\neight\n");
    let six = (8_u64 << 20 | 1).to_string();
    assert_eq!(lines(&["--from", &six]), "six\nseven\neight\nnine\n");
    assert_eq!(lines(&["--from", &six, "--region=3"]), "six\nnine\n");
}

#[test]
fn a_hole_is_told_in_its_place_and_by_the_exit_code() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    damage(&log, 8, "six");
    let ran = on(&log, "read", &["--region=3"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    expect![[r#"
        region                  id  payload
        3                  4194305  four
        3                  8388609  hole: lost through 8388609, log/objects/00000000000000000008.wal is damaged: segment of region 3: expected checksum 9ff7d770 as the footer says, found 9e35bd47
        3                 11534337  nine
    "#]].assert_eq(&ran.out);
    let ran = on(&log, "replay", &["--format=json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""));
    expect![[r#"
        {"region":2,"id":3145729,"payload":"dGhyZWU="}
        {"region":3,"id":4194305,"payload":"Zm91cg=="}
        {"region":2,"id":5242881,"payload":"Zml2ZQ=="}
        {"region":3,"hole":{"key":"log/objects/00000000000000000008.wal","min_id":8388609,"max_id":8388609,"error":"segment of region 3: expected checksum 9ff7d770 as the footer says, found 9e35bd47"}}
        {"region":4,"id":8388609,"payload":"c2V2ZW4="}
        {"region":2,"id":10485761,"payload":"ZWlnaHQ="}
        {"region":3,"id":11534337,"payload":"bmluZQ=="}
    "#]].assert_eq(&ran.out);
    // What is bytes has no place for it.
    let ran = on(&log, "read", &["--region=3", "--lines"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "four\nnine\n"));
    expect![[r#"
        warning: region 3 has a hole: its entries 8388609 to 8388609 are lost, since log/objects/00000000000000000008.wal is damaged: segment of region 3: expected checksum 9ff7d770 as the footer says, found 9e35bd47
    "#]].assert_eq(&ran.err);
    // Of other regions nothing is lost.
    assert_eq!(on(&log, "read", &["--region=4", "--lines"]).good(), "seven\n");
}

const READING: &[&[&str]] = &[&["read", "--region=2"], &["replay"], &["regions"], &["held"]];

#[test]
fn a_location_without_a_log_is_named_and_nothing_is_made_there() {
    let parent = tempfile::tempdir().unwrap();
    let missing = parent.path().join("missing");
    let empty = parent.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let others = parent.path().join("others");
    foreign(&others);
    let before = files(parent.path());
    for location in [&missing, &empty, &others] {
        let name = location.to_str().unwrap();
        for arguments in READING {
            let arguments = [arguments, &[name][..]].concat();
            let err = run(&arguments).failed(2);
            assert_eq!(
                err,
                format!(
                    "error: there is no log at {name}: nothing is stored there. \
                     Check the location\n"
                )
            );
        }
    }
    assert!(!missing.exists());
    assert_eq!(empty.read_dir().unwrap().count(), 0);
    assert_eq!(files(parent.path()), before);
}

#[test]
fn reading_changes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let before = files(&log);
    for arguments in READING {
        run([arguments, &[log.to_str().unwrap()][..]].concat()).good();
    }
    assert_eq!(files(&log), before);
}

#[test]
fn an_object_with_a_damaged_header_or_table_is_named() {
    for (sequence, place, part) in [(4, 9, "header"), (4, -40, "footer"), (10, 60, "")] {
        let parent = tempfile::tempdir().unwrap();
        let log = parent.path().join("log");
        lived_in(&log);
        damage_at(&log, sequence, place);
        // A segment is only looked at by who reads it.
        let reading = if part.is_empty() { &READING[..2] } else { READING };
        for arguments in reading {
            let ran = run([arguments, &[log.to_str().unwrap()][..]].concat());
            let said = if part.is_empty() { &ran.out } else { &ran.err };
            assert!(said.contains(&format!("log/objects/{sequence:020}.wal")), "{ran:?}");
            assert!(said.contains(part), "{ran:?}");
            assert_eq!(ran.code, Some(1));
        }
    }
}

#[test]
fn a_reader_follows_what_is_appended_and_survives_collections() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let follow = |arguments: &[&str]| {
        let further = ["--follow", "--every=20ms", "--lines", log.to_str().unwrap()];
        let mut process = start(command([arguments, &further[..]].concat()));
        let out = BufReader::new(process.stdout.take().unwrap());
        (process, out.lines().map(Result::unwrap))
    };
    let (mut read, mut read_lines) = follow(&["read", "--region=2"]);
    let (mut replay, mut replay_lines) = follow(&["replay", "--region=2", "--region=9"]);
    for line in ["three", "five", "eight"] {
        assert_eq!(read_lines.next().unwrap(), line);
        assert_eq!(replay_lines.next().unwrap(), line);
    }
    let wal = Wal::open_local(&log, Options::default()).unwrap();
    for number in 0..5 {
        let line = format!("line {number}");
        wal.append(RegionId(2), line.clone()).unwrap();
        wal.append(RegionId(9), format!("other {number}")).unwrap();
        assert_eq!(read_lines.next().unwrap(), line);
        assert_eq!(replay_lines.next().unwrap(), line);
        assert_eq!(replay_lines.next().unwrap(), format!("other {number}"));
        // What was read may go away.
        wal.release(RegionId(2)).unwrap();
    }
    for process in [&mut read, &mut replay] {
        assert!(process.try_wait().unwrap().is_none());
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn what_is_read_can_be_appended_again() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let copy = parent.path().join("copy");
    let records = on(&log, "replay", &["--records"]).good();
    let arguments = ["append", copy.to_str().unwrap(), "--region=5", "--records"];
    run_with(arguments, records.as_bytes()).good();
    let lines = |log: &Path| on(log, "replay", &["--lines"]).good();
    assert_eq!(lines(&copy), lines(&log));
}

#[test]
fn a_pipe_that_is_closed_ends_it_quietly() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let lines = "a line of some length\n".repeat(20_000);
    run_with(["append", log.to_str().unwrap(), "--region=1"], lines.as_bytes()).good();
    let mut process = start(command(["read", log.to_str().unwrap(), "--region=1", "--lines"]));
    let mut first = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "a line of some length\n");
    let ended = process.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(141));
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
}
