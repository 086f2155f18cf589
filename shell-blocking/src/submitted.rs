//! What a submitted append becomes.

use std::pin::pin;
use std::time::Duration;

use sealog_core::{Appended, EntryId, WriteError};
use sealog_shell::Submission;

use crate::wait::{wait, wait_for};

/// An append under way, from [`Wal::submit`](crate::Wal::submit): gives the entry's id once it is
/// durable; in [`AckMode::Enqueued`](crate::AckMode::Enqueued) once it is admitted.
///
/// Dropping it does not take the append back: the entry may be stored, and no other append is
/// affected. It does not keep the log open: once the last handle is dropped, it is answered.
///
/// # Errors
///
/// A [`WriteError`] has the cause and what it means for the entries, its
/// [`outcome`](WriteError::outcome): whether they may be stored all the same. The causes:
///
/// - [`Error::InvalidRegion`], [`Error::AppendTooLarge`], [`Error::Released`]: refused before
///   anything happened.
/// - [`Error::Store`], [`Error::Conflict`]: its batch was rolled back, with every append after it
///   that was not durable yet. The log goes on. Not in `enqueued`, where a create is repeated until
///   it succeeds.
/// - [`Error::Failing`], in `enqueued`: the store refuses what the log writes, so nothing more is
///   taken until a create succeeds. Retry later.
/// - [`Error::Fenced`], [`Error::Corrupted`]: the log ended with this while the append was under way.
/// - [`Error::SequenceExhausted`], [`Error::Stopped`], [`Error::Poisoned`]: the log takes nothing
///   more.
///
/// [`Error::InvalidRegion`]: crate::Error::InvalidRegion
/// [`Error::AppendTooLarge`]: crate::Error::AppendTooLarge
/// [`Error::Store`]: crate::Error::Store
/// [`Error::Conflict`]: crate::Error::Conflict
/// [`Error::Failing`]: crate::Error::Failing
/// [`Error::Released`]: crate::Error::Released
/// [`Error::Fenced`]: crate::Error::Fenced
/// [`Error::Corrupted`]: crate::Error::Corrupted
/// [`Error::SequenceExhausted`]: crate::Error::SequenceExhausted
/// [`Error::Stopped`]: crate::Error::Stopped
/// [`Error::Poisoned`]: crate::Error::Poisoned
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by waiting for it"]
pub struct Submitted(State);

impl Submitted {
    pub(crate) fn new(submission: Submission) -> Submitted {
        Submitted(State::Waiting(submission))
    }

    /// Waits for the answer. Since the log's requests have time limits, it comes; how long it can
    /// take is up to [`Options::retry_for`](crate::Options) and, for one that waits for its place,
    /// to what was submitted before it.
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn wait(self) -> Result<EntryId, WriteError> {
        self.0.wait().map(first)
    }

    /// Waits so long at most; `None` if there is no answer by then. Afterwards it can be asked
    /// again, also once it has given the answer, which it keeps.
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<EntryId, WriteError>> {
        self.0.wait_for(timeout).map(|answer| answer.map(first))
    }

    /// The answer if it is there; otherwise as [`wait_timeout`](Submitted::wait_timeout). Does not
    /// wait.
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn try_wait(&mut self) -> Option<Result<EntryId, WriteError>> {
        self.wait_timeout(Duration::ZERO)
    }
}

/// An append of many entries under way, from [`Wal::submit_batch`](crate::Wal::submit_batch): gives
/// their ids, in the order of the entries, once all of them are durable. Otherwise as
/// [`Submitted`].
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by waiting for it"]
pub struct SubmittedBatch(State);

impl SubmittedBatch {
    pub(crate) fn new(submission: Submission) -> SubmittedBatch {
        SubmittedBatch(State::Waiting(submission))
    }

    /// As [`Submitted::wait`].
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn wait(self) -> Result<Vec<EntryId>, WriteError> {
        self.0.wait().map(all)
    }

    /// As [`Submitted::wait_timeout`].
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<Vec<EntryId>, WriteError>> {
        self.0.wait_for(timeout).map(|answer| answer.map(all))
    }

    /// As [`Submitted::try_wait`].
    ///
    /// # Errors
    ///
    /// See [`Submitted`].
    pub fn try_wait(&mut self) -> Option<Result<Vec<EntryId>, WriteError>> {
        self.wait_timeout(Duration::ZERO)
    }
}

#[derive(Debug)]
enum State {
    Waiting(Submission),
    Answered(Result<Appended, WriteError>),
}

impl State {
    fn wait(self) -> Result<Appended, WriteError> {
        match self {
            State::Waiting(submission) => wait(submission),
            State::Answered(answer) => answer,
        }
    }

    fn wait_for(&mut self, timeout: Duration) -> Option<Result<Appended, WriteError>> {
        if let State::Waiting(submission) = self {
            *self = State::Answered(wait_for(pin!(submission), timeout)?);
        }
        match self {
            State::Waiting(_) => None,
            State::Answered(answer) => Some(answer.clone()),
        }
    }
}

fn first(appended: Appended) -> EntryId {
    appended.ids().first().copied().unwrap_or_default()
}

fn all(appended: Appended) -> Vec<EntryId> {
    match appended {
        Appended::One(id) => vec![id],
        Appended::Many(ids) => ids,
    }
}
