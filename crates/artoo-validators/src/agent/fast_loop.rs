//! The fast loop of one subtask: attempt → rules → checks → model → matched, corrected or failed (design §10).
//!
//! Owns the states and their transitions. Every state but the last waits for something; nothing is judged twice, and
//! one subtask gets one outcome.

use std::collections::BTreeMap;

use artoo_protocol::message::{Criterion, ExecutionResult, FailureClass, SubTask, VerdictSource};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::{CheckReport, CheckRequest};
use artoo_protocol::{Answer, CallId, TaskId};
use serde_json::Value;

use super::correction::{add_avoided, correct};
use super::prompt::{self, Prompts};
use super::rules::{ENDINGS, Finding};
use super::trial::{Ledger, Trial};
use super::{Config, Effect};
use crate::evidence::{class_of, environment_failed};
use crate::verdicts::{self, all_pass, prevailing_class};

/// Where a subtask stands.
#[derive(Debug)]
pub(super) enum FastLoop {
    /// R3 is at work on the next attempt.
    Executing(Ledger),
    /// Machine checks are running; the value is the criterion's number.
    Checking(Ledger, Trial, BTreeMap<CallId, usize>),
    /// The model is judging the criteria with these numbers.
    Judging(Ledger, Trial, CallId, Vec<usize>),
    /// The outcome is out.
    Concluded,
}

/// What a transition may use.
pub(super) struct Context<'a> {
    pub(super) config: Config,
    pub(super) prompts: &'a Prompts,
    pub(super) next_call: &'a mut CallId,
    /// Paths that the task made in earlier attempts.
    pub(super) made: &'a [String],
    pub(super) effects: &'a mut Vec<Effect>,
}

impl FastLoop {
    pub(super) fn new(subtask: SubTask) -> Self {
        Self::Executing(Ledger {
            subtask,
            trajectory: Vec::new(),
            avoid: Vec::new(),
            made: Vec::new(),
            written: Vec::new(),
        })
    }

    /// Whether the answer to this call is waited for.
    pub(super) fn awaits(&self, call: CallId) -> bool {
        match self {
            Self::Executing(_) | Self::Concluded => false,
            Self::Checking(_, _, pending) => pending.contains_key(&call),
            Self::Judging(_, _, asked, _) => *asked == call,
        }
    }

    /// An attempt is over. One that is not the next, or comes while another is judged, changes nothing.
    pub(super) fn attempted(self, result: ExecutionResult, context: &mut Context<'_>) -> Self {
        match self {
            Self::Executing(ledger) if result.attempt == ledger.next_attempt() => begin(ledger, result, context),
            unchanged => unchanged,
        }
    }

    /// An answer came; see [`FastLoop::awaits`].
    pub(super) fn answered(self, call: CallId, answer: Answer, context: &mut Context<'_>) -> Self {
        match self {
            Self::Checking(ledger, mut trial, mut pending) => {
                if let Some(at) = pending.remove(&call) {
                    note_check(&ledger.subtask, &mut trial, at, answer);
                }
                if pending.is_empty() {
                    ask_model(ledger, trial, context)
                } else {
                    Self::Checking(ledger, trial, pending)
                }
            }
            Self::Judging(ledger, mut trial, asked_as, asked) if asked_as == call => {
                note_verdicts(&ledger.subtask, &mut trial, &asked, answer);
                conclude(ledger, trial, context)
            }
            unchanged @ (Self::Executing(_) | Self::Judging(..) | Self::Concluded) => unchanged,
        }
    }
}

/// Ends the subtask where no judging could help, else applies the rules and starts the checks.
fn begin(mut ledger: Ledger, result: ExecutionResult, context: &mut Context<'_>) -> FastLoop {
    ledger.note_made(&result);
    let criteria = &ledger.subtask.success_criteria;
    if let Some(finding) = ENDINGS.iter().find_map(|row| (row.applies)(&result, criteria)) {
        let verdicts = Trial::all_failed(&ledger.subtask, &finding);
        ledger.record(&verdicts);
        let Finding { evidence, .. } = finding;
        let infrastructure = result.infrastructure;
        let outcome = ledger.outcome(result, verdicts, Some(evidence), infrastructure);
        context.effects.push(Effect::Conclude(Box::new(outcome)));
        return FastLoop::Concluded;
    }
    let trial = Trial::open(&ledger.subtask, result, context.made);
    let given = format!("{}\n{}", ledger.subtask.intent, ledger.subtask.context);
    let mut pending = BTreeMap::new();
    for (at, criterion) in criteria.iter().enumerate() {
        let Some(check) = &criterion.check else { continue };
        if trial.decided.contains_key(&at) {
            continue;
        }
        let call = context.next_call.take();
        pending.insert(call, at);
        context.effects.push(Effect::Check {
            task_id: ledger.subtask.parent_task_id.clone(),
            call,
            request: CheckRequest {
                check: check.clone(),
                tool_calls: trial.result.tool_calls.clone(),
                made: context.made.to_vec(),
                given: given.clone(),
                written: ledger.written.clone(),
            },
        });
    }
    if pending.is_empty() {
        ask_model(ledger, trial, context)
    } else {
        FastLoop::Checking(ledger, trial, pending)
    }
}

fn note_check(subtask: &SubTask, trial: &mut Trial, at: usize, answer: Answer) {
    let Some(criterion) = subtask.success_criteria.get(at) else {
        return;
    };
    let report = report_of(answer);
    if report.faulty {
        trial.faulty.push(format!(
            "{}: {}",
            one_line(&criterion.criterion, 200),
            one_line(&report.evidence, 400)
        ));
    }
    let verdict = verdicts::from_check(criterion, &report, class_of(&trial.result.tool_calls));
    trial.decided.insert(at, verdict);
}

/// The report in an answer; another kind of answer is a check that never reported.
pub(crate) fn report_of(answer: Answer) -> CheckReport {
    match answer {
        Answer::Checked(report) => report,
        Answer::Model(_) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Recalled(_) => CheckReport {
            passed: false,
            evidence: "the check gave no report".to_owned(),
            failure_class: Some(FailureClass::Environmental),
            faulty: false,
        },
    }
}

/// Asks the model about what neither rule nor check has decided.
fn ask_model(ledger: Ledger, trial: Trial, context: &mut Context<'_>) -> FastLoop {
    let criteria = &ledger.subtask.success_criteria;
    let asked: Vec<usize> = (0..criteria.len())
        .filter(|at| !trial.decided.contains_key(at))
        .collect();
    if asked.is_empty() {
        return conclude(ledger, trial, context);
    }
    let call = context.next_call.take();
    let task_id: TaskId = ledger.subtask.parent_task_id.clone();
    let request = prompt::request(context.prompts, &ledger.subtask, &trial.result, &pick(criteria, &asked));
    context.effects.push(Effect::Judge { task_id, call, request });
    FastLoop::Judging(ledger, trial, call, asked)
}

fn pick<'a>(criteria: &'a [Criterion], at: &[usize]) -> Vec<&'a Criterion> {
    at.iter().filter_map(|at| criteria.get(*at)).collect()
}

fn note_verdicts(subtask: &SubTask, trial: &mut Trial, asked: &[usize], answer: Answer) {
    let criteria = pick(&subtask.success_criteria, asked);
    match judgement_of(answer) {
        Ok(value) => {
            let own = environment_failed(&trial.result.tool_calls).then_some(FailureClass::Environmental);
            let read = verdicts::read(&value, &criteria, own);
            trial.decided.extend(asked.iter().copied().zip(read));
            let words = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            trial.what_was_wrong = words("what_was_wrong");
            trial.what_to_do = words("what_to_do");
        }
        Err((why, no_model)) => {
            trial.no_model = no_model;
            let failed = criteria
                .iter()
                .map(|c| verdicts::fail(c, FailureClass::Environmental, VerdictSource::Rule, &why));
            trial.decided.extend(asked.iter().copied().zip(failed));
        }
    }
}

/// The value in a model's answer; else why there is none, and whether there is no model at all.
pub(crate) fn judgement_of(answer: Answer) -> Result<Value, (String, bool)> {
    let not_judged = |error: &dyn std::fmt::Display| {
        format!(
            "not judged, so not shown to hold: {}",
            one_line(&error.to_string(), 400)
        )
    };
    match answer {
        Answer::Model(Ok(ModelReply {
            content: ModelContent::Structured { value },
            ..
        })) => Ok(value),
        Answer::Model(Err(error)) => Err((not_judged(&error), ModelError::is_no_model(&error))),
        Answer::Model(Ok(_)) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Checked(_) | Answer::Recalled(_) => {
            Err((not_judged(&"the model's answer holds no verdicts"), false))
        }
    }
}

/// Every criterion has its verdict: matched, another attempt, or failed.
fn conclude(mut ledger: Ledger, mut trial: Trial, context: &mut Context<'_>) -> FastLoop {
    let verdicts = trial.verdicts(&ledger.subtask);
    ledger.record(&verdicts);
    let attempts_left = trial.result.attempt < context.config.max_attempts;
    // Neither a faulty check nor a missing model is cured by doing the work once more, and a no is not to be worked around.
    let retry_helps = trial.faulty.is_empty() && !trial.no_model && !trial.result.refused;
    if !all_pass(&verdicts) && attempts_left && retry_helps {
        ledger.note_written(&trial.result);
        add_avoided(&mut ledger.avoid, &trial.result.tool_calls, prevailing_class(&verdicts));
        if let Some(signal) = correct(&ledger.subtask, &trial, &verdicts, &ledger.avoid) {
            context.effects.push(Effect::Correct(Box::new(signal)));
            return FastLoop::Executing(ledger);
        }
    }
    let reason = (!trial.faulty.is_empty()).then(|| {
        format!(
            "the plan's check cannot run, so the next plan must state another one (the attempt is not at fault): {}",
            trial.faulty.join("; ")
        )
    });
    let infrastructure = trial.result.infrastructure || trial.no_model;
    let outcome = ledger.outcome(trial.result, verdicts, reason, infrastructure);
    context.effects.push(Effect::Conclude(Box::new(outcome)));
    FastLoop::Concluded
}
