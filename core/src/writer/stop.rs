//! Stopping (DESIGN.md section 7).

use super::{Effect, Error, State, Writer};
use crate::event::Answer;
use crate::options::AckMode;

impl<W> Writer<W> {
    pub(super) fn stop(&mut self, waiter: W) {
        self.stops.push(waiter);
        if !matches!(self.state, State::Running) {
            return;
        }
        self.state = State::Stopping { began: self.now };
        let error = Error::Stopped;
        match self.options.ack_mode {
            // Creates that were started run out, and acknowledge if they succeed in order.
            AckMode::Durable => {
                let not_started = self.pipeline.take_not_started();
                // Their sequences stay free, behind what is indexed and before the last object: that
                // is a skip too.
                let skips = !not_started.is_empty() || self.open.is_some();
                self.skipped |= skips && self.rules.guard_after_roll_back;
                self.note_failed(&not_started, &error);
                self.fail_batches(not_started, &error);
                self.fail_open(&error);
            }
            // What was acknowledged is uploaded, also in a failing log.
            AckMode::Enqueued => {
                if self.open.is_some() || self.next_sequence.is_valid() {
                    self.take_carried();
                }
                self.seal_wanted = self.open.is_some();
            }
        }
        self.fail_queue(&error);
        self.fail_floor(&error);
    }

    /// When attempts end, once stop began in `enqueued`.
    pub(super) fn deadline(&self) -> Option<crate::types::Time> {
        match (&self.state, self.options.ack_mode) {
            (State::Stopping { began }, AckMode::Enqueued) => {
                Some(began.after(self.options.stop_deadline))
            }
            _ => None,
        }
    }

    pub(super) fn deadline_passed(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= self.now)
    }

    /// Answers the callers of stop, all alike, once nothing is in flight.
    pub(super) fn finish_stop(&mut self) {
        if self.deadline_passed() && self.fencing.is_none() && !self.pipeline.is_running() {
            let batches = self.pipeline.take_all();
            self.fail_batches(batches, &Error::Stopped);
            self.fail_open(&Error::Stopped);
            self.lose_carried(&Error::Stopped);
        }
        // An abandoned log is stopped, whatever is in flight still.
        if !matches!(self.state, State::Stopped(_)) {
            if !self.pipeline.is_quiet() || self.open.is_some() || self.fencing.is_some() {
                return;
            }
            if matches!(self.state, State::Stopping { .. }) && !self.carried.is_empty() {
                if self.seal_last_object() {
                    return;
                }
                self.lose_carried(&Error::SequenceExhausted);
            }
            if !self.reclaim.is_quiet() {
                return;
            }
        }
        if matches!(self.state, State::Stopping { .. }) {
            self.state = State::Stopped(self.loss(None));
        }
        let error = match &self.state {
            State::Running | State::Stopping { .. } => return,
            State::Stopped(loss) => loss.clone(),
            State::Poisoned(cause) => {
                let poison = Error::Poisoned { cause: cause.clone() };
                Some(self.loss(Some(cause)).unwrap_or(poison))
            }
        };
        for waiter in core::mem::take(&mut self.stops) {
            match &error {
                None => self.emit(Effect::Ack { waiter, answer: Answer::Done }),
                Some(error) => self.fail(waiter, error.clone()),
            }
        }
    }

    /// In `durable`: what is left of release records goes into one more object. `false` if there
    /// was one already, or none can be.
    fn seal_last_object(&mut self) -> bool {
        if self.last_object_sealed || !self.next_sequence.is_valid() {
            return false;
        }
        self.last_object_sealed = true;
        self.take_carried();
        self.seal();
        self.start_creates();
        true
    }
}
