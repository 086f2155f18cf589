//! What a submitted append becomes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealog_core::{Appended, EntryId, WriteError};
use sealog_shell::Submission;

/// An append under way: resolves to the entry's id once it is durable; in
/// [`AckMode::Enqueued`](crate::AckMode::Enqueued) once it is admitted.
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
/// # Cancel safety
///
/// Dropping it does not take the append back: the entry may be stored, and no other append is
/// affected.
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
#[must_use = "whether an append is durable is only known by awaiting it"]
pub struct Submitted(Submission);

impl Submitted {
    pub(crate) fn new(submission: Submission) -> Submitted {
        Submitted(submission)
    }
}

impl Future for Submitted {
    type Output = Result<EntryId, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let appended = ready!(Pin::new(&mut self.0).poll(cx))?;
        Poll::Ready(Ok(appended.ids().first().copied().unwrap_or_default()))
    }
}

/// An append of many entries under way: resolves to their ids, in the order of the entries, once
/// all of them are durable. Otherwise as [`Submitted`].
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by awaiting it"]
pub struct SubmittedBatch(Submission);

impl SubmittedBatch {
    pub(crate) fn new(submission: Submission) -> SubmittedBatch {
        SubmittedBatch(submission)
    }
}

impl Future for SubmittedBatch {
    type Output = Result<Vec<EntryId>, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match ready!(Pin::new(&mut self.0).poll(cx))? {
            Appended::One(id) => vec![id],
            Appended::Many(ids) => ids,
        }))
    }
}
