//! How a caller's thread waits: parked, with no executor.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Waits for the end of the future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Some(ended) = wait_until(future.as_mut(), None) {
            return ended;
        }
    }
}

/// Waits so long at most, and gives `None` then; the future is polled once in any case.
pub(crate) fn wait_for<T>(
    future: Pin<&mut impl Future<Output = T>>,
    timeout: Duration,
) -> Option<T> {
    // What is beyond the end of the clock is never.
    wait_until(future, Instant::now().checked_add(timeout))
}

fn wait_until<T>(
    future: Pin<&mut impl Future<Output = T>>,
    deadline: Option<Instant>,
) -> Option<T> {
    // In a task of a caller's tokio runtime, its channels would at some point have the task yield
    // before they give anything more, which a thread that waits never does.
    let mut future = pin!(tokio::task::unconstrained(future));
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(signal.clone());
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(ended) = future.as_mut().poll(&mut context) {
            return Some(ended);
        }
        if !signal.received(deadline) {
            return None;
        }
    }
}

#[derive(Default)]
struct Signal {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Waits for the signal and takes it; `false` if the deadline comes first.
    fn received(&self, deadline: Option<Instant>) -> bool {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while !*given {
            given = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(given).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    let waited = self.changed.wait_timeout(given, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        std::mem::take(&mut *given)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};

    use super::*;

    #[test]
    fn a_future_that_is_ready_needs_no_time() {
        assert_eq!(wait(ready(7)), 7);
        assert_eq!(wait_for(pin!(ready(7)), Duration::ZERO), Some(7));
    }

    #[test]
    fn a_future_that_never_ends_is_given_up() {
        assert_eq!(wait_for(pin!(pending::<()>()), Duration::ZERO), None);
        assert_eq!(wait_for(pin!(pending::<()>()), Duration::from_millis(1)), None);
    }

    #[test]
    fn a_wake_by_another_thread_and_one_during_the_poll_both_count() {
        for wakes_itself in [true, false] {
            let mut polls = 0;
            let twice = poll_fn(|context| {
                polls += 1;
                if polls == 2 {
                    return Poll::Ready(());
                }
                let waker = context.waker().clone();
                if wakes_itself {
                    waker.wake();
                } else {
                    std::thread::spawn(|| waker.wake());
                }
                Poll::Pending
            });
            assert_eq!(wait_for(pin!(twice), Duration::MAX), Some(()));
        }
    }
}
