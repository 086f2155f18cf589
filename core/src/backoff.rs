//! How long to wait before a request is repeated (DESIGN.md section 5).

use core::time::Duration;

/// The delays between the attempts of one request: 100 ms, doubling to 5 s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    /// Of a request that has not failed yet.
    pub(crate) fn new() -> Backoff {
        Backoff { next: Backoff::FIRST }
    }

    /// The delay after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(Backoff::LONGEST);
        delay
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_delay_doubles_from_100_ms_to_5_s() {
        let mut backoff = Backoff::new();
        let delays: Vec<u128> = (0..8).map(|_| backoff.next().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }
}
