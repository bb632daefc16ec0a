//! User ↔ R1 → R2: how words become a task (design §5).

use serde::{Deserialize, Serialize};

use crate::ids::{Slug, TaskId};
use crate::units::Timestamp;

/// One earlier exchange of the session, kept by the entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// What the person wrote.
    pub input: String,
    /// The summary of what came of it.
    pub summary: String,
}

/// The person's words as they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInput {
    /// The provisional id of the run.
    pub task_id: TaskId,
    /// Verbatim.
    pub text: String,
    /// The last turns, oldest first; R1 reads at most five.
    #[serde(default)]
    pub history: Vec<Turn>,
    /// Whether someone is there to answer a question.
    #[serde(default)]
    pub person_present: bool,
    /// Paths that the caller allowed with `--scope`, absolute.
    #[serde(default)]
    pub scope: Vec<String>,
}

/// R1's questions, all of one round together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClarificationRequest {
    /// The provisional id of the run.
    pub task_id: TaskId,
    /// 1 or 2.
    pub round: u32,
    /// At least one.
    pub questions: Vec<String>,
}

/// The person's answer to a round of questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClarificationAnswer {
    /// The provisional id of the run.
    pub task_id: TaskId,
    /// The round that is answered.
    pub round: u32,
    /// Verbatim; empty means proceed.
    pub text: String,
}

/// Limits that the person stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraints {
    /// Path, domain or application, as stated.
    #[serde(default)]
    pub scope: Option<String>,
    /// When it must be done.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
}

/// The task as R1 understood it. It carries no success criteria: those are R2's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The id of the run, final from here on.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// The goal, faithfully restated.
    pub intent: String,
    /// Limits that the person stated.
    #[serde(default)]
    pub constraints: Constraints,
    /// Verbatim.
    pub raw_input: String,
    /// Paths that the caller allowed with `--scope`, absolute.
    #[serde(default)]
    pub scope: Vec<String>,
}

/// R1's own answer to input that needs no tool, no file, no live state and no memory. R7 turns it into the ending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectAnswer {
    /// The id of the run, final from here on.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// The goal, faithfully restated.
    pub intent: String,
    /// The answer.
    pub answer: String,
}
