//! Where appends come in, and where those wait that may not come in yet. The core's [`Gate`] and
//! [`Line`] decide; this carries it out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealog_core::gate::{Entered, Gate, Line, SettledBefore, Ticket};
use sealog_core::{Append, Appended, Error, Outcome, Stats, WriteError, Writer};
use tokio::sync::{mpsc, oneshot};

use super::actor::Queued;
use super::submission::Submission;

type Waiter = oneshot::Sender<Result<Appended, WriteError>>;

/// What callers and the actor share.
#[derive(Debug)]
pub(crate) struct Door {
    gate: Gate,
    /// Locked for as long as it takes to add or to remove somebody, and only while somebody has to
    /// wait.
    line: Mutex<Line<(Append, Waiter)>>,
}

/// A place in the line, given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    door: Arc<Door>,
    ticket: Ticket,
}

impl Door {
    pub(crate) fn new(gate: Gate) -> Arc<Door> {
        Arc::new(Door { gate, line: Mutex::new(Line::new()) })
    }

    /// Hands an append over, whatever waits.
    pub(crate) fn submit(
        &self,
        append: Append,
        queue: &mpsc::UnboundedSender<Queued>,
    ) -> Submission {
        self.gate.enter(&append);
        hand_over(append, queue)
    }

    /// Hands an append over, unless too much waits.
    pub(crate) fn try_submit(
        &self,
        append: Append,
        queue: &mpsc::UnboundedSender<Queued>,
    ) -> Result<Submission, WriteError> {
        let refused = |error| WriteError::new(error, Outcome::NotWritten);
        self.gate.try_enter(&append).map_err(refused)?;
        Ok(hand_over(append, queue))
    }

    /// Hands an append over, now or when it is its turn.
    pub(crate) fn append(
        self: &Arc<Door>,
        append: Append,
        queue: &mpsc::UnboundedSender<Queued>,
    ) -> Submission {
        if self.gate.pass(&append) {
            return hand_over(append, queue);
        }
        let (waiter, answer) = oneshot::channel();
        let bytes = append.queued_bytes();
        let entered = self.line().enter(&self.gate, bytes, (append, waiter));
        match entered {
            Entered::In((append, waiter)) => match queue.send(Queued::Append { append, waiter }) {
                Ok(()) => Submission::waiting(answer),
                Err(_) => Submission::refused(),
            },
            Entered::Waits(ticket) => {
                Submission::in_line(answer, Place { door: self.clone(), ticket })
            }
        }
    }

    /// Lets in who may come in by now.
    pub(crate) fn let_in<W>(
        &self,
        writer: &Writer<W>,
        before: &mut SettledBefore,
        queue: &mpsc::WeakUnboundedSender<Queued>,
    ) {
        if !self.gate.settle(before, writer.settled()) {
            return;
        }
        // Without a handle the log ends, and answers whoever stands in the line.
        let Some(queue) = queue.upgrade() else { return };
        loop {
            let next = self.line().next(&self.gate);
            let Some((append, waiter)) = next else { return };
            // The receiver is the actor's, which is here.
            drop(queue.send(Queued::Append { append, waiter }));
        }
    }

    /// The actor goes away: whoever stands in the line is answered, and nobody waits any more.
    pub(crate) fn close(&self) {
        self.gate.close();
        let left = self.line().close(&self.gate);
        for (_, waiter) in left {
            let stopped = WriteError::new(Error::Stopped, Outcome::NotWritten);
            // Whoever no longer listens needs no answer.
            drop(waiter.send(Err(stopped)));
        }
    }

    /// The writer's figures, with what is counted here.
    pub(crate) fn figures(&self, stats: Stats) -> Stats {
        self.gate.complete(stats)
    }

    /// A panic elsewhere leaves it as it was: each change is one call of the core's.
    fn line(&self) -> MutexGuard<'_, Line<(Append, Waiter)>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hand_over(append: Append, queue: &mpsc::UnboundedSender<Queued>) -> Submission {
    let (waiter, answer) = oneshot::channel();
    match queue.send(Queued::Append { append, waiter }) {
        Ok(()) => Submission::waiting(answer),
        Err(_) => Submission::refused(),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = self.door.line().leave(&self.door.gate, self.ticket);
        // Freed without the lock: a payload may be large.
        drop(left);
    }
}
