//! `sealog inspect`: a row per object.

use bytesize::ByteSize;
use clap::Args;
use sealog_blocking::{Survey, SurveyedObject};
use serde::Serialize;

use crate::cli::exit::{Exit, Outcome, warn};
use crate::cli::location::At;
use crate::cli::output::{Cell, Format, Output, Row};
use crate::cli::store::Surveyed;
use crate::cli::survey::{self, Named};

/// Show every object: where it stands, what it holds, who made it
///
/// Reads headers and footers only, never writes, and works while a writer runs. Ends with 1 if an
/// object does not verify or history is lost.
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    at: At,
}

impl Inspect {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let survey = Surveyed::open(&self.at)?.survey;
        if output.format() == Format::Table {
            output.line(head(&survey))?;
            output.line("")?;
        }
        let now_millis = survey::now_millis();
        let mut rows = output.rows();
        for object in &survey.objects {
            rows.push(&ObjectRow::of(&survey, object, now_millis))?;
        }
        rows.end()?;
        Ok(told(&survey))
    }
}

/// The chain, the tip, and the boundary.
fn head(survey: &Survey) -> String {
    let (Some(selection), Some(tip)) = (&survey.selection, survey.tip()) else {
        return "no history: of no object all predecessors are there".into();
    };
    let epochs: std::collections::BTreeSet<_> = survey
        .objects
        .iter()
        .filter(|object| selection.chain.binary_search(&object.sequence).is_ok())
        .filter_map(|object| Some(object.header?.epoch))
        .collect();
    format!(
        "chain {} of {}, tip {tip}, boundary {} (computed {})",
        survey::counted(selection.chain.len(), "object"),
        survey::counted(epochs.len(), "epoch"),
        survey::boundary(survey).unwrap_or_default(),
        survey.catalog.boundary(),
    )
}

/// Says what belongs to no row, and what all of it comes to.
pub(crate) fn told(survey: &Survey) -> Exit {
    let of_objects: usize = survey.objects.iter().map(|object| object.problems.len()).sum();
    for problem in survey.problems().skip(of_objects) {
        warn(&format!("{}: {}", problem.key, problem.error));
    }
    for key in &survey.ignored {
        warn(&format!("{key}: ignored, no object can have this sequence"));
    }
    if survey.problems().next().is_some() { Exit::Problem } else { Exit::Good }
}

#[derive(Serialize)]
struct ObjectRow<'a> {
    seq: u64,
    epoch: Option<u64>,
    kind: Option<&'static str>,
    prev: Option<Named>,
    boundary: Option<u64>,
    status: &'static str,
    tip: bool,
    regions: Vec<Segment>,
    bytes: u64,
    writer: Option<&'a str>,
    error: Option<String>,
    modified: u64,
    #[serde(skip)]
    age: String,
}

#[derive(Serialize)]
struct Segment {
    region: u64,
    min_id: u64,
    max_id: u64,
    entries: u32,
    offset: u64,
    length: u64,
}

impl<'a> ObjectRow<'a> {
    fn of(survey: &Survey, object: &'a SurveyedObject, now_millis: u64) -> ObjectRow<'a> {
        let header = object.header;
        let segments = survey::user_segments(object).map(|meta| Segment {
            region: meta.region.0,
            min_id: meta.min_id.0,
            max_id: meta.max_id.0,
            entries: meta.count,
            offset: meta.offset,
            length: meta.length,
        });
        ObjectRow {
            seq: object.sequence.0,
            epoch: header.map(|header| header.epoch.0),
            kind: survey::kind(object),
            prev: header.and_then(|header| header.predecessor).map(Named::from),
            boundary: header.map(|header| header.boundary.0),
            status: survey::status(object),
            tip: survey::is_tip(survey, object),
            regions: segments.collect(),
            bytes: object.size,
            writer: object.writer.as_ref().map(|writer| &*writer.name),
            error: survey::error(object),
            modified: object.modified_millis,
            age: survey::age(now_millis, object.modified_millis),
        }
    }
}

impl Row for ObjectRow<'_> {
    const COLUMNS: &'static [&'static str] = &[
        "SEQ", "EPOCH", "KIND", "STATUS", "PREV", "BOUNDARY", "REGIONS", "ENTRIES", "BYTES", "AGE",
        "WRITER", "ERROR",
    ];

    fn cells(&self) -> Vec<Cell> {
        let id = |id: Option<u64>| id.map_or_else(Cell::none, Cell::id);
        let text = |text: Option<&str>| text.map_or_else(Cell::none, Cell::text);
        let status = match (self.status, self.tip) {
            (status, true) => Cell::text(format!("{status} (tip)")),
            (status, false) => Cell::text(status),
        };
        vec![
            Cell::id(self.seq),
            id(self.epoch),
            text(self.kind),
            if self.error.is_some() { status.red() } else { status },
            self.prev.as_ref().map_or_else(Cell::none, Cell::text),
            id(self.boundary),
            text(Some(&regions(&self.regions)).filter(|text| !text.is_empty()).map(|t| t.as_str())),
            Cell::count(self.regions.iter().map(|segment| u64::from(segment.entries)).sum()),
            Cell::id(ByteSize(self.bytes)),
            Cell::text(&self.age),
            text(self.writer),
            self.error.as_ref().map_or_else(Cell::none, |error| Cell::text(error).red()),
        ]
    }
}

/// Regions in a few words, since an object can hold very many.
fn regions(segments: &[Segment]) -> String {
    const SHOWN: usize = 4;
    let mut text: Vec<_> =
        segments.iter().take(SHOWN).map(|segment| segment.region.to_string()).collect();
    if segments.len() > SHOWN {
        text.push(format!("and {} more", segments.len() - SHOWN));
    }
    text.join(" ")
}
