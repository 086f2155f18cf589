//! Reading one segment (DESIGN.md section 8).

use alloc::vec::Vec;
use core::time::Duration;

use super::{Hole, PlannedSegment, SegmentRef, exactly};
use crate::error::{DecodeError, Error, Operation, StoreError};
use crate::event::{RequestId, StorageAnswer, StorageEffect, Verdict};
use crate::format::{Entry, decode_segment};
use crate::options::OnCorruptedSegment;

/// Reads one segment: fetches it, once more if it does not decode, and asks the writer before it
/// lets a failure stand, since the object may have been collected meanwhile.
///
/// Hand in the answer to each effect, then poll effects until there is none; after
/// [`SegmentReadEffect::Done`] nothing more comes. It needs no ticks: the shell keeps the time
/// limit of the fetch.
#[derive(Clone, Debug)]
pub struct SegmentRead {
    planned: PlannedSegment,
    on_corrupted: OnCorruptedSegment,
    time_limit: Duration,
    state: State,
    effect: Option<SegmentReadEffect>,
    refetched: bool,
}

#[derive(Clone, Debug)]
enum State {
    Fetching(RequestId),
    Asking(Failure),
    Done,
}

#[derive(Clone, Debug)]
enum Failure {
    Damaged(DecodeError),
    Unread(StoreError),
}

/// What the shell tells a [`SegmentRead`] or an [`ObjectRead`](super::ObjectRead).
#[derive(Clone, Debug)]
pub enum SegmentReadEvent {
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
    /// Begins to read; the first effect is there at once.
    pub fn new(
        planned: PlannedSegment,
        on_corrupted: OnCorruptedSegment,
        time_limit: Duration,
    ) -> SegmentRead {
        let mut read = SegmentRead {
            planned,
            on_corrupted,
            time_limit,
            state: State::Done,
            effect: None,
            refetched: false,
        };
        read.fetch(RequestId(0));
        read
    }

    /// Takes an answer. One that is not waited for changes nothing.
    pub fn handle(&mut self, event: SegmentReadEvent) {
        match (core::mem::replace(&mut self.state, State::Done), event) {
            (
                State::Fetching(id),
                SegmentReadEvent::Storage(StorageAnswer::Fetched { id: of, result }),
            ) if id == of => {
                let meta = &self.planned.meta;
                let body = exactly(&meta.range(), result);
                match body.map(|bytes| decode_segment(&bytes, meta)) {
                    Ok(Ok(mut entries)) => {
                        let wanted = self.planned.from..=self.planned.through;
                        entries.retain(|entry| wanted.contains(&entry.id));
                        self.end(SegmentOutcome::Entries(entries));
                    }
                    // The download may be damaged rather than the object.
                    Ok(Err(_)) if !self.refetched => {
                        self.refetched = true;
                        self.fetch(RequestId(id.0 + 1));
                    }
                    Ok(Err(error)) => self.ask(Failure::Damaged(error)),
                    Err(error) => self.ask(Failure::Unread(error)),
                }
            }
            (State::Asking(_), SegmentReadEvent::Verdict(Some(Verdict::Gone))) => {
                self.end(SegmentOutcome::Skipped);
            }
            (State::Asking(failure), SegmentReadEvent::Verdict(_)) => {
                let outcome = self.stands(failure);
                self.end(outcome);
            }
            (state, _) => self.state = state,
        }
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<SegmentReadEffect> {
        self.effect.take()
    }

    /// Whether the segment was fetched once more because it did not decode.
    pub fn refetched(&self) -> bool {
        self.refetched
    }

    fn fetch(&mut self, id: RequestId) {
        self.state = State::Fetching(id);
        self.effect = Some(SegmentReadEffect::Storage(StorageEffect::FetchRange {
            id,
            key: self.planned.key.clone(),
            range: self.planned.meta.range(),
            time_limit: self.time_limit,
        }));
    }

    fn ask(&mut self, failure: Failure) {
        self.state = State::Asking(failure);
        self.effect = Some(SegmentReadEffect::AskWriter(self.planned.segment));
    }

    fn end(&mut self, outcome: SegmentOutcome) {
        self.state = State::Done;
        self.effect = Some(SegmentReadEffect::Done(outcome));
    }

    fn stands(&self, failure: Failure) -> SegmentOutcome {
        let key = self.planned.key.clone();
        match (failure, self.on_corrupted) {
            (Failure::Damaged(error), OnCorruptedSegment::Skip) => SegmentOutcome::Hole(Hole {
                region: self.planned.segment.region,
                key,
                object: self.planned.segment.object,
                min_id: self.planned.meta.min_id,
                max_id: self.planned.meta.max_id,
                error,
            }),
            (Failure::Damaged(error), OnCorruptedSegment::Fail) => {
                SegmentOutcome::Failed(Error::corrupted(key, error))
            }
            // Indexed and gone all the same: something outside the log removed it.
            (Failure::Unread(source), _) => {
                SegmentOutcome::Failed(Error::Store { operation: Operation::Read, key, source })
            }
        }
    }
}

#[cfg(test)]
mod tests;
