//! The program on a bucket: see `scripts/moto`.
#![cfg(feature = "aws")]

use std::io::Write;

use crate::program::{run, run_with};

/// A new prefix in the emulator's bucket; says so if there is none.
fn prefix(test: &str) -> Option<String> {
    if std::env::var_os("SEALOG_TEST_S3_ENDPOINT").is_none() {
        let required = std::env::var("SEALOG_REQUIRE_S3").is_ok_and(|value| value == "1");
        assert!(!required, "SEALOG_REQUIRE_S3 is 1 and SEALOG_TEST_S3_ENDPOINT is not set");
        let told = format!("{test}: NOTHING WAS TESTED: there is no S3 (see scripts/moto)\n");
        let _ = std::io::stderr().write_all(told.as_bytes());
        return None;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Some(format!("s3://sealog-test/{test}-{}-{}", since.as_nanos(), std::process::id()))
}

#[test]
fn a_log_in_a_bucket_is_written_and_read() {
    let Some(log) = prefix("program") else { return };
    for command in ["regions", "held", "replay"] {
        assert!(run([command, &log]).failed(2).contains(&log));
    }
    let ids = run_with(["append", &log, "--region=7", "--ids"], b"one\ntwo\n").good();
    assert_eq!(ids.lines().count(), 2);
    run_with(["append", &log, "--key-column=1"], b"7\tthree\n8\tfour\n").good();
    assert_eq!(run(["read", &log, "--region=7", "--lines"]).good(), "one\ntwo\n7\tthree\n");
    assert_eq!(run(["replay", &log, "--region=8", "--raw"]).good(), "8\tfour");
    let regions = run(["regions", &log, "--format=json"]).good();
    let begins = |line: &str| line.starts_with("{\"region\":7,\"entries\":3,\"bytes\":");
    assert!(regions.lines().next().is_some_and(begins), "{regions}");
    assert!(run(["held", &log, "--format=json"]).good().contains("\"region\":7"));
}

#[test]
fn a_store_that_fails_is_told_apart_from_a_log_that_does() {
    let Some(log) = prefix("failing") else { return };
    let missing = log.replace("sealog-test", "no-such-bucket");
    let err = run(["regions", &missing]).failed(3);
    assert!(err.contains("check credentials, permissions and that the bucket exists"), "{err}");
    let err = run(["append", &missing, "--region=1"]).failed(3);
    assert!(err.contains("check credentials, permissions and that the bucket exists"), "{err}");
    // A setting goes before the environment.
    let setting = ["--store", "aws_endpoint=http://127.0.0.1:9/", "--open-timeout=1ms"];
    let arguments = [&["append", &log, "--region=1"][..], &setting].concat();
    run(arguments).failed(3);
}
