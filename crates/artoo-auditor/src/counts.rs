//! What is counted: one window and the totals since the beginning (design §16).
//!
//! Owns what each number means: a task is a person's input, a correction is a CorrectionSignal, a replan is a PlanDirective.

use std::collections::BTreeMap;

use artoo_protocol::message::{AuditReport, ExecutionStatus, FailureClass, GapTrend, Message, ToolHealth, Trend};
use artoo_protocol::{Role, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

/// Most lines of each list in a report; what goes beyond is counted.
const LINES_MAX: usize = 100;
/// Most tasks of one window whose trend is kept.
const TRENDS_MAX: usize = 1_000;
/// A rate is compared only when the window has seen so many cases …
const DRIFT_WINDOW_LEAST: u64 = 10;
/// … and the past so many.
const DRIFT_PAST_LEAST: u64 = 50;
/// A rate that moved by so much is reported.
const DRIFT_STEP: f64 = 0.25;

/// How often something went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Cases.
    pub of: u64,
    /// Those that went wrong.
    pub bad: u64,
}

impl Rate {
    const fn add(&mut self, bad: bool) {
        self.of = self.of.saturating_add(1);
        if bad {
            self.bad = self.bad.saturating_add(1);
        }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            of: self.of.saturating_add(other.of),
            bad: self.bad.saturating_add(other.bad),
        }
    }

    fn share(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.bad as f64 / self.of as f64
        }
    }
}

/// Sums over a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Tasks that began.
    pub tasks: u64,
    /// Tasks that ended.
    pub ended: u64,
    /// Corrections by R4a.
    pub corrections: u64,
    /// Directives by R7.
    pub replans: u64,
    /// Attempts of R3, and those that failed by its own account.
    pub attempts: Rate,
    /// Attempts that R4a judged, and those that it corrected.
    pub judged: Rate,
    /// Rounds that R4b closed, and those that it sent back.
    pub rounds: Rate,
}

impl Totals {
    /// The sum of two spans.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            tasks: self.tasks.saturating_add(other.tasks),
            ended: self.ended.saturating_add(other.ended),
            corrections: self.corrections.saturating_add(other.corrections),
            replans: self.replans.saturating_add(other.replans),
            attempts: self.attempts.plus(other.attempts),
            judged: self.judged.plus(other.judged),
            rounds: self.rounds.plus(other.rounds),
        }
    }
}

/// One window between two reports.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub start: Timestamp,
    pub sums: Totals,
    health: ToolHealth,
    trends: BTreeMap<String, GapTrend>,
    pub violations: Lines,
    pub anomalies: Lines,
}

impl Window {
    pub fn new(start: Timestamp) -> Self {
        Self {
            start,
            sums: Totals::default(),
            health: ToolHealth::default(),
            trends: BTreeMap::new(),
            violations: Lines::default(),
            anomalies: Lines::default(),
        }
    }

    /// Counts a message for what it is.
    pub fn count(&mut self, message: &Message) {
        let sums = &mut self.sums;
        match message {
            Message::UserInput(_) => sums.tasks += 1,
            Message::FinalResult(_) => sums.ended += 1,
            Message::PlanDirective(_) => sums.replans += 1,
            Message::ExecutionResult(result) => {
                let failed = result.status == ExecutionStatus::Failed;
                sums.attempts.add(failed);
                sums.judged.of += 1;
                self.health.execution_failures += u64::from(failed);
            }
            Message::CorrectionSignal(signal) => {
                sums.corrections += 1;
                sums.judged.bad += 1;
                match signal.failure_class {
                    FailureClass::Logical => self.health.logical_retries += 1,
                    FailureClass::Environmental => self.health.environmental_retries += 1,
                }
            }
            Message::ReplanRequest(_) => sums.rounds.add(true),
            Message::OutcomeSummary(_) => sums.rounds.add(false),
            Message::ClarificationRequest(_)
            | Message::ClarificationAnswer(_)
            | Message::TaskSpec(_)
            | Message::DirectAnswer(_)
            | Message::MemoryQuery(_)
            | Message::MemoryReply(_)
            | Message::PlanningFailed(_)
            | Message::DispatchManifest(_)
            | Message::SubTask(_)
            | Message::ConfirmationRequest(_)
            | Message::ConfirmationAnswer(_)
            | Message::SubTaskOutcome(_)
            | Message::PartialResultRequest(_)
            | Message::PartialResult(_)
            | Message::BudgetReached(_)
            | Message::TaskAborted(_)
            | Message::TaskResumed(_)
            | Message::Megram(_)
            | Message::AuditQuery(_)
            | Message::AuditReport(_) => {}
        }
    }

    /// Keeps the latest trend of a task.
    pub fn trend(&mut self, key: &str, task_id: &TaskId, trend: Trend) {
        if self.trends.len() < TRENDS_MAX || self.trends.contains_key(key) {
            let task_id = task_id.clone();
            self.trends.insert(key.to_owned(), GapTrend { task_id, trend });
        }
    }

    /// The report of this window; `past` is what was counted before it.
    pub fn report(&self, trigger: &str, end: Timestamp, past: &Totals) -> AuditReport {
        let totals = past.plus(self.sums);
        AuditReport {
            trigger: trigger.to_owned(),
            window_start: self.start,
            window_end: end,
            tasks_observed: self.sums.tasks,
            total_corrections: self.sums.corrections,
            total_replans: self.sums.replans,
            gap_trends: self.trends.values().cloned().collect(),
            boundary_violations: self.violations.shown(),
            drift_alerts: drift(past, &self.sums),
            anomalies: self.anomalies.shown(),
            tool_health: self.health,
            tasks_total: totals.tasks,
            corrections_total: totals.corrections,
        }
    }
}

/// Roles whose rate in this window is far from their past.
fn drift(past: &Totals, window: &Totals) -> Vec<String> {
    [
        (Role::R3, "attempts that failed", past.attempts, window.attempts),
        (Role::R4a, "attempts that were corrected", past.judged, window.judged),
        (Role::R4b, "rounds that were sent back", past.rounds, window.rounds),
    ]
    .into_iter()
    .filter(|(_, _, past, now)| past.of >= DRIFT_PAST_LEAST && now.of >= DRIFT_WINDOW_LEAST)
    .filter(|(_, _, past, now)| (now.share() - past.share()).abs() >= DRIFT_STEP)
    .map(|(role, what, past, now)| {
        format!(
            "{role}: {what} went from {:.0} % to {:.0} % ({} of {})",
            past.share() * 100.0,
            now.share() * 100.0,
            now.bad,
            now.of
        )
    })
    .collect()
}

/// A list of lines that cannot grow without bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    lines: Vec<String>,
    more: u64,
}

impl Lines {
    pub fn push(&mut self, line: String) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(line);
        } else {
            self.more += 1;
        }
    }

    pub fn extend(&mut self, line: Option<String>) {
        if let Some(line) = line {
            self.push(line);
        }
    }

    fn shown(&self) -> Vec<String> {
        let more = (self.more > 0).then(|| format!("… and {} more", self.more));
        self.lines.iter().cloned().chain(more).collect()
    }
}
