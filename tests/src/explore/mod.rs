//! The exploration of exclusive ownership (DESIGN.md section 12).
//!
//! A world of one store and up to four instances, built from the real machines, is explored breadth
//! first over all interleavings of its atomic steps: requests that take effect, their answers,
//! faults, ticks, and events that are handed in. In every state that is reached, the checks hold,
//! or the exploration ends with a shortest run to the violation, as a transcript.
//!
//! - `world`: states, and what a step does; `steps`: which steps there are.
//! - `instance`: one process; `meeting`: what comes of one event for it.
//! - `objects`: what the store holds.
//! - `checks`: what must hold; `alone`: openings that are left alone, for the checks.
//! - `search`: the search itself; `transcript`: how a run is written down.
//! - `fingerprint`: when two machines count as the same.

mod alone;
mod checks;
mod fingerprint;
mod instance;
mod meeting;
mod objects;
mod search;
mod steps;
mod transcript;
mod world;

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sealog_core::format::{Header, ObjectEncoder, WriterRecord};
use sealog_core::rules::Rules;
use sealog_core::{EntryId, Epoch, Link, ObjectSeq, Options, RegionId};

pub use search::Violation;
pub use steps::Listing;

use checks::Checks;
use instance::{Phase, Setup};
use search::Search;
use steps::{Allowance, Move, Step};
use transcript::Transcript;
use world::{State, World};

/// What is explored.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Its name.
    pub name: &'static str,
    /// The instances, by the number of their appends.
    pub appends: &'static [u8],
    /// Whether the first instance is open, on a log that it began, before anything else happens.
    pub preopened: bool,
    /// `max_in_flight`.
    pub pipeline: u32,
    /// How many requests fail: puts that are answered as timed out, whether they take effect before,
    /// later or never; and listings of guards.
    pub failures: u8,
    /// How many listings are no snapshot.
    pub lists: u8,
    /// How these are read.
    pub listing: Listing,
    /// Whether listings that are read in any order come in the order of the keys all the same, by luck.
    pub lucky: bool,
    /// How often a writer is told that ids are obsolete that lie beyond all objects, and by how many
    /// sequences.
    pub floors: u8,
    /// How far above the highest object that floor lies.
    pub floor_by: u64,
    /// How often a writer is told that all it knows is obsolete.
    pub obsoletes: u8,
    /// Whether deletes are carried out. Otherwise none ever takes effect or is answered.
    pub deletes: bool,
    /// Whether an idle writer puts an object that carries its boundary.
    pub carriers: bool,
    /// How often more time than `fence_retention` passes, for the store and for everybody.
    pub eras: u8,
    /// The claim of an opening that died, at this sequence, before anything else happens.
    pub old_claim: Option<u64>,
    /// Which instance dies at the end of its opening. Everywhere an instance may stop at any time
    /// for good; this one does no more than open, so that there are fewer states.
    pub dies_opening: Option<usize>,
    /// `retry_for`.
    pub retry_for: Duration,
    /// `verify_store`.
    pub verify_store: bool,
    /// The rules that are kept.
    pub rules: Rules,
}

impl Configuration {
    /// No faults; these instances, of which the first is open.
    pub const fn new(name: &'static str, appends: &'static [u8]) -> Configuration {
        Configuration {
            name,
            appends,
            preopened: true,
            pipeline: 2,
            failures: 0,
            lists: 0,
            listing: Listing::TwoPages,
            lucky: false,
            floors: 0,
            floor_by: 1,
            obsoletes: 0,
            deletes: false,
            carriers: false,
            eras: 0,
            old_claim: None,
            dies_opening: None,
            retry_for: Duration::ZERO,
            verify_store: false,
            // Claims ahead, and many at once, multiply the states without changing what other rules are
            // for: there are configurations of their own for them.
            rules: Rules { claims_go_ahead: false, claims_at_once: 1, ..Rules::ALL },
        }
    }

    fn world(&self) -> (World, State) {
        let setup = Setup {
            options: Options {
                flush_interval: Duration::ZERO,
                linger: Duration::ZERO,
                max_batch_bytes: 1,
                max_in_flight: self.pipeline,
                retry_for: self.retry_for,
                open_concurrency: 1024,
                open_timeout: Duration::from_secs(3600),
                verify_store: self.verify_store,
                max_deletes_in_flight: 1024,
                reclaim_interval: Duration::from_secs(u64::from(self.carriers)),
                fence_retention: Duration::from_secs(60),
                ..Options::default()
            },
            rules: self.rules,
            dies_opening: self.dies_opening,
            floors: self.floors > 0,
            deletes: self.deletes,
            lists_in_order: self.listing == Listing::TwoPages || self.lucky,
            carriers: self.carriers,
        };
        let Configuration { failures, lists, listing, floors, floor_by, obsoletes, eras, .. } =
            *self;
        let allowance = Allowance { failures, lists, listing, floors, floor_by, obsoletes, eras };
        let mut world = World::new(setup, allowance);
        let mut first = world.first(self.appends);
        if self.preopened {
            first = opened(&mut world, first);
        }
        if let Some(sequence) = self.old_claim {
            let claim = world.objects.intern(claim(sequence));
            first.store = world.objects.with(first.store, claim);
        }
        (world, first)
    }

    /// Explores it.
    pub fn explore(&self) -> Report {
        let began = Instant::now();
        let (world, first) = self.world();
        let checks = Checks::new(self.preopened);
        let mut search = Search::new(world, checks, first);
        let violation = search.run();
        let (instances, transitions) = search.world().size();
        Report {
            name: self.name,
            states: search.states(),
            steps: search.steps,
            depth: search.depth,
            stores: search.world().objects.sets(),
            instances,
            transitions,
            most_listings: search.checks().most_listings,
            most_puts: search.checks().most_puts,
            most_attempts: search.checks().most_attempts,
            took: began.elapsed(),
            violation,
        }
    }
}

#[cfg(test)]
fn opened_world() -> (World, State) {
    Configuration::new("a writer", &[1]).world()
}

/// The claim of an opening that is gone.
fn claim(sequence: u64) -> Bytes {
    let sequence = ObjectSeq(sequence);
    let itself = Link { sequence, epoch: Epoch::claimed_at(sequence) };
    let header =
        Header { sequence, epoch: itself.epoch, predecessor: Some(itself), boundary: ObjectSeq(0) };
    let record =
        WriterRecord { nonce: [0; 16], opened_at_millis: 0, max_in_flight: 2, name: "Z".into() };
    let mut object = ObjectEncoder::new();
    object.push(RegionId::WRITER, EntryId(sequence.0 << 20 | 1), &record.encode());
    object.finish(&header).0.to_bytes()
}

/// The state after the first instance opened, alone.
fn opened(world: &mut World, mut state: State) -> State {
    let nothing = &mut Transcript::none();
    let mut step = Move::Start;
    let mut steps = Vec::new();
    loop {
        (state, _) = world.take(&state, Step::Of(0, step), nothing);
        if matches!(world.instance(state.instances[0]).phase, Phase::Writing(_)) {
            return state;
        }
        world.steps(&state, &mut steps);
        step = match steps.first() {
            Some(Step::Of(0, step)) => *step,
            other => panic!("the first instance does not open: {other:?}"),
        };
    }
}

/// What came of an exploration.
#[derive(Clone, Debug)]
pub struct Report {
    /// The configuration's name.
    pub name: &'static str,
    /// Distinct states.
    pub states: u64,
    /// Steps between them.
    pub steps: u64,
    /// The length of the longest shortest run.
    pub depth: u32,
    /// Distinct sets of objects.
    pub stores: usize,
    /// Distinct instances.
    pub instances: usize,
    /// Distinct pairs of an instance and an event.
    pub transitions: usize,
    /// The most listings that a lone opening made in any state.
    pub most_listings: u32,
    /// The most puts.
    pub most_puts: u32,
    /// The most attempts that two openings at once needed until one was open.
    pub most_attempts: u32,
    /// How long it took.
    pub took: Duration,
    /// What went wrong.
    pub violation: Option<Violation>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, states, steps, depth, stores, instances, transitions, .. } = self;
        let seconds = self.took.as_secs_f64();
        let rate = *states as f64 / seconds.max(1e-3);
        write!(
            f,
            "{name}: {states} states, {steps} steps, depth {depth}, {stores} stores, {instances} \
             instances, {transitions} transitions; a lone opening: at most {} listings, {} puts; two at \
             once: at most {} attempts; {seconds:.1} s, {rate:.0} states/s",
            self.most_listings, self.most_puts, self.most_attempts
        )?;
        match &self.violation {
            Some(violation) => write!(f, "\n{}", violation.transcript),
            None => Ok(()),
        }
    }
}
