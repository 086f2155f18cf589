//! Which events somebody waits for.

use crate::event::Event;

impl<W> Event<W> {
    /// Whether somebody waits for the answer that the state of the log decides.
    pub(super) fn is_call(&self) -> bool {
        matches!(
            self,
            Event::Append { .. }
                | Event::Flush { .. }
                | Event::WaitDurable { .. }
                | Event::Obsolete { .. }
                | Event::Release { .. }
                | Event::ReleaseAll { .. }
                | Event::Stop { .. }
        )
    }

    /// The waiter of a call.
    pub(super) fn into_waiter(self) -> Option<W> {
        match self {
            Event::Append { waiter, .. }
            | Event::Flush { waiter }
            | Event::WaitDurable { waiter, .. }
            | Event::Obsolete { waiter, .. }
            | Event::Release { waiter, .. }
            | Event::ReleaseAll { waiter, .. }
            | Event::Stop { waiter }
            | Event::SegmentReadFailed { waiter, .. } => Some(waiter),
            Event::Tick
            | Event::Watch { .. }
            | Event::Unwatch { .. }
            | Event::Storage(_)
            | Event::HoleFound(_)
            | Event::ReadFinished { .. } => None,
        }
    }
}
