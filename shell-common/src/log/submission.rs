//! What a submitted append becomes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sealog_core::{Appended, Error, Outcome, WriteError};
use tokio::sync::oneshot;

use super::door::Place;

/// An append under way: resolves to its ids once they are acknowledged. Dropping it does not take
/// the append back, unless it waits to be let in still: then nothing of it is handed over. It must not be polled again after it has resolved.
#[derive(Debug)]
#[must_use = "whether an append is durable is only known by awaiting it"]
pub struct Submission(State);

#[derive(Debug)]
enum State {
    Waiting(oneshot::Receiver<Result<Appended, WriteError>>),
    /// It had to wait to be let in, and stands there still or came in meanwhile.
    InLine {
        answer: oneshot::Receiver<Result<Appended, WriteError>>,
        _place: Place,
    },
    /// The log was gone when it was submitted.
    Refused,
}

impl Submission {
    pub(crate) fn waiting(answer: oneshot::Receiver<Result<Appended, WriteError>>) -> Submission {
        Submission(State::Waiting(answer))
    }

    pub(crate) fn in_line(
        answer: oneshot::Receiver<Result<Appended, WriteError>>,
        place: Place,
    ) -> Submission {
        Submission(State::InLine { answer, _place: place })
    }

    pub(crate) fn refused() -> Submission {
        Submission(State::Refused)
    }
}

impl Future for Submission {
    type Output = Result<Appended, WriteError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Waiting(answer) | State::InLine { answer, .. } => {
                Pin::new(answer).poll(cx).map(|answer| {
                    // The log went away without a word, with its runtime: nobody knows how far it got.
                    answer
                        .unwrap_or_else(|_| Err(WriteError::new(Error::Stopped, Outcome::Unknown)))
                })
            }
            State::Refused => {
                Poll::Ready(Err(WriteError::new(Error::Stopped, Outcome::NotWritten)))
            }
        }
    }
}
