//! What a tool is, what it may do, and what it reports (design §8, §9).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{SubTaskId, TaskId};
use crate::message::{Check, FailureClass, ToolCall};
use crate::units::Millis;

/// What an action can do to the user's world, from harmless to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Looks only.
    Read,
    /// Reads from the network.
    Fetch,
    /// Makes something new.
    Create,
    /// Changes what exists.
    Modify,
    /// Deletes, or overwrites without a way back.
    Destroy,
    /// Sends data out, or acts on other programs or machines; also everything that was not understood.
    External,
}

impl EffectClass {
    /// Every class, from harmless to worst.
    pub const ALL: [Self; 6] = [
        Self::Read,
        Self::Fetch,
        Self::Create,
        Self::Modify,
        Self::Destroy,
        Self::External,
    ];

    /// The name used in JSON, grants and questions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Fetch => "fetch",
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Destroy => "destroy",
            Self::External => "external",
        }
    }
}

impl std::fmt::Display for EffectClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name; an MCP tool is `server.tool`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// One call that is about to be judged or made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// The tool's name, as the model gave it.
    pub tool: String,
    /// The arguments, as the model gave them.
    pub input: Value,
    /// The task.
    pub task_id: TaskId,
    /// The subtask.
    pub subtask_id: SubTaskId,
    /// Paths within which the person allowed creating and changing, absolute.
    #[serde(default)]
    pub scope: Vec<String>,
    /// Paths that this task made itself, absolute.
    #[serde(default)]
    pub created: Vec<String>,
}

/// Where an action's effect falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Nothing is written.
    Nowhere,
    /// Only inside the workspace.
    Workspace,
    /// Only inside the scope that the person allowed.
    Scope,
    /// Only what this task made itself.
    OwnFiles,
    /// artoo's own settings and records, among other places perhaps. No grant reaches there.
    Records,
    /// Anywhere else, or not known.
    Elsewhere,
}

/// What a call would do, found out without doing it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// The worst that it can do.
    pub effect: EffectClass,
    /// Where.
    pub reach: Reach,
    /// The exact action in full, for the person: the whole command, or the absolute path and what changes.
    pub action: String,
    /// Why the class is what it is.
    pub reason: String,
    /// Programs that it would run.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Absolute paths and other inputs that it is about, for blocked targets and grants.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Set when the call cannot be made at all (unknown tool, bad arguments): goes back to the model as the tool's error.
    #[serde(default)]
    pub invalid: Option<String>,
    /// Digest of the action and of the state of the world that it rests on: equal only when the very same would be done to the very
    /// same thing. What a person agrees to is this, and not a text that may have been shortened. 0 where nothing but the action counts.
    #[serde(default)]
    pub fingerprint: u64,
}

/// What a call is allowed to do; a tool refuses when it finds that it would do more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    /// The worst class that was allowed.
    pub effect: EffectClass,
    /// Whether a person, or a grant given beforehand, allowed this exact action.
    pub confirmed: bool,
    /// The assessment's fingerprint when it was allowed; a tool that finds another one does nothing and says that it is stale.
    #[serde(default)]
    pub seen: u64,
}

/// What a tool did. The shell adds when and how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What it put out; head and tail when long.
    pub output: String,
    /// Whether something is missing from `output`.
    #[serde(default)]
    pub truncated: bool,
    /// Lines of the whole output.
    #[serde(default)]
    pub lines: u64,
    /// Exit status of a program.
    #[serde(default)]
    pub exit: Option<i32>,
    /// The tool's own error.
    #[serde(default)]
    pub error: Option<String>,
    /// Class of that error.
    #[serde(default)]
    pub failure_class: Option<FailureClass>,
    /// Timed out, killed or cut short.
    #[serde(default)]
    pub interrupted: bool,
    /// Programs that really ran.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Absolute paths that were created or changed.
    #[serde(default)]
    pub touched: Vec<String>,
    /// Nothing was done, because it is not any more what was allowed: it has to be assessed, and where needed asked, again.
    #[serde(default)]
    pub stale: bool,
    /// How long it took, filled in by whoever ran it.
    #[serde(default)]
    pub elapsed_ms: Millis,
}

/// A machine check with what it may look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckRequest {
    /// The check.
    pub check: Check,
    /// The tool calls of the attempt, or of all matched subtasks for a task criterion.
    pub tool_calls: Vec<ToolCall>,
    /// Absolute paths that the task made or changed before these calls, for relative paths in the check.
    #[serde(default)]
    pub made: Vec<String>,
    /// What the work was given: the intent and what came with it, for telling invented values from given ones.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub given: String,
    /// Calls of earlier attempts that wrote files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<ToolCall>,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Whether it holds.
    pub passed: bool,
    /// The value found, the path, the bytes.
    pub evidence: String,
    /// Class of the failure.
    #[serde(default)]
    pub failure_class: Option<FailureClass>,
    /// The check itself cannot run (bad pattern, forbidden command): a fault of the plan, not of the result.
    #[serde(default)]
    pub faulty: bool,
}
