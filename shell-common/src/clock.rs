//! The time in which the machine was suspended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the machine has been suspended since this was made: what the clocks of runtimes leave out,
/// and the clock of a log counts (DESIGN.md section 12, rule 7).
///
/// Linux, Android and Apple's systems have a clock that counts it. Windows counts it in the ordinary
/// clock, so that nothing is to be added; on other systems it is left out. A virtual machine that is
/// frozen from outside counts nothing.
#[derive(Debug)]
pub struct Suspended {
    origin: Instant,
    origin_with_it: Duration,
    /// In nanoseconds, so far.
    counted: AtomicU64,
}

impl Suspended {
    /// Counts from now on.
    #[expect(clippy::new_without_default, reason = "a clock has no default")]
    pub fn new() -> Suspended {
        // In this order, and in the other one later: what passes between the two looks is not taken
        // for a suspension.
        let origin = Instant::now();
        let origin_with_it = with_suspensions().unwrap_or_default();
        Suspended { origin, origin_with_it, counted: AtomicU64::new(0) }
    }

    /// So far; it never becomes less. A thread that was held up for a moment sees it later by as much.
    /// Costs two looks at clocks.
    pub fn so_far(&self) -> Duration {
        let with_it = with_suspensions();
        let without = self.origin.elapsed();
        let with_it = with_it.map_or(without, |now| now.saturating_sub(self.origin_with_it));
        self.count(with_it, without)
    }

    /// Of two times since the beginning, with the suspensions and without, seen in this order.
    fn count(&self, with_it: Duration, without: Duration) -> Duration {
        let ahead = with_it.saturating_sub(without).as_nanos().try_into().unwrap_or(u64::MAX);
        let before = self.counted.fetch_max(ahead, Ordering::Relaxed);
        Duration::from_nanos(before.max(ahead))
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn with_suspensions() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    // It counts them there, and the standard library takes another.
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;
    let time = clock_gettime(CLOCK);
    Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn with_suspensions() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_one_clock_is_ahead_of_the_other_counts_and_never_becomes_less() {
        let suspended = Suspended::new();
        for (with_it, without, so_far) in [
            (seconds(5), seconds(5), seconds(0)),
            // Held up between the two looks.
            (seconds(5), seconds(6), seconds(0)),
            (seconds(70), seconds(10), seconds(60)),
            (seconds(71), seconds(13), seconds(60)),
            (seconds(100), seconds(40), seconds(60)),
            (seconds(200), seconds(41), seconds(159)),
            (seconds(201), seconds(42), seconds(159)),
        ] {
            assert_eq!(suspended.count(with_it, without), so_far, "{with_it:?} and {without:?}");
        }
    }

    /// No test can suspend the machine; one that runs all the time is not to count anything.
    #[test]
    fn a_machine_that_runs_is_not_suspended() {
        let suspended = Suspended::new();
        let began = Instant::now();
        let mut so_far = Duration::ZERO;
        for _ in 0..1000 {
            let now = suspended.so_far();
            assert!(now >= so_far);
            so_far = now;
        }
        assert!(so_far <= began.elapsed(), "{so_far:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_clock_that_counts_it_goes_on() {
        let before = with_suspensions().unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2) {}
        let went_on = with_suspensions().unwrap() - before;
        assert!(went_on >= Duration::from_millis(1), "{went_on:?}");
    }
}
