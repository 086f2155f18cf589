//! The exploration of exclusive ownership, in named configurations.

use std::io::Write;

use sealog_tests::explore::{Configuration, Listing, Report};

fn explore(configuration: &Configuration) -> Report {
    let report = configuration.explore();
    // Not by a macro, so that it is printed in every run.
    let _ = writeln!(std::io::stdout(), "{report}");
    report
}

#[test]
fn scratch() {
    let name = std::env::var("SCRATCH").unwrap_or_default();
    let parse = |key: &str| std::env::var(key).ok().and_then(|v| v.parse::<u64>().ok());
    let appends: Vec<u8> = name.split(',').filter_map(|n| n.parse().ok()).collect();
    let mut c = Configuration::new("scratch", appends.leak());
    c.failures = parse("F").unwrap_or(0) as u8;
    c.lists = parse("P").unwrap_or(0).max(parse("S").unwrap_or(0)) as u8;
    if parse("S").is_some() {
        c.listing = Listing::AnyOrder;
    }
    c.floors = parse("FL").unwrap_or(0) as u8;
    c.floor_by = parse("FB").unwrap_or(1);
    c.preopened = parse("PRE").unwrap_or(1) == 1;
    c.pipeline = parse("PIPE").unwrap_or(2) as u32;
    c.dies_opening = parse("DIES").map(|d| d as usize);
    c.verify_store = parse("VERIFY").is_some();
    c.retry_for = std::time::Duration::from_millis(parse("RETRY").unwrap_or(0));
    let rule = std::env::var("RULE").unwrap_or_default();
    let r = &mut c.rules;
    let rules: [(&str, &mut bool); 15] = [
        ("claims_link_to_themselves", &mut r.claims_link_to_themselves),
        ("claim_before_start", &mut r.claim_before_start),
        ("claim_every_hole", &mut r.claim_every_hole),
        ("list_after_claim", &mut r.list_after_claim),
        ("blocker_is_of_a_later_epoch", &mut r.blocker_is_of_a_later_epoch),
        ("start_again_at_a_claim", &mut r.start_again_at_a_claim),
        ("second_look", &mut r.second_look),
        ("later_epoch_contends", &mut r.later_epoch_contends),
        ("new_object_starts_again", &mut r.new_object_starts_again),
        ("new_claims_are_ignored", &mut r.new_claims_are_ignored),
        ("guard_after_roll_back", &mut r.guard_after_roll_back),
        ("guard_after_floor", &mut r.guard_after_floor),
        ("guard_holds_creates", &mut r.guard_holds_creates),
        ("floor_waits", &mut r.floor_waits),
        ("confirm_corruption", &mut r.confirm_corruption),
    ];
    for (name, switch) in rules {
        *switch = name != rule;
    }
    explore(&c);
}
