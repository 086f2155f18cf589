//! Whose objects are read: those of a log that is written, or those that a reader sees. The two
//! plan reads and judge failed ones each in its own way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use sealog_core::read::{ReadPlan, ReplayFilter, ReplayPlan, SegmentOutcome, SegmentRef};
use sealog_core::{
    EntryId, Error, Event, Link, ObjectSeq, Options, RegionId, Verdict, View, Writer,
};
use tokio::sync::oneshot;

use super::actor::{Control, Waiter};
use super::ahead::{Outcomes, Page, Planner, Wanted};
use super::{Log, Reader, Runtime};

pub(crate) enum Source<R: Runtime> {
    Log(Log<R>),
    Reader(Reader<R>),
}

impl<R: Runtime> Source<R> {
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        match self {
            Source::Log(log) => log.store(),
            Source::Reader(reader) => reader.store(),
        }
    }

    pub(crate) fn runtime(&self) -> &R {
        match self {
            Source::Log(log) => log.runtime(),
            Source::Reader(reader) => reader.runtime(),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        match self {
            Source::Log(log) => log.options(),
            Source::Reader(reader) => reader.options(),
        }
    }

    /// Asks for a part of what is wanted.
    pub(crate) fn page(&self, wanted: Wanted) -> oneshot::Receiver<Result<Page, Error>> {
        let (reply, answer) = oneshot::channel();
        match self {
            // If the log is gone, the reply is dropped and the answer says so.
            Source::Log(log) => {
                drop(log.send(Control::asking(move |writer| wanted.page(writer), reply)));
            }
            Source::Reader(reader) => drop(reply.send(wanted.page(&*reader.view()))),
        }
        answer
    }

    /// Whether an object that was planned is known to be collected since, so that asking for it, and
    /// then for a verdict, is spared. A writer's own collections are rare enough to be met.
    pub(crate) fn is_gone(&self, object: Link) -> bool {
        match self {
            Source::Log(_) => false,
            Source::Reader(reader) => !reader.view().catalog().is_indexed(object),
        }
    }

    /// What is to be thought of a read that failed; `None` if nobody knows.
    pub(crate) async fn verdict(&self, segment: SegmentRef) -> Option<Verdict> {
        match self {
            Source::Log(log) => {
                let asked = log.request(|reply| {
                    let waiter = Waiter::Verdict(reply);
                    Control::Event(Event::SegmentReadFailed { segment, waiter })
                });
                asked.await.ok().flatten()
            }
            Source::Reader(reader) => reader.verdict(segment).await,
        }
    }

    /// Tells a writer what came of an object's read; a reader keeps nothing of it.
    pub(crate) fn tell(&self, outcomes: &Outcomes, took: Duration, refetched: u64) {
        let Source::Log(log) = self else { return };
        let tell = |event| drop(log.send(Control::Event(event)));
        for (_, outcome) in outcomes {
            if let SegmentOutcome::Hole(hole) = outcome {
                tell(Event::HoleFound(hole.clone()));
            }
        }
        tell(Event::ReadFinished { took, refetched });
    }
}

impl<R: Runtime> Clone for Source<R> {
    fn clone(&self) -> Source<R> {
        match self {
            Source::Log(log) => Source::Log(log.clone()),
            Source::Reader(reader) => Source::Reader(reader.clone()),
        }
    }
}

impl<R: Runtime> fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Log(log) => log.fmt(f),
            Source::Reader(reader) => reader.fmt(f),
        }
    }
}

macro_rules! plans {
    ($($planner:ty),+) => {$(
        impl Planner for $planner {
            fn plan_read(
                &self,
                region: RegionId,
                from: EntryId,
                through: Option<EntryId>,
                at_most: usize,
            ) -> Result<ReadPlan, Error> {
                self.plan_read(region, from, through, at_most)
            }

            fn plan_replay(
                &self,
                filter: &ReplayFilter,
                from: ObjectSeq,
                through: Option<ObjectSeq>,
                at_most: usize,
            ) -> Result<ReplayPlan, Error> {
                self.plan_replay(filter, from, through, at_most)
            }
        }
    )+};
}

plans!(Writer<Waiter>, View);
