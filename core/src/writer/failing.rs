//! A log that the store refuses to write, in `enqueued` (DESIGN.md section 5, failing).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Effect, Writer};
use crate::error::{Error, Outcome};
use crate::event::Notice;

impl<W> Writer<W> {
    /// A create was refused. The backlog is kept and tried again; whoever waits is told.
    pub(super) fn become_failing(&mut self, refusal: &Error) {
        if self.failing.is_some() {
            return;
        }
        let error = Error::Failing { cause: Arc::new(refusal.clone()) };
        self.failing = Some(error.clone());
        self.emit(Effect::Notice(Notice::Failing { error: refusal.clone() }));
        let (mut waits, mut releases): (Vec<W>, Vec<W>) = (Vec::new(), Vec::new());
        for batch in self.pipeline.iter_mut() {
            let to = if batch.records.is_empty() { &mut waits } else { &mut releases };
            to.append(&mut batch.waits);
        }
        if let Some(open) = &mut self.open {
            let to = if open.releases().is_empty() { &mut waits } else { &mut releases };
            to.append(&mut open.waits);
        }
        self.fail_all(waits, &error, Outcome::NotWritten);
        // Their records stay in the backlog.
        self.fail_all(releases, &error, Outcome::Unknown);
        self.fail_queue(&error);
        self.fail_floor(&error);
    }

    /// A create succeeded, whichever batch's it was.
    pub(super) fn become_healthy(&mut self) {
        if self.failing.take().is_some() {
            self.emit(Effect::Notice(Notice::Healthy));
            self.carried.set_due(self.now);
        }
    }

    /// What a call that writes fails with now.
    pub(super) fn may_write(&self) -> Result<(), Error> {
        self.is_running()?;
        self.failing.clone().map_or(Ok(()), Err)
    }
}
