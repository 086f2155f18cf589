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
    assert_eq!(with("304 Not Modified"), [Transient, Exists, Transient, Transient]);
    for refused in [
        "301 Moved Permanently",
        "302 Found",
        "307 Temporary Redirect",
        "400 Bad Request",
        "402 Payment Required",
        "410 Gone",
        "411 Length Required",
        "413 Payload Too Large",
        "499 Client Closed Request",
    ] {
        assert_eq!(with(refused), [Refused; 4], "{refused}");
    }
    for passes in [
        "408 Request Timeout",
        "409 Conflict",
        // A body shorter than the range.
        "416 Range Not Satisfiable",
        "423 Locked",
        "425 Too Early",
        "429 Too Many Requests",
        "502 Bad Gateway",
        "507 Insufficient Storage",
    ] {
        assert_eq!(with(passes), [Transient; 4], "{passes}");
    }
    assert_eq!(with("500 Internal Server Error"), [Transient; 4]);
    assert_eq!(with("503 Slow Down"), [Transient; 4]);
}

/// The types of the local store's errors are private: these have their texts and causes.
#[derive(Debug)]
struct Local(&'static str, io::Error);

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    use io::ErrorKind::{NotADirectory, Other, PermissionDenied, ReadOnlyFilesystem, StorageFull};
    for kind in [PermissionDenied, ReadOnlyFilesystem, NotADirectory] {
        assert_eq!(local_kind("Unable to open file a.wal", kind), StoreErrorKind::Refused);
    }
    for kind in [StorageFull, Other] {
        let text = "Unable to copy data to file";
        assert_eq!(local_kind(text, kind), StoreErrorKind::Transient);
    }
}

#[test]
fn a_file_system_without_a_descriptor_to_give_may_have_one_later() {
    for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
        for text in ["Unable to open file a.wal", "Unable to rename file", "Unable to walk dir"] {
            let source = Box::new(Local(text, errno.into()));
            let error = ClientError::Generic { store: LOCAL, source };
            let mapped = store_error(Operation::Create, error);
            assert_eq!(mapped.kind, StoreErrorKind::Transient, "{text}");
        }
        assert_eq!(unreachable(errno.into()).kind, StoreErrorKind::Transient);
    }
    // A sync may end with this, and the client says the same of one and of a failed link.
    let of = |text| local_kind(text, io::ErrorKind::OutOfMemory);
    assert_eq!(of("Unable to open file a.wal"), StoreErrorKind::Transient);
    assert_eq!(of("Unable to rename file"), StoreErrorKind::Refused);
    assert_eq!(unreachable(io::ErrorKind::OutOfMemory.into()).kind, StoreErrorKind::Transient);
    let refused = unreachable(io::ErrorKind::PermissionDenied.into());
    assert_eq!(refused.kind, StoreErrorKind::Refused);
    assert!(!refused.advice.unwrap().contains("credentials"));
}

fn answered(operation: Operation, status: &str, body: &str) -> StoreError {
    let text = format!("Server returned non-2xx status code: {status}: {body}");
    store_error(operation, ClientError::Generic { store: "S3", source: text.into() })
}

fn xml(code: &str, message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>{message}</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>"
    )
}

/// Code and message of the answer, and a part of the advice.
#[test]
fn what_a_refusal_asks_for_is_said() {
    use Operation::{Create, List, Read};
    let rows = [
        (
            List,
            "400 Bad Request",
            "AuthorizationHeaderMalformed",
            "the region 'us-east-1' is wrong; expecting 'eu-west-1'",
            "AWS_REGION",
        ),
        (
            Create,
            "400 Bad Request",
            "InvalidRequest",
            "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with \
             Object Lock parameters",
            "AWS_CHECKSUM_ALGORITHM",
        ),
        (
            Read,
            "403 Forbidden",
            "InvalidObjectState",
            "The operation is not valid for the object's storage class",
            "archived",
        ),
        (Read, "409 Conflict", "BlobArchived", "This operation is not permitted", "archived"),
        (List, "400 Bad Request", "InvalidResourceName", "invalid characters", "check the URL"),
        (List, "400 Bad Request", "InvalidBucketName", "not valid", "check the URL"),
        (Read, "404 Not Found", "NoSuchBucket", "does not exist", "The bucket or container"),
        (List, "403 Forbidden", "RequestTimeTooSkewed", "too large", "clock"),
        (List, "403 Forbidden", "AccessDenied", "Access Denied", "credentials and permissions"),
        (List, "400 Bad Request", "InvalidArgument", "not so", "settings of its client"),
    ];
    for (operation, status, code, message, advice) in rows {
        let error = answered(operation, status, &xml(code, message));
        assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
        let told = error.advice.unwrap();
        assert!(told.contains(advice), "{code}: {told}");
        let text = error.to_string();
        assert!(text.contains(&format!("{status}: {code}: {message}")), "{text}");
        assert!(!text.contains('<') && !text.contains("4442587FB7D0A2F9"), "{text}");
    }
    let redirect = "Received redirect without LOCATION, this normally indicates ...";
    let error = ClientError::Generic { store: "S3", source: redirect.into() };
    let error = store_error(List, error);
    assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
    assert!(error.advice.unwrap().contains("AWS_REGION"));
}

#[test]
fn a_request_that_did_not_arrive_whole_or_in_time_may_be_made_again() {
    for code in ["RequestTimeout", "IncompleteBody", "BadDigest"] {
        let error = answered(Operation::Create, "400 Bad Request", &xml(code, "again, please"));
        assert_eq!(error.kind, StoreErrorKind::Transient, "{error}");
        assert_eq!(error.advice, None);
    }
}

#[test]
fn a_body_is_shown_as_its_code_and_the_first_line_of_its_message() {
    let message = "Either &quot;this&quot; &amp;lt; or\nthat\nTime:now";
    let text = answered(Operation::List, "500 Oops", &xml("Odd", message)).to_string();
    assert!(text.ends_with("500 Oops: Odd: Either \"this\" &lt; or)"), "{text}");
    let long = "x".repeat(10_000);
    let text = answered(Operation::List, "500 Oops", &xml("Odd", &long)).to_string();
    assert!(text.len() < 500, "{}", text.len());
    let page = "<!DOCTYPE html>\n<html><body>proxy</body></html>";
    let text = answered(Operation::List, "502 Bad Gateway", page).to_string();
    assert!(text.ends_with("502 Bad Gateway: an HTML page)"), "{text}");
    let text = answered(Operation::List, "500 Oops", &long).to_string();
    assert!(text.len() < 1500, "{}", text.len());
}

#[test]
fn a_cause_that_its_error_does_not_tell_is_told_once() {
    #[derive(Debug)]
    struct Silent(io::Error);
    impl fmt::Display for Silent {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("error sending request")
        }
    }
    impl StdError for Silent {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }
    let source = Box::new(Silent(io::ErrorKind::ConnectionRefused.into()));
    let error = ClientError::Generic { store: "S3", source };
    let error = mapped(Some("AmazonS3(bucket)"), Operation::List, error);
    let expected = "a failure that may pass (AmazonS3(bucket): Generic S3 error: error sending \
                    request: connection refused)";
    assert_eq!(error.to_string(), expected);
    assert!(error.source().is_none());
}

#[test]
fn a_key_that_a_delete_of_many_refuses_has_its_code() {
    let of = |code: &str| {
        let text = format!("DeleteObjects request failed for key a/b: Odd (odd) (code: {code})");
        store_error(Operation::Delete, ClientError::Generic { store: "S3", source: text.into() })
    };
    assert_eq!(of("AccessDenied").kind, StoreErrorKind::Refused);
    assert_eq!(of("InternalError").kind, StoreErrorKind::Transient);
    assert_eq!(of("SlowDown").kind, StoreErrorKind::Transient);
}

#[test]
fn the_clients_error_is_kept_in_the_cause() {
    let error = ClientError::NotSupported { source: "no such thing".into() };
    let mapped = store_error(Operation::Create, error);
    let text = mapped.to_string();
    let cause = mapped.cause.unwrap();
    let cause = (&*cause as &(dyn StdError + 'static)).downcast_ref::<ClientFailure>();
    let error = cause.unwrap().error();
    assert!(matches!(error, ClientError::NotSupported { .. }), "{error}");
    assert!(text.contains("no such thing"), "{text}");
}
