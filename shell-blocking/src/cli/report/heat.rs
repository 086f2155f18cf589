//! Which regions have how much in which objects.

use std::collections::BTreeMap;

use maud::{Markup, html};
use sealog_blocking::{RegionId, SegmentMeta, Survey, SurveyedObject};

use super::chain::short;
use super::{LEFT, STEP, drawn, x};
use crate::cli::survey;

/// How many regions have a row.
const ROWS: usize = 40;
const ROW: usize = 18;
const TOP: usize = 20;

pub(super) fn heat(survey: &Survey) -> Markup {
    let objects = drawn(survey);
    let mut bytes: BTreeMap<RegionId, u64> = BTreeMap::new();
    for meta in objects.iter().flat_map(survey::user_segments) {
        *bytes.entry(meta.region).or_default() += meta.length;
    }
    let all = bytes.len();
    let mut most: Vec<_> = bytes.into_iter().collect();
    most.sort_unstable_by_key(|(region, bytes)| (std::cmp::Reverse(*bytes), *region));
    most.truncate(ROWS);
    most.sort_unstable();
    let rows: BTreeMap<_, _> =
        most.iter().enumerate().map(|(n, (region, _))| (*region, n)).collect();
    let largest = objects.iter().flat_map(survey::user_segments).map(|meta| meta.length).max();
    let (width, height) = (x(objects.len()) + STEP, TOP + rows.len() * ROW + 8);
    let row = |meta: &SegmentMeta| rows.get(&meta.region).map(|n| TOP + n * ROW);
    html! {
        @if rows.is_empty() {
            p.dim { "No object holds entries." }
        } @else {
            @if all > ROWS {
                p.dim { "The " (ROWS) " regions with the most bytes, of " (all) "." }
            }
            div.scroll {
                svg #heat role="img" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
                    title { "Regions over objects: the darker, the more bytes; pale where it is released, passed by the boundary, or no history" }
                    @for (n, object) in objects.iter().enumerate() {
                        text x=(x(n)) y="13" text-anchor="middle" { (short(object.sequence.0)) }
                    }
                    @for (region, n) in &rows {
                        text x=(LEFT - 8) y=(TOP + n * ROW + 13) text-anchor="end" { (short(region.0)) title { "region " (region) } }
                    }
                    @for (n, object) in objects.iter().enumerate() {
                        @for meta in survey::user_segments(object) {
                            @if let Some(y) = row(meta) {
                                (cell(needed(survey, object, meta), meta, (x(n) - STEP / 2, y), largest.unwrap_or(1)))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether something of a segment can still be read.
fn needed(survey: &Survey, object: &SurveyedObject, meta: &SegmentMeta) -> bool {
    let is_indexed = object.header.is_some_and(|header| survey.catalog.is_indexed(header.link()));
    is_indexed
        && object.sequence >= survey.catalog.boundary()
        && meta.max_id > survey.catalog.watermark(meta.region)
}

fn cell(is_needed: bool, meta: &SegmentMeta, (x, y): (usize, usize), largest: u64) -> Markup {
    // By magnitude: a region with little is to be seen beside one with much.
    let share = (1.0 + meta.length as f64).ln() / (1.0 + largest as f64).ln();
    let lightness = 82.0 - 50.0 * share;
    let what = if is_needed { "" } else { ", not needed" };
    html! {
        rect.obsolete[!is_needed] x=(x + 1) y=(y + 1) width=(STEP - 2) height=(ROW - 2) rx="2"
            fill={ "hsl(215 70% " (format!("{lightness:.0}")) "%)" } {
            title { "region " (meta.region) ", ids " (meta.min_id) " to " (meta.max_id) ": " (meta.count) " entries, " (meta.length) " bytes" (what) }
        }
    }
}
