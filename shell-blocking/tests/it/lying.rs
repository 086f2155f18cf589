//! Checking stores, those among them that do not keep their word.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as ClientError, GetOptions, GetRange, GetResult, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use sealog_blocking::{Demand, Error, MANY, StoreCheck, StoreErrorKind, check_store, clear};
use sealog_blocking::{Options, RegionId, Wal};

const LIMIT: Duration = Duration::from_secs(30);

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// A create overwrites.
    Overwrites,
    /// A create looks first and puts then: only a race tells.
    LooksFirst,
    /// A create that is refused overwrites all the same.
    OverwritesAndRefuses,
    /// It has no conditional create, and says so.
    NotSupported,
    /// A listing does not show the object that was created last.
    ListsLate,
    /// Only of a listing that begins behind a key.
    ListsLateFromAKey,
    /// A listing shows an object until after it was deleted.
    ListsDeleted,
    ListsAnotherSize,
    /// No lie: listings have an order of their own.
    ListsFromTheMiddle,
    /// A listing ends after 1,000 keys as if there were no more.
    CutsListings,
    /// A listing begins with the first key, wherever it is to begin.
    IgnoresOffsets,
    /// Both of these.
    ShowsOnePage,
    /// A range is answered with the bytes before it.
    ShiftsRanges,
    /// With one byte too few.
    ShortensRanges,
    /// With the whole object.
    IgnoresRanges,
    /// What was deleted can still be read.
    KeepsDeleted,
    /// No lie: of several creates at once, only one is looked at, and the others fail.
    IsBusy,
    /// Creates fail while there are others.
    IsTooBusy,
    /// All requests fail.
    Fails,
    /// Deletes fail.
    DeletesNothing,
}

#[derive(Debug)]
struct Liar {
    inner: Arc<InMemory>,
    lie: Lie,
    /// The object that the lie is about.
    last: Mutex<Option<ObjectMeta>>,
    creates: AtomicUsize,
    deleted: Arc<Mutex<BTreeMap<Path, Bytes>>>,
}

impl Liar {
    fn new(lie: Lie) -> (Arc<Liar>, Arc<InMemory>) {
        let inner = Arc::new(InMemory::new());
        let (last, creates, deleted) = Default::default();
        (Arc::new(Liar { inner: inner.clone(), lie, last, creates, deleted }), inner)
    }

    fn answer(&self) -> Result<()> {
        match self.lie {
            Lie::Fails => Err(failed()),
            _ => Ok(()),
        }
    }

    fn listed(&self, listing: BoxStream<'static, Result<ObjectMeta>>, from_a_key: bool) -> Listing {
        let last = self.last.lock().unwrap().clone();
        let listing = match (self.lie, last) {
            (Lie::ListsLate, Some(last)) => hide(listing, last),
            (Lie::ListsLateFromAKey, Some(last)) if from_a_key => hide(listing, last),
            (Lie::ListsDeleted, Some(last)) => listing.chain(stream::iter([Ok(last)])).boxed(),
            (Lie::ListsFromTheMiddle, _) => listing
                .collect::<Vec<_>>()
                .map(|mut found| {
                    let middle = found.len() / 2;
                    found.rotate_left(middle);
                    stream::iter(found)
                })
                .flatten_stream()
                .boxed(),
            (Lie::CutsListings | Lie::ShowsOnePage, _) => listing.take(1000).boxed(),
            (Lie::ListsAnotherSize, _) => listing
                .map(|found| found.map(|meta| ObjectMeta { size: meta.size + 1, ..meta }))
                .boxed(),
            _ => listing,
        };
        match self.answer() {
            Ok(()) => listing,
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }
}

type Listing = BoxStream<'static, Result<ObjectMeta>>;

fn hide(listing: Listing, hidden: ObjectMeta) -> Listing {
    let is_shown = move |found: &Result<ObjectMeta>| !matches!(found, Ok(found) if found.location == hidden.location);
    listing.filter(move |found| std::future::ready(is_shown(found))).boxed()
}

fn failed() -> ClientError {
    ClientError::Generic { store: "test", source: "on purpose".into() }
}

fn other_range(lie: Lie, range: Range<u64>) -> Option<Range<u64>> {
    match lie {
        Lie::ShiftsRanges if range.start > 0 => Some(range.start - 1..range.end - 1),
        Lie::ShortensRanges if range.end - range.start > 1 => Some(range.start..range.end - 1),
        Lie::IgnoresRanges => None,
        _ => Some(range),
    }
}

#[async_trait]
impl ObjectStore for Liar {
    async fn put_opts(&self, at: &Path, payload: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.answer()?;
        let others = self.creates.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        let more = self.creates.fetch_sub(1, Ordering::SeqCst) - 1;
        match self.lie {
            Lie::IsBusy if others > 0 => return Err(failed()),
            Lie::IsTooBusy if others + more > 0 => return Err(failed()),
            _ => {}
        }
        let overwrite = || PutOptions { mode: PutMode::Overwrite, ..PutOptions::default() };
        let result = match self.lie {
            Lie::NotSupported => {
                return Err(ClientError::NotImplemented {
                    operation: "conditional puts".into(),
                    implementer: "test".into(),
                });
            }
            Lie::Overwrites => self.inner.put_opts(at, payload, overwrite()).await,
            Lie::OverwritesAndRefuses => {
                let result = self.inner.put_opts(at, payload.clone(), how).await;
                self.inner.put_opts(at, payload, overwrite()).await?;
                result
            }
            Lie::LooksFirst => {
                let look = self.inner.get_opts(at, GetOptions::default()).await;
                if look.is_ok() {
                    return self.inner.put_opts(at, payload, how).await;
                }
                // The others look meanwhile.
                yield_now().await;
                self.inner.put_opts(at, payload, overwrite()).await
            }
            _ => self.inner.put_opts(at, payload, how).await,
        };
        if result.is_ok() {
            let options = GetOptions { head: true, ..GetOptions::default() };
            let meta = self.inner.get_opts(at, options).await?.meta;
            *self.last.lock().unwrap() = Some(meta);
        }
        result
    }

    async fn get_opts(&self, at: &Path, mut options: GetOptions) -> Result<GetResult> {
        self.answer()?;
        if let Some(GetRange::Bounded(range)) = options.range.clone() {
            options.range = other_range(self.lie, range).map(GetRange::Bounded);
        }
        let found = self.inner.get_opts(at, options.clone()).await;
        let kept = self.deleted.lock().unwrap().get(at).cloned();
        match (found, kept) {
            (Err(_), Some(kept)) => {
                let kept_by = InMemory::new();
                kept_by.put_opts(at, kept.into(), PutOptions::default()).await?;
                kept_by.get_opts(at, options).await
            }
            (found, _) => found,
        }
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if matches!(self.lie, Lie::DeletesNothing | Lie::Fails) {
            return keys.map(|_| Err(failed())).boxed();
        }
        let (inner, lie, kept) = (self.inner.clone(), self.lie, self.deleted.clone());
        if lie != Lie::KeepsDeleted {
            if lie != Lie::ListsDeleted {
                *self.last.lock().unwrap() = None;
            }
            return inner.delete_stream(keys);
        }
        keys.then(move |key| {
            let (inner, kept) = (inner.clone(), kept.clone());
            async move {
                let key = key?;
                if let Ok(found) = inner.get_opts(&key, GetOptions::default()).await {
                    let content = found.bytes().await?;
                    kept.lock().unwrap().insert(key.clone(), content);
                }
                let delete = stream::iter([Ok(key.clone())]).boxed();
                let mut deleted = inner.delete_stream(delete);
                deleted.next().await.unwrap_or(Ok(key))
            }
        })
        .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> Listing {
        self.listed(self.inner.list(prefix), false)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> Listing {
        let from_a_key = match self.lie {
            Lie::IgnoresOffsets | Lie::ShowsOnePage => self.inner.list(prefix),
            _ => self.inner.list_with_offset(prefix, offset),
        };
        self.listed(from_a_key, true)
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("a log has no use for it")
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("a log has no use for it")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("a log has no use for it")
    }
}

impl fmt::Display for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

async fn yield_now() {
    let mut is_second = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_second, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

fn check(lie: Lie) -> StoreCheck {
    check_with(lie, 40)
}

fn check_with(lie: Lie, keys: u64) -> StoreCheck {
    let (store, inner) = Liar::new(lie);
    let checked = check_store(store.clone(), "log.check", LIMIT, keys).unwrap();
    assert_eq!(left(&inner), Vec::<Path>::new(), "{lie:?}");
    checked
}

fn left(store: &InMemory) -> Vec<Path> {
    let listing = store.list(None).map(|found| found.unwrap().location).collect::<Vec<_>>();
    listing.now_or_never().unwrap()
}

fn broken(check: &StoreCheck) -> Vec<Demand> {
    let broken = check.checked.iter().filter(|checked| !checked.problems.is_empty());
    broken.map(|checked| checked.demand).collect()
}

#[test]
fn a_log_may_live_in_a_store_that_keeps_its_word_and_nothing_is_left_there() {
    let found = check(Lie::None);
    assert!(found.is_fit(), "{found:?}");
    assert_eq!(broken(&found), []);
    let demands: Vec<_> = found.checked.iter().map(|checked| checked.demand).collect();
    assert_eq!(
        demands,
        [
            Demand::CreateOnce,
            Demand::CreateRace,
            Demand::ListCreated,
            Demand::ReadRange,
            Demand::Delete,
            Demand::ListDeleted,
            Demand::ListMany,
        ]
    );
    assert!(found.checked.iter().all(|checked| checked.latencies.is_sorted()));
    assert!(found.checked.iter().all(|checked| !checked.latencies.is_empty()));
    assert!(found.checked.iter().all(|checked| checked.remarks.is_empty()));
}

#[test]
fn each_lie_is_found_as_what_it_is() {
    for (lie, demands) in [
        (Lie::Overwrites, &[Demand::CreateOnce, Demand::CreateRace][..]),
        (Lie::LooksFirst, &[Demand::CreateRace]),
        (Lie::OverwritesAndRefuses, &[Demand::CreateOnce, Demand::CreateRace]),
        (Lie::ListsLate, &[Demand::ListCreated, Demand::ListMany]),
        (Lie::ListsLateFromAKey, &[Demand::ListCreated, Demand::ListMany]),
        (Lie::ListsAnotherSize, &[Demand::ListCreated]),
        (Lie::ListsDeleted, &[Demand::ListDeleted]),
        (Lie::KeepsDeleted, &[Demand::Delete]),
        (Lie::ShiftsRanges, &[Demand::ReadRange]),
        (Lie::IgnoresRanges, &[Demand::ReadRange]),
    ] {
        let found = check(lie);
        assert!(!found.is_fit(), "{lie:?}");
        assert_eq!(broken(&found), demands, "{lie:?}: {found:#?}");
    }
    // All reads are wrong.
    assert!(broken(&check(Lie::ShortensRanges)).contains(&Demand::ReadRange));
}

#[test]
fn what_a_log_can_live_with_in_listings_is_told_with_what_follows() {
    for (lie, is_fit, remarks) in [
        (Lie::None, true, &[][..]),
        (Lie::ListsFromTheMiddle, true, &["in no order"]),
        (Lie::CutsListings, true, &["ends early without saying so"]),
        (Lie::IgnoresOffsets, true, &["from the first key on"]),
        (Lie::ShowsOnePage, false, &["from the first key on"]),
    ] {
        let found = check_with(lie, MANY);
        let of_many = found.checked.last().unwrap();
        assert_eq!(of_many.demand, Demand::ListMany);
        assert_eq!(of_many.remarks.len(), remarks.len(), "{lie:?}: {of_many:?}");
        for (told, remark) in of_many.remarks.iter().zip(remarks) {
            assert!(told.contains(remark), "{lie:?}: {told}");
        }
        assert_eq!(found.is_fit(), is_fit, "{lie:?}: {:?}", of_many.problems);
        if !is_fit {
            let problem = &of_many.problems[0];
            assert!(problem.contains("of 1100 keys are missing"), "{problem}");
        }
    }
    // None are asked for.
    let of_many = check_with(Lie::ShowsOnePage, 0).checked.pop().unwrap();
    assert!(of_many.latencies.is_empty() && of_many.problems.is_empty());
}

#[test]
fn a_store_without_conditional_creates_is_not_fit_and_asked_no_more() {
    let found = check(Lie::NotSupported);
    assert_eq!(broken(&found), [Demand::CreateOnce]);
    assert_eq!(found.checked.len(), 1);
    assert!(found.checked[0].problems[0].contains("conditional puts"), "{found:?}");
}

#[test]
fn a_store_that_fails_is_an_error_and_no_verdict() {
    for lie in [Lie::Fails, Lie::DeletesNothing] {
        let error = check_store(Liar::new(lie).0, "log.check", LIMIT, 40).unwrap_err();
        let Error::Store { source, .. } = &error else { panic!("{error:?}") };
        assert_eq!(source.kind, StoreErrorKind::Transient, "{lie:?}");
    }
}

#[test]
fn a_store_may_fail_creates_in_a_race_if_one_of_them_succeeds() {
    let found = check(Lie::IsBusy);
    assert!(found.is_fit(), "{found:?}");
    let error = check_store(Liar::new(Lie::IsTooBusy).0, "log.check", LIMIT, 40).unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[test]
fn a_place_that_is_in_use_is_not_touched() {
    let store = Arc::new(InMemory::new());
    let wal = Wal::open(store.clone(), "log", Options::default()).unwrap();
    wal.append(RegionId(1), "mine").unwrap();
    wal.stop().unwrap();
    let before = left(&store);
    let error = check_store(store.clone(), "log", LIMIT, 40).unwrap_err();
    assert!(matches!(error, Error::InvalidOptions { option: "scratch", .. }), "{error:?}");
    assert!(check_store(store.clone(), "log/../x", LIMIT, 40).is_err());
    // Beside it, there is room.
    assert!(check_store(store.clone(), "log.check", LIMIT, 40).unwrap().is_fit());
    assert_eq!(left(&store), before);
}

#[test]
fn a_log_that_is_cleared_is_gone_and_its_neighbours_are_not() {
    let store = Arc::new(InMemory::new());
    for prefix in ["log", "log.2", "log/3"] {
        let wal = Wal::open(store.clone(), prefix, Options::default()).unwrap();
        wal.append(RegionId(1), "mine").unwrap();
        wal.stop().unwrap();
    }
    let before = left(&store);
    clear(store.clone(), "log", LIMIT).unwrap();
    let expected: Vec<_> =
        before.into_iter().filter(|key| !key.as_ref().starts_with("log/objects/")).collect();
    assert!(!expected.is_empty());
    assert_eq!(left(&store), expected);
}
