//! What a log needs of its shell's runtime.

use std::future::Future;
use std::time::Duration;

use sealog_core::Time;

/// What a shell lends of its runtime to one log: a clock, timers, and tasks. A value belongs to one
/// log, whose times count from when the value was made.
pub trait Runtime: Clone + Send + Sync + Unpin + 'static {
    /// A timer.
    type Sleep: Future<Output = ()> + Send;

    /// A task under way: what became of its work, or `None` if the runtime went away before the
    /// end of it. Dropping it abandons the work; polling it panics if the work panicked.
    type Task<T: Send + 'static>: Future<Output = Option<T>> + Send + Unpin;

    /// The time since the value was made, with the time in which the machine was suspended where that
    /// is known ([`Suspended`](crate::Suspended)): a writer must know for how long it was silent.
    fn now(&self) -> Time;

    /// A timer that ends at `time`, which may be past or beyond the end of all times; later if the
    /// machine is suspended meanwhile.
    fn sleep_until(&self, time: Time) -> Self::Sleep;

    /// Does the work beside whatever else is going on.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Self::Task<T>;

    /// A timer that ends so much later.
    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.sleep_until(self.now().after(duration))
    }
}
