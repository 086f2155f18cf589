//! A writer that is killed at random points, over and over: what it said was acknowledged is there
//! exactly once, in order, and nothing else is. `SEALOG_SEED` chooses other points.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use rustix::process::Signal;
use sealog_tests::child::{Child, Order, Report, Settings};
use sealog_tests::entries::{History, Random, Stamped};
use sealog_tests::place::{Place, named};

const KILLS: u64 = 25;
const REGIONS: std::ops::RangeInclusive<u64> = 1..=4;
/// How many entries of a region are under way at once.
const WINDOW: u64 = 8;

#[tokio::test]
async fn every_entry_that_a_killed_writer_acknowledged_is_there_exactly_once() {
    let seed = std::env::var("SEALOG_SEED").map_or(0x5EA1_0600, |seed| seed.parse().unwrap());
    let mut random = Random::new(seed);
    let place = Place::directory();
    let mut acked = Vec::new();
    let mut before = History::default();
    for run in 0..KILLS {
        acked.extend(run_until_killed(&place, run, &mut random).await);
        // Mostly the next one that opens the log is the next one to be killed.
        if run % 5 == 4 {
            before = check(&place, &acked, &before, run, seed).await;
        }
    }
    let entries = before.len();
    let told = format!(
        "seed {seed}: {KILLS} kills, {} entries acknowledged, {entries} there\n",
        acked.len()
    );
    io::stderr().write_all(told.as_bytes()).unwrap();
    assert!(acked.len() as u64 > 10 * KILLS, "the writers were killed before they did much");
}

/// Every fifth is killed at some time around its opening, the others after some acknowledgements
/// and a little later.
async fn run_until_killed(place: &Place, run: u64, random: &mut Random) -> Vec<Stamped> {
    let mut child = Child::start(env!("CARGO_BIN_EXE_sealog-test-writer"), place, 2);
    let append = Order::Append {
        regions: REGIONS.collect(),
        author: run,
        from: 0,
        count: u64::MAX,
        window: WINDOW,
    };
    let open = Order::open(place, &format!("run {run}"), Settings::default());
    child.order(&[open, append]).await;
    let mut said = Vec::new();
    let while_opening = run.is_multiple_of(5);
    if !while_opening {
        let acks = 1 + random.below(400) as usize;
        // The first report is that the log is open.
        while said.len() <= acks {
            said.push(child.next().await);
        }
    }
    let longest = if while_opening { 60_000 } else { 10_000 };
    tokio::time::sleep(Duration::from_micros(random.below(longest))).await;
    child.signal(Signal::KILL);
    said.extend(child.last_words().await);
    let acked = said.into_iter().filter_map(|report| match report {
        Report::Acked(entry) => Some(entry),
        Report::Opened { .. } => None,
        other => panic!("run {run}: {other:?}"),
    });
    acked.collect()
}

async fn check(place: &Place, acked: &[Stamped], before: &History, run: u64, seed: u64) -> History {
    let wal = place.open(named("the parent")).await.unwrap();
    let history = History::read(&wal).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let situation = format!("seed {seed}, after run {run}");
    history.assert_holds(acked, &situation);
    assert!(history.continues(before), "{situation}: history changed");
    let mut acknowledged = BTreeMap::new();
    for entry in acked {
        *acknowledged.entry((entry.stamp.region, entry.stamp.author)).or_insert(0) += 1;
    }
    for region in REGIONS {
        for author in 0..=run {
            let acknowledged = acknowledged.get(&(region, author)).copied().unwrap_or(0);
            let there = history.of_author(region, author);
            let gap =
                there.iter().zip(0..).find(|(entry, counter)| entry.stamp.counter != *counter);
            assert_eq!(gap, None, "{situation}: something before it is missing");
            let there = there.len() as u64;
            assert!(
                there <= acknowledged + WINDOW,
                "{situation}: run {author} had {acknowledged} acknowledged and {WINDOW} under way \
                 in region {region}, and {there} are there"
            );
        }
        let entries = history.0.get(&region).into_iter().flatten();
        let authors: Vec<u64> = entries.map(|entry| entry.stamp.author).collect();
        assert!(authors.is_sorted(), "{situation}: region {region} is out of order");
        assert!(authors.iter().all(|author| *author <= run), "{situation}: who was that?");
    }
    assert!(history.0.keys().all(|region| REGIONS.contains(region)), "{situation}: a region more");
    history
}
