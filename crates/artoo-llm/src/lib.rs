//! Language models for artoo: providers, tolerant reading, cassettes and the built-in offline model (design §18).
//!
//! Owns everything behind the [`LanguageModel`](artoo_protocol::ports::LanguageModel) port. Must not know the roles: a
//! request says in which form it wants its answer, and that is all there is to know. The environment is read by the app.

pub mod cassette;
pub mod offline;

pub mod provider;
pub mod reader;
mod secret;
mod tiers;

pub use secret::{Secret, mask, secret_shapes};
pub use tiers::Tiers;
