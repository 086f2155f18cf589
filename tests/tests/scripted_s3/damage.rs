//! Objects that are not what they were (faults 14, 15, 16 and 29).

use sealog_core::format::{HEADER_LEN, TRAILER_LEN};
use sealog_tests::s3::{Fault, Kind, Rule};

use crate::log::{Log, key};
use crate::row::{Does, Row, Told};
use crate::stage::{lasting, passing};

const ALL: [Does; 2] = [Does::Open, Does::View];

/// As damage must be told: with a second listing, no delay to speak of, and nothing created.
fn damaged(told: Told, sequence: u64) -> Row {
    let says: &'static [&'static str] = match sequence {
        3 => &["00000000000000000003.wal"],
        _ => &["00000000000000000005.wal"],
    };
    told.fails(lasting("Corrupted").saying(says))
        .untouched()
        .asks(Kind::List, 2, 3)
        .asks(Kind::Get, 0, 30)
        .asks(Kind::Put, 0, 0)
        .into()
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for does in ALL {
        for sequence in [3, 5] {
            for len in [0, 1, 53, 54, 60, 89, 90, 100] {
                let name = format!("scripted_s3/object {sequence} is cut to {len} bytes, {does:?}");
                rows.push(damaged(
                    Row::told(name, Log::Of(5), does).prepared(move |stage| {
                        stage.change(&key(sequence), |bytes| bytes.truncate(len));
                    }),
                    sequence,
                ));
            }
            // The listing still shows the size that it had.
            for len in [20, 60, 100] {
                let name = format!(
                    "scripted_s3/object {sequence} has {len} bytes and is listed with more, {does:?}"
                );
                rows.push(damaged(
                    Row::told(name, Log::Of(5), does).prepared(move |stage| {
                        let size = stage.s3.bucket().get(&key(sequence)).unwrap().bytes.len();
                        stage.change(&key(sequence), |bytes| bytes.truncate(len));
                        let shows = Fault::Shows(key(sequence), size as u64);
                        stage.sticky(Rule::on(Kind::List, shows));
                    }),
                    sequence,
                ));
            }
            for (what, claimed) in [
                ("8 GiB", 8 << 30),
                ("all that can be said", u64::MAX),
                ("as much as there is", 1 << 12),
            ] {
                let name =
                    format!("scripted_s3/object {sequence} claims a footer of {what}, {does:?}");
                rows.push(damaged(
                    Row::told(name, Log::Of(5), does).prepared(move |stage| {
                        stage.change(&key(sequence), |bytes| claims_footer(bytes, claimed));
                    }),
                    sequence,
                ));
            }
            for (what, at) in [("header", 20), ("footer", TRAILER_LEN + 10), ("trailer", 4)] {
                let name = format!(
                    "scripted_s3/object {sequence} has a flipped bit in its {what}, {does:?}"
                );
                rows.push(damaged(
                    Row::told(name, Log::Of(5), does).prepared(move |stage| {
                        stage.change(&key(sequence), |bytes| {
                            let at = if what == "header" { at } else { bytes.len() - at };
                            bytes[at] ^= 1;
                        });
                    }),
                    sequence,
                ));
            }
        }
        rows.extend(passing_damage(does));
        rows.extend(beyond(does));
    }
    rows
}

/// What the trailer says of the footer, with checksums that hold.
fn claims_footer(bytes: &mut [u8], length: u64) {
    let at = bytes.len() - TRAILER_LEN;
    bytes[at..at + 8].copy_from_slice(&(HEADER_LEN as u64).to_be_bytes());
    bytes[at + 8..at + 16].copy_from_slice(&length.to_be_bytes());
    let crc = crc32fast::hash(&[&bytes[..at + 20], &bytes[at + 24..]].concat());
    bytes[at + 20..at + 24].copy_from_slice(&crc.to_be_bytes());
}

/// Downloads that are damaged, and what another listing explains.
fn passing_damage(does: Does) -> Vec<Row> {
    let told = |what: &str| Row::told(format!("scripted_s3/{what}, {does:?}"), Log::Of(5), does);
    let get = |fault| Rule::on(Kind::Get, fault).of_object(3);
    vec![
        told("a download has a flipped bit once").rule(get(Fault::Flips(20)).first(1)).into(),
        told("a download has a flipped bit always")
            .rule(get(Fault::Flips(20)))
            .fails(lasting("Corrupted").saying(&["00000000000000000003.wal"]))
            .asks(Kind::List, 2, 3)
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
        told("a download is short once").rule(get(Fault::Short(40)).first(1)).into(),
        told("a download is cut once").rule(get(Fault::Cut(40)).first(1)).into(),
        told("each first download is cut")
            .rule(Rule::on(Kind::Get, Fault::Cut(40)).first_of_each(1))
            .into(),
        // "ok" with another size: it is not what was listed, and the next answer is.
        told("a download says another size once").rule(get(Fault::OfSize(7)).first(1)).into(),
        told("a download is cut always")
            .rule(get(Fault::Cut(40)))
            .fails(passing("Store").saying(&["00000000000000000003.wal"]))
            .into(),
    ]
}

/// Where another object than the one that was listed stands.
fn beyond(does: Does) -> Vec<Row> {
    let told = |what: &str, log| Row::told(format!("scripted_s3/{what}, {does:?}"), log, does);
    let smaller = || {
        Fault::after(|bucket| {
            let bytes = bucket.get(&key(3)).map(|stored| stored.bytes.slice(..60));
            if let Some(bytes) = bytes {
                bucket.put(key(3), bytes);
            }
        })
    };
    vec![
        // A collection of an earlier instance is still running.
        told("objects below the boundary vanish after they are listed", Log::Collectable)
            .rule(
                Rule::on(
                    Kind::List,
                    Fault::after(|bucket| (0..4).for_each(|n| drop(bucket.remove(&key(n))))),
                )
                .first(1),
            )
            .asks(Kind::List, 1, 3)
            .into(),
        // Between listing and read; the next listing agrees with the one after it.
        told("a smaller object takes the place of a listed one", Log::Of(5))
            .rule(Rule::on(Kind::List, smaller()).nth(1))
            .fails(lasting("Corrupted").saying(&["00000000000000000003.wal"]))
            .asks(Kind::List, 2, 4)
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
        // The range of its tail begins behind its end, which S3 answers with 416.
        told("a smaller object takes the place of a large one", Log::Large)
            .rule(Rule::on(Kind::List, smaller()).nth(1))
            .fails(lasting("Corrupted").saying(&["00000000000000000003.wal"]))
            .asks(Kind::List, 2, 4)
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
        told("a later version is no damage", Log::Of(5))
            .prepared(|stage| stage.change(&key(3), |bytes| set_version(bytes, 2)))
            .fails(lasting("NewerFormat").saying(&["00000000000000000003.wal", "version 2"]))
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
        told("a later version at the tip is no damage", Log::Of(5))
            .prepared(|stage| stage.change(&key(5), |bytes| set_version(bytes, 7)))
            .fails(lasting("NewerFormat").saying(&["00000000000000000005.wal", "version 7"]))
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
        // Without its checksum it is damage.
        told("a later version whose checksum does not hold", Log::Of(5))
            .prepared(|stage| stage.change(&key(3), |bytes| bytes[9] = 2))
            .fails(lasting("Corrupted").saying(&["00000000000000000003.wal"]))
            .asks(Kind::Put, 0, 0)
            .untouched()
            .into(),
    ]
}

fn set_version(bytes: &mut [u8], version: u16) {
    bytes[8..10].copy_from_slice(&version.to_be_bytes());
    let crc = crc32fast::hash(&bytes[..HEADER_LEN - 4]);
    bytes[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&crc.to_be_bytes());
}
