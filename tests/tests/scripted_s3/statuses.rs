//! Each status that a store can answer, on each kind of request (faults 12, 17 and 26; DESIGN.md
//! section 1).

use sealog_tests::s3::{Fault, Kind, Rule};

use crate::log::Log;
use crate::row::{Does, Row};
use crate::stage::{Wrong, lasting, passing, status};

/// What does not pass by waiting.
const REFUSALS: [u16; 5] = [301, 400, 403, 404, 405];

/// What may pass; of a create 409 and 412 say something else.
const TROUBLES: [u16; 8] = [408, 409, 412, 423, 425, 429, 500, 503];

const NO_ACCESS: Wrong = lasting("Store");

/// A refusal is no reason to look for credentials where the status says what is wrong.
fn refusal(of: u16) -> Wrong {
    match of {
        301 | 400 => NO_ACCESS.saying(&["region"]),
        403 => NO_ACCESS.saying(&["permission"]),
        404 => NO_ACCESS.saying(&["bucket"]),
        _ => NO_ACCESS,
    }
}

pub(crate) fn opening() -> Vec<Row> {
    let told = |kind: Kind, of: u16, when: &str| {
        let name = format!("scripted_s3/{of} for a {kind:?} of an opening, {when}");
        Row::told(name, Log::Of(5), Does::Open)
    };
    let mut rows: Vec<Row> = Vec::new();
    for of in REFUSALS {
        rows.push(
            told(Kind::List, of, "always")
                .rule(Rule::on(Kind::List, status(of)))
                .fails(refusal(of))
                .asks(Kind::List, 1, 1)
                .into(),
        );
        // The claim is the first put.
        rows.push(
            told(Kind::Put, of, "always")
                .rule(Rule::on(Kind::Put, status(of)))
                .fails(refusal(of))
                .asks(Kind::Put, 1, 1)
                .into(),
        );
        rows.push(
            told(Kind::Put, of, "at the start object")
                .rule(Rule::on(Kind::Put, status(of)).nth(2))
                .fails(refusal(of))
                .asks(Kind::Put, 2, 2)
                .into(),
        );
        rows.push(
            told(Kind::Put, of, "at the check of the store")
                .rule(Rule::on(Kind::Put, status(of)).nth(3))
                .fails(lasting("Store"))
                .asks(Kind::Put, 3, 3)
                .into(),
        );
        if of != 404 {
            rows.push(
                told(Kind::Get, of, "always")
                    .rule(Rule::on(Kind::Get, status(of)).of_object(3))
                    .fails(refusal(of))
                    .asks(Kind::Put, 0, 0)
                    .into(),
            );
        }
    }
    for of in TROUBLES {
        for (kind, least) in [(Kind::List, 2), (Kind::Get, 2), (Kind::Put, 2)] {
            rows.push(told(kind, of, "once").rule(Rule::on(kind, status(of)).first(1)).into());
            let wrong = match kind {
                // Whoever repeats it knows that nothing takes effect.
                Kind::List | Kind::Get => {
                    passing("Store").not_saying(&["may still take effect", "overtaken"])
                }
                _ => passing("Store|Contended").not_saying(&["overtaken"]),
            };
            rows.push(
                told(kind, of, "always")
                    .rule(Rule::on(kind, status(of)))
                    .fails(wrong)
                    .asks(kind, least, 60)
                    .into(),
            );
        }
        rows.push(
            told(Kind::Put, of, "once at the start object")
                .rule(Rule::on(Kind::Put, status(of)).nth(2))
                .into(),
        );
        if ![409, 412].contains(&of) {
            rows.push(
                told(Kind::Put, of, "once at the check of the store")
                    .rule(Rule::on(Kind::Put, status(of)).nth(3))
                    // A second at least, for stores that limit writes to one key.
                    .options(|options| options.open_timeout = std::time::Duration::from_secs(5))
                    .into(),
            );
        }
    }
    rows.extend([
        told(Kind::Put, 501, "always")
            .rule(Rule::on(Kind::Put, status(501)))
            .fails(lasting("UnsafeStore"))
            .into(),
        told(Kind::List, 501, "always")
            .rule(Rule::on(Kind::List, status(501)))
            .fails(lasting("Store"))
            .asks(Kind::List, 1, 1)
            .into(),
        // Gone, and listed: a collection may have run, and has not.
        told(Kind::Get, 404, "always")
            .rule(Rule::on(Kind::Get, Fault::status(404, "NoSuchKey")).of_object(3))
            .fails(lasting("Corrupted").saying(&["00000000000000000003.wal"]))
            .untouched()
            .asks(Kind::List, 2, 4)
            .into(),
        told(Kind::Get, 404, "once")
            .rule(Rule::on(Kind::Get, Fault::status(404, "NoSuchKey")).of_object(3).first(1))
            .into(),
        told(Kind::Get, 403, "for it is archived")
            .rule(Rule::on(Kind::Get, archived()).of_object(3))
            .fails(lasting("Store").saying(&["archive", "00000000000000000003.wal"]))
            .asks(Kind::Put, 0, 0)
            .into(),
    ]);
    rows.extend(settings());
    rows
}

/// As Glacier answers.
fn archived() -> Fault {
    Fault::Status {
        status: 403,
        code: "InvalidObjectState",
        message: "The operation is not valid for the object's storage class",
    }
}

/// Refusals that a setting of the client mends say which.
fn settings() -> Vec<Row> {
    let wants = || Rule::on(Kind::Put, Fault::WantsChecksum);
    vec![
        Row::told(
            "scripted_s3/a bucket with object lock wants a checksum, of an opening",
            Log::Of(5),
            Does::Open,
        )
        .rule(wants())
        .fails(lasting("Store").saying(&["aws_checksum_algorithm"]))
        .asks(Kind::Put, 1, 1)
        .into(),
        Row::told(
            "scripted_s3/a bucket with object lock wants a checksum, of an append",
            Log::Of(5),
            Does::Append,
        )
        .rule(wants())
        .fails(lasting("Store").saying(&["aws_checksum_algorithm"]))
        .into(),
        Row::new(
            "scripted_s3/with the setting a bucket with object lock gets its checksum",
            move || async move {
                use object_store::aws::AmazonS3ConfigKey;
                let mut stage = crate::stage::Stage::new(Log::Of(5)).await;
                stage.script([wants()]);
                let store = stage.s3.store_with(&[(AmazonS3ConfigKey::Checksum, "sha256")]);
                let wal =
                    sealog_tokio::Wal::open(store, crate::log::PREFIX, stage.options.clone()).await;
                let wal = wal.map_err(|error| error.to_string())?;
                stage.append(&wal, "with a checksum").await.map_err(|error| error.to_string())?;
                stage.nothing_is_lost().await
            },
        ),
        Row::new(
            "scripted_s3/the client that open_url makes opens and appends through a 503 each",
            || async {
                let mut stage = crate::stage::Stage::new(Log::Of(5)).await;
                let url = format!("s3://{}/{}", sealog_tests::s3::BUCKET, crate::log::PREFIX);
                let at = sealog_shell::open_url(&url, stage.s3.settings(), true);
                let at = at.map_err(|error| error.to_string())?;
                let kinds = [Kind::List, Kind::Get, Kind::Put];
                stage.script(kinds.map(|kind| Rule::on(kind, status(503)).first_of_each(1)));
                let wal =
                    sealog_tokio::Wal::open(at.store, at.prefix.as_str(), stage.options.clone());
                let wal = wal.await.map_err(|error| error.to_string())?;
                stage.append(&wal, "through trouble").await.map_err(|error| error.to_string())?;
                stage.nothing_is_lost().await
            },
        ),
    ]
}

pub(crate) fn append() -> Vec<Row> {
    let told = |of: u16, when: &str| {
        let name = format!("scripted_s3/{of} for a Put of an append, {when}");
        Row::told(name, Log::Of(2), Does::Append)
    };
    let mut rows: Vec<Row> = Vec::new();
    for of in REFUSALS.into_iter().chain([501]) {
        rows.push(
            told(of, "always")
                .rule(Rule::on(Kind::Put, status(of)))
                .fails(if of == 501 { lasting("Store") } else { refusal(of) })
                .asks(Kind::Put, 1, 1)
                .into(),
        );
        // The put is not known to have failed, and nobody can see whether it did.
        rows.push(
            told(of, "of whose read-back it is the answer")
                .rule(Rule::on(Kind::Put, Fault::Lost).first(1))
                .rule(Rule::on(Kind::Get, status(of)))
                .may_fail(lasting("Store"))
                .into(),
        );
    }
    // That nothing is there may pass.
    rows.push(
        told(404, "as of a key that is missing, of whose read-back it is the answer")
            .rule(Rule::on(Kind::Put, Fault::Lost).first(1))
            .rule(Rule::on(Kind::Get, Fault::status(404, "NoSuchKey")))
            .fails(passing("Store"))
            .into(),
    );
    for of in TROUBLES {
        rows.push(told(of, "once").rule(Rule::on(Kind::Put, status(of)).first(1)).into());
        rows.push(
            told(of, "always")
                .rule(Rule::on(Kind::Put, status(of)))
                .fails(passing("Store"))
                .asks(Kind::Put, 2, 10)
                .into(),
        );
        rows.push(
            told(of, "once for its read-back")
                .rule(Rule::on(Kind::Put, Fault::Lost).first(1))
                .rule(Rule::on(Kind::Get, status(of)).first(1))
                .into(),
        );
    }
    rows
}

pub(crate) fn read() -> Vec<Row> {
    let told = |of: u16, when: &str, does| {
        let name = format!("scripted_s3/{of} for a Get of a {does:?}, {when}");
        Row::told(name, Log::Of(5), does)
    };
    let mut rows: Vec<Row> = Vec::new();
    for of in REFUSALS.into_iter().chain([501]) {
        let said = if of == 404 { Fault::status(404, "NoSuchKey") } else { status(of) };
        rows.push(
            told(of, "always", Does::Replay)
                .rule(Rule::on(Kind::Get, said).of_object(3))
                .fails(lasting("Store").saying(&["00000000000000000003.wal"]))
                .into(),
        );
    }
    for of in TROUBLES {
        rows.push(
            told(of, "the first of each object", Does::Replay)
                .rule(Rule::on(Kind::Get, status(of)).first_of_each(1))
                .into(),
        );
        rows.push(
            told(of, "the first of each object", Does::View)
                .rule(Rule::on(Kind::Get, status(of)).first_of_each(1))
                .into(),
        );
        rows.push(
            told(of, "always", Does::Replay)
                .rule(Rule::on(Kind::Get, status(of)).of_object(3))
                .fails(
                    passing("Store")
                        .saying(&["00000000000000000003.wal"])
                        .not_saying(&["may still take effect"]),
                )
                .asks(Kind::Get, 8, 60)
                .into(),
        );
    }
    rows.push(
        told(403, "for it is archived", Does::Replay)
            .rule(Rule::on(Kind::Get, archived()).of_object(3))
            .fails(lasting("Store").saying(&["archive"]))
            .into(),
    );
    rows
}
