//! What shells and `man` know of the program: generated from its arguments.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Program;
use crate::cli::exit::{Exit, Failure, Outcome};
use crate::cli::output::Output;

/// Print the completions for a shell
///
/// For bash: sealog completions bash > ~/.local/share/bash-completion/completions/sealog
#[derive(Args)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Program::command(), "sealog", &mut script);
        output.bytes(&script)?;
        Ok(Exit::Good)
    }
}

/// Print the man page, or write one per command into a directory
#[derive(Args)]
pub(crate) struct Man {
    /// Where sealog.1, sealog-append.1 and so on are written; it is made if it is missing
    directory: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, output: &mut Output) -> Outcome {
        let Some(directory) = self.directory else {
            let mut page = Vec::new();
            // There is no page on it.
            let program = Program::command().disable_help_subcommand(true);
            clap_mangen::Man::new(program).render(&mut page)?;
            output.bytes(&page)?;
            return Ok(Exit::Good);
        };
        std::fs::create_dir_all(&directory)
            .and_then(|()| clap_mangen::generate_to(Program::command(), &directory))
            .map_err(|error| Failure::usage(format!("{}: {error}", directory.display())))?;
        Ok(Exit::Good)
    }
}
