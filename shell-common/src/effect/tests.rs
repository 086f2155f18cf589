use std::future::{pending, ready};
use std::ops::Range;
use std::time::Duration;

use async_trait::async_trait;
use futures_executor::block_on;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    PutMultipartOptions, PutResult, Result,
};
use sealog_core::{Key, RequestId};

use super::*;

const LIMIT: Duration = Duration::from_secs(30);
const ID: RequestId = RequestId(7);

type Store = Arc<dyn ObjectStore>;

fn answered(store: &Store, effect: StorageEffect) -> StorageAnswer {
    let answer = block_on(carry_out(store, effect, |_| pending()));
    assert_eq!(answer.id(), ID);
    answer
}

fn key(name: &str) -> Key {
    format!("p/objects/{name}").into()
}

fn put(store: &Store, name: &str, chunks: &[&'static [u8]]) -> Result<(), StoreErrorKind> {
    let payload = Payload::new(chunks.iter().map(|chunk| Bytes::from_static(chunk)).collect());
    let effect = StorageEffect::PutObject { id: ID, key: key(name), payload, time_limit: LIMIT };
    match answered(store, effect) {
        StorageAnswer::CreateResult { result, .. } => result.map_err(|error| error.kind),
        other => panic!("{other:?}"),
    }
}

fn get(store: &Store, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
    let effect = StorageEffect::FetchRange { id: ID, key: key(name), range, time_limit: LIMIT };
    match answered(store, effect) {
        StorageAnswer::Fetched { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

fn header(store: &Store, name: &str) -> Result<ReadBack, StoreErrorKind> {
    let effect = StorageEffect::ReadBack { id: ID, key: key(name), time_limit: LIMIT };
    match answered(store, effect) {
        StorageAnswer::ReadBackResult { result, .. } => result.map_err(|error| error.kind),
        other => panic!("{other:?}"),
    }
}

fn listed(store: &Store, after: Option<&str>) -> Result<Vec<(String, u64)>, StoreErrorKind> {
    let after = after.map(key);
    let effect = StorageEffect::List { id: ID, prefix: key(""), after, time_limit: LIMIT };
    match answered(store, effect) {
        StorageAnswer::Listed { result, .. } => {
            let mut found = result
                .map_err(|error| error.kind)?
                .into_iter()
                .map(|found| (found.key.to_string(), found.size))
                .collect::<Vec<_>>();
            found.sort();
            Ok(found)
        }
        other => panic!("{other:?}"),
    }
}

fn local(directory: &std::path::Path) -> Store {
    Arc::new(LocalFileSystem::new_with_prefix(directory).unwrap().with_fsync(true))
}

/// What every store must do, here for the two that need no network.
fn each_store(check: impl Fn(&Store)) {
    check(&(Arc::new(InMemory::new()) as Store));
    let directory = tempfile::tempdir().unwrap();
    check(&local(directory.path()));
}

#[test]
fn a_create_stores_the_chunks_in_order_and_only_once() {
    each_store(|store| {
        assert_eq!(put(store, "0", &[b"one", b"two"]), Ok(()));
        assert_eq!(get(store, "0", 0..6).unwrap(), "onetwo");
        assert_eq!(put(store, "0", &[b"other"]), Err(StoreErrorKind::Exists));
        assert_eq!(get(store, "0", 2..4).unwrap(), "et");
    });
}

#[test]
fn a_body_is_handed_over_as_long_as_it_is() {
    each_store(|store| {
        put(store, "0", &[b"12345"]).unwrap();
        put(store, "empty", &[]).unwrap();
        assert_eq!(get(store, "0", 0..6).unwrap(), "12345");
        assert_eq!(get(store, "0", 3..9).unwrap(), "45");
        // Of what lies beyond the end stores say that there is no such range.
        for (name, range) in [("0", 5..6), ("0", 8..9), ("empty", 0..1), ("empty", 0..90)] {
            assert_eq!(get(store, name, range).unwrap(), "");
        }
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    each_store(|store| {
        let error = get(store, "0", 0..1).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::NotFound, "{error}");
        assert_eq!(header(store, "0"), Err(StoreErrorKind::NotFound));
    });
}

#[test]
fn a_read_back_gives_both_ends_and_the_size_or_just_the_size() {
    const LONG: &[u8] = &{
        let mut bytes = [0; 200];
        let mut at = 0;
        while at < bytes.len() {
            bytes[at] = at as u8;
            at += 1;
        }
        bytes
    };
    each_store(|store| {
        for size in [0, 1, 53, 54, 60, 89, 90, 91, 200] {
            let (name, object) = (size.to_string(), Bytes::from(&LONG[..size]));
            put(store, &name, &[&LONG[..size]]).unwrap();
            assert_eq!(header(store, &name).unwrap(), ReadBack::of(&object), "{size} bytes");
        }
    });
}

#[test]
fn a_listing_has_full_keys_and_sizes_and_nothing_of_other_prefixes() {
    each_store(|store| {
        assert_eq!(listed(store, None), Ok(vec![]));
        assert_eq!(listed(store, Some("0")), Ok(vec![]));
        put(store, "1", &[b"abc"]).unwrap();
        put(store, "0", &[b"ab"]).unwrap();
        put(store, "../elsewhere", &[b"x"]).unwrap_err();
        put(store, "notes.txt", &[b""]).unwrap();
        let expected = [("p/objects/0", 2), ("p/objects/1", 3), ("p/objects/notes.txt", 0)];
        let expected = expected.map(|(key, size)| (String::from(key), size));
        assert_eq!(listed(store, None).as_deref(), Ok(&expected[..]));
        assert_eq!(listed(store, Some("0")).as_deref(), Ok(&expected[1..]));
        assert_eq!(listed(store, Some("zzz")).as_deref(), Ok(&[][..]));
    });
}

#[test]
fn an_invalid_path_is_refused() {
    each_store(|store| {
        assert_eq!(put(store, "a//b", &[b"x"]), Err(StoreErrorKind::Refused));
        assert_eq!(get(store, "a//b", 0..1).unwrap_err().kind, StoreErrorKind::Refused);
        assert_eq!(header(store, "a//b"), Err(StoreErrorKind::Refused));
    });
}

/// A path below a file stands for what a directory without permission says, which a test that may
/// run as root cannot rely on.
#[test]
fn a_local_directory_that_cannot_be_made_is_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("p"), "a file").unwrap();
    let store = local(directory.path());
    let payload = Payload::new(vec![]);
    let effect = StorageEffect::PutObject { id: ID, key: key("0"), payload, time_limit: LIMIT };
    let StorageAnswer::CreateResult { result: Err(error), .. } = answered(&store, effect) else {
        panic!("created below a file");
    };
    assert_eq!(error.kind, StoreErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains(directory.path().to_str().unwrap()), "{text}");
}

/// A store that does with every request what it was made for.
#[derive(Debug)]
enum Odd {
    Panics,
    NeverAnswers,
    /// Announces 60 bytes and sends these.
    Sends(&'static [&'static [u8]]),
    /// Over and over.
    SendsWithoutEnd(&'static [u8]),
    /// Says so of every read but one of the size.
    Busy,
    /// Fails in the middle of a listing.
    BreaksOff,
    /// Of the keys to be deleted it deletes the first, will not do the second, and then hears of one
    /// that it does not know.
    PanicsInDeletes,
    /// Deletes the first and the last; those in between it will not, each for a reason of its own.
    Picks,
}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

fn broken() -> ClientError {
    ClientError::Generic { store: "odd", source: "connection reset".into() }
}

#[async_trait]
impl ObjectStore for Odd {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        match self {
            Odd::Panics => panic!("the lights went out"),
            Odd::NeverAnswers => pending().await,
            _ => Err(broken()),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self {
            Odd::Panics => panic!("the {} went out", "lights"),
            Odd::NeverAnswers => pending().await,
            _ if options.head => Ok(sent(location, 0..0, stream::empty().boxed())),
            Odd::Sends(_) | Odd::SendsWithoutEnd(_) => {
                let Some(GetRange::Bounded(range)) = options.range else { return Err(broken()) };
                let body = match *self {
                    Odd::Sends(body) => stream::iter(body.iter().copied()).boxed(),
                    Odd::SendsWithoutEnd(piece) => stream::repeat(piece).boxed(),
                    _ => return Err(broken()),
                };
                Ok(sent(location, range, body))
            }
            Odd::Busy => {
                let source = "Server returned non-2xx status code: 503: SlowDown".into();
                Err(ClientError::Generic { store: "odd", source })
            }
            _ => Err(broken()),
        }
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self {
            Odd::Panics => panic!("the lights went out"),
            Odd::NeverAnswers => stream::pending().boxed(),
            _ => stream::iter([Ok(meta(Path::from("p/objects/0"))), Err(broken())]).boxed(),
        }
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("no effect makes a multipart upload")
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let denied = |path: Path| ClientError::PermissionDenied {
            source: format!("{path} is kept").into(),
            path: path.into(),
        };
        match self {
            Odd::PanicsInDeletes => locations
                .enumerate()
                .map(move |(at, path)| match at {
                    0 => path,
                    1 => Err(denied(path?)),
                    _ => panic!("no such key"),
                })
                .boxed(),
            _ => locations
                .enumerate()
                .map(move |(at, path)| match at {
                    0 | 3 => path,
                    1 => Err(denied(path?)),
                    _ => Err(broken()),
                })
                .boxed(),
        }
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("no effect lists with a delimiter")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("no effect copies")
    }
}

fn sent(location: &Path, range: Range<u64>, body: BoxStream<'static, &'static [u8]>) -> GetResult {
    let body = body.map(|piece| Ok(Bytes::from_static(piece)));
    GetResult {
        payload: GetResultPayload::Stream(body.boxed()),
        meta: meta(location.clone()),
        range,
        attributes: Default::default(),
        extensions: Default::default(),
    }
}

fn meta(location: Path) -> ObjectMeta {
    ObjectMeta { location, last_modified: Default::default(), size: 60, e_tag: None, version: None }
}

fn each_effect() -> [StorageEffect; 4] {
    let time_limit = LIMIT;
    [
        StorageEffect::List { id: ID, prefix: key(""), after: None, time_limit },
        StorageEffect::FetchRange { id: ID, key: key("0"), range: 0..1, time_limit },
        StorageEffect::PutObject {
            id: ID,
            key: key("0"),
            payload: Payload::new(vec![]),
            time_limit,
        },
        StorageEffect::ReadBack { id: ID, key: key("0"), time_limit },
    ]
}

fn failure(answer: StorageAnswer) -> StoreError {
    match answer {
        StorageAnswer::Listed { result: Err(error), .. }
        | StorageAnswer::Fetched { result: Err(error), .. }
        | StorageAnswer::CreateResult { result: Err(error), .. }
        | StorageAnswer::ReadBackResult { result: Err(error), .. } => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_of_the_client_is_a_transient_failure_with_its_text() {
    let store: Store = Arc::new(Odd::Panics);
    for effect in each_effect() {
        let error = failure(answered(&store, effect));
        assert_eq!(error.kind, StoreErrorKind::Transient);
        assert!(error.to_string().contains("the lights went out"), "{error}");
    }
}

#[test]
fn an_answer_that_does_not_come_is_timed_out_when_the_timer_ends() {
    let store: Store = Arc::new(Odd::NeverAnswers);
    for effect in each_effect() {
        let answer = block_on(carry_out(&store, effect, |_| ready(())));
        assert_eq!(failure(answer).kind, StoreErrorKind::TimedOut);
    }
}

#[test]
fn an_answer_that_is_there_when_the_timer_ends_counts() {
    let store: Store = Arc::new(InMemory::new());
    let payload = Payload::new(vec![]);
    let effect = StorageEffect::PutObject { id: ID, key: key("0"), payload, time_limit: LIMIT };
    let answer = block_on(carry_out(&store, effect, |_| ready(())));
    assert!(matches!(answer, StorageAnswer::CreateResult { result: Ok(()), .. }), "{answer:?}");
}

#[test]
fn a_body_that_is_not_as_long_as_announced_is_no_data() {
    let bodies: [&[&[u8]]; 4] = [&[], &[&[7; 53]], &[&[7; 50], &[7; 5]], &[&[7; 55]]];
    for body in bodies {
        let store: Store = Arc::new(Odd::Sends(body));
        assert_eq!(get(&store, "0", 0..54).unwrap(), body.concat());
        assert_eq!(header(&store, "0"), Err(StoreErrorKind::Transient));
    }
}

#[test]
fn a_body_in_pieces_is_put_together() {
    let store: Store = Arc::new(Odd::Sends(&[b"a", b"bc", b"", b"d"]));
    assert_eq!(get(&store, "0", 0..4).unwrap(), "abcd");
}

/// Pieces without end, of which few are taken.
#[test]
fn a_body_without_end_is_read_no_further_than_it_takes_to_see_that() {
    let store: Store = Arc::new(Odd::SendsWithoutEnd(b"abc"));
    assert_eq!(get(&store, "0", 0..2).unwrap(), "abc");
    assert_eq!(get(&store, "0", 0..3).unwrap(), "abcabc");
    assert_eq!(get(&store, "0", 0..10).unwrap(), "abcabcabcabc");
    assert_eq!(header(&store, "0"), Err(StoreErrorKind::Transient));
}

#[test]
fn a_read_that_failed_otherwise_fails_though_the_object_is_short() {
    let store: Store = Arc::new(Odd::Busy);
    let error = get(&store, "0", 0..90).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Transient);
    assert!(error.to_string().contains("503"), "{error}");
}

#[test]
fn a_listing_that_breaks_off_is_no_listing() {
    let store: Store = Arc::new(Odd::BreaksOff);
    for after in [None, Some("")] {
        assert_eq!(listed(&store, after), Err(StoreErrorKind::Transient));
    }
}

fn deleted(store: &Store, names: &[&str]) -> Vec<Result<(), StoreError>> {
    let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
    let effect =
        StorageEffect::DeleteObjects { id: ID, keys: keys.clone().into(), time_limit: LIMIT };
    let StorageAnswer::DeleteResult { results, .. } = answered(store, effect) else {
        panic!("no answer to a delete");
    };
    let (of, results): (Vec<_>, _) = results.into_iter().unzip();
    assert_eq!(of, keys);
    results
}

#[test]
fn a_client_that_panics_in_a_delete_fails_the_keys_that_it_did_not_speak_of() {
    let store: Store = Arc::new(Odd::PanicsInDeletes);
    let results = deleted(&store, &["0", "1", "2", "3"]);
    assert!(results[0].is_ok());
    for failed in &results[1..] {
        let error = failed.as_ref().unwrap_err();
        assert!(error.kind == StoreErrorKind::Transient, "{error}");
        assert!(error.to_string().contains("panicked: no such key"), "{error}");
    }
}

#[test]
fn each_key_of_a_delete_has_its_own_answer() {
    let store: Store = Arc::new(Odd::Picks);
    let results = deleted(&store, &["0", "1", "2", "3"]);
    let kinds: Vec<_> =
        results.iter().map(|result| result.as_ref().err().map(|e| e.kind)).collect();
    let (refused, transient) = (StoreErrorKind::Refused, StoreErrorKind::Transient);
    assert_eq!(kinds, [None, Some(refused), Some(transient), None]);
    each_store(|store| {
        put(store, "0", &[b"x"]).unwrap();
        put(store, "2", &[b"x"]).unwrap();
        // One of them is gone already.
        assert!(deleted(store, &["0", "1", "2"]).iter().all(Result::is_ok));
        assert_eq!(listed(store, None), Ok(vec![]));
    });
}
