//! Reading one segment (DESIGN.md section 8).

use alloc::vec::Vec;

use super::{Hole, ObjectRead, ObjectReadEffect, PlannedSegment, ReadProgress, SegmentRef};
use crate::error::Error;
use crate::event::{StorageAnswer, StorageEffect, Verdict};
use crate::format::Entry;
use crate::options::Options;
use crate::types::Time;

/// Reads one segment: fetches it, once more if it does not decode, and asks the writer before it
/// lets a failure stand, since the object may have been collected meanwhile. It is an [`ObjectRead`]
/// of which one segment is wanted.
///
/// Hand in the answer to each effect with the time, and a [`Tick`](SegmentReadEvent::Tick) at
/// [`next_tick`](SegmentRead::next_tick); then poll effects until there is none. After
/// [`SegmentReadEffect::Done`] nothing more comes.
#[derive(Clone, Debug)]
pub struct SegmentRead(ObjectRead);

/// What the shell tells a [`SegmentRead`], an [`ObjectRead`] or a [`RangeRead`](super::RangeRead).
#[derive(Clone, Debug)]
pub enum SegmentReadEvent {
    /// Time has passed. Wanted at `next_tick`; a tick too many is harmless.
    Tick,
    /// The answer to its fetch.
    Storage(StorageAnswer),
    /// The writer's verdict on the object; `None` if the writer is gone and there is none to be
    /// had.
    Verdict(Option<Verdict>),
}

/// What a [`SegmentRead`] wants of the shell.
#[derive(Clone, Debug)]
pub enum SegmentReadEffect {
    /// Carry this out.
    Storage(StorageEffect),
    /// Ask the writer, with [`Event::SegmentReadFailed`](crate::Event::SegmentReadFailed); or, where
    /// there is none, a view that was opened since, with [`View::verdict`](crate::View::verdict).
    AskWriter(SegmentRef),
    /// The end.
    Done(SegmentOutcome),
}

/// What became of reading a segment.
#[derive(Clone, Debug)]
pub enum SegmentOutcome {
    /// Its entries, as far as they are wanted.
    Entries(Vec<Entry>),
    /// It does not decode, and `on_corrupted_segment` is `skip`. Tell the writer, with
    /// [`Event::HoleFound`](crate::Event::HoleFound).
    Hole(Hole),
    /// Its object was collected meanwhile.
    Skipped,
    /// It could not be read.
    Failed(Error),
}

impl SegmentRead {
    /// Begins to read; the first effect is there at once. Of the options count
    /// `on_corrupted_segment`, `request_timeout` and `read_retry_for`.
    pub fn new(planned: PlannedSegment, options: &Options) -> SegmentRead {
        SegmentRead(ObjectRead::new(planned.into(), options))
    }

    /// Takes an event. One that is not waited for changes nothing.
    pub fn handle(&mut self, now: Time, progress: &mut ReadProgress, event: SegmentReadEvent) {
        self.0.handle(now, progress, event);
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<SegmentReadEffect> {
        Some(match self.0.poll_effect()? {
            ObjectReadEffect::Storage(effect) => SegmentReadEffect::Storage(effect),
            ObjectReadEffect::AskWriter(segment) => SegmentReadEffect::AskWriter(segment),
            ObjectReadEffect::Done(mut outcomes) => SegmentReadEffect::Done(outcomes.pop()?.1),
        })
    }

    /// When it wants a tick at the latest; `None` while it waits for an answer.
    pub fn next_tick(&self) -> Option<Time> {
        self.0.next_tick()
    }

    /// Whether the segment was fetched once more because it did not decode.
    pub fn refetched(&self) -> bool {
        self.0.refetched() > 0
    }
}

#[cfg(test)]
mod tests;
