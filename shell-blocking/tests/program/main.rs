//! The program `sealog`, run as a person would run it.
#![cfg(feature = "cli")]

mod append;
mod crash;
mod demo;
mod inspect;
mod log;
mod program;
mod quarantine;
mod report;
mod verify;
