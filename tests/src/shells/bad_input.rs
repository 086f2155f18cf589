use sealog_core::{EntryId, Error, Options, Outcome, RegionId};

use super::{A, Log, PREFIX, Stage, open, payloads};
use crate::hooked::Asked;

pub(super) fn a_prefix_that_is_none_is_named_and_the_store_is_not_asked<L: Log>() {
    let stage = Stage::default();
    for prefix in ["", "/absolute", "a/../b", "a//b", "a/", "with space"] {
        let Err(error) = L::open(stage.store(), prefix, Options::default()) else {
            panic!("{prefix:?} is taken")
        };
        assert!(matches!(error, Error::InvalidOptions { option: "prefix", .. }), "{error}");
        assert!(error.to_string().contains(&format!("{prefix:?}")), "{error}");
    }
    assert_eq!(stage.count(Asked::List), 0);
}

pub(super) fn an_option_out_of_range_is_named_and_nothing_is_touched<L: Log>() {
    let stage = Stage::default();
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let url = format!("file://{}", directory.display());
    let options = Options { max_in_flight: 65, ..Options::default() };
    for opened in [
        L::open(stage.store(), PREFIX, options.clone()),
        L::open_local(&directory, options.clone()),
        L::open_url(&url, options),
    ] {
        let Err(Error::InvalidOptions { option: "max_in_flight", value, allowed }) = opened else {
            panic!("it is taken, or refused for something else")
        };
        assert_eq!((&*value, allowed), ("65", "1 to 64"));
    }
    assert_eq!(stage.count(Asked::List), 0);
    assert!(!directory.exists());
}

pub(super) fn a_reserved_region_is_refused_and_nothing_is_written<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, Options::default());
    let puts = stage.count(Asked::Put);
    let region = RegionId(u64::MAX - 15);
    let error = log.append_batch(vec![(A, "x".into()), (region, "y".into())]).unwrap_err();
    assert!(matches!(error.error(), Error::InvalidRegion { .. }), "{error}");
    assert_eq!(error.outcome(), Outcome::NotWritten);
    for refused in [
        log.obsolete(region, EntryId(1)),
        log.wait_durable(region, EntryId(1)),
        log.read(region, EntryId::ZERO).remove(0).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::InvalidRegion { .. })), "{refused:?}");
    }
    assert_eq!(stage.count(Asked::Put), puts);
    log.append(RegionId(u64::MAX - 16), "the last region").unwrap();
}

pub(super) fn an_append_that_is_too_large_is_refused_and_the_next_one_passes<L: Log>() {
    let options = Options { max_append_bytes: 10, ..Options::default() };
    let log: L = open(&Stage::default(), options);
    let error = log.append(A, "12345678901").unwrap_err();
    assert!(
        matches!(error.error(), Error::AppendTooLarge { size: 11, limit: 10, .. }),
        "{error}"
    );
    assert_eq!(error.outcome(), Outcome::NotWritten);
    log.append_batch(vec![(A, "123456".into()), (A, "78901".into())]).unwrap_err();
    log.append(A, "1234567890").unwrap();
    assert_eq!(payloads(&log, A), ["1234567890"]);
}

pub(super) fn with_must_exist_a_prefix_without_a_log_is_missing_and_stays_empty<L: Log>() {
    let stage = Stage::default();
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("log");
    let options = Options { must_exist: true, ..Options::default() };
    for (opened, name) in [
        (L::open(stage.store(), PREFIX, options.clone()), PREFIX),
        (L::open_local(&directory, options), directory.to_str().unwrap()),
    ] {
        let Err(error) = opened else { panic!("{name} is there") };
        assert!(matches!(error, Error::Missing { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(stage.keys(), [""; 0]);
    assert!(!directory.exists());
}

pub(super) fn a_url_that_names_no_log_is_refused<L: Log>() {
    for url in ["nonsense", "ftp://host/prefix", "memory:///"] {
        let Err(error) = L::open_url(url, Options::default()) else { panic!("{url} is taken") };
        assert!(matches!(error, Error::InvalidOptions { option: "url", .. }), "{error}");
        assert!(error.to_string().contains(url), "{error}");
    }
}
