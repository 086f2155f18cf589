//! What stands between the callers of a log and its writer, as the shells have it: a queue of what was
//! let in, which is held back while the writer takes no appends, and the core's gate before it.

use std::collections::VecDeque;

use sealog_core::event::{Append, Event};
use sealog_core::gate::{Entered, Gate, Line, SettledBefore};
use sealog_core::{Options, Writer};

use super::journal::{Checked, ensure};

/// The door of one log.
pub(super) struct Door {
    gate: Gate,
    line: Line<Append>,
    in_line: usize,
    before: SettledBefore,
    queue: VecDeque<Event<usize>>,
}

/// How an append comes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// At the caller's own risk.
    Submit,
    Try,
    Wait,
}

/// What becomes of it.
pub(super) enum Came {
    In(Append),
    Waits,
    Overloaded,
}

impl Door {
    pub(super) fn new(options: &Options) -> Door {
        let (gate, line, before) = (Gate::new(options), Line::new(), SettledBefore::default());
        Door { gate, line, in_line: 0, before, queue: VecDeque::new() }
    }

    pub(super) fn come(&mut self, append: Append, way: Way) -> Came {
        match way {
            Way::Submit => {
                self.gate.enter(&append);
                Came::In(append)
            }
            Way::Try if self.gate.try_enter(&append).is_ok() => Came::In(append),
            Way::Try => Came::Overloaded,
            Way::Wait if self.gate.pass(&append) => Came::In(append),
            Way::Wait => match self.line.enter(&self.gate, append.queued_bytes(), append) {
                Entered::In(append) => Came::In(append),
                Entered::Waits(_) => {
                    self.in_line += 1;
                    Came::Waits
                }
            },
        }
    }

    /// Puts what was let in at the end of the queue.
    pub(super) fn push(&mut self, event: Event<usize>) {
        self.queue.push_back(event);
    }

    /// What the writer takes next.
    pub(super) fn pop(&mut self, writer: &Writer<usize>) -> Option<Event<usize>> {
        writer.accepts_appends().then(|| self.queue.pop_front())?
    }

    /// Who comes in from the line by now.
    pub(super) fn let_in(&mut self, writer: &Writer<usize>) -> Vec<Append> {
        let mut came = Vec::new();
        if self.gate.settle(&mut self.before, writer.settled()) {
            came.extend(std::iter::from_fn(|| self.line.next(&self.gate)));
        }
        self.in_line -= came.len();
        came
    }

    /// Whether nobody is held back any more.
    pub(super) fn is_empty(&self) -> bool {
        self.in_line == 0 && self.queue.is_empty()
    }

    /// What is counted is what waits, and nobody stands in the line for nothing.
    pub(super) fn check(&self, writer: &Writer<usize>, limit: u64) -> Checked {
        let bytes = self.queue.iter().map(|event| match event {
            Event::Append { append, .. } => append.queued_bytes(),
            _ => 0,
        });
        let waits = bytes.sum::<u64>() + writer.stats().queued_bytes;
        let counted = self.gate.queued_bytes();
        ensure!(counted == waits, "{waits} bytes wait, and {counted} are counted");
        let held_back = self.in_line > 0 && counted < limit;
        ensure!(!held_back, "{} stand in the line, and {counted} bytes wait", self.in_line);
        ensure!(
            self.in_line == 0 || !writer.settled().refuses,
            "they stand there, and nobody comes"
        );
        Ok(())
    }
}
