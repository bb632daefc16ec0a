//! Test support for artoo: the whole system in one thread on virtual time, and models that answer from a script.
//!
//! Owns the [`World`], which steps any set of roles deterministically, and stand-ins for everything a role can ask for.
//! Knows no runtime and no clock; production code never depends on it.

pub mod scripted;
pub mod server;
pub mod world;

pub use scripted::{Scripted, structured, text_reply, tool_reply};
pub use world::{Reply, Surroundings, World};
