//! Appends that have to wait, and creates that take long (DESIGN.md section 5, thresholds, and
//! section 11).

use core::time::Duration;

use super::admit::QueuedCall;
use super::{Effect, Writer};
use crate::event::{Append, Notice};
use crate::format::ENTRY_HEADER_LEN;
use crate::options::AckMode;
use crate::types::Time;

/// From this age on the operator is told.
const LONG: Duration = Duration::from_secs(5);
/// But not more often than this.
const QUIET: Duration = Duration::from_secs(10);

/// When the operator was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warned {
    stall: Option<Time>,
    slow_create: Option<Time>,
}

impl<W> Writer<W> {
    /// Whether a threshold of `enqueued` holds an append back. One that is larger than the threshold
    /// is admitted when nothing is pending.
    pub(super) fn is_over_threshold(&self, append: &Append, bytes: u64) -> bool {
        if self.options.ack_mode != AckMode::Enqueued || self.stats.unpersisted_bytes == 0 {
            return false;
        }
        let size = bytes + (append.entries().len() * ENTRY_HEADER_LEN) as u64;
        self.stats.unpersisted_bytes.saturating_add(size) > self.options.max_unpersisted_bytes
            || self
                .oldest()
                .is_some_and(|oldest| self.now.since(oldest) >= self.options.max_unpersisted_age)
    }

    /// When the oldest entry that is not durable was admitted.
    fn oldest(&self) -> Option<Time> {
        let sealed = self.pipeline.iter().find(|batch| batch.entries > 0);
        let open = self.open.as_ref().filter(|open| open.entries() > 0);
        sealed.map(|batch| batch.opened_at).or_else(|| open.map(|open| open.opened_at()))
    }

    /// Tells the operator what takes long, at a tick.
    pub(super) fn warn(&mut self) {
        let backlog = self.stats.unpersisted_bytes;
        if self.next_stall_warning().is_some_and(|at| at <= self.now)
            && let Some(first) = self.first_stalled()
        {
            let age = self.now.since(first.arrived);
            let appends = self.queue.iter().filter(|queued| queued.is_append()).count() as u64;
            self.warned.stall = Some(self.now);
            let notice = Notice::Stalled { appends, age, backlog };
            self.emit(Effect::Notice(notice));
        }
        if self.next_slow_create_warning().is_some_and(|at| at <= self.now)
            && let Some(slowest) = self.pipeline.slowest()
        {
            let (key, age) = (slowest.key.clone(), self.now.since(slowest.first_attempt));
            self.warned.slow_create = Some(self.now);
            let notice = Notice::SlowCreate { key, age, backlog };
            self.emit(Effect::Notice(notice));
        }
    }

    /// When a tick would warn, if nothing changes until then.
    pub(super) fn next_warning(&self) -> Option<Time> {
        let warnings = [self.next_stall_warning(), self.next_slow_create_warning()];
        warnings.into_iter().flatten().min()
    }

    /// Few releases wait, if any, before the first append that does.
    fn first_stalled(&self) -> Option<&QueuedCall<W>> {
        self.queue.iter().find(|queued| queued.is_append())
    }

    fn next_stall_warning(&self) -> Option<Time> {
        let long = self.first_stalled()?.arrived.after(LONG);
        Some(self.warned.stall.map_or(long, |warned| warned.after(QUIET).max(long)))
    }

    fn next_slow_create_warning(&self) -> Option<Time> {
        let long = self.pipeline.slowest()?.first_attempt.after(LONG);
        Some(self.warned.slow_create.map_or(long, |warned| warned.after(QUIET).max(long)))
    }
}
