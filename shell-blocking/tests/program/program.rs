//! Running the program.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// `sealog` with these arguments, without what the environment says of stores and colours.
pub(crate) fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sealog"));
    command.args(arguments);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs it without input.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    run_with(arguments, b"")
}

/// Runs it with this on its standard input.
pub(crate) fn run_with(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    input: &[u8],
) -> Ran {
    Ran::of(start(command(arguments)), input)
}

pub(crate) fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

impl Ran {
    /// Of a program that was started, once it ended.
    pub(crate) fn of(mut child: Child, input: &[u8]) -> Ran {
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // From a thread: it may print before it has read all.
        let feed = std::thread::spawn(move || {
            // It may end without reading all.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feed.join().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its output, after it ended well and complained of nothing.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:#?}");
        self.out
    }

    /// What it complained of, after it ended with this code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self.err
    }
}
