//! That the checkers can fail: histories written by hand, each wrong in one way.

use std::fmt::Debug;

use bytes::Bytes;
use sealog_core::error::Operation;
use sealog_core::event::{Answer, Append, Appended, Notice, Payload, StorageEffect};
use sealog_core::format::{Header, ObjectEncoder};
use sealog_core::{
    EntryId, Epoch, Error, Key, Link, ObjectSeq, Options, Outcome, Prefix, RegionId, RequestId,
    StoreError, StoreErrorKind, Time,
};

use super::history::{Observed, Seen};
use super::journal::{Checked, Journal, Waiter};
use crate::model::ModelStore;

const A: RegionId = RegionId(1);
const B: RegionId = RegionId(2);

/// An instance whose start object is at 0, and that puts an object per append.
struct Log {
    journal: Journal,
    store: ModelStore,
    sent: Vec<(Link, Append)>,
    tail: Link,
}

fn link(sequence: u64) -> Link {
    Link { sequence: ObjectSeq(sequence), epoch: Epoch(1) }
}

fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position).unwrap()
}

fn entry(region: RegionId, payload: &'static str) -> (RegionId, Bytes) {
    (region, Bytes::from_static(payload.as_bytes()))
}

impl Log {
    fn new() -> Log {
        let mut journal = Journal::default();
        journal.begin(0, Time::ZERO, link(0), &Options::default()).unwrap();
        Log { journal, store: ModelStore::new(), sent: Vec::new(), tail: link(0) }
    }

    fn append(&mut self, entries: &[(RegionId, Bytes)]) -> (Waiter, Append) {
        let append = Append::Many(entries.to_vec());
        (self.journal.append(0, &append).unwrap(), append)
    }

    fn object(&self, sequence: u64, predecessor: Link, append: &Append) -> (Key, Payload) {
        let mut object = ObjectEncoder::new();
        for ((region, payload), id) in append.entries().zip(ids(sequence, append)) {
            object.push(region, id, payload);
        }
        let (sequence, epoch) = (ObjectSeq(sequence), Epoch(1));
        let boundary = ObjectSeq::ZERO;
        let header = Header { sequence, epoch, predecessor: Some(predecessor), boundary };
        (self.key(sequence.0), object.finish(&header).0)
    }

    fn key(&self, sequence: u64) -> Key {
        Prefix::new("log").unwrap().object_key(ObjectSeq(sequence))
    }

    fn put(&mut self, sequence: u64, append: &Append) -> Checked {
        let (key, payload) = self.object(sequence, self.tail, append);
        self.tail = link(sequence);
        self.sent.push((self.tail, append.clone()));
        let put = StorageEffect::PutObject {
            id: RequestId(sequence),
            key: key.clone(),
            payload: payload.clone(),
            time_limit: std::time::Duration::ZERO,
        };
        self.store.apply(&put);
        self.journal.put(0, Time::ZERO, &key, &payload)
    }

    fn ack(&mut self, waiter: Waiter, sequence: u64, append: &Append) -> Checked {
        let answer = Answer::Appended(Appended::Many(ids(sequence, append)));
        self.journal.ack(waiter, &answer, &self.store)
    }

    /// Objects of entries at 1, 2 and 3 that are acknowledged, and one at 4 that is not.
    fn with_four() -> Log {
        let mut log = Log::new();
        let each = [
            vec![entry(A, "one")],
            vec![entry(A, "two"), entry(B, "two"), entry(A, "two again")],
            vec![entry(B, "three")],
            vec![entry(A, "four"), entry(B, "four")],
        ];
        for (sequence, entries) in (1..).zip(each) {
            let (waiter, append) = log.append(&entries);
            log.put(sequence, &append).unwrap();
            if sequence < 4 {
                log.ack(waiter, sequence, &append).unwrap();
            }
        }
        log.journal.end(0);
        log
    }

    /// What an opening reads if these objects are history.
    fn observe(&self, sequences: &[u64]) -> Observed {
        let mut observed = Observed::new();
        for (object, append) in &self.sent {
            if sequences.contains(&object.sequence.0) {
                let ids = ids(object.sequence.0, append);
                for ((region, payload), id) in append.entries().zip(ids) {
                    let seen = Seen { object: *object, id, payload: payload.clone() };
                    observed.entry(region).or_default().push(seen);
                }
            }
        }
        observed
    }

    fn opens(&self, observed: &Observed) -> Result<(), String> {
        self.journal.clone().opened(observed).map_err(|violation| violation.0)
    }
}

fn ids(sequence: u64, append: &Append) -> Vec<EntryId> {
    let mut counts = std::collections::BTreeMap::<RegionId, u32>::new();
    let position = |(region, _)| {
        let count = counts.entry(region).or_default();
        *count += 1;
        id(sequence, *count)
    };
    append.entries().map(position).collect()
}

#[track_caller]
fn says<T: Debug>(checked: Result<T, impl ToString>, expected: &str) {
    let said = checked.expect_err("it is wrong").to_string();
    assert!(said.contains(expected), "{said}");
}

#[test]
fn with_or_without_the_last_unacknowledged_object_it_is_history() {
    let log = Log::with_four();
    log.opens(&log.observe(&[1, 2, 3])).unwrap();
    log.opens(&log.observe(&[1, 2, 3, 4])).unwrap();
}

#[test]
fn a_lost_entry_is_seen() {
    let log = Log::with_four();
    for left in [&[2, 3][..], &[1, 3], &[1, 2], &[1, 2, 4], &[]] {
        says(log.opens(&log.observe(left)), "is lost");
    }
}

#[test]
fn an_entry_that_is_there_twice_or_out_of_order_is_seen() {
    let log = Log::with_four();
    let observed = log.observe(&[1, 2, 3]);
    let mut twice = observed.clone();
    let first = twice[&A][0].clone();
    twice.get_mut(&A).unwrap().insert(1, first);
    says(log.opens(&twice), "was read twice");
    let mut swapped = observed.clone();
    swapped.get_mut(&A).unwrap().swap(0, 1);
    says(log.opens(&swapped), "was read after");
}

#[test]
fn what_was_never_appended_is_seen() {
    let log = Log::with_four();
    let mut observed = log.observe(&[1, 2, 3]);
    let seen = Seen { object: link(3), id: id(3, 1), payload: Bytes::new() };
    observed.get_mut(&A).unwrap().push(seen.clone());
    says(log.opens(&observed), "nobody sent it");
    let mut observed = log.observe(&[1, 2, 3]);
    observed.get_mut(&B).unwrap()[1].payload = Bytes::from_static(b"other");
    says(log.opens(&observed), "another payload");
    // The entry of another region.
    let mut observed = log.observe(&[1, 2, 3]);
    observed.insert(RegionId(3), vec![seen]);
    says(log.opens(&observed), "nobody sent it");
}

#[test]
fn half_an_append_is_seen() {
    let log = Log::with_four();
    let mut observed = log.observe(&[1, 2, 3, 4]);
    observed.get_mut(&B).unwrap().pop();
    says(log.opens(&observed), "came back in part");
}

#[test]
fn what_an_opening_did_not_bring_back_never_comes_back() {
    let mut log = Log::with_four();
    log.journal.opened(&log.observe(&[1, 2, 3])).unwrap();
    says(log.opens(&log.observe(&[1, 2, 3, 4])), "known to be no part");
}

#[test]
fn what_an_opening_brought_back_stays() {
    let mut log = Log::with_four();
    log.journal.opened(&log.observe(&[1, 2, 3, 4])).unwrap();
    says(log.opens(&log.observe(&[1, 2, 3])), "is lost");
}

#[test]
fn a_failed_entry_before_an_acknowledged_one_is_seen() {
    let mut log = Log::new();
    let (first, append) = log.append(&[entry(A, "failed")]);
    log.put(1, &append).unwrap();
    let source = StoreError::new(StoreErrorKind::TimedOut);
    let operation = Operation::Create;
    let error = Error::Store { operation, key: log.key(1), source };
    log.journal.fail(&[first], &error, Outcome::Unknown).unwrap();
    let notice = Notice::RolledBack { batches: 1, error };
    log.journal.notice(0, Time::from_millis(5_000), &notice, &log.store).unwrap();
    log.tail = link(0);
    let (second, append) = log.append(&[entry(A, "acknowledged")]);
    log.put(2, &append).unwrap();
    log.opens(&log.observe(&[])).expect_err("the second append still pends");
    log.ack(second, 2, &append).unwrap();
    log.journal.end(0);
    log.opens(&log.observe(&[2])).unwrap();
    says(log.opens(&log.observe(&[1, 2])), "failed and came back");
}

#[test]
fn an_object_that_came_back_without_the_one_before_it_is_seen() {
    let mut log = Log::new();
    for (sequence, text) in [(1, "one"), (2, "two")] {
        let (_, append) = log.append(&[entry(A, text)]);
        log.put(sequence, &append).unwrap();
    }
    log.journal.end(0);
    log.opens(&log.observe(&[1])).unwrap();
    says(log.opens(&log.observe(&[2])), "before it did not");
}

#[test]
fn only_what_is_obsolete_may_be_gone_and_only_from_the_front() {
    let mut log = Log::with_four();
    log.journal.watermarks.insert(A, id(2, 2));
    log.opens(&log.observe(&[2, 3])).unwrap();
    says(log.opens(&log.observe(&[3])), "is lost");
    log.journal.watermarks.insert(B, id(2, 1));
    log.opens(&log.observe(&[3])).unwrap();
    says(log.opens(&log.observe(&[1, 3])), "and an earlier one is not");
}

#[test]
fn a_running_log_reads_exactly_what_is_not_obsolete() {
    let mut log = Log::with_four();
    log.journal.watermarks.insert(A, id(1, 1));
    let mut observed = log.observe(&[1, 2, 3]);
    says(log.journal.reads(&observed), "is obsolete");
    observed.get_mut(&A).unwrap().remove(0);
    log.journal.reads(&observed).unwrap();
    observed.get_mut(&A).unwrap().remove(0);
    says(log.journal.reads(&observed), "was not read");
    says(log.journal.reads(&log.observe(&[2, 3, 4])), "no part of history");
}

#[test]
fn waiters_are_answered_once_in_order_and_after_their_object_is_there() {
    let mut log = Log::new();
    let (first, one) = log.append(&[entry(A, "one")]);
    let (second, two) = log.append(&[entry(A, "two")]);
    says(log.ack(first, 1, &one), "never sent");

    let mut log = Log::new();
    log.append(&[entry(A, "one")]);
    log.append(&[entry(A, "two")]);
    log.put(1, &one).unwrap();
    log.put(2, &two).unwrap();
    says(log.ack(second, 2, &two), "was acknowledged before");

    let mut log = Log::new();
    log.append(&[entry(A, "one")]);
    log.put(1, &one).unwrap();
    let store = std::mem::take(&mut log.store);
    says(log.ack(first, 1, &one), "is not stored");

    let mut log = Log { store, ..Log::new() };
    log.append(&[entry(A, "one")]);
    log.put(1, &one).unwrap();
    log.ack(first, 1, &one).unwrap();
    says(log.ack(first, 1, &one), "was answered twice");
    says(log.ack(7, 1, &one), "was never made");
}

#[test]
fn an_append_that_was_sent_does_not_fail_as_not_written() {
    let mut log = Log::new();
    let (waiter, append) = log.append(&[entry(A, "one")]);
    log.put(1, &append).unwrap();
    let error = Error::Conflict { key: "k".into() };
    says(log.journal.fail(&[waiter], &error, Outcome::NotWritten), "NotWritten");
}

#[test]
fn an_object_with_other_appends_than_the_next_ones_is_seen() {
    let mut log = Log::new();
    let (_, one) = log.append(&[entry(A, "one")]);
    let (_, two) = log.append(&[entry(A, "two")]);
    says(log.put(1, &two), "come next");

    let mut log = Log::new();
    log.append(&[entry(A, "one"), entry(B, "one")]);
    says(log.put(1, &one), "come next");
}

#[test]
fn an_object_that_links_elsewhere_or_reuses_a_sequence_is_seen() {
    let mut log = Log::new();
    let (_, one) = log.append(&[entry(A, "one")]);
    log.tail = link(7);
    says(log.put(1, &one), "links to");

    let mut log = Log::new();
    log.append(&[entry(A, "one")]);
    log.put(1, &one).unwrap();
    let (_, two) = log.append(&[entry(A, "two")]);
    log.tail = link(0);
    says(log.put(1, &two), "with other bytes");
}
