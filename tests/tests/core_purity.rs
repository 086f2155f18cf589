//! The core stays free of I/O, and of what it does not need (DESIGN.md section 1).

use std::fs;
use std::process::Command;

use sealog_tests::workspace_root;

const ALLOWED: [&str; 3] = ["bytes", "crc32fast", "thiserror"];

#[test]
fn the_core_depends_on_three_crates() {
    let args = "tree -p sealog-core -e normal --depth 1 --prefix none --format {p}";
    let tree = cargo(args);
    let mut lines = tree.lines().filter_map(|line| line.split_whitespace().next());
    assert_eq!(lines.next(), Some("sealog-core"), "{tree}");
    let mut found: Vec<_> = lines.collect();
    found.sort_unstable();
    assert_eq!(found, ALLOWED, "normal dependencies of sealog-core");
}

/// The tree above is that of this platform; others, and dependencies that are off by default, are
/// declared.
#[test]
fn the_core_declares_no_other_dependency_for_any_platform() {
    let metadata = cargo("metadata --no-deps --format-version 1");
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let core = packages.iter().find(|package| package["name"] == "sealog-core").unwrap();
    let declared = core["dependencies"].as_array().unwrap();
    let mut found: Vec<_> = declared
        .iter()
        .filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(found, ALLOWED, "dependencies of sealog-core that are not for its tests");
}

#[test]
fn the_core_has_no_std_and_no_unsafe_code() {
    let lib = fs::read_to_string(workspace_root().join("core/src/lib.rs")).unwrap();
    for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
        let there = lib.lines().any(|line| line.trim() == attribute);
        assert!(there, "core/src/lib.rs lacks {attribute}");
    }
}

fn cargo(args: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args.split(' '))
        .arg("--offline")
        .current_dir(workspace_root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
