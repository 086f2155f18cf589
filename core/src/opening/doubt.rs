//! Whether an object that does not verify is the one that was listed (DESIGN.md section 12, rule 6).
//!
//! A collection may delete an object after it was listed, and a claim or a late create may come to
//! its key before it is read: what is read then by the listed size does not verify, and nothing is
//! damaged. Its size tells, or its header.

use alloc::boxed::Box;

use super::aim::Steps;
use super::requests::{Ask, Purpose, Request};
use super::{Opening, Phase, unconfirmed};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::event::ReadBack;
use crate::format::Header;
use crate::types::ObjectSeq;

/// An object that does not verify, also not when it is fetched once more.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub(super) sequence: ObjectSeq,
    /// The header that was fetched, if that verifies.
    pub(super) header: Option<Header>,
    /// What the opening fails with if it is the object that was listed.
    pub(super) error: Error,
}

impl<T: Steps> Opening<T> {
    /// Looks once more at an object that does not verify, before the opening fails with it.
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if !self.rules.confirm_corruption {
            return self.fail(doubt.error);
        }
        let key = self.prefix.object_key(doubt.sequence);
        self.requests.push(Request::new(Purpose::Doubt, key, Ask::ReadBack));
        self.phase = Phase::Doubting(Box::new(doubt));
    }

    pub(super) fn doubted(&mut self, request: Request, result: Result<ReadBack, StoreError>) {
        let Phase::Doubting(doubt) = &self.phase else { return };
        let Doubt { sequence, header, error } = (**doubt).clone();
        let listed = self.shown.get(&sequence).map(|shown| shown.size);
        let is_same = |found: &ReadBack| {
            Some(found.size) == listed && Header::decode(&found.header).ok() == header
        };
        match result {
            Ok(found) if is_same(&found) => self.fail(error),
            Err(failure) if failure.is_retryable() => self.read_failed(request, failure),
            Err(failure) if failure.kind != StoreErrorKind::NotFound => self.fail(error),
            Ok(_) | Err(_) => self.list_anew(error),
        }
    }

    /// Another object is there than the one that was listed, or none any more: that says nothing of
    /// damage, and only another listing tells.
    fn list_anew(&mut self, error: Error) {
        if !self.may_start_again() {
            return self.fail(unconfirmed(error));
        }
        self.list_again(error);
        self.suspicion = None;
    }
}
