//! The Dreamer: what becomes of memories while nobody waits for them (design §15).
//!
//! - [`choose`](choose()) is the policy: pure, total, without a clock.
//! - `standing` is whether a new rule would outweigh what speaks against it.
//! - [`carry`] says which records a choice leads to, [`distil`] words a rule through a model.
//! - [`ask`] puts the question and accounts for it; [`rhythm`] is when, as a value.
//! - [`pass`] carries the choice out on the store, [`establish`] writes the rules, [`shell`] does so beside the tasks of a process.
//! - [`awake`] is the Dreamer's own sense of time: the clock cannot be trusted to say what is old.
//! - [`spent`] is what goes with a record that is forgotten.
//!
//! Owns promotion, demotion, forgetting and rules. Must not know how the store keeps its keys.

pub mod ask;
pub mod awake;
pub mod carry;
pub mod choose;
pub mod distil;
pub mod establish;
mod fold;
pub mod pass;
pub mod rhythm;
pub mod shell;
pub mod spent;
mod standing;

pub use ask::{Call, Outcome};
pub use choose::{Action, Consolidation, Faded, Group, Params, Sign, View, choose};
pub use pass::{Mode, Pass, Tidied};
pub use rhythm::{Rhythm, Scope};
pub use shell::{Around, Dreamer, MaySpend, Told};
