//! A role is a value with one total transition; everything it wants done is data (design §2).
//!
//! Owns the contract between roles and whatever runs them. An [`Actor`] has no clock, no randomness and no I/O: `now`
//! is an argument, answers come back as events, and its own effect type holds only what it may do.

use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::ids::{CallId, TaskId};
use crate::message::{Megram, MemoryQuery, MemoryReply, Message};
use crate::model::{ModelError, ModelReply, ModelRequest, Usage};
use crate::role::Role;
use crate::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput};
use crate::units::Timestamp;

/// A role as a pure state machine.
pub trait Actor: Send + 'static {
    /// What this role may want done, and nothing else. It narrows [`Command`]: R7's has no way to call a model.
    type Effect: Into<Command> + Send + std::fmt::Debug;

    /// Which role this is.
    const ROLE: Role;

    /// Takes one event and says what is to be done. Total: a late, duplicate or foreign event gives no effects.
    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Self::Effect>;

    /// When the role wants to be woken even if nothing happens.
    fn deadline(&self) -> Option<Timestamp>;

    /// How many tasks it holds state for; zero when all have ended.
    fn open_tasks(&self) -> usize;
}

/// Something that happened to a role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A message on the bus was addressed to it.
    Message {
        /// The message.
        envelope: Box<Envelope>,
    },
    /// Something it asked for is done.
    Answer {
        /// The task it asked for.
        task_id: TaskId,
        /// Its own correlation id.
        call: CallId,
        /// What came of it.
        answer: Answer,
    },
    /// Its deadline has come.
    Wake,
}

impl From<Envelope> for Event {
    fn from(envelope: Envelope) -> Self {
        Self::Message {
            envelope: Box::new(envelope),
        }
    }
}

/// What came of a [`Command`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Answer {
    /// Of [`Command::CallModel`].
    Model(Result<ModelReply, ModelError>),
    /// Of [`Command::Assess`].
    Assessed(Assessment),
    /// Of [`Command::RunTool`].
    Ran(ToolOutput),
    /// Of [`Command::RunCheck`].
    Checked(CheckReport),
    /// Of [`Command::Recall`].
    Recalled(MemoryReply),
}

impl Answer {
    /// Which model used how much, whether it answered or failed; `None` where none was asked or nothing is known.
    pub fn spent(&self) -> Option<(&str, &Usage)> {
        match self {
            Self::Model(Ok(reply)) => Some((&reply.model, &reply.usage)),
            Self::Model(Err(error)) => error.spent(),
            Self::Assessed(_) | Self::Ran(_) | Self::Checked(_) | Self::Recalled(_) => None,
        }
    }
}

/// Everything that a shell can perform; each role's effects convert into a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[must_use]
pub enum Command {
    /// Say something on the bus. The route decides who hears it. Never waits.
    Publish {
        /// The task.
        task_id: Option<TaskId>,
        /// The message.
        message: Box<Message>,
    },
    /// Ask a language model.
    CallModel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The request.
        request: ModelRequest,
    },
    /// Find out what a tool call would do.
    Assess {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The call.
        invocation: Invocation,
    },
    /// Make a tool call.
    RunTool {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The call.
        invocation: Invocation,
        /// What it may do.
        permit: Permit,
    },
    /// Run a machine check.
    RunCheck {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The check.
        request: CheckRequest,
    },
    /// Stop something that was asked for; its answer will not come.
    Cancel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
    },
    /// Write a text down for later steps of the task to read. Done before anything that is wanted after it; never answers.
    Keep {
        /// The task.
        task_id: TaskId,
        /// Absolute path.
        path: String,
        /// The text.
        text: String,
    },
    /// Write a memory. Never waits, never answers.
    Store {
        /// The memory.
        megram: Megram,
    },
    /// Read memory.
    Recall {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The question.
        query: MemoryQuery,
    },
}

impl Command {
    /// The task that it is about; `None` for what belongs to none, and for a memory, which names none.
    pub const fn task_id(&self) -> Option<&TaskId> {
        match self {
            Self::Publish { task_id, .. } => task_id.as_ref(),
            Self::CallModel { task_id, .. }
            | Self::Assess { task_id, .. }
            | Self::RunTool { task_id, .. }
            | Self::RunCheck { task_id, .. }
            | Self::Recall { task_id, .. }
            | Self::Keep { task_id, .. }
            | Self::Cancel { task_id, .. } => Some(task_id),
            Self::Store { .. } => None,
        }
    }

    /// A message about a task.
    pub fn publish(task_id: &TaskId, message: impl Into<Message>) -> Self {
        Self::Publish {
            task_id: Some(task_id.clone()),
            message: Box::new(message.into()),
        }
    }
}
