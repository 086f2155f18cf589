//! Two openings on one prefix, in every order.

use std::string::String;
use std::{format, println};

use super::*;

/// An opening in the test's hand: one effect at a time is carried out.
#[derive(Clone)]
struct Hand {
    opening: Opening,
    under_way: VecDeque<StorageEffect>,
    end: Option<Result<Recovered, Error>>,
}

impl Hand {
    fn new(name: &str) -> Hand {
        let nonce = [name.as_bytes()[0]; 16];
        let identity = Identity { nonce, default_name: name.into(), opened_at_millis: 0 };
        let opening = Opening::new(Time::ZERO, prefix(), Options::default(), identity).unwrap();
        let mut hand = Hand { opening, under_way: VecDeque::new(), end: None };
        hand.drain();
        hand
    }

    fn drain(&mut self) {
        while let Some(effect) = self.opening.poll_effect() {
            match effect {
                OpeningEffect::Storage(effect) => self.under_way.push_back(effect),
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(recovered) => self.end = Some(Ok(*recovered)),
                OpeningEffect::Failed(error) => self.end = Some(Err(error)),
            }
        }
    }

    /// Carries out the next effect, and hands the answer in.
    fn step(&mut self, objects: &mut Objects) {
        let effect = self.under_way.pop_front().expect("it has ended");
        let mut store = Store { objects: core::mem::take(objects), ..Store::default() };
        let answer = store.answer(&effect);
        *objects = store.objects;
        self.opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
        self.drain();
    }

    /// Goes on until it is about to do this.
    fn until(&mut self, objects: &mut Objects, wanted: &str) {
        while self.about_to() != wanted {
            assert!(self.end.is_none(), "it has ended, and was to come to: {wanted}");
            self.step(objects);
        }
    }

    fn finish(&mut self, objects: &mut Objects) {
        while self.end.is_none() {
            self.step(objects);
        }
    }

    /// What it does next, and where.
    fn about_to(&self) -> String {
        let Some(effect) = self.under_way.front() else { return "end".into() };
        let sequence = match prefix().classify(effect.key()) {
            KeyKind::Object(sequence) => format!(" {sequence}"),
            _ => String::new(),
        };
        let verb = match effect {
            StorageEffect::List { .. } if matches!(self.opening.phase, Phase::Looking(_)) => "look",
            StorageEffect::List { .. } => "list",
            StorageEffect::FetchRange { .. } => "read",
            StorageEffect::ReadBack { .. } => "read back",
            StorageEffect::DeleteObjects { .. } => "delete",
            StorageEffect::PutObject { .. } => match self.opening.phase {
                Phase::Claiming(_) => "claim",
                Phase::Starting(_) => "start",
                _ => "check",
            },
        };
        format!("{verb}{sequence}")
    }

    fn opened(&self) -> &Recovered {
        match self.end.as_ref().expect("it has not ended") {
            Ok(recovered) => recovered,
            Err(error) => panic!("{error}"),
        }
    }

    fn contended(&self) -> (Key, Epoch) {
        match self.end.as_ref().expect("it has not ended") {
            Err(Error::Contended { key, epoch, .. }) => (key.clone(), *epoch),
            Err(error) => panic!("{error}"),
            Ok(recovered) => panic!("it opened with {}", recovered.start),
        }
    }
}

fn two(objects: Objects) -> (Hand, Hand, Objects) {
    (Hand::new("a"), Hand::new("b"), objects)
}

#[test]
fn both_are_about_to_claim_and_the_faster_one_starts_first() {
    let (mut a, mut b, mut objects) = two(free().objects);
    a.until(&mut objects, "claim 1");
    b.until(&mut objects, "claim 1");
    a.step(&mut objects);
    b.step(&mut objects);
    assert_eq!(b.about_to(), "list", "it starts again");
    a.until(&mut objects, "start 2");
    b.until(&mut objects, "start 2");
    a.step(&mut objects);
    b.finish(&mut objects);
    assert_eq!(b.contended(), (key(2), Epoch(3)));
    a.finish(&mut objects);
    assert_eq!(a.opened().start, link(2, 3));
}

#[test]
fn the_slower_one_to_claim_may_be_the_faster_one_to_start() {
    let (mut a, mut b, mut objects) = two(free().objects);
    a.until(&mut objects, "claim 1");
    b.until(&mut objects, "claim 1");
    a.step(&mut objects);
    b.step(&mut objects);
    a.until(&mut objects, "start 2");
    b.until(&mut objects, "start 2");
    b.step(&mut objects);
    a.finish(&mut objects);
    assert_eq!(a.contended(), (key(2), Epoch(3)));
    b.finish(&mut objects);
    assert_eq!(b.opened().start, link(2, 3));
}

#[test]
fn one_that_only_claims_while_the_other_looks_does_not_disturb_it() {
    let (mut a, mut b, mut objects) = two(free().objects);
    a.until(&mut objects, "look");
    b.until(&mut objects, "claim 3");
    b.step(&mut objects);
    a.finish(&mut objects);
    assert_eq!(a.opened().start, link(2, 3));
    b.finish(&mut objects);
    assert_eq!(b.opened().start, link(4, 5));
    assert!(b.opened().catalog.last() == Some(link(4, 5)));
    assert_eq!(b.opened().stats.recovered_objects, 1, "the other's start object");
}

#[test]
fn one_that_starts_before_the_other_looks_has_the_prefix() {
    let (mut a, mut b, mut objects) = two(free().objects);
    a.until(&mut objects, "look");
    b.until(&mut objects, "start 4");
    b.step(&mut objects);
    a.finish(&mut objects);
    assert_eq!(a.contended(), (key(4), Epoch(5)));
    b.finish(&mut objects);
    assert_eq!(b.opened().start, link(4, 5));
}

/// One saw a hole that the other did not, and its claim is where the other would start.
#[test]
fn a_claim_in_the_way_of_the_others_start_object_makes_that_start_again() {
    let (mut a, mut b, mut objects) = two(blocked().objects);
    a.until(&mut objects, "start 2");
    objects.insert(key(3), make(3, 1).after(2, 1).entry(1, 10).bytes());
    b.until(&mut objects, "claim 2");
    b.step(&mut objects);
    a.step(&mut objects);
    a.step(&mut objects);
    assert_eq!(a.about_to(), "list");
    a.until(&mut objects, "start 4");
    b.until(&mut objects, "start 4");
    b.step(&mut objects);
    a.finish(&mut objects);
    assert_eq!(a.contended(), (key(4), Epoch(5)));
    b.finish(&mut objects);
    assert_eq!(b.opened().start, link(4, 5));
}

#[test]
fn of_two_on_an_empty_prefix_one_gets_the_first_object() {
    let (mut a, mut b, mut objects) = two(Objects::new());
    a.until(&mut objects, "start 0");
    b.until(&mut objects, "start 0");
    b.step(&mut objects);
    a.finish(&mut objects);
    assert_eq!(a.contended(), (key(0), Epoch(1)));
    b.finish(&mut objects);
    assert_eq!(b.opened().start, link(0, 1));
}

/// How the two of a run can end.
#[derive(Default)]
struct Ends {
    both_open: usize,
    one_opens: usize,
}

/// Every order of the steps of two openings; states that were met are not gone through again.
fn explore(a: Hand, b: Hand, objects: Objects) -> (usize, Ends) {
    let mut seen = BTreeSet::new();
    let mut ends = Ends::default();
    let mut open = alloc::vec![(a, b, objects)];
    while let Some((a, b, objects)) = open.pop() {
        // The bytes that stand at a key follow from what each opening did.
        let state = format!("{:?} {:?} {:?}", a.opening, b.opening, objects);
        if !seen.insert(state) {
            continue;
        }
        if a.end.is_some() && b.end.is_some() {
            judge(&a, &b, &objects, &mut ends);
        }
        if a.end.is_none() {
            let (mut a, mut objects) = (a.clone(), objects.clone());
            a.step(&mut objects);
            open.push((a, b.clone(), objects));
        }
        if b.end.is_none() {
            let (mut b, mut objects) = (b, objects);
            b.step(&mut objects);
            open.push((a, b, objects));
        }
    }
    (seen.len(), ends)
}

fn judge(a: &Hand, b: &Hand, objects: &Objects, ends: &mut Ends) {
    let opened: Vec<_> =
        [a, b].into_iter().filter_map(|hand| hand.end.as_ref()?.as_ref().ok()).collect();
    let newest = opened.iter().max_by_key(|recovered| recovered.start.epoch);
    let newest = newest.expect("neither opened");
    for recovered in &opened {
        assert!(newest.catalog.is_indexed(recovered.start), "it does not know the older one");
    }
    for hand in [a, b] {
        if matches!(hand.end, Some(Err(_))) {
            hand.contended();
        }
    }
    match opened.len() {
        2 => ends.both_open += 1,
        _ => ends.one_opens += 1,
    }
    let after = open(Store { objects: objects.clone(), ..Store::default() });
    assert_eq!(after.start_object().0.predecessor, Some(newest.start));
}

#[test]
#[expect(clippy::print_stdout, reason = "how many states there are is wanted")]
fn in_every_order_one_opens_and_knows_the_other_if_that_opened_too() {
    let hole = Store::of([make(0, 1).writer("a"), make(2, 1).after(1, 1).entry(1, 10)]);
    let cases = [
        ("an empty prefix", Objects::new()),
        ("a clean one", free().objects),
        ("with a claim", blocked().objects),
        ("with a hole", hole.objects),
    ];
    for (what, objects) in cases {
        let (a, b, objects) = two(objects);
        let (states, ends) = explore(a, b, objects);
        println!("{what}: {states} states; ends: {} both, {} one", ends.both_open, ends.one_opens);
        assert!(ends.both_open > 0 && ends.one_opens > 0, "{what}");
    }
}
