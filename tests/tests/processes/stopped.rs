//! A writer that is stopped in the middle of a put, while another one opens the log and appends,
//! and then goes on: it never acknowledges what the other does not hold. Its put reaches the
//! store before each of the other opening's requests, and after all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt};
use rustix::process::Signal;
use sealog_tests::child::{Act, Appended, Child, Fault, Kind, Order, Settings};
use sealog_tests::entries::{History, LARGE, Stamp, Stamped};
use sealog_tests::hooked::{Asked, Hooked, Moment};
use sealog_tests::place::{Place, named};
use sealog_tests::proxy::{Gate, Head, Proxy, Treatment};
use sealog_tokio::{RegionId, Wal};
use tokio::sync::Mutex as AsyncMutex;

use crate::{recovered, start, tell};

/// The first writer's entries before it is stopped, and those that it is to append then.
const BEFORE: u64 = 3;
const THEN: u64 = 3;
/// More than an opening makes here.
const MOST_REQUESTS: u64 = 100;

/// The process stops itself around its put, and goes on before a request of the other opening:
/// until its appends are answered the opening waits.
#[tokio::test]
async fn a_writer_that_is_stopped_around_a_put_to_a_directory_acknowledges_nothing_of_its_own() {
    for moment in [Moment::Before, Moment::After] {
        let mut acknowledged = Vec::new();
        let mut through = false;
        while !through {
            let number = acknowledged.len() as u64 + 1;
            assert!(number < MOST_REQUESTS, "it never opens");
            let situation = format!("stopped {moment:?} its put, resumed at request {number}");
            let place = Place::directory();
            let (mut first, acked) = begin(&place, &place).await;
            let fault = Fault { asked: Some(Asked::Put), number: 1, moment, act: Act::Stop };
            first.order(&[Order::Arm(fault), appends(1, 2)]).await;
            first.stopped().await;

            let first = Arc::new(AsyncMutex::new(first));
            let resumed: Arc<Mutex<Option<Appended>>> = Arc::default();
            let (child, report) = (first.clone(), resumed.clone());
            let second = open_and_meanwhile(&place, number, move || {
                let (child, report) = (child.clone(), report.clone());
                async move {
                    let appended = resume(&mut *child.lock().await).await;
                    *report.lock().unwrap() = Some(appended);
                }
                .boxed()
            })
            .await;
            let mut first = first.lock().await;
            let appended = resumed.lock().unwrap().take();
            through = appended.is_none();
            let history = append_to(&second, &situation).await;
            let appended = match appended {
                Some(appended) => appended,
                None => resume(&mut first).await,
            };
            acknowledged.push(appended.acked.len());
            let acked = [acked, appended.acked.clone()].concat();
            end(&place, &mut first, &acked, &appended, &history, &situation).await;
        }
        tell(&format!(
            "stopped {moment:?} a put to a directory, resumed at each request: {acknowledged:?} acknowledged"
        ));
    }
}

/// What becomes of the two puts that a proxy holds while their writer is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Landing {
    /// Both land while the other one opens.
    Both,
    /// One does, the other one when the log belongs to the other writer.
    First,
    Second,
}

/// A proxy holds two puts, and lets them through before a request of the other opening, or when
/// it is over; the process goes on when the other one has the log.
#[tokio::test]
async fn a_writer_that_is_stopped_in_two_puts_to_s3_acknowledges_nothing_of_its_own() {
    let Some(place) = Place::bucket("stopped") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    for landing in [Landing::Both, Landing::First, Landing::Second] {
        let mut acknowledged = Vec::new();
        let mut through = false;
        while !through {
            let number = acknowledged.len() as u64 + 1;
            assert!(number < MOST_REQUESTS, "it never opens");
            let situation = format!("S3, {landing:?} landed at request {number}");
            let place = place.log(format!("{landing:?}-{number}"));
            let (mut first, acked) = begin(&place, &place.by_way_of(proxy.endpoint())).await;
            let gates = [Gate::new(), Gate::new()];
            proxy.treat(hold(gates.clone(), BEFORE + 1));
            first.order(&[appends(1, 2)]).await;
            for gate in &gates {
                gate.held().await;
            }
            first.signal(Signal::STOP);
            first.stopped().await;

            let early: Vec<Gate> = match landing {
                Landing::Both => gates.to_vec(),
                Landing::First => vec![gates[0].clone()],
                Landing::Second => vec![gates[1].clone()],
            };
            let landing = early.clone();
            let second = open_and_meanwhile(&place, number, move || {
                let gates = landing.clone();
                async move { land(&gates).await }.boxed()
            })
            .await;
            through = early.iter().all(|gate| !gate.has_landed());
            let history = append_to(&second, &situation).await;
            land(&gates).await;
            let appended = resume(&mut first).await;
            acknowledged.push(appended.acked.len());
            let acked = [acked, appended.acked.clone()].concat();
            end(&place, &mut first, &acked, &appended, &history, &situation).await;
        }
        tell(&format!(
            "stopped in two puts to S3, {landing:?} landed at each request: {acknowledged:?} acknowledged"
        ));
    }
}

/// Holds the puts of objects from a sequence on.
fn hold(gates: [Gate; 2], from: u64) -> impl Fn(&Head) -> Treatment {
    move |head| {
        let held = gates.iter().zip(from..).find(|(_, sequence)| {
            head.method == "PUT" && head.target.contains(&format!("/{sequence:020}.wal"))
        });
        held.map_or(Treatment::Pass, |(gate, _)| Treatment::Hold(gate.clone()))
    }
}

async fn land(gates: &[Gate]) {
    for gate in gates {
        gate.open();
        gate.landed().await;
    }
}

/// Nobody can have all of the object while its writer is stopped: the rest of it leaves when the
/// log belongs to another one.
#[tokio::test]
async fn a_writer_that_is_stopped_in_the_middle_of_a_body_acknowledges_nothing_of_its_own() {
    let Some(place) = Place::bucket("stopped-body") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    let (mut first, acked) = begin(&place, &place.by_way_of(proxy.endpoint())).await;
    let gate = Gate::new();
    proxy.treat_next_put(Treatment::HoldBody(gate.clone()));
    first.order(&[appends(LARGE, 1)]).await;
    gate.held().await;
    first.signal(Signal::STOP);
    first.stopped().await;
    gate.open();
    let situation = "stopped in the middle of a body";
    let second = place.open(named(SECOND)).await.unwrap();
    let history = append_to(&second, situation).await;
    assert!(!gate.has_landed());
    let appended = resume(&mut first).await;
    assert_eq!(appended.acked, []);
    end(&place, &mut first, &acked, &appended, &history, situation).await;
}

const SECOND: &str = "the second";

/// The first writer, with some entries acknowledged; `way` is how it reaches the place.
async fn begin(place: &Place, way: &Place) -> (Child, Vec<Stamped>) {
    let mut first = start(way);
    let settings = Settings { max_batch_bytes: 1, ..Settings::default() };
    first.order(&[Order::open(place, "the first", settings)]).await;
    first.opened().await.unwrap();
    first.order(&[Order::append(1, 1, 0..BEFORE)]).await;
    let acked = first.appended().await.acked;
    assert_eq!(acked.len() as u64, BEFORE);
    (first, acked)
}

/// So many at once, each in an object of its own.
fn appends(region: u64, window: u64) -> Order {
    Order::Append { regions: vec![region], author: 1, from: BEFORE, count: THEN, window }
}

/// Opens the log in this process, with something to do before its request of this number.
async fn open_and_meanwhile(
    place: &Place,
    number: u64,
    meanwhile: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> Wal {
    let opening = Arc::new(AtomicBool::new(true));
    let still = opening.clone();
    let around = move |store| {
        let hooked = Hooked::new(store, move |request| {
            let at = (request.number, request.moment) == (number, Moment::Before);
            if at && still.load(Ordering::Relaxed) {
                return meanwhile().map(Ok).boxed();
            }
            std::future::ready(Ok(())).boxed()
        });
        hooked as Arc<_>
    };
    let wal = place.open_through(around, named(SECOND)).await.unwrap();
    opening.store(false, Ordering::Relaxed);
    wal
}

/// The second one's history, as it is when it has appended to it.
async fn append_to(second: &Wal, situation: &str) -> History {
    for counter in 0..2 {
        let stamp = Stamp { region: 1, author: 2, counter };
        let appended = second.append(RegionId(1), stamp.payload()).await;
        assert!(appended.is_ok(), "{situation}: {appended:?}");
    }
    History::read(second).await.unwrap_or_else(|error| panic!("{situation}: {error}"))
}

async fn resume(first: &mut Child) -> Appended {
    first.signal(Signal::CONT);
    first.appended().await
}

async fn end(
    place: &Place,
    first: &mut Child,
    acked: &[Stamped],
    appended: &Appended,
    history: &History,
    situation: &str,
) {
    history.assert_holds(acked, situation);
    // At the latest now it knows.
    first.order(&[Order::append(1, 1, 100..101)]).await;
    let last = first.appended().await;
    assert_eq!(last.acked, [], "{situation}");
    for failure in appended.failures.iter().chain(&last.failures) {
        assert_eq!(failure.kind, Kind::Fenced, "{situation}: {failure:?}");
        assert_eq!(failure.writer.as_deref(), Some(SECOND), "{situation}: {failure:?}");
    }
    assert_eq!(&recovered(place, situation).await, history, "{situation}");
}
