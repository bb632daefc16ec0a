//! Contract tests of the bus: order and loss, cancellation, panics, the journal, replay, shutdown.
//!
//! Owns toy roles and toy ports only. Time is tokio's and stands still; nothing here reads a clock or sleeps for real.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

mod cancelling;
mod driving;
mod hub;
mod journal;
mod replaying;
mod shutdown;
mod toys;
