//! When the figures of a log are exported; what and how is the [exporter](self::export)'s.

#[cfg(feature = "metrics")]
mod export;

use std::time::Duration;

use sealog_core::stats::Stats;
use sealog_core::{Prefix, Time};

/// Exports the figures of one log through the `metrics` facade, as `sealog_<name>` with the label
/// `prefix` (DESIGN.md section 11).
///
/// How a shell drives it:
///
/// - It says [`changed`](Figures::changed) when it opened the log, and whenever it hands the
///   machine an event. That costs next to nothing.
/// - At [`due`](Figures::due) it hands the figures to [`export`](Figures::export): a second after
///   the first change, so that a busy log exports once a second and an idle one never.
/// - When the log stops or ends with a terminal error it exports at once, before it answers
///   whoever waits for that, since the process may end right after; and when it goes away, at last.
///
/// An application may install its recorder before it opens the log or later. So nothing of the
/// facade is kept from one export to the next; and what is counted while there is no recorder goes
/// out in the first export that finds one.
///
/// Without the feature `metrics` nothing is ever due, and an export does nothing.
#[derive(Debug)]
pub struct Figures {
    due: Option<Time>,
    #[cfg(feature = "metrics")]
    exporter: export::Exporter,
}

/// From the first change to the export of it and of all that follow.
const PERIOD: Duration = Duration::from_secs(1);

impl Figures {
    /// For the log with this prefix. Nothing is due yet.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, reason = "only an export needs it")
    )]
    pub fn new(prefix: &Prefix) -> Figures {
        Figures {
            due: None,
            #[cfg(feature = "metrics")]
            exporter: export::Exporter::new(prefix),
        }
    }

    /// Something may have changed.
    pub fn changed(&mut self, now: Time) {
        if cfg!(feature = "metrics") && self.due.is_none() {
            self.due = Some(now.after(PERIOD));
        }
    }

    /// When to export; it may be past. `None` while nothing changed.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Exports the figures as they stand, whether that is due or not; then it no longer is.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, reason = "only an export needs it")
    )]
    pub fn export(&mut self, stats: &Stats) {
        self.due = None;
        #[cfg(feature = "metrics")]
        self.exporter.export(stats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "metrics")]
    fn an_export_is_due_a_second_after_the_first_change_and_not_before_the_next() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let mut figures = Figures::new(&Prefix::new("a").unwrap());
        assert_eq!(figures.due(), None);
        for now in [100, 101, 1099, 1100, 5000] {
            figures.changed(at(now));
            assert_eq!(figures.due(), Some(at(1100)));
        }
        figures.export(&Stats::default());
        assert_eq!(figures.due(), None);
        figures.changed(at(5001));
        assert_eq!(figures.due(), Some(at(6001)));
    }

    #[test]
    #[cfg(not(feature = "metrics"))]
    fn without_the_feature_nothing_is_due() {
        let mut figures = Figures::new(&Prefix::new("a").unwrap());
        figures.changed(Time::from_nanos(1));
        assert_eq!(figures.due(), None);
        figures.export(&Stats::default());
    }
}
