//! The checks of what an instance reads: right after it opened, and while it runs (DESIGN.md
//! section 13, 1 and 2).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use sealog_core::{EntryId, Link, ObjectSeq, RegionId};

use super::journal::{AppendFate, Checked, Journal, Place, Violation, ensure};
use super::tally::Reached;

/// All that was read, region by region, in the order in which it came.
pub type Observed = BTreeMap<RegionId, Vec<Seen>>;

/// An entry that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The object that holds it.
    pub object: Link,
    /// Its id.
    pub id: EntryId,
    /// Its payload.
    pub payload: Bytes,
}

impl Journal {
    /// What an instance that just opened reads becomes history, if it may be.
    ///
    /// # Errors
    ///
    /// It may not: something acknowledged is missing, something is there that must not be, or it
    /// is not in order.
    pub fn opened(&mut self, observed: &Observed) -> Checked {
        let places = self.recognise(observed)?;
        let present: BTreeSet<usize> = places.values().map(|(append, _)| *append).collect();
        let hidden = |at: &(RegionId, EntryId)| self.index.hides(at);
        let first_present = observed.values().flatten().map(|seen| seen.object.sequence).min();
        for append in 0..self.appends.len() {
            self.judge(append, present.contains(&append), &places, first_present, &hidden)?;
        }
        self.log.clear();
        for ((region, id), place) in places {
            self.log.entry(region).or_default().insert(id, place);
        }
        for (place, record) in self.appends.iter_mut().enumerate() {
            let back = present.contains(&place);
            self.tally.count_if(back && record.fate == AppendFate::Unknown, Reached::CameBack);
            self.tally.count_if(!back && record.fate == AppendFate::InLog, Reached::Reclaimed);
            record.fate = if back { AppendFate::InLog } else { AppendFate::Out };
        }
        self.tally.count(Reached::Opened);
        Ok(())
    }

    /// What a running instance reads is exactly history, without what is obsolete.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn reads(&self, observed: &Observed) -> Checked {
        let found = self.recognise(observed)?;
        let visible = self.log.iter().flat_map(|(region, log)| {
            log.range(self.above(*region)).map(|(id, place)| ((*region, *id), *place))
        });
        let visible: BTreeMap<_, _> = visible.collect();
        for ((region, id), place) in &visible {
            ensure!(
                found.get(&(*region, *id)) == Some(place),
                "entry {id} of region {region} is part of history, and was not read"
            );
        }
        for (region, id) in found.keys() {
            ensure!(
                visible.contains_key(&(*region, *id)),
                "entry {id} of region {region} was read, and is obsolete or no part of history"
            );
        }
        Ok(())
    }

    /// Where each entry that was read comes from. Each was sent by some instance to this very
    /// object, with this id and payload; each is there once; and the entries of a region are in
    /// the order of their ids, and of their appends.
    fn recognise(&self, observed: &Observed) -> Checked<BTreeMap<(RegionId, EntryId), Place>> {
        let mut places = BTreeMap::new();
        let mut seen_before = BTreeSet::new();
        for (region, entries) in observed {
            let mut before: Option<(EntryId, Place)> = None;
            for Seen { object, id, payload } in entries {
                let sent = self.sent.get(object).and_then(|sent| sent.entries.get(&(*region, *id)));
                let Some(place) = sent.copied() else {
                    return Err(Violation(format!(
                        "entry {id} of region {region} was read from {object}, and nobody sent it"
                    )));
                };
                ensure!(
                    self.payload(place) == payload,
                    "entry {id} of region {region} was read with another payload"
                );
                ensure!(seen_before.insert(place), "entry {place:?} was read twice");
                ensure!(
                    before.is_none_or(|before| before.0 < *id && before.1 < place),
                    "entry {id}, {place:?}, of region {region} was read after {before:?}"
                );
                let released = self.released.get(region).copied().unwrap_or_default();
                ensure!(
                    released <= place.0,
                    "entry {id} of region {region} was read, and was released before {released}"
                );
                before = Some((*id, place));
                places.insert((*region, *id), place);
            }
        }
        Ok(places)
    }

    fn judge(
        &self,
        append: usize,
        present: bool,
        places: &BTreeMap<(RegionId, EntryId), Place>,
        first_present: Option<ObjectSeq>,
        hidden: &impl Fn(&(RegionId, EntryId)) -> bool,
    ) -> Checked {
        let record = &self.appends[append];
        let Some(link) = record.sent else { return Ok(()) };
        let sent = &self.sent[&link];
        let entries = sent.entries.iter().filter(|(_, place)| place.0 == append);
        let missing =
            entries.clone().find(|(at, place)| places.get(at) != Some(*place) && !hidden(at));
        ensure!(
            !present || missing.is_none(),
            "append {append} in {link} came back in part: {missing:?} is missing"
        );
        match (record.fate, present) {
            (AppendFate::Pending, _) => Err(Violation(format!("append {append} still pends"))),
            (AppendFate::Out, true) => Err(Violation(format!(
                "append {append} in {link} came back, and was known to be no part of history"
            ))),
            (AppendFate::Out, false) | (AppendFate::InLog, true) | (AppendFate::Unknown, false) => {
                Ok(())
            }
            (AppendFate::InLog, false) => {
                let released = entries.clone().any(|(at, _)| hidden(at));
                // What was forgotten is no part of it any more.
                let above = |(region, id): &(RegionId, EntryId)| {
                    *id > self.watermark(*region)
                        && self.log.get(region).is_some_and(|log| log.contains_key(id))
                };
                let mut needed = entries.filter(|(at, _)| above(at) && !hidden(at));
                let needed = needed.next();
                ensure!(
                    needed.is_none(),
                    "append {append} in {link} is lost: {needed:?} was acknowledged"
                );
                ensure!(
                    released || first_present.is_none_or(|first| link.sequence < first),
                    "append {append} in {link} is gone, and an earlier one is not"
                );
                Ok(())
            }
            (AppendFate::Unknown, true) => self.may_come_back(append, link, places, hidden),
        }
    }

    /// An append of an unknown outcome may come back if its writer acknowledged nothing after it,
    /// and if all that its object follows is there too.
    fn may_come_back(
        &self,
        append: usize,
        link: Link,
        places: &BTreeMap<(RegionId, EntryId), Place>,
        hidden: &impl Fn(&(RegionId, EntryId)) -> bool,
    ) -> Checked {
        let sent = &self.sent[&link];
        let Some(writer) = self.instances.get(&sent.instance) else {
            return Err(Violation(format!("append {append} came back of no instance")));
        };
        ensure!(
            link.sequence > writer.durable.sequence,
            "append {append} in {link} failed and came back, and its writer acknowledged {}",
            writer.durable
        );
        let Some(before) = sent.predecessor.filter(|before| *before != writer.durable) else {
            return Ok(());
        };
        // Where only release records were sent, there is nothing to see.
        let there = self.sent.get(&before).is_some_and(|before| {
            before.entries.iter().all(|(at, place)| hidden(at) || places.get(at) == Some(place))
        });
        ensure!(there, "append {append} in {link} came back, and {before} before it did not");
        Ok(())
    }
}
