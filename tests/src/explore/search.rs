//! The search: breadth first, so that the first violation has a shortest run.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;

use super::checks::Checks;
use super::steps::Step;
use super::transcript::Transcript;
use super::world::{State, World};

/// All states that were reached, and how. The number of a state is its place in the order of
/// discovery, so the states that are still to be looked at are a range.
#[derive(Debug)]
pub(crate) struct Search {
    world: World,
    checks: Checks,
    states: Vec<State>,
    /// For each state, the state from which it was reached first, and which of its steps that was.
    origins: Vec<(u32, u16)>,
    index: Index,
    pub(crate) steps: u64,
    pub(crate) depth: u32,
}

/// Something that must not happen, and the shortest run to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// The run, a line for each thing that happened.
    pub transcript: String,
}

impl Search {
    pub(crate) fn new(world: World, checks: Checks, first: State) -> Search {
        let mut search = Search {
            world,
            checks,
            states: Vec::new(),
            origins: Vec::new(),
            index: Index::new(),
            steps: 0,
            depth: 0,
        };
        search.insert(first, (0, 0));
        search
    }

    pub(crate) fn states(&self) -> u64 {
        self.states.len() as u64
    }

    pub(crate) fn checks(&self) -> &Checks {
        &self.checks
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Looks at everything that can be reached, up to the first violation.
    pub(crate) fn run(&mut self) -> Option<Violation> {
        let mut steps = Vec::new();
        let mut next = 0;
        let mut level_ends = self.states.len();
        let nothing = &mut Transcript::none();
        if let Err(what) = self.checks.find(&self.world, &self.states[0]) {
            return Some(self.violation(0, None, what));
        }
        while next < self.states.len() {
            if next == level_ends {
                level_ends = self.states.len();
                self.depth += 1;
            }
            let state = self.states[next];
            self.world.steps(&state, &mut steps);
            for (ordinal, step) in steps.iter().enumerate() {
                self.steps += 1;
                let (reached, violation) = self.world.take(&state, *step, nothing);
                if let Some(what) = violation {
                    return Some(self.violation(next, Some(*step), what));
                }
                if !self.insert(reached, (next as u32, ordinal as u16)) {
                    continue;
                }
                if let Err(what) = self.checks.find(&self.world, &reached) {
                    return Some(self.violation(self.states.len() - 1, None, what));
                }
            }
            next += 1;
        }
        None
    }

    /// Whether the state is new.
    fn insert(&mut self, state: State, origin: (u32, u16)) -> bool {
        if !self.index.insert(&self.states, &state) {
            return false;
        }
        self.states.push(state);
        self.origins.push(origin);
        true
    }

    fn violation(&mut self, at: usize, last: Option<Step>, what: String) -> Violation {
        let mut run: Vec<Step> = last.into_iter().collect();
        let (mut at, mut steps) = (at, Vec::new());
        while at > 0 {
            let (from, ordinal) = self.origins[at];
            at = from as usize;
            self.world.steps(&self.states[at], &mut steps);
            run.push(steps[ordinal as usize]);
        }
        let mut transcript = Transcript::written();
        let mut state = self.states[0];
        for step in run.into_iter().rev() {
            (state, _) = self.world.take(&state, step, &mut transcript);
        }
        transcript.line(format!("violated: {what}"));
        Violation { what, transcript: transcript.text() }
    }
}

/// A hash table of the numbers of states.
#[derive(Debug)]
struct Index {
    slots: Vec<u32>,
    used: usize,
}

const FREE: u32 = u32::MAX;

impl Index {
    fn new() -> Index {
        Index { slots: vec![FREE; 1 << 10], used: 0 }
    }

    /// Adds a state under the number that it will have; not if it is there already.
    fn insert(&mut self, states: &[State], state: &State) -> bool {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow(states);
        }
        let mut at = self.home(state);
        while self.slots[at] != FREE {
            if states[self.slots[at] as usize] == *state {
                return false;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = u32::try_from(states.len()).expect("fewer than 2^32 states");
        self.used += 1;
        true
    }

    fn grow(&mut self, states: &[State]) {
        let doubled = vec![FREE; self.slots.len() * 2];
        let before = std::mem::replace(&mut self.slots, doubled);
        for number in before.into_iter().filter(|number| *number != FREE) {
            let mut at = self.home(&states[number as usize]);
            while self.slots[at] != FREE {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = number;
        }
    }

    fn home(&self, state: &State) -> usize {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(state);
        // The hasher's high bits are its good ones.
        (hash >> (u64::BITS - self.slots.len().trailing_zeros())) as usize
    }
}
