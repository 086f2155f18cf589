//! What the store of the world can hold: objects, each known by a number, and sets of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use sealog_core::format::{Header, Object, ReservedContent, SegmentMeta};
use sealog_core::{
    EntryId, Key, KeyKind, Link, Listed, ObjectSeq, Prefix, ReadBack, RegionId, RequestId,
    StorageAnswer, StorageEffect, StoreError, StoreErrorKind,
};

/// The region that all appends go to.
pub(crate) const REGION: RegionId = RegionId(1);

/// The number of an object. Objects with the same bytes that were written at the same time have the
/// same number.
pub(crate) type ObjectId = u32;

/// When an object was written, as far as the store's times tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Written {
    /// How often more time than `fence_retention` had passed.
    pub(crate) era: u8,
    /// How many writings of the same bytes came before this one, without an answer: each has a time
    /// of its own.
    pub(crate) landing: u8,
}

/// So much time passes from one era to the next. It is more than the `fence_retention` of those
/// configurations in which any passes.
pub(crate) const ERA: Duration = Duration::from_secs(61);

/// A put without an answer takes effect so often at most where objects are deleted.
pub(crate) const LANDINGS: u8 = 3;

impl Written {
    pub(crate) fn in_era(era: u8) -> Written {
        Written { era, landing: 0 }
    }

    pub(crate) fn millis(self) -> u64 {
        u64::from(self.era) * ERA.as_millis() as u64 + u64::from(self.landing)
    }
}

/// The number of a set of objects.
pub(crate) type SetId = u32;

/// The empty set.
pub(crate) const NOTHING: SetId = 0;

/// The log's prefix.
pub(crate) fn prefix() -> Prefix {
    Prefix::new("e").expect("a valid prefix")
}

pub(crate) fn key_of(sequence: u64) -> Key {
    prefix().object_key(ObjectSeq(sequence))
}

pub(crate) fn sequence_of(key: &str) -> u64 {
    match prefix().classify(key) {
        KeyKind::Object(sequence) => sequence.0,
        other => panic!("{key} is no object's: {other:?}"),
    }
}

/// Who appended an entry, and which of its appends that was: the payload of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Tag(u8);

impl Tag {
    pub(crate) fn new(who: usize, append: usize) -> Tag {
        Tag((who * 16 + append) as u8)
    }

    pub(crate) fn is_of(self, who: usize) -> bool {
        usize::from(self.0 / 16) == who
    }

    pub(crate) fn payload(self) -> Bytes {
        Bytes::copy_from_slice(&[self.0])
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", (b'a' + self.0 / 16) as char, self.0 % 16 + 1)
    }
}

/// An entry as it stands in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StoredEntry {
    pub(crate) id: EntryId,
    pub(crate) tag: Tag,
    /// The epoch of its object.
    pub(crate) epoch: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
    pub(crate) written: Written,
    metas: Vec<SegmentMeta>,
    pub(crate) entries: Vec<StoredEntry>,
    writer: Option<Arc<str>>,
}

impl StoredObject {
    pub(crate) fn sequence(&self) -> u64 {
        self.header.sequence.0
    }

    fn decode(bytes: Bytes, written: Written) -> StoredObject {
        let object = Object::decode(&bytes).expect("machines make sound objects");
        let epoch = object.header.epoch.0;
        let writer = match object.reserved(RegionId::WRITER) {
            Ok(Some(ReservedContent::Writer(record))) => Some(record.name),
            _ => None,
        };
        let of_region = object.segments.iter().filter(|(meta, _)| meta.region == REGION);
        let entries = of_region.flat_map(|(_, entries)| entries).map(|entry| StoredEntry {
            id: entry.id,
            tag: Tag(entry.payload[0]),
            epoch,
        });
        StoredObject {
            header: object.header,
            entries: entries.collect(),
            metas: object.segments.iter().map(|(meta, _)| *meta).collect(),
            writer,
            bytes,
            written,
        }
    }
}

impl fmt::Display for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { sequence, epoch, predecessor, boundary } = &self.header;
        write!(f, "{sequence} (")?;
        match (&self.writer, predecessor) {
            (Some(name), Some(link)) if *link == self.header.link() => {
                return write!(f, "claim of {name}, epoch {epoch})");
            }
            (Some(name), _) => write!(f, "start of {name}, ")?,
            (None, _) => {}
        }
        write!(f, "epoch {epoch}")?;
        match predecessor {
            Some(Link { sequence, epoch }) => write!(f, ", after {sequence} of epoch {epoch}")?,
            None => write!(f, ", after nothing")?,
        }
        if boundary.0 > 0 {
            write!(f, ", boundary {boundary}")?;
        }
        for entry in &self.entries {
            write!(f, ", {}", entry.tag)?;
        }
        write!(f, ")")
    }
}

/// All objects and all sets of them that were met.
#[derive(Debug)]
pub(crate) struct Objects {
    objects: Vec<StoredObject>,
    by_bytes: HashMap<(Bytes, Written), ObjectId>,
    by_link: FxHashMap<Link, Vec<ObjectId>>,
    /// Each in ascending order of sequences, then of numbers.
    sets: Vec<Arc<[ObjectId]>>,
    by_members: FxHashMap<Arc<[ObjectId]>, SetId>,
}

impl Objects {
    pub(crate) fn new() -> Objects {
        let nothing: Arc<[ObjectId]> = Arc::new([]);
        Objects {
            objects: Vec::new(),
            by_bytes: HashMap::new(),
            by_link: FxHashMap::default(),
            sets: vec![nothing.clone()],
            by_members: [(nothing, NOTHING)].into_iter().collect(),
        }
    }

    /// The object with these bytes that nobody has written yet.
    pub(crate) fn intern(&mut self, bytes: Bytes) -> ObjectId {
        self.intern_written(bytes, Written::default())
    }

    /// The object as it stands in the store once it is written now.
    pub(crate) fn written(&mut self, id: ObjectId, written: Written) -> ObjectId {
        self.intern_written(self.get(id).bytes.clone(), written)
    }

    fn intern_written(&mut self, bytes: Bytes, written: Written) -> ObjectId {
        let by = (bytes, written);
        if let Some(id) = self.by_bytes.get(&by) {
            return *id;
        }
        let id = self.objects.len() as ObjectId;
        let object = StoredObject::decode(by.0.clone(), written);
        self.by_link.entry(object.header.link()).or_default().push(id);
        self.objects.push(object);
        self.by_bytes.insert(by, id);
        id
    }

    pub(crate) fn get(&self, id: ObjectId) -> &StoredObject {
        &self.objects[id as usize]
    }

    /// How many sets were met.
    pub(crate) fn sets(&self) -> usize {
        self.sets.len()
    }

    pub(crate) fn members(&self, set: SetId) -> Arc<[ObjectId]> {
        self.sets[set as usize].clone()
    }

    pub(crate) fn set_of(&mut self, members: impl IntoIterator<Item = ObjectId>) -> SetId {
        let mut members: Vec<ObjectId> = members.into_iter().collect();
        members.sort_by_key(|id| (self.get(*id).sequence(), *id));
        members.dedup();
        if let Some(set) = self.by_members.get(&members[..]) {
            return *set;
        }
        let set = self.sets.len() as SetId;
        let members: Arc<[ObjectId]> = members.into();
        self.sets.push(members.clone());
        self.by_members.insert(members, set);
        set
    }

    pub(crate) fn with(&mut self, set: SetId, object: ObjectId) -> SetId {
        let members = self.members(set);
        self.set_of(members.iter().copied().chain([object]))
    }

    /// A set without what it holds at a sequence.
    pub(crate) fn without(&mut self, set: SetId, sequence: u64) -> SetId {
        let members = self.members(set);
        let others: Vec<ObjectId> =
            members.iter().copied().filter(|id| self.get(*id).sequence() != sequence).collect();
        self.set_of(others)
    }

    /// Whether there is a start object of this epoch, which is no claim.
    pub(crate) fn has_start(&self, set: SetId, epoch: u64) -> bool {
        let start = epoch.checked_sub(1).and_then(|sequence| self.at(set, sequence));
        start.is_some_and(|id| {
            let header = &self.get(id).header;
            header.epoch.0 == epoch && !header.links_to_itself()
        })
    }

    /// The object at a sequence, of a set that holds one at most for each.
    pub(crate) fn at(&self, set: SetId, sequence: u64) -> Option<ObjectId> {
        let members = &self.sets[set as usize];
        let place = members.binary_search_by_key(&sequence, |id| self.get(*id).sequence());
        place.ok().map(|place| members[place])
    }

    /// A set as a transcript shows it: the sequences of its members.
    pub(crate) fn sequences(&self, set: SetId) -> String {
        let members = self.sets[set as usize].iter();
        let sequences: Vec<String> =
            members.map(|id| self.get(*id).sequence().to_string()).collect();
        if sequences.is_empty() { "nothing".into() } else { sequences.join(" ") }
    }

    /// The entries of an indexed segment. Its row of the footer has a checksum, so the object
    /// need not be read from a store.
    pub(crate) fn entries_of(&self, object: Link, meta: &SegmentMeta) -> &[StoredEntry] {
        let ids = self.by_link.get(&object).map_or(&[][..], |ids| ids);
        let of_segment = |id: &&ObjectId| self.get(**id).metas.contains(meta);
        ids.iter().find(of_segment).map_or(&[], |id| &self.get(*id).entries)
    }
}

/// The answer to a read of one object, which is there or not.
pub(crate) fn read_answer(effect: &StorageEffect, object: Option<&Bytes>) -> StorageAnswer {
    let Some(object) = object else {
        return effect.failed(StoreError::new(StoreErrorKind::NotFound));
    };
    match effect {
        StorageEffect::FetchRange { id, range, .. } => {
            // Of an object that is shorter, that is a failed fetch.
            if range.end > object.len() as u64 {
                return effect.failed(StoreError::new(StoreErrorKind::Transient));
            }
            let bytes = object.slice(range.start as usize..range.end as usize);
            StorageAnswer::Fetched { id: *id, result: Ok(bytes) }
        }
        StorageEffect::ReadBack { id, .. } => {
            StorageAnswer::ReadBackResult { id: *id, result: Ok(ReadBack::of(object)) }
        }
        other => panic!("no read: {other:?}"),
    }
}

/// The answer to a listing. A store without order is known to a shell, which sorts backwards then.
pub(crate) fn listed_answer<'a>(
    id: RequestId,
    in_order: bool,
    objects: impl Iterator<Item = (u64, &'a Bytes, Written)>,
) -> StorageAnswer {
    let listed = |(sequence, bytes, written): (u64, &Bytes, Written)| Listed {
        key: key_of(sequence),
        size: bytes.len() as u64,
        modified_millis: written.millis(),
    };
    let mut listing: Vec<Listed> = objects.map(listed).collect();
    if !in_order {
        listing.reverse();
        if let [alone] = &listing[..] {
            listing.push(alone.clone());
        }
    }
    StorageAnswer::Listed { id, result: Ok(listing) }
}
