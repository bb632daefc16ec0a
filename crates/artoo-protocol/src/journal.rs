//! The record of a task's journal (design §17).
//!
//! Owns the format; writing and reading files is the bus's. A journal holds, in the order in which they happened: every
//! envelope before it is delivered, every command that reaches the world before it is performed, every answer before it
//! is handed to its role, and every step of a role with its cause and its `now`. Feeding the steps to fresh roles gives
//! the same commands again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::actor::{Answer, Command};
use crate::envelope::Envelope;
use crate::ids::{CallId, TaskId};
use crate::role::Role;
use crate::units::Timestamp;

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in this journal, from 1.
    pub n: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Whether a secret in it was masked before it was written: whoever acted on it would act on the mask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// Always the first record.
    Opened {
        /// Version of the format.
        format: u32,
        /// Version of the program.
        artoo: String,
        /// The id of the run, provisional or final.
        task_id: TaskId,
        /// The settings that decisions depend on.
        settings: Value,
    },
    /// A message, before it is delivered.
    Published {
        /// The message.
        envelope: Envelope,
    },
    /// A command that reaches the world, before it is performed.
    Commanded {
        /// By whom.
        role: Role,
        /// What.
        command: Command,
    },
    /// What came of it, before the role hears of it.
    Answered {
        /// By whom it was asked for.
        role: Role,
        /// Its correlation id.
        call: CallId,
        /// What came of it.
        answer: Answer,
    },
    /// A role takes one event.
    Stepped {
        /// Which role.
        role: Role,
        /// With which `now`.
        now: Timestamp,
        /// Because of what.
        cause: StepCause,
    },
    /// The process that ran the task went down in order.
    Closed {
        /// Why.
        reason: String,
    },
}

/// What the program that opened a journal was set to; nothing where its beginning is missing (design §17).
pub fn settings_of(records: &[Record]) -> Option<&Value> {
    records.iter().find_map(|record| match &record.entry {
        Entry::Opened { settings, .. } => Some(settings),
        Entry::Published { .. }
        | Entry::Commanded { .. }
        | Entry::Answered { .. }
        | Entry::Stepped { .. }
        | Entry::Closed { .. } => None,
    })
}

/// What made a role step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum StepCause {
    /// The envelope with this sequence number.
    Message {
        /// Its position on the bus.
        seq: u64,
    },
    /// The answer with this correlation id.
    Answer {
        /// Its correlation id.
        call: CallId,
    },
    /// Its deadline.
    Wake,
}
