//! Contract tests of the laboratory. Small runs, the same on every machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "test code"
)]

mod comparing;
mod reporting;
mod tuning;
