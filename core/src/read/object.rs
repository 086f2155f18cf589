//! Reading what is wanted of one object (DESIGN.md section 8).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use super::{
    PlannedObject, PlannedSegment, SegmentOutcome, SegmentRead, SegmentReadEffect,
    SegmentReadEvent, SegmentRef, WantedSegment, exactly,
};
use crate::error::StoreError;
use crate::event::{RequestId, StorageAnswer, StorageEffect, Verdict};
use crate::key::Key;
use crate::options::OnCorruptedSegment;
use crate::types::RegionId;

/// Reads the wanted segments of one object, with as few requests as make sense, one at a time.
///
/// One request fetches everything from the first wanted segment to the last, if at least half of
/// these bytes are wanted. Otherwise wanted segments share a request if at most 1 MiB lies between
/// one and the next: to download that much takes about as long as to make a request. Segments that
/// do not decode are fetched once more in the same way, and the writer is asked at most once. A
/// fetch that fails is the end of fetching: the object may be gone, and if it is not, nothing
/// behind the failure is yielded.
///
/// Each segment's fate is a [`SegmentRead`]'s. It is driven like one: hand in the answer to each
/// effect, then poll effects until there is none; after [`ObjectReadEffect::Done`] nothing more
/// comes.
#[derive(Clone, Debug)]
pub struct ObjectRead {
    key: Key,
    time_limit: Duration,
    segments: Vec<Segment>,
    /// To be fetched; the first is under way.
    spans: VecDeque<Span>,
    /// Of the fetch that is under way or comes next.
    id: RequestId,
    state: State,
    effect: Option<ObjectReadEffect>,
}

/// What an [`ObjectRead`] wants of the shell.
#[derive(Clone, Debug)]
pub enum ObjectReadEffect {
    /// Carry this out.
    Storage(StorageEffect),
    /// Ask the writer, with [`Event::SegmentReadFailed`](crate::Event::SegmentReadFailed).
    AskWriter(SegmentRef),
    /// The end: what became of each segment, in the order of the plan. The payloads share the
    /// memory of what was fetched with them.
    Done(Vec<(RegionId, SegmentOutcome)>),
}

/// Two segments with no more than this between them are fetched together, in bytes: at 50 MiB/s,
/// which one connection to an object store gives, it takes the 20 ms that a request does.
const GAP: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum State {
    Fetching,
    Asking,
    Done,
}

/// A segment, and what its machine waits for.
#[derive(Clone, Debug)]
struct Segment {
    region: RegionId,
    read: SegmentRead,
    wants: Option<SegmentReadEffect>,
}

/// Bytes that are fetched at once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    range: Range<u64>,
    /// The segments they are fetched for are among these.
    segments: Range<usize>,
}

impl ObjectRead {
    /// Begins to read; the first effect is there at once.
    pub fn new(
        planned: PlannedObject,
        on_corrupted: OnCorruptedSegment,
        time_limit: Duration,
    ) -> ObjectRead {
        let PlannedObject { object, key, segments } = planned;
        let begin = |WantedSegment { meta, from, through }| {
            let segment = SegmentRef { object, region: meta.region };
            let planned = PlannedSegment { segment, key: key.clone(), meta, from, through };
            let mut read = SegmentRead::new(planned, on_corrupted, time_limit);
            let wants = read.poll_effect();
            Segment { region: meta.region, read, wants }
        };
        let mut read = ObjectRead {
            segments: segments.into_iter().map(begin).collect(),
            key,
            time_limit,
            spans: VecDeque::new(),
            id: RequestId(0),
            state: State::Done,
            effect: None,
        };
        read.go_on();
        read
    }

    /// Takes an answer. One that is not waited for changes nothing.
    pub fn handle(&mut self, event: SegmentReadEvent) {
        match (self.state, event) {
            (State::Fetching, SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }))
                if id == self.id =>
            {
                self.id = RequestId(id.0 + 1);
                self.fetched(result);
            }
            (State::Asking, SegmentReadEvent::Verdict(verdict)) => self.judged(verdict),
            _ => return,
        }
        self.go_on();
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<ObjectReadEffect> {
        self.effect.take()
    }

    /// How many segments were fetched once more because they did not decode.
    pub fn refetched(&self) -> u64 {
        self.segments.iter().filter(|segment| segment.read.refetched()).count() as u64
    }

    fn fetched(&mut self, result: Result<Bytes, StoreError>) {
        let Some(span) = self.spans.pop_front() else { return };
        match exactly(&span.range, result) {
            Ok(bytes) => {
                for segment in &mut self.segments[span.segments] {
                    segment.take_from(&span.range, &bytes);
                }
            }
            Err(error) => {
                self.spans.clear();
                for segment in &mut self.segments {
                    segment.fetch_failed(&error);
                }
            }
        }
    }

    fn judged(&mut self, verdict: Option<Verdict>) {
        for segment in &mut self.segments {
            if matches!(segment.wants, Some(SegmentReadEffect::AskWriter(_))) {
                segment.answer(SegmentReadEvent::Verdict(verdict));
            }
        }
    }

    /// Finds what to do next: fetch what is still wanted, then ask about what failed, then end.
    fn go_on(&mut self) {
        if self.spans.is_empty() {
            let wanted = |(index, segment): (usize, &Segment)| Some((index, segment.wanted()?));
            self.spans = spans(self.segments.iter().enumerate().filter_map(wanted));
        }
        let asked = |segment: &Segment| match segment.wants {
            Some(SegmentReadEffect::AskWriter(segment)) => Some(segment),
            _ => None,
        };
        let (state, effect) = if let Some(span) = self.spans.front() {
            let effect = StorageEffect::FetchRange {
                id: self.id,
                key: self.key.clone(),
                range: span.range.clone(),
                time_limit: self.time_limit,
            };
            (State::Fetching, ObjectReadEffect::Storage(effect))
        } else if let Some(segment) = self.segments.iter().find_map(asked) {
            (State::Asking, ObjectReadEffect::AskWriter(segment))
        } else {
            let outcomes = self.segments.iter_mut().filter_map(Segment::outcome).collect();
            (State::Done, ObjectReadEffect::Done(outcomes))
        };
        self.state = state;
        self.effect = Some(effect);
    }
}

impl Segment {
    /// The bytes that it waits for.
    fn wanted(&self) -> Option<Range<u64>> {
        match &self.wants {
            Some(SegmentReadEffect::Storage(StorageEffect::FetchRange { range, .. })) => {
                Some(range.clone())
            }
            _ => None,
        }
    }

    /// Takes its part of what was fetched, if it waits for it.
    fn take_from(&mut self, fetched: &Range<u64>, bytes: &Bytes) {
        if let Some(wanted) = self.wanted() {
            // A span covers what it was made of, whatever the plan said.
            let [start, end] = [wanted.start, wanted.end].map(|at| (at - fetched.start) as usize);
            self.fetch_ended(Ok(bytes.slice(start..end)));
        }
    }

    fn fetch_failed(&mut self, error: &StoreError) {
        if self.wanted().is_some() {
            self.fetch_ended(Err(error.clone()));
        }
    }

    fn fetch_ended(&mut self, result: Result<Bytes, StoreError>) {
        if let Some(SegmentReadEffect::Storage(effect)) = &self.wants {
            let id = effect.id();
            self.answer(SegmentReadEvent::Storage(StorageAnswer::Fetched { id, result }));
        }
    }

    fn answer(&mut self, event: SegmentReadEvent) {
        self.read.handle(event);
        self.wants = self.read.poll_effect();
    }

    fn outcome(&mut self) -> Option<(RegionId, SegmentOutcome)> {
        match self.wants.take()? {
            SegmentReadEffect::Done(outcome) => Some((self.region, outcome)),
            _ => None,
        }
    }
}

/// What to fetch to get these segments, which are numbered and in the order of their bytes.
fn spans(wanted: impl Iterator<Item = (usize, Range<u64>)>) -> VecDeque<Span> {
    let mut spans: VecDeque<Span> = VecDeque::new();
    let mut bytes: u64 = 0;
    for (index, range) in wanted {
        bytes = bytes.saturating_add(range.end.saturating_sub(range.start));
        match spans.back_mut() {
            Some(last) if range.start.saturating_sub(last.range.end) <= GAP => {
                last.range = last.range.start.min(range.start)..last.range.end.max(range.end);
                last.segments.end = index + 1;
            }
            _ => spans.push_back(Span { range, segments: index..index + 1 }),
        }
    }
    // A plan that was made up may name them in any order.
    let start = spans.iter().map(|span| span.range.start).min();
    let end = spans.iter().map(|span| span.range.end).max();
    if let (Some(start), Some(end), Some(first), Some(last)) =
        (start, end, spans.front(), spans.back())
        && bytes >= end.saturating_sub(start).div_ceil(2)
    {
        let segments = first.segments.start..last.segments.end;
        return VecDeque::from([Span { range: start..end, segments }]);
    }
    spans
}

#[cfg(test)]
mod tests;
