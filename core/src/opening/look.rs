//! The look after the start object: whatever came in between (DESIGN.md section 12, rule 3).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::requests::{Ask, Purpose, Request};
use super::start::Start;
use super::{Listing, Opening, Phase, unconfirmed, unsettled};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::event::{Listed, ReadBack};
use crate::listing::Round;
use crate::types::{Epoch, ObjectSeq, Time};

/// A start object that is created, while the opening looks whether it was the last to come.
#[derive(Clone, Debug)]
pub(super) struct Look {
    start: Start,
    listing: Listing,
    /// Objects that the listing before did not show, and whose headers are being read.
    pending: BTreeSet<ObjectSeq>,
    /// An object of a later epoch that is no claim.
    later: Option<(ObjectSeq, Epoch)>,
    /// An object of an earlier epoch that is no claim.
    new: Option<(ObjectSeq, Epoch)>,
}

impl Look {
    /// Where what it looks at begins.
    pub(super) fn above(&self) -> ObjectSeq {
        self.start.tip().map_or(ObjectSeq::ZERO, |tip| tip.sequence.next())
    }

    pub(super) fn into_start(self) -> Start {
        self.start
    }
}

impl Opening {
    pub(super) fn look(&mut self, start: Start) {
        if self.rules.second_look {
            self.look_at(start, self.now);
        } else {
            self.reread(start);
        }
    }

    /// Lists what is behind the tip, at this time.
    pub(super) fn look_at(&mut self, start: Start, due: Time) {
        let prefix = self.prefix.objects();
        let after = start.tip().map(|tip| self.prefix.object_key(tip.sequence));
        let listing = Listing::new(&self.prefix, after.clone(), self.trust());
        self.requests.delay(Request::list(prefix, after), due);
        let (later, new) = (None, None);
        let look = Look { start, listing, pending: BTreeSet::new(), later, new };
        self.phase = Phase::Looking(Box::new(look));
    }

    pub(super) fn look_listed(&mut self, keys: Vec<Listed>) {
        let Phase::Looking(look) = &mut self.phase else { return };
        let round = look.listing.take(keys);
        self.unordered |= look.listing.is_unordered();
        let prefix = self.prefix.objects();
        match round {
            Round::Done(listing) => self.looked(listing),
            Round::More { after } => self.requests.push(Request::list(prefix, after)),
            Round::Unsettled { after, .. } if self.may_start_again() => {
                self.requests.push(Request::list(prefix, after));
            }
            Round::Unsettled { .. } => self.fail(unsettled(prefix)),
        }
    }

    fn looked(&mut self, listing: Vec<Listed>) {
        let objects = self.sorted(listing);
        if let Some(key) = self.lacks_what_was_created(&objects) {
            return self.disbelieve(key);
        }
        let Phase::Looking(look) = &mut self.phase else { return };
        let (start, above) = (&look.start, look.above());
        // The store may ignore from where on it was to list.
        let new = objects
            .into_keys()
            .filter(|sequence| *sequence >= above && !start.knows(*sequence))
            .collect::<BTreeSet<_>>();
        for sequence in &new {
            let key = self.prefix.object_key(*sequence);
            self.requests.push(Request::new(Purpose::Look(*sequence), key, Ask::ReadBack));
        }
        look.pending = new;
        self.end_look();
    }

    pub(super) fn looked_at(&mut self, request: Request, result: Result<ReadBack, StoreError>) {
        let Purpose::Look(sequence) = request.purpose else { return };
        let found = match result {
            Ok(found) if !found.is_whole() => {
                return self.read_failed(request, StoreError::new(StoreErrorKind::Transient));
            }
            Ok(found) => found,
            // It was there, and something removed it: only another listing tells.
            Err(error) if error.kind == StoreErrorKind::NotFound => {
                let text = "the listing shows it, and it is gone";
                let gone = StoreError::with_text(StoreErrorKind::Transient, text);
                return self.start_again_after(request.failed(gone));
            }
            Err(error) => return self.read_failed(request, error),
        };
        let header = match found.header_at(sequence) {
            Ok(header) => header,
            // It is judged as whatever else a listing shows, and confirmed by the next.
            Err(error) => {
                let error = unconfirmed(Error::corrupted(request.key, error));
                return self.start_again_after(error);
            }
        };
        let rules = self.rules;
        let Phase::Looking(look) = &mut self.phase else { return };
        look.pending.remove(&sequence);
        let claim = header.links_to_itself() && rules.new_claims_are_ignored;
        if !claim && header.epoch > look.start.epoch() {
            look.later = Some((sequence, header.epoch));
        } else if !claim {
            look.new = Some((sequence, header.epoch));
        }
        self.end_look();
    }

    fn end_look(&mut self) {
        let rules = self.rules;
        if !matches!(&self.phase, Phase::Looking(look) if look.pending.is_empty()) {
            return;
        }
        let Phase::Looking(look) = core::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        match (look.later, look.new) {
            (Some((sequence, epoch)), _) if rules.later_epoch_contends => {
                let key = self.prefix.object_key(sequence);
                self.fail(Error::Contended { key, epoch, writer: None });
            }
            (_, Some((sequence, epoch))) if rules.new_object_starts_again => {
                let key = self.prefix.object_key(sequence);
                self.start_again(key, epoch, None);
            }
            _ => self.reread(look.start),
        }
    }
}
