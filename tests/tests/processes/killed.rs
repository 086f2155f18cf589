//! Openings that are killed at each of their requests, before it and after it, leave nothing that
//! a later opening mistakes for history.

use rustix::process::Signal;
use sealog_tests::child::{Act, Fault, Order, Report, Settings};
use sealog_tests::entries::{History, Stamp, Stamped};
use sealog_tests::hooked::Moment;
use sealog_tests::place::Place;
use sealog_tokio::{Error, RegionId, Wal};

use crate::logs::Template;
use crate::{recovered, start, tell};

/// An opening makes at least so many requests: two listings and two puts.
const LEAST_REQUESTS: u64 = 4;
/// More than an opening makes here.
const MOST_REQUESTS: u64 = 100;

#[tokio::test]
async fn an_opening_of_an_empty_log_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::Empty).await;
}

#[tokio::test]
async fn an_opening_of_a_clean_log_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::Clean).await;
}

#[tokio::test]
async fn an_opening_of_a_log_with_a_hole_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::Hole).await;
}

#[tokio::test]
async fn an_opening_of_a_log_with_a_claim_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::Claimed).await;
}

#[tokio::test]
async fn an_opening_of_a_log_with_a_stale_object_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::Stale).await;
}

#[tokio::test]
async fn an_opening_of_a_log_with_a_stale_object_and_a_hole_that_is_killed_leaves_no_history() {
    kill_at_each_request(Template::StaleBehindHole).await;
}

async fn kill_at_each_request(template: Template) {
    for moment in [Moment::Before, Moment::After] {
        let mut number = 1;
        while !kill_at(template, number, moment).await {
            number += 1;
            assert!(number < MOST_REQUESTS, "{template:?}: it never opens");
        }
        let requests = number - 1;
        tell(&format!("{template:?} log: opening killed {moment:?} each of {requests} requests"));
        assert!(requests >= LEAST_REQUESTS, "{template:?}: it was not killed");
    }
}

/// Returns whether the opening was through before its request of this number.
async fn kill_at(template: Template, number: u64, moment: Moment) -> bool {
    let situation = format!("{template:?}, killed {moment:?} request {number}");
    let place = Place::directory();
    let (mut acked, running) = template.make(&place).await;

    let mut child = start(&place);
    let fault = Fault { asked: None, number, moment, act: Act::Kill };
    let open = Order::open(&place, "the killed", Settings::default());
    child.order(&[Order::Arm(fault), open]).await;
    let through = match child.report().await {
        None => false,
        Some(Report::Opened { .. }) => true,
        Some(other) => panic!("{situation}: {other:?}"),
    };
    if through {
        child.signal(Signal::KILL);
    }
    assert_eq!(child.last_words().await, [], "{situation}");

    // Whoever had the log may have lost it: to a claim, or to a start object. If not, it is the
    // owner as before.
    if let Some(wal) = running {
        acked.extend(append_until_fenced(&wal, &situation).await);
    }
    let first = recovered(&place, &situation).await;
    assert_eq!(sorted(&first), sorted_entries(acked), "{situation}");
    let second = recovered(&place, &situation).await;
    assert_eq!(second, first, "{situation}, opened again");
    through
}

async fn append_until_fenced(wal: &Wal, situation: &str) -> Vec<Stamped> {
    let mut acked = Vec::new();
    for counter in 0..2 {
        let stamp = Stamp { region: 2, author: 2, counter };
        // The object of an earlier writer may be in the way, once.
        for _ in 0..2 {
            let error = match wal.append(RegionId(2), stamp.payload()).await {
                Ok(id) => {
                    acked.push(Stamped { id: id.0, stamp });
                    break;
                }
                Err(error) => error,
            };
            match error.error() {
                Error::Conflict { .. } => {}
                Error::Fenced { writer, .. } => {
                    assert_eq!(writer.as_deref(), Some("the killed"), "{situation}: {error}");
                    return acked;
                }
                _ => panic!("{situation}: {error}"),
            }
        }
    }
    assert_eq!(acked.len(), 2, "{situation}: the writer still has the log");
    acked
}

fn sorted(history: &History) -> Vec<Stamped> {
    sorted_entries(history.0.values().flatten().copied().collect())
}

fn sorted_entries(mut entries: Vec<Stamped>) -> Vec<Stamped> {
    entries.sort_by_key(|entry| (entry.stamp.region, entry.id));
    entries
}
