use futures_util::TryStreamExt;
use object_store::ObjectStoreExt;

use super::*;

fn at(url: &str) -> Result<Location, Error> {
    open_url(url, Vec::new(), false)
}

#[test]
fn a_directory_and_its_url_name_the_same_log() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("logs/a");
    let local = open_local(&directory, false).unwrap();
    assert!(directory.is_dir());
    let url = Url::from_directory_path(&directory).unwrap();
    let by_url = at(url.as_str()).unwrap();
    assert_eq!(local.prefix, by_url.prefix);
    assert_eq!(local.prefix.as_str(), "a");
    assert_eq!(local.store.to_string(), by_url.store.to_string());
    assert!(local.store.to_string().contains("/logs"), "{}", local.store);
    for location in [local, by_url] {
        let described = format!("{:?}", location.store);
        assert!(described.contains("fsync: true"), "{described}");
    }
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_to_a_directory_names_the_directory() {
    let parent = tempfile::tempdir().unwrap();
    open_local(parent.path().join("real"), false).unwrap();
    std::os::unix::fs::symlink(parent.path().join("real"), parent.path().join("link")).unwrap();
    let location = open_local(parent.path().join("link"), false).unwrap();
    assert_eq!(location.prefix.as_str(), "real");
}

#[test]
fn with_must_exist_a_missing_directory_is_missing_and_stays_so() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a");
    let error = open_local(&directory, true).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    assert!(!directory.exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "taken").unwrap();
    for directory in [file.clone(), file.join("log")] {
        let error = open_local(&directory, false).unwrap_err();
        assert!(matches!(error, Error::Store { .. }), "{error}");
        assert!(!error.is_retryable());
        assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"taken");
}

#[test]
fn a_directory_whose_name_is_no_prefix_is_refused_and_not_made() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("my log");
    let error = open_local(&directory, false).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "directory", .. }), "{error}");
    assert!(error.to_string().contains("my log"), "{error}");
    assert!(!directory.exists());
    assert!(matches!(
        open_local("/", false),
        Err(Error::InvalidOptions { option: "directory", .. })
    ));
}

#[test]
fn a_url_that_names_no_log_is_refused_with_its_text_and_without_its_password() {
    for url in [
        "nonsense",
        "ftp://host/prefix",
        "memory:///",
        "memory:///a%20b",
        "http://host/prefix",
        "file://host/prefix",
    ] {
        let error = at(url).unwrap_err();
        assert!(matches!(error, Error::InvalidOptions { option: "url", .. }), "{url}: {error}");
        assert!(error.to_string().contains(url), "{url}: {error}");
    }
    let error = at("https://name:secret@host/prefix?token=secret").unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    let error = at("s3://name:secret@a bucket/prefix?token=secret").unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_url_with_a_fragment_or_a_query_names_no_other_log() {
    let parent = tempfile::tempdir().unwrap();
    let base = Url::from_directory_path(parent.path()).unwrap();
    let base = base.as_str();
    let urls = [format!("{base}log#2"), format!("{base}log?2"), "memory:///log#2".into()];
    for url in urls.iter().map(String::as_str).chain(["s3://bucket/log#2"]) {
        let error = at(url).unwrap_err();
        assert!(matches!(error, Error::InvalidOptions { option: "url", .. }), "{error}");
    }
    assert!(!parent.path().join("log").exists());
}

#[cfg(not(feature = "aws"))]
#[test]
fn a_store_that_is_not_built_in_names_its_feature() {
    let error = at("s3://bucket/prefix").unwrap_err().to_string();
    assert!(error.contains("feature \"aws\""), "{error}");
}

#[cfg(feature = "aws")]
#[test]
fn a_bucket_is_opened_with_the_options_given() {
    let options = |list: &[(&str, &str)]| {
        list.iter().map(|(k, v)| (String::from(*k), String::from(*v))).collect::<Vec<_>>()
    };
    let known = options(&[
        ("aws_region", "eu-central-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("aws_allow_http", "true"),
        ("aws_profile", "ignored"),
    ]);
    let location = open_url("s3://bucket/logs/a", known, false).unwrap();
    assert_eq!(location.prefix.as_str(), "logs/a");
    assert!(location.store.to_string().contains("bucket"), "{}", location.store);
    let described = format!("{:?}", location.store);
    assert!(described.contains("max_retries: 2"), "{described}");
    let wrong = options(&[("aws_allow_http", "perhaps")]);
    let error = open_url("s3://bucket/logs/a", wrong, false).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "url", .. }), "{error}");
    assert!(error.to_string().contains("perhaps"), "{error}");
    assert!(open_url("s3://bucket", Vec::new(), false).is_err());
}

#[test]
fn a_directory_that_is_read_is_not_made_and_with_must_exist_is_missing() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("logs/a");
    let url = Url::from_directory_path(&directory).unwrap();
    let by_url = |must_exist| read_url(url.as_str(), Vec::new(), must_exist);
    for location in [read_local(&directory, false), by_url(false)] {
        assert_eq!(location.unwrap().prefix.as_str(), "a");
    }
    for refused in [read_local(&directory, true), by_url(true)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error}");
        assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    }
    assert!(!parent.path().join("logs").exists());
}

#[test]
fn a_directory_that_is_made_later_is_seen_by_who_reads_it() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("logs of mine/a");
    let location = read_local(&directory, false).unwrap();
    let listed = |location: &Location| {
        let prefix = Path::from(location.prefix.as_str());
        let found = location.store.list(Some(&prefix)).map_ok(|meta| meta.location.to_string());
        futures_executor::block_on(found.try_collect::<Vec<_>>()).unwrap()
    };
    assert_eq!(listed(&location), [""; 0]);
    std::fs::create_dir_all(directory.join("objects")).unwrap();
    std::fs::write(directory.join("objects/0.wal"), "an object").unwrap();
    assert_eq!(listed(&location), ["a/objects/0.wal"]);
    assert_eq!(listed(&read_local(&directory, true).unwrap()), ["a/objects/0.wal"]);
    let key = Path::from("a/objects/0.wal");
    let range = futures_executor::block_on(location.store.get_range(&key, 3..9));
    assert_eq!(range.unwrap(), "object");
}

#[test]
fn what_is_read_must_be_a_directory_with_a_name_that_is_a_prefix() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "taken").unwrap();
    for (directory, must_exist) in
        [(file.clone(), false), (file, true), (parent.path().join("missing/../log"), false)]
    {
        let error = read_local(&directory, must_exist).unwrap_err();
        assert!(matches!(error, Error::Store { operation: Operation::List, .. }), "{error}");
        assert!(!error.is_retryable());
        assert!(error.to_string().contains(directory.to_str().unwrap()), "{error}");
    }
    let error = read_local(parent.path().join("my log"), false).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "directory", .. }), "{error}");
}

#[test]
fn a_place_beside_a_log_is_as_durable_as_the_log_and_leaves_no_directory_behind() {
    let parent = tempfile::tempdir().unwrap();
    let kept = parent.path().join("logs/a");
    open_local(&kept, false).unwrap();
    for (directory, left) in [(kept, 1), (parent.path().join("not/there"), 0)] {
        let url = Url::from_directory_path(&directory).unwrap();
        let by_url = scratch_url(url.as_str(), Vec::new(), "try-1");
        for location in [scratch_local(&directory, "try-1"), by_url] {
            let Location { store, prefix } = location.unwrap();
            let described = format!("{store:?}");
            assert!(described.contains("fsync: true"), "{described}");
            let name = directory.file_name().unwrap().to_str().unwrap();
            assert_eq!(prefix.as_str(), format!("{name}.try-1"));
            let key = Path::from(format!("{prefix}/objects/0.wal"));
            futures_executor::block_on(store.put(&key, "an object".into())).unwrap();
            let place = directory.with_file_name(prefix.as_str());
            assert!(place.join("objects/0.wal").is_file());
            futures_executor::block_on(store.delete(&key)).unwrap();
            assert!(!place.exists());
            assert_eq!(directory.exists(), left == 1);
        }
    }
    // The log that was there, and nothing else.
    assert!(parent.path().join("logs/a/objects").is_dir());
    assert_eq!(parent.path().read_dir().unwrap().count(), 1);
}

#[test]
fn a_place_beside_a_log_has_a_name_that_a_prefix_can_have() {
    let parent = tempfile::tempdir().unwrap();
    let location = scratch_url("memory:///logs/a", Vec::new(), "try-1").unwrap();
    assert_eq!(location.prefix.as_str(), "logs/a.try-1");
    for refused in [
        scratch_url("memory:///logs/a", Vec::new(), "a b"),
        scratch_local(parent.path().join("a"), "b/../c"),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::InvalidOptions { option: "prefix", .. }), "{error}");
    }
}
