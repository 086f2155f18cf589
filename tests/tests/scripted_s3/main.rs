//! What stores really answer, told by a scripted S3 with the real client in between: each row has a
//! fault, what is done meanwhile, what must come of it, and what must be in the log afterwards.
//!
//! The expected results are those of DESIGN.md. What the code does not do yet is listed in
//! `tests/src/pending.rs`. With `SEALOG_ROWS=1` every row says what came of it.

mod claims;
mod costs;
mod damage;
mod deletes;
mod listings;
mod log;
mod pages;
mod reads;
mod row;
mod stage;
mod statuses;
mod stores;
mod writes;

/// One test for each table, whose rows run side by side.
macro_rules! tables {
    ($($name:ident: $rows:path;)+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            row::judge($rows()).await;
        })+
    };
}

tables! {
    a_listing_that_is_none_is_not_believed: listings::rows;
    pages_are_read_to_their_end_or_not_at_all: pages::rows;
    each_status_means_what_it_says_at_an_opening: statuses::opening;
    each_status_means_what_it_says_at_an_append: statuses::append;
    each_status_means_what_it_says_at_a_read: statuses::read;
    each_status_means_what_it_says_at_a_delete: deletes::rows;
    damage_is_told_without_delay_and_changes_nothing: damage::rows;
    a_claim_meets_what_stores_say: claims::rows;
    a_create_meets_what_stores_say: writes::rows;
    a_read_meets_what_stores_say: reads::rows;
    each_opening_guard_and_failover_costs_what_is_said: costs::rows;
    a_store_that_breaks_its_promises_is_told: stores::rows;
}

#[test]
fn what_is_pending_is_the_name_of_a_row_and_no_name_is_given_twice() {
    let tables = [
        listings::rows(),
        pages::rows(),
        statuses::opening(),
        statuses::append(),
        statuses::read(),
        deletes::rows(),
        damage::rows(),
        claims::rows(),
        writes::rows(),
        reads::rows(),
        costs::rows(),
        stores::rows(),
    ];
    let mut names: Vec<_> = tables.into_iter().flatten().map(|row| row.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for (pending, _) in sealog_tests::pending::of("scripted_s3/") {
        assert!(names.iter().any(|name| name == pending), "no row is called {pending}");
    }
}
