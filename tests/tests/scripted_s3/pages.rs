//! Listings of many pages: truncated, repeated, without end, slow (faults 4 and 13).

use std::time::Duration;

use sealog_tests::s3::{Fault, Kind, Rule, Token};

use crate::log::Log;
use crate::row::{Does, Row};
use crate::stage::passing;

fn page(fault: Fault) -> Rule {
    Rule::on(Kind::List, fault)
}

fn truncated(keys: usize, says: bool, token: Token) -> Rule {
    page(Fault::Truncated { keys, says, token })
}

/// Their objects are many: they wait longer.
fn patient(options: &mut sealog_tokio::Options) {
    options.open_timeout = Duration::from_secs(10);
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (what, says, token) in [
        ("without a token", true, Token::Missing),
        ("with an empty token", true, Token::Empty),
        ("that say they are whole", false, Token::Missing),
    ] {
        let name = |does: &str| format!("scripted_s3/pages {what}, of 1,000 keys, {does}");
        rows.extend([
            Row::told(name("of a reader"), Log::Of(1_100), Does::View)
                .rule(truncated(1_000, says, token))
                .options(patient)
                .into(),
            Row::told(name("of an opening"), Log::Of(1_100), Does::Open)
                .rule(truncated(1_000, says, token))
                .options(patient)
                .into(),
        ]);
    }
    rows.extend([
        Row::told(
            "scripted_s3/2,500 objects in pages without a token, of a reader",
            Log::Of(2_500),
            Does::View,
        )
        .rule(truncated(1_000, true, Token::Missing))
        .options(patient)
        .into(),
        Row::told(
            "scripted_s3/2,500 objects in pages without a token, of a survey",
            Log::Of(2_500),
            Does::Survey,
        )
        .rule(truncated(1_000, true, Token::Missing))
        .options(patient)
        .into(),
        // What comes behind the last of 1,000 keys or more is asked for.
        Row::told(
            "scripted_s3/2,500 objects in good pages, of a reader",
            Log::Of(2_500),
            Does::View,
        )
        .options(patient)
        .asks(Kind::List, 4, 4)
        .into(),
        Row::told("scripted_s3/pages of 2 keys with tokens", Log::Of(9), Does::Open)
            .rule(truncated(2, true, Token::Right))
            .into(),
        Row::told(
            "scripted_s3/pages of 2 keys with tokens that say they are whole",
            Log::Of(9),
            Does::Open,
        )
        .rule(truncated(2, false, Token::Right))
        .into(),
        Row::told("scripted_s3/one page comes twice", Log::Of(9), Does::Open)
            .rule(truncated(3, true, Token::Right))
            .rule(page(Fault::Again).nth(2))
            .into(),
        Row::told(
            "scripted_s3/one page comes twice in every listing, of a reader",
            Log::Of(9),
            Does::View,
        )
        .rule(truncated(3, true, Token::Right))
        .rule(page(Fault::Again).nth(2))
        .into(),
    ]);
    for does in [Does::Open, Does::View, Does::Survey] {
        // A page that leads to itself for ever.
        rows.push(
            Row::told(format!("scripted_s3/pages without end, {does:?}"), Log::Of(9), does)
                .rule(truncated(3, true, Token::Loops))
                .limit(Duration::from_secs(5))
                .fails(passing("Store"))
                .asks(Kind::List, 2, 5_000)
                .into(),
        );
    }
    rows.extend(slow());
    rows
}

fn slow() -> Vec<Row> {
    vec![
        // Five pages of a quarter of a second: each answers in time, all of them do not.
        Row::told("scripted_s3/slow pages are each in time", Log::Of(9), Does::View)
            .prepared(|stage| stage.s3.bucket().page = 2)
            .options(|options| options.request_timeout = Duration::from_millis(800))
            .rule(page(Fault::Takes(Duration::from_millis(220))).first(5))
            .asks(Kind::List, 5, 5)
            .into(),
        // Nothing was to take effect, so nothing is said of that.
        Row::told("scripted_s3/a page that never comes", Log::Of(9), Does::Open)
            .prepared(|stage| stage.s3.bucket().page = 2)
            .options(|options| options.request_timeout = Duration::from_millis(150))
            .rule(page(Fault::Held).from(3))
            .fails(passing("Store").not_saying(&["may still take effect"]))
            .into(),
        Row::told("scripted_s3/a page that fails is asked for again", Log::Of(9), Does::Open)
            .prepared(|stage| stage.s3.bucket().page = 2)
            .rule(page(crate::stage::status(503)).nth(3))
            .into(),
        // One of ten slow reads fails once: what goes on may go on.
        Row::told(
            "scripted_s3/an opening goes on as long as reads succeed",
            Log::Of(9),
            Does::Open,
        )
        .options(|options| {
            options.open_concurrency = 1;
            options.open_timeout = Duration::from_millis(350);
        })
        .rule(Rule::on(Kind::Get, Fault::Takes(Duration::from_millis(60))).first(11))
        .rule(Rule::on(Kind::Get, crate::stage::status(503)).nth(9))
        .into(),
    ]
}
