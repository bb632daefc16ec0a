//! Operator ↔ R6: reports of an observer that no role can instruct (design §16).

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::units::Timestamp;

/// The operator asks for a report. It belongs to no task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditQuery {}

/// Where a task's gap is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Falling.
    Improving,
    /// Neither.
    Stable,
    /// Rising.
    Worsening,
}

/// The trend of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapTrend {
    /// The task.
    pub task_id: TaskId,
    /// Its trend.
    pub trend: Trend,
}

/// How well tools work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHealth {
    /// Attempts that failed.
    pub execution_failures: u64,
    /// Corrections for environmental reasons.
    pub environmental_retries: u64,
    /// Corrections for logical reasons.
    pub logical_retries: u64,
}

/// What the auditor saw in one window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// `periodic`, `on-demand` or `exit`.
    pub trigger: String,
    /// Since when.
    pub window_start: Timestamp,
    /// Until when.
    pub window_end: Timestamp,
    /// Tasks that began in the window.
    pub tasks_observed: u64,
    /// Corrections in the window.
    pub total_corrections: u64,
    /// Replans in the window.
    #[serde(default)]
    pub total_replans: u64,
    /// Trends of the tasks seen.
    pub gap_trends: Vec<GapTrend>,
    /// Messages that no route allows.
    pub boundary_violations: Vec<String>,
    /// Changes of a role's behaviour against its past.
    pub drift_alerts: Vec<String>,
    /// Anything else that should not be.
    pub anomalies: Vec<String>,
    /// How well tools work.
    pub tool_health: ToolHealth,
    /// Tasks since the beginning.
    #[serde(default)]
    pub tasks_total: u64,
    /// Corrections since the beginning.
    #[serde(default)]
    pub corrections_total: u64,
}
