//! Rule 6: what does not fit together is damage only if two listings in a row agree.

use super::*;
use crate::error::Part;

fn history() -> [Make; 2] {
    [make(0, 1).writer("a"), make(1, 1).after(0, 1).entry(1, 10)]
}

/// Scripts that a listing shows an object which is gone when it is read.
fn gone(store: &mut Store, before: usize, sequence: u64) {
    let bytes = make(sequence, 1).after(sequence - 1, 1).entry(1, 10).bytes();
    appear(store, before, [(sequence, bytes)]);
    store.before(0, Operation::Read, key(sequence), move |objects| {
        objects.remove(&key(sequence)).unwrap();
    });
}

fn listings(run: &Run) -> Vec<u128> {
    run.times(Operation::List).iter().map(|d| d.as_millis()).collect()
}

#[test]
fn a_prefix_without_a_complete_object_is_listed_again_before_it_is_damage() {
    let store = || Store::of([make(3, 1).after(2, 1).entry(1, 10)]);
    let run = open(store());
    assert_eq!(corrupted(&run), key(2));
    assert_eq!(listings(&run), [0, 0], "the first confirmation has no delay");
    assert!(run.puts().is_empty());
    assert_eq!(run.reads(3).len(), 1);

    // The pages of the first listing were of different times.
    let mut store = store();
    appear(&mut store, 1, [(2, make(2, 1).entry(1, 10).bytes())]);
    let run = open(store);
    assert_eq!(run.start_object().0.predecessor, Some(link(3, 1)));
    assert_eq!(listings(&run), [0, 0, 0, 0]);
}

#[test]
fn an_object_that_only_one_listing_shows_is_no_damage() {
    let mut store = Store::of(history());
    gone(&mut store, 0, 2);
    let run = open(store);
    assert_eq!(run.claims(), [2]);
    assert_eq!(run.start_object().0.predecessor, Some(link(1, 1)));
    assert_eq!(listings(&run), [0, 0, 0, 0]);
    assert_eq!((run.reads(0).len(), run.reads(1).len(), run.reads(2).len()), (1, 1, 1));
    assert_eq!(run.restarts(), 0, "nobody came in between");
}

#[test]
fn two_listings_that_do_not_agree_confirm_nothing() {
    let mut store = Store::of(history());
    gone(&mut store, 0, 3);
    gone(&mut store, 0, 4);
    gone(&mut store, 0, 3);
    let run = open(store);
    assert_eq!(run.opened().start, link(3, 4));
    assert_eq!(listings(&run)[..4], [0, 0, 100, 300]);

    let mut store = Store::of(history());
    for sequence in [3, 4, 4] {
        gone(&mut store, 0, sequence);
    }
    let run = open(store);
    assert_eq!(corrupted(&run), key(4));
    assert_eq!(listings(&run), [0, 0, 100]);
}

/// A collection removed it, something created the key again, and that was removed as well.
#[test]
fn listings_that_show_different_objects_at_one_key_do_not_agree() {
    let mut store = Store::of(history());
    gone(&mut store, 0, 2);
    appear(&mut store, 0, [(2, claim(2).bytes())]);
    store.before(0, Operation::Read, key(2), |objects| {
        objects.remove(&key(2)).unwrap();
    });
    let run = open(store);
    assert_eq!(run.start_object().0.predecessor, Some(link(1, 1)));
    assert_eq!(listings(&run)[..3], [0, 0, 100]);
}

/// It was not the second in a row: one between them fitted together.
#[test]
fn what_one_listing_shows_is_forgotten_when_the_next_fits_together() {
    let mut store = Store::of(history());
    gone(&mut store, 0, 3);
    gone(&mut store, 1, 3);
    let run = open(store);
    assert_eq!(run.claims(), [2]);
    assert_eq!(listings(&run), [0, 0, 0, 0, 0]);
    assert_eq!(run.opened().start, link(3, 4));
}

#[test]
fn listings_that_never_agree_end_in_a_retryable_error_after_open_attempts() {
    let mut store = Store::of(history());
    for sequence in 3..10 {
        gone(&mut store, 0, sequence);
    }
    let run = open_with(Options { open_attempts: 3, ..Options::default() }, store);
    let error = run.failed();
    assert!(error.is_retryable(), "{error}");
    assert!(
        matches!(error, Error::Store { operation: Operation::Read, key: at, .. } if *at == key(6)),
        "{error}"
    );
    assert!(error.to_string().contains("nothing there"), "{error}");
    assert_eq!(listings(&run).len(), 4);
    assert!(run.puts().is_empty());
}

#[test]
fn release_records_that_two_listings_show_and_no_read_finds_are_damage() {
    // Too many to come with the tail: the third read of the object is theirs.
    let records: Vec<_> = (100..5_000).map(|region| (region, 5)).collect();
    let store = || Store::of([make(0, 1).writer("a"), make(1, 1).after(0, 1).releases(&records)]);
    let gone = || Fault::Fails(StoreErrorKind::NotFound);
    let mut once = store();
    once.fault_later(2, Operation::Read, key(1), gone());
    let run = open(once);
    assert_eq!(run.opened().start, link(3, 4));
    // The first, again, after the claim, and the look.
    assert_eq!(listings(&run), [0, 0, 0, 0]);
    assert_eq!(run.reads(1).len(), 4);

    let mut twice = store();
    twice.fault_later(2, Operation::Read, key(1), gone());
    twice.fault(Operation::Read, key(1), gone());
    let run = open(twice);
    assert_eq!(corrupted(&run), key(1));
    assert_eq!(listings(&run), [0, 0]);
    assert!(run.puts().is_empty(), "no claim comes before all is recovered");
}

#[test]
fn what_does_not_verify_is_damage_once_a_second_listing_agrees() {
    let mut store = Store::of(history());
    store.damage(1, 30);
    let run = open(store);
    assert!(matches!(run.failed(), Error::Corrupted { part: Part::Header, .. }));
    assert_eq!((listings(&run), run.reads(1).len()), (alloc::vec![0, 0], 4));
}

/// Between the listing and the read of object 1 a collection deletes it, and another opening's claim
/// comes to its key, which is larger: what is read by the listed size does not verify.
#[test]
fn what_came_to_a_key_after_it_was_listed_is_not_damage() {
    let log =
        || [make(0, 1).writer("a"), make(1, 1).after(0, 1), make(2, 1).after(1, 1).boundary(2)];
    for deleted_again in [false, true] {
        let mut store = Store::of(log());
        let mut opening = Opening::read_only(BEGAN, prefix(), Options::default()).unwrap();
        let (mut now, mut asked) = (BEGAN, Vec::new());
        let view = loop {
            let Some(effect) = opening.poll_effect() else {
                now = opening.next_tick().expect("it goes on");
                opening.handle(now, OpeningEvent::Tick);
                continue;
            };
            match effect {
                OpeningEffect::Storage(effect) => {
                    asked.push(operation_of(&effect));
                    if asked.len() == 2 {
                        store.objects.insert(key(1), claim(1).bytes());
                    }
                    if deleted_again && asked.last() == Some(&Operation::ReadBack) {
                        store.objects.remove(&key(1));
                    }
                    let answer = store.carry_out(&effect);
                    opening.handle(now, OpeningEvent::Storage(answer));
                }
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(view) => break view,
                OpeningEffect::Failed(error) => panic!("{error}"),
            }
        };
        assert_eq!(view.tip().unwrap().sequence, ObjectSeq(2));
        let listings = asked.iter().filter(|asked| **asked == Operation::List);
        assert_eq!(listings.count(), 2, "{asked:?}");
    }
}

/// Between two listings of one opening a key gets another object of the same size: what was read of
/// the first is not kept.
#[test]
fn what_was_read_is_kept_only_while_size_and_time_are_the_same() {
    for (modified, reads) in [(7, 1), (8, 2)] {
        let mut store = Store::of(history());
        store.modified.insert(key(1), 7);
        let run = open(store);
        assert_eq!(run.reads(1).len(), 1, "{modified}");
        let mut store = run.store;
        store.hides.clear();
        let options = Options::default();
        let mut opening = Opening::new(BEGAN, prefix(), options, identity()).unwrap();
        let (mut listings, mut read) = (0, 0);
        loop {
            match opening.poll_effect().expect("it goes on") {
                OpeningEffect::Storage(effect) => {
                    listings += usize::from(operation_of(&effect) == Operation::List);
                    read += usize::from(
                        operation_of(&effect) == Operation::Read && *effect.key() == key(1),
                    );
                    if listings == 2 {
                        store.modified.insert(key(1), modified);
                    }
                    let answer = store.carry_out(&effect);
                    opening.handle(BEGAN, OpeningEvent::Storage(answer));
                }
                OpeningEffect::Notice(_) => {}
                OpeningEffect::Opened(_) => break,
                OpeningEffect::Failed(error) => panic!("{error}"),
            }
        }
        assert_eq!(read, reads);
    }
}
