//! The log as both shells drive it: all but the runtime, which a shell lends as a [`Runtime`], and
//! the interface, which it puts around a [`Log`].

mod actor;
mod ahead;
mod door;
mod fetch;
mod opening;
mod read;
mod reader;
mod requests;
mod runtime;
mod source;
mod submission;
mod watch;

use std::fmt;
use std::sync::Arc;

use object_store::ObjectStore;
use sealog_core::catalog::{HeldBy, RegionInfo};
use sealog_core::read::{Hole, ReplayFilter};
use sealog_core::stats::Stats;
use sealog_core::{
    Append, EntryId, Epoch, Error, Event, Options, Outcome, Prefix, RegionId, WriteError, Writer,
};
use tokio::sync::{mpsc, oneshot};

use actor::{Control, Queued, Waiter};
use door::Door;
use source::Source;

pub use fetch::fetch;
pub use opening::{open, survey};
pub use read::{Read, ReadItem, Replay, ReplayItem};
pub use reader::Reader;
pub use runtime::Runtime;
pub use submission::Submission;
pub use watch::DurableWatch;

/// A handle of an open log, cheap to clone; [`open`] gives the first one. Once the last is dropped,
/// and with it every [`Read`] and [`Replay`], the log ends as a crash would end it, and whoever
/// waits is answered.
///
/// Handles send commands to the log's actor. A method whose actor is gone fails with
/// [`Error::Stopped`] and never hangs. What a call means is said by the shells' `Wal`, which has a
/// method of the same name; dropping the future of one that was polled takes nothing back.
pub struct Log<R: Runtime>(Arc<Shared<R>>);

struct Shared<R> {
    door: Arc<Door>,
    queue: mpsc::UnboundedSender<Queued>,
    control: mpsc::UnboundedSender<Control>,
    store: Arc<dyn ObjectStore>,
    options: Options,
    prefix: Prefix,
    epoch: Epoch,
    runtime: R,
}

impl<R: Runtime> Log<R> {
    fn new(shared: Shared<R>) -> Log<R> {
        Log(Arc::new(shared))
    }

    /// Submits an append, whatever waits for admission: fixes its place among all.
    pub fn submit(&self, append: Append) -> Submission {
        self.0.door.submit(append, &self.0.queue)
    }

    /// Submits an append, unless too much waits for admission.
    pub fn try_submit(&self, append: Append) -> Result<Submission, WriteError> {
        self.0.door.try_submit(append, &self.0.queue)
    }

    /// Submits an append once it is its turn. It takes its place in the line with this call.
    pub fn append(&self, append: Append) -> Submission {
        self.0.door.append(append, &self.0.queue)
    }

    /// Reads a region from `from` on.
    pub fn read(&self, region: RegionId, from: EntryId) -> Read<R> {
        Read::new(Source::Log(self.clone()), region, from)
    }

    /// Reads many regions in one pass.
    pub fn replay(&self, filter: ReplayFilter) -> Replay<R> {
        Replay::new(Source::Log(self.clone()), filter)
    }

    /// Waits until no id of the region at or below `id` waits to become durable.
    pub async fn wait_durable(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        self.done(|waiter| Event::WaitDurable { region, id, waiter }).await
    }

    /// Makes the region's entries at or below `id` obsolete.
    pub async fn obsolete(&self, region: RegionId, id: EntryId) -> Result<(), Error> {
        self.done(|waiter| Event::Obsolete { region, id, waiter }).await
    }

    /// Releases the region: what is in it by now is hidden for good.
    pub async fn release(&self, region: RegionId) -> Result<(), WriteError> {
        self.queue_release(region, false).await
    }

    /// Releases the region through every id that it could ever have.
    pub async fn release_all(&self, region: RegionId) -> Result<(), WriteError> {
        self.queue_release(region, true).await
    }

    async fn queue_release(&self, region: RegionId, in_full: bool) -> Result<(), WriteError> {
        let (waiter, answer) = oneshot::channel();
        let gone = || WriteError::new(Error::Stopped, Outcome::NotWritten);
        self.0.queue.send(Queued::Release { region, in_full, waiter }).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(WriteError::new(Error::Stopped, Outcome::Unknown)))
    }

    /// The largest id that was handed out for the region.
    pub async fn latest(&self, region: RegionId) -> Result<EntryId, Error> {
        self.ask(move |writer| writer.latest(region)).await
    }

    /// The region's largest id that is durable.
    pub async fn durable(&self, region: RegionId) -> Result<EntryId, Error> {
        self.ask(move |writer| writer.durable(region)).await
    }

    /// Subscribes to the region's durable position.
    pub async fn watch_durable(&self, region: RegionId) -> Result<DurableWatch, Error> {
        if region.is_reserved() {
            return Err(Error::InvalidRegion { region });
        }
        let control = self.0.control.downgrade();
        self.request(|reply| Control::Watch { region, control, reply }).await
    }

    /// The regions that hold something that is not obsolete.
    pub async fn regions(&self) -> Result<Vec<RegionInfo>, Error> {
        self.ask(|writer| writer.regions().collect()).await
    }

    /// What keeps the log's objects from being deleted.
    pub async fn held_by(&self) -> Result<HeldBy, Error> {
        self.ask(|writer| writer.held_by()).await
    }

    /// The holes that reads of the region met so far.
    pub async fn holes(&self, region: RegionId) -> Result<Vec<Hole>, Error> {
        self.ask(move |writer| writer.holes(region).cloned().collect()).await
    }

    /// What the log has done, and how it stands.
    pub async fn stats(&self) -> Result<Stats, Error> {
        let stats = self.ask(|writer| writer.stats()).await?;
        Ok(self.0.door.figures(stats))
    }

    /// Stores what was submitted so far, and waits until all of it is durable.
    pub async fn flush(&self) -> Result<(), Error> {
        let (waiter, answer) = oneshot::channel();
        self.0.queue.send(Queued::Flush { waiter }).map_err(|_| Error::Stopped)?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    /// Ends the log in order.
    pub async fn stop(&self) -> Result<(), Error> {
        self.done(|waiter| Event::Stop { waiter }).await
    }

    /// The log's prefix.
    pub fn prefix(&self) -> &Prefix {
        &self.0.prefix
    }

    /// The epoch that names this writer.
    pub fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// The options that the log was opened with.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.0.store
    }

    fn door(&self) -> &Arc<Door> {
        &self.0.door
    }

    fn queue(&self) -> mpsc::WeakUnboundedSender<Queued> {
        self.0.queue.downgrade()
    }

    fn runtime(&self) -> &R {
        &self.0.runtime
    }

    /// Sends what is answered with "done" or an error.
    async fn done(&self, event: impl FnOnce(Waiter) -> Event<Waiter>) -> Result<(), Error> {
        self.request(|reply| Control::Event(event(Waiter::Done(reply)))).await?
    }

    /// Lets the actor answer a question about the machine.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Writer<Waiter>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.request(|reply| Control::asking(question, reply)).await
    }

    async fn request<T>(
        &self,
        control: impl FnOnce(oneshot::Sender<T>) -> Control,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(control(reply))?;
        answer.await.map_err(|_| Error::Stopped)
    }

    fn send(&self, control: Control) -> Result<(), Error> {
        self.0.control.send(control).map_err(|_| Error::Stopped)
    }
}

impl<R: Runtime> Clone for Log<R> {
    fn clone(&self) -> Log<R> {
        Log(self.0.clone())
    }
}

/// As the `Wal` that a shell makes of it.
impl<R: Runtime> fmt::Debug for Log<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal")
            .field("prefix", &self.0.prefix.as_str())
            .field("epoch", &self.0.epoch.0)
            .finish_non_exhaustive()
    }
}
