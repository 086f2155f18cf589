//! What waits for admission is bounded (DESIGN.md section 5, admission).
//!
//! Callers are on other threads than whoever drives the [`Writer`](crate::Writer), so this is no
//! part of it: a [`Gate`] counts what waits, and a [`Line`] holds the appends that may not come in
//! yet, in the order of their arrival. Both decide; a shell carries it out:
//!
//! - Before an append goes on its way to the writer it is let in: by [`Gate::try_enter`], which
//!   may refuse, by [`Gate::pass`] and, if that does not let it pass, [`Line::enter`], which may keep
//!   it, or by [`Gate::enter`], at the caller's own risk. What was let in waits, wherever it is, until the writer has admitted or refused it.
//! - After the writer has handled events, [`Gate::settle`] is told what it says, and if somebody
//!   stands in the line, [`Line::next`] is called until there is none that may come in.
//! - When the writer goes away, [`Gate::close`] opens the gate for good, so that whoever comes is told
//!   by the writer's absence, and [`Line::close`] gives back who stands there.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::event::Append;
use crate::options::Options;
use crate::stats::Stats;
use crate::writer::Settled;

/// Somebody stands in the line: whoever comes now is behind.
const LINE: u64 = 1 << 63;
/// The writer takes nothing, and says so to everybody at once: nobody waits for that.
const OPEN: u64 = 1 << 62;
/// The writer is gone, which stays so.
const CLOSED: u64 = 1 << 61;
const FLAGS: u64 = LINE | OPEN | CLOSED;

/// Counts what waits for admission, in bytes. Not overloaded, it costs an append two additions.
#[derive(Debug)]
pub struct Gate {
    limit: u64,
    /// The bytes that wait, and flags. All that threads have to agree on is in this one number, and
    /// what else they share is in channels and under locks: no order of memory hangs on it.
    state: AtomicU64,
    overloaded: AtomicU64,
}

/// What of a writer's appends no longer waits, of all that it was ever handed.
#[derive(Debug, Default)]
pub struct SettledBefore(u64);

impl Gate {
    /// A gate of nothing that waits.
    pub fn new(options: &Options) -> Gate {
        let limit = options.max_queued_bytes;
        Gate { limit, state: AtomicU64::new(0), overloaded: AtomicU64::new(0) }
    }

    /// Lets an append in, whatever waits.
    pub fn enter(&self, append: &Append) {
        self.state.fetch_add(append.queued_bytes(), Ordering::Relaxed);
    }

    /// Lets an append in while less than the limit waits and nobody stands in the line; `false` if it
    /// was not let in.
    #[must_use]
    pub fn pass(&self, append: &Append) -> bool {
        let bytes = append.queued_bytes();
        let enter = |state| (state & LINE == 0 && self.has_place(state)).then(|| state + bytes);
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).is_ok()
    }

    /// The same for one that does not wait.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`]: it was not let in, and counted.
    pub fn try_enter(&self, append: &Append) -> Result<(), Error> {
        if self.pass(append) {
            return Ok(());
        }
        self.overloaded.fetch_add(1, Ordering::Relaxed);
        Err(Error::Overloaded { limit: self.limit })
    }

    /// Notes what the writer has admitted or refused by now, and says whether somebody in the line
    /// may come in for it. Whatever a writer is handed was let in before.
    pub fn settle(&self, before: &mut SettledBefore, settled: Settled) -> bool {
        let bytes = settled.bytes - before.0;
        before.0 = settled.bytes;
        let mut state = match bytes {
            0 => self.state.load(Ordering::Relaxed),
            bytes => self.state.fetch_sub(bytes, Ordering::Relaxed).wrapping_sub(bytes),
        };
        if settled.refuses != (state & OPEN != 0) {
            state = match settled.refuses {
                true => self.state.fetch_or(OPEN, Ordering::Relaxed) | OPEN,
                false => self.state.fetch_and(!OPEN, Ordering::Relaxed) & !OPEN,
            };
        }
        state & LINE != 0 && self.has_place(state)
    }

    /// The writer is gone: whoever comes is let in, and finds that out.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// How many bytes wait for admission: payloads, and 64 for each append.
    pub fn queued_bytes(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & !FLAGS
    }

    /// The writer's figures with those of the gate.
    pub fn complete(&self, stats: Stats) -> Stats {
        Stats {
            queued_bytes: self.queued_bytes(),
            overloaded_total: self.overloaded.load(Ordering::Relaxed),
            ..stats
        }
    }

    /// Nothing waits, or less than the limit: that is at least one byte.
    fn has_place(&self, state: u64) -> bool {
        state & (OPEN | CLOSED) != 0 || state & !FLAGS < self.limit
    }
}

/// Appends that may not come in yet, each with what the shell needs to go on with it. A shell keeps
/// it under a lock, which only those take who wait, and who lets them in.
///
/// The gate has its flag while somebody stands here, so nobody who comes later overtakes them. Those
/// who hand in at their own risk do.
#[derive(Debug)]
pub struct Line<T> {
    waiting: BTreeMap<Ticket, (u64, T)>,
    next: Ticket,
}

/// A place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What became of an append that came to the line.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered<T> {
    /// It was let in.
    In(T),
    /// It stands in the line.
    Waits(Ticket),
}

impl<T> Line<T> {
    /// Nobody.
    pub fn new() -> Line<T> {
        Line { waiting: BTreeMap::new(), next: Ticket(0) }
    }

    /// Lets an append in, or keeps it until it is its turn.
    pub fn enter(&mut self, gate: &Gate, bytes: u64, append: T) -> Entered<T> {
        // From here on whoever makes room looks at the line; who did before is seen now.
        let state = gate.state.fetch_or(LINE, Ordering::Relaxed);
        if self.waiting.is_empty() && gate.has_place(state) {
            gate.state.fetch_add(bytes, Ordering::Relaxed);
            gate.state.fetch_and(!LINE, Ordering::Relaxed);
            return Entered::In(append);
        }
        let ticket = self.next;
        self.next = Ticket(ticket.0 + 1);
        self.waiting.insert(ticket, (bytes, append));
        Entered::Waits(ticket)
    }

    /// The first one, if it may come in now.
    pub fn next(&mut self, gate: &Gate) -> Option<T> {
        if !gate.has_place(gate.state.load(Ordering::Relaxed)) {
            return None;
        }
        let (_, (bytes, append)) = self.waiting.pop_first()?;
        gate.state.fetch_add(bytes, Ordering::Relaxed);
        self.left(gate);
        Some(append)
    }

    /// Leaves the line, if it still stands there: then it was not let in, and nobody is but whom it
    /// gives back.
    pub fn leave(&mut self, gate: &Gate, ticket: Ticket) -> Option<T> {
        let (_, append) = self.waiting.remove(&ticket)?;
        self.left(gate);
        Some(append)
    }

    /// The writer is gone: gives back who stands there, in order. The gate was
    /// [closed](Gate::close) before, so nobody joins later.
    pub fn close(&mut self, gate: &Gate) -> impl Iterator<Item = T> + use<T> {
        let waiting = core::mem::take(&mut self.waiting);
        self.left(gate);
        waiting.into_values().map(|(_, append)| append)
    }

    fn left(&self, gate: &Gate) {
        if self.waiting.is_empty() {
            gate.state.fetch_and(!LINE, Ordering::Relaxed);
        }
    }
}

impl<T> Default for Line<T> {
    fn default() -> Line<T> {
        Line::new()
    }
}

#[cfg(test)]
mod tests;
