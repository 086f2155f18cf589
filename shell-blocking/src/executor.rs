//! The executor: all that is known of it is in this file, so that another one could take its place.
//!
//! Each log has one thread, in which its actor runs and all that it spawns; nothing runs in a
//! caller's thread or in the executor's pool, which callers could keep busy while they wait. What is
//! taken of async-std is to block on a future, timers, and a tokio reactor for the clients of remote
//! stores. Its feature `tokio1` keeps one runtime for that in the whole process, and takes a
//! caller's for it if the executor is first used inside of one, to lose it with that. A log's
//! thread is in none.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::{Duration, Instant};

use async_std::task;
use futures_util::FutureExt;
use futures_util::future::{AbortHandle, BoxFuture, abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use sealog_core::Time;
use sealog_shell::{Runtime, Suspended};
use tokio::sync::{mpsc, oneshot};

/// Starts a thread for a life, and for what the life spawns. It ends with the life, and drops
/// what is not done then.
pub(crate) fn start<F>(
    name: &str,
    life: impl FnOnce(Executor) -> F + Send + 'static,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let thread = move || {
        let (spawned, spawning) = mpsc::unbounded_channel();
        let executor = Executor::new(spawned);
        // Boxed before the executor has it, which hands it on by value a dozen times: a build
        // without optimization keeps each on the stack, and that of a thread is small.
        task::block_on(run(life(executor).boxed(), spawning));
    };
    thread::Builder::new().name(name.to_owned()).spawn(thread).map(drop)
}

/// What runs in a thread, and whether the thread ends with it.
type Job = BoxFuture<'static, bool>;

async fn run(life: BoxFuture<'static, ()>, mut spawning: mpsc::UnboundedReceiver<Job>) {
    let mut jobs = FuturesUnordered::<Job>::new();
    jobs.push(life.map(|()| true).boxed());
    poll_fn(|context| {
        loop {
            while let Poll::Ready(Some(job)) = spawning.poll_recv(context) {
                jobs.push(job);
            }
            if ready!(jobs.poll_next_unpin(context)) != Some(false) {
                return Poll::Ready(());
            }
        }
    })
    .await;
}

/// The thread of a log, and the origin of its times.
#[derive(Clone)]
pub(crate) struct Executor {
    origin: Instant,
    suspended: Arc<Suspended>,
    spawned: mpsc::UnboundedSender<Job>,
}

impl Executor {
    fn new(spawned: mpsc::UnboundedSender<Job>) -> Executor {
        Executor { origin: Instant::now(), suspended: Arc::new(Suspended::new()), spawned }
    }

    fn passed(&self) -> Duration {
        self.origin.elapsed() + self.suspended.so_far()
    }
}

impl Runtime for Executor {
    type Sleep = BoxFuture<'static, ()>;
    type Task<T: Send + 'static> = Task<T>;

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.passed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, time: Time) -> Self::Sleep {
        let left = Duration::from_nanos(time.as_nanos()).saturating_sub(self.passed());
        task::sleep(left).boxed()
    }

    fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let (tell, ended) = oneshot::channel();
        let (work, abort) = abortable(AssertUnwindSafe(work).catch_unwind());
        let job = work.map(|ended| {
            if let Ok(ended) = ended {
                drop(tell.send(ended));
            }
            false
        });
        // If the thread has ended, so has the task.
        drop(self.spawned.send(job.boxed()));
        Task { ended, abort }
    }
}

/// A task that ends with this.
pub(crate) struct Task<T> {
    ended: oneshot::Receiver<Result<T, Box<dyn Any + Send>>>,
    abort: AbortHandle,
}

impl<T> Future for Task<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Poll::Ready(match ready!(Pin::new(&mut self.ended).poll(cx)) {
            Ok(Ok(done)) => Some(done),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => None,
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// Tells when it is dropped.
    struct Tell(Sender<&'static str>);

    impl Drop for Tell {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }

    async fn keep(what: Tell) {
        pending::<()>().await;
        drop(what);
    }

    #[test]
    fn a_task_ends_when_it_is_dropped_and_with_its_thread() {
        let (tell, told) = channel();
        start("test", |executor| async move {
            let first = executor.spawn(keep(Tell(tell.clone())));
            let second = executor.spawn(keep(Tell(tell.clone())));
            executor.sleep(Duration::from_millis(1)).await;
            drop(first);
            executor.sleep(Duration::from_millis(1)).await;
            tell.send("the life ends").unwrap();
            std::mem::forget(second);
        })
        .unwrap();
        let told: Vec<_> = told.into_iter().collect();
        assert_eq!(told, ["dropped", "the life ends", "dropped"]);
    }

    #[test]
    fn a_task_is_gone_if_its_thread_is() {
        let (tell, told) = channel();
        start("test", |executor| async move { drop(tell.send(executor)) }).unwrap();
        let executor = told.recv().unwrap();
        // Whether it was spawned before the end or after it.
        assert_eq!(crate::wait::wait(executor.spawn(pending::<()>())), None);
        assert_eq!(crate::wait::wait(executor.spawn(async {})), None);
    }

    #[test]
    fn a_panic_of_the_work_is_that_of_whoever_waits_for_it_alone() {
        let (tell, told) = channel();
        start("test", |executor| async move {
            let panics = executor.spawn(async { panic!("on purpose") });
            let caught = AssertUnwindSafe(panics).catch_unwind().await;
            let panic: Result<Option<()>, _> = caught;
            tell.send(panic.is_err_and(|panic| panic.is::<&str>())).unwrap();
            tell.send(executor.spawn(async { 7 }).await == Some(7)).unwrap();
        })
        .unwrap();
        assert!(told.recv().unwrap() && told.recv().unwrap());
    }

    /// The executor hands a life on by value many times.
    #[test]
    fn a_large_life_fits_on_the_stack() {
        let (tell, told) = channel();
        start("test", |_| async move {
            let large = std::hint::black_box([1_u8; 200_000]);
            ready(()).await;
            tell.send(large.iter().map(|byte| u64::from(*byte)).sum::<u64>()).unwrap();
        })
        .unwrap();
        assert_eq!(told.recv(), Ok(200_000));
    }

    #[test]
    fn a_timer_ends_after_its_time_and_one_beyond_all_times_does_not_end() {
        let (tell, told) = channel();
        start("test", |executor| async move {
            let time = executor.now().after(Duration::from_millis(20));
            executor.sleep_until(time).await;
            tell.send(executor.now() >= time).unwrap();
            let never = executor.sleep_until(Time::from_nanos(u64::MAX));
            tell.send(never.now_or_never().is_none()).unwrap();
        })
        .unwrap();
        assert!(told.recv().unwrap() && told.recv().unwrap());
    }

    /// As the clients of remote stores need it; and of a runtime of its own, not the caller's.
    #[test]
    fn work_has_a_tokio_reactor() {
        let caller = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = caller.block_on(async {
            let (tell, told) = channel();
            start("test", |executor| async move {
                let work = executor.spawn(async { tokio::runtime::Handle::try_current() });
                tell.send(work.await).unwrap();
            })
            .unwrap();
            told.recv().unwrap()
        });
        let found = found.unwrap().unwrap();
        assert_ne!(found.id(), caller.handle().id());
    }
}
