//! R7 → User, and what makes a task end early (design §14, §19).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::{Loss, PreviousDirective};
use crate::ids::{Slug, SubTaskId, TaskId};
use crate::units::{Finite, Millis};

/// The three endings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything asked for was shown to hold.
    Accept,
    /// Within the threshold; what is missing is named.
    Success,
    /// Not achieved.
    Abandon,
}

/// Why a task ended as it did; exit codes follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Every criterion passed.
    Met,
    /// D ≤ δ.
    WithinThreshold,
    /// R1 answered by itself.
    Answered,
    /// A hard budget of time, tokens or money.
    Budget,
    /// Ω ≥ θ.
    Resources,
    /// The loss rose twice in a row (law 2).
    Divergence,
    /// R4b saw the allowed number of replans fail.
    ReplansExhausted,
    /// Every failing subtask reported that it cannot be done.
    Infeasible,
    /// No valid plan.
    PlanningFailed,
    /// A confirmation was refused, or nobody could give it.
    Refused,
    /// No model could be reached, or the offline grammar does not know the sentence.
    NoModel,
    /// The person stopped it.
    Aborted,
}

impl Cause {
    /// The process exit code of a task that ended so.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Met | Self::WithinThreshold | Self::Answered => 0,
            Self::NoModel => 3,
            Self::Refused => 4,
            Self::Budget => 5,
            Self::Aborted => 130,
            Self::Resources | Self::Divergence | Self::ReplansExhausted | Self::Infeasible | Self::PlanningFailed => 1,
        }
    }
}

/// The end of a task; there is exactly one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinalResult {
    /// The task.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// The goal.
    #[serde(default)]
    pub intent: String,
    /// What came of it, in words.
    pub summary: String,
    /// The result itself; partial when abandoned.
    pub output: Value,
    /// The last signals.
    pub loss: Loss,
    /// The last ∇L.
    pub grad_l: Finite,
    /// Directives really issued.
    pub replans: u32,
    /// The macro-state of the round before.
    pub prev_directive: PreviousDirective,
    /// The ending.
    pub directive: Ending,
    /// Why.
    pub cause: Cause,
    /// Criteria that failed or were not run, word for word.
    #[serde(default)]
    pub unmet: Vec<String>,
    /// Criteria that passed without tool evidence or a machine check, or were not judged; and, with a remark that says so, those of
    /// an earlier plan that were not met and that no later plan asked for.
    #[serde(default)]
    pub unverified: Vec<String>,
    /// How far the result can be trusted, criterion by criterion.
    #[serde(default, skip_serializing_if = "Honesty::is_empty")]
    pub honesty: Box<Honesty>,
}

/// What stands behind a result: what a machine proved, what a model judged and on which evidence, what nobody verified.
/// Criteria that failed are in [`FinalResult::unmet`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Honesty {
    /// Decided by a machine check.
    #[serde(default)]
    pub proven: Vec<Grounds>,
    /// Judged by a model on what tools did.
    #[serde(default)]
    pub judged: Vec<Grounds>,
    /// Passed on text alone, judged by nobody, or not met by an earlier plan and asked by no later one.
    #[serde(default)]
    pub unverified: Vec<Grounds>,
}

/// A criterion with what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds {
    /// Word for word.
    pub criterion: String,
    /// The subtask it belongs to; a criterion of the whole task has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtask_id: Option<SubTaskId>,
    /// The value found with its path and bytes, the judge's reason, or why nothing is known.
    pub evidence: String,
    /// The tool calls that the judge was shown, in short form; none for a machine check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

impl Honesty {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.proven.is_empty() && self.judged.is_empty() && self.unverified.is_empty()
    }

    /// One line for a person, such as `2 proven by machine, 1 judged by a model on evidence, 0 not verified`.
    pub fn summary(&self) -> String {
        format!(
            "{} proven by machine, {} judged by a model on evidence, {} not verified",
            self.proven.len(),
            self.judged.len(),
            self.unverified.len()
        )
    }
}

/// The person stopped the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAborted {
    /// The task.
    pub task_id: TaskId,
    /// How it was stopped, in words.
    pub reason: String,
}

/// A task that was interrupted goes on in another process; the time in between is nobody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResumed {
    /// The task.
    pub task_id: TaskId,
    /// Time between the last record of its journal and now.
    pub away_ms: Millis,
    /// Whether somebody is there now to be asked; what the task's input said of that was true of the process that took it. Unknown in
    /// journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_present: Option<bool>,
}

/// Which hard budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Tokens in and out.
    Tokens,
    /// Money.
    Cost,
}

/// A hard budget of tokens or money is used up; R7 ends the task. The time budget is R7's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    /// The task.
    pub task_id: TaskId,
    /// Which budget.
    pub budget: BudgetKind,
    /// Used so far: tokens, or the currency of the price table.
    pub used: Finite,
    /// Allowed.
    pub limit: Finite,
}
