//! What the errors say.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use super::*;

fn failed(operation: Operation, source: StoreError) -> Error {
    Error::Store { operation, key: "p/objects/7".into(), source }
}

/// What reporters print: an error, and whatever it gives as its source.
fn chain(error: &dyn core::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text += ": ";
        text += &error.to_string();
        next = error.source();
    }
    text
}

#[test]
fn a_cause_is_printed_once_by_who_prints_the_sources_too() {
    let cause: Box<dyn core::error::Error + Send + Sync> = "the disk is on fire".into();
    let store = StoreError::with_cause(StoreErrorKind::Refused, cause);
    let failed = failed(Operation::Create, store.clone());
    let shared = Arc::new(failed.clone());
    let errors: [&dyn core::error::Error; 6] = [
        &store,
        &failed,
        &WriteError::new(failed.clone(), Outcome::Unknown),
        &Error::Failing { cause: shared.clone() },
        &Error::Poisoned { cause: shared.clone() },
        &Error::Lost { entries: 1, releases: 0, cause: shared },
    ];
    for error in errors {
        let printed = chain(error);
        assert_eq!(printed.matches("the disk is on fire").count(), 1, "{printed}");
    }
}

#[test]
fn an_append_that_was_never_sent_is_not_in_the_object_that_failed() {
    let cause = failed(Operation::Create, StoreError::new(StoreErrorKind::TimedOut));
    let text = |outcome| WriteError::new(cause.clone(), outcome).to_string();
    assert!(text(Outcome::NotWritten).contains("were to be stored behind what failed there"));
    assert!(text(Outcome::Unknown).contains("were on their way, there or behind it"));
    let stopped = WriteError::new(Error::Stopped, Outcome::NotWritten).to_string();
    assert!(stopped.ends_with("(the entries were not written)"), "{stopped}");
}
