//! Openings that are killed at each of their requests, before it and after it, leave nothing that
//! a later opening mistakes for history.

use rustix::process::Signal;
use sealog_tests::child::{Act, Fault, Order, Report, Settings};
use sealog_tests::entries::{History, Stamp, Stamped};
use sealog_tests::hooked::Moment;
use sealog_tests::place::Place;
use sealog_tokio::{Error, RegionId};

use crate::logs::Template;
use crate::{recovered, start, tell};

/// More than an opening makes here.
const MOST_REQUESTS: u64 = 100;

#[tokio::test]
async fn an_opening_that_is_killed_at_any_request_leaves_no_history_behind() {
    for template in Template::ALL {
        for moment in [Moment::Before, Moment::After] {
            let mut kills = 0;
            loop {
                kills += 1;
                assert!(kills < MOST_REQUESTS, "{template:?}: it never opens");
                if kill_at(template, kills, moment).await {
                    break;
                }
            }
            tell(&format!(
                "{template:?} log, opening killed {moment:?} each of {} requests",
                kills - 1
            ));
            assert!(kills > 4, "{template:?}: fewer requests than an opening has");
        }
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
        let stamp = Stamp { region: 2, author: 2, counter: 0 };
        match wal.append(RegionId(2), stamp.payload()).await {
            Ok(id) => acked.push(Stamped { id: id.0, stamp }),
            Err(error) => {
                let Error::Fenced { writer, .. } = error.error() else {
                    panic!("{situation}: {error}")
                };
                // A claim is no start object, and need not be read for its name.
                assert!(writer.as_deref().is_none_or(|name| name == "the killed"), "{error}");
            }
        }
    }
    let first = recovered(&place, &situation).await;
    assert_eq!(sorted(&first), sorted_entries(acked), "{situation}");
    let second = recovered(&place, &situation).await;
    assert_eq!(second, first, "{situation}, opened again");
    through
}

fn sorted(history: &History) -> Vec<Stamped> {
    sorted_entries(history.0.values().flatten().copied().collect())
}

fn sorted_entries(mut entries: Vec<Stamped>) -> Vec<Stamped> {
    entries.sort_by_key(|entry| (entry.stamp.region, entry.id));
    entries
}
