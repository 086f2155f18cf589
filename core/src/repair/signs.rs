//! Signs of a writer at work, whose object must not be replaced under its hands.

use core::time::Duration;

use crate::opening::{Survey, SurveyedObject};
use crate::types::ObjectSeq;

/// What shows that a writer is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignOfWriter {
    /// An object was created meanwhile.
    #[error("object {0} was created meanwhile")]
    Created(ObjectSeq),
    /// An object was deleted meanwhile.
    #[error("object {0} was deleted meanwhile")]
    Deleted(ObjectSeq),
    /// An object was replaced meanwhile.
    #[error("object {0} was replaced meanwhile")]
    Replaced(ObjectSeq),
    /// An object is so new that its writer may still be there.
    #[error("object {sequence} was created only {age:?} ago")]
    Recent {
        /// The newest object.
        sequence: ObjectSeq,
        /// How old it is, by the store's clock.
        age: Duration,
    },
}

/// Looks for signs of a writer in two surveys of a prefix: whatever changed between them, and, if
/// the store's time is known, an object that is younger than `quiet_for`. That time is in
/// milliseconds since 1970, as the store says when something else was written just now: the
/// operator's own clock is not asked.
///
/// A writer that has nothing to do leaves no sign: the operator must know that none runs.
pub fn signs(
    before: &Survey,
    now: &Survey,
    store_time_millis: Option<u64>,
    quiet_for: Duration,
) -> Option<SignOfWriter> {
    let find = |survey: &Survey, sequence| {
        let place =
            survey.objects.binary_search_by_key(&sequence, |object| object.sequence).ok()?;
        let object = survey.objects.get(place)?;
        Some((object.size, object.modified_millis))
    };
    for SurveyedObject { sequence, size, modified_millis, .. } in &now.objects {
        match find(before, *sequence) {
            None => return Some(SignOfWriter::Created(*sequence)),
            Some(was) if was != (*size, *modified_millis) => {
                return Some(SignOfWriter::Replaced(*sequence));
            }
            Some(_) => {}
        }
    }
    let gone = |object: &&SurveyedObject| find(now, object.sequence).is_none();
    if let Some(object) = before.objects.iter().find(gone) {
        return Some(SignOfWriter::Deleted(object.sequence));
    }
    let newest = now.objects.iter().max_by_key(|object| object.modified_millis)?;
    let age = Duration::from_millis(store_time_millis?.saturating_sub(newest.modified_millis));
    (age < quiet_for).then_some(SignOfWriter::Recent { sequence: newest.sequence, age })
}
