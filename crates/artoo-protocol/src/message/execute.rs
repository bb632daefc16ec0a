//! R3 ↔ R4a and R3 ↔ User: attempts, their evidence, and permission for single actions (design §8, §9).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::validate::FailureClass;
use crate::ids::{SubTaskId, TaskId};
use crate::text;
use crate::tool::EffectClass;
use crate::units::{Millis, Timestamp};

/// One tool call that really happened, or was really refused: the ground truth of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as run.
    pub input: Value,
    /// Head and tail of what it put out.
    #[serde(default)]
    pub output: String,
    /// Whether `output` leaves something out.
    #[serde(default)]
    pub truncated: bool,
    /// Lines of the whole output.
    #[serde(default)]
    pub lines: u64,
    /// Exit status of a program; `None` for tools without one and for programs ended by a signal.
    #[serde(default)]
    pub exit: Option<i32>,
    /// The tool's own error, if it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Class of that error; set by code from the tool's own report.
    #[serde(default)]
    pub failure_class: Option<FailureClass>,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub elapsed_ms: Millis,
    /// Timed out, killed or cut short.
    #[serde(default)]
    pub interrupted: bool,
    /// What it could do.
    pub effect: EffectClass,
    /// Programs that a shell command ran, read from the parsed command.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Paths that the call created or changed, absolute.
    #[serde(default)]
    pub touched: Vec<String>,
    /// The gate refused it, so it never ran: evidence of nothing but the refusal.
    #[serde(default)]
    pub not_run: bool,
}

impl ToolCall {
    /// Whether the call failed by its own account: an error, a non-zero exit, or an interruption.
    pub fn failed(&self) -> bool {
        self.error.is_some() || self.interrupted || self.exit.is_some_and(|code| code != 0)
    }

    /// The argument that names what the call was about: a path, a command, a query, a pattern; else the whole input.
    pub fn target(&self) -> String {
        ["path", "command", "query", "url", "pattern"]
            .iter()
            .find_map(|key| self.input.get(key).and_then(Value::as_str))
            .map_or_else(|| self.input.to_string(), str::to_owned)
    }
}

impl std::fmt::Display for ToolCall {
    /// The one-line form `tool: input → first 200 characters of the output`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let input = text::one_line(&self.input.to_string(), 200);
        write!(f, "{}: {input} → {}", self.tool, text::first_n(&self.output, 200))
    }
}

/// How an attempt ended by R3's own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// R3 believes it is done.
    Completed,
    /// R3 is not sure.
    Uncertain,
    /// It cannot be done, or the attempt broke.
    Failed,
}

/// What an attempt gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionResult {
    /// The subtask.
    pub subtask_id: SubTaskId,
    /// The task it belongs to.
    pub parent_task_id: TaskId,
    /// From 1.
    pub attempt: u32,
    /// R3's own account.
    pub status: ExecutionStatus,
    /// R3's own words: a claim, not evidence.
    pub output: String,
    /// Why it failed or is uncertain.
    #[serde(default)]
    pub reason: Option<String>,
    /// Set when the attempt broke on infrastructure (no model, time-out, cancelled), so that no retry makes sense.
    #[serde(default)]
    pub infrastructure: bool,
    /// Set when R3 reported by itself that the subtask cannot be done.
    #[serde(default)]
    pub infeasible: bool,
    /// Set when law 1 stopped an action of the attempt: a confirmation was refused or nobody could give it.
    #[serde(default)]
    pub refused: bool,
    /// What really happened, in order.
    pub tool_calls: Vec<ToolCall>,
}

/// What R4a wants done differently in the next attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionSignal {
    /// The subtask.
    pub subtask_id: SubTaskId,
    /// The task it belongs to.
    pub parent_task_id: TaskId,
    /// The attempt that failed, from 1.
    pub attempt_number: u32,
    /// The criterion that failed, word for word.
    pub failed_criterion: String,
    /// Why it failed.
    pub failure_class: FailureClass,
    /// What was wrong.
    pub what_was_wrong: String,
    /// What to do.
    pub what_to_do: String,
    /// Calls that must not simply be repeated, in their one-line form.
    #[serde(default)]
    pub avoid_calls: Vec<String>,
}

/// The gate asks the person for one exact action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationRequest {
    /// Names this question.
    pub request_id: String,
    /// The task.
    pub task_id: TaskId,
    /// The subtask.
    pub subtask_id: SubTaskId,
    /// The tool.
    pub tool: String,
    /// Its class.
    pub effect: EffectClass,
    /// The exact action in full: the whole command, or the absolute path and what changes.
    pub action: String,
    /// Why it has to be asked.
    pub reason: String,
    /// The narrowest grant that would have allowed it beforehand, `EFFECT:GLOB`; none where nothing may be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// The person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// This once.
    Yes,
    /// This exact action for the rest of the task.
    Always,
    /// No.
    No,
    /// Nobody is there to be asked, which counts as no.
    Nobody,
}

/// The person's answer to a [`ConfirmationRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmationAnswer {
    /// The question.
    pub request_id: String,
    /// The task.
    pub task_id: TaskId,
    /// The decision.
    pub consent: Consent,
}
