use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions};

use super::*;

async fn create(store: &Arc<dyn ObjectStore>, key: &str, bytes: &str) -> object_store::Result<()> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(&Path::from(key), bytes.to_owned().into(), options).await.map(drop)
}

async fn listed(store: &Arc<dyn ObjectStore>, after: &str) -> Vec<String> {
    let listing = store.list_with_offset(Some(&Path::from("p")), &Path::from(after));
    let found = listing.map_ok(|meta| meta.location.to_string());
    found.try_collect().await.unwrap()
}

fn keys(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[tokio::test]
async fn without_a_script_it_keeps_its_promises() {
    let s3 = S3::start();
    let store = s3.store();
    for key in ["p/a", "p/b", "p/c", "q/a"] {
        create(&store, key, "hello").await.unwrap();
    }
    let again = create(&store, "p/a", "other").await;
    assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
    let part = store.get_range(&Path::from("p/a"), 1..3).await.unwrap();
    assert_eq!(part, &b"el"[..]);
    let missing = store.head(&Path::from("p/d")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");

    // In pages and in each order.
    s3.bucket().page = 2;
    assert_eq!(listed(&store, "o").await, keys(&["p/a", "p/b", "p/c"]));
    assert_eq!(listed(&store, "p/a").await, keys(&["p/b", "p/c"]));
    s3.bucket().order = Order::Descending;
    assert_eq!(listed(&store, "o").await, keys(&["p/c", "p/b", "p/a"]));
    s3.bucket().order = Order::Scattered;
    let mut scattered = listed(&store, "o").await;
    assert_eq!(scattered, listed(&store, "o").await);
    scattered.sort();
    assert_eq!(scattered, keys(&["p/a", "p/b", "p/c"]));

    let all = ["p/a", "p/b"].map(|key| Ok(Path::from(key)));
    let deleted = store.delete_stream(Box::pin(futures_util::stream::iter(all)));
    assert_eq!(deleted.try_collect::<Vec<_>>().await.unwrap().len(), 2);
    assert_eq!(s3.bucket().objects().len(), 2);
    // Listings of two and of one page each in three orders and once more, and one of one.
    assert_eq!(s3.count(Kind::List), 9);
    assert_eq!((s3.count(Kind::Put), s3.count(Kind::Delete)), (5, 1));
}

#[tokio::test]
async fn times_are_what_a_test_says() {
    let s3 = S3::start();
    s3.bucket().put("p/a", "hello");
    s3.bucket().set_modified("p/a", 1_709_251_199_007);
    let store = s3.store();
    let found: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(found[0].last_modified.timestamp_millis(), 1_709_251_199_007);
}

#[tokio::test]
async fn an_effect_without_an_answer_and_an_answer_without_an_effect() {
    let s3 = S3::start();
    let store = s3.store();
    s3.rule(Rule::on(Kind::Put, Fault::Lost).nth(1));
    s3.rule(Rule::on(Kind::Put, Fault::Late).nth(2));
    s3.rule(Rule::on(Kind::Put, Fault::status(412, "PreconditionFailed")).nth(3));
    for key in ["p/a", "p/b", "p/c"] {
        assert!(create(&store, key, "hello").await.is_err(), "{key}");
    }
    assert_eq!(listed(&store, "o").await, keys(&["p/a"]));
    s3.land();
    assert_eq!(listed(&store, "o").await, keys(&["p/a", "p/b"]));
}

#[tokio::test]
async fn what_is_held_goes_on_when_it_is_told_to() {
    let s3 = S3::start();
    let store = s3.store();
    s3.rule(Rule::on(Kind::Put, Fault::Held));
    let held = tokio::spawn(async move { create(&store, "p/a", "hello").await });
    while s3.count(Kind::Put) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(s3.bucket().get("p/a").is_none());
    s3.heal();
    held.await.unwrap().unwrap();
    assert!(s3.bucket().get("p/a").is_some());
}
