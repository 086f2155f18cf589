//! How a command ends: its exit code, and what it says if it failed.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use sealog_blocking::{Error, WriteError};

/// Shown by `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    good
  1    the log has a problem that the command looked for or met: damage, a hole, something lost;
       with check-store, the store has one
  2    the command line is wrong, or its location holds no log, or its input cannot be used
  3    the store failed or is not fit for a log, or another writer has the log
  128+ ended by a signal, as shells count it: 130 SIGINT, 143 SIGTERM, 141 nobody reads the output

The store's settings come from the environment (AWS_REGION, AWS_ENDPOINT_URL, GOOGLE_..., AZURE_...)
and from --store. Colours and progress bars are shown on a terminal only; NO_COLOR turns colours off.";

/// How a command ended that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Nothing is wrong.
    Good,
    /// The log has a problem that the command looked for or met; it has been said.
    Problem,
    /// A signal ended it, in order.
    Signal(i32),
}

/// What a command comes to.
pub(crate) type Outcome = Result<Exit, Failure>;

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The log is damaged, or something of it is lost.
    Damage(String),
    /// What the command was told to do cannot be done.
    Usage(String),
    /// The store failed, or another writer has the log.
    Store(String),
    /// Nobody reads the output any more: that is said to nobody.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn usage(text: impl fmt::Display) -> Failure {
        Failure::Usage(text.to_string())
    }

    /// With the text changed, for instance to say of what it is.
    pub(crate) fn map(self, change: impl FnOnce(String) -> String) -> Failure {
        match self {
            Failure::Damage(text) => Failure::Damage(change(text)),
            Failure::Usage(text) => Failure::Usage(change(text)),
            Failure::Store(text) => Failure::Store(change(text)),
            Failure::BrokenPipe => Failure::BrokenPipe,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        kind_of(&error)(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Failure {
        kind_of(error.error())(error.to_string())
    }
}

/// Of output: that of an input or of a file is a failure of its own, which names it.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            _ => Failure::Store(format!("cannot write the output: {error}")),
        }
    }
}

fn kind_of(error: &Error) -> fn(String) -> Failure {
    match error {
        Error::InvalidOptions { .. }
        | Error::InvalidRegion { .. }
        | Error::Released { .. }
        | Error::AppendTooLarge { .. }
        | Error::Missing { .. } => Failure::Usage,
        Error::Corrupted { .. } => Failure::Damage,
        Error::Poisoned { cause } | Error::Lost { cause, .. } | Error::Failing { cause } => {
            kind_of(cause)
        }
        _ => Failure::Store,
    }
}

/// Says why the command failed, if it did.
pub(crate) fn code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(Exit::Good) => 0.into(),
        Ok(Exit::Problem) => 1.into(),
        Ok(Exit::Signal(number)) => by_signal(number).into(),
        Err(Failure::Damage(text)) => failed(&text, 1),
        Err(Failure::Usage(text)) => failed(&text, 2),
        Err(Failure::Store(text)) => failed(&text, 3),
        Err(Failure::BrokenPipe) => by_signal(13).into(),
    }
}

/// The exit code of a program that a signal ended.
pub(crate) fn by_signal(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

fn failed(text: &str, code: u8) -> ExitCode {
    say("error", AnsiColor::Red, text);
    code.into()
}

/// Tells the person something that is no failure, beside the output.
pub(crate) fn warn(text: &str) {
    say("warning", AnsiColor::Yellow, text);
}

/// To standard error. If that is gone too, there is nobody to tell.
fn say(what: &str, color: AnsiColor, text: &str) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    let mut error = anstream::stderr().lock();
    let _ = writeln!(error, "{style}{what}{style:#}: {text}");
}
