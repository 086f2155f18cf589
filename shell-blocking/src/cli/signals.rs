//! SIGINT and SIGTERM, for commands that have something to end in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
#[cfg(unix)]
use std::thread;

use crate::cli::exit::Failure;
#[cfg(unix)]
use crate::cli::exit::by_signal;

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

/// For commands that look now and then whether they are to end: the first signal.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<AtomicI32>);

impl Heard {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Heard, Failure> {
        let heard = Heard::default();
        let tell = heard.clone();
        listen(move |number| tell.0.store(number, Ordering::Relaxed))?;
        Ok(heard)
    }

    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number != 0)
    }
}
