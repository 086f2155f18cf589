//! Reading a region.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use sealog_core::format::Entry;
use sealog_core::read::{
    Hole, PlannedSegment, ReadPlan, SegmentOutcome, SegmentRead, SegmentReadEffect,
    SegmentReadEvent,
};
use sealog_core::{EntryId, Error, Event, RegionId};
use tokio::sync::oneshot;

use super::actor::{Control, Waiter};
use super::{Log, Runtime};
use crate::carry_out;

/// What a read yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadItem {
    /// An entry.
    Entry(Entry),
    /// A damaged segment, whose entries are lost, in its place between the entries.
    Hole(Hole),
}

/// The entries of a region, from [`Log::read`]: a stream of [`ReadItem`]s in the order of their
/// ids, up to what was durable when the read began (DESIGN.md section 8).
///
/// It reads several segments ahead, in tasks of its own, from the moment that it is polled first.
/// It holds a handle of the log, and goes on after a terminal error and after a stop. An error is
/// the last item. Dropping a future that waits for the next item loses none; dropping the stream
/// abandons its requests.
#[must_use = "a read does nothing unless it is polled"]
pub struct Read<R: Runtime> {
    log: Log<R>,
    region: RegionId,
    plan: Plan,
    /// Planned and not begun, in order.
    planned: VecDeque<PlannedSegment>,
    /// Begun, in order.
    running: VecDeque<R::Task<SegmentOutcome>>,
    /// Of the segment whose turn it is.
    entries: std::vec::IntoIter<Entry>,
}

enum Plan {
    /// The actor was asked for the next page.
    Asked(oneshot::Receiver<Result<ReadPlan, Error>>),
    /// There is another page.
    More { from: EntryId, through: EntryId },
    /// Nothing is left to plan.
    Ended,
}

/// How many segments are planned at once: the actor does it between appends.
const PAGE: usize = 256;

impl<R: Runtime> Read<R> {
    pub(crate) fn new(log: Log<R>, region: RegionId, from: EntryId) -> Read<R> {
        let plan = ask_for_page(&log, region, from, None);
        let (planned, running) = (VecDeque::new(), VecDeque::new());
        Read { log, region, plan, planned, running, entries: Vec::new().into_iter() }
    }

    /// Begins to read segments, as many as may run at once.
    fn begin(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        let at_once = self.log.options().read_concurrency as usize;
        while self.running.len() < at_once {
            if let Some(planned) = self.planned.pop_front() {
                let work = read(self.log.clone(), planned);
                self.running.push_back(self.log.runtime().spawn(work));
                continue;
            }
            match &mut self.plan {
                Plan::Ended => break,
                Plan::More { from, through } => {
                    self.plan = ask_for_page(&self.log, self.region, *from, Some(*through));
                }
                Plan::Asked(answer) => match Pin::new(answer).poll(cx) {
                    Poll::Pending => break,
                    Poll::Ready(answer) => {
                        let page = answer.unwrap_or(Err(Error::Stopped))?;
                        self.plan = match page.next {
                            Some(from) => Plan::More { from, through: page.through },
                            None => Plan::Ended,
                        };
                        self.planned = page.segments.into();
                    }
                },
            }
        }
        Ok(())
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<ReadItem>, Error>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Poll::Ready(Ok(Some(ReadItem::Entry(entry))));
            }
            self.begin(cx)?;
            let Some(first) = self.running.front_mut() else {
                return match self.plan {
                    Plan::Ended => Poll::Ready(Ok(None)),
                    _ => Poll::Pending,
                };
            };
            let outcome = ready!(Pin::new(first).poll(cx)).ok_or(Error::Stopped)?;
            self.running.pop_front();
            match outcome {
                SegmentOutcome::Entries(entries) => self.entries = entries.into_iter(),
                SegmentOutcome::Hole(hole) => return Poll::Ready(Ok(Some(ReadItem::Hole(hole)))),
                SegmentOutcome::Skipped => {}
                SegmentOutcome::Failed(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn end(&mut self) {
        self.plan = Plan::Ended;
        self.planned.clear();
        self.running.clear();
    }
}

impl<R: Runtime> Stream for Read<R> {
    type Item = Result<ReadItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = ready!(self.poll_item(cx));
        if item.is_err() {
            self.end();
        }
        Poll::Ready(item.transpose())
    }
}

impl<R: Runtime> fmt::Debug for Read<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("wal", &self.log)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

fn ask_for_page<R: Runtime>(
    log: &Log<R>,
    region: RegionId,
    from: EntryId,
    through: Option<EntryId>,
) -> Plan {
    let (reply, answer) = oneshot::channel();
    let asked = Control::asking(move |w| w.plan_read(region, from, through, PAGE), reply);
    // If the log is gone, the reply is dropped and the answer says so.
    drop(log.send(asked));
    Plan::Asked(answer)
}

/// Drives the reading of one segment, and tells the writer what came of it.
async fn read<R: Runtime>(log: Log<R>, planned: PlannedSegment) -> SegmentOutcome {
    let runtime = log.runtime();
    let began = runtime.now();
    let options = log.options();
    let mut read = SegmentRead::new(planned, options.on_corrupted_segment, options.request_timeout);
    let outcome = loop {
        match read.poll_effect() {
            Some(SegmentReadEffect::Storage(effect)) => {
                let time_limit = runtime.sleep(effect.time_limit());
                let answer = carry_out(log.store(), effect, time_limit).await;
                read.handle(SegmentReadEvent::Storage(answer));
            }
            Some(SegmentReadEffect::AskWriter(segment)) => {
                let asked = log.request(|reply| {
                    let waiter = Waiter::Verdict(reply);
                    Control::Event(Event::SegmentReadFailed { segment, waiter })
                });
                read.handle(SegmentReadEvent::Verdict(asked.await.ok().flatten()));
            }
            Some(SegmentReadEffect::Done(outcome)) => break outcome,
            // It always waits for what it asked for last, and that was answered.
            None => break SegmentOutcome::Failed(Error::Stopped),
        }
    };
    let tell = |event| drop(log.send(Control::Event(event)));
    if let SegmentOutcome::Hole(hole) = &outcome {
        tell(Event::HoleFound(hole.clone()));
    }
    tell(Event::ReadFinished { took: runtime.now().since(began), refetched: read.refetched() });
    outcome
}
