//! R4a and R4b: evidence, machine checks, fan-in and merge.
//!
//! Owns the two validators as pure actors ([`agent`], [`meta`]) and the machine checks ([`checks`]), whose shell
//! [`checks::WorldChecks`] is the only part that touches files and runs commands. Knows no tool by its code, no model
//! provider and no controller: what a failure leads to is R7's business.

pub mod agent;
pub mod checks;
mod decided;
mod evidence;
pub mod meta;
mod panel;
mod prompts;
mod verdicts;

pub use agent::AgentValidator;
pub use checks::WorldChecks;
pub use meta::MetaValidator;
pub use panel::Judges;
