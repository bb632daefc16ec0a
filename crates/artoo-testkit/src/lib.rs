//! Test support for artoo: the whole system in one thread on virtual time, and models that answer from a script.
//!
//! Owns the [`World`], which steps any set of roles deterministically, stand-ins for everything a role can ask for, the
//! [`laws`] that every run has to keep, and the [`chaos`] that tries to break them. Knows no runtime and no clock;
//! production code never depends on it.

pub mod chaos;
pub mod claims;
pub mod journal;
pub mod laws;
pub mod learning;
pub mod machine;
pub mod minds;
pub mod prices;
pub mod prompts;
pub mod random;
pub mod sabotage;
pub mod scene;
pub mod scripted;
pub mod server;
pub mod skipping;
pub mod surroundings;
pub mod trial;
pub mod whole;
pub mod world;

pub use machine::Machine;
pub use scene::{NEVER, Person, Scene};
pub use scripted::{Scripted, structured, text_reply, tool_reply};
pub use surroundings::{Reply, Surroundings};
pub use whole::Settings;
pub use world::World;

/// The programs of the page on embedding are run as tests of this crate, the only one that knows every role.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
pub mod embedding {}
