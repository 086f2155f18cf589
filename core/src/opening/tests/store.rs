//! A store in memory with scripted faults, and a driver that carries out effects on it.

use alloc::string::String;
use alloc::vec;
use core::fmt::Write;
use core::ops::Range;

use super::Ending;
use crate::error::Operation;
use crate::event::ReadBack;
use crate::format::{
    Header, MIN_OBJECT_LEN, Object, ObjectEncoder, ReleaseRecord, ReservedContent, WriterRecord,
    encode_releases,
};
use crate::opening::*;
use crate::types::{EntryId, Epoch, RegionId};

pub(super) type Objects = BTreeMap<Key, Bytes>;

pub(super) fn prefix() -> Prefix {
    Prefix::new("p").unwrap()
}

pub(super) fn key(sequence: u64) -> Key {
    prefix().object_key(ObjectSeq(sequence))
}

pub(super) fn link(sequence: u64, epoch: u64) -> Link {
    Link { sequence: ObjectSeq(sequence), epoch: Epoch(epoch) }
}

pub(super) const NONCE: [u8; 16] = [0x0f; 16];

pub(super) fn identity() -> Identity {
    Identity { nonce: NONCE, opened_at_millis: 1_700_000_000_000, default_name: "me".into() }
}

/// An object under construction.
#[derive(Clone)]
pub(super) struct Make {
    header: Header,
    object: ObjectEncoder,
}

/// An object of this sequence and epoch, the first of a chain until it is said what precedes it.
pub(super) fn make(sequence: u64, epoch: u64) -> Make {
    let link = link(sequence, epoch);
    let header = Header {
        sequence: link.sequence,
        epoch: link.epoch,
        predecessor: None,
        boundary: ObjectSeq::ZERO,
    };
    Make { header, object: ObjectEncoder::new() }
}

/// The claim of somebody else.
pub(super) fn claim(sequence: u64) -> Make {
    make(sequence, sequence + 1).after(sequence, sequence + 1).writer("c")
}

impl Make {
    pub(super) fn after(mut self, sequence: u64, epoch: u64) -> Make {
        self.header.predecessor = Some(link(sequence, epoch));
        self
    }

    pub(super) fn boundary(mut self, boundary: u64) -> Make {
        self.header.boundary = ObjectSeq(boundary);
        self
    }

    /// One entry of a region, of this many bytes.
    pub(super) fn entry(self, region: u64, len: usize) -> Make {
        let id = self.id(1);
        self.entry_with_id(region, id, len)
    }

    pub(super) fn entry_with_id(mut self, region: u64, id: EntryId, len: usize) -> Make {
        self.object.push(RegionId(region), id, &vec![region as u8; len].into());
        self
    }

    pub(super) fn releases(self, records: &[(u64, u64)]) -> Make {
        let record = |(region, through): &(u64, u64)| ReleaseRecord {
            region: RegionId(*region),
            through: EntryId(*through),
        };
        let records: Vec<_> = records.iter().map(record).collect();
        self.reserved(RegionId::RELEASES, encode_releases(&records))
    }

    pub(super) fn writer(self, name: &str) -> Make {
        let record = WriterRecord {
            nonce: [9; 16],
            opened_at_millis: 0,
            max_in_flight: 4,
            name: name.into(),
        };
        self.reserved(RegionId::WRITER, record.encode())
    }

    pub(super) fn reserved(mut self, region: RegionId, payload: Bytes) -> Make {
        let id = self.id(1);
        self.object.push(region, id, &payload);
        self
    }

    fn id(&self, position: u32) -> EntryId {
        EntryId::new(self.header.sequence, position).unwrap()
    }

    pub(super) fn bytes(self) -> Bytes {
        self.object.finish(&self.header).0.to_bytes()
    }
}

/// What goes wrong with one request.
pub(super) enum Fault {
    /// Nothing, this time.
    None,
    /// It is not carried out.
    Fails(StoreErrorKind),
    /// It is carried out, and its answer is lost.
    AnswerLost(StoreErrorKind),
    /// One byte of the body is damaged on its way.
    Damaged,
    /// The body is one byte short.
    Short,
    /// Somebody else was faster.
    After(Box<dyn FnOnce(&mut Objects)>),
}

#[derive(Default)]
pub(super) struct Store {
    pub(super) objects: Objects,
    /// Whether a create overwrites what stands at its key.
    pub(super) overwrites: bool,
    /// Whether a listing shows also what is not above the key that it was to begin behind.
    pub(super) ignores_offset: bool,
    /// Keys that every listing shows, with their sizes, besides what is there.
    pub(super) ghosts: Vec<Listed>,
    /// When objects were written; the others in 1970.
    pub(super) modified: BTreeMap<Key, u64>,
    pub(super) faults: Vec<(Operation, Key, Fault)>,
}

impl Store {
    /// A store that holds these objects, each at the key of its own sequence.
    pub(super) fn of(objects: impl IntoIterator<Item = Make>) -> Store {
        let mut store = Store::default();
        objects.into_iter().for_each(|object| store.add(object));
        store
    }

    pub(super) fn add(&mut self, object: Make) {
        self.objects.insert(key(object.header.sequence.0), object.bytes());
    }

    /// Scripts what the next such request of a key meets, after what was scripted before.
    pub(super) fn fault(&mut self, operation: Operation, key: Key, fault: Fault) {
        self.faults.push((operation, key, fault));
    }

    /// Scripts what such a request of a key meets after `before` ones that meet nothing.
    pub(super) fn fault_later(
        &mut self,
        before: usize,
        operation: Operation,
        key: Key,
        fault: Fault,
    ) {
        for _ in 0..before {
            self.fault(operation, key.clone(), Fault::None);
        }
        self.fault(operation, key, fault);
    }

    /// Scripts that somebody else creates this just before our put.
    pub(super) fn overtaken(&mut self, sequence: u64, bytes: Bytes) {
        self.before(0, Operation::Create, key(sequence), move |objects| {
            objects.insert(key(sequence), bytes);
        });
    }

    /// Scripts what somebody else does before such a request, after `before` ones.
    pub(super) fn before(
        &mut self,
        before: usize,
        operation: Operation,
        key: Key,
        act: impl FnOnce(&mut Objects) + 'static,
    ) {
        self.fault_later(before, operation, key, Fault::After(Box::new(act)));
    }

    /// Damages an object for good.
    pub(super) fn damage(&mut self, sequence: u64, at: usize) {
        let mut bytes = self.objects[&key(sequence)].to_vec();
        bytes[at] ^= 1;
        self.objects.insert(key(sequence), bytes.into());
    }

    pub(super) fn answer(&mut self, effect: &StorageEffect) -> StorageAnswer {
        let fits = |(operation, key, _): &(Operation, Key, Fault)| {
            *operation == operation_of(effect) && key == effect.key()
        };
        let fault = self.faults.iter().position(fits).map(|at| self.faults.remove(at).2);
        match fault {
            Some(Fault::Fails(kind)) => return effect.failed(StoreError::new(kind)),
            Some(Fault::AnswerLost(kind)) => {
                self.carry_out(effect);
                return effect.failed(StoreError::new(kind));
            }
            Some(Fault::After(act)) => act(&mut self.objects),
            Some(Fault::Damaged) => {
                return self.with_body(effect, |body| {
                    let last = body.len() - 1;
                    body[last] ^= 1;
                });
            }
            Some(Fault::Short) => {
                return self.with_body(effect, |body| {
                    body.pop();
                });
            }
            Some(Fault::None) | None => {}
        }
        self.carry_out(effect)
    }

    fn with_body(
        &mut self,
        effect: &StorageEffect,
        change: impl Fn(&mut Vec<u8>),
    ) -> StorageAnswer {
        let changed = |body: Bytes, change: &dyn Fn(&mut Vec<u8>)| {
            let mut body = body.to_vec();
            change(&mut body);
            Bytes::from(body)
        };
        match self.carry_out(effect) {
            StorageAnswer::Fetched { id, result: Ok(body) } => {
                StorageAnswer::Fetched { id, result: Ok(changed(body, &change)) }
            }
            StorageAnswer::ReadBackResult { id, result: Ok(found) } => {
                let result = Ok(ReadBack { header: changed(found.header, &change), ..found });
                StorageAnswer::ReadBackResult { id, result }
            }
            answer => panic!("no body to damage: {answer:?}"),
        }
    }

    pub(super) fn carry_out(&mut self, effect: &StorageEffect) -> StorageAnswer {
        let absent = StoreError::new(StoreErrorKind::NotFound);
        match effect {
            StorageEffect::List { id, prefix, after, .. } => {
                let after = after.as_ref().filter(|_| !self.ignores_offset);
                let wanted =
                    |key: &Key| key.starts_with(&**prefix) && after.is_none_or(|after| key > after);
                let real = self.objects.iter().filter(|(key, _)| wanted(key));
                let real = real.map(|(key, bytes)| Listed {
                    key: key.clone(),
                    size: bytes.len() as u64,
                    modified_millis: self.modified.get(key).copied().unwrap_or_default(),
                });
                // In no useful order.
                let listing = real.rev().chain(self.ghosts.iter().cloned()).collect();
                StorageAnswer::Listed { id: *id, result: Ok(listing) }
            }
            StorageEffect::FetchRange { id, key, range, .. } => {
                let body = |bytes: &Bytes| {
                    let end = range.end.min(bytes.len() as u64);
                    bytes.slice(range.start.min(end) as usize..end as usize)
                };
                let result = self.objects.get(key).map(body).ok_or(absent);
                StorageAnswer::Fetched { id: *id, result }
            }
            StorageEffect::PutObject { id, key, payload, .. } => {
                let result = if self.objects.contains_key(key) && !self.overwrites {
                    Err(StoreError::new(StoreErrorKind::Exists))
                } else {
                    self.objects.insert(key.clone(), payload.to_bytes());
                    Ok(())
                };
                StorageAnswer::CreateResult { id: *id, result }
            }
            StorageEffect::ReadBack { id, key, .. } => {
                let result = self.objects.get(key).map(ReadBack::of).ok_or(absent);
                StorageAnswer::ReadBackResult { id: *id, result }
            }
            StorageEffect::DeleteObjects { .. } => panic!("an opening deletes nothing"),
        }
    }
}

pub(super) fn operation_of(effect: &StorageEffect) -> Operation {
    match effect {
        StorageEffect::List { .. } => Operation::List,
        StorageEffect::FetchRange { .. } => Operation::Read,
        StorageEffect::PutObject { .. } => Operation::Create,
        StorageEffect::ReadBack { .. } => Operation::ReadBack,
        StorageEffect::DeleteObjects { .. } => Operation::Delete,
    }
}

/// An opening that ran to its end.
pub(super) struct Run<T = Recovered> {
    pub(super) result: Result<T, Error>,
    pub(super) store: Store,
    pub(super) notices: Vec<Notice>,
    /// Every storage effect in order, with the time at which it was asked for.
    pub(super) asked: Vec<(Time, StorageEffect)>,
    pub(super) most_at_once: usize,
    pub(super) transcript: String,
}

/// In which order a store answers what is under way at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

pub(super) fn open(store: Store) -> Run {
    open_with(Options::default(), store)
}

pub(super) fn open_with(options: Options, store: Store) -> Run {
    run(options, store, Order::OldestFirst)
}

/// An opening that leaves nothing standing for others: rule 5 of section 12 is not looked at.
pub(super) fn open_keeping_nothing(options: Options, store: Store) -> Run {
    let mut opening = Opening::new(BEGAN, prefix(), options, identity()).unwrap();
    opening.rules.keep_what_stands = false;
    drive(opening, store, Order::OldestFirst)
}

pub(super) fn run(options: Options, store: Store, order: Order) -> Run {
    drive(Opening::new(BEGAN, prefix(), options, identity()).unwrap(), store, order)
}

/// When the openings of these tests begin.
pub(super) const BEGAN: Time = Time::from_millis(5_000);

/// Runs an opening of any kind to its end. Time passes only when it waits for a tick.
pub(super) fn drive<T: Ending>(mut opening: Opening<T>, store: Store, order: Order) -> Run<T> {
    let mut now = BEGAN;
    let mut under_way: VecDeque<StorageEffect> = VecDeque::new();
    let mut run = Run {
        result: Err(Error::Stopped),
        store,
        notices: Vec::new(),
        asked: Vec::new(),
        most_at_once: 0,
        transcript: String::new(),
    };
    for _ in 0..100_000 {
        while let Some(effect) = opening.poll_effect() {
            run.write(&effect);
            match effect {
                OpeningEffect::Storage(effect) => {
                    run.asked.push((now, effect.clone()));
                    under_way.push_back(effect);
                }
                OpeningEffect::Notice(notice) => run.notices.push(notice),
                OpeningEffect::Opened(recovered) => run.result = Ok(*recovered),
                OpeningEffect::Failed(error) => run.result = Err(error),
            }
        }
        run.most_at_once = run.most_at_once.max(under_way.len());
        let next = match order {
            Order::OldestFirst => under_way.pop_front(),
            Order::NewestFirst => under_way.pop_back(),
        };
        if let Some(effect) = next {
            let answer = run.store.answer(&effect);
            run.write_answer(&answer);
            opening.handle(now, OpeningEvent::Storage(answer));
        } else if let Some(due) = opening.next_tick() {
            writeln!(run.transcript, "{:?} later", due.since(now)).unwrap();
            now = due;
            opening.handle(now, OpeningEvent::Tick);
        } else {
            assert!(!matches!(run.result, Err(Error::Stopped)), "it waits for nothing");
            return run;
        }
    }
    panic!("it does not end:\n{}", run.transcript);
}

impl Run {
    /// The start object as it stands in the store, and its writer record.
    pub(super) fn start_object(&self) -> (Header, WriterRecord) {
        let start = self.opened().start;
        start_of(&self.store.objects[&key(start.sequence.0)])
    }
}

impl<T: Ending> Run<T> {
    pub(super) fn opened(&self) -> &T {
        match &self.result {
            Ok(ending) => {
                ending.check();
                ending
            }
            Err(error) => panic!("{error}\n{}", self.transcript),
        }
    }

    pub(super) fn failed(&self) -> &Error {
        match &self.result {
            Ok(_) => panic!("it opened\n{}", self.transcript),
            Err(error) => error,
        }
    }

    /// The ranges of an object that were read, in order.
    pub(super) fn reads(&self, sequence: u64) -> Vec<Range<u64>> {
        let wanted = key(sequence);
        let range = |(_, effect): &(Time, StorageEffect)| match effect {
            StorageEffect::FetchRange { key, range, .. } if *key == wanted => Some(range.clone()),
            _ => None,
        };
        self.asked.iter().filter_map(range).collect()
    }

    /// Every object that was put, in order.
    pub(super) fn puts(&self) -> Vec<Header> {
        let header = |(_, effect): &(Time, StorageEffect)| match effect {
            StorageEffect::PutObject { payload, .. } => Some(start_of(&payload.to_bytes()).0),
            _ => None,
        };
        self.asked.iter().filter_map(header).collect()
    }

    /// The sequences at which a claim was put, in order.
    pub(super) fn claims(&self) -> Vec<u64> {
        let claims = self.puts().into_iter().filter(Header::links_to_itself);
        claims.map(|header| header.sequence.0).collect()
    }

    /// How often it started again, as the operator was told.
    pub(super) fn restarts(&self) -> usize {
        self.notices.iter().filter(|n| matches!(n, Notice::OpeningAgain { .. })).count()
    }

    /// Whether it asked for nothing that changes what is stored, or looks at a key for a put.
    pub(super) fn only_read(&self) -> bool {
        let reads = [Operation::List, Operation::Read, Operation::ReadBack];
        self.asked.iter().all(|(_, effect)| reads.contains(&operation_of(effect)))
    }

    /// When each request of this kind was asked for, after the first.
    pub(super) fn times(&self, operation: Operation) -> Vec<Duration> {
        let of = self.asked.iter().filter(|(_, effect)| operation_of(effect) == operation);
        let times: Vec<Time> = of.map(|(time, _)| *time).collect();
        times.iter().map(|time| time.since(times[0])).collect()
    }
}

pub(super) fn start_of(bytes: &Bytes) -> (Header, WriterRecord) {
    assert!(bytes.len() as u64 >= MIN_OBJECT_LEN);
    let object = Object::decode(bytes).unwrap();
    match object.reserved(RegionId::WRITER).unwrap() {
        Some(ReservedContent::Writer(record)) => (object.header, record),
        other => panic!("no writer record: {other:?}"),
    }
}
