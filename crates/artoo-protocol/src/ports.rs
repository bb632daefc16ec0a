//! The ports through which shells reach the world; each has a production adapter and a stand-in for tests (design §2).
//!
//! Owns traits only. A role never sees a port: it returns effects, and the driver calls these.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::envelope::Envelope;
use crate::ids::{MegramId, TaskId};
use crate::message::{
    ClarificationRequest, ConfirmationRequest, Consent, Lesson, Megram, MemoryQuery, MemoryReply, Message, MessageKind,
    Potentials, SopRecord,
};
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::role::Role;
use crate::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput, ToolSpec};
use crate::units::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// A language model, whoever provides it. Retries, reading, validation and one re-ask happen behind this port.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Answers one request in the form that it asks for.
    ///
    /// # Errors
    /// [`ModelError`] when no fitting answer came.
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;
}

/// One tool. Dropping the future of [`Tool::run`] stops it, children included.
#[async_trait]
pub trait Tool: Send + Sync {
    /// How a model sees it.
    fn spec(&self) -> ToolSpec;

    /// What the call would do; looks, never acts.
    async fn assess(&self, invocation: &Invocation) -> Assessment;

    /// Makes the call, and refuses when it finds that it would do more than the permit says.
    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput;
}

/// The tools of an installation, by name.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// What is on offer.
    fn specs(&self) -> Vec<ToolSpec>;

    /// What the call would do; an unknown tool is an invalid call.
    async fn assess(&self, invocation: &Invocation) -> Assessment;

    /// Makes the call.
    async fn run(&self, invocation: &Invocation, permit: Permit) -> ToolOutput;
}

/// Keeps texts that are too long for a message, so that a tool can read them.
pub trait Shelf: Send + Sync {
    /// Writes the whole text into a file that only its owner can read.
    ///
    /// # Errors
    /// Why it could not be written.
    fn keep(&self, path: &str, text: &str) -> std::io::Result<()>;
}

/// Runs machine checks, reading only.
#[async_trait]
pub trait CheckRunner: Send + Sync {
    /// Runs one check.
    async fn run(&self, request: &CheckRequest) -> CheckReport;
}

/// Asks the person; every front end implements it.
#[async_trait]
pub trait Confirm: Send + Sync {
    /// Whether someone is there at all.
    fn person_present(&self) -> bool;

    /// Asks for one exact action.
    async fn confirm(&self, request: &ConfirmationRequest) -> Consent;

    /// Puts R1's questions; empty means go on.
    async fn clarify(&self, request: &ClarificationRequest) -> String;
}

/// A message that no route allows.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{from} may not send {}", kind.name())]
pub struct NoRoute {
    /// The would-be sender.
    pub from: Role,
    /// The message.
    pub kind: MessageKind,
}

/// The bus as seen by whoever publishes on it.
pub trait Bus: Send + Sync {
    /// Journals the message and hands it to everyone on its route; never waits for a receiver.
    ///
    /// # Errors
    /// [`NoRoute`] when the table does not allow it.
    fn publish(&self, from: Role, task_id: Option<&TaskId>, message: Message) -> Result<Arc<Envelope>, NoRoute>;
}

/// What went wrong in memory.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("memory: {message}")]
pub struct MemoryError {
    /// Cause and remedy.
    pub message: String,
}

/// Shared memory.
#[async_trait]
pub trait MemoryService: Send + Sync {
    /// Accepts a memory; never waits and never drops.
    fn write(&self, megram: Megram);

    /// Rules at level C of a group; marks them as recalled.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be read.
    async fn query_c(&self, space: &str, entity: &str) -> Result<Vec<SopRecord>, MemoryError>;

    /// The potentials of a group at `now`.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be read.
    async fn query_mk(&self, space: &str, entity: &str, now: Timestamp) -> Result<Potentials, MemoryError>;

    /// Knowledge (level K) of a group, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be read.
    async fn query_k(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError>;

    /// Level M of a group, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be read.
    async fn recent(&self, space: &str, entity: &str, limit: usize) -> Result<Vec<Lesson>, MemoryError>;

    /// Everything that one plan needs, in one go.
    ///
    /// # Errors
    /// [`MemoryError`] when the store cannot be read.
    async fn recall(&self, query: &MemoryQuery, now: Timestamp) -> Result<MemoryReply, MemoryError>;

    /// Appends a memory of negative valence beside a rule that proved wrong.
    fn record_negative_feedback(&self, rule: &MegramId, content: &str, now: Timestamp);

    /// Returns when everything accepted so far is on disk.
    ///
    /// # Errors
    /// [`MemoryError`] when it could not be written.
    async fn flush(&self) -> Result<(), MemoryError>;

    /// Drains, flushes and ends; later writes are refused with a warning.
    ///
    /// # Errors
    /// [`MemoryError`] when something could not be written.
    async fn close(&self) -> Result<(), MemoryError>;
}
