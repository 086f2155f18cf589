//! `sealog report`: a log in pictures, as one page of HTML.

mod chain;
mod heat;
mod page;
mod sizes;

use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::{Exit, Failure, Outcome};
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
        Ok(match inspect::told(&survey) {
            Exit::Good => Exit::Good,
            exit => exit,
        })
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
fn drawn(survey: &sealog_blocking::Survey) -> &[sealog_blocking::SurveyedObject] {
    let objects = survey.objects.as_slice();
    &objects[objects.len().saturating_sub(DRAWN)..]
}

/// The colour of an epoch: neighbours are told apart, and the same epoch has the same colour in
/// every report.
fn colour(epoch: u64) -> String {
    // The golden angle keeps successive hues apart.
    let hue = epoch.wrapping_mul(137_508) / 1000 % 360;
    format!("hsl({hue} 62% 48%)")
}
