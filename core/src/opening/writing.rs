//! The way to a log that can be written: what it does beside what all ways do.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;

use super::aim::Steps;
use super::examine::Examination;
use super::recover::{Recovery, Selected};
use super::requests::Request;
use super::{Identity, Opening, Phase, Recovered};
use crate::error::Error;
use crate::event::{Notice, StorageAnswer};
use crate::key::{Key, Prefix};
use crate::options::Options;
#[cfg(feature = "exploration")]
use crate::rules::Rules;
use crate::types::{Epoch, ObjectSeq, Time};

/// What an opening that writes keeps.
#[derive(Clone, Debug)]
pub struct Claiming {
    pub(super) identity: Identity,
    /// Where it created a claim.
    pub(super) claimed: BTreeSet<ObjectSeq>,
}

impl Opening {
    /// Begins to open the log at `prefix`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`]: nothing is touched.
    pub fn new(
        now: Time,
        prefix: Prefix,
        options: Options,
        identity: Identity,
    ) -> Result<Opening, Error> {
        options.validate()?;
        let own = Claiming { identity, claimed: BTreeSet::new() };
        Ok(Opening::begin(now, prefix, options, own))
    }

    /// Takes rules of section 12 out, to explore what breaks without them.
    #[cfg(feature = "exploration")]
    pub fn with_rules(mut self, rules: Rules) -> Opening {
        self.rules = rules;
        self
    }
}

impl Steps for Recovered {
    type Own = Claiming;

    fn examined(opening: &mut Opening, examination: Examination) {
        if let Some(selected) = opening.select(examination) {
            opening.clear_the_way(selected);
        }
    }

    fn recovered(opening: &mut Opening, recovery: Recovery) {
        opening.start(recovery);
    }

    fn answered(opening: &mut Opening, request: Request, answer: StorageAnswer) {
        match answer {
            StorageAnswer::Listed { result, .. } => match result {
                Ok(listing) => opening.looked(listing),
                Err(error) => opening.read_failed(request, error),
            },
            StorageAnswer::Fetched { result, .. } => match request.body(result) {
                Ok(bytes) => opening.start_fetched(bytes),
                Err(error) => opening.read_failed(request, error),
            },
            StorageAnswer::CreateResult { result, .. } => match opening.phase {
                Phase::Claiming(_) => opening.claim_answered(request, result),
                _ => opening.put_answered(request, result),
            },
            StorageAnswer::ReadBackResult { result, .. } => match opening.phase {
                Phase::Looking(_) => opening.looked_at(request, result),
                _ => opening.read_back_answered(result),
            },
            // An opening deletes nothing.
            StorageAnswer::DeleteResult { .. } => {}
        }
    }
}

impl Opening {
    /// Claims what must be claimed, and goes on when nothing must.
    pub(super) fn clear_the_way(&mut self, selected: Selected) {
        match selected.to_claim(&self.known, self.rules) {
            Some(sequence) => self.claim(sequence, selected),
            None => self.recover_selected(selected),
        }
    }

    /// Another writer's object came in between: history may have grown.
    pub(super) fn start_again(&mut self, key: Key, epoch: Epoch, writer: Option<Arc<str>>) {
        if !self.may_start_again() {
            return self.fail(Error::Contended { key, epoch, writer });
        }
        self.notice(Notice::OpeningAgain { key, epoch });
        self.requests.clear();
        self.list(self.now);
    }
}
