//! That the checkers can fail: histories written by hand, each wrong in one way.

use std::fmt::Debug;

use bytes::Bytes;
use sealog_core::error::Operation;
use sealog_core::event::{Answer, Append, Appended, Notice, Payload, StorageEffect, Verdict};
use sealog_core::format::{Header, ObjectEncoder, ReleaseRecord, encode_releases};
use sealog_core::read::SegmentRef;
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

/// Objects 1 to 3 are indexed; nothing is obsolete.
fn indexed() -> Log {
    let mut log = Log::new();
    for (sequence, region) in [(1, A), (2, B), (3, A)] {
        let (waiter, append) = log.append(&[entry(region, "entry")]);
        log.put(sequence, &append).unwrap();
        log.journal.index_more(0, sequence, &log.store).unwrap();
        log.ack(waiter, sequence, &append).unwrap();
    }
    log
}

fn delete(store: &mut ModelStore, key: Key) {
    let keys = [key].into();
    let time_limit = std::time::Duration::ZERO;
    store.apply(&StorageEffect::DeleteObjects { id: RequestId(99), keys, time_limit });
}

/// An object of nothing but a boundary and records.
fn bare(log: &Log, sequence: u64, boundary: u64, records: &[ReleaseRecord]) -> (Key, Payload) {
    let mut object = ObjectEncoder::new();
    if !records.is_empty() {
        object.push(RegionId::RELEASES, id(sequence, 1), &encode_releases(records));
    }
    let (sequence, epoch) = (ObjectSeq(sequence), Epoch(1));
    let (predecessor, boundary) = (Some(log.tail), ObjectSeq(boundary));
    let header = Header { sequence, epoch, predecessor, boundary };
    (log.key(sequence.0), object.finish(&header).0)
}

#[test]
fn a_delete_of_what_is_needed_or_of_what_no_indexed_object_says_is_not_is_seen() {
    let mut log = indexed();
    let (key, none) = (log.key(1), Default::default());
    says(
        log.journal.asks_to_delete(0, std::slice::from_ref(&key), &log.store, &none),
        "to be deleted",
    );
    // It is obsolete, and an opening that comes now would need it still.
    log.journal.watermarks.insert(A, id(1, 1));
    says(
        log.journal.asks_to_delete(0, std::slice::from_ref(&key), &log.store, &none),
        "to be deleted",
    );
    log.journal.index.boundary = ObjectSeq(2);
    log.journal.asks_to_delete(0, &[key], &log.store, &none).unwrap();
    says(log.journal.asks_to_delete(0, &[log.key(2)], &log.store, &none), "to be deleted");
}

#[test]
fn an_object_that_is_gone_too_early_or_stays_for_ever_is_seen() {
    let mut log = indexed();
    log.journal.objects_vanished(&log.store).unwrap();
    log.journal.watermarks.insert(A, id(1, 1));
    let nothing = Default::default();
    let obsolete = log.journal.all_reclaimed(0, &log.store, &nothing);
    says(obsolete, "is obsolete, and no object says so");
    log.journal.index.boundary = ObjectSeq(2);
    says(log.journal.all_reclaimed(0, &log.store, &nothing), "is still there");
    let (first, second) = (log.key(1), log.key(2));
    delete(&mut log.store, first.clone());
    log.journal.objects_vanished(&log.store).unwrap();
    log.journal.deletes_answered(0, &[(first, Ok(()))]).unwrap();
    log.journal.all_reclaimed(0, &log.store, &nothing).unwrap();
    says(log.journal.is_empty(0, &log.store), "nothing is needed");
    delete(&mut log.store, second);
    says(log.journal.objects_vanished(&log.store), "is gone");
}

#[test]
fn a_delete_of_what_stands_in_the_way_of_older_writers_is_seen() {
    let mut log = indexed();
    let header = Header {
        sequence: ObjectSeq(0),
        epoch: Epoch(1),
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    let put = StorageEffect::PutObject {
        id: RequestId(9),
        key: log.key(0),
        payload: ObjectEncoder::new().finish(&header).0,
        time_limit: std::time::Duration::ZERO,
    };
    log.store.apply(&put);
    log.journal.index.boundary = ObjectSeq(1);
    let deletes = |log: &mut Log| {
        log.journal.asks_to_delete(0, &[log.key(0)], &log.store, &Default::default())
    };
    says(deletes(&mut log), "stands above the recovered tip");
    // As if the opening had found it below 1, which came just before.
    log.journal.instances.get_mut(&0).unwrap().start.sequence = ObjectSeq(4);
    says(deletes(&mut log), "stands in the way");
}

#[test]
fn a_carrier_that_frees_nothing_or_comes_too_soon_is_seen() {
    let mut log = indexed();
    let late = Time::from_millis(60_000);
    let (key, payload) = bare(&log, 4, 1, &[]);
    says(log.journal.clone().put(0, late, &key, &payload), "lets nothing go");
    log.journal.watermarks.insert(A, id(1, 1));
    let (key, payload) = bare(&log, 4, 2, &[]);
    says(log.journal.clone().put(0, Time::ZERO, &key, &payload), "came at");
    log.journal.put(0, late, &key, &payload).unwrap();
}

#[test]
fn a_release_without_a_record_and_a_record_without_a_release_are_seen() {
    let mut log = indexed();
    let record = ReleaseRecord { region: A, through: id(3, 1) };
    let (key, payload) = bare(&log, 4, 1, &[record]);
    says(log.journal.clone().put(0, Time::ZERO, &key, &payload), "unasked");
    let waiter = log.journal.release(0, A, false).unwrap();
    let done = log.journal.clone().ack(waiter, &Answer::Done, &log.store);
    says(done, "is visible");
    // The record is durable: now it holds.
    log.journal.put(0, Time::ZERO, &key, &payload).unwrap();
    let put = StorageEffect::PutObject {
        id: RequestId(4),
        key,
        payload,
        time_limit: std::time::Duration::ZERO,
    };
    log.store.apply(&put);
    log.journal.index_more(0, 4, &log.store).unwrap();
    log.journal.ack(waiter, &Answer::Done, &log.store).unwrap();
    log.journal.end(0);
    says(log.opens(&log.observe(&[1, 2, 3])), "was released before");
}

#[test]
fn a_record_that_hides_what_was_appended_later_is_seen() {
    let mut log = indexed();
    log.journal.release(0, A, false).unwrap();
    let (_, append) = log.append(&[entry(A, "later")]);
    log.put(4, &append).unwrap();
    let record = ReleaseRecord { region: A, through: id(4, 1) };
    let (key, payload) = bare(&log, 5, 1, &[record]);
    says(log.journal.put(0, Time::ZERO, &key, &payload), "came after that");
}

#[test]
fn a_verdict_that_fails_a_read_of_what_was_collected_or_hides_what_is_needed_is_seen() {
    let mut log = indexed();
    let segment = SegmentRef { object: link(1), region: A };
    let judged = |gone, verdict| {
        let mut journal = log.journal.clone();
        let waiter = journal.asks_for_verdict(0, segment, gone);
        journal.ack(waiter, &Answer::Verdict(verdict), &log.store)
    };
    judged(false, Verdict::Indexed).unwrap();
    says(judged(false, Verdict::Gone), "of it is needed");
    says(judged(true, Verdict::Indexed), "of it is needed");
    log.journal.watermarks.insert(A, id(1, 1));
    let waiter = log.journal.asks_for_verdict(0, segment, true);
    says(log.journal.ack(waiter, &Answer::Verdict(Verdict::Indexed), &log.store), "is Indexed");
}
