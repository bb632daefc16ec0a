//! What remains of a round until the task ends: what was achieved, failed and tried, in short lines (design §14).
//!
//! Owns the lines; how they wait for an ending is [`packing`](crate::packing)'s, and the text that is made of them [`words`](crate::words)'s
//! matter.

use artoo_protocol::message::{CriterionVerdict, OutcomeStatus, SubTaskOutcome, ToolCall, Verdict};
use artoo_protocol::text::one_line;
use serde_json::Value;

use crate::megrams::what_happened;
use crate::signals::Tally;

/// Most lines of one list in a text.
pub(crate) const LINES_MAX: usize = 20;
/// Most criteria that a result names in each of its lists.
pub(crate) const NAMES_MAX: usize = 1_000;

/// What remains of a round for the text of an ending, in short lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Subtasks that matched, with what they gave.
    pub achieved: Vec<String>,
    /// Subtasks that failed and why, or were not started; then what the task as a whole does not meet.
    pub failed: Vec<String>,
    /// Calls that were made: tool, input, what came of it.
    pub tried: Vec<String>,
    /// Criteria that failed or were not run.
    pub unmet: Vec<String>,
    /// Criteria that passed on text alone or were not judged.
    pub unverified: Vec<String>,
    /// Grants that would have allowed what the person, or nobody, said no to. Known at the end only, and so never packed.
    pub grants: Vec<String>,
}

impl Digest {
    /// Of one round.
    pub fn of(outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict], tally: &Tally<'_>) -> Self {
        let mut digest = Self {
            unmet: names(tally.failures.iter().map(|failure| failure.criterion)),
            unverified: names(tally.unverified.iter().copied()),
            ..Self::default()
        };
        for outcome in outcomes {
            let intent = one_line(&outcome.intent, 160);
            match outcome.status {
                OutcomeStatus::Matched => push(&mut digest.achieved, || with(&intent, &shown(&outcome.output, 200))),
                OutcomeStatus::Failed => push(&mut digest.failed, || with(&intent, &why_failed(outcome))),
                OutcomeStatus::NotRun => push(&mut digest.failed, || {
                    with(&intent, "not started, an earlier step failed")
                }),
            }
            for call in &outcome.tool_calls {
                push(&mut digest.tried, || tried(call));
            }
        }
        for verdict in task_verdicts.iter().filter(|verdict| verdict.verdict == Verdict::Fail) {
            push(&mut digest.failed, || {
                with(&one_line(&verdict.criterion, 160), &one_line(&verdict.evidence, 240))
            });
        }
        digest
    }
}

fn names<'a>(criteria: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    criteria
        .filter(|criterion| seen.insert(*criterion))
        .take(NAMES_MAX)
        .map(str::to_owned)
        .collect()
}

fn push(list: &mut Vec<String>, line: impl FnOnce() -> String) {
    if list.len() < LINES_MAX {
        list.push(line());
    }
}

fn with(intent: &str, what: &str) -> String {
    match (intent.is_empty(), what.is_empty()) {
        (true, _) => what.to_owned(),
        (false, true) => intent.to_owned(),
        (false, false) => format!("{intent}: {what}"),
    }
}

fn shown(value: &Value, limit: usize) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text, limit),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => one_line(&value.to_string(), limit),
    }
}

fn why_failed(outcome: &SubTaskOutcome) -> String {
    if let Some(reason) = outcome
        .failure_reason
        .as_deref()
        .filter(|reason| !reason.trim().is_empty())
    {
        // It may hold what to do about it, at its end.
        return one_line(reason, 500);
    }
    outcome
        .criteria_verdicts
        .iter()
        .find(|verdict| verdict.verdict == Verdict::Fail)
        .map_or_else(
            || "no reason was given".to_owned(),
            |verdict| with(&one_line(&verdict.criterion, 120), &one_line(&verdict.evidence, 160)),
        )
}

fn tried(call: &ToolCall) -> String {
    let came = if call.failed() {
        what_happened(call)
    } else {
        "ran".to_owned()
    };
    format!("{} `{}` {came}", call.tool, one_line(&call.target(), 120))
}
