//! `sealog check-store`.

use serde_json::Value;

use crate::logs::{files, lived_in};
use crate::program::run;

const CHECKS: [&str; 7] = [
    "conditional create",
    "racing creates",
    "listing after create",
    "range read",
    "delete",
    "listing after delete",
    "listing of many",
];

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// That all is well, in JSON.
pub(crate) fn is_fit(out: &str) {
    let lines = lines(out);
    let (summary, checks) = lines.split_last().unwrap();
    assert_eq!(*summary, serde_json::json!({ "fit": true }), "{out}");
    let names: Vec<_> = checks.iter().map(|check| check["check"].as_str().unwrap()).collect();
    assert_eq!(names, CHECKS);
    for check in checks {
        assert_eq!(check["good"], true, "{out}");
        assert_eq!(check["problems"], serde_json::json!([]), "{out}");
        assert!(check["median_us"].as_u64() <= check["max_us"].as_u64(), "{out}");
    }
    // Four rounds of 32.
    assert_eq!(checks[1]["requests"], 128);
}

#[test]
fn a_log_may_live_in_a_directory_that_is_missing_and_stays_so() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("not/there/yet");
    is_fit(&run(["check-store", log.to_str().unwrap(), "--format=json"]).good());
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    let url = format!("file://{}", log.display());
    is_fit(&run(["check-store", &url, "--format=json"]).good());
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_log_that_is_there_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let before = files(parent.path());
    let out = run(["check-store", log.to_str().unwrap()]).good();
    assert!(out.ends_with(&format!("\na log may live at {}\n", log.display())), "{out}");
    for check in CHECKS {
        assert!(out.lines().any(|line| line.starts_with(&format!("{check}  "))), "{check}: {out}");
    }
    // So do directories.
    assert!(out.contains("\nlisting of many: it lists in no order"), "{out}");
    assert_eq!(files(parent.path()), before);
    assert_eq!(parent.path().read_dir().unwrap().count(), 1);
}

#[test]
fn fewer_keys_cost_fewer_requests() {
    let requests = |keys: &str| {
        let out = run(["check-store", "memory:///log", "--format=json", "--keys", keys]).good();
        lines(&out)[6]["requests"].as_u64().unwrap()
    };
    // All and from the middle on; and what is behind a full page.
    assert_eq!(["0", "20", "1100"].map(requests), [0, 2, 3]);
    run(["check-store", "memory:///log", "--keys", "many"]).failed(2);
}

#[test]
fn a_log_may_live_in_memory() {
    is_fit(&run(["check-store", "memory:///log", "--format=json"]).good());
}

#[test]
fn a_location_that_cannot_be_one_is_an_error_of_usage_and_one_that_fails_is_one_of_the_store() {
    let parent = tempfile::tempdir().unwrap();
    run(["check-store", "memory://"]).failed(2);
    run(["check-store", "ftp://host/log"]).failed(2);
    run(["check-store", parent.path().join("no prefix").to_str().unwrap()]).failed(2);
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    run(["check-store", file.join("log").to_str().unwrap()]).failed(3);
}

/// On servers that speak S3, in this process.
#[cfg(feature = "aws")]
mod on_s3 {
    use super::*;
    use crate::program::{Ran, command, start};
    use crate::server::{Lie, Server};

    fn check(server: &Server, more: &[&str]) -> Ran {
        run(arguments(server, more))
    }

    fn arguments(server: &Server, more: &[&str]) -> Vec<String> {
        let endpoint = format!("aws_endpoint={}", server.url());
        let settings =
            ["aws_allow_http=true", "aws_skip_signature=true", "aws_region=us-east-1", &endpoint];
        let settings = settings.iter().chain(more).flat_map(|setting| ["--store", *setting]);
        let arguments = ["check-store", "s3://bucket/log", "--format=json"];
        arguments.into_iter().chain(settings).map(String::from).collect()
    }

    #[test]
    fn a_server_that_keeps_its_word_is_fit_and_nothing_is_left_there() {
        let server = Server::start(Lie::None);
        is_fit(&check(&server, &[]).good());
        assert_eq!(server.keys(), Vec::<String>::new());
    }

    #[test]
    fn each_lie_of_a_server_ends_it_with_code_1_and_names_what_is_broken() {
        for (lie, broken) in [
            (Lie::IgnoresConditions, "conditional create"),
            (Lie::LooksFirst, "racing creates"),
            (Lie::ListsLate, "listing after create"),
            (Lie::ListsDeleted, "listing after delete"),
            (Lie::OtherBytes, "range read"),
        ] {
            let server = Server::start(lie);
            let ran = check(&server, &[]);
            assert_eq!(ran.code, Some(1), "{lie:?}: {ran:#?}");
            assert_eq!(ran.err, "");
            let lines = lines(&ran.out);
            assert_eq!(lines.last(), Some(&serde_json::json!({ "fit": false })), "{lie:?}");
            let found: Vec<_> = lines.iter().filter(|line| line["good"] == false).collect();
            assert!(found.iter().any(|line| line["check"] == broken), "{lie:?}: {found:?}");
            assert!(found.iter().all(|line| line["problems"][0].is_string()), "{found:?}");
            assert_eq!(server.keys(), Vec::<String>::new(), "{lie:?}");
        }
    }

    #[test]
    fn a_client_that_is_told_to_make_no_conditional_creates_is_not_fit() {
        let server = Server::start(Lie::None);
        let ran = check(&server, &["aws_conditional_put=disabled"]);
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.out.contains("{\"check\":\"conditional create\",\"good\":false"), "{ran:#?}");
        assert_eq!(server.keys(), Vec::<String>::new());
    }

    #[cfg(unix)]
    #[test]
    fn a_signal_is_heard_and_leaves_nothing_behind() {
        // It takes its time with creates.
        let server = Server::start(Lie::LooksFirst);
        let mut child = start(command(arguments(&server, &[])));
        while server.keys().is_empty() {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap();
        assert!(kill.success());
        let ran = Ran::of(child, b"");
        assert_eq!((ran.code, ran.err.as_str()), (Some(143), ""), "{ran:?}");
        assert_eq!(server.keys(), Vec::<String>::new());
    }
}
