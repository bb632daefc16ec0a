//! Contract tests of the auditor. Owns its proof from outside; must not reach into private state.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod build;
mod checkpoints;
mod counts;
mod detecting;
mod looking;
mod observing;
mod recording;
mod tampering;
