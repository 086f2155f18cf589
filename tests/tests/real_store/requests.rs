//! What a shell does with a storage effect (DESIGN.md section 1), on a real store.

use std::time::Duration;

use bytes::Bytes;
use sealog_core::{Payload, ReadBack, RequestId, StorageAnswer, StorageEffect, StoreErrorKind};
use sealog_shell::Location;
use sealog_tests::place::Place;

use crate::{object_path, plant};

const ID: RequestId = RequestId(1);
const TIME_LIMIT: Duration = Duration::from_secs(30);

async fn carry_out(location: &Location, effect: StorageEffect) -> StorageAnswer {
    sealog_shell::carry_out(&location.store, effect, tokio::time::sleep).await
}

#[tokio::test]
async fn a_range_of_an_object_is_exactly_these_bytes_as_far_as_it_goes() {
    let Some(place) = Place::bucket("ranges") else { return };
    let location = place.location();
    let bytes: Bytes = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
    plant(&place, &object_path(&place, 7), bytes.clone()).await;
    let key = location.prefix.object_key(sealog_core::ObjectSeq(7));
    let fetch = async |range: std::ops::Range<u64>| {
        let key = key.clone();
        let effect = StorageEffect::FetchRange { id: ID, key, range, time_limit: TIME_LIMIT };
        match carry_out(&location, effect).await {
            StorageAnswer::Fetched { id: ID, result } => result.map_err(|error| error.kind),
            other => panic!("{other:?}"),
        }
    };
    let size = bytes.len() as u64;
    for range in [0..1, 0..54, 1..2, 65_535..65_537, size - 32..size, size - 1..size, 0..size] {
        let expected = bytes.slice(range.start as usize..range.end as usize);
        assert_eq!(fetch(range.clone()).await, Ok(expected), "{range:?}");
    }
    for beyond in [0..size + 1, size - 1..size + 1, size..size + 1, size + 10..size + 20] {
        let expected = bytes.slice(beyond.start.min(size) as usize..);
        assert_eq!(fetch(beyond.clone()).await, Ok(expected), "{beyond:?}");
    }
}

#[tokio::test]
async fn a_read_back_is_the_size_and_both_ends_of_what_may_be_an_object() {
    let Some(place) = Place::bucket("read-back") else { return };
    let location = place.location();
    let bytes: Bytes = (0..200).collect();
    for size in [0, 1, 53, 54, 89, 90, 200] {
        plant(&place, &object_path(&place, size), bytes.slice(..size as usize)).await;
        let key = location.prefix.object_key(sealog_core::ObjectSeq(size));
        let effect = StorageEffect::ReadBack { id: ID, key, time_limit: TIME_LIMIT };
        let StorageAnswer::ReadBackResult { result, .. } = carry_out(&location, effect).await
        else {
            panic!("not an answer to a read-back")
        };
        let expected = ReadBack::of(&bytes.slice(..size as usize));
        assert_eq!(result.unwrap(), expected, "of {size} bytes");
    }
    let key = location.prefix.object_key(sealog_core::ObjectSeq(1000));
    let effect = StorageEffect::ReadBack { id: ID, key, time_limit: TIME_LIMIT };
    match carry_out(&location, effect).await {
        StorageAnswer::ReadBackResult { result: Err(error), .. } => {
            assert_eq!(error.kind, StoreErrorKind::NotFound, "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_create_of_a_taken_key_exists_and_leaves_it_as_it_was() {
    let Some(place) = Place::bucket("taken") else { return };
    let location = place.location();
    let key = location.prefix.object_key(sealog_core::ObjectSeq(0));
    for (text, expected) in [("first", None), ("second", Some(StoreErrorKind::Exists))] {
        let payload = Payload::new(vec![Bytes::from(text)]);
        let key = key.clone();
        let effect = StorageEffect::PutObject { id: ID, key, payload, time_limit: TIME_LIMIT };
        match carry_out(&location, effect).await {
            StorageAnswer::CreateResult { id: ID, result } => {
                assert_eq!(result.err().map(|error| error.kind), expected);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(crate::bytes(&place, &object_path(&place, 0)).await, "first");
}

#[tokio::test]
async fn a_listing_has_every_key_above_the_one_it_begins_behind() {
    let Some(place) = Place::bucket("listing") else { return };
    let location = place.location();
    for sequence in 0..5 {
        plant(&place, &object_path(&place, sequence), Bytes::from("x")).await;
    }
    // Beside it, and not below it.
    plant(&place, &format!("{}/objects2/x", location.prefix.as_str()).into(), "x").await;
    let key = |sequence| location.prefix.object_key(sealog_core::ObjectSeq(sequence));
    for (after, first) in [(None, 0), (Some(key(2)), 3), (Some(key(4)), 5)] {
        let prefix = location.prefix.objects();
        let effect = StorageEffect::List { id: ID, prefix, after, time_limit: TIME_LIMIT };
        let StorageAnswer::Listed { result, .. } = carry_out(&location, effect).await else {
            panic!("not an answer to a listing")
        };
        let mut keys: Vec<_> = result.unwrap().into_iter().map(|listed| listed.key).collect();
        keys.sort();
        assert_eq!(keys, (first..5).map(key).collect::<Vec<_>>());
    }
}
