//! Selecting the chain that is history, and seeing when a part of it is lost (DESIGN.md
//! section 3). Pure functions of what is present.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use crate::format::Header;
use crate::types::{EntryId, Epoch, Link, ObjectSeq};

/// The pipeline depth that is assumed of a writer whose start object is not there: the largest
/// that the options allow.
const UNKNOWN_DEPTH: u16 = 64;

/// An object that is present, as the selection sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// What it says of itself.
    pub header: Header,
    /// `max_in_flight` of the writer record, if the object holds one that could be read.
    pub max_in_flight: Option<u16>,
}

/// What is history and what is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The complete object with the largest epoch, then the largest sequence.
    pub tip: Link,
    /// The objects to index: those of the tip's chain at or above the tip's boundary, ascending.
    /// The last one is the tip.
    pub chain: Vec<ObjectSeq>,
    /// Every present object below the tip's boundary, ascending.
    pub below_boundary: Vec<ObjectSeq>,
    /// Those of them that were history: the tip's chain leads to them, ascending.
    pub passed: Vec<ObjectSeq>,
    /// Every other present object, ascending.
    pub orphans: Vec<ObjectSeq>,
    /// How many incomplete objects are above the tip: of a later epoch, or of the tip's and with a
    /// larger sequence. Objects that link to themselves are not counted: claims are ordinary.
    pub incomplete_above_tip: u64,
}

/// Proof that history went further than the tip: DESIGN.md section 3, lost objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a predecessor of {because}, found none: {proof}")]
pub struct LostHistory {
    /// What proves it.
    pub proof: Proof,
    /// The missing predecessor: where the way back from `because` breaks off.
    pub missing: ObjectSeq,
    /// The present object that proves it: if several do, the latest, and a claim only if no other
    /// object does.
    pub because: Link,
}

/// The ways in which what is present can prove that objects are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proof {
    /// None of the present objects is complete.
    NoCompleteChain,
    /// An object carries a boundary above the largest sequence of a complete object + 1.
    BoundaryBeyondTip,
    /// An object that is neither a start object nor a claim has a later epoch than the tip.
    EpochBeyondTip,
    /// More linked objects stand above the tip than a pipeline ever holds.
    MoreThanAPipeline,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::NoCompleteChain => {
                "of no object that is there, all predecessors are there, so the log lost objects"
            }
            Proof::BoundaryBeyondTip => {
                "its reclaim boundary lies beyond all history that is there, so its writer had \
                 indexed objects that the log lost"
            }
            Proof::EpochBeyondTip => {
                "its epoch is later than all history that is there, and had begun before it, so \
                 the log lost objects"
            }
            Proof::MoreThanAPipeline => {
                "more objects follow the missing one than its writer ever had under way, so it \
                 was part of the log and is lost"
            }
        })
    }
}

/// Selects the chain that is history among the present objects, which are those of the map, each
/// at the sequence that its header names.
///
/// Of an empty map nothing is complete: [`Proof::NoCompleteChain`], with the object at sequence 0,
/// where every log begins, as the missing one. An opening handles an empty prefix before this.
///
/// # Errors
///
/// What is present proves that history went further than the tip.
pub fn select(objects: &BTreeMap<ObjectSeq, Present>) -> Result<Selection, LostHistory> {
    let (selection, lost) = select_and_prove(objects)?;
    lost.into_iter().next().map_or(Ok(selection), Err)
}

/// What [`select`] selects if nothing is lost, and the proofs that something is, one of each kind:
/// for those who want to see what is there all the same.
///
/// # Errors
///
/// [`Proof::NoCompleteChain`]: there is nothing to select.
pub fn select_and_prove(
    objects: &BTreeMap<ObjectSeq, Present>,
) -> Result<(Selection, Vec<LostHistory>), LostHistory> {
    let walks = Walks::new(objects);
    let complete = || walks.0.iter().filter(|walk| walk.is_complete());
    let Some(tip) = complete().max_by_key(|walk| walk.age()) else {
        return Err(nothing_complete(&walks));
    };
    let largest_complete = complete().map(|walk| walk.link.sequence).max();
    let lost = lost_history(&walks, tip, largest_complete.unwrap_or(tip.link.sequence));

    let mut passed = walks.chain(tip);
    let chain = passed.split_off(passed.partition_point(|sequence| *sequence < tip.boundary));
    let (mut below_boundary, mut orphans) = (Vec::new(), Vec::new());
    let mut on_chain = chain.iter().peekable();
    for sequence in walks.0.iter().map(|walk| walk.link.sequence) {
        if sequence < tip.boundary {
            below_boundary.push(sequence);
        } else if on_chain.next_if(|next| **next == sequence).is_none() {
            orphans.push(sequence);
        }
    }
    let above = walks.0.iter().filter(|walk| walk.age() > tip.age() && !walk.links_to_itself);
    let incomplete_above_tip = above.count() as u64;
    let selection =
        Selection { tip: tip.link, chain, below_boundary, passed, orphans, incomplete_above_tip };
    Ok((selection, lost))
}

/// The predecessors that are missing by the word of every present object that proves history to have
/// gone further than the tip. What is there before a listing begins is in it, so of two listings one
/// after the other, the later shows what the earlier only missed because it came meanwhile.
pub(crate) fn missing(objects: &BTreeMap<ObjectSeq, Present>) -> BTreeSet<ObjectSeq> {
    let walks = Walks::new(objects);
    let complete = || walks.0.iter().filter(|walk| walk.is_complete());
    let Some(tip) = complete().max_by_key(|walk| walk.age()) else {
        let all = walks.0.iter().map(|walk| walk.lost(Proof::NoCompleteChain).missing);
        return all.collect();
    };
    let largest_complete = complete().map(|walk| walk.link.sequence).max();
    let proofs = proofs(&walks, tip, largest_complete.unwrap_or(tip.link.sequence));
    let missing = |walk: &Walk| {
        let (proof, _) = proofs.iter().find(|(_, proves)| proves(walk))?;
        Some(walk.lost(*proof).missing)
    };
    walks.0.iter().filter_map(missing).collect()
}

/// The sequence that the next object takes (DESIGN.md section 4, step 5): above every listed
/// sequence, at or above every listed epoch, and such that ids of every region go on ascending.
/// `None` when no object can have it: the log has used its last sequence.
pub fn next_sequence(
    largest_listed: Option<ObjectSeq>,
    largest_epoch: Option<Epoch>,
    largest_ids: impl IntoIterator<Item = EntryId>,
) -> Option<ObjectSeq> {
    let after_listed = largest_listed.map_or(ObjectSeq::ZERO, ObjectSeq::next);
    let after_epochs = largest_epoch.map_or(ObjectSeq::ZERO, |epoch| ObjectSeq(epoch.0));
    let after_ids = largest_ids.into_iter().map(|id| id.sequence().next()).max();
    let next = after_listed.max(after_epochs).max(after_ids.unwrap_or(ObjectSeq::ZERO));
    next.is_valid().then_some(next)
}

fn nothing_complete(walks: &Walks) -> LostHistory {
    let proof = Proof::NoCompleteChain;
    match walks.latest(|_| true) {
        Some(walk) => walk.lost(proof),
        None => {
            let missing = ObjectSeq::ZERO;
            let because = Link { sequence: missing, epoch: Epoch::claimed_at(missing) };
            LostHistory { proof, missing, because }
        }
    }
}

type Proves<'a> = Box<dyn Fn(&Walk) -> bool + 'a>;

/// Which objects prove what.
fn proofs<'a>(
    walks: &'a Walks,
    tip: &'a Walk,
    largest_complete: ObjectSeq,
) -> [(Proof, Proves<'a>); 3] {
    // Whoever sealed it had indexed an object at or just below that boundary.
    let boundary = move |walk: &Walk| walk.boundary > largest_complete.next();
    // Its epoch's start object was complete before it.
    let epoch = |walk: &Walk| walk.link.epoch > tip.link.epoch && !walk.claims_its_epoch();
    // No more than that were ever sealed and not indexed.
    let pipeline = |walk: &Walk| {
        walk.age() > tip.age() && walk.held >= 2 * u64::from(walks.depth(walk.link.epoch))
    };
    [
        (Proof::BoundaryBeyondTip, Box::new(boundary)),
        (Proof::EpochBeyondTip, Box::new(epoch)),
        (Proof::MoreThanAPipeline, Box::new(pipeline)),
    ]
}

fn lost_history(walks: &Walks, tip: &Walk, largest_complete: ObjectSeq) -> Vec<LostHistory> {
    let proofs = proofs(walks, tip, largest_complete).into_iter();
    proofs.filter_map(|(proof, proves)| Some(walks.latest(proves)?.lost(proof))).collect()
}

/// The way back from each present object, in the order of their sequences.
struct Walks(Vec<Walk>);

/// The way back from one object, over links alone: where it breaks off does not depend on whose
/// boundary could end it before. So one pass finds it for every object, and comparing it with an
/// object's own boundary judges that object.
struct Walk {
    link: Link,
    boundary: ObjectSeq,
    predecessor: Option<ObjectSeq>,
    links_to_itself: bool,
    max_in_flight: Option<u16>,
    /// How many links hold before the way ends.
    held: u64,
    /// `None` if it ends at an object without predecessor.
    broken: Option<Broken>,
}

#[derive(Clone, Copy)]
struct Broken {
    /// A boundary above this ends the way before it breaks off.
    at: ObjectSeq,
    /// The predecessor that is not there.
    missing: ObjectSeq,
}

impl Walks {
    /// A link that may be followed leads to a lower sequence, so ascending order finds the
    /// predecessor's walk done.
    fn new(objects: &BTreeMap<ObjectSeq, Present>) -> Walks {
        let mut walks = Walks(Vec::with_capacity(objects.len()));
        for (&sequence, Present { header, max_in_flight }) in objects {
            let (held, broken) = match header.predecessor {
                None => (0, None),
                // Its object is on every way that comes here, so only a boundary above the object
                // itself ends the way before.
                Some(link) if link.sequence >= sequence => {
                    (0, Some(Broken { at: sequence, missing: link.sequence }))
                }
                Some(link) => match walks.get(link.sequence).filter(|walk| walk.link == link) {
                    Some(before) => (before.held + 1, before.broken),
                    None => (0, Some(Broken { at: link.sequence, missing: link.sequence })),
                },
            };
            walks.0.push(Walk {
                link: Link { sequence, epoch: header.epoch },
                boundary: header.boundary,
                predecessor: header.predecessor.map(|link| link.sequence),
                links_to_itself: header.links_to_itself(),
                max_in_flight: *max_in_flight,
                held,
                broken,
            });
        }
        walks
    }

    fn get(&self, sequence: ObjectSeq) -> Option<&Walk> {
        let place = self.0.binary_search_by_key(&sequence, |walk| walk.link.sequence).ok()?;
        self.0.get(place)
    }

    /// The latest object of a kind. One that links to itself names no predecessor, so any other
    /// comes before it.
    fn latest(&self, which: impl Fn(&Walk) -> bool) -> Option<&Walk> {
        self.0
            .iter()
            .filter(|walk| which(walk))
            .max_by_key(|walk| (!walk.links_to_itself, walk.age()))
    }

    /// The chain of an object as far back as its links hold, ascending.
    fn chain(&self, tip: &Walk) -> Vec<ObjectSeq> {
        let before = |sequence: &ObjectSeq| self.get(*sequence)?.predecessor;
        let chain = core::iter::successors(Some(tip.link.sequence), before);
        let mut chain: Vec<_> = chain.zip(0..=tip.held).map(|(sequence, _)| sequence).collect();
        chain.reverse();
        chain
    }

    /// The pipeline depth of an epoch's writer.
    fn depth(&self, epoch: Epoch) -> u16 {
        epoch
            .claim_sequence()
            .and_then(|sequence| self.get(sequence))
            .filter(|start| start.link.epoch == epoch && !start.links_to_itself)
            .and_then(|start| start.max_in_flight)
            // No writer has a depth of 0; such a record names none.
            .filter(|depth| *depth > 0)
            .unwrap_or(UNKNOWN_DEPTH)
    }
}

impl Walk {
    fn is_complete(&self) -> bool {
        self.broken.is_none_or(|broken| broken.at < self.boundary)
    }

    /// What orders the tip among the complete objects.
    fn age(&self) -> (Epoch, ObjectSeq) {
        (self.link.epoch, self.link.sequence)
    }

    fn claims_its_epoch(&self) -> bool {
        self.link.epoch == Epoch::claimed_at(self.link.sequence)
    }

    fn lost(&self, proof: Proof) -> LostHistory {
        // What links to itself names no predecessor: its boundary and its place tell of one.
        let missing = match self.broken {
            Some(broken) if broken.missing != self.link.sequence => broken.missing,
            _ if proof == Proof::BoundaryBeyondTip => ObjectSeq(self.boundary.0.saturating_sub(1)),
            _ => ObjectSeq(self.link.sequence.0.saturating_sub(1)),
        };
        LostHistory { proof, missing, because: self.link }
    }
}

#[cfg(test)]
mod tests;
