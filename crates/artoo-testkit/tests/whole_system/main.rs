//! All roles together on virtual time: one situation a test, named for what went wrong in systems of this kind.
//!
//! Owns the situations. Every world that comes to rest is held against all laws, and every role's decisions are derived
//! once more from its journal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod aborts;
mod control;
mod endings;
mod kept;
mod learning;
mod memory;
mod people;
mod plans;
mod prompts;
mod runtime;
mod scale;
mod simulation;
mod support;
mod taking_up;
