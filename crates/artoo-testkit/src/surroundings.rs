//! Everything outside the roles, as a world needs it: one answer for each thing that a role can ask for.
//!
//! Owns the trait only; [`Scene`](crate::Scene) is the implementation that the tests use.

use artoo_protocol::message::{Megram, MemoryQuery, MemoryReply};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput};
use artoo_protocol::{Message, Millis, Role, Timestamp};

/// Something with the virtual time that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<T> {
    /// How long it takes.
    pub after: Millis,
    /// What comes of it.
    pub value: T,
}

impl<T> Reply<T> {
    /// At once.
    pub const fn now(value: T) -> Self {
        Self {
            after: Millis(0),
            value,
        }
    }
}

/// Everything outside the roles.
pub trait Surroundings {
    /// A language model.
    fn model(&mut self, role: Role, request: &ModelRequest) -> Reply<Result<ModelReply, ModelError>>;
    /// What a tool call would do.
    fn assess(&mut self, invocation: &Invocation) -> Assessment;
    /// A tool call.
    fn run(&mut self, invocation: &Invocation, permit: Permit) -> Reply<ToolOutput>;
    /// A machine check.
    fn check(&mut self, request: &CheckRequest) -> Reply<CheckReport>;
    /// Memory, reading.
    fn recall(&mut self, now: Timestamp, query: &MemoryQuery) -> Reply<MemoryReply>;
    /// Memory, writing.
    fn store(&mut self, megram: Megram);
    /// A long output is put where tools can read it.
    fn keep(&mut self, path: &str, text: &str);
    /// The person, who sees everything addressed to them and may answer.
    fn person(&mut self, message: &Message) -> Option<Reply<Message>>;
}
