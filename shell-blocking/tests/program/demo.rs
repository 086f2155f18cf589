//! `sealog demo`.

use sealog_blocking::{EntryId, Options, RegionId, Wal};

use crate::program::{Ran, command, run, start};

#[test]
fn the_demonstration_says_its_steps_and_leaves_the_log_as_it_says() {
    let parent = tempfile::tempdir().unwrap();
    let demo = || {
        let mut command = command(["demo"]);
        command.current_dir(parent.path());
        Ran::of(start(command), b"")
    };
    let out = demo().good();
    let steps: Vec<_> = out.lines().map(|line| line.split_once(' ').unwrap().0).collect();
    let expected = [
        "log",
        "appended",
        "durable",
        "crashed",
        "recovered",
        "replayed",
        "released",
        "reclaimed",
        "reopened",
        "look",
        "look",
    ];
    assert_eq!(steps, expected, "{out}");

    let directory = parent.path().join("sealog-demo");
    let wal = Wal::open_local(directory, Options::default()).unwrap();
    let entries = |region| wal.read(RegionId(region), EntryId::ZERO).count();
    assert_eq!(entries(1), 0);
    // This is a file of the program, and a line that was appended after the release.
    let lines = include_str!("../../src/cli/append.rs").lines().count() + 1;
    assert_eq!(entries(2), lines);

    // Each run has a directory of its own.
    let out = demo().good();
    assert!(out.contains("sealog-demo-2, a new directory"), "{out}");
}

#[test]
fn a_directory_in_which_something_is_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("something");
    std::fs::write(&file, "mine").unwrap();
    let name = parent.path().to_str().unwrap();
    assert!(run(["demo", name]).failed(2).contains(name));
    assert!(run(["demo", file.to_str().unwrap()]).failed(2).contains("no new directory"));
    assert_eq!(parent.path().read_dir().unwrap().count(), 1);
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}
