//! The invariants of a [`Writer`].

use super::admit::Call;
use super::{Batch, State, Writer};
use crate::format::Header;

impl<W> Writer<W> {
    /// Verifies the invariants: for tests, it costs a walk over everything.
    ///
    /// # Panics
    ///
    /// An invariant does not hold.
    pub fn check(&self) {
        self.catalog.check();
        self.pipeline.check(self.rules);
        self.check_reclaim();
        if let Some(open) = &self.open {
            assert_eq!(open.sequence(), self.next_sequence);
            let empty = open.entries() == 0 && open.releases().is_empty();
            assert!(!empty, "an open batch with nothing in it");
        }
        let mut before = self.catalog.last();
        for batch in self.pipeline.iter() {
            let header = Header::decode(batch.header()).expect("a batch has a header");
            assert_eq!(header.link(), batch.link);
            assert_eq!(header.predecessor, before, "{} is not linked", batch.link);
            assert!(header.sequence < self.next_sequence);
            before = Some(batch.link);
        }
        assert!(self.pipeline.len() <= self.most_sealed());
        if let Some(first) = self.queue.front() {
            let held = match &first.call {
                Call::Append { append, bytes } => {
                    let full =
                        |open: &Batch<W>| self.is_full(open) || !open.has_positions_for(append);
                    self.is_over_threshold(append, *bytes)
                        || self.open.as_ref().is_some_and(full) && !self.has_room()
                }
                Call::Release(_) => false,
            };
            assert!(held || self.floor.is_some() || self.fencing.is_some());
        }
        let queued = self.queue.iter().map(|queued| queued.call.queued_bytes()).sum::<u64>();
        assert_eq!(self.stats.queued_bytes, queued);
        if matches!(self.state, State::Stopped(_) | State::Poisoned(_)) {
            assert!(self.open.is_none() && self.pipeline.is_empty() && self.queue.is_empty());
        }
        let fenced = self.fencing.iter().flat_map(|fencing| &fencing.batches);
        let sealed =
            self.pipeline.iter().chain(fenced).map(|batch| batch.payload.len()).sum::<u64>();
        let open = self.open.as_ref().map_or(0, Batch::bytes);
        assert_eq!(self.stats.unpersisted_bytes, sealed + open);
    }
}
