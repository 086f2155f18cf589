//! One process of the world: a machine, the requests that the world holds for it, and what it
//! has told its callers.
//!
//! An event is handed to an instance together with the objects that it shows. What the machine
//! does then is a function of the instance and the event alone, so the world computes each such
//! pair once. To that end, where nothing is deleted, reads of objects that the event itself shows
//! are answered at once: objects never change, so such a read commutes with everything that others
//! do, and what the machine does upon it, it does by requests, which wait as long as they like. For
//! the same reason an opening that waits for a tick and nothing else gets it at once. Where objects
//! are deleted, a read is a step of its own, and finds what is there then.

use std::sync::Arc;
use std::time::Duration;

use sealog_core::rules::Rules;
use sealog_core::{EntryId, Identity, Opening, Options, Time, Writer};

use super::fingerprint::Fingerprint;
use super::meeting::meet;
use super::objects::{ERA, ObjectId, Objects, REGION, SetId, StoredEntry, Tag, prefix};
use super::transcript::Transcript;

/// What the writers of a configuration have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) options: Options,
    pub(crate) rules: Rules,
    /// The instance that never gets the last answer of its opening, if there is one: it died.
    pub(crate) dies_opening: Option<usize>,
    /// Whether instances may be told to raise a floor.
    pub(crate) floors: bool,
    /// Whether deletes are carried out. Otherwise none ever takes effect or is answered.
    pub(crate) deletes: bool,
    /// Whether listings come in the order of the keys.
    pub(crate) lists_in_order: bool,
    /// Whether idle writers put objects that carry the boundary.
    pub(crate) carriers: bool,
}

impl Setup {
    /// The opening of the instance that calls itself by this letter.
    pub(crate) fn opening(&self, name: char) -> Opening {
        let identity = Identity {
            nonce: [name as u8; 16],
            opened_at_millis: 0,
            default_name: name.to_string().into(),
        };
        Opening::new(Time::ZERO, prefix(), self.options.clone(), identity)
            .expect("valid options")
            .with_rules(self.rules)
    }
}

/// The letter by which an instance goes.
pub(crate) fn name_of(who: usize) -> char {
    (b'A' + who as u8) as char
}

/// A set of sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Keys(u32);

impl Keys {
    pub(crate) fn add(&mut self, sequence: u64) {
        assert!(sequence < u64::from(u32::BITS), "worlds have few sequences");
        self.0 |= 1 << sequence;
    }

    pub(crate) fn and(self, other: Keys) -> Keys {
        Keys(self.0 | other.0)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u64> {
        (0..u64::from(u32::BITS)).filter(move |sequence| self.0 >> sequence & 1 == 1)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) who: usize,
    pub(crate) phase: Phase,
    /// What it asked of the store and is not answered yet, in the order of asking.
    pub(crate) asked: Vec<Asked>,
    pub(crate) appends_left: u8,
    pub(crate) told: Told,
    /// What was sure to be seen by the listing that its opening made last; only where reads that
    /// follow it are steps of their own.
    pub(crate) looked: Option<SetId>,
    /// Its clock. It moves when a tick is handed in, and with the eras.
    pub(crate) now: Time,
}

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    NotStarted,
    Opening(Box<Opening>),
    Writing(Box<Writer<u8>>),
    /// Nothing that matters comes of it any more.
    Ended(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// Its opening met another, of this epoch.
    Contended { met: u64 },
    /// It met a later epoch.
    Fenced,
    /// It died when it was about to be told that it is open.
    Died,
    /// All its appends are answered.
    Idle,
}

/// What an instance has told its callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Told {
    pub(crate) opened: Option<Opened>,
    /// Its appends in order, those that were handed in.
    pub(crate) appends: Vec<Fate>,
    /// It was told that its entries through this id are obsolete.
    pub(crate) obsolete: EntryId,
}

/// A completed opening.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Opened {
    pub(crate) epoch: u64,
    pub(crate) history: Arc<[StoredEntry]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Waiting,
    Acknowledged(EntryId),
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) id: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Put {
        object: ObjectId,
        /// It took effect, and its answer is on the way.
        applied: bool,
    },
    Delete {
        sequence: u64,
        /// It took effect, and its answer is on the way.
        applied: bool,
    },
    Read {
        sequence: u64,
        /// A range of an object that is there; otherwise its header and size.
        fetch: Option<(u64, u64)>,
        /// It reads back what a put of this instance failed on. Whether something is there
        /// matters, so it waits for its turn.
        back: bool,
    },
    List {
        after: Option<u64>,
        /// If it has begun already.
        begun: Option<Begun>,
    },
}

/// A listing on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Begun {
    /// What was there when it began.
    pub(crate) there: SetId,
    /// The last key of its first page. Without it, it is read in no order.
    pub(crate) through: Option<u64>,
}

/// What can happen to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happening {
    Start,
    Append,
    /// An id of another prefix, with this sequence, is obsolete.
    RaiseFloor(u64),
    /// All that it has acknowledged or recovered is obsolete.
    Obsolete,
    Tick,
    /// To the request at this place among those that it asked.
    Answer(u8, Reply),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    /// None yet, but the put or the delete took effect.
    Applied,
    Created,
    /// This object was there.
    Exists(ObjectId),
    Deleted,
    /// The put or the delete was not answered in time. If it did not take effect yet, it may later.
    TimedOut,
    /// The put took effect, but its answer was lost.
    AnswerLost,
    Read(Option<ObjectId>),
    /// None yet, but the listing has begun.
    Begun(Begun),
    Listed(SetId),
    /// The listing of a guard failed.
    Failed,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) instance: Instance,
    /// Puts that nobody waits for any more, and that did not take effect yet.
    pub(crate) late: Vec<ObjectId>,
    /// The same of deletes.
    pub(crate) late_deletes: Keys,
    /// Something that must not happen.
    pub(crate) violation: Option<String>,
}

impl Instance {
    pub(crate) fn new(who: usize, appends: u8) -> Instance {
        Instance {
            who,
            phase: Phase::NotStarted,
            asked: Vec::new(),
            appends_left: appends,
            told: Told::default(),
            looked: None,
            now: Time::ZERO,
        }
    }

    pub(crate) fn name(&self) -> char {
        name_of(self.who)
    }

    pub(crate) fn fingerprint(&self) -> u128 {
        let mut fingerprint = Fingerprint::new();
        fingerprint.value(&(self.who, self.appends_left, &self.told, self.looked, self.now));
        match &self.phase {
            Phase::NotStarted => fingerprint.value(&0),
            Phase::Opening(opening) => fingerprint.machine(opening),
            Phase::Writing(writer) => fingerprint.machine(writer),
            Phase::Ended(end) => fingerprint.value(end),
        }
        for Asked { id, what } in &self.asked {
            fingerprint.request(*id);
            fingerprint.value(what);
        }
        fingerprint.get()
    }

    /// Whether a writer waits for a tick that decides something. What is due much later is there to
    /// tell the operator of a slow store.
    pub(crate) fn wants_tick(&self, era: u8) -> bool {
        let now = self.now.max(Time::ZERO.after(ERA * u32::from(era)));
        match &self.phase {
            Phase::Writing(writer) => {
                writer.next_tick().is_some_and(|due| due <= now.after(Duration::from_secs(1)))
            }
            _ => false,
        }
    }

    /// Whether it has something to make obsolete.
    pub(crate) fn can_obsolete(&self) -> bool {
        match &self.phase {
            Phase::Writing(writer) => writer.durable(REGION) > self.told.obsolete,
            _ => false,
        }
    }

    /// Whether it was told that this entry is obsolete, which it knew: it had acknowledged or
    /// recovered it.
    pub(crate) fn made_obsolete(&self, tag: Tag, id: EntryId) -> bool {
        let recovered = |opened: &Opened| opened.history.iter().any(|entry| entry.tag == tag);
        id <= self.told.obsolete
            && (tag.is_of(self.who) || self.told.opened.as_ref().is_some_and(recovered))
    }

    /// What becomes of the instance when this happens to it.
    pub(crate) fn meet(
        &self,
        setup: &Setup,
        objects: &mut Objects,
        happening: Happening,
        era: u8,
        transcript: &mut Transcript,
    ) -> Happened {
        meet(self, setup, objects, happening, era, transcript)
    }
}

/// The entries that an opening recovered.
pub(crate) fn history_of(objects: &Objects, writer: &Writer<u8>) -> Arc<[StoredEntry]> {
    let plan = writer.plan_read(REGION, EntryId::ZERO, None, usize::MAX).expect("no reserved one");
    let segments = plan.segments.iter();
    segments.flat_map(|s| objects.entries_of(s.segment.object, &s.meta)).copied().collect()
}

/// Entries as a transcript shows them.
pub(crate) fn tags(history: &[StoredEntry]) -> String {
    if history.is_empty() {
        return "nothing".into();
    }
    history.iter().map(|entry| entry.tag.to_string()).collect::<Vec<_>>().join(" ")
}
