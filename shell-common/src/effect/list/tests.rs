use std::cell::Cell;
use std::fmt;
use std::future::{Ready, pending, ready};
use std::sync::Mutex;

use async_trait::async_trait;
use futures_executor::block_on;
use futures_util::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as ClientError, GetOptions, GetResult, ListResult, MultipartUpload,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::*;

/// What a store with this name lists.
struct Lists {
    name: &'static str,
    listing: Mutex<Option<BoxStream<'static, Result<ObjectMeta>>>>,
}

impl Lists {
    fn new(name: &'static str, listing: BoxStream<'static, Result<ObjectMeta>>) -> Lists {
        Lists { name, listing: Mutex::new(Some(listing)) }
    }

    fn names(name: &'static str, names: &[&str]) -> Lists {
        let names: Vec<_> = names.iter().map(|name| Ok(meta(name))).collect();
        Lists::new(name, stream::iter(names).boxed())
    }
}

fn meta(name: &str) -> ObjectMeta {
    ObjectMeta {
        location: Path::from(format!("p/objects/{name}")),
        last_modified: Default::default(),
        size: 60,
        e_tag: None,
        version: None,
    }
}

impl fmt::Debug for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[async_trait]
impl ObjectStore for Lists {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        unreachable!("it is listed only")
    }

    async fn get_opts(&self, _: &Path, _: GetOptions) -> Result<GetResult> {
        unreachable!("it is listed only")
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing.lock().unwrap().take().unwrap()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        unreachable!("it is listed only")
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        unreachable!("it is listed only")
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        unreachable!("it is listed only")
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        unreachable!("it is listed only")
    }
}

fn listed_by<T: Future<Output = ()>>(
    store: &Lists,
    after: Option<&str>,
    limit: impl Fn() -> T,
) -> Result<Vec<String>, StoreError> {
    let found = block_on(list(store, "p/objects/", after, &limit))?;
    let name = |listed: Listed| listed.key.strip_prefix("p/objects/").unwrap().to_owned();
    Ok(found.into_iter().map(name).collect())
}

fn shown(store: &Lists, after: Option<&str>) -> Vec<String> {
    listed_by(store, after, pending).unwrap()
}

/// The limit passes whenever it is looked at, so a listing that ever waits under a limit that was
/// looked at before ends.
fn at_once(made: &Cell<usize>) -> impl Fn() -> Ready<()> {
    || {
        made.set(made.get() + 1);
        ready(())
    }
}

#[test]
fn the_order_is_the_stores() {
    for name in ["AmazonS3(bucket)", "InMemory"] {
        assert_eq!(shown(&Lists::names(name, &["2", "1", "3"]), None), ["2", "1", "3"]);
        assert_eq!(shown(&Lists::names(name, &["1"]), None), ["1"]);
    }
}

#[test]
fn an_order_that_means_nothing_never_looks_like_one() {
    for name in ["LocalFileSystem(file:///logs)", "LimitStore(4, AmazonS3(log--use1-az4--x-s3))"] {
        for names in [&["1", "2", "3"], &["2", "3", "1"]] {
            assert_eq!(shown(&Lists::names(name, names), None), ["3", "2", "1"]);
        }
        assert_eq!(shown(&Lists::names(name, &["1"]), None), ["1", "1"]);
        assert_eq!(shown(&Lists::names(name, &[]), None), [""; 0]);
        assert_eq!(shown(&Lists::names(name, &["1", "2"]), Some("p/objects/1")), ["2", "2"]);
    }
}

/// Each page comes after a wait.
fn pages(pages: usize, then: BoxStream<'static, Result<ObjectMeta>>) -> Lists {
    let page = |page: usize| {
        let mut waited = false;
        let wait = poll_fn(move |context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let keys = [Ok(meta(&format!("{page}-0"))), Ok(meta(&format!("{page}-1")))];
        stream::once(wait).flat_map(move |()| stream::iter(keys.clone().map(again)))
    };
    let first = stream::iter([Ok(meta("0"))]);
    Lists::new("pages", first.chain(stream::iter(0..pages).flat_map(page)).chain(then).boxed())
}

fn again(key: Result<ObjectMeta, ()>) -> Result<ObjectMeta> {
    key.map_err(|()| ClientError::NotImplemented { operation: "".into(), implementer: "".into() })
}

/// A limit that passes when it is looked at for the second time.
fn second_look(made: &Cell<usize>) -> impl Fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    || {
        made.set(made.get() + 1);
        let mut looks = 0;
        Box::pin(poll_fn(move |_| {
            looks += 1;
            if looks < 2 { Poll::Pending } else { Poll::Ready(()) }
        }))
    }
}

#[test]
fn the_time_limit_counts_for_each_page() {
    let made = Cell::new(0);
    let found = listed_by(&pages(100, stream::empty().boxed()), None, second_look(&made));
    assert_eq!(found.unwrap().len(), 201);
    // One before anything came, and one for each page that was waited for.
    assert_eq!(made.get(), 101);
}

#[test]
fn a_listing_that_stalls_is_cut_off() {
    let made = Cell::new(0);
    let stalls = pages(
        3,
        stream::once(poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Pending
        }))
        .boxed(),
    );
    let error = listed_by(&stalls, None, second_look(&made)).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::TimedOut);
    assert_eq!(made.get(), 5);
    let never = Lists::new("never", stream::pending().boxed());
    let error = listed_by(&never, None, at_once(&made)).unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::TimedOut);
}

#[test]
fn pages_that_lead_back_to_earlier_ones_end() {
    for (leading, circle) in [(0, 1), (0, 2), (5, 3), (100, 1), (3, 1000), (1000, 1000)] {
        let key = move |at: usize| {
            let at = if at < leading { at } else { leading + (at - leading) % circle };
            Ok(meta(&at.to_string()))
        };
        let taken = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = taken.clone();
        let listing = stream::iter(0..).map(move |at| {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            key(at)
        });
        let error = listed_by(&Lists::new("circle", listing.boxed()), None, pending).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Transient);
        assert!(error.to_string().contains("again and again"), "{error}");
        let taken = taken.load(std::sync::atomic::Ordering::Relaxed);
        assert!(taken <= 8 * (leading + circle), "{taken} of {leading} and {circle}");
    }
}

#[test]
fn a_key_that_is_shown_twice_is_no_circle() {
    let shown = shown(&Lists::names("AmazonS3(bucket)", &["1", "1", "2", "3", "2"]), None);
    assert_eq!(shown, ["1", "1", "2", "3", "2"]);
}
