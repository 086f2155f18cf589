//! Several processes on one log (DESIGN.md section 12): whoever opens last has it, the others are
//! told, and nothing that was acknowledged is lost.
#![cfg(unix)]

mod counted;
mod killed;
mod logs;
mod stopped;
mod ten;
mod two;

use std::io::{self, Write};

use sealog_tests::child::Child;
use sealog_tests::entries::History;
use sealog_tests::place::{Place, named};

fn start(place: &Place) -> Child {
    Child::start(env!("CARGO_BIN_EXE_sealog-test-writer"), place, 1)
}

/// What an opening of this process finds; the log is this process's afterwards.
async fn recovered(place: &Place, situation: &str) -> History {
    let wal = match place.open(named("the parent")).await {
        Ok(wal) => wal,
        Err(error) => panic!("{situation}: {error}"),
    };
    History::read(&wal).await.unwrap_or_else(|error| panic!("{situation}: {error}"))
}

/// Past the capture of the test harness: figures that somebody may want to see.
fn tell(text: &str) {
    io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}
