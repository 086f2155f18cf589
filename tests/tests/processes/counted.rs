//! How many requests an opening makes (DESIGN.md sections 4, 10 and 12), counted where the client
//! is called, and where the requests of its client arrive.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::StreamExt;
use sealog_shell::Location;
use sealog_tests::hooked::{Asked, Hooked, Moment};
use sealog_tests::place::{Place, named};
use sealog_tests::proxy::{Head, Proxy};

use crate::logs::Template;
use crate::tell;

/// Of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Requests {
    lists: usize,
    gets: usize,
    puts: usize,
}

impl Template {
    /// Two listings, a read per object, the start object, its check and its read; and unless the way is
    /// blocked already, a claim and a listing more. What else the opening made itself is not read. A
    /// listing is asked for twice if it shows nothing, or comes in no order.
    async fn costs(self, place: &Place, in_order: bool) -> Requests {
        let claims = match self {
            Template::Empty | Template::Claimed => 0,
            Template::Clean | Template::Hole | Template::Stale | Template::StaleBehindHole => 1,
        };
        let Location { store, prefix } = place.location();
        let gets = store.list(Some(&prefix.as_str().into())).count().await;
        let lists = match (self, in_order) {
            (Template::Empty, true) => 3,
            (Template::Empty, false) => 4,
            (_, true) => 2 + claims,
            (_, false) => 2 * (2 + claims),
        };
        Requests { lists, gets: gets + 1, puts: 2 + claims }
    }
}

#[tokio::test]
async fn the_requests_of_an_opening_over_a_directory_are_as_many_as_the_design_says() {
    for template in Template::ALL {
        let place = Place::directory();
        let (_, before) = template.make(&place).await;
        let costs = template.costs(&place, false).await;
        let counted = Arc::new(Mutex::new(Requests::default()));
        let counting = counted.clone();
        let hooked = |store| {
            let hooked = Hooked::new(store, move |request| {
                let mut counted = counting.lock().unwrap();
                match (request.moment, request.asked) {
                    (Moment::Before, Asked::List) => counted.lists += 1,
                    (Moment::Before, Asked::Get) => counted.gets += 1,
                    (Moment::Before, Asked::Put) => counted.puts += 1,
                    (Moment::After, _) => {}
                }
                std::future::ready(Ok(())).boxed()
            });
            hooked as Arc<_>
        };
        let wal = place.open_through(hooked, named("counted")).await.unwrap();
        let counted = *counted.lock().unwrap();
        tell(&format!("an opening over a directory, {template:?}: {counted:?}"));
        assert_eq!(counted, costs, "{template:?}");
        drop((wal, before));
    }
}

#[tokio::test]
async fn the_requests_of_an_opening_over_s3_are_as_many_as_the_design_says() {
    let Some(place) = Place::bucket("counted") else { return };
    let proxy = Proxy::start(place.upstream()).await.unwrap();
    for template in Template::ALL {
        let place = place.log(format!("{template:?}"));
        let (_, before) = template.make(&place).await;
        let costs = template.costs(&place, true).await;
        let wal = place.by_way_of(proxy.endpoint()).open(named("counted")).await.unwrap();
        let seen = proxy.seen();
        let counted = Requests {
            lists: seen.iter().filter(|head| is_listing(head)).count(),
            gets: seen.iter().filter(|head| head.method == "GET" && !is_listing(head)).count(),
            puts: seen.iter().filter(|head| head.method == "PUT").count(),
        };
        tell(&format!("an opening over S3, {template:?}: {counted:?}"));
        assert_eq!(counted, costs, "{template:?}");
        assert_eq!(seen.len(), counted.lists + counted.gets + counted.puts, "{seen:?}");
        drop((wal, before));
    }
}

fn is_listing(head: &Head) -> bool {
    head.method == "GET" && head.target.contains("list-type=2")
}
