//! The exploration of exclusive ownership, in named configurations.

use std::io::Write;

use sealog_tests::explore::{Configuration, Report};

fn explore(configuration: &Configuration) -> Report {
    let report = configuration.explore();
    // Not by a macro, so that it is printed in every run.
    let _ = writeln!(std::io::stdout(), "{report}");
    report
}

#[test]
fn two() {
    let c = Configuration { failures: 1, ..Configuration::new("two_instances", &[2, 1]) };
    explore(&c);
}
