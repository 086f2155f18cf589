//! How long to wait before a failed request is made again (DESIGN.md section 5).

use core::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Delays of 100 ms that double to 5 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { next: FIRST }
    }

    /// Whether there was a delay already.
    pub(crate) fn was_used(&self) -> bool {
        self.next != FIRST
    }

    /// The delay before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(LONGEST);
        delay
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn delays_double_from_100_ms_to_5_s() {
        let mut backoff = Backoff::new();
        let delays: Vec<u128> = (0..8).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }
}
