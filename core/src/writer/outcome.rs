//! What became of a create: the first table of DESIGN.md section 5, "create outcomes".

use crate::error::{StoreError, StoreErrorKind};
use crate::event::{Payload, ReadBack};
use crate::options::AckMode;
use crate::types::{Epoch, Link, ObjectSeq};

/// How a put ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutAnswer {
    Succeeded,
    /// In a way that repeating does not change.
    Refused,
    /// In any other way, *exists* and *timed out* included: what stands at the key decides.
    Failed,
}

/// What stands at the key of a put that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtKey {
    /// Nothing.
    Absent,
    /// The read failed in a way that may pass.
    Unknown,
    /// The read was refused.
    Refused,
    /// Our header, our last 32 bytes (which hold the object's checksum), and our size.
    Ours,
    /// Another object, of this epoch.
    Other(Epoch),
    /// No WAL object, or one at the wrong key.
    NoObject,
}

/// The rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateOutcome {
    Created,
    Transient,
    Refused,
    Stale,
    Fenced(Epoch),
    Foreign,
}

impl PutAnswer {
    pub(crate) fn of(result: &Result<(), StoreError>) -> PutAnswer {
        match result {
            Ok(()) => PutAnswer::Succeeded,
            Err(error) => match error.kind {
                // Nothing is found by creating: it is the bucket that is missing.
                StoreErrorKind::Refused
                | StoreErrorKind::NotSupported
                | StoreErrorKind::NotFound => PutAnswer::Refused,
                StoreErrorKind::Exists | StoreErrorKind::TimedOut | StoreErrorKind::Transient => {
                    PutAnswer::Failed
                }
            },
        }
    }
}

impl AtKey {
    /// Compares what stands at the key with the object that was to be created there.
    pub(crate) fn of(
        result: &Result<ReadBack, StoreError>,
        link: Link,
        header: &[u8],
        payload: &Payload,
    ) -> AtKey {
        match result {
            Ok(found)
                if found.is_whole()
                    && found.size == payload.len()
                    && found.is_of(header, payload) =>
            {
                AtKey::Ours
            }
            _ => AtKey::found(result, link.sequence),
        }
    }

    /// The same where what stands there is known to be another's.
    pub(crate) fn found(result: &Result<ReadBack, StoreError>, sequence: ObjectSeq) -> AtKey {
        match result {
            Err(error) => match error.kind {
                StoreErrorKind::NotFound => AtKey::Absent,
                StoreErrorKind::Refused | StoreErrorKind::NotSupported => AtKey::Refused,
                StoreErrorKind::Exists | StoreErrorKind::TimedOut | StoreErrorKind::Transient => {
                    AtKey::Unknown
                }
            },
            // A shell that leaves something out has read nothing that decides.
            Ok(found) if !found.is_whole() => AtKey::Unknown,
            Ok(found) => found
                .header_at(sequence)
                .map_or(AtKey::NoObject, |header| AtKey::Other(header.epoch)),
        }
    }
}

/// The table. `at_key` is what the read-back found; it is made only if the put failed. `again`: no
/// object was found there before too.
pub(crate) fn decide(put: PutAnswer, at_key: AtKey, again: bool, epoch: Epoch) -> CreateOutcome {
    match (put, at_key) {
        (PutAnswer::Succeeded, _) => CreateOutcome::Created,
        (PutAnswer::Refused, _) => CreateOutcome::Refused,
        (PutAnswer::Failed, AtKey::Ours) => CreateOutcome::Created,
        (PutAnswer::Failed, AtKey::Absent | AtKey::Unknown) => CreateOutcome::Transient,
        (PutAnswer::Failed, AtKey::Refused) => CreateOutcome::Refused,
        (PutAnswer::Failed, AtKey::Other(theirs)) if theirs < epoch => CreateOutcome::Stale,
        (PutAnswer::Failed, AtKey::Other(theirs)) => CreateOutcome::Fenced(theirs),
        // Once, the download may have been damaged.
        (PutAnswer::Failed, AtKey::NoObject) if !again => CreateOutcome::Transient,
        (PutAnswer::Failed, AtKey::NoObject) => CreateOutcome::Foreign,
    }
}

/// What a guard makes of an object above the last indexed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Harmless,
    /// A transient outcome of the guarded batch.
    Transient,
    Fenced(Epoch),
    Foreign,
}

/// The same table for a guard, which nobody's put precedes: DESIGN.md section 12, rules 4 and 6.
pub(crate) fn look(at_key: AtKey, again: bool, epoch: Epoch) -> Look {
    match at_key {
        // Of a batch that failed, and landed after all.
        AtKey::Ours => Look::Harmless,
        AtKey::Other(theirs) if theirs < epoch => Look::Harmless,
        AtKey::Other(theirs) => Look::Fenced(theirs),
        AtKey::NoObject if again => Look::Foreign,
        AtKey::NoObject | AtKey::Absent | AtKey::Unknown | AtKey::Refused => Look::Transient,
    }
}

/// What follows from an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// It is indexed in order, and acknowledged where that was not done before.
    Index,
    /// The same bytes again after a delay, without end.
    Repeat,
    /// The same within `retry_for`, then roll back.
    RepeatOrRollBack,
    RollBack,
    /// The log becomes failing, and the same bytes again after a delay.
    FailAndRepeat,
    Poison,
}

/// The second table.
pub(crate) fn consequence(outcome: CreateOutcome, mode: AckMode) -> Consequence {
    match (outcome, mode) {
        (CreateOutcome::Created, _) => Consequence::Index,
        (CreateOutcome::Transient, AckMode::Durable) => Consequence::RepeatOrRollBack,
        (CreateOutcome::Transient, AckMode::Enqueued) => Consequence::Repeat,
        (CreateOutcome::Refused, AckMode::Durable) => Consequence::RollBack,
        (CreateOutcome::Refused, AckMode::Enqueued) => Consequence::FailAndRepeat,
        (CreateOutcome::Stale, AckMode::Durable) => Consequence::RollBack,
        (CreateOutcome::Stale, AckMode::Enqueued) => Consequence::Poison,
        (CreateOutcome::Fenced(_) | CreateOutcome::Foreign, _) => Consequence::Poison,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use bytes::Bytes;

    use super::*;
    use crate::format::Header;

    #[test]
    fn every_combination_has_its_row() {
        let ours = Epoch(5);
        let all = [
            (AtKey::Absent, CreateOutcome::Transient, Look::Transient),
            (AtKey::Unknown, CreateOutcome::Transient, Look::Transient),
            (AtKey::Refused, CreateOutcome::Refused, Look::Transient),
            (AtKey::Ours, CreateOutcome::Created, Look::Harmless),
            (AtKey::Other(Epoch(4)), CreateOutcome::Stale, Look::Harmless),
            (AtKey::Other(Epoch(5)), CreateOutcome::Fenced(Epoch(5)), Look::Fenced(Epoch(5))),
            (AtKey::Other(Epoch(6)), CreateOutcome::Fenced(Epoch(6)), Look::Fenced(Epoch(6))),
            (AtKey::NoObject, CreateOutcome::Foreign, Look::Foreign),
        ];
        for (at_key, of_create, of_guard) in all {
            for again in [false, true] {
                // What is no object counts when it is found a second time.
                let once = at_key == AtKey::NoObject && !again;
                let outcome = if once { CreateOutcome::Transient } else { of_create };
                assert_eq!(decide(PutAnswer::Failed, at_key, again, ours), outcome, "{at_key:?}");
                let guard = if once { Look::Transient } else { of_guard };
                assert_eq!(look(at_key, again, ours), guard, "{at_key:?}");
                // A put that says how it ended needs no second opinion.
                let put = |put| decide(put, at_key, again, ours);
                assert_eq!(put(PutAnswer::Succeeded), CreateOutcome::Created);
                assert_eq!(put(PutAnswer::Refused), CreateOutcome::Refused);
            }
        }
    }

    #[test]
    fn every_outcome_has_its_consequence_in_both_modes() {
        use Consequence::{FailAndRepeat, Index, Poison, Repeat, RepeatOrRollBack, RollBack};
        let table = [
            (CreateOutcome::Created, Index, Index),
            (CreateOutcome::Transient, RepeatOrRollBack, Repeat),
            (CreateOutcome::Refused, RollBack, FailAndRepeat),
            (CreateOutcome::Stale, RollBack, Poison),
            (CreateOutcome::Fenced(Epoch(9)), Poison, Poison),
            (CreateOutcome::Foreign, Poison, Poison),
        ];
        for (outcome, durable, enqueued) in table {
            assert_eq!(consequence(outcome, AckMode::Durable), durable, "{outcome:?}");
            assert_eq!(consequence(outcome, AckMode::Enqueued), enqueued, "{outcome:?}");
        }
    }

    #[test]
    fn answers_of_the_store_are_sorted_into_the_table() {
        let kinds = [
            (StoreErrorKind::Exists, PutAnswer::Failed, AtKey::Unknown),
            (StoreErrorKind::NotFound, PutAnswer::Refused, AtKey::Absent),
            (StoreErrorKind::TimedOut, PutAnswer::Failed, AtKey::Unknown),
            (StoreErrorKind::Refused, PutAnswer::Refused, AtKey::Refused),
            (StoreErrorKind::NotSupported, PutAnswer::Refused, AtKey::Refused),
            (StoreErrorKind::Transient, PutAnswer::Failed, AtKey::Unknown),
        ];
        let link = Link { sequence: ObjectSeq(7), epoch: Epoch(5) };
        for (kind, put, at_key) in kinds {
            assert_eq!(PutAnswer::of(&Err(StoreError::new(kind))), put, "{kind:?}");
            assert_eq!(
                AtKey::of(&Err(StoreError::new(kind)), link, &[], &Payload::new(Vec::new())),
                at_key,
                "{kind:?}"
            );
        }
        assert_eq!(PutAnswer::of(&Ok(())), PutAnswer::Succeeded);
    }

    #[test]
    fn only_our_header_and_trailer_with_our_size_are_ours() {
        let header = |sequence, epoch| Header {
            sequence: ObjectSeq(sequence),
            epoch: Epoch(epoch),
            predecessor: None,
            boundary: ObjectSeq(0),
        };
        let ours = header(7, 5);
        // An object of so many bytes, as far as a read-back tells: its last byte stands for all that
        // its checksum covers.
        let object = |header: &Header, size: usize, content: u8| {
            let mut bytes = header.encode().to_vec();
            bytes.resize(size, content);
            Bytes::from(bytes)
        };
        let put = object(&ours, 200, 1);
        let found = |object: Bytes| {
            let payload = Payload::new(Vec::from([put.slice(..190), put.slice(190..)]));
            AtKey::of(&Ok(ReadBack::of(&object)), ours.link(), &ours.encode(), &payload)
        };
        assert_eq!(found(put.clone()), AtKey::Ours);
        assert_eq!(found(object(&ours, 201, 1)), AtKey::Other(Epoch(5)), "another size");
        assert_eq!(found(object(&ours, 200, 2)), AtKey::Other(Epoch(5)), "another content");
        let boundary = Header { boundary: ObjectSeq(1), ..ours };
        assert_eq!(found(object(&boundary, 200, 1)), AtKey::Other(Epoch(5)), "another header");
        assert_eq!(found(object(&header(7, 9), 200, 1)), AtKey::Other(Epoch(9)));
        assert_eq!(found(object(&header(8, 9), 200, 1)), AtKey::NoObject, "at the wrong key");
        assert_eq!(found(Bytes::new()), AtKey::NoObject);
        assert_eq!(found(Bytes::from_static(b"short")), AtKey::NoObject);
        assert_eq!(found(object(&header(7, 9), 89, 1)), AtKey::NoObject, "too short for an object");
        assert_eq!(found(Bytes::from_static(&[b'x'; 90])), AtKey::NoObject);
        let half = ReadBack { trailer: Bytes::new(), ..ReadBack::of(&put) };
        let payload = Payload::new(Vec::from([put.clone()]));
        let half = AtKey::of(&Ok(half), ours.link(), &ours.encode(), &payload);
        assert_eq!(half, AtKey::Unknown, "not what was asked for");
    }
}
