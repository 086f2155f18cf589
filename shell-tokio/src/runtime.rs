//! What the log needs of tokio.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use sealog_core::Time;
use sealog_shell::{Runtime, Suspended};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, Sleep};

/// The runtime in which it is used, and the origin of a log's times: those of tokio's clock, which a
/// test may pause, and beside it the time in which the machine was suspended.
#[derive(Clone)]
pub(crate) struct Tokio {
    origin: Instant,
    suspended: Arc<Suspended>,
}

impl Tokio {
    pub(crate) fn new() -> Tokio {
        Tokio { origin: Instant::now(), suspended: Arc::new(Suspended::new()) }
    }
}

impl Runtime for Tokio {
    type Sleep = Sleep;
    type Task<T: Send + 'static> = Task<T>;

    fn now(&self) -> Time {
        let passed = self.origin.elapsed() + self.suspended.so_far();
        Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, time: Time) -> Sleep {
        let time = Duration::from_nanos(time.as_nanos()).saturating_sub(self.suspended.so_far());
        match self.origin.checked_add(time) {
            Some(instant) => tokio::time::sleep_until(instant),
            None => tokio::time::sleep(Duration::MAX),
        }
    }

    fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task(tokio::spawn(work))
    }
}

/// A task that ends with this.
pub(crate) struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(|ended| ended.map_err(gone).ok())
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A task that did not end by itself: its runtime goes away, and so does whoever waits; or it
/// panicked although the client's panics are caught, and so must whoever waits for its answer.
pub(crate) fn gone(error: JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
