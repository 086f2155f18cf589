//! A subscription to the durable position of a region.

use std::fmt;

use sealog_core::{EntryId, Error, RegionId};
use tokio::sync::{mpsc, watch};

use super::actor::Control;

/// A subscription to the durable position of a region, from `Wal::watch_durable`. It does not keep
/// the log open.
pub struct DurableWatch {
    region: RegionId,
    /// Gone only while this is dropped.
    positions: Option<watch::Receiver<Position>>,
    seen: EntryId,
    control: mpsc::WeakUnboundedSender<Control>,
}

/// Where a region stands.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) id: EntryId,
    /// Why it will not change any more.
    pub(crate) ended: Option<Error>,
}

impl DurableWatch {
    pub(crate) fn new(
        region: RegionId,
        positions: watch::Receiver<Position>,
        control: mpsc::WeakUnboundedSender<Control>,
    ) -> DurableWatch {
        let seen = positions.borrow().id;
        DurableWatch { region, positions: Some(positions), seen, control }
    }

    /// The region.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// The largest id that is durable now, [`EntryId::ZERO`] if none is. Does not count as seen.
    pub fn get(&self) -> EntryId {
        self.positions.as_ref().map_or(self.seen, |positions| positions.borrow().id)
    }

    /// Waits until the position differs from the one seen last, at first from the one when the
    /// subscription began, and gives the new one. Positions in between may be passed over.
    ///
    /// # Errors
    ///
    /// It will not change any more: [`Error::Poisoned`] after a terminal error, [`Error::Stopped`]
    /// once the log is stopped or gone. A last change is given out first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call gives the change.
    pub async fn changed(&mut self) -> Result<EntryId, Error> {
        let Some(positions) = &mut self.positions else { return Err(Error::Stopped) };
        loop {
            {
                let position = positions.borrow_and_update();
                if position.id != self.seen {
                    self.seen = position.id;
                    return Ok(self.seen);
                }
                if let Some(error) = &position.ended {
                    return Err(error.clone());
                }
            }
            positions.changed().await.map_err(|_| Error::Stopped)?;
        }
    }
}

impl Drop for DurableWatch {
    fn drop(&mut self) {
        // First, so that the actor does not count it.
        self.positions = None;
        if let Some(control) = self.control.upgrade() {
            let region = self.region;
            drop(control.send(Control::Unwatch { region }));
        }
    }
}

impl fmt::Debug for DurableWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableWatch")
            .field("region", &self.region)
            .field("durable", &self.get())
            .finish_non_exhaustive()
    }
}
