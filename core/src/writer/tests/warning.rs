//! What the operator is told while something takes long: from 5 s on, at most once per 10 s.

use super::*;
use StoreErrorKind::{NotFound, TimedOut};

/// A log whose 6 hangs, ticked as it asks for it, up to a time in seconds: when it said what.
fn told(log: &mut Log, seconds: u64) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(at) =
        log.writer.next_tick().filter(|at| *at <= Time::from_millis(seconds * 1000))
    {
        log.now = at;
        let second = at.as_nanos() / 1_000_000_000;
        told.extend(log.handle(Event::Tick).into_iter().map(|said| format!("{second}: {said}")));
    }
    log.now = Time::from_millis(seconds * 1000);
    told
}

#[test]
fn a_create_older_than_5_s_warns_with_key_age_and_backlog_at_most_once_per_10_s() {
    let mut log = Log::new(at_once());
    log.append(1, "a");
    assert_eq!(
        told(&mut log, 29),
        [
            "5: 6.wal slow for 5s, 163 B",
            "15: 6.wal slow for 15s, 163 B",
            "25: 6.wal slow for 25s, 163 B",
        ]
    );
    // Another one that is slow by then waits for its turn.
    log.append(1, "b");
    log.created(6);
    assert_eq!(told(&mut log, 40), ["35: 7.wal slow for 6s, 163 B"]);
    log.created(7);
    assert_eq!(told(&mut log, 100), [""; 0]);
}

#[test]
fn a_create_that_is_repeated_is_as_old_as_its_first_attempt() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    for at in [0, 100, 300, 700, 1500, 3100] {
        log.tick_at(at);
        log.fails(6, TimedOut);
        log.fails(6, NotFound);
    }
    assert_eq!(told(&mut log, 6), ["5: 6.wal slow for 5s, 163 B"]);
}

#[test]
fn a_stall_older_than_5_s_warns_with_age_and_backlog_at_most_once_per_10_s() {
    let mut log = Log::new(Options { max_unpersisted_bytes: 1, ..enqueued() });
    log.append(1, "a");
    told(&mut log, 2);
    log.append(1, "b");
    log.append(1, "c");
    let stalls: Vec<_> =
        told(&mut log, 20).into_iter().filter(|said| said.contains("stalled")).collect();
    assert_eq!(stalls, ["7: 2 stalled for 5s, 163 B", "17: 2 stalled for 15s, 163 B"]);
    log.created(6);
    assert_eq!(told(&mut log, 24), [""; 0], "b has its place, and c is the first for 4 s");
    assert_eq!(log.stats().stalled_appends_total, 2);
}

#[test]
fn in_durable_a_full_pipeline_is_a_stall_too() {
    let mut log = Log::new(Options { max_in_flight: 1, max_batch_bytes: 1, ..at_once() });
    for payload in ["a", "b", "c", "queued"] {
        log.append(1, payload);
    }
    let said = told(&mut log, 6);
    assert_eq!(said, ["5: 1 stalled for 5s, 489 B", "5: 6.wal slow for 5s, 489 B"]);
}

#[test]
fn a_poisoned_or_stopped_log_warns_no_more() {
    let mut log = Log::new(enqueued());
    log.append(1, "a");
    log.append(1, "b");
    log.fails(6, StoreErrorKind::Exists);
    log.finds_twice(6, &[]);
    assert_eq!(log.writer.next_tick(), None, "though 7 runs out");
}
