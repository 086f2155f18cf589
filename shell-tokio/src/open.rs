//! Driving an opening to its end.

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::opening::{Opening, OpeningEffect, OpeningEvent};
use sealog_core::{Error, Options, Prefix, StorageAnswer, StorageEffect, Time, Writer};
use sealog_shell::Location;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::actor::{Actor, Waiter};
use crate::wal::{Shared, Wal};

pub(crate) async fn open_local(directory: PathBuf, options: Options) -> Result<Wal, Error> {
    // Before the directory is touched.
    options.validate()?;
    let must_exist = options.must_exist;
    locate(options, move || sealog_shell::open_local(directory, must_exist)).await
}

pub(crate) async fn open_url(url: String, options: Options) -> Result<Wal, Error> {
    options.validate()?;
    let must_exist = options.must_exist;
    locate(options, move || sealog_shell::open_url(&url, sealog_shell::environment(), must_exist))
        .await
}

async fn locate(
    options: Options,
    locate: impl FnOnce() -> Result<Location, Error> + Send + 'static,
) -> Result<Wal, Error> {
    // It may touch the file system.
    let location = tokio::task::spawn_blocking(locate).await.unwrap_or_else(|error| {
        gone(error);
        Err(Error::Stopped)
    })?;
    open(location.store, location.prefix, options).await
}

pub(crate) async fn open(
    store: Arc<dyn ObjectStore>,
    prefix: Prefix,
    options: Options,
) -> Result<Wal, Error> {
    let clock = Clock(Instant::now());
    let identity = sealog_shell::identity()?;
    let mut opening = Opening::new(clock.now(), prefix.clone(), options, identity)?;
    let mut requests = Requests::new(store.clone());
    loop {
        while let Some(effect) = opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => requests.start(effect),
                OpeningEffect::Notice(told) => sealog_shell::tell_operator(&prefix, &told),
                OpeningEffect::Opened(recovered) => {
                    let mut writer = Writer::new(clock.now(), *recovered);
                    writer.set_keys_per_delete(sealog_shell::keys_per_delete(store.as_ref()));
                    return Ok(start(writer, store, clock));
                }
                OpeningEffect::Failed(error) => return Err(error),
            }
        }
        let tick = opening.next_tick();
        let event = tokio::select! {
            answer = requests.next() => OpeningEvent::Storage(answer),
            () = clock.sleep_until(tick) => OpeningEvent::Tick,
        };
        opening.handle(clock.now(), event);
    }
}

fn start(writer: Writer<Waiter>, store: Arc<dyn ObjectStore>, clock: Clock) -> Wal {
    let (queue, queued) = mpsc::unbounded_channel();
    let (control, controls) = mpsc::unbounded_channel();
    let shared = Shared {
        queue,
        control,
        options: writer.options().clone(),
        prefix: writer.prefix().clone(),
        epoch: writer.epoch(),
        store: store.clone(),
    };
    tokio::spawn(Actor::new(writer, Requests::new(store), clock, queued, controls).run());
    Wal::new(shared)
}

/// The monotonic clock that a machine's times are on.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// When `time` is; `None` if that is never.
    pub(crate) fn instant(&self, time: Time) -> Option<Instant> {
        self.0.checked_add(std::time::Duration::from_nanos(time.as_nanos()))
    }

    async fn sleep_until(&self, time: Option<Time>) {
        match time.and_then(|time| self.instant(time)) {
            Some(instant) => tokio::time::sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }
}

/// The requests under way, each in a task of its own. Dropping it aborts them.
pub(crate) struct Requests {
    store: Arc<dyn ObjectStore>,
    tasks: JoinSet<StorageAnswer>,
}

impl Requests {
    fn new(store: Arc<dyn ObjectStore>) -> Requests {
        Requests { store, tasks: JoinSet::new() }
    }

    pub(crate) fn start(&mut self, effect: StorageEffect) {
        let store = self.store.clone();
        self.tasks.spawn(async move {
            let time_limit = tokio::time::sleep(effect.time_limit());
            sealog_shell::carry_out(&store, effect, time_limit).await
        });
    }

    /// The next answer; never if nothing is under way. Dropping the future loses no answer.
    pub(crate) async fn next(&mut self) -> StorageAnswer {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(answer)) => return answer,
                Some(Err(error)) => gone(error),
                None => std::future::pending().await,
            }
        }
    }

    /// An answer that is there already.
    pub(crate) fn try_next(&mut self) -> Option<StorageAnswer> {
        self.tasks.try_join_next()?.map_err(gone).ok()
    }
}

/// A task that did not end by itself: its runtime goes away, and so does whoever waits; or it
/// panicked although the client's panics are caught, and so must whoever waits for its answer.
pub(crate) fn gone(error: JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
