//! What the auditor keeps about one running task (design §16).
//!
//! Owns the state between two messages: detectors, the row that grows, what was spent, where D stood.

use artoo_protocol::message::Trend;
use artoo_protocol::{Act, Deed, Finite, SubTaskId, TaskId, Unit01};

use crate::detect::{Baseline, Finding, Spending, TaskDetectors, runaway};
use crate::tuning::Growing;

/// Smaller differences of D are none.
const SAME: f64 = 1e-9;

/// One running task.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub task_id: TaskId,
    pub subtasks: Vec<SubTaskId>,
    pub distance: Option<Unit01>,
    pub detectors: TaskDetectors,
    pub spending: Spending,
    pub row: Growing,
    /// How many gaps there had been when it began.
    pub gaps: u64,
}

impl Watched {
    pub fn new(task_id: &TaskId, gaps: u64) -> Self {
        Self {
            task_id: task_id.clone(),
            subtasks: Vec::new(),
            distance: None,
            detectors: TaskDetectors::default(),
            spending: Spending::default(),
            row: Growing::default(),
            gaps,
        }
    }

    pub fn spend(&mut self, deed: &Deed, past: Baseline) -> Option<Finding> {
        match &deed.act {
            Act::ModelAsked { .. } => self.spending.calls += 1,
            Act::ModelAnswered { usage, .. } | Act::ModelFailed { usage, .. } => {
                self.spending.tokens = self.spending.tokens.saturating_add(usage.tokens());
            }
            Act::Assessed { .. }
            | Act::ToolRun { .. }
            | Act::CheckRun { .. }
            | Act::Kept { .. }
            | Act::Stored { .. }
            | Act::Recalled { .. } => return None,
        }
        let subtasks = u64::try_from(self.subtasks.len()).unwrap_or(u64::MAX);
        let detail = runaway(&mut self.spending, subtasks, past)?;
        Some(Finding::new("cost_runaway", Some(&self.task_id), 0, detail))
    }

    /// D decides; where it stands still, a falling loss is an improvement, but a rising one only shows that time passes.
    pub fn trend(&mut self, d: Unit01, grad_l: Finite) -> Trend {
        let change = self.distance.map_or(0.0, |before| d.get() - before.get());
        self.distance = Some(d);
        if change < -SAME {
            Trend::Improving
        } else if change > SAME {
            Trend::Worsening
        } else if grad_l.get() < -SAME {
            Trend::Improving
        } else {
            Trend::Stable
        }
    }
}

/// One key for both names of a run.
pub(crate) fn key(task_id: &TaskId) -> String {
    match TaskId::parse(task_id.as_str()) {
        Ok(_) => task_id.suffix().to_owned(),
        Err(_) => task_id.to_string(),
    }
}
