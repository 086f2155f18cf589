//! `sealog regions`: what each region holds.

use std::collections::BTreeMap;

use clap::Args;
use sealog_blocking::{EntryId, ObjectStatus, RegionId, View};
use serde::Serialize;

use crate::cli::exit::{Exit, Outcome};
use crate::cli::location::At;
use crate::cli::output::{Cell, Output, Row};

/// Print what each region holds
///
/// Of regions that hold something that is not released. It never writes, and reads headers and
/// footers only.
#[derive(Args)]
pub(crate) struct Regions {
    #[command(flatten)]
    at: At,
}

impl Regions {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let reader = self.at.reader()?;
        let mut rows = output.rows();
        for held in held(&reader.view()).values() {
            rows.push(held)?;
        }
        rows.end()?;
        Ok(Exit::Good)
    }
}

/// What a region holds above its watermark.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Held {
    region: u64,
    entries: u64,
    /// Of the segments.
    bytes: u64,
    first_id: u64,
    last_id: u64,
    /// Zero if nothing was released.
    released_through: u64,
    objects: u64,
}

impl Row for Held {
    const COLUMNS: &'static [&'static str] =
        &["region", "entries", "bytes", "first id", "last id", "released through", "objects"];

    fn cells(&self) -> Vec<Cell> {
        let released = match self.released_through {
            0 => Cell::none(),
            id => Cell::id(id),
        };
        vec![
            Cell::id(self.region),
            Cell::count(self.entries),
            Cell::count(self.bytes),
            Cell::id(self.first_id),
            Cell::id(self.last_id),
            released,
            Cell::count(self.objects),
        ]
    }
}

fn held(view: &View) -> BTreeMap<RegionId, Held> {
    let mut regions = BTreeMap::new();
    for object in view.objects().filter(|object| object.status == ObjectStatus::Chain) {
        for meta in object.segments.iter().filter(|meta| !meta.region.is_reserved()) {
            let watermark = view.catalog().watermark(meta.region);
            if meta.max_id <= watermark {
                continue;
            }
            let first = meta.min_id.max(watermark.next());
            let held = regions.entry(meta.region).or_insert(Held {
                region: meta.region.0,
                entries: 0,
                bytes: 0,
                first_id: first.0,
                last_id: 0,
                released_through: watermark.0,
                objects: 0,
            });
            held.entries += visible(meta.min_id, meta.max_id, meta.count.into(), first);
            held.bytes += meta.length;
            held.last_id = meta.max_id.0;
            held.objects += 1;
        }
    }
    regions
}

/// How many entries of a segment stand at `first` or above it. The table has no more than its first
/// and last id, so where these leave gaps it is an upper bound.
fn visible(min: EntryId, max: EntryId, count: u64, first: EntryId) -> u64 {
    count.min(max.0.saturating_sub(first.0.max(min.0)).saturating_add(1))
}
