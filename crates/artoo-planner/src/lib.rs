//! R2, the Planner: plans whose success can be checked, and their dispatch, group by group (design §6).
//!
//! Owns how memory becomes constraints, what a model's plan must satisfy before any of it runs, and the order of
//! dispatch. Computes no loss and chooses no directive (R7), runs no tool (R3), judges no result (R4a, R4b), writes no
//! memory.

mod actor;
mod calibration;
mod carry;
mod checks;
mod demands;
mod denied;
mod desk;
mod dispatch;
mod parse;
mod partial;
mod prompt;
mod sameness;
mod scope;
mod standing;
mod task;
mod validate;
mod words;

pub use actor::{Effect, Planner};
pub use calibration::{Calibration, calibrate};
pub use checks::CheckFault;
pub use partial::partial_result_schema;
pub use prompt::{Prompts, plan_schema};
pub use sameness::NEARLY_IDENTICAL;
pub use scope::Places;
pub use standing::Standing;

use artoo_protocol::overdue::JUDGING_TIME;
use artoo_protocol::tool::ToolSpec;
use artoo_protocol::units::{LocalZone, Millis};
use serde::{Deserialize, Serialize};

/// What R2 is built with.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The user's time zone, for what "today" means.
    pub zone: LocalZone,
    /// The tools that R3 has.
    pub tools: Vec<ToolSpec>,
    /// Bounds.
    pub limits: Limits,
    /// The fixed texts.
    pub prompts: Prompts,
    /// What the folder in which tasks run says about work in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Places of this machine that paths in a plan may mean.
    pub places: Places,
    /// Folder for outputs that are too long to be handed on whole, absolute; without one, later steps get head and tail.
    pub outputs: Option<String>,
    /// Why a check cannot run, for what its text alone does not tell. Not written down: whoever builds a planner gives it.
    #[serde(skip)]
    pub check_fault: CheckFault,
}

/// Bounds of planning and dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most subtasks of one plan.
    pub subtasks: usize,
    /// Most subtasks of one task that run at once; at least one always does.
    pub parallel: usize,
    /// How often a plan that was rejected is made anew.
    pub regenerations: u32,
    /// How long memory may take before planning goes on without it.
    pub memory_wait: Millis,
    /// How long the judgement of an attempt may take; R4b is set to the same.
    pub judging_time: Millis,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            subtasks: 1_000,
            parallel: 4,
            regenerations: 2,
            memory_wait: Millis::from_seconds(2),
            judging_time: JUDGING_TIME,
        }
    }
}
