//! Signs of a writer at work.

use super::*;
use crate::repair::{SignOfWriter, signs};

const MINUTE: Duration = Duration::from_secs(60);

fn at_times(objects: &Objects, millis: impl Fn(u64) -> u64) -> Survey {
    let time = |sequence: u64| (key(sequence), millis(sequence));
    let modified = (0..10).map(time).collect();
    let store = Store { objects: objects.clone(), modified, ..Store::default() };
    let opening = Opening::survey(BEGAN, prefix(), Options::default()).unwrap();
    drive(opening, store, Order::OldestFirst).result.unwrap()
}

#[test]
fn whatever_changes_between_two_surveys_is_a_sign() {
    let before = survey(&log());
    let sign = |change: &dyn Fn(&mut Objects)| {
        let mut objects = log();
        change(&mut objects);
        signs(&before, &survey(&objects), None, MINUTE)
    };
    assert_eq!(sign(&|_| {}), None);
    let created = sign(&|objects| drop(objects.insert(key(5), entry(5).bytes())));
    assert_eq!(created, Some(SignOfWriter::Created(ObjectSeq(5))));
    let deleted = sign(&|objects| drop(objects.remove(&key(0))));
    assert_eq!(deleted, Some(SignOfWriter::Deleted(ObjectSeq(0))));
    let replaced = sign(&|objects| drop(objects.insert(key(2), entry(2).bytes())));
    assert_eq!(replaced, Some(SignOfWriter::Replaced(ObjectSeq(2))));
    let rewritten = at_times(&log(), |sequence| u64::from(sequence == 3));
    let replaced = signs(&before, &rewritten, None, MINUTE);
    assert_eq!(replaced, Some(SignOfWriter::Replaced(ObjectSeq(3))));
}

#[test]
fn an_object_that_is_younger_than_the_quiet_time_is_a_sign() {
    let now = at_times(&log(), |sequence| 1_000 + sequence);
    let age = |store_time: Option<u64>| signs(&now, &now, store_time, MINUTE);
    let recent = |age| Some(SignOfWriter::Recent { sequence: ObjectSeq(4), age });
    assert_eq!(age(Some(1_004 + 60_000)), None);
    assert_eq!(age(Some(1_003 + 60_000)), recent(Duration::from_millis(59_999)));
    assert_eq!(age(Some(0)), recent(Duration::ZERO), "never negative");
    assert_eq!(age(None), None, "the store's time is not known");
    assert_eq!(signs(&now, &now, Some(0), Duration::ZERO), None);
}
