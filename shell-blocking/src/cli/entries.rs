//! Entries as they are printed by the commands that read.

use std::io;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use sealog_blocking::{Entry, EntryId, Hole, Reader, RegionId};
use serde::Serialize;

use crate::cli::exit::{Exit, Failure, warn};
use crate::cli::output::{Format, Output};
use crate::cli::progress::Progress;

/// How entries are printed, and for how long.
#[derive(Args, Clone, Debug)]
pub(crate) struct Shape {
    /// Print the payloads as they are, with nothing between them
    #[arg(long, group = "shape")]
    raw: bool,
    /// Print the payloads with a line feed after each
    #[arg(long, group = "shape")]
    lines: bool,
    /// Print the payloads with their length before each, four bytes big-endian
    #[arg(long, group = "shape")]
    records: bool,
    /// Go on with what is appended later, until a signal ends it
    #[arg(long, short = 'f')]
    follow: bool,
    /// How often to look for what is new
    #[arg(long, value_name = "TIME", requires = "follow", default_value = "1s", value_parser = humantime::parse_duration)]
    every: Duration,
}

impl Shape {
    /// Prints what `pass` yields of the reader, and, if that is wanted, again and again what is new.
    pub(crate) fn print(
        &self,
        reader: &Reader,
        output: &mut Output,
        bytes: u64,
        mut pass: impl FnMut(&mut Printer<'_>) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let mut printer = self.printer(output, bytes);
        loop {
            let end = pass(&mut printer);
            // What was read before a failure is printed before its text.
            printer.output.flush()?;
            end?;
            if !self.follow {
                return Ok(if printer.holes == 0 { Exit::Good } else { Exit::Problem });
            }
            std::thread::sleep(self.every);
            match reader.refresh() {
                Err(error) if error.is_retryable() => warn(&error.to_string()),
                refreshed => refreshed?,
            }
        }
    }

    fn printer<'a>(&self, output: &'a mut Output, bytes: u64) -> Printer<'a> {
        let progress = match self.follow || output.is_terminal() {
            true => Progress::none(),
            false => Progress::bytes(Some(bytes)),
        };
        let form = match (self.raw, self.lines, self.records, output.format()) {
            (true, ..) => Form::Raw,
            (_, true, ..) => Form::Lines,
            (_, _, true, _) => Form::Records,
            (.., Format::Json) => Form::Json,
            (.., Format::Table) => Form::Table,
        };
        Printer { output, form, progress, has_head: false, holes: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Raw,
    Lines,
    Records,
    Json,
    Table,
}

pub(crate) struct Printer<'a> {
    output: &'a mut Output,
    form: Form,
    progress: Progress,
    has_head: bool,
    /// How many were met.
    holes: u64,
}

impl Printer<'_> {
    pub(crate) fn entry(&mut self, region: RegionId, entry: &Entry) -> io::Result<()> {
        let payload = &entry.payload;
        self.progress.add(payload.len() as u64);
        match self.form {
            Form::Raw => self.output.bytes(payload),
            Form::Lines => {
                self.output.bytes(payload)?;
                self.output.bytes(b"\n")
            }
            Form::Records => {
                // No append takes one that does not fit.
                let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                self.output.bytes(&length.to_be_bytes())?;
                self.output.bytes(payload)
            }
            Form::Json => {
                let payload = STANDARD.encode(payload);
                self.output.json(&Shown { region: region.0, id: entry.id.0, payload })
            }
            Form::Table => self.row(region, entry.id, &text(payload)),
        }
    }

    pub(crate) fn hole(&mut self, hole: &Hole) -> io::Result<()> {
        self.holes += 1;
        let Hole { region, key, min_id, max_id, error, .. } = hole;
        match self.form {
            Form::Json => self.output.json(&ShownHole {
                region: region.0,
                hole: Lost { key, min_id: min_id.0, max_id: max_id.0, error: error.to_string() },
            }),
            Form::Table => {
                let lost = format!("hole: lost through {max_id}, {key} is damaged: {error}");
                self.row(*region, *min_id, &lost)
            }
            Form::Raw | Form::Lines | Form::Records => {
                // In its place among the entries, where both go to one terminal.
                self.output.flush()?;
                warn(&format!(
                    "region {region} has a hole: its entries {min_id} to {max_id} are lost, since \
                     {key} is damaged: {error}"
                ));
                Ok(())
            }
        }
    }

    fn row(&mut self, region: RegionId, id: EntryId, text: &str) -> io::Result<()> {
        if !self.has_head {
            self.has_head = true;
            self.output.line(format_args!("{:<8}  {:>16}  payload", "region", "id"))?;
        }
        self.output.line(format_args!(
            "{region:<8}  {id:>16}  {text}",
            region = region.0,
            id = id.0
        ))
    }
}

#[derive(Serialize)]
struct Shown {
    region: u64,
    id: u64,
    payload: String,
}

#[derive(Serialize)]
struct ShownHole<'a> {
    region: u64,
    hole: Lost<'a>,
}

#[derive(Serialize)]
struct Lost<'a> {
    key: &'a str,
    min_id: u64,
    max_id: u64,
    error: String,
}

/// The beginning of a payload, for people: nothing of it can move a cursor.
fn text(payload: &[u8]) -> String {
    const SHOWN: usize = 100;
    let text = String::from_utf8_lossy(payload);
    let mut shown = String::new();
    for (place, character) in text.chars().enumerate() {
        if place == SHOWN {
            shown.push_str(&format!("... ({} bytes)", payload.len()));
            break;
        }
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_shown_to_people_without_control_characters_and_not_in_full() {
        assert_eq!(text("a\tb\u{1b}[1mä".as_bytes()), "a\\tb\\u{1b}[1mä");
        assert_eq!(text(b"\xff"), "\u{fffd}");
        assert_eq!(text(&[b'x'; 100]), "x".repeat(100));
        assert_eq!(text(&[b'x'; 101]), format!("{}... (101 bytes)", "x".repeat(100)));
    }
}
