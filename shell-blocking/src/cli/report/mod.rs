//! `sealog report`: a log in pictures, as one page of HTML.

mod chain;
mod heat;
mod page;
mod sizes;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use sealog_blocking::{Epoch, Survey, SurveyedObject};

use crate::cli::exit::{Failure, Outcome};
use crate::cli::inspect;
use crate::cli::location::At;
use crate::cli::output::Output;
use crate::cli::store::Surveyed;
use crate::cli::survey;

/// Draw the log as one HTML page: the chain, its regions and sizes, what holds it, every object
///
/// The page needs nothing else to be shown: no script, no other file. Reads headers and footers
/// only, never writes, and works while a writer runs. Ends with 1 if an object does not verify or
/// history is lost; the page is made all the same.
#[derive(Args)]
pub(crate) struct Report {
    #[command(flatten)]
    at: At,
    /// Where the page is written [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let survey = Surveyed::open(&self.at)?.survey;
        let page = page::page(&survey, survey::now_millis()).into_string();
        match self.output {
            None => output.bytes(page.as_bytes())?,
            Some(file) => std::fs::write(&file, page)
                .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
        }
        Ok(inspect::told(&survey))
    }
}

/// Drawings show the newest so many objects: more would be drawn too small to see anything.
const DRAWN: usize = 400;
/// The width of an object in a drawing, and what is left of the first one.
const STEP: usize = 26;
const LEFT: usize = 70;

/// Where the middle of the `nth` object is.
fn x(nth: usize) -> usize {
    LEFT + nth * STEP + STEP / 2
}

/// The objects that are drawn.
fn drawn(survey: &Survey) -> &[SurveyedObject] {
    let objects = survey.objects.as_slice();
    &objects[objects.len().saturating_sub(DRAWN)..]
}

/// A colour for each epoch, by the order in which they were claimed, so that neighbours are told
/// apart.
struct Colours(Vec<Epoch>);

impl Colours {
    fn of(survey: &Survey) -> Colours {
        let epochs = survey.objects.iter().filter_map(|object| Some(object.header?.epoch));
        Colours(epochs.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// That of an object; of one without a header it is the colour of what is wrong.
    fn get(&self, object: &SurveyedObject) -> String {
        let Some(header) = object.header else { return "var(--bad)".into() };
        // The golden angle keeps successive hues apart.
        let hue =
            (self.0.partition_point(|epoch| *epoch < header.epoch) * 137_508 / 1000 + 215) % 360;
        format!("hsl({hue} 62% 48%)")
    }
}
