//! R2 ↔ R7 and R2 → R3, R4a, R4b: plans, their dispatch, and the directives that change them (design §6, §13).

use serde::{Deserialize, Serialize};

use super::finish::Cause;
use super::validate::{Criterion, CriterionVerdict, SubTaskOutcome};
use crate::ids::{MegramId, Slug, SubTaskId, TaskId};
use crate::units::{Finite, Timestamp, Unit01};

/// What must not be used again; R3's gate refuses it, whatever a model wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MustNot {
    /// Tools, plain (`search`), qualified by program (`shell:curl`), or of an MCP server (`server.tool`).
    #[serde(default)]
    pub tools: Vec<String>,
    /// Inputs: paths, commands, queries.
    #[serde(default)]
    pub targets: Vec<String>,
}

/// What is to be done with care, because it has both worked and failed before: R3's gate lets it run unasked only where it
/// is confined, and asks otherwise (design §6, §9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caution {
    /// Tools, plain, qualified by program, or `*` for every one.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Inputs: paths, commands, queries.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Why, for the person who is asked.
    #[serde(default)]
    pub reasons: Vec<String>,
}

impl Caution {
    /// Whether nothing asks for care.
    pub const fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.targets.is_empty()
    }
}

/// One unit of work for R3, with what R4a measures it by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubTask {
    /// Made by code.
    pub subtask_id: SubTaskId,
    /// The task it belongs to.
    pub parent_task_id: TaskId,
    /// What to do.
    pub intent: String,
    /// Everything needed beyond the intent, earlier groups' outputs among it.
    #[serde(default)]
    pub context: String,
    /// What must hold afterwards; at least one.
    pub success_criteria: Vec<Criterion>,
    /// From 1; equal numbers run in parallel.
    pub sequence: u32,
    /// Tools that the plan foresees; advice to R3, not a limit.
    #[serde(default)]
    pub tools: Vec<String>,
    /// When it must be done.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
    /// What the gate refuses.
    #[serde(default)]
    pub must_not: MustNot,
    /// What the gate asks about although it would be free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<Box<Caution>>,
    /// Paths within which the person allowed creating and changing; a relative one or one with `~` is resolved by the tools.
    #[serde(default)]
    pub scope: Vec<String>,
}

/// A subtask as R4b needs it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedSubTask {
    /// Made by code.
    pub subtask_id: SubTaskId,
    /// From 1; equal numbers run in parallel.
    pub sequence: u32,
    /// What to do.
    pub intent: String,
    /// What must hold afterwards.
    pub success_criteria: Vec<Criterion>,
    /// When it must be done; an outcome that is missing some time after it counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

/// A subtask of an earlier round whose outcome stands in this one: its work is not done again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The subtask that matched.
    pub subtask_id: SubTaskId,
    /// What it did.
    #[serde(default)]
    pub intent: String,
    /// Why its work stands.
    #[serde(default)]
    pub why: String,
}

/// What R4b has to wait for and to judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DispatchManifest {
    /// The task.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// The goal.
    pub intent: String,
    /// 1 for the first plan.
    #[serde(default)]
    pub round: u32,
    /// Every subtask of the plan.
    pub subtask_ids: Vec<SubTaskId>,
    /// The same with their sequence and criteria.
    pub subtasks: Vec<PlannedSubTask>,
    /// Matched work of earlier rounds that counts in this one, in the order of its outputs; R4b has the outcomes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
    /// Assertions about the combined output.
    pub task_criteria: Vec<Criterion>,
    /// When R2 got the task: elapsed time counts from here.
    pub started_at: Timestamp,
    /// When the plan was dispatched.
    pub dispatched_at: Timestamp,
    /// The memories that shaped the plan.
    #[serde(default)]
    pub rules_used: Vec<MegramId>,
}

/// No task or no valid plan could be made; R7 ends the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanningFailed {
    /// The task.
    pub task_id: TaskId,
    /// The class of the task.
    pub slug: Slug,
    /// The goal, or the raw input where R1 got no further.
    pub intent: String,
    /// Why, in one sentence for the person.
    pub reason: String,
    /// `planning_failed`, `no_model`, `infeasible` or `refused`.
    pub cause: Cause,
}

/// The controller's signals and their loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Distance between intent and result.
    #[serde(rename = "D")]
    pub d: Unit01,
    /// Implausibility of the approach.
    #[serde(rename = "P")]
    pub p: Unit01,
    /// Share of the resources used.
    #[serde(rename = "Omega")]
    pub omega: Unit01,
    /// The weighted sum.
    #[serde(rename = "L")]
    pub l: Finite,
}

/// The four action states of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directive {
    /// Same approach, tighter parameters.
    Refine,
    /// Same approach, another target.
    ChangePath,
    /// Another method.
    ChangeApproach,
    /// A tool class not tried before.
    BreakSymmetry,
}

/// The macro-state of the round before: `init` in the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviousDirective {
    /// There was no round before.
    #[default]
    Init,
    /// See [`Directive::Refine`].
    Refine,
    /// See [`Directive::ChangePath`].
    ChangePath,
    /// See [`Directive::ChangeApproach`].
    ChangeApproach,
    /// See [`Directive::BreakSymmetry`].
    BreakSymmetry,
}

impl From<Directive> for PreviousDirective {
    fn from(directive: Directive) -> Self {
        match directive {
            Directive::Refine => Self::Refine,
            Directive::ChangePath => Self::ChangePath,
            Directive::ChangeApproach => Self::ChangeApproach,
            Directive::BreakSymmetry => Self::BreakSymmetry,
        }
    }
}

impl Directive {
    /// The name used in JSON and on displays.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refine => "refine",
            Self::ChangePath => "change_path",
            Self::ChangeApproach => "change_approach",
            Self::BreakSymmetry => "break_symmetry",
        }
    }
}

impl PreviousDirective {
    /// The name used in JSON and on displays.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Refine => "refine",
            Self::ChangePath => "change_path",
            Self::ChangeApproach => "change_approach",
            Self::BreakSymmetry => "break_symmetry",
        }
    }
}

/// Which failure class drives a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureMix {
    /// Most failures are of the approach.
    Logical,
    /// Most failures are of the environment.
    Environmental,
    /// A tie, or none classified.
    Mixed,
}

/// How hard a directive is to be applied: the sign of ∇L.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// The loss is falling: less is blocked.
    Lower,
    /// No clear trend.
    #[default]
    Neutral,
    /// The loss is rising: more is blocked.
    Higher,
}

/// What kind of change R7 demands of R2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDirective {
    /// The task.
    pub task_id: TaskId,
    /// The signals of this round.
    pub loss: Loss,
    /// The macro-state of the round before.
    pub prev_directive: PreviousDirective,
    /// The change demanded.
    pub directive: Directive,
    /// Tools that the next plan must not use.
    pub blocked_tools: Vec<String>,
    /// Inputs that the next plan must not use.
    pub blocked_targets: Vec<String>,
    /// The criterion that contributed most to D.
    pub failed_criterion: String,
    /// Which class of failure prevailed.
    pub failure_class: FailureMix,
    /// Ω, for displays.
    pub budget_pressure: Unit01,
    /// ∇L.
    pub grad_l: Finite,
    /// How hard to apply it.
    #[serde(default)]
    pub urgency: Urgency,
    /// Which criterion drove D, what the trend was, what is asked of R2 and why.
    pub rationale: String,
    /// What failed and what matched, for R2's next plan.
    #[serde(default)]
    pub outcomes: Vec<SubTaskOutcome>,
    /// R4b's words on the gap.
    #[serde(default)]
    pub gap_summary: String,
    /// R4b's verdicts on the task criteria: what a machine denied stays in force for the next plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_verdicts: Vec<CriterionVerdict>,
}

/// R7 asks R2 to word what was achieved when a task is abandoned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartialResultRequest {
    /// The task.
    pub task_id: TaskId,
    /// The goal.
    pub intent: String,
    /// Why the task ends.
    pub reason: String,
    /// The last outcomes.
    pub outcomes: Vec<SubTaskOutcome>,
}

/// R2's wording of a partial result; claims nothing beyond the outcomes it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialResult {
    /// The task.
    pub task_id: TaskId,
    /// What was achieved.
    pub achieved: String,
    /// What failed and why.
    pub failed: String,
    /// What to try next.
    #[serde(default)]
    pub next_steps: Vec<String>,
}
