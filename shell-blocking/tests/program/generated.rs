//! What is generated from the arguments: help, completions, man pages; and colours.

use crate::logs::lived_in;
use crate::program::{Ran, command, run, start};

const COMMANDS: &[&str] = &[
    "append",
    "bench",
    "check-store",
    "completions",
    "demo",
    "held",
    "inspect",
    "man",
    "quarantine",
    "read",
    "regions",
    "replay",
    "report",
    "verify",
];

#[test]
fn every_command_is_in_the_help_the_completions_and_the_man_pages() {
    let help = run(["--help"]).good();
    let parent = tempfile::tempdir().unwrap();
    let pages = parent.path().join("man1");
    assert_eq!(run(["man", pages.to_str().unwrap()]).good(), "");
    let main = std::fs::read_to_string(pages.join("sealog.1")).unwrap();
    assert_eq!(run(["man"]).good(), main);
    assert!(main.contains(".TH sealog 1"), "{main}");
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let mut named: Vec<_> = commands
        .lines()
        .filter_map(|line| {
            line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty())
        })
        .filter(|command| *command != "help")
        .collect();
    named.sort_unstable();
    assert_eq!(named, COMMANDS, "{help}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("sealog-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH sealog-{command} 1")), "{page}");
        assert!(!run([*command, "--help"]).good().is_empty());
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).good();
        for command in COMMANDS {
            assert!(script.contains(command), "{command} for {shell}");
        }
    }
}

#[test]
fn what_is_no_command_is_an_error_of_usage() {
    for arguments in [&[][..], &["explode"], &["read"], &["regions", "a", "b"]] {
        assert!(run(arguments).failed(2).contains("Usage: sealog"), "{arguments:?}");
    }
}

#[test]
fn the_bash_completions_are_a_script_that_bash_takes() {
    let script = run(["completions", "bash"]).good();
    let checked = std::process::Command::new("bash").args(["-n", "-c", &script]).output();
    // Where there is no bash, nobody needs them.
    if let Ok(checked) = checked {
        assert!(checked.status.success(), "{checked:?}");
    }
}

#[test]
fn colours_are_for_terminals_and_off_with_no_color() {
    let parent = tempfile::tempdir().unwrap();
    let log = parent.path().join("log");
    lived_in(&log);
    let with = |variables: &[(&str, &str)], log: &str| {
        let mut command = command(["regions", log]);
        command.envs(variables.iter().copied());
        let ran = Ran::of(start(command), b"");
        (ran.out + &ran.err).contains('\u{1b}')
    };
    // Of a table, and of an error.
    for log in [log.to_str().unwrap(), parent.path().to_str().unwrap()] {
        assert!(!with(&[], log));
        assert!(with(&[("CLICOLOR_FORCE", "1")], log));
        assert!(!with(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], log));
    }
}
