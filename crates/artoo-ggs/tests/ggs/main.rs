//! Contract tests of the controller. Owns its proof from outside; must not reach into private state.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::float_cmp,
    missing_docs,
    reason = "test code"
)]

mod actor;
mod build;
mod criteria;
mod directives;
mod doc;
mod elsewhere;
mod explain;
mod lines;
mod numbers;
mod signals;
