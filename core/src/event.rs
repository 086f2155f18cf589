//! All that crosses the boundary between a machine and its shell.

mod notice;
mod storage;

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Outcome};
use crate::read::{Hole, SegmentRef};
use crate::types::{EntryId, RegionId};

pub use notice::Notice;
pub use storage::{Listed, Payload, ReadBack, RequestId, StorageAnswer, StorageEffect};

/// What the shell tells a [`Writer`](crate::Writer).
#[derive(Clone, Debug)]
pub enum Event<W> {
    /// Time has passed. Wanted at [`next_tick`](crate::Writer::next_tick); a tick too many is
    /// harmless.
    Tick,
    /// Append these entries, all in one object. Acknowledged with [`Answer::Appended`].
    Append {
        /// The entries.
        append: Append,
        /// Answered once.
        waiter: W,
    },
    /// Seal what is open, and answer [`Answer::Done`] when all that was admitted is durable.
    Flush {
        /// Answered once.
        waiter: W,
    },
    /// Answer [`Answer::Done`] when no id of the region at or below `id` waits to become durable.
    WaitDurable {
        /// The region.
        region: RegionId,
        /// The id; one above everything handed out waits for what was handed out.
        id: EntryId,
        /// Answered once.
        waiter: W,
    },
    /// Raise the region's watermark: entries at or below `id` are hidden and no longer keep
    /// objects. Answered with [`Answer::Done`].
    Obsolete {
        /// The region.
        region: RegionId,
        /// The largest id that is no longer needed.
        id: EntryId,
        /// Answered once.
        waiter: W,
    },
    /// Release the region through the largest id handed out for it, in a record that survives a
    /// restart (DESIGN.md section 6). Answered with [`Answer::Done`] once the record is durable.
    Release {
        /// The region.
        region: RegionId,
        /// Answered once.
        waiter: W,
    },
    /// Release the region in full: from now on appends to it are refused, until the record was
    /// collected. Answered as [`Release`](Event::Release).
    ReleaseAll {
        /// The region.
        region: RegionId,
        /// Answered once.
        waiter: W,
    },
    /// End the log (DESIGN.md section 7). Answered with [`Answer::Done`] once nothing is in
    /// flight.
    Stop {
        /// Answered once.
        waiter: W,
    },
    /// From now on tell every change of the region's durable position, with [`Effect::Durable`];
    /// its position now is told at once.
    Watch {
        /// The region.
        region: RegionId,
    },
    /// Stop telling.
    Unwatch {
        /// The region.
        region: RegionId,
    },
    /// The answer to a storage effect.
    Storage(StorageAnswer),
    /// A read of this segment failed for good: is the object still part of the log? Answered with
    /// [`Answer::Verdict`].
    SegmentReadFailed {
        /// The segment.
        segment: SegmentRef,
        /// Answered once.
        waiter: W,
    },
    /// A read met a hole: count it and keep it for `holes`.
    HoleFound(Hole),
    /// A read of one object's segments, or of a part of a large object's, ended: for the figures.
    ReadFinished {
        /// How long it took.
        took: Duration,
        /// How many segments were fetched once more because they did not decode.
        refetched: u64,
    },
}

/// What a [`Writer`](crate::Writer) wants of the shell.
#[derive(Clone, Debug)]
pub enum Effect<W> {
    /// Carry this out, and answer with [`Event::Storage`].
    Storage(StorageEffect),
    /// Answer one waiter.
    Ack {
        /// The waiter.
        waiter: W,
        /// Its answer.
        answer: Answer,
    },
    /// Fail these waiters, in this order, for one reason.
    FailWaiters {
        /// The waiters.
        waiters: Vec<W>,
        /// The reason.
        error: Error,
        /// For those that appended: what that means for their entries.
        outcome: Outcome,
    },
    /// The durable position of a watched region.
    Durable {
        /// The region.
        region: RegionId,
        /// The largest id that is durable and indexed.
        id: EntryId,
    },
    /// Tell the operator.
    Notice(Notice),
}

/// What a waiter is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Event::Append`]: the entries are durable, or in `enqueued` admitted.
    Appended(Appended),
    /// To [`Event::Flush`], [`Event::WaitDurable`], [`Event::Obsolete`], [`Event::Release`],
    /// [`Event::ReleaseAll`] and [`Event::Stop`].
    Done,
    /// To [`Event::SegmentReadFailed`].
    Verdict(Verdict),
}

/// Whether an object is still part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was collected: the read skips it.
    Gone,
    /// It is indexed: the failure stands.
    Indexed,
}

/// The entries of one append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// One entry.
    One(RegionId, Bytes),
    /// Any number of entries, of one or many regions.
    Many(Vec<(RegionId, Bytes)>),
}

impl Append {
    /// The entries in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (RegionId, &Bytes)> {
        match self {
            Append::One(region, payload) => {
                Entries { one: Some((*region, payload)), many: [].iter() }
            }
            Append::Many(entries) => Entries { one: None, many: entries.iter() },
        }
    }

    /// What it counts as while it waits for admission (DESIGN.md section 5): the bytes of its
    /// payloads, and 64.
    pub fn queued_bytes(&self) -> u64 {
        queued_bytes(self.entries().map(|(_, payload)| payload.len() as u64).sum())
    }
}

/// What an append with so many bytes of payloads counts as while it waits for admission.
pub(crate) fn queued_bytes(payloads: u64) -> u64 {
    payloads + 64
}

struct Entries<'a> {
    one: Option<(RegionId, &'a Bytes)>,
    many: core::slice::Iter<'a, (RegionId, Bytes)>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (RegionId, &'a Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        self.one.take().or_else(|| self.many.next().map(|(region, payload)| (*region, payload)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = usize::from(self.one.is_some()) + self.many.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// The ids of an append's entries, in the order of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// Of [`Append::One`].
    One(EntryId),
    /// Of [`Append::Many`].
    Many(Vec<EntryId>),
}

impl Appended {
    /// The ids in the order of the entries.
    pub fn ids(&self) -> &[EntryId] {
        match self {
            Appended::One(id) => core::slice::from_ref(id),
            Appended::Many(ids) => ids,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are moved through queues for every append: growth should be a decision.
    #[test]
    fn events_and_effects_stay_small() {
        assert!(size_of::<Event<u64>>() <= 128, "{}", size_of::<Event<u64>>());
        assert!(size_of::<Effect<u64>>() <= 136, "{}", size_of::<Effect<u64>>());
        assert!(size_of::<Answer>() <= 32, "{}", size_of::<Answer>());
    }
}
