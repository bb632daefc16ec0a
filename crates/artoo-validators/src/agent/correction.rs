//! What R3 is told after an attempt that did not match (design §10).
//!
//! Owns the aim of a correction: the first criterion that failed, word for word, what was wrong and what to do.

use artoo_protocol::message::{
    CorrectionSignal, Criterion, CriterionVerdict, FailureClass, SubTask, ToolCall, VerdictSource,
};
use artoo_protocol::text::{head_tail, one_line};

use super::trial::Trial;
use crate::evidence::{broke, primary};
use crate::verdicts::{describe_failures, failing};

/// At most so many calls are named as not to be repeated.
const AVOID_MAX: usize = 8;

/// Every attempt is judged by what its own calls show, and R3 has to know it.
const OWN_EVIDENCE: &str = "The next attempt is judged by its own tool calls alone, so let them show every criterion.";

/// The correction after a failed attempt; `None` when nothing failed.
pub(super) fn correct(
    subtask: &SubTask,
    trial: &Trial,
    verdicts: &[CriterionVerdict],
    avoid: &[String],
) -> Option<CorrectionSignal> {
    let aim = failing(verdicts).next()?;
    let by_model = aim.source == VerdictSource::Model;
    // The signal names the aim by itself; only several failures need their criteria told apart.
    let shown = match failing(verdicts).count() {
        1 => one_line(&aim.evidence, 400),
        _ => describe_failures(verdicts),
    };
    let wrong = match one_line(&trial.what_was_wrong, 600) {
        said if by_model && !said.is_empty() => format!("{said}\n{shown}"),
        _ => shown,
    };
    let to_do = match one_line(&trial.what_to_do, 600) {
        said if by_model && !said.is_empty() => said,
        _ => advice(subtask, trial, aim),
    };
    Some(CorrectionSignal {
        subtask_id: subtask.subtask_id.clone(),
        parent_task_id: subtask.parent_task_id.clone(),
        attempt_number: trial.result.attempt,
        failed_criterion: aim.criterion.clone(),
        failure_class: aim.failure_class.unwrap_or(FailureClass::Logical),
        what_was_wrong: head_tail(&wrong, 3_000),
        what_to_do: format!("{to_do} {OWN_EVIDENCE}"),
        avoid_calls: avoid.to_vec(),
    })
}

/// What to do, where no model said it: the rule's advice, else what the check wants.
fn advice(subtask: &SubTask, trial: &Trial, aim: &CriterionVerdict) -> String {
    let criteria = &subtask.success_criteria;
    let Some((at, criterion)) = criteria.iter().enumerate().find(|(_, c)| c.criterion == aim.criterion) else {
        return String::new();
    };
    match (aim.source, trial.advice.get(&at)) {
        (VerdictSource::Rule, Some(advice)) => (*advice).to_owned(),
        (
            VerdictSource::Rule
            | VerdictSource::Check
            | VerdictSource::Model
            | VerdictSource::NoJudge
            | VerdictSource::NoCheck,
            _,
        ) => {
            format!("Make it hold.{}", machine(criterion))
        }
    }
}

fn machine(criterion: &Criterion) -> String {
    let check = criterion
        .check
        .as_ref()
        .and_then(|check| serde_json::to_string(check).ok());
    check
        .map(|json| format!(" A machine checks it: {}.", one_line(&json, 400)))
        .unwrap_or_default()
}

/// Calls that must not simply be repeated: those that failed, else the decisive one, since it gave the wrong result.
///
/// They are added to those of earlier attempts; the latest are kept.
pub(super) fn add_avoided(avoid: &mut Vec<String>, calls: &[ToolCall], class: Option<FailureClass>) {
    let mut new: Vec<_> = calls.iter().filter(|call| broke(call)).map(line).collect();
    if new.is_empty() && class == Some(FailureClass::Logical) {
        let decisive = primary(calls).map(|(_, call)| call).or(calls.last());
        new.extend(decisive.map(line));
    }
    for call in new {
        avoid.retain(|known| *known != call);
        avoid.push(call);
    }
    avoid.drain(..avoid.len().saturating_sub(AVOID_MAX));
}

fn line(call: &ToolCall) -> String {
    one_line(&call.to_string(), 500)
}
