//! The client's errors, mapped to the kinds that the core tells apart (DESIGN.md section 1).

use std::error::Error as StdError;
use std::io;

use object_store::Error as ClientError;
use sealog_core::error::Operation;
use sealog_core::{StoreError, StoreErrorKind};

/// Says what a failed request of the client's means, and keeps the client's error as the cause.
///
/// | the client says | kind |
/// | --- | --- |
/// | already exists, precondition failed, not modified, on a create | exists |
/// | not found, on a read | not found |
/// | not found, on a create or a listing: the bucket is missing | refused |
/// | permission denied, unauthenticated, invalid path | refused |
/// | not supported, not implemented | not supported: refused, and the store is to blame |
/// | a failed fsync of a local file or directory | refused |
/// | everything else | transient |
///
/// ```
/// use sealog_core::StoreErrorKind;
/// use sealog_core::error::Operation;
///
/// let missing = || object_store::Error::NotFound { path: "a".into(), source: "404".into() };
/// let kind = |operation| sealog_shell::store_error(operation, missing()).kind;
/// assert_eq!(kind(Operation::Read), StoreErrorKind::NotFound);
/// assert_eq!(kind(Operation::Create), StoreErrorKind::Refused);
/// ```
pub fn store_error(operation: Operation, error: ClientError) -> StoreError {
    let kind = kind(operation, &error);
    StoreError::with_cause(kind, Box::<dyn StdError + Send + Sync>::from(error))
}

fn kind(operation: Operation, error: &ClientError) -> StoreErrorKind {
    match error {
        ClientError::AlreadyExists { .. }
        | ClientError::Precondition { .. }
        | ClientError::NotModified { .. } => exists(operation),
        ClientError::NotFound { .. } => missing(operation),
        ClientError::PermissionDenied { .. }
        | ClientError::Unauthenticated { .. }
        | ClientError::InvalidPath { .. } => StoreErrorKind::Refused,
        ClientError::NotSupported { .. } | ClientError::NotImplemented { .. } => {
            StoreErrorKind::NotSupported
        }
        ClientError::Generic { store, source } => generic(operation, store, source.as_ref()),
        // A panic of the client on a blocking thread is among these.
        _ => StoreErrorKind::Transient,
    }
}

fn exists(operation: Operation) -> StoreErrorKind {
    match operation {
        Operation::Create => StoreErrorKind::Exists,
        _ => StoreErrorKind::Transient,
    }
}

fn missing(operation: Operation) -> StoreErrorKind {
    match operation {
        // What a create or a listing does not find is the bucket.
        Operation::Create | Operation::List => StoreErrorKind::Refused,
        _ => StoreErrorKind::NotFound,
    }
}

/// The client tells some refusals apart only inside its generic error, in types that it does not
/// export: what can be known of them is an I/O error in the chain of causes, or their text.
fn generic(
    operation: Operation,
    store: &str,
    source: &(dyn StdError + Send + Sync + 'static),
) -> StoreErrorKind {
    if store == LOCAL {
        return local(source);
    }
    match chain(source).find_map(|error| http_status(&error.to_string())) {
        // Of a listing, the client hands over the bare status.
        Some(401 | 403 | 405) => StoreErrorKind::Refused,
        Some(404) => missing(operation),
        Some(501) => StoreErrorKind::NotSupported,
        Some(304 | 412) => exists(operation),
        _ => StoreErrorKind::Transient,
    }
}

const LOCAL: &str = "LocalFileSystem";

fn local(source: &(dyn StdError + Send + Sync + 'static)) -> StoreErrorKind {
    // The first is a failed fsync of a file, or of a directory that was made for it. The second is
    // a failed link of the object to its name, or a failed fsync of the directory after it: then
    // the object can be read back and is not durable, so it must not pass for a failure that a
    // read-back settles.
    const FAILED_FSYNC: [&str; 2] = ["Unable to sync data to disk", "Unable to rename file"];
    let text = source.to_string();
    if FAILED_FSYNC.iter().any(|start| text.starts_with(start)) {
        return StoreErrorKind::Refused;
    }
    match chain(source).find_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind) {
        Some(
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::Unsupported,
        ) => StoreErrorKind::Refused,
        _ => StoreErrorKind::Transient,
    }
}

/// An error and its causes.
fn chain<'a>(
    first: &'a (dyn StdError + Send + Sync + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = first;
    std::iter::successors(Some(first), |&error| error.source())
}

/// The status of a response that the client took for a failure, from the client's text for it.
fn http_status(text: &str) -> Option<u16> {
    let rest = text.strip_prefix("Server returned non-2xx status code: ")?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    const ALL: [Operation; 4] =
        [Operation::List, Operation::Create, Operation::Read, Operation::ReadBack];

    fn kinds(error: impl Fn() -> ClientError) -> [StoreErrorKind; 4] {
        ALL.map(|operation| store_error(operation, error()).kind)
    }

    #[test]
    fn each_error_of_the_client_has_its_kind() {
        use StoreErrorKind::{Exists, NotFound, NotSupported, Refused, Transient};
        let path = || String::from("p/objects/0.wal");
        // In the order of ALL.
        assert_eq!(
            kinds(|| ClientError::AlreadyExists { path: path(), source: "409".into() }),
            [Transient, Exists, Transient, Transient]
        );
        assert_eq!(
            kinds(|| ClientError::Precondition { path: path(), source: "412".into() }),
            [Transient, Exists, Transient, Transient]
        );
        assert_eq!(
            kinds(|| ClientError::NotModified { path: path(), source: "304".into() }),
            [Transient, Exists, Transient, Transient]
        );
        assert_eq!(
            kinds(|| ClientError::NotFound { path: path(), source: "404".into() }),
            [Refused, Refused, NotFound, NotFound]
        );
        assert_eq!(
            kinds(|| ClientError::PermissionDenied { path: path(), source: "403".into() }),
            [Refused; 4]
        );
        assert_eq!(
            kinds(|| ClientError::Unauthenticated { path: path(), source: "401".into() }),
            [Refused; 4]
        );
        assert_eq!(kinds(|| Path::parse("a//b").unwrap_err().into()), [Refused; 4]);
        assert_eq!(kinds(|| ClientError::NotSupported { source: "no".into() }), [NotSupported; 4]);
        let not_implemented = || ClientError::NotImplemented {
            operation: "put_opts".into(),
            implementer: "a store".into(),
        };
        assert_eq!(kinds(not_implemented), [NotSupported; 4]);
        let generic = || ClientError::Generic { store: "S3", source: "connection reset".into() };
        assert_eq!(kinds(generic), [Transient; 4]);
    }

    #[test]
    fn a_status_inside_a_generic_error_counts() {
        use StoreErrorKind::{Exists, NotFound, NotSupported, Refused, Transient};
        let with = |status: &str| {
            let text = format!("Server returned non-2xx status code: {status}: <Error/>");
            kinds(|| ClientError::Generic { store: "S3", source: text.clone().into() })
        };
        assert_eq!(with("403 Forbidden"), [Refused; 4]);
        assert_eq!(with("401 Unauthorized"), [Refused; 4]);
        assert_eq!(with("404 Not Found"), [Refused, Refused, NotFound, NotFound]);
        assert_eq!(with("405 Method Not Allowed"), [Refused; 4]);
        assert_eq!(with("501 Not Implemented"), [NotSupported; 4]);
        assert_eq!(with("412 Precondition Failed"), [Transient, Exists, Transient, Transient]);
        assert_eq!(with("400 Bad Request"), [Transient; 4]);
        assert_eq!(with("429 Too Many Requests"), [Transient; 4]);
        assert_eq!(with("500 Internal Server Error"), [Transient; 4]);
        assert_eq!(with("503 Slow Down"), [Transient; 4]);
    }

    /// The types of the local store's errors are private: these have their texts and causes.
    #[derive(Debug)]
    struct Local(&'static str, io::Error);

    impl std::fmt::Display for Local {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{}: {}", self.0, self.1)
        }
    }

    impl StdError for Local {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.1)
        }
    }

    fn local_kind(text: &'static str, kind: io::ErrorKind) -> StoreErrorKind {
        let source = Box::new(Local(text, kind.into()));
        store_error(Operation::Create, ClientError::Generic { store: LOCAL, source }).kind
    }

    #[test]
    fn a_failed_fsync_is_refused_whatever_its_cause() {
        use io::ErrorKind::{Other, StorageFull};
        for text in ["Unable to sync data to disk for a.wal", "Unable to rename file"] {
            assert_eq!(local_kind(text, Other), StoreErrorKind::Refused);
            assert_eq!(local_kind(text, StorageFull), StoreErrorKind::Refused);
        }
    }

    #[test]
    fn a_local_store_that_will_not_do_it_refuses_and_a_full_one_may_pass() {
        use io::ErrorKind::{
            NotADirectory, Other, PermissionDenied, ReadOnlyFilesystem, StorageFull,
        };
        for kind in [PermissionDenied, ReadOnlyFilesystem, NotADirectory] {
            assert_eq!(local_kind("Unable to open file a.wal", kind), StoreErrorKind::Refused);
        }
        for kind in [StorageFull, Other] {
            let text = "Unable to copy data to file";
            assert_eq!(local_kind(text, kind), StoreErrorKind::Transient);
        }
    }

    #[test]
    fn the_clients_error_is_kept_as_the_cause() {
        let error = ClientError::NotSupported { source: "no such thing".into() };
        let mapped = store_error(Operation::Create, error);
        let cause = mapped.source().unwrap().downcast_ref::<ClientError>();
        assert!(matches!(cause, Some(ClientError::NotSupported { .. })), "{mapped}");
        assert!(mapped.to_string().contains("no such thing"), "{mapped}");
    }
}
