//! `sealog check-store`: whether a log may live in a store.

use std::time::Duration;

use clap::Args;
use sealog_blocking::{Checked, MANY, StoreCheck, check_store};
use serde::Serialize;

use crate::cli::exit::{Exit, Outcome};
use crate::cli::location::At;
use crate::cli::output::{Cell, Format, Output, Row, took};
use crate::cli::progress::Progress;
use crate::cli::signals::Heard;

/// Check whether a log may live in a store, before one is begun there
///
/// Asks of the store what a log does: conditional creates, 32 of them at once for one key too,
/// listings after creates and deletes, range reads, listings of more keys than a page has; and says how
/// long each took, and what a log can live with though it costs something, such as listings in no order.
/// It works beside the
/// log, under the log's own name with ".check-" and a number behind it, touches nothing of a log that
/// is there, and deletes what it made, after SIGINT and SIGTERM too. That the store keeps its word now
/// is no proof that it always does.
#[derive(Args)]
pub(crate) struct CheckStore {
    #[command(flatten)]
    at: At,
    /// The time limit of a request to the store
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    request_timeout: Duration,
    /// How many keys a listing is to show all of; fewer than 1,001 do not show how the store cuts
    /// listings into pages, and 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = MANY, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    keys: u64,
}

impl CheckStore {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let place = self.at.scratch("check")?;
        let heard = Heard::listen()?;
        let progress = Progress::waiting("checking the store");
        let check =
            check_store(place.store, place.prefix.as_str(), self.request_timeout, self.keys)?;
        drop(progress);
        let exit = tell(&check, self.at.shown(), output)?;
        Ok(heard.signal().map_or(exit, Exit::Signal))
    }
}

fn tell(check: &StoreCheck, location: &str, output: &mut Output) -> Outcome {
    let mut rows = output.rows();
    for checked in &check.checked {
        rows.push(&Verdict::of(checked))?;
    }
    rows.end()?;
    let fit = check.is_fit();
    match output.format() {
        Format::Json => output.json(&Summary { fit })?,
        Format::Table => {
            output.line("")?;
            for checked in &check.checked {
                for told in checked.problems.iter().chain(&checked.remarks) {
                    output.line(format_args!("{}: {told}", checked.demand))?;
                }
            }
            output.line(match fit {
                true => format!("a log may live at {location}"),
                false => format!("no log may live at {location}: it would lose data or fail"),
            })?;
        }
    }
    Ok(if fit { Exit::Good } else { Exit::Problem })
}

#[derive(Serialize)]
struct Verdict {
    check: String,
    good: bool,
    requests: u64,
    median_us: Option<u64>,
    max_us: Option<u64>,
    problems: Vec<String>,
    remarks: Vec<String>,
}

impl Verdict {
    fn of(checked: &Checked) -> Verdict {
        let micros = |time: &Duration| time.as_micros() as u64;
        let times = &checked.latencies;
        Verdict {
            check: checked.demand.to_string(),
            good: checked.problems.is_empty(),
            requests: times.len() as u64,
            median_us: times.get(times.len() / 2).map(micros),
            max_us: times.last().map(micros),
            problems: checked.problems.clone(),
            remarks: checked.remarks.clone(),
        }
    }
}

impl Row for Verdict {
    const COLUMNS: &'static [&'static str] = &["check", "result", "requests", "median", "longest"];

    fn cells(&self) -> Vec<Cell> {
        let time = |micros: Option<u64>| {
            micros.map_or(Cell::none(), |micros| Cell::id(took(Duration::from_micros(micros))))
        };
        vec![
            Cell::text(&self.check),
            if self.good { Cell::text("good") } else { Cell::text("BROKEN").red() },
            Cell::count(self.requests),
            time(self.median_us),
            time(self.max_us),
        ]
    }
}

/// The last line, as JSON.
#[derive(Serialize)]
struct Summary {
    fit: bool,
}
