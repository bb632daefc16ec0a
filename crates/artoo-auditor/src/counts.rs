//! What is counted, in one window and since the beginning (design §16).
//!
//! Owns the sums; what a message counts as is in `facts`.

use std::collections::{BTreeMap, VecDeque};

use artoo_protocol::message::{AuditReport, Ending, FailureClass, GapTrend, ToolHealth, Trend};
use artoo_protocol::model::Usage;
use artoo_protocol::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::detect::{Finding, List, Seen, row};
use crate::facts::{Fact, fact};

/// Most lines of each list in a report: the latest; those before them are counted.
const LINES_MAX: usize = 100;
/// Tasks whose trend is kept: the latest.
const TRENDS_MAX: usize = 500;

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

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self {
            of: self.of.saturating_sub(other.of),
            bad: self.bad.saturating_sub(other.bad),
        }
    }

    /// As a part of 1.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            0.0
        } else {
            self.bad as f64 / self.of as f64
        }
    }
}

/// Sums over a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Messages.
    pub messages: u64,
    /// Tasks that began.
    pub tasks: u64,
    /// Tasks that ended.
    pub ended: u64,
    /// Those of them that were accepted.
    pub accepted: u64,
    /// Those of them that ended within the threshold.
    pub succeeded: u64,
    /// Those of them that were abandoned.
    pub abandoned: u64,
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
    /// Tool calls that really ran, and those that failed.
    pub tool_calls: Rate,
    /// Calls of models, and those that gave no answer.
    pub model_calls: Rate,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Money, in the currency of the price table.
    pub cost: f64,
    /// Tokens of tasks that ended.
    pub tokens_of_ended: u64,
    /// Tasks that ended and used tokens: those of a model that costs nothing say nothing about one that does.
    pub ended_with_tokens: u64,
}

impl Totals {
    fn count(&mut self, seen: &Seen<'_>) {
        self.messages += u64::from(matches!(seen, Seen::Envelope(_)));
        let Some(fact) = fact(seen) else { return };
        match fact {
            Fact::TaskBegan => self.tasks += 1,
            Fact::TaskEnded { how, .. } => {
                self.ended += 1;
                match how {
                    Ending::Accept => self.accepted += 1,
                    Ending::Success => self.succeeded += 1,
                    Ending::Abandon => self.abandoned += 1,
                }
            }
            Fact::Replanned => self.replans += 1,
            Fact::Attempted {
                failed,
                calls,
                failed_calls,
            } => {
                self.attempts.add(failed);
                self.tool_calls.of += calls;
                self.tool_calls.bad += failed_calls;
            }
            Fact::Corrected(_) => {
                self.corrections += 1;
                self.judged.add(true);
            }
            Fact::Concluded => self.judged.add(false),
            Fact::Round { sent_back } => self.rounds.add(sent_back),
            Fact::Answered { usage, cost } => {
                self.model_calls.add(false);
                self.spend(usage, cost);
            }
            Fact::Unanswered { usage, cost } => {
                self.model_calls.add(true);
                self.spend(usage, cost);
            }
        }
    }

    fn spend(&mut self, usage: Usage, cost: f64) {
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cost += cost;
    }
}

/// The latest trend of each of the latest tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Trends {
    of: BTreeMap<String, GapTrend>,
    order: VecDeque<String>,
}

impl Trends {
    fn set(&mut self, key: &str, task_id: &TaskId, trend: Trend) {
        let task_id = task_id.clone();
        if self.of.insert(key.to_owned(), GapTrend { task_id, trend }).is_none() {
            self.order.push_back(key.to_owned());
        }
        if self.order.len() > TRENDS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
    }

    fn in_order(&self) -> Vec<GapTrend> {
        self.order.iter().filter_map(|key| self.of.get(key)).cloned().collect()
    }
}

/// Everything that is counted over a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// When the span began; absent before anything was seen.
    pub start: Option<Timestamp>,
    /// The sums.
    pub totals: Totals,
    /// How well tools work.
    pub tool_health: ToolHealth,
    /// Findings by detector.
    pub found: BTreeMap<String, u64>,
    trends: Trends,
    violations: Lines,
    anomalies: Lines,
    drifts: Lines,
}

impl Ledger {
    /// Of a span that begins now.
    pub fn from(start: Timestamp) -> Self {
        Self {
            start: Some(start),
            ..Self::default()
        }
    }

    /// Counts what was seen for what it is.
    pub(crate) fn count(&mut self, seen: &Seen<'_>) {
        self.totals.count(seen);
        let health = &mut self.tool_health;
        match fact(seen) {
            Some(Fact::Attempted { failed, .. }) => health.execution_failures += u64::from(failed),
            Some(Fact::Corrected(FailureClass::Logical)) => health.logical_retries += 1,
            Some(Fact::Corrected(FailureClass::Environmental)) => health.environmental_retries += 1,
            Some(
                Fact::TaskBegan
                | Fact::TaskEnded { .. }
                | Fact::Replanned
                | Fact::Concluded
                | Fact::Round { .. }
                | Fact::Answered { .. }
                | Fact::Unanswered { .. },
            )
            | None => {}
        }
    }

    /// Keeps the latest trend of a task.
    pub(crate) fn trend(&mut self, key: &str, task_id: &TaskId, trend: Trend) {
        self.trends.set(key, task_id, trend);
    }

    /// Adds a finding to its list.
    pub(crate) fn add(&mut self, finding: &Finding) {
        *self.found.entry(finding.detector.clone()).or_default() += 1;
        let list = row(&finding.detector).map_or(List::Anomaly, |row| row.list);
        match list {
            // The sentence says it all, and the list says what it is.
            List::Boundary => self.violations.push(finding.detail.clone()),
            List::Anomaly => self.anomalies.push(finding.to_string()),
            List::Drift => self.drifts.push(finding.detail.clone()),
        }
    }

    /// The report of this span; `whole` is what was counted since the beginning, this span included.
    pub(crate) fn report(&self, trigger: &str, end: Timestamp, whole: &Totals) -> AuditReport {
        AuditReport {
            trigger: trigger.to_owned(),
            window_start: self.start.unwrap_or(end),
            window_end: end,
            tasks_observed: self.totals.tasks,
            total_corrections: self.totals.corrections,
            total_replans: self.totals.replans,
            gap_trends: self.trends.in_order(),
            boundary_violations: self.violations.shown(),
            drift_alerts: self.drifts.shown(),
            anomalies: self.anomalies.shown(),
            tool_health: self.tool_health,
            tasks_total: whole.tasks,
            corrections_total: whole.corrections,
        }
    }
}

/// The latest lines of a list, which cannot grow without bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Lines {
    lines: VecDeque<String>,
    /// How many there were before them.
    more: u64,
}

impl Lines {
    fn push(&mut self, line: String) {
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
            self.more += 1;
        }
        self.lines.push_back(line);
    }

    fn shown(&self) -> Vec<String> {
        let before = (self.more > 0).then(|| format!("… {} before these", self.more));
        before.into_iter().chain(self.lines.iter().cloned()).collect()
    }
}
