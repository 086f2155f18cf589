//! What an opening asks of the store.

use std::{format, println};

use super::*;
use crate::format::TAIL_WINDOW;

/// How many requests of each kind: listings, reads, puts, read-backs.
fn cost(run: &Run) -> [usize; 4] {
    [Operation::List, Operation::Read, Operation::Create, Operation::ReadBack]
        .map(|operation| run.times(operation).len())
}

/// DESIGN.md section 10: three listings (first, after the claims, look), one more for each that is
/// empty or has 1,000 keys; a read per object and one of the start object; three puts (claim, start,
/// check), and one for each further hole. Without a claim, one listing and one put less.
#[test]
#[expect(clippy::print_stdout, reason = "the table is wanted")]
fn what_an_opening_costs() {
    let clean = || [make(0, 1).writer("a"), entry(1, 0), entry(2, 1)];
    let with = |more: &[Make]| Store::of(clean().iter().chain(more).cloned());
    let cases = [
        ("an empty prefix", Store::default(), [3, 1, 2, 0]),
        ("a clean one of 3 objects", with(&[]), [3, 4, 3, 0]),
        ("with a hole", with(&[entry(4, 3)]), [3, 5, 3, 0]),
        ("with two holes", with(&[entry(4, 3), entry(6, 5)]), [3, 6, 4, 0]),
        ("with two orphans above the tip", with(&[entry(3, 9), entry(4, 9)]), [3, 6, 3, 0]),
        ("with a claim of a dead opening", with(&[claim(3)]), [2, 5, 2, 0]),
        ("with a claim, a hole and an orphan", with(&[claim(3), entry(5, 4)]), [3, 6, 3, 0]),
        ("with a late object 1,000 above", with(&[entry(1_002, 1_001)]), [5, 5, 1_001, 0]),
    ];
    let row = |what: &str, counts: [&str; 4]| {
        let [listings, reads, puts, read_backs] = counts;
        println!("| {what:<36} | {listings:>8} | {reads:>5} | {puts:>4} | {read_backs:>10} |");
    };
    row("prefix", ["listings", "reads", "puts", "read-backs"]);
    for (what, store, expected) in cases {
        let run = open(store);
        run.opened();
        let counts = cost(&run);
        let texts = counts.map(|count| format!("{count}"));
        row(what, [&texts[0], &texts[1], &texts[2], &texts[3]]);
        assert_eq!(counts, expected, "{what}");
    }
}

#[test]
fn without_the_check_of_the_store_it_costs_one_put_less() {
    let options = Options { verify_store: false, ..Options::default() };
    assert_eq!(cost(&open_with(options, free())), [3, 2, 2, 0]);
}

#[test]
fn however_often_it_lists_each_object_and_each_release_record_is_read_once() {
    let records: Vec<_> = (100..5_000).map(|region| (region, 5)).collect();
    let mut store = Store::of([
        make(0, 1).writer("a"),
        make(1, 1).after(0, 1).releases(&records),
        make(2, 1).after(1, 1).entry(1, TAIL_WINDOW as usize),
        claim(3),
    ]);
    // The start put finds an earlier epoch, then a claim, then the look finds an earlier epoch.
    store.overtaken(4, entry(4, 9).bytes());
    store.overtaken(5, claim(5).bytes());
    appear(&mut store, 3, [(7, entry(7, 9).bytes())]);
    let run = open(store);
    assert_eq!(run.opened().start, link(9, 10));
    assert_eq!(run.restarts(), 3);
    assert_eq!(run.times(Operation::List).len(), 7);
    let reads: Vec<_> = (0..10).map(|sequence| run.reads(sequence).len()).collect();
    // Object 1: header, tail, release records; object 2: header and tail; object 6 is the start
    // object of the attempt whose look found something; 8 is our claim, 9 our start object, read once at the end.
    assert_eq!(reads, [1, 3, 2, 1, 1, 1, 1, 1, 0, 1]);
}

/// An object of the first writer, linked to this sequence.
fn entry(sequence: u64, after: u64) -> Make {
    make(sequence, 1).after(after, 1).entry(1, 10)
}
