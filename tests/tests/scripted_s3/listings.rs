//! Listings that are none, that show too little, and that come in no order (faults 2, 3 and 9).

use sealog_tests::s3::{Fault, Kind, Order, Rule};
use sealog_tokio::ReplayFilter;

use crate::log::{Log, REGION, key};
use crate::row::{Does, Row, opened};
use crate::stage::{Stage, ensure, passing, replay};

fn list(fault: Fault) -> Rule {
    Rule::on(Kind::List, fault)
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = none();
    rows.extend(unordered());
    rows.extend([
        guard_is_shown_nothing(),
        row_of_a_claim_that_is_not_shown(),
        created_again(),
        view_takes_an_unordered_listing_as_it_is(),
        never_settles(),
        ends_although_every_listing_is_none(),
    ]);
    rows
}

/// Three answers under status 200 that are no listing, for a client that takes any XML.
fn nothings() -> [(&'static str, Fault); 3] {
    [
        ("an HTML page", Fault::html()),
        ("an error document", Fault::error_document()),
        ("an empty listing", Fault::empty_listing()),
    ]
}

fn none() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (what, fault) in nothings() {
        for log in [Log::Of(5), Log::Collected] {
            let of = format!("scripted_s3/{what} for a listing of {log:?}");
            let told = |when: &str, does| Row::told(format!("{of}: {when}"), log, does);
            let once = || list(fault.clone()).first(1);
            let twice = || list(fault.clone()).first(2);
            let always = || list(fault.clone());
            rows.extend([
                told("the first, of an opening", Does::Open).rule(once()).into(),
                // It is asked a second time; then it begins a new log, whose start object meets the
                // old one, or stands beside it when the next listing shows that.
                told("the first two, of an opening", Does::Open)
                    .rule(twice())
                    .may_fail(passing("Store|Contended"))
                    .into(),
                // What was just created must be shown, so this is not opened.
                told("all, of an opening", Does::Open)
                    .rule(always())
                    .fails(passing("Store|Contended"))
                    .asks(Kind::List, 2, 40)
                    .into(),
                told("that after the claim, of an opening", Does::Open)
                    .rule(list(fault.clone()).nth(2))
                    .into(),
                told("that after the start object, of an opening", Does::Open)
                    .rule(list(fault.clone()).nth(3))
                    .into(),
                told("all after the claim, of an opening", Does::Open)
                    .rule(list(fault.clone()).from(2))
                    .fails(passing("Store"))
                    .into(),
                told("all after the start object, of an opening", Does::Open)
                    .rule(list(fault.clone()).from(3))
                    .fails(passing("Store"))
                    .into(),
                told("the first, of a reader", Does::View).rule(once()).into(),
                told("the first, of a reader that must see something", Does::View)
                    .rule(once())
                    .options(|options| options.must_exist = true)
                    .into(),
                told("the first, of a survey", Does::Survey).rule(once()).into(),
                told("the first, of a refresh", Does::Refresh).rule(once()).into(),
                told("all, of a refresh", Does::Refresh)
                    .rule(always())
                    .fails(passing("Store"))
                    .into(),
            ]);
        }
        rows.push(
            Row::told(
                format!("scripted_s3/{what} for all listings of nothing"),
                Log::Empty,
                Does::Open,
            )
            .rule(list(fault.clone()))
            .fails(passing("Store"))
            .into(),
        );
        rows.push(
            Row::told(
                format!("scripted_s3/{what} for the first listing of a log that must exist"),
                Log::Of(5),
                Does::Open,
            )
            .rule(list(fault).first(1))
            .options(|options| options.must_exist = true)
            .into(),
        );
    }
    rows
}

fn unordered() -> Vec<Row> {
    let mut rows = Vec::new();
    for order in [Order::Descending, Order::Scattered] {
        let ordered = || list(Fault::Ordered(order));
        let told = |what: &str, does| {
            Row::told(format!("scripted_s3/{order:?} listings, {what}"), Log::Of(5), does)
                .options(|options| options.open_attempts = 16)
        };
        rows.extend([
            // The first, that after the claim, and the look: twice each.
            told("of an opening", Does::Open).rule(ordered()).asks(Kind::List, 6, 6).into(),
            // A legal answer of such a store: what was created meanwhile may be missing.
            told("the first without the tip", Does::Open)
                .rule(ordered())
                .rule(list(Fault::Hides(key(5))).first(1))
                .into(),
            told("that after the claim without the claim", Does::Open)
                .rule(ordered())
                .rule(list(Fault::Hides(key(6))).nth(3))
                .into(),
            told("the look without the start object", Does::Open)
                .rule(ordered())
                .rule(list(Fault::Hides(key(7))).nth(5))
                .into(),
            told("of a survey", Does::Survey).rule(ordered()).into(),
            told("of a refresh", Does::Refresh).rule(ordered()).asks(Kind::List, 1, 1).into(),
        ]);
        rows.push(
            Row::told(
                format!("scripted_s3/{order:?} pages of two keys, of an opening"),
                Log::Of(9),
                Does::Open,
            )
            .prepared(|stage| stage.s3.bucket().page = 2)
            .options(|options| options.open_attempts = 16)
            .rule(ordered())
            .into(),
        );
    }
    rows
}

fn view_takes_an_unordered_listing_as_it_is() -> Row {
    Row::told("scripted_s3/a view of a scattered listing asks once", Log::Of(5), Does::View)
        .rule(list(Fault::Ordered(Order::Scattered)))
        .asks(Kind::List, 1, 1)
        .into()
}

/// Each listing lacks another object, so no two in a row are equal.
fn never_settles() -> Row {
    Row::told("scripted_s3/scattered listings that never settle", Log::Of(5), Does::Open)
        .rule(list(Fault::Ordered(Order::Scattered)))
        .rule(list(Fault::Hides(key(2))).every(2))
        .fails(passing("Store|Contended"))
        .asks(Kind::List, 2, 40)
        .into()
}

/// Bounded in requests, not only in time.
fn ends_although_every_listing_is_none() -> Row {
    Row::told(
        "scripted_s3/an opening ends although no listing is one and time is no object",
        Log::Of(5),
        Does::Open,
    )
    .rule(list(Fault::empty_listing()))
    .options(|options| options.open_timeout = std::time::Duration::from_secs(3600))
    .fails(passing("Store|Contended"))
    .asks(Kind::List, 2, 20)
    .into()
}

/// After a roll back the next batch is guarded by a listing. Somebody has claimed the place before
/// it meanwhile, and the listing shows nothing.
fn guard_is_shown_nothing() -> Row {
    Row::new("scripted_s3/a guard is shown nothing and a later epoch stands there", || async {
        let mut stage = Stage::new(Log::Of(2)).await;
        let old = opened(&mut stage).await?;
        // Rolled back: its sequence is consumed.
        stage.script([Rule::on(Kind::Put, crate::stage::status(403))]);
        ensure!(stage.append(&old, "refused").await.is_err(), "it was refused");
        stage.s3.heal();
        let new = stage.open().await.map_err(|error| format!("no take-over: {error}"))?;
        let id = stage.append(&new, "of the new one").await;
        id.map_err(|error| format!("the new one: {error}"))?;
        // A writer that never meets a key that is taken would go on behind the new one.
        stage.script([Rule::on(Kind::List, Fault::empty_listing()).first(1)]);
        let appended = stage.append(&old, "of the old one").await;
        ensure!(appended.is_err(), "the old writer acknowledged {appended:?}");
        stage.nothing_is_lost().await
    })
}

/// What an opening has just created must be shown to it.
fn row_of_a_claim_that_is_not_shown() -> Row {
    Row::told("scripted_s3/a claim is not shown once", Log::Of(5), Does::Open)
        .rule(list(Fault::Hides(key(6))).nth(2))
        // Another claim would do no harm; but it would be one for nothing.
        .asks(Kind::Put, 4, 4)
        .into()
}

/// A key that is deleted and created again with the same size is another object.
fn created_again() -> Row {
    Row::new(
        "scripted_s3/a refresh sees that an object was created again with the same size",
        || async {
            let mut stage = Stage::new(Log::Of(5)).await;
            let reader = stage.reader().await.map_err(|error| error.to_string())?;
            let last = reader.durable(REGION);
            // As if the prefix were emptied and written anew: the same header, another payload.
            let decoded = sealog_core::format::Object::decode(
                &stage.s3.bucket().get(&key(5)).unwrap().bytes.clone(),
            );
            let mut object = decoded.map_err(|error| error.to_string())?;
            for (meta, entries) in &mut object.segments {
                if meta.region == REGION {
                    entries[0].payload = "ANOTHER.".into();
                }
            }
            let bytes = sealog_tests::encode(&object);
            ensure!(
                bytes.len() == stage.s3.bucket().get(&key(5)).unwrap().bytes.len(),
                "it has another size"
            );
            stage.s3.bucket().put(key(5), bytes);
            stage.acknowledged.insert(last, "ANOTHER.".into());
            reader.refresh().await.map_err(|error| format!("the refresh: {error}"))?;
            let found = replay(reader.replay(ReplayFilter::all())).await;
            stage.is_whole(&found.map_err(|error| error.to_string())?)
        },
    )
}
