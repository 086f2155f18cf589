//! Answers, failures and contents, in the words that rows use.

use bytes::Bytes;
use sealog_core::event::{Appended, Payload};
use sealog_core::format::{
    Header, ObjectEncoder, RELEASE_RECORD_LEN, ReleaseRecord, WriterRecord, encode_releases,
};
use sealog_core::{
    EntryId, Epoch, Error, ObjectSeq, Outcome, RegionId, StoreError, StoreErrorKind,
};

use super::{Failure, Planted, Records};

pub(super) fn appended(ids: &Appended) -> String {
    self::ids(ids.ids())
}

/// The ids of an append; of many, the first and the last.
pub(super) fn ids(ids: &[EntryId]) -> String {
    let said = |id: &EntryId| format!("{}/{}", id.sequence(), id.position());
    match ids {
        [first, .., last] if ids.len() > 8 => format!("{} to {}", said(first), said(last)),
        ids => ids.iter().map(said).collect::<Vec<_>>().join(" "),
    }
}

pub(super) fn failed(error: &Error) -> String {
    let retry = if error.is_retryable() { "retryable" } else { "final" };
    format!("{}, {retry}", kind(error))
}

pub(super) fn append_failed(error: &Error, outcome: Outcome) -> String {
    let outcome = match outcome {
        Outcome::NotWritten => "not written",
        Outcome::Unknown => "unknown",
    };
    format!("{}, {outcome}", failed(error))
}

fn kind(error: &Error) -> String {
    match error {
        Error::Store { operation, source, .. } => {
            let kind = match source.kind {
                StoreErrorKind::TimedOut => "timed out",
                StoreErrorKind::Refused | StoreErrorKind::NotFound => "refused",
                StoreErrorKind::Transient => "transient",
                StoreErrorKind::Exists => "exists",
                StoreErrorKind::NotSupported => "not supported",
            };
            format!("Store {operation} {kind}")
        }
        Error::Fenced { theirs, writer, .. } => {
            format!("Fenced by {} of epoch {theirs}", writer.as_deref().unwrap_or("?"))
        }
        Error::Corrupted { part, .. } => format!("Corrupted {part}"),
        Error::Poisoned { cause } => format!("Poisoned ({})", kind(cause)),
        Error::Failing { cause } => format!("Failing ({})", kind(cause)),
        Error::Lost { entries, releases, cause } => {
            let lost = match (*entries, *releases) {
                (entries, 0) => format!("{entries} entries"),
                (0, releases) => format!("{releases} releases"),
                (entries, releases) => format!("{entries} entries and {releases} releases"),
            };
            format!("Lost {lost} ({})", kind(cause))
        }
        other => {
            let debug = format!("{other:?}");
            debug.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

/// Payloads as texts; more than eight equal ones in a row as one, with their number.
pub(super) fn payloads<'a>(payloads: impl IntoIterator<Item = &'a Bytes>) -> Vec<String> {
    let mut runs: Vec<(String, usize)> = Vec::new();
    for payload in payloads {
        let text = String::from_utf8_lossy(payload).into_owned();
        match runs.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => runs.push((text, 1)),
        }
    }
    let run = |(text, count): (String, usize)| match count {
        0..=8 => vec![text; count],
        _ => vec![format!("{text} * {count}")],
    };
    runs.into_iter().flat_map(run).collect()
}

impl Failure {
    /// As a shell maps it.
    pub(super) fn as_mapped(self) -> StoreError {
        StoreError::new(match self {
            Failure::Exists => StoreErrorKind::Exists,
            Failure::Forbidden | Failure::NoBucket => StoreErrorKind::Refused,
            Failure::Gone => StoreErrorKind::NotFound,
            Failure::Timeout | Failure::Reset | Failure::Status(_) | Failure::ExpiredToken => {
                StoreErrorKind::Transient
            }
        })
    }

    /// As a client says it.
    pub(super) fn of_client(self, path: &str) -> object_store::Error {
        let path = path.to_owned();
        let generic =
            |said: String| object_store::Error::Generic { store: "S3", source: said.into() };
        match self {
            Failure::Exists => {
                object_store::Error::AlreadyExists { path, source: "409 Conflict".into() }
            }
            Failure::Timeout => generic("error sending request: operation timed out".into()),
            Failure::Reset => generic("error sending request: connection reset by peer".into()),
            Failure::Status(status) => generic(format!(
                "Error performing PUT in 3ms, after 0 retries - Server returned non-2xx status \
                 code: {status}: <Error/>"
            )),
            Failure::ExpiredToken => generic(
                "Error performing PUT in 3ms, after 0 retries - Server returned non-2xx status \
                 code: 400 Bad Request: <Code>ExpiredToken</Code>"
                    .into(),
            ),
            Failure::Forbidden => {
                object_store::Error::PermissionDenied { path, source: "403 Forbidden".into() }
            }
            Failure::Gone => object_store::Error::NotFound { path, source: "404 NoSuchKey".into() },
            Failure::NoBucket => {
                object_store::Error::NotFound { path, source: "404 NoSuchBucket".into() }
            }
        }
    }
}

impl Planted {
    /// What stands at the sequence then.
    pub(super) fn bytes(self, sequence: u64) -> Bytes {
        let header = |epoch: u64| Header {
            sequence: ObjectSeq(sequence),
            epoch: Epoch(epoch),
            predecessor: None,
            boundary: ObjectSeq::ZERO,
        };
        match self {
            Planted::Bytes(count) => vec![b'?'; count].into(),
            Planted::Epoch(epoch) => ObjectEncoder::new().finish(&header(epoch)).0.to_bytes(),
            Planted::Start => {
                let name = "other".into();
                let record =
                    WriterRecord { nonce: [9; 16], opened_at_millis: 0, max_in_flight: 4, name };
                let mut object = ObjectEncoder::new();
                let id = EntryId::new(ObjectSeq(sequence), 1).unwrap_or_default();
                object.push(RegionId::WRITER, id, &record.encode());
                object.finish(&header(sequence + 1)).0.to_bytes()
            }
            Planted::Records(records) => records.object(&header(sequence + 1)),
        }
    }
}

impl Records {
    fn object(self, header: &Header) -> Bytes {
        let record = |region| ReleaseRecord { region: RegionId(region), through: EntryId::MAX };
        let mut payload = encode_releases(&[record(1), record(2)]).to_vec();
        match self {
            Records::Sound | Records::Flipped | Records::Twice => {}
            // It begins with the version and the count.
            Records::Version => payload[0] += 1,
            Records::Missing => payload[4] += 1,
            Records::LeftOver => payload[4] -= 1,
            Records::Order => payload[5..].rotate_left(RELEASE_RECORD_LEN),
            Records::Empty => payload.clear(),
        }
        let payload = Bytes::from(payload);
        let mut object = ObjectEncoder::new();
        for position in 1..=1 + u32::from(self == Records::Twice) {
            let id = EntryId::new(header.sequence, position).unwrap_or_default();
            object.push(RegionId::RELEASES, id, &payload);
        }
        let mut object = object.finish(header).0.to_bytes().to_vec();
        if self == Records::Flipped {
            // The payload is the last of what stands before the footer.
            let last = object.windows(payload.len()).position(|bytes| bytes == &payload[..]);
            object[last.unwrap_or_default() + payload.len() - 1] ^= 1;
        }
        object.into()
    }
}

/// A payload of these bytes.
pub(super) fn payload(bytes: Bytes) -> Payload {
    Payload::new(vec![bytes])
}
