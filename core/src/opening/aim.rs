//! What an opening is for: a log to write, a view of one, or a survey.

use alloc::vec::Vec;
use core::fmt::Debug;

use super::examine::Examination;
use super::recover::Recovery;
use super::requests::Request;
use super::{Opening, Recovered, Survey, View};
use crate::event::StorageAnswer;
use crate::key::Key;
use crate::types::{ObjectSeq, Time};

/// What an [`Opening`] can end with: [`Recovered`], a [`View`] or a [`Survey`]. A shell drives all
/// of them alike, and nobody else can implement it.
///
/// ```
/// use sealog_core::*;
///
/// /// `carry_out` does with the store what an effect says, and answers.
/// fn drive<T: Aim>(
///     mut opening: Opening<T>,
///     mut carry_out: impl FnMut(StorageEffect) -> StorageAnswer,
/// ) -> Result<Box<T>, Error> {
///     loop {
///         match opening.poll_effect().expect("this store fails nothing") {
///             OpeningEffect::Storage(effect) => {
///                 let answer = carry_out(effect);
///                 opening.handle(Time::ZERO, OpeningEvent::Storage(answer));
///             }
///             OpeningEffect::Notice(_) => {}
///             OpeningEffect::Opened(ending) => return Ok(ending),
///             OpeningEffect::Failed(error) => return Err(error),
///         }
///     }
/// }
///
/// let nothing_is_there = |effect: StorageEffect| StorageAnswer::Listed {
///     id: effect.id(),
///     result: Ok(Vec::new()),
/// };
/// let options = Options::default();
/// let opening = Opening::read_only(Time::ZERO, Prefix::new("demo")?, options.clone())?;
/// let view = drive(opening, nothing_is_there)?;
/// assert_eq!(view.tip(), None);
/// let newer = drive(Opening::refresh(Time::ZERO, &view), nothing_is_there)?;
/// assert_eq!(newer.regions().count(), 0);
/// let survey = drive(Opening::survey(Time::ZERO, Prefix::new("demo")?, options)?, nothing_is_there)?;
/// assert_eq!(survey.problems().count(), 0);
/// # Ok::<(), Error>(())
/// ```
pub trait Aim: Steps {}

impl Aim for Recovered {}
impl Aim for View {}
impl Aim for Survey {}

/// The steps in which the ways differ. All of them list and examine.
pub trait Steps: Clone + Debug {
    /// What this way keeps beside what all of them do.
    type Own: Clone + Debug;

    /// Whether a listing counts in whatever order it comes: what was there before it began is in it.
    const TAKES_ANY_ORDER: bool = false;

    /// The keys that a listing must show, since they were just created.
    fn expected(_: &Opening<Self>) -> Vec<Key> {
        Vec::new()
    }

    /// What was put, or may have been, ascending.
    fn put(_: &Opening<Self>) -> Vec<ObjectSeq> {
        Vec::new()
    }

    /// Whether it matters how many objects came since the last listing.
    fn counts_what_came(_: &Opening<Self>) -> bool {
        false
    }

    /// A listing has not settled, and goes on behind `after`. Does what can be done about it, if
    /// anything can.
    fn unsettled(_: &mut Opening<Self>, _after: Option<Key>, _largest: Option<ObjectSeq>) -> bool {
        false
    }

    /// Asks at this time for a listing in the place of one that was not believed.
    fn list_again(opening: &mut Opening<Self>, due: Time) {
        opening.list(due);
    }

    /// An examination of what was just listed.
    fn begin(examination: Examination) -> Examination {
        examination
    }

    /// Goes on from what was listed and examined.
    fn examined(opening: &mut Opening<Self>, examination: Examination);

    /// Goes on from history, with its release records applied.
    fn recovered(opening: &mut Opening<Self>, recovery: Recovery);

    /// Takes the answer to what no other way asks.
    fn answered(opening: &mut Opening<Self>, request: Request, answer: StorageAnswer);
}
