//! Ten processes open one log at once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sealog_tests::child::{Appended, Child, Failure, Kind, Order, Settings};
use sealog_tests::entries::{Random, Stamped};
use sealog_tests::place::Place;

use crate::{recovered, start, tell};

const PROCESSES: u64 = 10;
/// Each that opens appends so many to a region of its own, and as many to one that all share.
const ENTRIES: u64 = 3;
const SHARED: u64 = 100;
/// Nobody gives up before whoever has the log has appended all of it: otherwise it could be that
/// the last claim was of one that gave up, and that nobody has the log.
const OPEN_ATTEMPTS: u32 = 1000;

#[tokio::test]
async fn of_ten_processes_that_open_a_directory_at_once_one_has_it_in_the_end() {
    rounds(Place::directory(), "directory", 200).await;
}

#[tokio::test]
async fn of_ten_processes_that_open_a_bucket_at_once_one_has_it_in_the_end() {
    if let Some(place) = Place::bucket("ten-processes") {
        // The emulator serves one request at a time, some 250 a round.
        let long = std::env::var_os("SEALOG_LONG").is_some();
        rounds(place, "S3", if long { 200 } else { 20 }).await;
    }
}

/// What became of a process in a round.
struct Fate {
    opened: Result<u64, Failure>,
    appended: Appended,
}

async fn rounds(place: Place, kind: &str, rounds: u64) {
    let began = Instant::now();
    let mut random = Random::new(rounds);
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| start(&place)).collect();
    let (mut contended, mut fenced, mut entries) = (0, 0, 0);
    for round in 0..rounds {
        let log = place.log(round);
        let fates = run(&mut children, &log, round, &mut random).await;
        let situation = format!("{kind}, round {round}");
        contended += fates.iter().filter(|fate| fate.opened.is_err()).count();
        fenced += fates.iter().filter(|fate| fate.opened.is_ok()).count() - 1;
        entries += check(&mut children, &log, fates, &situation).await;
    }
    tell(&format!(
        "ten processes, {kind}: {rounds} rounds within {:.1} s, {contended} processes contended, \
         {fenced} fenced, {entries} entries acknowledged",
        began.elapsed().as_secs_f64()
    ));
    assert!(contended > 0, "they were not there at once");
}

/// All open at once, without a second try, and append. In every second round a log is there; in
/// half of them some come a little later, and meet others that append already.
async fn run(children: &mut [Child], log: &Place, round: u64, random: &mut Random) -> Vec<Fate> {
    if round % 2 == 1 {
        children[0].open(log, "before").await.unwrap();
        children[0].order(&[Order::append(SHARED, PROCESSES, 0..2)]).await;
        assert_eq!(children[0].appended().await.acked.len(), 2);
    }
    let latest = if round % 4 < 2 { 1 } else { 40_000 };
    let delays: Vec<u64> = children.iter().map(|_| random.below(latest)).collect();
    let settings = Settings { open_attempts: OPEN_ATTEMPTS, ..Settings::default() };
    join_all(children.iter_mut().zip(delays).zip(0..).map(async |((child, delay), author)| {
        let orders = [
            Order::open(log, &name(author), settings),
            Order::append(author, author, 0..ENTRIES),
            Order::append(SHARED, author, 0..ENTRIES),
        ];
        tokio::time::sleep(Duration::from_micros(delay)).await;
        child.order(&orders).await;
        let opened = child.opened().await;
        let mut appended = child.appended().await;
        let shared = child.appended().await;
        appended.acked.extend(shared.acked);
        appended.failures.extend(shared.failures);
        Fate { opened, appended }
    }))
    .await
}

fn name(author: u64) -> String {
    format!("writer {author}")
}

/// Once all have come to rest, each appends once more: that of the owner is acknowledged.
async fn check(children: &mut [Child], log: &Place, fates: Vec<Fate>, situation: &str) -> usize {
    let mut acked: Vec<Stamped> = Vec::new();
    let mut owners = Vec::new();
    for (author, (child, fate)) in children.iter_mut().zip(&fates).enumerate() {
        acked.extend(&fate.appended.acked);
        let situation = format!("{situation}, writer {author}");
        if let Err(failure) = &fate.opened {
            assert_eq!(failure.kind, Kind::Contended, "{situation}: {failure:?}");
            continue;
        }
        let author = author as u64;
        child.order(&[Order::append(author, author, ENTRIES..ENTRIES + 1)]).await;
        let last = child.appended().await;
        if let [entry] = last.acked[..] {
            acked.push(entry);
            owners.push((author, child));
            // What it failed before, it would have failed now.
            assert!(fate.appended.failures.is_empty(), "{situation}: {:?}", fate.appended);
            continue;
        }
        for failure in fate.appended.failures.iter().chain(&last.failures) {
            assert_eq!(failure.kind, Kind::Fenced, "{situation}: {failure:?}");
            let by = failure.writer.as_deref();
            assert!(by.is_none_or(|by| by != name(author)), "{situation}: {failure:?}");
        }
    }
    let [(owner, child)] = &mut owners[..] else {
        panic!("{situation}: {} processes have the log", owners.len());
    };
    let latest = fates.iter().filter_map(|fate| fate.opened.as_ref().ok()).max();
    assert_eq!(fates[*owner as usize].opened.as_ref().ok(), latest, "{situation}: the newest wins");
    let history = child.read().await.unwrap();
    history.assert_holds(&acked, situation);
    // And a process that comes later sees the same.
    assert_eq!(recovered(log, situation).await, history, "{situation}");
    acked.len()
}
