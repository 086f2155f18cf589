//! The commands, and what they share.
//!
//! A command is a module with a type that derives [`Args`](clap::Args) and has
//! `run(self, &mut Output) -> Outcome`; it is named in [`Command`] and in its `run`. What it prints
//! goes through [`output`], what it ends with is a row of [`exit`], what it works on is a
//! [`location`].

mod append;
mod bench;
mod check_store;
mod demo;
mod entries;
mod exit;
mod held;
mod input;
mod inspect;
mod location;
mod options;
mod output;
mod progress;
mod quarantine;
mod read;
mod regions;
mod replay;
mod report;
mod shell;
mod signals;
mod store;
mod survey;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::Outcome;
use output::{Format, Output};

/// A write-ahead log that lives in an object store.
#[derive(Parser)]
#[command(name = "sealog", version, after_long_help = exit::HELP, max_term_width = 100)]
struct Program {
    /// Tables for people, or one JSON object per line for programs
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    Append(Box<append::Append>),
    Read(read::Read),
    Replay(replay::Replay),
    Regions(regions::Regions),
    Held(held::Held),
    Inspect(inspect::Inspect),
    Verify(verify::Verify),
    Report(report::Report),
    Quarantine(quarantine::Quarantine),
    CheckStore(check_store::CheckStore),
    Bench(Box<bench::Bench>),
    Completions(shell::Completions),
    Man(shell::Man),
}

impl Command {
    fn run(self, output: &mut Output) -> Outcome {
        match self {
            Command::Demo(command) => command.run(output),
            Command::Append(command) => command.run(output),
            Command::Read(command) => command.run(output),
            Command::Replay(command) => command.run(output),
            Command::Regions(command) => command.run(output),
            Command::Held(command) => command.run(output),
            Command::Inspect(command) => command.run(output),
            Command::Verify(command) => command.run(output),
            Command::Report(command) => command.run(output),
            Command::Quarantine(command) => command.run(output),
            Command::CheckStore(command) => command.run(output),
            Command::Bench(command) => command.run(output),
            Command::Completions(command) => command.run(output),
            Command::Man(command) => command.run(output),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    // Ends with the code for usage by itself.
    let program = Program::parse();
    let mut output = Output::new(program.format);
    let outcome = program.command.run(&mut output);
    // What was said before a failure is said before its text.
    let outcome = output.end().map_err(exit::Failure::from).and(outcome);
    exit::code(outcome)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_of_every_command_fit_together() {
        Program::command().debug_assert();
    }
}
