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
fn a_log_in_a_bucket_is_inspected_verified_drawn_and_repaired() {
    use sealog_blocking::{Fetcher, ObjectSeq, quarantine};
    let Some(log) = prefix("repair") else { return };
    for command in ["inspect", "verify", "report", "quarantine"] {
        assert!(run([command, &log]).failed(2).contains(&log));
    }
    run_with(["append", &log, "--key-column=1"], b"7\tone\n8\ttwo\n").good();
    run_with(["append", &log, "--region=7"], b"three\n").good();
    assert_eq!(run(["inspect", &log, "--format=json"]).good().lines().count(), 5);
    run(["verify", &log]).good();
    assert!(run(["report", &log]).good().contains("no history is lost"));

    // Somebody damages the last entry of region 8.
    let time_limit = std::time::Duration::from_secs(30);
    let environment = sealog_shell::environment();
    let at = sealog_shell::open_url(&log, environment, true).unwrap();
    let key = at.prefix.object_key(ObjectSeq(1));
    let rows = run(["inspect", &log, "--format=json"]).good();
    let row: serde_json::Value = serde_json::from_str(rows.lines().nth(1).unwrap()).unwrap();
    let segment = &row["regions"][1];
    let (size, end) = (row["bytes"].as_u64().unwrap(), &segment["offset"]);
    let end = end.as_u64().unwrap() + segment["length"].as_u64().unwrap();
    let fetcher = Fetcher::new(at.store.clone(), Default::default()).unwrap();
    let whole = fetcher.fetch(&key, 0..size).unwrap();
    let mut damaged = whole.to_vec();
    damaged[end as usize - 1] ^= 1;
    let header = sealog_blocking::Header::decode(&whole).unwrap();
    let object = sealog_core::Payload::new(vec![damaged.into()]);
    let sequence = header.sequence;
    let damage =
        sealog_blocking::repair::Replacement { sequence, key, header, segments: vec![], object };
    quarantine::replace(at.store.clone(), &whole, &damage, time_limit).unwrap();
    assert!(run(["verify", &log]).out.contains("1 problem"));

    // The objects were created just now.
    let refused = run(["quarantine", &log, "--yes"]).failed(3);
    assert!(refused.contains("a writer may be at work: object"), "{refused}");
    let said = run(["quarantine", &log, "--yes", "--quiet-for=0s"]).good();
    assert!(said.contains("object 1 is repaired"), "{said}");
    run(["verify", &log]).good();
    assert_eq!(run(["read", &log, "--region=7", "--lines"]).good(), "7\tone\nthree\n");
    assert_eq!(run(["read", &log, "--region=8", "--lines"]).good(), "");
}

#[test]
fn a_bucket_is_checked_and_measured_and_nothing_is_left_there() {
    let Some(log) = prefix("checked") else { return };
    run_with(["append", &log, "--region=7"], b"one\n").good();
    crate::check_store::is_fit(&run(["check-store", &log, "--format=json"]).good());
    let flags = ["--for=200ms", "--callers=2", "--flush-interval=0s", "--format=json"];
    let out = run([&["bench", &log], &flags[..]].concat()).good();
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(found["appends"].as_u64() > Some(0), "{out}");
    // Of the log, nothing changed; beside it, nothing is left.
    assert_eq!(run(["read", &log, "--region=7", "--lines"]).good(), "one\n");
    let location = sealog_shell::open_url(&log, sealog_shell::environment(), true).unwrap();
    let name = log.trim_start_matches("s3://sealog-test/");
    let listing = async {
        use futures_util::TryStreamExt;
        let listing = location.store.list(None);
        listing.map_ok(|found| found.location.to_string()).try_collect::<Vec<_>>().await
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let keys = runtime.block_on(listing).unwrap();
    let own: Vec<_> = keys.iter().filter(|key| key.starts_with(name)).collect();
    assert!(!own.is_empty());
    assert!(own.iter().all(|key| key.starts_with(&format!("{name}/"))), "{own:?}");
}

#[test]
fn a_store_that_fails_is_told_apart_from_a_log_that_does() {
    let Some(log) = prefix("failing") else { return };
    let missing = log.replace("sealog-test", "no-such-bucket");
    let err = run(["regions", &missing]).failed(3);
    assert!(err.contains("The bucket or container does not exist there: check its name"), "{err}");
    let err = run(["append", &missing, "--region=1"]).failed(3);
    assert!(err.contains("The bucket or container does not exist there: check its name"), "{err}");
    // A setting goes before the environment.
    let setting = ["--store", "aws_endpoint=http://127.0.0.1:9/", "--open-timeout=1ms"];
    let arguments = [&["append", &log, "--region=1"][..], &setting].concat();
    run(arguments).failed(3);
    // Of such a store nothing can be said: that is no verdict.
    for command in ["check-store", "bench"] {
        let err = run([command, &missing]).failed(3);
        assert!(err.starts_with("error: listing") && !err.contains("\nerror: "), "{err}");
        assert!(
            err.contains("The bucket or container does not exist there: check its name"),
            "{err}"
        );
    }
}
