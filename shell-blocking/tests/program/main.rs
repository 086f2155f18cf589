//! The program `sealog`, run as a person would run it.
#![cfg(feature = "cli")]

mod append;
mod bench;
mod check_store;
mod crash;
mod demo;
mod generated;
mod held;
mod inspect;
mod logs;
mod looking;
mod made;
mod program;
mod quarantine;
mod reading;
mod report;
mod s3;
#[cfg(feature = "aws")]
mod server;
mod verify;
