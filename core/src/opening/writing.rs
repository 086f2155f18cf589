//! The way to a log that can be written: what it does beside what all ways do.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::aim::Steps;
use super::claim::Claimed;
use super::examine::Examination;
use super::recover::Recovery;
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
    pub(super) claims: Claimed,
    /// Where it put a claim or a start object, unless it is known that nothing came of it.
    pub(super) put: BTreeSet<ObjectSeq>,
    /// Where its start objects stand: one for each time that it came so far.
    pub(super) started: BTreeSet<ObjectSeq>,
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
        let own = Claiming {
            identity,
            claims: Claimed::default(),
            put: BTreeSet::new(),
            started: BTreeSet::new(),
        };
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

    fn expected(opening: &Opening) -> Vec<Key> {
        // A look lists from the tip on, which an earlier claim can be below by then.
        let from = match &opening.phase {
            Phase::Looking(look) => look.above(),
            _ => ObjectSeq::ZERO,
        };
        let claims = opening.own.claims.created.range(from..).map(|(sequence, _)| sequence);
        let starts = opening.own.started.range(from..);
        claims.chain(starts).map(|sequence| opening.prefix.object_key(*sequence)).collect()
    }

    fn counts_what_came(opening: &Opening) -> bool {
        opening.rules.claims_go_ahead && opening.own.claims.was_lost()
    }

    fn put(opening: &Opening) -> Vec<ObjectSeq> {
        opening.own.put.iter().copied().collect()
    }

    fn unsettled(opening: &mut Opening, after: Option<Key>, largest: Option<ObjectSeq>) -> bool {
        match largest {
            Some(largest) => opening.claim_ahead_of(largest, after),
            None => false,
        }
    }

    fn list_again(opening: &mut Opening, due: Time) {
        match core::mem::replace(&mut opening.phase, Phase::Ended) {
            Phase::Looking(look) => opening.look_at(look.into_start(), due),
            _ => opening.list(due),
        }
    }

    fn examined(opening: &mut Opening, examination: Examination) {
        opening.know_own_claims(&examination);
        if let Some(found) = opening.sound(examination) {
            opening.select(found, false);
        }
    }

    fn recovered(opening: &mut Opening, recovery: Recovery) {
        opening.clear_the_way(recovery);
    }

    fn answered(opening: &mut Opening, request: Request, answer: StorageAnswer) {
        match answer {
            StorageAnswer::Listed { result, .. } => match result {
                Ok(listing) => opening.look_listed(listing),
                Err(error) => opening.read_failed(request, error),
            },
            StorageAnswer::Fetched { result, .. } => match request.body(result) {
                Ok(body) => opening.start_fetched(body),
                Err(error) => opening.read_failed(request, error),
            },
            StorageAnswer::CreateResult { result, .. } => match opening.phase {
                Phase::Claiming(_) => opening.claim_answered(request, result),
                _ => opening.put_answered(request, result),
            },
            StorageAnswer::ReadBackResult { result, .. } => match opening.phase {
                Phase::Looking(_) => opening.looked_at(request, result),
                Phase::Rereading(_) => opening.reread_back(request, result),
                _ => opening.read_back_answered(result),
            },
            // An opening deletes nothing.
            StorageAnswer::DeleteResult { .. } => {}
        }
    }
}

impl Opening {
    /// Claims what must be claimed, and goes on to the start object when nothing must.
    pub(super) fn clear_the_way(&mut self, recovery: Recovery) {
        self.meet_what_was_lost_to();
        let holes = recovery.to_claim(&self.known, self.rules);
        if holes.is_empty() {
            self.start(recovery);
        } else {
            self.claim(&holes, recovery);
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

    /// What came in between does not say what it is: another listing tells.
    pub(super) fn start_again_after(&mut self, error: Error) {
        if !self.may_start_again() {
            return self.fail(error);
        }
        self.notice(Notice::OpeningRetries { error });
        self.requests.clear();
        self.list(self.now);
    }
}
