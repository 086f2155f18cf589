//! `sealog`: a write-ahead log in an object store, from the command line.
//!
//! What it can do is said by `sealog --help`. Each command has a module in `cli`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
