//! Claiming the lowest free sequence behind the tip, where every older writer would have to pass
//! (DESIGN.md section 12, rules 1 and 2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::examine::Examined;
use super::recover::{Selected, boundary};
use super::requests::{Ask, Purpose, Request};
use super::start::{encode, record};
use super::{Opening, Phase};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::format::{Header, SegmentMeta, WriterRecord};
use crate::types::{Epoch, Link, ObjectSeq};

/// A claim on its way.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    header: Header,
    record: WriterRecord,
    size: u64,
    segments: Vec<SegmentMeta>,
    selected: Selected,
}

impl Opening {
    pub(super) fn claim(&mut self, sequence: ObjectSeq, selected: Selected) {
        // A claim that no start object could follow would only end a writer that still runs.
        let room = selected.next_sequence_after(sequence, &self.known);
        let (Some(tip), Some(_)) = (selected.tip(), room) else {
            return self.fail(Error::SequenceExhausted);
        };
        self.suspicion = None;
        // Few holes are claimed however slow the store is.
        let many = self.own.claimed.len() as u64 >= u64::from(self.options.open_attempts);
        if many && self.now > self.began.after(self.options.open_timeout) {
            return self.too_many_holes(sequence, tip);
        }
        let itself = Link { sequence, epoch: Epoch::claimed_at(sequence) };
        let key = self.prefix.object_key(sequence);
        if self.own.claimed.contains(&sequence) && !self.may_start_again() {
            // Something removes it, or no listing shows it.
            return self.fail(Error::Contended { key, epoch: itself.epoch, writer: None });
        }
        let header = Header {
            sequence,
            epoch: itself.epoch,
            predecessor: Some(if self.rules.claims_link_to_themselves { itself } else { tip }),
            boundary: boundary(&self.known, tip),
        };
        let record = record(&self.options, &self.own.identity);
        let (payload, segments) = encode(&header, &record);
        let size = payload.len();
        self.requests.push(Request::new(Purpose::Claim, key, Ask::Put(payload)));
        self.phase = Phase::Claiming(Claim { header, record, size, segments, selected });
    }

    /// A writer whose floor was raised far, and whose object landed late, leaves a hole per sequence
    /// in between. The claims so far stand, so that another opening goes on from here.
    fn too_many_holes(&mut self, free: ObjectSeq, tip: Link) {
        let beyond = self.known.range(free..).next();
        let (sequence, epoch) =
            beyond.map_or((free, tip.epoch), |(sequence, object)| (*sequence, object.header.epoch));
        let key = self.prefix.object_key(sequence);
        let writer = super::recover::names(&self.known).get(&epoch).cloned();
        self.fail(Error::Contended { key, epoch, writer });
    }

    /// Whatever the claim finds at its key: only another listing tells what that means.
    pub(super) fn claim_answered(&mut self, request: Request, answer: Result<(), StoreError>) {
        let Phase::Claiming(claim) = core::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        let failure = match answer {
            Ok(()) => return self.claimed(claim),
            Err(failure) => failure,
        };
        match failure.kind {
            // It may be our own, whose answer was lost: that is no start anew.
            StoreErrorKind::Exists if request.repeated => self.list(self.now),
            StoreErrorKind::Exists => {
                // Most often the tip's writer, which still runs.
                let names = super::recover::names(&self.known);
                let epoch = claim.selected.tip().map_or(claim.header.epoch, |tip| tip.epoch);
                let writer = names.get(&epoch).cloned();
                self.start_again(request.key, epoch, writer);
            }
            StoreErrorKind::NotSupported => self.fail(Error::UnsafeStore { key: request.key }),
            _ if failure.is_retryable() => {
                let mut request = request;
                let delay = request.backoff.next();
                self.phase = Phase::Claiming(claim);
                self.try_later(request, delay, failure);
            }
            _ => self.fail(request.failed(failure)),
        }
    }

    /// Our own claim need not be read.
    fn claimed(&mut self, claim: Claim) {
        let Claim { header, record, size, segments, mut selected } = claim;
        let writer = Some(Box::new(record));
        let object = Examined { header, size, segments, releases: None, writer };
        self.known.insert(header.sequence, object);
        self.own.claimed.insert(header.sequence);
        if self.rules.list_after_claim {
            return self.list(self.now);
        }
        selected.add(header.sequence);
        self.clear_the_way(selected);
    }
}
