//! What a listing is believed: answers in, the next question or the listing out.

use alloc::format;
use alloc::vec;

use super::*;
use crate::types::ObjectSeq;

fn prefix() -> Prefix {
    Prefix::new("log").unwrap()
}

fn key(sequence: u64) -> Key {
    prefix().object_key(ObjectSeq(sequence))
}

fn listed(key: Key) -> Listed {
    Listed { key, size: 200, modified_millis: 0 }
}

fn objects(sequences: impl IntoIterator<Item = u64>) -> Vec<Listed> {
    sequences.into_iter().map(|sequence| listed(key(sequence))).collect()
}

fn listing() -> Listing {
    Listing::new(&prefix(), None, false, Unordered::Settles)
}

fn again(after: u64) -> Judged {
    Judged::Again { after: Some(key(after)) }
}

const FROM_THE_START: Judged = Judged::Again { after: None };

#[test]
fn a_short_listing_in_order_counts_at_once() {
    let mut listing = listing();
    let shown = objects([3, 4, 7]);
    assert_eq!(listing.answered(shown.clone()), Judged::Settled(shown));
    assert!(!listing.is_unordered());
}

#[test]
fn one_that_shows_nothing_is_asked_a_second_time() {
    for second in [objects([]), objects([3]), objects([3, 2])] {
        let mut listing = listing();
        assert_eq!(listing.answered(Vec::new()), FROM_THE_START);
        match second.len() {
            2 => assert_eq!(listing.answered(second), FROM_THE_START),
            _ => assert_eq!(listing.answered(second.clone()), Judged::Settled(second)),
        }
    }
    // What is not this log's, or was not asked for, is nothing.
    let mut listing = Listing::new(&prefix(), Some(key(5)), false, Unordered::Settles);
    let mut shown = objects([5]);
    shown.push(listed("log/objects/note".into()));
    assert_eq!(listing.answered(shown.clone()), again(5));
    assert_eq!(listing.answered(shown), Judged::Settled(Vec::new()));
}

#[test]
fn what_comes_behind_a_thousand_keys_is_asked_for_until_an_answer_has_fewer() {
    let mut few = listing();
    assert_eq!(few.answered(objects(0..999)), Judged::Settled(objects(0..999)));
    for rest in [0, 1, 999] {
        let mut listing = listing();
        assert_eq!(listing.answered(objects(0..1000)), again(999));
        assert_eq!(listing.answered(objects(1000..2000)), again(1999));
        let all = Judged::Settled(objects(0..2000 + rest));
        assert_eq!(listing.answered(objects(2000..2000 + rest)), all);
    }
}

#[test]
fn keys_of_others_count_for_the_thousand_and_for_the_order() {
    let other = |name: &str| listed(format!("log/objects/{name}").into());
    let mut shown = objects(0..999);
    shown.push(other("note"));
    let mut first = listing();
    let after = Some("log/objects/note".into());
    assert_eq!(first.answered(shown), Judged::Again { after });
    assert_eq!(first.answered(Vec::new()), Judged::Settled(objects(0..999)));

    let mut unordered = listing();
    let mut shown = objects([3]);
    shown.insert(0, other("note"));
    assert_eq!(unordered.answered(shown.clone()), FROM_THE_START);
    shown[0].size += 1;
    assert_eq!(unordered.answered(shown), Judged::Settled(objects([3])), "not this log's");
}

#[test]
fn sequences_that_none_can_have_are_part_of_it_for_the_notice() {
    let mut shown = objects([3]);
    shown.push(listed(key(ObjectSeq::LIMIT.0)));
    assert_eq!(listing().answered(shown.clone()), Judged::Settled(shown));
}

#[test]
fn a_store_that_lists_everything_again_is_believed_that_there_is_no_more() {
    let mut listing = Listing::new(&prefix(), Some(key(4)), false, Unordered::Settles);
    assert_eq!(listing.answered(objects(0..1500)), again(1499));
    // One object came meanwhile.
    assert_eq!(listing.answered(objects(0..1501)), Judged::Settled(objects(5..1501)));

    let mut cut = listing_behind(2000);
    // Of one that is cut off before what is wanted begins, nothing more can be had.
    assert_eq!(cut.answered(objects(0..1000)), again(2000));
    assert_eq!(cut.answered(objects(0..1000)), Judged::Settled(Vec::new()));
}

fn listing_behind(sequence: u64) -> Listing {
    Listing::new(&prefix(), Some(key(sequence)), false, Unordered::Settles)
}

#[test]
fn of_a_key_that_comes_twice_the_later_one_counts() {
    let newer = |sequence| Listed { size: 300, ..listed(key(sequence)) };
    let mut shown = objects([3, 4]);
    shown.extend([newer(4), listed(key(5))]);
    let expected = vec![listed(key(3)), newer(4), listed(key(5))];
    let mut twice = listing();
    assert_eq!(twice.answered(shown), Judged::Settled(expected));
    assert!(!twice.is_unordered(), "it came twice in a row");
}

#[test]
fn without_order_two_in_a_row_must_be_equal() {
    let mut listing = listing();
    assert_eq!(listing.answered(objects([7, 4, 3])), FROM_THE_START);
    assert!(listing.is_unordered());
    // 5 came: what lies below it was alike.
    assert_eq!(listing.answered(objects([5, 3, 7, 4])), again(4));
    assert_eq!(listing.answered(objects([7, 5])), Judged::Settled(objects([3, 4, 5, 7])));
}

#[test]
fn without_order_size_and_time_must_be_equal_too() {
    for change in [|l: &mut Listed| l.size += 1, |l: &mut Listed| l.modified_millis += 1] {
        let mut listing = listing();
        let mut shown = objects([4, 3]);
        assert_eq!(listing.answered(shown.clone()), FROM_THE_START);
        change(&mut shown[0]);
        assert_eq!(listing.answered(shown.clone()), again(3));
        assert_eq!(
            listing.answered(shown.clone()),
            Judged::Settled(vec![shown.remove(1), shown.remove(0)])
        );
    }
}

#[test]
fn what_was_unordered_once_is_never_believed_at_once_again() {
    let mut listing = Listing::new(&prefix(), Some(key(4)), true, Unordered::Settles);
    assert_eq!(listing.answered(objects([5])), again(4));
    assert_eq!(listing.answered(objects([5])), Judged::Settled(objects([5])));
    // That nothing is there must be shown twice as well, and no more often.
    let mut empty = Listing::new(&prefix(), None, true, Unordered::Settles);
    assert_eq!(empty.answered(Vec::new()), FROM_THE_START);
    assert_eq!(empty.answered(Vec::new()), Judged::Settled(Vec::new()));
}

#[test]
fn a_later_page_without_order_takes_back_what_counted() {
    let mut listing = listing();
    assert_eq!(listing.answered(objects(0..1000)), again(999));
    assert_eq!(listing.answered(objects([1001, 1000])), FROM_THE_START);
    let all = objects((0..1002).rev());
    assert_eq!(listing.answered(all.clone()), FROM_THE_START, "the first of two");
    assert_eq!(listing.answered(all), again(1001), "it has a thousand keys");
    assert_eq!(listing.answered(Vec::new()), Judged::Settled(objects(0..1002)));
}

#[test]
fn a_view_takes_what_has_no_order_as_it_is() {
    let mut listing = Listing::new(&prefix(), None, false, Unordered::IsTaken);
    assert_eq!(listing.answered(objects([7, 3, 4])), Judged::Settled(objects([3, 4, 7])));
    assert!(listing.is_unordered());
}

/// A store of any manners that holds still: whatever it does with order, pages and `after`, its
/// listing settles on what is there, in a bounded number of answers.
#[test]
fn a_store_that_holds_still_is_listed_whole() {
    let mut seed = 1u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for _ in 0..200 {
        let held: Vec<u64> = (0..random(3500)).filter(|_| random(3) > 0).collect();
        let from = (random(2) == 0).then(|| random(2000));
        let (unordered, cuts, ignores) = (random(2) == 0, random(2) == 0, random(2) == 0);
        let mut listing = Listing::new(&prefix(), from.map(key), false, Unordered::Settles);
        let wanted: Vec<_> =
            held.iter().copied().filter(|at| from.is_none_or(|from| *at > from)).collect();
        let mut settled = None;
        for _ in 0..16 {
            let after = listing.after();
            let mut shown = objects(held.iter().copied());
            if !ignores || cuts {
                shown.retain(|listed| Some(&listed.key) > after.as_ref());
            }
            if cuts {
                shown.truncate(PAGE);
            }
            if unordered {
                for at in (1..shown.len()).rev() {
                    shown.swap(at, random(at as u64 + 1) as usize);
                }
            }
            if let Judged::Settled(all) = listing.answered(shown) {
                settled = Some(all);
                break;
            }
        }
        assert_eq!(settled, Some(objects(wanted)), "{unordered} {cuts} {ignores}");
    }
}
