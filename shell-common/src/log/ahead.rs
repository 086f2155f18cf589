//! Reading ahead: objects are planned page by page, read several at once in tasks of their own,
//! and yielded in order.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealog_core::format::Entry;
use sealog_core::read::{
    ObjectRead, ObjectReadEffect, PlannedObject, ReadAhead, ReadPlan, ReplayFilter, ReplayPlan,
    SegmentOutcome, SegmentReadEvent,
};
use sealog_core::{EntryId, Error, ObjectSeq, RegionId};
use tokio::sync::oneshot;

use super::Runtime;
use super::fetch::{Progress, answered, tick};
use super::read::ReplayItem;
use super::source::Source;

/// What is to be planned.
pub(crate) enum Wanted {
    /// One region, from where, and as far as was durable when it was planned first.
    Region { region: RegionId, from: EntryId, through: Option<EntryId> },
    /// Many regions, from which object, and as far as was indexed when it was planned first.
    Regions { filter: Arc<ReplayFilter>, from: ObjectSeq, through: Option<ObjectSeq> },
}

/// A part of what is wanted, and the rest.
pub(crate) struct Page {
    objects: Vec<PlannedObject>,
    rest: Option<Wanted>,
}

/// How many segments are planned, or looked at, at once: an actor does it between appends.
const PAGE: usize = 256;

/// Whoever knows which objects hold what is wanted.
pub(crate) trait Planner {
    fn plan_read(
        &self,
        region: RegionId,
        from: EntryId,
        through: Option<EntryId>,
        at_most: usize,
    ) -> Result<ReadPlan, Error>;

    fn plan_replay(
        &self,
        filter: &ReplayFilter,
        from: ObjectSeq,
        through: Option<ObjectSeq>,
        at_most: usize,
    ) -> Result<ReplayPlan, Error>;
}

impl Wanted {
    pub(crate) fn page(self, planner: &impl Planner) -> Result<Page, Error> {
        match self {
            Wanted::Region { region, from, through } => {
                let plan = planner.plan_read(region, from, through, PAGE)?;
                let through = Some(plan.through);
                Ok(Page {
                    objects: plan.segments.into_iter().map(PlannedObject::from).collect(),
                    rest: plan.next.map(|from| Wanted::Region { region, from, through }),
                })
            }
            Wanted::Regions { filter, from, through } => {
                let plan = planner.plan_replay(&filter, from, through, PAGE)?;
                let through = Some(plan.through);
                Ok(Page {
                    objects: plan.objects,
                    rest: plan.next.map(|from| Wanted::Regions { filter, from, through }),
                })
            }
        }
    }
}

/// A read under way. What it has under way or holds, the object that is being yielded included, is
/// as much as [`ReadAhead`] allows.
pub(crate) struct Ahead<R: Runtime> {
    source: Source<R>,
    plan: Plan,
    /// Planned and not begun, in order: objects, or parts of large ones.
    planned: VecDeque<PlannedObject>,
    /// How many may begin.
    ahead: ReadAhead,
    /// Begun, in order.
    running: VecDeque<R::Task<Outcomes>>,
    /// Of all that is read here.
    progress: Progress,
    /// Whether it is an object's turn, which is among those that `ahead` counts.
    yields: bool,
    /// Of the object whose turn it is.
    outcomes: std::vec::IntoIter<(RegionId, SegmentOutcome)>,
    /// Of the segment whose turn it is.
    region: RegionId,
    entries: std::vec::IntoIter<Entry>,
}

enum Plan {
    /// The source was asked for the next page.
    Asked(oneshot::Receiver<Result<Page, Error>>),
    /// There is another page.
    More(Wanted),
    /// Nothing is left to plan.
    Ended,
}

impl<R: Runtime> Ahead<R> {
    pub(crate) fn new(source: Source<R>, wanted: Wanted) -> Ahead<R> {
        Ahead {
            plan: Plan::Asked(source.page(wanted)),
            ahead: ReadAhead::new(source.options()),
            source,
            planned: VecDeque::new(),
            running: VecDeque::new(),
            progress: Progress::default(),
            yields: false,
            outcomes: Vec::new().into_iter(),
            region: RegionId(0),
            entries: Vec::new().into_iter(),
        }
    }

    pub(crate) fn source(&self) -> &Source<R> {
        &self.source
    }

    /// The next item. An error is the last one.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<ReplayItem, Error>>> {
        let item = ready!(self.poll_item(cx));
        if item.is_err() {
            self.plan = Plan::Ended;
            self.planned.clear();
            self.running.clear();
            self.outcomes = Vec::new().into_iter();
        }
        Poll::Ready(item.transpose())
    }

    fn poll_item(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<ReplayItem>, Error>> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Poll::Ready(Ok(Some(ReplayItem::Entry(self.region, entry))));
            }
            match self.outcomes.next() {
                Some((region, SegmentOutcome::Entries(entries))) => {
                    (self.region, self.entries) = (region, entries.into_iter());
                }
                Some((_, SegmentOutcome::Hole(hole))) => {
                    return Poll::Ready(Ok(Some(ReplayItem::Hole(hole))));
                }
                Some((_, SegmentOutcome::Skipped)) => {}
                Some((_, SegmentOutcome::Failed(error))) => return Poll::Ready(Err(error)),
                None => {
                    if std::mem::take(&mut self.yields) {
                        self.ahead.end();
                    }
                    self.begin(cx)?;
                    let Some(first) = self.running.front_mut() else {
                        return match self.plan {
                            Plan::Ended => Poll::Ready(Ok(None)),
                            _ => Poll::Pending,
                        };
                    };
                    let outcomes = ready!(Pin::new(first).poll(cx)).ok_or(Error::Stopped)?;
                    self.outcomes = outcomes.into_iter();
                    self.yields = true;
                    self.running.pop_front();
                }
            }
        }
    }

    /// Begins to read objects, as many as may be read at once.
    fn begin(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        loop {
            if let Some(planned) = self.planned.front() {
                if !self.ahead.try_begin(planned) {
                    break;
                }
                if let Some(planned) = self.planned.pop_front() {
                    let work = read(self.source.clone(), planned, self.progress.clone());
                    self.running.push_back(self.source.runtime().spawn(work));
                }
                continue;
            }
            match std::mem::replace(&mut self.plan, Plan::Ended) {
                Plan::Ended => break,
                Plan::More(wanted) => self.plan = Plan::Asked(self.source.page(wanted)),
                Plan::Asked(mut answer) => match Pin::new(&mut answer).poll(cx) {
                    Poll::Pending => {
                        self.plan = Plan::Asked(answer);
                        break;
                    }
                    Poll::Ready(answer) => {
                        let page = answer.unwrap_or(Err(Error::Stopped))?;
                        self.plan = page.rest.map_or(Plan::Ended, Plan::More);
                        let objects = page.objects.into_iter();
                        self.planned =
                            objects.flat_map(|planned| self.ahead.parts(planned)).collect();
                    }
                },
            }
        }
        Ok(())
    }
}

pub(crate) type Outcomes = Vec<(RegionId, SegmentOutcome)>;

/// Drives the reading of one object, and tells the source what came of it.
async fn read<R: Runtime>(
    source: Source<R>,
    planned: PlannedObject,
    progress: Progress,
) -> Outcomes {
    if source.is_gone(planned.object) {
        return Vec::new();
    }
    let runtime = source.runtime();
    let began = runtime.now();
    let mut read = ObjectRead::new(planned, source.options());
    let outcomes = loop {
        let event = match read.poll_effect() {
            Some(ObjectReadEffect::Storage(effect)) => {
                answered(runtime, source.store(), effect).await
            }
            Some(ObjectReadEffect::AskWriter(segment)) => {
                SegmentReadEvent::Verdict(source.verdict(segment).await)
            }
            Some(ObjectReadEffect::Done(outcomes)) => break outcomes,
            None => tick(runtime, read.next_tick()).await,
        };
        read.handle(runtime.now(), &mut progress.lock(), event);
    };
    source.tell(&outcomes, runtime.now().since(began), read.refetched());
    outcomes
}
