//! How far a read may run ahead (DESIGN.md section 8).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use super::object::spans;
use super::{PlannedObject, RangeRead, WantedSegment};
use crate::format::{ENTRY_HEADER_LEN, Entry};
use crate::options::Options;

/// What one read or replay may have under way or hold at once: so many objects, each of which has
/// one request under way ([`read_concurrency`](Options::read_concurrency)), and so many bytes
/// ([`read_ahead_bytes`](Options::read_ahead_bytes)). What weighs more than that is read alone.
///
/// Objects are cut into [`parts`](ReadAhead::parts); these are begun in order, if
/// [`try_begin`](ReadAhead::try_begin) lets them, read with an [`ObjectRead`](super::ObjectRead)
/// each, and yielded in the same order; then [`end`](ReadAhead::end) makes room. One that may not
/// begin is asked about again after that: where nothing is held, any may begin.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    at_once: usize,
    bytes: u64,
    /// What each weighs that was begun and did not end, in order.
    begun: VecDeque<u64>,
    /// Of all of them.
    weight: u128,
}

impl ReadAhead {
    /// Nothing is begun.
    pub fn new(options: &Options) -> ReadAhead {
        ReadAhead {
            at_once: options.read_concurrency as usize,
            bytes: options.read_ahead_bytes,
            begun: VecDeque::new(),
            weight: 0,
        }
    }

    /// Cuts an object into parts that are read one by one: runs of its wanted segments, each of
    /// which lies within [`RangeRead::PART`] and within what may be held. A segment that is larger is
    /// a part of its own.
    pub fn parts(&self, planned: PlannedObject) -> impl Iterator<Item = PlannedObject> + use<> {
        let at_most = RangeRead::PART.min(self.bytes);
        let PlannedObject { object, key, segments } = planned;
        runs(segments, at_most).into_iter().map(move |segments| PlannedObject {
            object,
            key: key.clone(),
            segments,
        })
    }

    /// Begins one, if it may begin beside what was begun and did not end.
    pub fn try_begin(&mut self, planned: &PlannedObject) -> bool {
        let weight = planned.weight();
        let total = self.weight + u128::from(weight);
        let room = self.begun.len() < self.at_once && total <= u128::from(self.bytes);
        if !(room || self.begun.is_empty()) {
            return false;
        }
        self.begun.push_back(weight);
        self.weight = total;
        true
    }

    /// The one that was begun first is yielded whole, and nothing of it is held any more.
    pub fn end(&mut self) {
        self.weight -= self.begun.pop_front().map_or(0, u128::from);
    }
}

impl PlannedObject {
    /// How many bytes reading it takes: those that are fetched, what lies between wanted segments
    /// included, and what its entries take beside their payloads.
    pub fn weight(&self) -> u64 {
        let ranges = self.segments.iter().map(|wanted| wanted.meta.range());
        let fetched = spans(ranges.enumerate()).into_iter().map(|span| length(&span.range));
        let entries = self.segments.iter().map(|WantedSegment { meta, .. }| {
            // A count is a number that was read.
            let most = meta.length / ENTRY_HEADER_LEN as u64;
            u64::from(meta.count).min(most).saturating_mul(size_of::<Entry>() as u64)
        });
        fetched.chain(entries).fold(0, u64::saturating_add)
    }
}

/// Runs of segments, each within so many bytes from its first to its last.
fn runs(segments: Vec<WantedSegment>, at_most: u64) -> Vec<Vec<WantedSegment>> {
    let mut runs: Vec<Vec<WantedSegment>> = Vec::new();
    let mut covered = 0..0;
    for segment in segments {
        let range = segment.meta.range();
        let both = covered.start.min(range.start)..covered.end.max(range.end);
        match runs.last_mut() {
            Some(run) if length(&both) <= at_most => {
                run.push(segment);
                covered = both;
            }
            _ => {
                runs.push(Vec::from([segment]));
                covered = range;
            }
        }
    }
    runs
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

#[cfg(test)]
mod tests;
