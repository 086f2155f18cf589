//! The program `sealog`, run as a person would run it.
#![cfg(feature = "cli")]

mod append;
mod bench;
mod check_store;
mod crash;
mod demo;
mod generated;
mod held;
mod logs;
mod program;
mod reading;
mod s3;
#[cfg(feature = "aws")]
mod server;
