//! The checks of what a writer says: each waiter is answered once, as what happened allows, in
//! order (DESIGN.md sections 5 and 7, and section 13, 6).

use sealog_core::error::Operation;
use sealog_core::event::{Answer, Append, Appended, Notice};
use sealog_core::format::Header;
use sealog_core::{EntryId, Error, Outcome, RegionId, Stats, Time};

use super::objects::is_key_of;
use super::{
    AppendFate, Call, Checked, Journal, Refusal, Violation, Waiter, What, ensure, last,
    unknown_instance,
};
use crate::model::ModelStore;
use crate::sim::tally::Reached;

impl Journal {
    /// A waiter is answered.
    pub(in crate::sim) fn ack(
        &mut self,
        waiter: Waiter,
        answer: &Answer,
        store: &ModelStore,
    ) -> Checked {
        let Call { instance, what, .. } = self.answer(waiter)?;
        match (what, answer) {
            (What::Append(place), Answer::Appended(ids)) => {
                self.acknowledge(instance, place, ids, store)?;
                match ids.ids() {
                    // Nothing had to become durable for it.
                    [] => Ok(()),
                    _ => self.pay(instance, waiter),
                }
            }
            (What::Flush(waits), Answer::Done) => {
                let fates = &self.appends;
                let open = waits.iter().find(|place| fates[**place].fate != AppendFate::InLog);
                ensure!(open.is_none(), "flush {waiter} returned before append {open:?}");
                Ok(())
            }
            (What::Obsolete { region, id, unsettled }, Answer::Done) => {
                ensure!(!unsettled, "obsolete {waiter} hides entries that are on their way");
                let state = self.instance(instance)?;
                ensure!(!state.stopped, "obsolete {waiter} was done after stop");
                let raises = id.sequence() > state.last_put.next();
                self.tally.count_if(raises, Reached::Floor);
                for known in [&mut self.watermarks, &mut self.floors] {
                    let known = known.entry(region).or_default();
                    *known = id.max(*known);
                }
                self.forget(instance)
            }
            (What::Release { region, in_full, place }, Answer::Done) => {
                self.released(instance, region, in_full, place)?;
                match self.index.holds(region) {
                    true => self.pay(instance, waiter),
                    // Of a region of which nothing is there, nothing had to become durable.
                    false => Ok(()),
                }
            }
            (What::Verdict { segment, gone }, Answer::Verdict(verdict)) => {
                self.judged(segment, gone, *verdict)
            }
            (What::Stop, Answer::Done) => {
                let state = self.instance(instance)?;
                ensure!(state.pending.is_empty(), "stopped, with {:?} pending", state.pending);
                state.stopped = true;
                // No record may be lost.
                self.pay(instance, usize::MAX)
            }
            (what, answer) => Err(Violation(format!("{what:?} was answered with {answer:?}"))),
        }
    }

    fn acknowledge(
        &mut self,
        instance: usize,
        place: usize,
        ids: &Appended,
        store: &ModelStore,
    ) -> Checked {
        let record = &mut self.appends[place];
        let (entries, refused) = (record.append.entries().len(), record.refused);
        ensure!(refused.is_none(), "append {place} was acknowledged, not refused: {refused:?}");
        let alike = matches!(
            (&record.append, ids),
            (Append::One(..), Appended::One(_)) | (Append::Many(_), Appended::Many(_))
        );
        ensure!(alike, "append {place} was answered with {ids:?}");
        record.fate = AppendFate::InLog;
        if entries == 0 {
            ensure!(ids.ids().is_empty(), "an empty append got {ids:?}");
            return Ok(());
        }
        let Some(link) = record.sent else {
            return Err(Violation(format!("append {place} was acknowledged and never sent")));
        };
        ensure!(
            record.ids == ids.ids(),
            "append {place} was acknowledged with {ids:?}, and {link} holds {:?}",
            record.ids
        );
        let ids = record.ids.clone();
        let regions: Vec<_> = record.append.entries().map(|(region, _)| region).collect();
        for (at, (region, id)) in regions.into_iter().zip(ids).enumerate() {
            let log = self.log.entry(region).or_default();
            let last = log.keys().next_back().copied().unwrap_or_default();
            ensure!(last < id, "region {region} got id {id} after {last}");
            log.insert(id, (place, at));
        }
        let stored = store.objects().find(|(key, _)| is_key_of(key, link));
        let stored = stored.map(|(_, bytes)| bytes);
        let sent = self.sent.get(&link).map(|sent| sent.payload.to_bytes());
        ensure!(
            stored.is_some() && stored == sent.as_ref(),
            "append {place} was acknowledged, and {link} is not stored"
        );
        self.tally.count(Reached::Acknowledged);
        let state = self.instance(instance)?;
        let earlier = state.pending.first().copied().filter(|first| *first != place);
        ensure!(earlier.is_none(), "append {place} was acknowledged before {earlier:?}");
        state.pending.remove(&place);
        if link.sequence > state.durable.sequence {
            state.durable = link;
        }
        Ok(())
    }

    /// Waiters fail.
    pub(in crate::sim) fn fail(
        &mut self,
        waiters: &[Waiter],
        error: &Error,
        outcome: Outcome,
    ) -> Checked {
        for waiter in waiters {
            let Call { instance, what, .. } = self.answer(*waiter)?;
            let of_stop = matches!(error, Error::Stopped);
            let fits = match error {
                Error::Stopped | Error::Store { .. } | Error::Conflict { .. } => true,
                Error::InvalidRegion { region } => match what {
                    What::Append(_) => true,
                    What::Obsolete { region: of, .. } => of == *region && of.is_reserved(),
                    What::Release { region: of, .. } => of == *region && of.is_reserved(),
                    What::Flush(_) | What::Verdict { .. } | What::Stop => false,
                },
                Error::Released { region } => match &what {
                    What::Append(place) => {
                        let mut entries = self.appends[*place].append.entries();
                        entries.any(|(of, _)| of == *region)
                            && self.may_be_refused(instance, *region)
                    }
                    _ => false,
                },
                Error::Lost { entries: 0, releases, .. } => {
                    let owed = self.owed(instance) as u64;
                    matches!(what, What::Stop) && (1..=owed).contains(releases)
                }
                Error::AppendTooLarge { .. } => matches!(what, What::Append(_)),
                Error::IdTooFar { id: refused, limit } => {
                    refused > limit && matches!(what, What::Obsolete { id, .. } if id == *refused)
                }
                Error::Unsettled { .. } => matches!(what, What::Obsolete { unsettled: true, .. }),
                Error::SequenceExhausted => matches!(
                    what,
                    What::Obsolete { id, .. } if !id.sequence().next().is_valid()
                ),
                _ => false,
            };
            ensure!(fits, "{what:?} failed: {error}");
            match what {
                What::Append(place) => self.fail_append(instance, place, error, outcome)?,
                What::Flush(_) | What::Obsolete { .. } => {}
                What::Release { region, place, .. } => {
                    self.release_failed(instance, (region, place), error, outcome)?;
                }
                What::Verdict { .. } => ensure!(of_stop, "no verdict: {error}"),
                What::Stop if matches!(error, Error::Lost { .. }) => {
                    self.tally.count(Reached::StopLostRecords);
                    self.instance(instance)?.stopped = true;
                }
                What::Stop => {
                    ensure!(of_stop && self.instance(instance)?.abandoned, "stop failed: {error}")
                }
            }
            ensure!(
                !of_stop || self.instance(instance)?.stopping,
                "call {waiter} failed as stopped, and nobody called stop"
            );
            self.forget(instance)?;
        }
        Ok(())
    }

    fn fail_append(
        &mut self,
        instance: usize,
        place: usize,
        error: &Error,
        outcome: Outcome,
    ) -> Checked {
        let record = &mut self.appends[place];
        ensure!(
            record.sent.is_some() == (outcome == Outcome::Unknown),
            "append {place} failed as {outcome:?}, and it was sent in {:?}",
            record.sent
        );
        match outcome {
            Outcome::Unknown => self.tally.count(Reached::Unknown),
            Outcome::NotWritten => self.tally.count(Reached::NotWritten),
        }
        record.fate = match outcome {
            Outcome::Unknown => AppendFate::Unknown,
            Outcome::NotWritten => AppendFate::Out,
        };
        let refusal = match error {
            Error::InvalidRegion { .. } => Some(Refusal::Region),
            Error::AppendTooLarge { .. } => Some(Refusal::Size),
            Error::Released { .. } => Some(Refusal::Released),
            _ => None,
        };
        match record.refused {
            // A release may be ahead of it in the queue.
            None | Some(Refusal::Released | Refusal::Region | Refusal::Size)
                if refusal == Some(Refusal::Released) =>
            {
                self.tally.count(Reached::RefusedAsReleased);
            }
            None => ensure!(refusal.is_none(), "append {place} is valid, and failed: {error}"),
            Some(Refusal::Stopped) => {
                ensure!(matches!(error, Error::Stopped), "append {place} after stop: {error}");
            }
            expected => ensure!(refusal == expected, "append {place} failed: {error}"),
        }
        if record.refused.is_none() {
            let state = self.instance(instance)?;
            let earlier = state.pending.first().copied().filter(|first| *first != place);
            let released = refusal == Some(Refusal::Released);
            if released {
                state.order.retain(|of| *of != place);
            }
            ensure!(
                earlier.is_none() || state.stopping || released,
                "append {place} failed before {earlier:?} was answered"
            );
            state.pending.remove(&place);
            state.unsent.retain(|unsent| *unsent != place);
        }
        Ok(())
    }

    /// The operator is told something.
    pub(in crate::sim) fn notice(
        &mut self,
        instance: usize,
        now: Time,
        notice: &Notice,
        store: &ModelStore,
    ) -> Checked {
        match notice {
            Notice::RolledBack { error, .. } => {
                self.tally.count(Reached::RolledBack);
                if let Error::Conflict { key } = error {
                    self.tally.count(Reached::Conflict);
                    let held = store.get(key).and_then(|bytes| Header::decode(bytes).ok());
                    let state = self.instance(instance)?;
                    let ours = state.start.epoch;
                    state.conflicts.insert(key.clone());
                    ensure!(
                        held.is_some_and(|header| header.epoch < ours),
                        "{key} holds {held:?}, which is no conflict"
                    );
                }
                if let Error::Store { operation, key, source } = error
                    && source.is_retryable()
                {
                    let create = (*operation == Operation::Create).then_some(key);
                    self.may_give_up(instance, now, create)?;
                }
                let state = self.instance(instance)?;
                state.rolled_back = true;
                state.sealed.clear();
                state.tail = state.durable;
                Ok(())
            }
            // Nobody else writes here, and nothing damages what is stored.
            Notice::Poisoned { error } => Err(Violation(format!("poisoned: {error}"))),
            _ => Ok(()),
        }
    }

    /// The durable position of a watched region is told.
    pub(in crate::sim) fn told(
        &mut self,
        instance: usize,
        region: RegionId,
        id: EntryId,
    ) -> Checked {
        let durable = self.durable(region);
        let told = self.instance(instance)?.told.insert(region, id);
        ensure!(told.is_none_or(|told| told < id), "region {region}: {id} was told after {told:?}");
        ensure!(id <= durable, "region {region}: {id} was told durable, and {durable} is");
        Ok(())
    }

    /// A writer has handled one event and its effects were taken.
    pub(in crate::sim) fn after_event(
        &mut self,
        instance: usize,
        stats: &Stats,
        creates: usize,
    ) -> Checked {
        let live = self.first_live();
        let Journal { instances, tally, .. } = self;
        let state = instances.get_mut(&instance).ok_or_else(unknown_instance)?;
        let admitted = stats.appends_total as usize;
        ensure!(
            state.admitted <= admitted && admitted <= state.order.len(),
            "{admitted} appends were admitted, of {}",
            state.order.len()
        );
        if state.rolled_back {
            let left =
                state.order[..state.admitted].iter().find(|place| state.pending.contains(place));
            ensure!(left.is_none(), "append {left:?} outlived a roll back");
            state.rolled_back = false;
        }
        tally.count_if(state.order.len() > admitted, Reached::Queued);
        state.admitted = admitted;
        ensure!(
            creates <= state.max_in_flight,
            "{creates} creates run at once, {} may",
            state.max_in_flight
        );
        let boundary = live.unwrap_or(state.durable.sequence.next());
        ensure!(
            stats.reclaim_boundary == boundary.0,
            "the reclaim boundary is {}, and should be {boundary}",
            stats.reclaim_boundary
        );
        for (region, told) in &state.told {
            let durable = last(&self.log, *region);
            // Nobody is told that nothing of the region is left.
            ensure!(
                durable == EntryId::ZERO || *told == durable,
                "region {region}: {durable} is durable, told was {told}"
            );
        }
        Ok(())
    }

    /// A writer has nothing under way and wants no tick: everybody must be answered.
    pub(in crate::sim) fn at_rest(&self, instance: usize) -> Checked {
        let open = self.calls.iter().position(|call| call.instance == instance && !call.answered);
        ensure!(open.is_none(), "nothing is left to do, and call {open:?} waits");
        Ok(())
    }
}
