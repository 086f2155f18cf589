use std::time::Duration;

use sealog_core::{Error, Options, Outcome, RegionId};

use super::stage::Reaction;
use super::{A, B, Log, Stage, at_once, one_by_one, open, payloads, submit_numbers};
use crate::hooked::Asked;

pub(super) fn what_is_released_stays_hidden_and_what_comes_later_is_seen<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, at_once());
    log.append_batch(vec![(A, "1".into()), (B, "of another".into())]).unwrap();
    let puts = stage.count(Asked::Put);
    log.release(A).unwrap();
    assert_eq!(stage.count(Asked::Put), puts + 1);
    assert_eq!(payloads(&log, A), [""; 0]);
    log.append(A, "2").unwrap();
    let regions = |log: &L| log.regions().unwrap().iter().map(|r| r.region).collect::<Vec<_>>();
    for log in [log, open(&stage, at_once())] {
        assert_eq!(payloads(&log, A), ["2"]);
        assert_eq!(payloads(&log, B), ["of another"]);
        assert_eq!(regions(&log), [A, B]);
    }
}

pub(super) fn a_region_that_is_released_in_full_takes_nothing_more<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, at_once());
    // What is needed of the other region keeps the record from being collected.
    log.append_batch(vec![(A, "1".into()), (B, "needed".into())]).unwrap();
    log.release_all(A).unwrap();
    let refuses = |log: &L| {
        let error = log.append(A, "2").unwrap_err();
        assert!(matches!(error.error(), Error::Released { .. }), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
        log.append(B, "of another").unwrap();
        assert_eq!(payloads(log, A), [""; 0]);
    };
    refuses(&log);
    // It is in the log itself.
    refuses(&open(&stage, at_once()));
}

pub(super) fn a_release_covers_the_appends_that_were_submitted_before_it<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    let submitted = submit_numbers(&log, 50);
    log.release(A).unwrap();
    for wait in submitted {
        wait().unwrap();
    }
    assert_eq!(payloads(&log, A), [""; 0]);
}

pub(super) fn a_release_of_nothing_costs_nothing<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, at_once());
    let puts = stage.count(Asked::Put);
    log.release(A).unwrap();
    log.release_all(A).unwrap();
    assert_eq!(stage.count(Asked::Put), puts);
    log.append(A, "it refuses nothing").unwrap();
}

pub(super) fn a_release_that_fails_is_stored_with_the_next_object<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, Options { retry_for: Duration::ZERO, ..at_once() });
    log.append(A, "1").unwrap();
    stage.first_puts(1, Reaction::Refuse);
    let error = log.release(A).unwrap_err();
    assert!(matches!(error.error(), Error::Store { .. }), "{error}");
    log.append(B, "takes the record along").unwrap();
    drop(log);
    assert_eq!(payloads(&open::<L>(&stage, at_once()), A), [""; 0]);
}

pub(super) fn a_release_that_was_not_taken_says_so<L: Log>() {
    let log: L = open(&Stage::default(), at_once());
    let reserved = RegionId(u64::MAX - 15);
    log.append(A, "1").unwrap();
    for refused in [log.release(reserved), log.release_all(reserved)] {
        let error = refused.unwrap_err();
        assert!(matches!(error.error(), Error::InvalidRegion { .. }), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
    }
    log.stop().unwrap();
    for refused in [log.release(A), log.release_all(A)] {
        let error = refused.unwrap_err();
        assert!(matches!(error.error(), Error::Stopped), "{error}");
        assert_eq!(error.outcome(), Outcome::NotWritten);
    }
    assert_eq!(payloads(&log, A), ["1"]);
}

pub(super) fn what_holds_the_log_is_named_and_lets_go<L: Log>() {
    let stage = Stage::default();
    let log: L = open(&stage, one_by_one());
    assert_eq!(log.held_by().unwrap().object, None);
    let needed = log.append(B, "the one entry that is needed").unwrap();
    let mut last = needed;
    for wait in submit_numbers(&log, 20) {
        last = wait().unwrap();
    }
    log.obsolete(A, last).unwrap();
    let held = log.held_by().unwrap();
    assert_eq!(held.object.unwrap().sequence, needed.sequence());
    assert_eq!(held.boundary, needed.sequence());
    assert_eq!(held.holders.iter().map(|holder| holder.region).collect::<Vec<_>>(), [B]);
    assert_eq!((held.most[0].region, held.most[0].frees_objects), (B, 21));

    log.release(B).unwrap();
    assert_eq!(log.held_by().unwrap().object, None);
    // The next object carries it: what is left is the start object, the release's and this one.
    log.append(A, "new").unwrap();
    stage.wait_until_collected(3);
    assert_eq!(log.held_by().unwrap().holders[0].region, A);
}
