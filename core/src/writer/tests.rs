//! Transitions of the Writer: events in, effects out. A test reads as a transcript; what stands
//! between the steps says why.

mod breaking;
mod calls;
mod carrying;
mod create;
mod enqueued;
mod failing;
mod guard;
mod random;
mod reclaiming;
mod regions;
mod regressions;
mod releases_carried;
mod releases_stopped;
mod releasing;
mod replaying;
mod seal;
mod stalling;
mod stop;
mod stopping_enqueued;
mod verdicts;
mod waiting;
mod warning;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;

use super::*;
use crate::error::{StoreError, StoreErrorKind};
use crate::event::{Append, Appended, Listed, Payload, ReadBack, StorageEffect};
use crate::format::Header;
use crate::format::{Object, ObjectEncoder, ReservedContent, SegmentMeta, WriterRecord};
use crate::key::KeyKind;
use crate::opening::RecoveryStats;
use crate::options::AckMode;
use crate::read::SegmentRef;
use crate::types::Link;

/// A writer of epoch 6, whose start object is at sequence 5, its clock, and the requests that
/// are not answered. Waiters are numbers, given out in the order of the calls.
struct Log {
    writer: Writer<u32>,
    now: Time,
    calls: u32,
    requests: Vec<StorageEffect>,
}

const EPOCH: Epoch = Epoch(6);
const START: ObjectSeq = ObjectSeq(5);

/// Options under which a batch leaves as soon as it is there.
fn at_once() -> Options {
    Options { linger: Duration::ZERO, flush_interval: Duration::ZERO, ..Options::default() }
}

/// The same, where admission is what is acknowledged.
fn enqueued() -> Options {
    Options { ack_mode: AckMode::Enqueued, ..at_once() }
}

fn recovered(options: Options, next_sequence: ObjectSeq) -> Recovered {
    let mut catalog = Catalog::new(ObjectSeq::ZERO);
    let start = Link { sequence: START, epoch: EPOCH };
    catalog.index(start, 200, &[]).unwrap();
    catalog.keep(START);
    Recovered {
        prefix: Prefix::new("log").unwrap(),
        options,
        catalog,
        start,
        start_put: Time::ZERO,
        durable_boundary: ObjectSeq::ZERO,
        next_sequence,
        next_request: RequestId(0),
        stats: RecoveryStats { recovered_objects: 0, took: Duration::ZERO },
        rules: Rules::ALL,
    }
}

/// A log that recovered these objects of an earlier epoch, each with one entry of each of its
/// regions, and whose start object at 5 carries the boundary that follows.
fn with_history(options: Options, objects: &[(u64, &[u64])]) -> Recovered {
    let mut recovered = recovered(options, START.next());
    let mut catalog = Catalog::new(ObjectSeq::ZERO);
    for (sequence, regions) in objects {
        let link = Link { sequence: ObjectSeq(*sequence), epoch: Epoch(1) };
        let segments: Vec<_> = regions.iter().map(|region| segment(*region, *sequence)).collect();
        catalog.index(link, 200, &segments).unwrap();
    }
    recovered.durable_boundary = catalog.boundary();
    catalog.index(recovered.start, 200, &[]).unwrap();
    catalog.keep(START);
    recovered.catalog = catalog;
    recovered
}

/// A segment of one entry.
fn segment(region: u64, sequence: u64) -> SegmentMeta {
    let (region, id) = (RegionId(region), id(sequence, 1));
    SegmentMeta { region, min_id: id, max_id: id, count: 1, offset: 54, length: 24, crc: 0 }
}

impl Log {
    fn new(options: Options) -> Log {
        Log::starting_at(options, START.next())
    }

    fn starting_at(options: Options, next_sequence: ObjectSeq) -> Log {
        Log::from(recovered(options, next_sequence))
    }

    fn from(recovered: Recovered) -> Log {
        let writer = Writer::new(Time::ZERO, recovered);
        Log { writer, now: Time::ZERO, calls: 0, requests: Vec::new() }
    }

    /// Hands in an event, and a tick if one is due then, as a shell does, and says in short what
    /// came of it.
    fn handle(&mut self, event: Event<u32>) -> Vec<String> {
        self.writer.handle(self.now, event);
        self.writer.check();
        if self.writer.next_tick().is_some_and(|at| at <= self.now) {
            self.writer.handle(self.now, Event::Tick);
            self.writer.check();
        }
        assert!(self.writer.next_tick().is_none_or(|at| at > self.now), "ticked, and due again");
        let mut said = Vec::new();
        while let Some(effect) = self.writer.poll_effect() {
            said.extend(self.describe(effect));
        }
        said
    }

    fn describe(&mut self, effect: Effect<u32>) -> Option<String> {
        Some(match effect {
            Effect::Storage(effect) => {
                let said = match &effect {
                    StorageEffect::PutObject { .. } => format!("put {}", sequence_of(&effect)),
                    StorageEffect::ReadBack { .. } => format!("read back {}", sequence_of(&effect)),
                    StorageEffect::FetchRange { range, .. } => {
                        format!("fetch {} {range:?}", sequence_of(&effect))
                    }
                    StorageEffect::DeleteObjects { keys, .. } => {
                        let prefix = Prefix::new("log").unwrap();
                        let sequences = keys.iter().map(|key| match prefix.classify(key) {
                            KeyKind::Object(sequence) => sequence.to_string(),
                            other => panic!("{key} is {other:?}"),
                        });
                        format!("delete {}", sequences.collect::<Vec<_>>().join(" "))
                    }
                    StorageEffect::List { after, .. } => {
                        let after = after.as_deref().unwrap_or_default();
                        let name = after.strip_prefix("log/objects/").unwrap_or_default();
                        format!("list after {}", name.trim_start_matches('0'))
                    }
                };
                self.requests.push(effect);
                said
            }
            Effect::Ack { waiter, answer: Answer::Appended(ids) } => {
                let ids: Vec<_> = ids.ids().iter().map(|id| short(*id)).collect();
                format!("ack {waiter}: {}", ids.join(" "))
            }
            Effect::Ack { waiter, answer: Answer::Done } => format!("ack {waiter}"),
            Effect::Ack { waiter, answer: Answer::Verdict(verdict) } => {
                format!("ack {waiter}: {verdict:?}")
            }
            Effect::FailWaiters { waiters, error, outcome } => {
                format!("fail {waiters:?}: {}, {outcome:?}", kind(&error))
            }
            Effect::Durable { region, id } => format!("durable {region}: {}", short(id)),
            Effect::Notice(Notice::Hole(hole)) => format!("hole in region {}", hole.region),
            Effect::Notice(Notice::Failing { error }) => format!("failing: {}", kind(&error)),
            Effect::Notice(Notice::Healthy) => "healthy".into(),
            Effect::Notice(Notice::DeleteFailed { key, count, error }) => {
                let name = key.strip_prefix("log/objects/").unwrap_or_default();
                let name = name.trim_start_matches('0').trim_end_matches(".wal");
                format!("{count} not deleted, {name} first: {}", kind(&error))
            }
            Effect::Notice(Notice::Stalled { appends, age, backlog }) => {
                format!("{appends} stalled for {age:?}, {backlog} B")
            }
            Effect::Notice(Notice::SlowCreate { key, age, backlog }) => {
                let name = key.strip_prefix("log/objects/").unwrap_or_default();
                format!("{} slow for {age:?}, {backlog} B", name.trim_start_matches('0'))
            }
            Effect::Notice(_) => return None,
        })
    }

    fn waiter(&mut self) -> u32 {
        self.calls += 1;
        self.calls
    }

    fn append(&mut self, region: u64, payload: &str) -> Vec<String> {
        let payload = Bytes::copy_from_slice(payload.as_bytes());
        let waiter = self.waiter();
        self.handle(Event::Append { append: Append::One(RegionId(region), payload), waiter })
    }

    fn append_many(&mut self, entries: &[(u64, &'static str)]) -> Vec<String> {
        let entries = entries
            .iter()
            .map(|(region, payload)| (RegionId(*region), Bytes::from_static(payload.as_bytes())));
        let (append, waiter) = (Append::Many(entries.collect()), self.waiter());
        self.handle(Event::Append { append, waiter })
    }

    fn flush(&mut self) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::Flush { waiter })
    }

    fn stop(&mut self) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::Stop { waiter })
    }

    fn release(&mut self, region: u64) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::Release { region: RegionId(region), waiter })
    }

    fn release_all(&mut self, region: u64) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::ReleaseAll { region: RegionId(region), waiter })
    }

    fn obsolete(&mut self, region: u64, id: EntryId) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::Obsolete { region: RegionId(region), id, waiter })
    }

    fn wait(&mut self, region: u64, id: EntryId) -> Vec<String> {
        let waiter = self.waiter();
        self.handle(Event::WaitDurable { region: RegionId(region), id, waiter })
    }

    /// Time passes, and a tick comes.
    fn tick_at(&mut self, millis: u64) -> Vec<String> {
        self.now = Time::from_millis(millis);
        self.handle(Event::Tick)
    }

    /// Takes the unanswered request for the object at a sequence.
    fn take(&mut self, sequence: u64) -> StorageEffect {
        let at = self.requests.iter().position(|effect| sequence_of(effect) == sequence);
        self.requests.remove(at.unwrap_or_else(|| panic!("nothing is asked of {sequence}")))
    }

    /// The put at a sequence succeeds.
    fn created(&mut self, sequence: u64) -> Vec<String> {
        let id = self.take(sequence).id();
        self.handle(Event::Storage(StorageAnswer::CreateResult { id, result: Ok(()) }))
    }

    /// An entry is appended and its object created, under the next sequence.
    fn append_durable(&mut self, region: u64) -> Vec<String> {
        self.append(region, "durable");
        let put = self.requests.iter().rev().find_map(|effect| match effect {
            StorageEffect::PutObject { .. } => Some(sequence_of(effect)),
            _ => None,
        });
        self.created(put.expect("nothing is put"))
    }

    /// The delete that begins with this sequence succeeds.
    fn deleted(&mut self, sequence: u64) -> Vec<String> {
        let delete = self.take(sequence);
        let StorageEffect::DeleteObjects { id, keys, .. } = delete else {
            panic!("{sequence} is not deleted")
        };
        let results = keys.iter().map(|key| (key.clone(), Ok(()))).collect();
        self.handle(Event::Storage(StorageAnswer::DeleteResult { id, results }))
    }

    /// The delete that begins with this sequence is answered key by key.
    fn deletes(
        &mut self,
        sequence: u64,
        results: &[(u64, Result<(), StoreErrorKind>)],
    ) -> Vec<String> {
        let id = self.take(sequence).id();
        let key = |sequence: &u64| self.writer.prefix().object_key(ObjectSeq(*sequence));
        let results = results.iter().map(|(at, result)| (key(at), result.map_err(StoreError::new)));
        let results = results.collect();
        self.handle(Event::Storage(StorageAnswer::DeleteResult { id, results }))
    }

    /// A read of the object at a sequence failed.
    fn judge(&mut self, sequence: u64, epoch: Epoch) -> Vec<String> {
        let object = Link { sequence: ObjectSeq(sequence), epoch };
        let (segment, waiter) = (SegmentRef { object, region: RegionId(1) }, self.waiter());
        self.handle(Event::SegmentReadFailed { segment, waiter })
    }

    /// The release records that the unanswered put at a sequence would store.
    fn records(&self, sequence: u64) -> Vec<String> {
        let object = Object::decode(&self.payload(sequence).to_bytes()).unwrap();
        match object.reserved(RegionId::RELEASES).unwrap() {
            Some(ReservedContent::Releases(records)) => records
                .iter()
                .map(|record| match record.through {
                    EntryId::MAX => format!("{} in full", record.region),
                    through => format!("{} through {}", record.region, short(through)),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The objects that a read of a region would fetch something of.
    fn visible(&self, region: u64) -> Vec<u64> {
        let plan = self.writer.plan_read(RegionId(region), EntryId::ZERO, None, 100).unwrap();
        plan.segments.iter().map(|planned| planned.segment.object.sequence.0).collect()
    }

    /// The request for a sequence fails.
    fn fails(&mut self, sequence: u64, kind: StoreErrorKind) -> Vec<String> {
        let answer = self.take(sequence).failed(StoreError::new(kind));
        self.handle(Event::Storage(answer))
    }

    /// The read-back of a sequence finds these bytes.
    fn finds(&mut self, sequence: u64, object: &[u8]) -> Vec<String> {
        let id = self.take(sequence).id();
        let found = ReadBack::of(&Bytes::copy_from_slice(object));
        self.handle(Event::Storage(StorageAnswer::ReadBackResult { id, result: Ok(found) }))
    }

    /// The listing of a guard shows objects at these sequences.
    fn lists(&mut self, sequences: &[u64]) -> Vec<String> {
        let at = self.requests.iter().position(|e| matches!(e, StorageEffect::List { .. }));
        let id = self.requests.remove(at.expect("nothing is listed")).id();
        let key = |sequence: &u64| self.writer.prefix().object_key(ObjectSeq(*sequence));
        let listed = sequences.iter().map(|sequence| Listed {
            key: key(sequence),
            size: 200,
            modified_millis: 0,
        });
        let result = Ok(listed.collect());
        self.handle(Event::Storage(StorageAnswer::Listed { id, result }))
    }

    /// The listing of a guard fails.
    fn listing_fails(&mut self, kind: StoreErrorKind) -> Vec<String> {
        let at = self.requests.iter().position(|e| matches!(e, StorageEffect::List { .. }));
        let list = self.requests.remove(at.expect("nothing is listed"));
        self.handle(Event::Storage(list.failed(StoreError::new(kind))))
    }

    /// A range read of a sequence gets these bytes.
    fn fetched(&mut self, sequence: u64, bytes: Bytes) -> Vec<String> {
        let id = self.take(sequence).id();
        self.handle(Event::Storage(StorageAnswer::Fetched { id, result: Ok(bytes) }))
    }

    /// What the unanswered put at a sequence would store.
    fn payload(&self, sequence: u64) -> Payload {
        let put = self.requests.iter().find_map(|effect| match effect {
            StorageEffect::PutObject { payload, .. } if sequence_of(effect) == sequence => {
                Some(payload.clone())
            }
            _ => None,
        });
        put.unwrap_or_else(|| panic!("nothing is put at {sequence}"))
    }

    fn header(&self, sequence: u64) -> Header {
        Header::decode(&self.payload(sequence).to_bytes()).unwrap()
    }

    fn stats(&self) -> Stats {
        self.writer.stats()
    }
}

/// The sequence of the object that a request is about; `u64::MAX` for a listing.
fn sequence_of(effect: &StorageEffect) -> u64 {
    let name = effect.key().strip_prefix("log/objects/").unwrap();
    name.strip_suffix(".wal").map_or(u64::MAX, |digits| digits.parse().unwrap())
}

/// An id as sequence and position.
fn short(id: EntryId) -> String {
    if id == EntryId::ZERO { "0".into() } else { format!("{}/{}", id.sequence(), id.position()) }
}

fn id(sequence: u64, position: u32) -> EntryId {
    EntryId::new(ObjectSeq(sequence), position).unwrap()
}

/// The name of an error's kind, and what tells it from others of its kind.
fn kind(error: &Error) -> String {
    match error {
        Error::Store { operation, source, .. } => format!("Store {operation} {:?}", source.kind),
        Error::Poisoned { cause } => format!("Poisoned {}", kind(cause)),
        Error::Fenced { theirs, writer, .. } => {
            format!("Fenced by {theirs} {}", writer.as_deref().unwrap_or("?"))
        }
        Error::Corrupted { part, .. } => format!("Corrupted {part}"),
        Error::Lost { entries, releases: 0, .. } => format!("Lost {entries} entries"),
        Error::Lost { entries, releases, .. } => {
            format!("Lost {entries} entries, {releases} releases")
        }
        other => {
            let debug = format!("{other:?}");
            debug.split([' ', '{']).next().unwrap_or_default().to_string()
        }
    }
}

/// A start object of another writer.
fn start_object(sequence: u64, name: &str) -> Bytes {
    let record =
        WriterRecord { nonce: [7; 16], opened_at_millis: 0, max_in_flight: 4, name: name.into() };
    let mut object = ObjectEncoder::new();
    object.push(RegionId::WRITER, id(sequence, 1), &record.encode());
    let header = Header {
        sequence: ObjectSeq(sequence),
        epoch: Epoch(sequence + 1),
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    object.finish(&header).0.to_bytes()
}

/// An object of a given epoch, with nothing in it.
fn bare_object(sequence: u64, epoch: u64) -> Bytes {
    let header = Header {
        sequence: ObjectSeq(sequence),
        epoch: Epoch(epoch),
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    ObjectEncoder::new().finish(&header).0.to_bytes()
}
