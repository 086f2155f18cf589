//! Stopping (DESIGN.md section 7), in `durable`.

use super::{Effect, Error, State, Writer};
use crate::event::Answer;

impl<W> Writer<W> {
    pub(super) fn stop(&mut self, waiter: W) {
        self.stops.push(waiter);
        if !matches!(self.state, State::Running) {
            return;
        }
        self.state = State::Stopping;
        let error = Error::Stopped;
        // Creates that were started run out, and acknowledge if they succeed in order.
        let not_started = self.pipeline.take_not_started();
        self.fail_batches(not_started, &error);
        self.fail_open(&error);
        self.fail_queue(&error);
        self.fail_floor(&error);
    }

    /// Answers the callers of stop, all alike, once nothing is in flight.
    pub(super) fn finish_stop(&mut self) {
        if !self.pipeline.is_quiet() || self.fencing.is_some() {
            return;
        }
        let answer = match &self.state {
            State::Running => return,
            State::Stopping | State::Stopped => Ok(Answer::Done),
            State::Poisoned(cause) => Err(Error::Poisoned { cause: cause.clone() }),
        };
        if matches!(self.state, State::Stopping) {
            self.state = State::Stopped;
        }
        for waiter in core::mem::take(&mut self.stops) {
            match &answer {
                Ok(answer) => {
                    let answer = answer.clone();
                    self.effects.push_back(Effect::Ack { waiter, answer });
                }
                Err(error) => self.fail(waiter, error.clone()),
            }
        }
    }
}
