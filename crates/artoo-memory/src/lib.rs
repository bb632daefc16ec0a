//! R5: Megrams, decaying potentials and a LevelDB store that does not lose data (design §15).
//!
//! - [`MemoryActor`] is the role: pure, on the bus.
//! - [`Memory`] is the service behind it, on a thread of its own.
//! - [`records`] and [`recall`] are what it does there, [`potentials`] the mathematics, [`kv`] the stores below.
//!
//! Knows nothing of other roles' prompts: it answers with data, and the planner words it.

pub mod actor;
mod bounds;
mod cache;
pub mod codec;
mod commit;
mod dissonance;
pub mod dreamer;
pub mod entry;
pub mod folding;
pub mod junk;
pub mod keys;
pub mod kv;
pub mod memory;
pub mod near;
mod newest;
pub mod picture;
pub mod potentials;
mod prefetch;
pub mod recall;
pub mod records;
pub mod repair;
pub mod sums;
#[cfg(test)]
mod testing;
mod ties;
mod verify;
pub mod view;
mod walk;
mod worker;

pub use actor::MemoryActor;
pub use entry::Entry;
pub use folding::exporting::{Exported, Exporting, Part};
pub use folding::taking::Taking;
pub use memory::{Memory, Warn};
pub use near::Near;
pub use records::{Edit, Records};
pub use view::{GroupKey, GroupSummary};
