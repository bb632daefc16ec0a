//! R3, the executor: carries out one subtask with tools behind an effect gate (design §8, §9).
//!
//! Three layers that can be used alone: [`classify()`] says what a shell command could do; [`Tools`] are the built-in
//! tools behind the protocol's `Toolbox` port; [`Executor`] is the pure state machine that drives a model through the
//! tool loop, with [`gate`] between every call and the world. Must not know criteria verdicts, plans, the loss or memory.

mod abandoned;
mod anchored;
pub mod attempt;
pub mod capture;
pub mod classify;
mod context;
pub mod conversation;
pub mod executor;
pub mod gate;
pub mod mcp;
mod permission;
pub mod sandbox;
#[cfg(test)]
#[path = "../../artoo-testkit/src/skipping.rs"]
mod skipping;
pub mod spawn;
mod tool_loop;
pub mod tools;
pub mod undo;

pub use classify::{CommandClass, WrittenPath, classify};
pub use conversation::system_prompt;
pub use executor::{Executor, ExecutorEffect, Settings};
pub use gate::{Grant, NotAGrant};
pub use sandbox::Sandbox;
pub use tools::{AddressGuard, GoogleKeys, Lookup, Mask, Places, ToolSettings, Tools, WebSettings};
pub use undo::UndoStore;
