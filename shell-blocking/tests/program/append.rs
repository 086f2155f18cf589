//! `sealog append`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use sealog_blocking::{EntryId, Options, ReadItem, RegionId, Wal};

use crate::program::{command, run, run_with, start};

/// The entries of a region, read with the library.
fn stored(directory: &Path, region: u64) -> Vec<(u64, String)> {
    let wal = Wal::open_local(directory, Options::default()).unwrap();
    let entries = wal.read(RegionId(region), EntryId::ZERO).map(|item| match item.unwrap() {
        ReadItem::Entry(entry) => (entry.id.0, String::from_utf8(entry.payload.to_vec()).unwrap()),
        ReadItem::Hole(hole) => panic!("{hole:?}"),
    });
    entries.collect()
}

fn texts(directory: &Path, region: u64) -> Vec<String> {
    stored(directory, region).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn lines_of_standard_input_are_stored_with_the_ids_that_are_printed() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let arguments = ["append", log.to_str().unwrap(), "--region", "7", "--ids"];
    let out = run_with(arguments, b"one\n\nlast").good();
    let printed: Vec<&str> = out.lines().collect();
    let stored = stored(&log, 7);
    let expected: Vec<_> = stored.iter().map(|(id, _)| format!("7 {id}")).collect();
    assert_eq!(printed, expected);
    let texts: Vec<_> = stored.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["one", "", "last"]);
}

#[test]
fn a_key_column_divides_lines_among_regions_and_ids_keep_the_order_of_the_input() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let file = parent.path().join("lines.csv");
    std::fs::write(&file, "a,8\nb,9\nc,8\n").unwrap();
    let log_name = log.to_str().unwrap();
    let arguments =
        ["append", log_name, file.to_str().unwrap(), "--key-column=2", "--delimiter=,", "--ids"];
    let out = run(arguments).good();
    let regions: Vec<_> = out.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(regions, ["8", "9", "8"]);
    assert_eq!(texts(&log, 8), ["a,8", "c,8"]);
    assert_eq!(texts(&log, 9), ["b,9"]);
}

#[test]
fn a_line_without_a_region_is_named_and_what_stood_before_it_is_stored() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let arguments = ["append", log.to_str().unwrap(), "--key-column", "1"];
    let ran = run_with(arguments, b"3\tgood\nthree\tbad\n3\tlater\n");
    assert_eq!(ran.out, "");
    let err = ran.failed(2);
    assert!(err.contains("line 2 of standard input"), "{err}");
    assert!(err.contains("\"three\""), "{err}");
    assert!(err.contains("records stored before it: 1"), "{err}");
    assert_eq!(texts(&log, 3), ["3\tgood"]);
}

#[test]
fn records_have_their_length_before_them() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let log_name = log.to_str().unwrap();
    let arguments = ["append", log_name, "--region=1", "--records", "--format=json"];
    let out = run_with(arguments, b"\0\0\0\x03a\nb\0\0\0\0").good();
    assert!(out.starts_with("{\"records\":2,\"bytes\":3,\"objects\":"), "{out}");
    assert!(out.ends_with(",\"epoch\":1}\n"), "{out}");
    assert_eq!(texts(&log, 1), ["a\nb", ""]);
    let ran = run_with(["append", log_name, "--region=1", "--records"], b"\0\0\0\x03ab");
    assert!(ran.failed(2).contains("record 1 of standard input: the input ends after 2 of 3"));
}

#[test]
fn nothing_is_made_for_a_command_that_cannot_be_carried_out() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let log_name = log.to_str().unwrap();
    let missing = parent.path().join("missing");
    let refused: &[&[&str]] = &[
        &["append", log_name],
        &["append", log_name, "--region=1", "--key-column=1"],
        &["append", log_name, "--region=1", missing.to_str().unwrap()],
        &["append", log_name, "--region=1", "--max-in-flight=0"],
        &["append", log_name, "--region=1", "--must-exist"],
        &["append", log_name, "--region=1", "--store=size=3"],
        &["append", log_name, "--region=1", "--flush-interval=soon"],
    ];
    for arguments in refused {
        run(*arguments).failed(2);
        assert!(!log.exists(), "{arguments:?}");
    }
    let reserved = u64::MAX.to_string();
    let arguments = ["append", log_name, "--region", &reserved];
    assert!(run_with(arguments, b"a\n").failed(2).contains("is reserved"));
}

#[test]
fn a_location_that_is_no_directory_is_a_failure_of_the_store() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "taken").unwrap();
    let err = run(["append", file.to_str().unwrap(), "--region=1"]).failed(3);
    assert!(err.contains(file.to_str().unwrap()), "{err}");
}

#[test]
fn a_writer_that_loses_the_log_says_so_and_what_it_acknowledged_stays() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let log_name = log.to_str().unwrap();
    let mut first = start(command(["append", log_name, "--region=1", "--ids"]));
    let mut feed = first.stdin.take().unwrap();
    let mut printed = BufReader::new(first.stdout.take().unwrap()).lines();
    feed.write_all(b"one\n").unwrap();
    let id = printed.next().unwrap().unwrap();

    run_with(["append", log_name, "--region=1"], b"two\n").good();
    feed.write_all(b"three\n").unwrap();
    assert!(printed.next().is_none());
    drop(feed);
    let ended = first.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(err.contains("has lost the log to"), "{err}");
    assert!(err.ends_with("(records stored before it: 1)\n"), "{err}");
    let stored = stored(&log, 1);
    assert_eq!(id, format!("1 {}", stored[0].0));
    assert_eq!([&stored[0].1, &stored[1].1], ["one", "two"]);
    assert_eq!(stored.len(), 2);
}

#[test]
fn what_is_acknowledged_on_admission_is_stored_when_the_program_ends() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let arguments = ["append", log.to_str().unwrap(), "--region=1", "--ids", "--ack-mode=enqueued"];
    let out = run_with(arguments, lines.as_bytes()).good();
    let stored = stored(&log, 1);
    let printed: String = stored.iter().map(|(id, _)| format!("1 {id}\n")).collect();
    assert_eq!(out, printed);
    let texts: String = stored.iter().map(|(_, text)| format!("{text}\n")).collect();
    assert_eq!(texts, lines);
}

#[test]
fn a_directory_and_its_url_are_the_same_log_and_memory_is_one_too() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let url = format!("file://{}", log.display());
    run_with(["append", &url, "--region=1"], b"one\n").good();
    run_with(["append", log.to_str().unwrap(), "--region=1"], b"two\n").good();
    assert_eq!(run(["read", &url, "--region=1", "--lines"]).good(), "one\ntwo\n");
    let out = run_with(["append", "memory:///a", "--region=1", "--ids"], b"one\n").good();
    assert_eq!(out, "1 1048577\n");
    // It ended with the program.
    assert!(run(["regions", "memory:///a"]).failed(2).contains("no log at memory:///a"));
}

#[test]
fn numbers_above_2_to_the_53_are_numbers_all_the_same() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let (log, last) = (log.to_str().unwrap(), u64::MAX - 16);
    let region = format!("--region={last}");
    let out = run_with(["append", log, &region, "--ids", "--format=json"], b"x").good();
    assert_eq!(out, format!("{{\"region\":{last},\"id\":1048577}}\n"));
    let out = run(["read", log, &region, "--format=json"]).good();
    assert_eq!(out, format!("{{\"region\":{last},\"id\":1048577,\"payload\":\"eA==\"}}\n"));
}

#[test]
fn a_region_that_was_released_in_full_takes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    let wal = Wal::open_local(&log, Options::default()).unwrap();
    wal.append_batch(vec![(RegionId(1), "one".into()), (RegionId(2), "two".into())]).unwrap();
    wal.release_all(RegionId(1)).unwrap();
    wal.stop().unwrap();
    let ran = run_with(["append", log.to_str().unwrap(), "--region=1"], b"more\n");
    assert!(ran.failed(2).contains("region 1"));
    assert_eq!(texts(&log, 2), ["two"]);
}
