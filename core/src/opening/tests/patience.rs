//! How long an opening goes on: `open_timeout` counts from the last answer that succeeded (DESIGN.md
//! section 4).

use super::*;

/// Runs an opening against a store of which every request takes this long. `fails` says which requests
/// fail, by their number.
fn slow(
    store: &mut Store,
    takes: Duration,
    open_timeout: Duration,
    mut fails: impl FnMut(usize, &StorageEffect) -> Option<StoreErrorKind>,
) -> (Result<Recovered, Error>, Duration) {
    let options = Options { open_timeout, open_concurrency: 1, ..Options::default() };
    let (mut now, mut asked) = (BEGAN, 0);
    let mut opening = Opening::new(now, prefix(), options, identity()).unwrap();
    loop {
        match opening.poll_effect() {
            Some(OpeningEffect::Storage(effect)) => {
                now = now.after(takes);
                asked += 1;
                let answer = match fails(asked - 1, &effect) {
                    Some(kind) => effect.failed(StoreError::new(kind)),
                    None => store.answer(&effect),
                };
                opening.handle(now, OpeningEvent::Storage(answer));
            }
            Some(OpeningEffect::Notice(_)) => {}
            Some(OpeningEffect::Opened(recovered)) => return (Ok(*recovered), now.since(BEGAN)),
            Some(OpeningEffect::Failed(error)) => return (Err(error), now.since(BEGAN)),
            None => {
                now = now.max(opening.next_tick().expect("it waits for nothing"));
                opening.handle(now, OpeningEvent::Tick);
            }
        }
    }
}

fn log(objects: u64) -> Store {
    let history = (1..objects).map(|at| make(at, 1).after(at - 1, 1).entry(7, 10));
    Store::of(history.chain([make(0, 1).writer("a")]))
}

const TEN: Duration = Duration::from_secs(10);

#[test]
fn what_goes_on_may_go_on_and_one_failure_late_does_not_end_it() {
    // 451 objects, of which the 448th fails once, 75 minutes after the beginning.
    let mut store = log(451);
    let mut failed = false;
    let (result, took) = slow(&mut store, TEN, Duration::from_secs(60), |_, effect| {
        let fails = *effect.key() == key(448) && !core::mem::replace(&mut failed, true);
        fails.then_some(StoreErrorKind::TimedOut)
    });
    assert_eq!(result.unwrap().start, link(452, 453));
    assert!(took > Duration::from_secs(4_500), "{took:?}");
}

/// Wherever it is: each request may fail once, whatever came before it took.
#[test]
fn each_request_may_fail_once_a_long_time_after_the_last_that_succeeded_began() {
    let takes = Duration::from_secs(25);
    let mut requests = 0;
    let count = slow(&mut log(3), takes, Duration::from_secs(60), |at, _| {
        requests = at + 1;
        None
    });
    count.0.unwrap();
    for failing in 0..requests {
        let fail =
            |at: usize, _: &StorageEffect| (at == failing).then_some(StoreErrorKind::TimedOut);
        let (result, _) = slow(&mut log(3), takes, Duration::from_secs(60), fail);
        assert!(result.is_ok(), "request {failing} of {requests}: {}", result.unwrap_err());
    }
}

/// From some request on nothing succeeds any more.
#[test]
fn it_ends_open_timeout_after_the_last_success_in_whatever_step() {
    let mut requests = 0;
    let count = slow(&mut log(3), TEN, Duration::from_secs(60), |at, _| {
        requests = at + 1;
        None
    });
    count.0.unwrap();
    for first in 0..requests {
        for kind in [StoreErrorKind::TimedOut, StoreErrorKind::Transient] {
            let fail = |at: usize, _: &StorageEffect| (at >= first).then_some(kind);
            let (result, took) = slow(&mut log(3), TEN, Duration::from_secs(60), fail);
            let error = result.unwrap_err();
            assert!(error.is_retryable(), "{error}");
            let dead = took - TEN * first as u32;
            assert!(dead <= Duration::from_secs(75), "{first} of {requests}: {dead:?} {error}");
            let is_check = matches!(&error, Error::Store { operation: Operation::Create, .. });
            assert!(dead >= Duration::from_secs(40) || is_check, "{first}: {dead:?} {error}");
        }
    }
}

/// Reads that tell what became of a put succeed as often as it is repeated.
#[test]
fn a_put_that_never_succeeds_ends_it_although_its_read_backs_do() {
    let mut store = Store::of([make(0, 1).writer("a"), claim(1)]);
    let (result, took) = slow(&mut store, Duration::from_millis(10), TEN, |_, effect| {
        (operation_of(effect) == Operation::Create).then_some(StoreErrorKind::Transient)
    });
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Store { operation: Operation::Create, .. }), "{error}");
    assert!(took < Duration::from_secs(12), "{took:?}");
}
