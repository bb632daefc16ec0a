//! R1, the Perceiver: carries the user's words into the system without adding to them (design §5).
//!
//! Owns the step from [`UserInput`](artoo_protocol::message::UserInput) to exactly one of a task, a direct answer or a
//! planning failure, with at most two rounds of questions between. Knows no tools, no criteria, no plans and no memory,
//! and keeps nothing of a session: the history comes with the input.

mod actor;
mod guard;
mod prompt;

pub use actor::{Effect, MAX_ROUNDS, Perceiver};
pub use prompt::{Prompts, schema};

use artoo_protocol::units::LocalZone;
use serde::{Deserialize, Serialize};

/// What R1 is built with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The user's time zone, for deadlines such as "by tomorrow".
    pub zone: LocalZone,
    /// The fixed texts.
    pub prompts: Prompts,
}
