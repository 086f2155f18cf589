//! The fault matrix of DESIGN.md sections 5 to 9 and 14: each row against the machine and against
//! the tokio shell.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use sealog_core::{AckMode, Stats};
use sealog_tests::matrix::{
    Came, NAMES, Place, Row, change, contents, expected_answers, machine, rows, shell,
};

/// What a row's run came to that it does not say, each in a line.
fn differences(row: &Row, came: &Came) -> Vec<String> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, came: String, expected: String| {
        if came != expected {
            differences.push(format!("{what}\n    came:     {came}\n    expected: {expected}"));
        }
    };
    let answers = |answers: &[(u32, String)]| format!("{answers:?}");
    compare("answers", answers(&came.answers), answers(&expected_answers(row)));
    compare("then", came.then.clone(), row.then.into());
    let figures: BTreeMap<_, _> = row.figures.iter().copied().collect();
    let changed = change(&came.stats.0, &came.stats.1);
    compare("figures", format!("{changed:?}"), format!("{figures:?}"));
    compare("reads", format!("{:?}", came.reads), format!("{:?}", contents(row.reads)));
    compare("recovers", format!("{:?}", came.recovers), format!("{:?}", contents(row.recovers)));
    differences
}

fn check(run: fn(&'static Row) -> Came) {
    let mut wrong = Vec::new();
    for row in rows::all() {
        let differences = differences(row, &run(row));
        if !differences.is_empty() {
            wrong.push(format!("{}\n  {}", row.name, differences.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_row_comes_to_what_it_says_against_the_machine() {
    check(machine::run);
}

#[test]
fn every_row_comes_to_what_it_says_against_the_tokio_shell() {
    check(shell::run);
}

/// Under virtual time durations are figures like the others: bucket by bucket, and their sums.
#[test]
fn the_machine_and_the_shell_count_alike_durations_included() {
    for row in rows::all() {
        let figures = |(_, after): (Stats, Stats)| Stats {
            // How long the opening took in a store that answers in turn says nothing of the row.
            recovery: Default::default(),
            ..after
        };
        let (machine, shell) = (figures(machine::run(row).stats), figures(shell::run(row).stats));
        assert_eq!(machine, shell, "{}", row.name);
    }
}

#[test]
fn every_name_has_a_case_and_every_case_a_name() {
    let mut names = BTreeMap::new();
    for (name, place) in NAMES {
        assert!(names.insert(*name, *place).is_none(), "{name:?} stands there twice");
    }
    let mut rows_seen = BTreeSet::new();
    let mut covered: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for row in rows::all() {
        assert!(rows_seen.insert(row.name), "two rows are named {:?}", row.name);
        assert!(!row.covers.is_empty(), "{:?} is a case of nothing", row.name);
        for name in row.covers {
            let place = names.get(name);
            assert!(matches!(place, Some(Place::Here | Place::Both)), "{:?}: {name:?}", row.name);
            covered.entry(*name).or_default().insert(row.mode == AckMode::Durable);
        }
    }
    let has_all = |name: &str, modes| covered.get(name).map_or(0, BTreeSet::len) >= modes;
    let missing = names.iter().filter(|(name, place)| match place {
        Place::Here => !has_all(name, 1),
        Place::Both => !has_all(name, 2),
        Place::Elsewhere { .. } => false,
    });
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    assert_eq!(missing, [""; 0], "these have no case, or none in one of the modes");
}

#[test]
fn what_is_tested_elsewhere_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, place) in NAMES {
        let Place::Elsewhere { file, test } = place else { continue };
        let code = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(code.contains(&format!("fn {test}(")), "{name:?}: no {test} in {file}");
    }
}
