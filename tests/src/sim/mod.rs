//! A simulation of logs over a model store, under virtual time.
//!
//! - [`plan`]: what happens, as data: calls, the order and the outcome of every request, crashes.
//! - [`model`](crate::model): the store.
//! - [`journal`], [`history`]: the checkers, with a model of the log of their own.
//! - [`World`]: carries the plan out.
//!
//! The same plan always gives the same trace.

pub mod backlog;
mod door;
pub mod history;
pub mod journal;
pub mod plan;
pub(crate) mod reader;
mod tally;
#[cfg(test)]
mod tests;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use journal::{Checked, Violation, Waiter};
use plan::Plan;
pub use tally::{Reached, Tally};
pub use world::World;

use crate::model::{Lie, ModelStore};

/// What a simulation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Of every effect, in order.
    pub hash: u64,
    /// How many effects.
    pub effects: u64,
    /// What was reached.
    pub tally: Tally,
}

/// Carries a plan out, in a world whose store keeps its promises.
///
/// # Errors
///
/// A checker, or an invariant of a machine, was violated: what, and at which step.
pub fn run(plan: &Plan) -> Checked<Trace> {
    run_with(plan, ModelStore::new())
}

/// Carries a plan out in a world whose store lies. The checkers should see it.
///
/// # Errors
///
/// They did.
pub fn run_lying(plan: &Plan, lie: Lie) -> Checked<Trace> {
    run_with(plan, ModelStore::lying(lie))
}

fn run_with(plan: &Plan, store: ModelStore) -> Checked<Trace> {
    let store = if plan.ignores_after { store.ignoring_after() } else { store };
    let mut at = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan.options.clone(), plan.keys_per_delete, store);
        for (number, step) in plan.steps.iter().enumerate() {
            at = Some(number);
            world.step(step)?;
        }
        at = None;
        world.finish()
    }));
    let violated = match outcome {
        Ok(Ok(trace)) => return Ok(trace),
        Ok(Err(Violation(said))) => said,
        // An invariant that a machine checks itself.
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(said), _) => said.clone(),
            (None, Some(said)) => (*said).into(),
            (None, None) => "a panic without a message".into(),
        },
    };
    let place = at.map_or("at the end".into(), |at| format!("at step {at}, {:?}", plan.steps[at]));
    Err(Violation(format!("{place}: {violated}")))
}
