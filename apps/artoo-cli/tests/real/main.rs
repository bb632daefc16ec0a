//! The real binary, from the outside: what a person or a program that starts it sees (design §14, §20, §21).
//!
//! Every test has a home of its own and an empty environment. Nothing sleeps: a test waits for what it expects, and for
//! nothing longer than a bound that only a hang reaches.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod auditing;
mod bad_input;
mod consent;
mod conversation;
mod crash;
mod damaged;
mod dashboard;
mod devtools;
mod display;
mod doctor;
#[cfg(target_os = "linux")]
mod faults;
mod judging;
mod keys;
mod lab;
mod llama_cpp;
mod memory;
mod models;
mod offline;
mod pages;
mod pty;
mod reading;
mod repl;
mod replay;
mod resuming;
mod serving;
#[cfg(target_os = "linux")] // what runs is looked for in /proc
mod shutdown;
mod standing;
mod support;
mod traces;
