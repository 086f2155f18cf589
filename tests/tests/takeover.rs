//! Take-over: the newest opening wins, however busy the old writer is (DESIGN.md section 12, rule
//! 2), and whoever opens a log beside one ends.

use std::io::Write;
use std::time::Duration;

use sealog_tests::pending;
use sealog_tests::takeover::{
    Latencies, Listings, Newcomer, Setting, TakenOver, Troubler, ends, take_over,
};

fn latencies(list: u64, get: u64, put: u64) -> Latencies {
    let [list, get, put] = [list, get, put].map(Duration::from_millis);
    Latencies { list, get, put }
}

/// Stores from a near one to a far one, and writers that the store lets be as fast as they want.
fn settings() -> Vec<Setting> {
    let mut settings = Vec::new();
    let stores = [
        (20, 20, 20),
        (100, 30, 40),
        (20, 100, 200),
        (200, 20, 20),
        (200, 20, 200),
        (200, 100, 20),
        (200, 100, 200),
    ];
    for (list, get, put) in stores {
        for rate in [1, 10, 30, 100] {
            for objects in [10, 2_000] {
                let latencies = latencies(list, get, put);
                settings.push(Setting { latencies, listings: Listings::InOrder, rate, objects });
            }
        }
    }
    for rate in [1_000, 2_000] {
        for objects in [10, 2_000] {
            let latencies = Latencies {
                list: Duration::from_micros(900),
                get: Duration::from_micros(100),
                put: Duration::from_micros(600),
            };
            settings.push(Setting { latencies, listings: Listings::AsADirectory, rate, objects });
        }
    }
    settings
}

fn row(err: &mut impl Write, setting: &Setting, taken: &TakenOver, judged: &Result<(), String>) {
    let TakenOver { attempts, time, listings, claims, rounds, made, .. } = taken;
    let judged = judged.as_ref().err().map_or("", String::as_str);
    let _ = writeln!(
        err,
        "| {setting:<75} | {attempts:>8} | {:>7} ms | {listings:>8} | {claims:>6} | {rounds:>6} | {made:>6} | {judged}",
        time.as_millis()
    );
}

#[test]
fn every_busy_writer_is_taken_over_within_six_rounds() {
    let mut err = std::io::stderr();
    let mut results = Vec::new();
    let _ = writeln!(
        err,
        "| {:<75} | attempts |       time | listings | claims | rounds |   made |",
        "store, writer and log"
    );
    for setting in settings() {
        let taken = take_over(setting);
        let judged = taken.judge();
        row(&mut err, &setting, &taken, &judged);
        results.push((format!("takeover/{setting}"), judged));
    }
    pending::judge(results);
}

#[test]
fn nothing_acknowledged_is_lost_in_any_take_over() {
    for setting in settings() {
        let taken = take_over(setting);
        assert!(taken.lost.is_empty(), "{setting}: {:?}", taken.lost);
    }
}

/// Each listing that is asked again, each suspicion and each restart counts.
#[test]
fn whoever_opens_a_log_beside_a_writer_at_work_ends_in_bounded_requests() {
    let newcomers = [Newcomer::Writer, Newcomer::View, Newcomer::Refresh, Newcomer::Survey];
    let troublers = [
        Troubler::Writes,
        Troubler::Collects,
        Troubler::WritesUnordered,
        Troubler::CollectsUnordered,
    ];
    let mut err = std::io::stderr();
    let mut results = Vec::new();
    for newcomer in newcomers {
        for troubler in troublers {
            let ending = ends(newcomer, troubler);
            let failed = ending.failed.as_ref().map_or("ended well".into(), |e| e.to_string());
            let _ = writeln!(
                err,
                "{newcomer:?} beside one that {troubler:?}: {} listings, {} requests, {failed}",
                ending.listings, ending.requests
            );
            results.push((
                format!("takeover/{newcomer:?} beside {troubler:?}"),
                ending.judge(newcomer, troubler),
            ));
        }
    }
    pending::judge(results);
}

#[test]
fn what_is_pending_of_take_overs_is_the_name_of_one() {
    let mut names: Vec<_> = settings().iter().map(|s| format!("takeover/{s}")).collect();
    for newcomer in ["Writer", "View", "Refresh", "Survey"] {
        for troubler in ["Writes", "Collects", "WritesUnordered", "CollectsUnordered"] {
            names.push(format!("takeover/{newcomer} beside {troubler}"));
        }
    }
    for (pending, _) in pending::of("takeover/") {
        assert!(names.iter().any(|name| name == pending), "no take-over is called {pending}");
    }
}
