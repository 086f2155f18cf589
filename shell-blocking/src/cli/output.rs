//! What the program prints: rows as a table for people or as JSON lines for programs, and bytes.
//!
//! Errors and warnings go elsewhere: see [`exit`](super::exit).

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::marker::PhantomData;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, CellAlignment, Color, Table};
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    #[default]
    Table,
    /// One object per line
    Json,
}

/// Standard output, which is locked for the life of the program.
pub(crate) struct Output {
    to: BufWriter<StdoutLock<'static>>,
    format: Format,
    has_colours: bool,
}

impl Output {
    pub(crate) fn new(format: Format) -> Output {
        let stdout = io::stdout();
        let has_colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        Output { to: BufWriter::new(stdout.lock()), format, has_colours }
    }

    /// Whether a person sees it as it is printed.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// A table of rows that are of one kind; as JSON, each row is a line of its own and printed at
    /// once.
    pub(crate) fn rows<R: Row>(&mut self) -> Rows<'_, R> {
        let mut table = Table::new();
        table.load_style(NOTHING);
        if self.has_colours {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        Rows { output: self, table, right: Vec::new(), rows: PhantomData }
    }

    /// A table of a single row.
    pub(crate) fn row<R: Row>(&mut self, row: &R) -> io::Result<()> {
        let mut rows = self.rows();
        rows.push(row)?;
        rows.end()
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, value)?;
        self.to.write_all(b"\n")
    }

    /// A line of text for people.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> io::Result<()> {
        writeln!(self.to, "{text}")
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Whoever reads the output has now all that was printed.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    pub(crate) fn end(mut self) -> io::Result<()> {
        self.flush()
    }
}

/// Something to print: with serde's names as JSON, with these columns in a table.
pub(crate) trait Row: Serialize {
    const COLUMNS: &'static [&'static str];

    /// One per column.
    fn cells(&self) -> Vec<Cell>;
}

/// Rows on their way to the output, from [`Output::rows`].
pub(crate) struct Rows<'a, R> {
    output: &'a mut Output,
    table: Table,
    /// Which columns stand at the right.
    right: Vec<bool>,
    rows: PhantomData<R>,
}

impl<R: Row> Rows<'_, R> {
    pub(crate) fn push(&mut self, row: &R) -> io::Result<()> {
        if self.output.format == Format::Json {
            return self.output.json(row);
        }
        let cells = row.cells();
        self.right = cells.iter().map(|cell| cell.is_number).collect();
        self.table.add_row(cells.into_iter().map(Cell::styled));
        Ok(())
    }

    /// Prints the table. Without rows there is none, not even its head.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if self.table.is_empty() {
            return Ok(());
        }
        let head = R::COLUMNS.iter().zip(&self.right).map(|(name, is_number)| {
            let cell = comfy_table::Cell::new(name).add_attribute(Attribute::Bold);
            if *is_number { cell.set_alignment(CellAlignment::Right) } else { cell }
        });
        self.table.set_header(head);
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self.output.line(self.table.trim_fmt())
    }
}

/// A field of a table.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    is_number: bool,
    colour: Option<Color>,
}

impl Cell {
    pub(crate) fn text(text: impl ToString) -> Cell {
        Cell { text: text.to_string(), is_number: false, colour: None }
    }

    /// Something that is not there.
    pub(crate) fn none() -> Cell {
        Cell::text("-")
    }

    /// A quantity: with a comma between groups of three digits, at the right.
    pub(crate) fn count(number: u64) -> Cell {
        Cell { is_number: true, ..Cell::text(indicatif::HumanCount(number)) }
    }

    /// A number that names something: its digits alone, at the right.
    pub(crate) fn id(number: impl ToString) -> Cell {
        Cell { is_number: true, ..Cell::text(number) }
    }

    /// Something to look at.
    pub(crate) fn red(self) -> Cell {
        Cell { colour: Some(Color::Red), ..self }
    }

    fn styled(self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.text);
        let cell = if self.is_number { cell.set_alignment(CellAlignment::Right) } else { cell };
        match self.colour {
            Some(colour) => cell.fg(colour),
            None => cell,
        }
    }
}

/// How long something took, for people.
pub(crate) fn took(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1000.0),
        seconds => format!("{seconds:.2} s"),
    }
}
