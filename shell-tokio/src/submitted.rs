//! What a submitted append becomes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealog_core::{Appended, EntryId, Error, Outcome, WriteError};
use tokio::sync::oneshot;

/// An append under way: resolves to the entry's id once it is durable.
///
/// # Errors
///
/// A [`WriteError`] has the cause and what it means for the entries, its
/// [`outcome`](WriteError::outcome): whether they may be stored all the same. The causes:
///
/// - [`Error::InvalidRegion`], [`Error::AppendTooLarge`]: refused before anything happened.
/// - [`Error::Store`], [`Error::Conflict`]: its batch was rolled back, with every append after it
///   that was not durable yet. The log goes on.
/// - [`Error::SequenceExhausted`], [`Error::Stopped`], [`Error::Poisoned`]: the log takes nothing
///   more.
///
/// # Cancel safety
///
/// Dropping it does not take the append back: the entry may be stored, and no other append is
/// affected.
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by awaiting it"]
pub struct Submitted(State);

#[derive(Debug)]
enum State {
    Waiting(oneshot::Receiver<Result<Appended, WriteError>>),
    /// The log was gone when it was submitted.
    Refused,
}

impl Submitted {
    pub(crate) fn waiting(answer: oneshot::Receiver<Result<Appended, WriteError>>) -> Submitted {
        Submitted(State::Waiting(answer))
    }

    pub(crate) fn refused() -> Submitted {
        Submitted(State::Refused)
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Appended, WriteError>> {
        match &mut self.0 {
            State::Waiting(answer) => match ready!(Pin::new(answer).poll(cx)) {
                Ok(answer) => Poll::Ready(answer),
                // The log went away without a word, with its runtime: nobody knows how far it got.
                Err(_) => Poll::Ready(Err(WriteError::new(Error::Stopped, Outcome::Unknown))),
            },
            State::Refused => {
                Poll::Ready(Err(WriteError::new(Error::Stopped, Outcome::NotWritten)))
            }
        }
    }
}

impl Future for Submitted {
    type Output = Result<EntryId, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let appended = ready!(self.poll_answer(cx))?;
        Poll::Ready(Ok(appended.ids().first().copied().unwrap_or_default()))
    }
}

/// An append of many entries under way: resolves to their ids, in the order of the entries, once
/// all of them are durable. Otherwise as [`Submitted`].
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by awaiting it"]
pub struct SubmittedBatch(Submitted);

impl SubmittedBatch {
    pub(crate) fn new(submitted: Submitted) -> SubmittedBatch {
        SubmittedBatch(submitted)
    }
}

impl Future for SubmittedBatch {
    type Output = Result<Vec<EntryId>, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match ready!(self.0.poll_answer(cx))? {
            Appended::One(id) => vec![id],
            Appended::Many(ids) => ids,
        }))
    }
}
