//! `sealog held`: what keeps objects from being deleted.

use clap::Args;
use sealog_blocking::RegionHold;
use serde::Serialize;

use crate::cli::exit::{Exit, Outcome};
use crate::cli::location::At;
use crate::cli::output::{Cell, Output, Row};

/// Print what holds the reclaim boundary, and how much regions would free
///
/// The regions that hold most, at most ten, in the order in which they have to let go: "frees" is
/// what is not needed any more if a region alone lets go of everything, "together" if those above it
/// do too. What a running writer made obsolete and has not stored yet counts as needed.
#[derive(Args)]
pub(crate) struct Held {
    #[command(flatten)]
    at: At,
}

impl Held {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let held = self.at.reader()?.held_by();
        let row = |hold: Option<&RegionHold>| Hold {
            boundary: held.boundary.0,
            object: hold.map(|hold| hold.object.sequence.0),
            region: hold.map(|hold| hold.region.0),
            frees_objects: hold.map_or(0, |hold| hold.frees_objects),
            frees_bytes: hold.map_or(0, |hold| hold.frees_bytes),
            together_objects: hold.map_or(0, |hold| hold.together_objects),
            together_bytes: hold.map_or(0, |hold| hold.together_bytes),
        };
        let mut rows = output.rows();
        for hold in &held.most {
            rows.push(&row(Some(hold)))?;
        }
        // The boundary is said also where nothing holds it.
        if held.most.is_empty() {
            rows.push(&row(None))?;
        }
        rows.end()?;
        Ok(Exit::Good)
    }
}

#[derive(Serialize)]
struct Hold {
    /// Objects below it are not needed.
    boundary: u64,
    /// The first object that the region needs.
    object: Option<u64>,
    region: Option<u64>,
    frees_objects: u64,
    frees_bytes: u64,
    together_objects: u64,
    together_bytes: u64,
}

impl Row for Hold {
    const COLUMNS: &'static [&'static str] = &[
        "boundary",
        "object",
        "region",
        "frees objects",
        "frees bytes",
        "together objects",
        "together bytes",
    ];

    fn cells(&self) -> Vec<Cell> {
        let known = |number: Option<u64>| number.map_or(Cell::none(), Cell::id);
        vec![
            Cell::id(self.boundary),
            known(self.object),
            known(self.region),
            Cell::count(self.frees_objects),
            Cell::count(self.frees_bytes),
            Cell::count(self.together_objects),
            Cell::count(self.together_bytes),
        ]
    }
}
