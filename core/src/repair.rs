//! Repairing an object that does not verify, when an operator says so: what can be kept of it, what
//! that gives up, and what to put in its place.
//!
//! An opening fails while any object does not verify (DESIGN.md section 4, step 2), and of a lost
//! header it cannot know what came before. So a repair puts another object at the same key, which
//! holds what of the damaged one verifies and stands where that one stood, or, where nobody knows
//! where that was, stands only in the way. It is the one thing that ever replaces a key.
//!
//! Nothing here touches a store. A shell takes a [`Survey`](crate::Survey) and the object's bytes, plans a
//! [`Repair`], says what it gives up and asks. Then, while no [sign of a writer](signs) is seen, it
//! copies each object that is replaced to [where it is kept](crate::Prefix::quarantine_key), and
//! puts the replacements in the order of [`Repair::replacements`]: the damaged object comes last,
//! so that no opening succeeds half way.

mod plan;
mod salvage;
mod signs;

use alloc::vec::Vec;

use crate::chain::LostHistory;
use crate::event::Payload;
use crate::format::{Header, SegmentMeta, WriterRecord};
use crate::key::Key;
use crate::types::{EntryId, Link, ObjectSeq, RegionId};

pub use plan::{likely_behind, likely_header};
pub use salvage::Salvage;
pub use signs::{SignOfWriter, signs};

/// Where the object that takes the place of a damaged one stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the damaged one stood: its header verifies.
    Kept,
    /// Where the operator says, since the header is lost. [`likely_header`] has a guess.
    Named(Header),
    /// Nowhere: all that follows it is given up, and so is what it holds. What is put in its place
    /// is a claim (DESIGN.md section 12), which is never history, with this record of who put it;
    /// likewise for every later object that proves that history went on.
    Cut(WriterRecord),
}

/// What is put where, and what that means.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What to put, in this order. The damaged object is the last; a cut can take others along.
    pub replacements: Vec<Replacement>,
    /// What readers will see, in the order of regions and ids.
    pub remains: Vec<Span>,
    /// What is history now and will not be, or is hidden.
    pub gives_up: Vec<Span>,
    /// What is hidden now and will not be, since the release records that hide it are given up.
    pub brings_back: Vec<Span>,
    /// Objects of which nobody can say all that they held, since their table does not verify: of
    /// any region, ids of these objects may be given up that [`gives_up`](Repair::gives_up) does not
    /// name.
    pub unknown: Vec<ObjectSeq>,
    /// The release records of the damaged object do not verify: what they released comes back.
    pub loses_releases: bool,
    /// The last object of history as it is, if the damaged object is where it stood.
    pub tip_before: Option<Link>,
    /// The last object of history as it will be.
    pub tip_after: Link,
    /// Objects that are history and will not be, in order.
    pub leaves_history: Vec<ObjectSeq>,
    /// Proofs that history is lost which this repair leaves: an opening will still fail.
    pub still_lost: Vec<LostHistory>,
}

/// An object that takes the place of another one.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Its sequence.
    pub sequence: ObjectSeq,
    /// Its key.
    pub key: Key,
    /// What it says of itself.
    pub header: Header,
    /// Its table of segments.
    pub segments: Vec<SegmentMeta>,
    /// Its bytes.
    pub object: Payload,
}

/// Entries of one region in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The region.
    pub region: RegionId,
    /// The smallest id.
    pub min_id: EntryId,
    /// The largest id.
    pub max_id: EntryId,
    /// How many entries there are between them, at most.
    pub entries: u32,
    /// The object that holds them.
    pub object: ObjectSeq,
}

/// Why there is no repair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing is listed at the sequence.
    #[error("no object is listed at sequence {0}")]
    NotThere(ObjectSeq),
    /// Nothing is wrong with the object, as far as one can tell from it.
    #[error("object {0} verifies: there is nothing to repair")]
    Sound(ObjectSeq),
    /// The header does not verify: somebody must say where the object stood.
    #[error(
        "the header of object {sequence} does not verify, so its epoch, its predecessor and its \
         boundary are lost: name them, or accept that all that follows it is cut off"
    )]
    HeaderLost {
        /// The object.
        sequence: ObjectSeq,
        /// What it probably said.
        likely: Header,
    },
    /// What the operator named cannot be the header of an object at that sequence.
    #[error(
        "no object {sequence} can have epoch {}, boundary {} and the predecessor that was named: a \
         predecessor has a lower sequence and no later epoch, a boundary is at most the sequence",
        named.epoch, named.boundary
    )]
    Impossible {
        /// The object.
        sequence: ObjectSeq,
        /// What was named.
        named: Header,
    },
    /// No object would be history.
    #[error(
        "nothing would remain of the log: no object would have all its predecessors. Name the link \
         of object {0} instead: none, if it is to be the first of what remains"
    )]
    NothingRemains(ObjectSeq),
}
