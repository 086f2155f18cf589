//! DESIGN.md section 13, 1, 2 and 4 to 6, by simulation: random calls, completions in random order
//! with random outcomes, crashes and stops, and after each opening what must be there is there,
//! exactly once and in order, and nothing else; what is needed is never deleted, and everything
//! else is in the end; what was released stays so.
//!
//! `SEALOG_LONG=1` runs many more seeds; `SEALOG_SEED=n` runs one, and says what came of it.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sealog_tests::model::Lie;
use sealog_tests::sim::plan::Plan;
use sealog_tests::sim::{Tally, Trace, backlog, run, run_lying};

/// Of a plan that fails, which seed made it and how to see it again.
fn simulate(seed: u64) -> Trace {
    let plan = Plan::random(seed);
    let once = run(&plan);
    let again = run(&plan);
    assert_eq!(once, again, "seed {seed}: the same plan gave another trace");
    match once {
        Ok(trace) => trace,
        Err(violation) => panic!("SEALOG_SEED={seed}: {violation}\n{plan:?}"),
    }
}

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("SEALOG_SEED").map(|seed| seed.parse::<u64>()) {
        Ok(Ok(seed)) => seed..seed + 1,
        Ok(Err(error)) => panic!("SEALOG_SEED: {error}"),
        Err(_) if is_long() => 0..20_000,
        Err(_) => 0..1_500,
    }
}

fn is_long() -> bool {
    std::env::var_os("SEALOG_LONG").is_some_and(|long| long == "1")
}

#[test]
fn whatever_happens_history_is_what_was_acknowledged_each_seed_twice_alike() {
    let mut total = Tally::default();
    for seed in seeds() {
        total.add(&simulate(seed).tally);
    }
    if seeds().count() > 1 {
        assert_eq!(total.missing(), [], "the seeds do not reach everything: {total:#?}");
    }
}

#[test]
fn whatever_steps_are_left_out_history_is_what_was_acknowledged() {
    // Shrinking leaves out more steps: others in their place would be no simpler.
    let plan = any::<u64>().no_shrink().prop_flat_map(|seed| {
        let plan = Plan::random(seed);
        let some = proptest::sample::subsequence(plan.steps.clone(), 0..=plan.steps.len());
        some.prop_map(move |steps| Plan { steps, ..plan.clone() })
    });
    let cases = if is_long() { 20_000 } else { 1_000 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let checked = runner.run(&plan, |plan| match run(&plan) {
        Ok(_) => Ok(()),
        Err(violation) => Err(TestCaseError::fail(violation.to_string())),
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}

/// What the checkers say of a store that lies, over the first seeds.
fn caught(lie: Lie, verify_store: bool) -> Vec<String> {
    caught_over(40, lie, verify_store)
}

fn caught_over(seeds: u64, lie: Lie, verify_store: bool) -> Vec<String> {
    let violation = |seed| {
        let mut plan = Plan::random(seed);
        plan.options.iter_mut().for_each(|options| options.verify_store = verify_store);
        run_lying(&plan, lie).err().map(|violation| violation.to_string())
    };
    (0..seeds).filter_map(violation).collect()
}

#[test]
fn a_store_that_drops_what_it_acknowledged_is_caught() {
    let caught = caught(Lie::DropsEvery(5), true);
    assert!(caught.len() > 30, "{caught:#?}");
}

#[test]
fn a_store_that_damages_what_it_stores_is_caught() {
    let caught = caught(Lie::DamagesEvery(5), true);
    assert!(caught.len() > 30, "{caught:#?}");
}

#[test]
fn a_store_that_overwrites_is_refused() {
    let caught = caught(Lie::Overwrites, true);
    assert!(caught.len() == 40, "{caught:#?}");
    assert!(caught.iter().all(|said| said.contains("does not honour conditional create")));
}

#[test]
fn a_store_that_overwrites_and_is_not_checked_is_caught() {
    let caught = caught_over(100, Lie::Overwrites, false);
    assert!(caught.len() > 10, "{caught:#?}");
}

#[test]
fn a_store_that_deletes_one_key_too_many_is_caught() {
    let caught = caught(Lie::DeletesOneMoreEvery(5), true);
    assert!(caught.len() > 20, "{caught:#?}");
    let gone = caught.iter().filter(|said| said.contains("is gone, and the durable boundary"));
    assert!(gone.count() > 10, "{caught:#?}");
}

#[test]
fn a_store_that_keeps_what_it_says_to_have_deleted_is_caught() {
    let caught = caught(Lie::KeepsEvery(5), true);
    assert!(caught.len() > 20, "{caught:#?}");
    let kept =
        caught.iter().filter(|said| said.contains("still there") || said.contains("is there"));
    assert!(kept.count() > 20, "{caught:#?}");
}

#[test]
fn in_enqueued_a_crash_loses_a_suffix_of_the_backlog_and_what_was_released_stays_so() {
    let mut total = backlog::Reached::default();
    for seed in seeds() {
        let once = backlog::run(seed);
        assert_eq!(once, backlog::run(seed), "seed {seed}: the same seed came to something else");
        let reached = once.unwrap_or_else(|violation| panic!("SEALOG_SEED={seed}: {violation}"));
        total.acknowledged += reached.acknowledged;
        total.lost += reached.lost;
        total.came_back += reached.came_back;
        total.stopped += reached.stopped;
        total.stopped_with_losses += reached.stopped_with_losses;
        total.failing += reached.failing;
        total.poisoned += reached.poisoned;
        total.stalled += reached.stalled;
        total.released += reached.released;
        total.carried += reached.carried;
        total.carried_hold += reached.carried_hold;
        total.hidden += reached.hidden;
        total.refused += reached.refused;
        total.overloaded += reached.overloaded;
        total.let_in += reached.let_in;
    }
    let backlog::Reached { acknowledged, lost, came_back, .. } = total;
    let backlog::Reached { stopped, stopped_with_losses, failing, poisoned, stalled, .. } = total;
    let backlog::Reached { released, carried, carried_hold, hidden, refused, .. } = total;
    let backlog::Reached { overloaded, let_in, .. } = total;
    let releases = [released, carried, carried_hold, hidden, refused];
    let all = [acknowledged, lost, came_back, stopped, stopped_with_losses, failing, poisoned];
    if seeds().count() > 1 {
        assert!(releases.iter().all(|n| *n > 0), "not everything is reached: {total:?}");
        assert!(overloaded > 0 && let_in > 0, "nothing is ever held back: {total:?}");
        assert!(all.iter().all(|n| *n > 0) && stalled > 0, "not everything is reached: {total:?}");
    }
}

#[test]
fn in_enqueued_a_checker_that_is_wrong_about_releases_is_told_so() {
    for mistake in [backlog::Mistake::ForgetsReleases, backlog::Mistake::StretchesReleases] {
        let told = (0..40).filter(|seed| backlog::run_mistaken(*seed, mistake).is_err()).count();
        assert!(told > 20, "{mistake:?} was seen {told} times");
    }
}
