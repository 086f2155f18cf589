//! What a request to the store failed with (DESIGN.md sections 1 and 11).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// A failed answer of the store, as a shell maps it (DESIGN.md section 1).
///
/// Its text holds that of the cause, so [`source`](core::error::Error::source) gives nothing: what
/// prints an error and its sources would print the cause twice. [`cause`](StoreError::cause) has it
/// for who wants to look into it.
#[derive(Clone, Debug)]
pub struct StoreError {
    /// Which of the kinds it is.
    pub kind: StoreErrorKind,
    /// The client's own error. Its text says all of it, down to the innermost cause.
    pub cause: Option<Arc<dyn core::error::Error + Send + Sync>>,
    /// What to do, a sentence without its full stop, if the shell knows better than the kind tells.
    pub advice: Option<&'static str>,
}

/// The kinds of failed answers that the core tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreErrorKind {
    /// Of a create: something is at the key already, so the client says.
    Exists,
    /// Nothing is at the key.
    NotFound,
    /// The time limit passed; a create or a delete may still land.
    TimedOut,
    /// The store will not do this: repeating does not help.
    Refused,
    /// The store, or this client of it, cannot do this at all: refused, for a reason that says
    /// something of the store.
    NotSupported,
    /// Everything else: it may pass.
    Transient,
}

impl StoreError {
    /// A failure without a cause of the client's.
    pub fn new(kind: StoreErrorKind) -> StoreError {
        StoreError { kind, cause: None, advice: None }
    }

    /// A failure with its cause: an error, or a text where nothing but words is known of it.
    ///
    /// ```
    /// use sealog_core::StoreErrorKind;
    /// use sealog_core::error::StoreError;
    ///
    /// let error = StoreError::with_cause(StoreErrorKind::Refused, "the bucket is locked");
    /// assert_eq!(error.to_string(), "refused (the bucket is locked)");
    /// ```
    pub fn with_cause(
        kind: StoreErrorKind,
        cause: impl Into<Box<dyn core::error::Error + Send + Sync>>,
    ) -> StoreError {
        let cause: Box<dyn core::error::Error + Send + Sync> = cause.into();
        StoreError { kind, cause: Some(cause.into()), advice: None }
    }

    /// The same for one that may pass.
    pub fn transient(cause: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> StoreError {
        StoreError::with_cause(StoreErrorKind::Transient, cause)
    }

    /// A failure of which only words tell.
    pub(crate) fn with_text(kind: StoreErrorKind, text: impl Into<Arc<str>>) -> StoreError {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Text(Arc<str>);

        let cause: Arc<dyn core::error::Error + Send + Sync> = Arc::new(Text(text.into()));
        StoreError { kind, cause: Some(cause), advice: None }
    }

    /// Whether the same request may succeed if it is made again.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            StoreErrorKind::TimedOut | StoreErrorKind::Transient => true,
            StoreErrorKind::Refused
            | StoreErrorKind::NotSupported
            | StoreErrorKind::Exists
            | StoreErrorKind::NotFound => false,
        }
    }

    /// What to do about it. Only a create and a delete leave something behind when no answer comes.
    pub(super) fn advice_after(&self, operation: Operation) -> &'static str {
        if let Some(advice) = self.advice {
            return advice;
        }
        match (self.kind, operation) {
            (StoreErrorKind::TimedOut, Operation::Create | Operation::Delete) => {
                "The request may still take effect; retry"
            }
            (StoreErrorKind::TimedOut | StoreErrorKind::Transient, _) => "It may pass; retry",
            (StoreErrorKind::Refused, _) => {
                "The store will not do this: check credentials, permissions and that the bucket exists"
            }
            (StoreErrorKind::NotSupported, _) => {
                "The store cannot do this: use another store, or another configuration of it"
            }
            (StoreErrorKind::NotFound, _) => "Something removed the object: inspect the log",
            (StoreErrorKind::Exists, _) => "Something else holds the key: inspect the log",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            StoreErrorKind::Exists => "the key exists",
            StoreErrorKind::NotFound => "not found",
            StoreErrorKind::TimedOut => "timed out",
            StoreErrorKind::Refused => "refused",
            StoreErrorKind::NotSupported => "not supported",
            StoreErrorKind::Transient => "a failure that may pass",
        })?;
        match &self.cause {
            Some(cause) => write!(f, " ({cause})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for StoreError {}

/// What was asked of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A listing of the prefix.
    List,
    /// A conditional create.
    Create,
    /// A range read.
    Read,
    /// A read of the header at a key whose create failed.
    ReadBack,
    /// A delete of what is not needed.
    Delete,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::List => "listing",
            Operation::Create => "creating",
            Operation::Read => "reading",
            Operation::ReadBack => "reading back",
            Operation::Delete => "deleting",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::error::Error;

    const ALL: [Operation; 5] = [
        Operation::List,
        Operation::Create,
        Operation::Read,
        Operation::ReadBack,
        Operation::Delete,
    ];

    fn failed(operation: Operation, source: StoreError) -> Error {
        Error::Store { operation, key: "p/objects/7".into(), source }
    }

    #[test]
    fn only_a_create_and_a_delete_that_timed_out_may_still_take_effect() {
        for operation in ALL {
            let text = failed(operation, StoreError::new(StoreErrorKind::TimedOut)).to_string();
            let may = matches!(operation, Operation::Create | Operation::Delete);
            assert_eq!(text.contains("may still take effect"), may, "{text}");
            assert!(text.ends_with("retry"), "{text}");
        }
    }

    #[test]
    fn what_the_shell_knows_goes_before_what_the_kind_tells() {
        let mut source = StoreError::new(StoreErrorKind::Refused);
        assert!(failed(Operation::List, source.clone()).to_string().contains("credentials"));
        source.advice = Some("Set the region");
        let text = failed(Operation::List, source).to_string();
        assert!(text.ends_with("failed: refused. Set the region"), "{text}");
    }
}
