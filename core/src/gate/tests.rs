use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::types::RegionId;

/// What an append of a test counts as at least.
const ONE: u64 = 64;

fn gate(max_queued_bytes: u64) -> Gate {
    Gate::new(&Options { max_queued_bytes, ..Options::default() })
}

/// An append that counts so many bytes.
fn append(bytes: u64) -> Append {
    Append::One(RegionId(1), Bytes::from(alloc::vec![0; (bytes - ONE) as usize]))
}

fn settled(bytes: u64) -> Settled {
    Settled { bytes, refuses: false }
}

#[test]
fn an_append_counts_its_payloads_and_64_bytes() {
    let payload = |len| Bytes::from(alloc::vec![0; len]);
    let many = [(RegionId(1), payload(10)), (RegionId(2), payload(5))];
    assert_eq!(Append::One(RegionId(1), payload(100)).queued_bytes(), 164);
    assert_eq!(Append::Many(many.into()).queued_bytes(), 79);
    assert_eq!(Append::Many(Vec::new()).queued_bytes(), 64);
}

#[test]
fn an_append_is_let_in_while_less_than_the_limit_waits_or_nothing_does() {
    // The limit, what waits, what comes, and whether it is let in.
    let table = [
        (1, 0, 64, true),
        (1, 0, 1 << 20, true),
        (1, 64, 64, false),
        (64, 64, 64, false),
        (65, 64, 64, true),
        (65, 64, 1 << 20, true),
        (1000, 999, 1 << 20, true),
        (1000, 1000, 64, false),
        (1000, 5000, 64, false),
    ];
    for (limit, waits, comes, expected) in table {
        let before = || {
            let gate = gate(limit);
            if waits > 0 {
                gate.enter(&append(waits));
            }
            gate
        };
        let row = (limit, waits, comes);
        let after = |in_it| waits + if in_it { comes } else { 0 };

        let (one, two, three, four) = (before(), before(), before(), before());
        match one.try_enter(&append(comes)) {
            Ok(()) => assert!(expected, "{row:?}"),
            Err(error) => {
                assert!(!expected, "{row:?}");
                assert!(matches!(error, Error::Overloaded { limit: of } if of == limit), "{error}");
                assert!(error.is_retryable());
            }
        }
        let figures = one.complete(Stats::default());
        assert_eq!(
            (figures.queued_bytes, figures.overloaded_total),
            (after(expected), u64::from(!expected))
        );
        assert_eq!(two.pass(&append(comes)), expected, "{row:?}");
        assert_eq!(two.complete(Stats::default()).overloaded_total, 0, "it waits");
        let entered = Line::new().enter(&three, comes, "it");
        assert_eq!(entered == Entered::In("it"), expected, "{row:?}");
        assert_eq!(three.queued_bytes(), after(expected));
        four.enter(&append(comes));
        assert_eq!(four.queued_bytes(), after(true), "at the caller's own risk");
    }
}

#[test]
fn those_in_the_line_come_in_by_turns_and_nobody_overtakes_them() {
    let (gate, mut line, mut before) = (gate(100), Line::new(), SettledBefore::default());
    gate.enter(&append(200));
    for name in ["a", "b", "c"] {
        assert!(matches!(line.enter(&gate, ONE, name), Entered::Waits(_)));
    }
    assert!(!gate.settle(&mut before, settled(100)), "100 wait still");
    assert_eq!(line.next(&gate), None);
    assert!(gate.settle(&mut before, settled(101)));
    // There is a place, and it is a's.
    assert!(!gate.pass(&append(ONE)));
    assert!(gate.try_enter(&append(ONE)).is_err());
    assert!(matches!(line.enter(&gate, ONE, "d"), Entered::Waits(_)));
    assert_eq!(line.next(&gate), Some("a"));
    assert_eq!(line.next(&gate), None, "163 wait");
    assert!(gate.settle(&mut before, settled(264)));
    assert_eq!(
        [line.next(&gate), line.next(&gate), line.next(&gate)],
        [Some("b"), Some("c"), None]
    );
    assert!(gate.settle(&mut before, settled(328)));
    assert_eq!([line.next(&gate), line.next(&gate)], [Some("d"), None]);
    // Nobody stands there any more.
    assert!(!gate.settle(&mut before, settled(456)));
    assert_eq!(gate.queued_bytes(), 0);
    assert!(gate.pass(&append(ONE)));
}

#[test]
fn whoever_leaves_the_line_is_not_let_in_and_holds_nobody_up() {
    let (gate, mut line, mut before) = (gate(1), Line::new(), SettledBefore::default());
    gate.enter(&append(ONE));
    let mut enter = |name| match line.enter(&gate, ONE, name) {
        Entered::Waits(ticket) => ticket,
        Entered::In(name) => panic!("{name} was let in"),
    };
    let [a, b, c] = ["a", "b", "c"].map(&mut enter);
    assert_eq!(line.leave(&gate, a), Some("a"));
    assert_eq!(line.leave(&gate, a), None, "once");
    assert!(gate.settle(&mut before, settled(ONE)));
    assert_eq!(line.next(&gate), Some("b"));
    assert_eq!(line.leave(&gate, b), None, "it is in");
    assert_eq!(line.leave(&gate, c), Some("c"));
    assert!(!gate.settle(&mut before, settled(2 * ONE)));
    assert!(gate.pass(&append(ONE)), "the line is gone with its last one");
}

/// Failing, stopped, poisoned: the writer answers everybody at once.
#[test]
fn a_writer_that_takes_nothing_lets_everybody_in_to_be_told() {
    let (gate, mut line, mut before) = (gate(1), Line::new(), SettledBefore::default());
    gate.enter(&append(1000));
    for name in ["a", "b"] {
        line.enter(&gate, ONE, name);
    }
    assert!(gate.settle(&mut before, Settled { bytes: 0, refuses: true }));
    assert_eq!(
        [line.next(&gate), line.next(&gate), line.next(&gate)],
        [Some("a"), Some("b"), None]
    );
    assert!(gate.try_enter(&append(ONE)).is_ok());
    assert_eq!(line.enter(&gate, ONE, "c"), Entered::In("c"));
    // Healthy again: what waits counts.
    assert!(!gate.settle(&mut before, settled(1000)));
    assert_eq!(gate.queued_bytes(), 4 * ONE);
    assert!(gate.try_enter(&append(ONE)).is_err());
}

#[test]
fn a_gate_whose_writer_is_gone_keeps_nobody() {
    let (gate, mut line) = (gate(1), Line::new());
    gate.enter(&append(1000));
    for name in ["a", "b"] {
        line.enter(&gate, ONE, name);
    }
    gate.close();
    assert_eq!(line.close(&gate).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(line.enter(&gate, ONE, "c"), Entered::In("c"));
    assert!(gate.pass(&append(ONE)));
    gate.try_enter(&append(ONE)).unwrap();
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(u64),
    Try(u64),
    Append(u64),
    /// The oldest that was let in is admitted or refused.
    Settle,
    Leave(usize),
    Refuses(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || ONE..300u64;
    prop_oneof![
        1 => bytes().prop_map(Step::Submit),
        3 => bytes().prop_map(Step::Try),
        4 => bytes().prop_map(Step::Append),
        5 => Just(Step::Settle),
        1 => any::<usize>().prop_map(Step::Leave),
        1 => any::<bool>().prop_map(Step::Refuses),
    ]
}

proptest! {
    /// Against a model of two plain lists: what is in, and who stands before it.
    #[test]
    fn the_gate_agrees_with_two_lists(
        steps in prop::collection::vec(step(), 0..200),
        limit in prop_oneof![Just(1u64), Just(64), Just(500), Just(2000)],
    ) {
        let (gate, mut line, mut before) = (gate(limit), Line::new(), SettledBefore::default());
        let (mut inside, mut outside) = (VecDeque::new(), VecDeque::new());
        let (mut done, mut refuses, mut overloaded) = (0, false, 0);
        let mut tickets = BTreeSet::new();
        for (name, step) in steps.into_iter().enumerate() {
            let waits: u64 = inside.iter().map(|(_, bytes)| bytes).sum();
            let place = refuses || waits < limit;
            match step {
                Step::Submit(bytes) => {
                    gate.enter(&append(bytes));
                    inside.push_back((name, bytes));
                }
                Step::Try(bytes) => {
                    let expected = place && outside.is_empty();
                    prop_assert_eq!(gate.try_enter(&append(bytes)).is_ok(), expected);
                    overloaded += u64::from(!expected);
                    inside.extend(expected.then_some((name, bytes)));
                }
                Step::Append(bytes) => {
                    let expected = place && outside.is_empty();
                    if gate.pass(&append(bytes)) {
                        prop_assert!(expected);
                        inside.push_back((name, bytes));
                    } else if let Entered::Waits(ticket) = line.enter(&gate, bytes, name) {
                        prop_assert!(!expected);
                        outside.push_back((name, bytes));
                        tickets.insert((ticket, name));
                    } else {
                        prop_assert!(false, "it did not pass, and came in alone");
                    }
                }
                Step::Settle => done += inside.pop_front().map_or(0, |(_, bytes)| bytes),
                Step::Leave(which) if !tickets.is_empty() => {
                    let (ticket, name) = *tickets.iter().nth(which % tickets.len()).unwrap();
                    tickets.remove(&(ticket, name));
                    let stands = outside.iter().any(|(of, _)| *of == name);
                    prop_assert_eq!(line.leave(&gate, ticket), stands.then_some(name));
                    outside.retain(|(of, _)| *of != name);
                }
                Step::Leave(_) => {}
                Step::Refuses(now) => refuses = now,
            }
            // As the shell does after each event.
            if gate.settle(&mut before, Settled { bytes: done, refuses }) {
                while let Some(name) = line.next(&gate) {
                    let first: Option<(usize, u64)> = outside.pop_front();
                    prop_assert_eq!(first.map(|(of, _)| of), Some(name), "out of turn");
                    inside.extend(first);
                }
            }
            let waits: u64 = inside.iter().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(gate.queued_bytes(), waits);
            prop_assert!(outside.is_empty() || !refuses && waits >= limit, "somebody waits for nothing");
            prop_assert_eq!(gate.complete(Stats::default()).overloaded_total, overloaded);
        }
    }
}
