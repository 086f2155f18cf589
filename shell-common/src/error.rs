//! The client's errors, mapped to the kinds that the core tells apart (DESIGN.md section 1).

mod said;

use std::error::Error as StdError;
use std::fmt;
use std::io;

use object_store::Error as ClientError;
use sealog_core::error::Operation;
use sealog_core::{StoreError, StoreErrorKind};

use said::Said;

/// Says what a failed request of the client's means, and keeps the client's error as the cause
/// ([`ClientFailure`]).
///
/// | the client says | kind |
/// | --- | --- |
/// | already exists, precondition failed, not modified, on a create | exists |
/// | not found, on a read or a delete | not found |
/// | not found, on a create or a listing, or that there is no such bucket: it is missing | refused |
/// | permission denied, unauthenticated, invalid path | refused |
/// | not supported, not implemented | not supported: refused, and the store is to blame |
/// | another status of 300 to 499, a redirect without an end | refused |
/// | of these: 408, 409, 412, 423, 425, 429, and 416 (an object shorter than the range) | transient |
/// | 400 with a code that says that the request did not arrive whole or in time | transient |
/// | an object that is archived, whatever the status | refused |
/// | a local file system that will not do it, or a failed fsync of a file or directory | refused |
/// | no file descriptor or no memory left | transient |
/// | everything else | transient |
///
/// Where the answer tells what to do, the error's advice says it.
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
    mapped(None, operation, error)
}

/// The same, with the name of the store in the text: which bucket it is.
pub(crate) fn mapped(store: Option<&str>, operation: Operation, error: ClientError) -> StoreError {
    let said = Said::of(&error);
    let kind = kind(operation, &error, &said);
    let advice = advice(kind, operation, &error, &said);
    let text = match store {
        Some(store) => format!("{store}: {}", said.text),
        None => said.text,
    };
    let cause: Box<dyn StdError + Send + Sync> = Box::new(ClientFailure { text, error });
    StoreError { advice, ..StoreError::with_cause(kind, cause) }
}

/// What the store's client failed with: the cause of a [`StoreError`] that [`store_error`] made.
///
/// Its text says all of it, down to the innermost cause, and of a body that the store sent only its
/// code and message. So it has no [`source`](StdError::source) beside it;
/// [`error`](ClientFailure::error) has the rest.
#[derive(Debug)]
pub struct ClientFailure {
    text: String,
    error: ClientError,
}

impl ClientFailure {
    /// The client's error.
    pub fn error(&self) -> &ClientError {
        &self.error
    }
}

impl fmt::Display for ClientFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for ClientFailure {}

/// A directory that cannot be made, reached or synced: refused, unless what is missing is a descriptor
/// or memory.
pub(crate) fn unreachable(error: io::Error) -> StoreError {
    let may_pass = no_descriptor_left(&error) || error.kind() == io::ErrorKind::OutOfMemory;
    let kind = if may_pass { StoreErrorKind::Transient } else { StoreErrorKind::Refused };
    let cause: Box<dyn StdError + Send + Sync> = error.into();
    let advice = (kind == StoreErrorKind::Refused).then_some(DIRECTORY);
    StoreError { advice, ..StoreError::with_cause(kind, cause) }
}

fn kind(operation: Operation, error: &ClientError, said: &Said) -> StoreErrorKind {
    if let Some(kind) = said.code.as_deref().and_then(|code| of_code(code, said)) {
        return kind;
    }
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
        ClientError::Generic { store: LOCAL, source } => local(source.as_ref()),
        ClientError::Generic { .. } => of_status(operation, said),
        // A panic of the client on a blocking thread is among these.
        _ => StoreErrorKind::Transient,
    }
}

/// What a store's own code says, whatever the status.
fn of_code(code: &str, said: &Said) -> Option<StoreErrorKind> {
    match code {
        NO_BUCKET | NO_CONTAINER | ARCHIVED_S3 | ARCHIVED_AZURE => Some(StoreErrorKind::Refused),
        // Of one key of a delete of many there is no status.
        "AccessDenied" | "MethodNotAllowed" => Some(StoreErrorKind::Refused),
        // That the request did not arrive in time, or as it was sent.
        "RequestTimeout" | "IncompleteBody" | "BadDigest" if said.status == Some(400) => {
            Some(StoreErrorKind::Transient)
        }
        _ => None,
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

/// Of some requests the client hands over the bare status, inside its generic error.
fn of_status(operation: Operation, said: &Said) -> StoreErrorKind {
    match said.status {
        Some(404) => missing(operation),
        Some(501) => StoreErrorKind::NotSupported,
        Some(304 | 412) => exists(operation),
        // The last: the object is shorter than the range, which is a body that is too short.
        Some(408 | 409 | 423 | 425 | 429 | 416) => StoreErrorKind::Transient,
        Some(300..=499) => StoreErrorKind::Refused,
        _ => StoreErrorKind::Transient,
    }
}

/// Whether a read that failed like this may be one of bytes beyond the end of an object: then its size
/// tells. Stores have a status for that, or an answer that the client takes for none to a range (as that
/// of a range of an empty object), and the local ones an error of their own.
pub(crate) fn may_be_too_short(error: &ClientError) -> bool {
    let said = Said::of(error);
    matches!(said.status, None | Some(416))
        && kind(Operation::Read, error, &said) == StoreErrorKind::Transient
}

pub(crate) const LOCAL: &str = "LocalFileSystem";

fn local(source: &(dyn StdError + Send + Sync + 'static)) -> StoreErrorKind {
    if source.is::<Refusal>() {
        return StoreErrorKind::Refused;
    }
    let error = chain(source).find_map(|error| error.downcast_ref::<io::Error>());
    if error.is_some_and(no_descriptor_left) {
        // Nothing was synced then, so no failed sync is hidden by it.
        return StoreErrorKind::Transient;
    }
    // The first is a failed fsync of a file, or of a directory that was made for it. The second is
    // a failed link of the object to its name, or a failed fsync of the directory after it: then
    // the object can be read back and is not durable, so it must not pass for a failure that a
    // read-back settles.
    const FAILED_FSYNC: [&str; 2] = ["Unable to sync data to disk", "Unable to rename file"];
    let text = source.to_string();
    if FAILED_FSYNC.iter().any(|start| text.starts_with(start)) {
        return StoreErrorKind::Refused;
    }
    error.map_or(StoreErrorKind::Transient, io_kind)
}

fn io_kind(error: &io::Error) -> StoreErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::Unsupported => StoreErrorKind::Refused,
        _ => StoreErrorKind::Transient,
    }
}

/// The process, or the system, has as many files open as it may have: a sync cannot fail like that,
/// only the opening of what is to be synced.
pub(crate) fn no_descriptor_left(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let of = |errno: Errno| Some(errno.raw_os_error());
        [of(Errno::MFILE), of(Errno::NFILE)].contains(&error.raw_os_error())
    }
    #[cfg(not(unix))]
    {
        // ERROR_TOO_MANY_OPEN_FILES
        error.raw_os_error() == Some(4)
    }
}

/// A refusal of ours, inside the client's generic error: what happened, and what to do.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) text: String,
    pub(crate) advice: &'static str,
}

impl Refusal {
    pub(crate) fn into_client_error(self) -> ClientError {
        ClientError::Generic { store: LOCAL, source: Box::new(self) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Refusal {}

const NO_BUCKET: &str = "NoSuchBucket";
const NO_CONTAINER: &str = "ContainerNotFound";
const ARCHIVED_S3: &str = "InvalidObjectState";
const ARCHIVED_AZURE: &str = "BlobArchived";

const DIRECTORY: &str = "The file system will not do this: check that the directory is there, its \
                         permissions, and that the file system is not read-only";
const BUCKET: &str = "The bucket or container does not exist there: check its name, the endpoint and \
                      the region";

/// What to do about it, where more is known than the kind.
fn advice(
    kind: StoreErrorKind,
    operation: Operation,
    error: &ClientError,
    said: &Said,
) -> Option<&'static str> {
    if kind != StoreErrorKind::Refused {
        return None;
    }
    if let ClientError::Generic { store: LOCAL, source } = error {
        return Some(source.downcast_ref::<Refusal>().map_or(DIRECTORY, |refusal| refusal.advice));
    }
    if said.message.as_deref().is_some_and(|message| message.contains("x-amz-checksum-")) {
        return Some(
            "The bucket wants a checksum with each object, as one with object lock does: set the \
             client's aws_checksum_algorithm (AWS_CHECKSUM_ALGORITHM) to sha256 or crc64nvme",
        );
    }
    match (said.code.as_deref(), said.status) {
        (Some("AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect"), _)
        | (Some("IllegalLocationConstraintException"), _)
        | (None, Some(300..=399)) => Some(
            "The bucket is in another region, or at another endpoint: set the client's aws_region \
             (AWS_REGION) to the bucket's region, and check the endpoint",
        ),
        (Some(ARCHIVED_S3 | ARCHIVED_AZURE), _) => Some(
            "The object is archived, so it cannot be read: restore it, and exempt the log from the \
             rules that move objects to an archive",
        ),
        (Some(NO_BUCKET | NO_CONTAINER), _) => Some(BUCKET),
        (Some("InvalidBucketName" | "InvalidResourceName"), _) => {
            Some("No bucket or container can have this name: check the URL")
        }
        (Some("RequestTimeTooSkewed"), _) => {
            Some("The clocks of this machine and of the store differ: set this machine's clock")
        }
        (_, Some(404)) if missing(operation) == StoreErrorKind::Refused => Some(BUCKET),
        (_, Some(401 | 403)) => Some("The store denies it: check credentials and permissions"),
        (_, Some(400..=499)) => Some(
            "The store will not do this: check the settings of its client, and the store's own",
        ),
        _ => None,
    }
}

/// An error and its causes.
fn chain<'a>(
    first: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(first), |&error| error.source())
}

#[cfg(test)]
mod tests;
