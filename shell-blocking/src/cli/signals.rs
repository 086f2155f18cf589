//! SIGINT and SIGTERM, for commands that have something to end in order.

use std::thread;

use crate::cli::exit::{Failure, by_signal};

/// Calls `first` with the number of the first signal, in a thread of its own; a second signal ends
/// the program at once, as a crash would.
#[cfg(unix)]
pub(crate) fn listen(first: impl FnOnce(i32) + Send + 'static) -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let failed = |error| Failure::usage(format!("cannot listen to signals: {error}"));
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let listen = move || {
        let mut signals = signals.forever();
        if let Some(number) = signals.next() {
            // It may take its time: the next one is heard meanwhile.
            thread::spawn(move || first(number));
        }
        if let Some(number) = signals.next() {
            std::process::exit(by_signal(number).into());
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).map(drop).map_err(failed)
}

/// Elsewhere the system ends the program, as a crash would.
#[cfg(not(unix))]
pub(crate) fn listen(_: impl FnOnce(i32) + Send + 'static) -> Result<(), Failure> {
    Ok(())
}
