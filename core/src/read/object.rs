//! Reading what is wanted of one object (DESIGN.md section 8).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use super::{
    Hole, PlannedObject, RangeRead, RangeReadEffect, ReadProgress, SegmentOutcome,
    SegmentReadEvent, SegmentRef, WantedSegment,
};
use crate::error::{DecodeError, Error, Operation, StoreError};
use crate::event::{RequestId, StorageEffect, Verdict};
use crate::format::{Entry, decode_segment};
use crate::key::Key;
use crate::options::{OnCorruptedSegment, Options};
use crate::types::{Link, RegionId, Time};

/// Reads the wanted segments of one object, with as few requests as make sense, one at a time.
///
/// One fetch brings everything from the first wanted segment to the last, if at least half of
/// these bytes are wanted. Otherwise wanted segments share a fetch if at most 1 MiB lies between
/// one and the next: to download that much takes about as long as to make a request. Segments that
/// do not decode are fetched once more in the same way.
///
/// Each fetch is a [`RangeRead`], which repeats what may pass. One that fails for good is the end of
/// fetching: the object may be gone, and if it is not, nothing behind the failure is yielded. Before
/// anything that is wrong stands, the writer is asked, once.
///
/// Hand in the answer to each effect with the time, and a [`Tick`](SegmentReadEvent::Tick) at
/// [`next_tick`](ObjectRead::next_tick); then poll effects until there is none. Every machine of one
/// read is handed the same [`ReadProgress`]. After [`ObjectReadEffect::Done`] nothing more comes.
#[derive(Clone, Debug)]
pub struct ObjectRead {
    object: Link,
    key: Key,
    on_corrupted: OnCorruptedSegment,
    time_limit: Duration,
    retry_for: Duration,
    segments: Vec<Segment>,
    /// To be fetched; the first is under way.
    spans: VecDeque<Span>,
    /// Of the first request of the next fetch.
    next_id: RequestId,
    state: State,
    effect: Option<ObjectReadEffect>,
}

/// What an [`ObjectRead`] wants of the shell.
#[derive(Clone, Debug)]
pub enum ObjectReadEffect {
    /// Carry this out.
    Storage(StorageEffect),
    /// Ask the writer, with [`Event::SegmentReadFailed`](crate::Event::SegmentReadFailed); or, where
    /// there is none, a view that was opened since, with [`View::verdict`](crate::View::verdict).
    AskWriter(SegmentRef),
    /// The end: what became of each segment, in the order of the plan. The payloads share the
    /// memory of what was fetched with them.
    Done(Vec<(RegionId, SegmentOutcome)>),
}

/// Two segments with no more than this between them are fetched together, in bytes: at 50 MiB/s,
/// which one connection to an object store gives, it takes the 20 ms that a request does.
const GAP: u64 = 1 << 20;

#[derive(Clone, Debug)]
enum State {
    Fetching(Box<RangeRead>),
    Asking,
    Done,
}

/// A segment, and how far it is.
#[derive(Clone, Debug)]
struct Segment {
    wanted: WantedSegment,
    fate: Fate,
    refetched: bool,
}

#[derive(Clone, Debug)]
enum Fate {
    /// It is to be fetched, perhaps for the second time.
    Wanted,
    Read(Vec<Entry>),
    /// Twice.
    Damaged(DecodeError),
    Unread(StoreError),
    Collected,
}

/// Bytes that are fetched together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: Range<u64>,
    /// The segments they are fetched for are among these.
    segments: Range<usize>,
}

impl ObjectRead {
    /// Begins to read; the first effect is there at once. Of the options count
    /// `on_corrupted_segment`, `request_timeout` and `read_retry_for`.
    pub fn new(planned: PlannedObject, options: &Options) -> ObjectRead {
        let PlannedObject { object, key, segments } = planned;
        let begin = |wanted| Segment { wanted, fate: Fate::Wanted, refetched: false };
        let mut read = ObjectRead {
            object,
            key,
            on_corrupted: options.on_corrupted_segment,
            time_limit: options.request_timeout,
            retry_for: options.read_retry_for,
            segments: segments.into_iter().map(begin).collect(),
            spans: VecDeque::new(),
            next_id: RequestId(0),
            state: State::Done,
            effect: None,
        };
        read.go_on();
        read.pump();
        read
    }

    /// Takes an event. One that is not waited for changes nothing.
    pub fn handle(&mut self, now: Time, progress: &mut ReadProgress, event: SegmentReadEvent) {
        match (&mut self.state, event) {
            (State::Fetching(fetch), event) => {
                fetch.handle(now, progress, event);
                self.pump();
            }
            (State::Asking, SegmentReadEvent::Verdict(verdict)) => self.judged(verdict),
            _ => {}
        }
    }

    /// The next thing to do, if there is one.
    pub fn poll_effect(&mut self) -> Option<ObjectReadEffect> {
        self.effect.take()
    }

    /// When it wants a tick at the latest; `None` while it waits for an answer.
    pub fn next_tick(&self) -> Option<Time> {
        match &self.state {
            State::Fetching(fetch) => fetch.next_tick(),
            State::Asking | State::Done => None,
        }
    }

    /// How many segments were fetched once more because they did not decode.
    pub fn refetched(&self) -> u64 {
        self.segments.iter().filter(|segment| segment.refetched).count() as u64
    }

    /// Passes on what the fetch under way wants, and goes on when it has ended.
    fn pump(&mut self) {
        while let State::Fetching(fetch) = &mut self.state {
            match fetch.poll_effect() {
                None => return,
                Some(RangeReadEffect::Storage(effect)) => {
                    self.effect = Some(ObjectReadEffect::Storage(effect));
                    return;
                }
                Some(RangeReadEffect::Done(result)) => {
                    self.next_id = fetch.next_id();
                    self.fetched(result);
                    self.go_on();
                }
            }
        }
    }

    fn fetched(&mut self, result: Result<Bytes, StoreError>) {
        let Some(span) = self.spans.pop_front() else { return };
        match result {
            Ok(bytes) => {
                for segment in &mut self.segments[span.segments] {
                    segment.take_from(&span.range, &bytes);
                }
            }
            Err(error) => {
                self.spans.clear();
                for segment in &mut self.segments {
                    if let Fate::Wanted = segment.fate {
                        segment.fate = Fate::Unread(error.clone());
                    }
                }
            }
        }
    }

    /// Finds what to do next: fetch what is still wanted, then ask about what failed, then end.
    fn go_on(&mut self) {
        if self.spans.is_empty() {
            let segments = self.segments.iter().enumerate();
            let wanted = segments.filter(|(_, segment)| matches!(segment.fate, Fate::Wanted));
            self.spans = spans(wanted.map(|(index, segment)| (index, segment.range())));
        }
        let failed =
            |segment: &&Segment| matches!(segment.fate, Fate::Damaged(_) | Fate::Unread(_));
        if let Some(span) = self.spans.front() {
            let (key, range) = (self.key.clone(), span.range.clone());
            let (time_limit, retry_for) = (self.time_limit, self.retry_for);
            let fetch = RangeRead::numbered(self.next_id, key, range, time_limit, retry_for);
            self.state = State::Fetching(Box::new(fetch));
        } else if let Some(segment) = self.segments.iter().find(failed) {
            let segment = SegmentRef { object: self.object, region: segment.wanted.meta.region };
            self.state = State::Asking;
            self.effect = Some(ObjectReadEffect::AskWriter(segment));
        } else {
            self.end();
        }
    }

    fn judged(&mut self, verdict: Option<Verdict>) {
        if verdict == Some(Verdict::Gone) {
            for segment in &mut self.segments {
                if let Fate::Damaged(_) | Fate::Unread(_) = segment.fate {
                    segment.fate = Fate::Collected;
                }
            }
        }
        self.end();
    }

    fn end(&mut self) {
        self.state = State::Done;
        let mut outcomes = Vec::with_capacity(self.segments.len());
        for segment in &mut self.segments {
            let fate = core::mem::replace(&mut segment.fate, Fate::Collected);
            let (meta, key) = (&segment.wanted.meta, self.key.clone());
            let outcome = match (fate, self.on_corrupted) {
                (Fate::Read(entries), _) => SegmentOutcome::Entries(entries),
                (Fate::Damaged(error), OnCorruptedSegment::Skip) => SegmentOutcome::Hole(Hole {
                    region: meta.region,
                    key,
                    object: self.object,
                    min_id: meta.min_id,
                    max_id: meta.max_id,
                    error,
                }),
                (Fate::Damaged(error), OnCorruptedSegment::Fail) => {
                    SegmentOutcome::Failed(Error::corrupted(key, error))
                }
                // Of an object that is indexed and gone all the same: something outside the log
                // removed it.
                (Fate::Unread(source), _) => {
                    SegmentOutcome::Failed(Error::Store { operation: Operation::Read, key, source })
                }
                (Fate::Collected | Fate::Wanted, _) => SegmentOutcome::Skipped,
            };
            outcomes.push((meta.region, outcome));
        }
        self.effect = Some(ObjectReadEffect::Done(outcomes));
    }
}

impl Segment {
    fn range(&self) -> Range<u64> {
        self.wanted.meta.range()
    }

    /// Takes its part of what was fetched, if it waits for it.
    fn take_from(&mut self, fetched: &Range<u64>, bytes: &Bytes) {
        let Fate::Wanted = self.fate else { return };
        // A span covers what it was made of, whatever the plan said.
        let Range { start, end } = self.range();
        let [start, end] = [start, end].map(|at| (at - fetched.start) as usize);
        let WantedSegment { meta, from, through } = &self.wanted;
        match decode_segment(&bytes.slice(start..end), meta) {
            Ok(mut entries) => {
                entries.retain(|entry| (*from..=*through).contains(&entry.id));
                self.fate = Fate::Read(entries);
            }
            // The download may be damaged rather than the object.
            Err(_) if !self.refetched => self.refetched = true,
            Err(error) => self.fate = Fate::Damaged(error),
        }
    }
}

/// What to fetch to get these segments, which are numbered and in the order of their bytes.
pub(super) fn spans(wanted: impl Iterator<Item = (usize, Range<u64>)>) -> VecDeque<Span> {
    let mut spans: VecDeque<Span> = VecDeque::new();
    let mut bytes: u64 = 0;
    for (index, range) in wanted {
        bytes = bytes.saturating_add(range.end.saturating_sub(range.start));
        match spans.back_mut() {
            Some(last) if range.start >= last.range.end && range.start - last.range.end <= GAP => {
                last.range.end = range.end;
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
