//! How far a command is that may take more than a second, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, which draws itself only if that is a terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// In bytes, of so many if that is known.
    pub(crate) fn bytes(of: Option<u64>) -> Progress {
        let bar = match of {
            Some(all) => ProgressBar::new(all).with_style(style(
                "{bar:40} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
            )),
            None => ProgressBar::no_length()
                .with_style(style("{spinner} {binary_bytes} {binary_bytes_per_sec} {elapsed}")),
        };
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// Of what has no measure; `what` says what it is.
    pub(crate) fn waiting(what: &'static str) -> Progress {
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// Nothing, where a bar would be in the way.
    pub(crate) fn none() -> Progress {
        Progress(ProgressBar::hidden())
    }

    pub(crate) fn add(&self, done: u64) {
        self.0.inc(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
