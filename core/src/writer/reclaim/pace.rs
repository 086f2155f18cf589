//! When deletes that failed are tried again, and how many requests run meanwhile (DESIGN.md
//! section 9).

use core::time::Duration;

use crate::types::Time;

/// The first delay where no `reclaim_interval` is set.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);
/// Delays double up to this.
const LONGEST: Duration = Duration::from_secs(3600);
/// So many refusals in a row, and nothing is asked before the delay is over. One would do where all
/// deletes are refused; a few objects under a lock must not hold up what stands behind them for a
/// delay each.
const MOST_REFUSALS: u32 = 8;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    interval: Duration,
    /// The next delay: the interval, doubled with each round in which nothing succeeded.
    delay: Duration,
    retry_at: Option<Time>,
    /// How many of the last answers, one after the other, were refusals.
    refusals: u32,
    warned: Option<Time>,
    /// Failures that the operator was not told of.
    untold: u64,
}

/// What a request for some objects came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// At least one of them is gone.
    Succeeded,
    /// None of them, and at least one was refused.
    Refused,
    Failed,
}

impl Pace {
    pub(super) fn new(reclaim_interval: Duration) -> Pace {
        let interval = match reclaim_interval.is_zero() {
            true => DEFAULT_INTERVAL,
            false => reclaim_interval,
        };
        Pace { interval, delay: interval, retry_at: None, refusals: 0, warned: None, untold: 0 }
    }

    /// Whether another request may start beside those under way. While the last answer was a
    /// refusal, one at a time finds out whether that is still so.
    pub(super) fn may_start(&self, under_way: usize, at_most: usize) -> bool {
        match self.refusals {
            0 => under_way < at_most,
            1..MOST_REFUSALS => under_way == 0,
            _ => false,
        }
    }

    pub(super) fn answered(&mut self, now: Time, answer: Answered) {
        match answer {
            Answered::Refused => self.refusals = self.refusals.saturating_add(1),
            Answered::Failed => self.refusals = 0,
            Answered::Succeeded => {
                self.refusals = 0;
                self.delay = self.interval;
                self.retry_at = self.retry_at.map(|at| at.min(now.after(self.interval)));
            }
        }
    }

    /// Something failed, or is left for another round.
    pub(super) fn wait(&mut self, now: Time) {
        if self.retry_at.is_none() {
            self.retry_at = Some(now.after(self.delay));
            self.delay = self.delay.saturating_mul(2).min(LONGEST).max(self.interval);
        }
    }

    /// When the next round begins.
    pub(super) fn retry_at(&self) -> Option<Time> {
        self.retry_at
    }

    /// The next round begins.
    pub(super) fn begin_round(&mut self) {
        self.retry_at = None;
        self.refusals = self.refusals.min(1);
    }

    /// So many deletes failed. Says of how many the operator is to be told now: of all since the last
    /// time, once per interval.
    pub(super) fn tell(&mut self, now: Time, failed: u64) -> Option<u64> {
        self.untold += failed;
        if self.warned.is_some_and(|warned| now < warned.after(self.interval)) {
            return None;
        }
        self.warned = Some(now);
        Some(core::mem::take(&mut self.untold))
    }
}
