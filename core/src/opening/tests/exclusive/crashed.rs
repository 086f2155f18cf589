//! Openings that end at any step: what they leave, no later opening takes for history.

use super::*;
use crate::types::{EntryId, RegionId};

/// Carries out so many of an opening's effects in a store, and forgets the opening. Whether it
/// ended before.
fn crash_after(store: &mut Store, steps: usize) -> bool {
    let nonce = [steps as u8; 16];
    let identity = Identity { nonce, ..identity() };
    let mut opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity).unwrap();
    let mut carried_out = 0;
    while let Some(effect) = opening.poll_effect() {
        if let OpeningEffect::Storage(effect) = effect {
            if carried_out == steps {
                return false;
            }
            carried_out += 1;
            let answer = store.answer(&effect);
            opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
        }
    }
    true
}

fn entry(sequence: u64, after: u64) -> Make {
    make(sequence, 1).after(after, 1).entry(1, 10)
}

/// Prefixes, each with what holds the entries of its history.
fn prefixes() -> [(Objects, Vec<u64>); 5] {
    let clean = || [make(0, 1).writer("a"), entry(1, 0), entry(2, 1)];
    let with = |more: &[Make]| Store::of(clean().iter().chain(more).cloned()).objects;
    [
        (Objects::new(), Vec::new()),
        (with(&[]), alloc::vec![1, 2]),
        (with(&[entry(4, 3)]), alloc::vec![1, 2]),
        (with(&[entry(3, 9), entry(6, 5)]), alloc::vec![1, 2]),
        (with(&[claim(3)]), alloc::vec![1, 2]),
    ]
}

/// A lone opening opens, with all of history and nothing else.
fn opens(objects: Objects, entries: &[u64], told: &str) -> Run {
    let there: Vec<_> = objects.values().map(header).collect();
    let run = open(Store { objects, ..Store::default() });
    let recovered = run.opened();
    let found: Vec<_> = recovered
        .catalog
        .segments_from(RegionId(1), EntryId::ZERO)
        .map(|segment| segment.object.sequence.0)
        .collect();
    assert_eq!(found, entries, "{told}\n{}", run.transcript);
    for one in there {
        let claim = one.links_to_itself();
        assert!(!claim || !recovered.catalog.is_indexed(one.link()), "{told}: a claim");
    }
    run
}

fn header(bytes: &Bytes) -> crate::format::Header {
    crate::format::Header::decode(bytes).unwrap()
}

#[test]
fn an_opening_that_ends_at_any_step_leaves_nothing_that_a_later_one_takes_for_history() {
    for (objects, entries) in prefixes() {
        let mut left = Vec::new();
        for steps in 0.. {
            let mut store = Store { objects: objects.clone(), ..Store::default() };
            let ended = crash_after(&mut store, steps);
            let new: Vec<_> =
                store.objects.iter().filter(|(key, _)| !objects.contains_key(*key)).collect();
            let starts: Vec<_> =
                new.iter().map(|(_, b)| header(b)).filter(|h| !h.links_to_itself()).collect();
            left.push((new.len() - starts.len(), starts.len()));
            let tip = starts.first().map(|start| start.link());
            let old = if entries.is_empty() { None } else { Some(link(2, 1)) };
            let run = opens(store.objects, &entries, &std::format!("after {steps} steps"));
            // Through the start object that was left, or at the old tip.
            assert_eq!(run.start_object().0.predecessor, tip.or(old));
            if ended {
                break;
            }
        }
        // Every state between was met: nothing, a claim or more, a start object.
        assert_eq!(left.first(), Some(&(0, 0)));
        assert_eq!(left.last().unwrap().1, 1);
        let claims = left.last().unwrap().0;
        assert!((0..=claims).all(|n| left.contains(&(n, 0))), "{left:?}");
    }
}

#[test]
fn a_second_opening_that_ends_at_any_step_changes_nothing() {
    for (objects, entries) in prefixes() {
        for first in 0..=12 {
            for second in 0..=12 {
                let mut store = Store { objects: objects.clone(), ..Store::default() };
                crash_after(&mut store, first);
                crash_after(&mut store, second);
                opens(store.objects, &entries, &std::format!("{first}, {second}"));
            }
        }
    }
}

/// A dead opening's claims do not add up: the next one finds them in the way already.
#[test]
fn openings_that_die_after_their_claim_leave_one_claim() {
    let mut store = free();
    for _ in 0..5 {
        assert!(!crash_after(&mut store, 3), "list, read, claim");
    }
    assert_eq!(store.objects.len(), 2);
    let run = open(store);
    assert!(run.claims().is_empty());
    assert_eq!(run.opened().start, link(2, 3));
}
