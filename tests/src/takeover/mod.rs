//! Taking a log over from a writer that runs, under virtual time: the core's own machines, a store
//! that takes its time, and a table of how long that lasts and what it costs.
//!
//! A request has two moments here too: half of its latency passes before it takes effect, and half
//! before its answer arrives. A listing takes its latency for each page, and each page shows what is
//! there at its own moment. A directory's listing comes in no order, and what is created while it is
//! made is in it or not.

mod ends;
mod old;
mod world;

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use sealog_core::format::{Header, Object};
use sealog_core::{EntryId, ObjectSeq, Options, Prefix, RegionId};

use crate::model::ModelStore;

pub use self::ends::{Ending, Newcomer, Troubler, ends};
use self::world::World;

/// How many rounds of list, read and claim a take-over may need.
pub const MOST_ROUNDS: u32 = 6;

/// The region that all entries are of.
const REGION: RegionId = RegionId(7);

/// How long requests take.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// A page of a listing.
    pub list: Duration,
    /// A read.
    pub get: Duration,
    /// A create or a delete.
    pub put: Duration,
}

/// How a store lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listings {
    /// In order, in pages of 1,000 keys.
    InOrder,
    /// In no order, all at once, and not as of one moment.
    AsADirectory,
}

/// A log, its writer, and a store.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How long requests take.
    pub latencies: Latencies,
    /// How it lists.
    pub listings: Listings,
    /// How many objects a second its writer makes, if the store lets it.
    pub rate: u32,
    /// How many objects are there when the writer begins.
    pub objects: u64,
}

/// What a take-over cost.
#[derive(Clone, Debug, Default)]
pub struct TakenOver {
    /// How many openings were begun, the one that succeeded included.
    pub attempts: u32,
    /// How long it took from the first one on.
    pub time: Duration,
    /// How many listings were asked for.
    pub listings: u32,
    /// How many claims were put.
    pub claims: u32,
    /// How often claims were put after a listing.
    pub rounds: u32,
    /// How many objects the old writer made meanwhile.
    pub made: u64,
    /// Whether the newer opening has the log.
    pub opened: bool,
    /// What the old writer ended with.
    pub ended: Option<String>,
    /// Acknowledged entries that are not in the history of the newer one.
    pub lost: Vec<EntryId>,
}

impl TakenOver {
    /// What is wrong with it, if something is.
    ///
    /// # Errors
    ///
    /// With the reason.
    pub fn judge(&self) -> Result<(), String> {
        if !self.lost.is_empty() {
            return Err(format!("acknowledged and lost: {:?}", self.lost));
        }
        if !self.opened {
            return Err(format!("it was not taken over in {} attempts", self.attempts));
        }
        if self.rounds > MOST_ROUNDS {
            return Err(format!("it took {} rounds, not {MOST_ROUNDS} at most", self.rounds));
        }
        match self.ended.as_deref() {
            Some("Fenced") => Ok(()),
            ended => Err(format!("the old writer ended with {ended:?}, not Fenced")),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Latencies { list, get, put } = self.latencies;
        let listings = match self.listings {
            Listings::InOrder => "",
            Listings::AsADirectory => ", a directory",
        };
        let (rate, objects) = (self.rate, self.objects);
        write!(
            f,
            "LIST {list:?}, GET {get:?}, PUT {put:?}, {rate} objects/s, {objects} objects{listings}"
        )
    }
}

/// Lets a writer run for a second, takes the log over from it, again and again if need be, and lets
/// both go on until the old one has ended.
///
/// # Panics
///
/// The machines do what is not foreseen here.
pub fn take_over(setting: Setting) -> TakenOver {
    World::new(setting).run()
}

fn prefix() -> Prefix {
    match Prefix::new("log") {
        Ok(prefix) => prefix,
        Err(error) => panic!("{error}"),
    }
}

/// Every append in an object of its own.
fn options() -> Options {
    Options {
        max_batch_bytes: 1,
        linger: Duration::ZERO,
        flush_interval: Duration::ZERO,
        reclaim_interval: Duration::ZERO,
        ..Options::default()
    }
}

/// The entries of the history that ends with this object, found by the links alone.
fn history(store: &ModelStore, mut tip: Option<ObjectSeq>) -> BTreeSet<EntryId> {
    let mut entries = BTreeSet::new();
    while let Some(sequence) = tip {
        let Some(bytes) = store.get(&prefix().object_key(sequence)) else { break };
        let object = match Object::decode(bytes) {
            Ok(object) => object,
            Err(error) => panic!("object {sequence}: {error}"),
        };
        for (meta, found) in object.segments {
            if meta.region == REGION {
                entries.extend(found.into_iter().map(|entry| entry.id));
            }
        }
        let Header { predecessor, .. } = object.header;
        tip = predecessor.map(|link| link.sequence).filter(|linked| *linked < sequence);
    }
    entries
}
