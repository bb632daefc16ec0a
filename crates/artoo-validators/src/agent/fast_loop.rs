//! The fast loop of one subtask: attempt → rules → checks → model → matched, corrected or failed (design §10).
//!
//! Owns the states and their transitions. Every state but the last waits for something; nothing is judged twice, and
//! one subtask gets one outcome.

use artoo_protocol::message::{Check, ExecutionResult, FailureClass, SubTask};
use artoo_protocol::model::Tier;
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Answer, CallId, TaskId};
use serde_json::Value;

use super::correction::{add_avoided, correct};
use super::prompt::{self, Prompts};
use super::rules::{ENDINGS, Finding};
use super::trial::{Ledger, Trial};
use super::{Config, Effect};
use crate::decided::Pending;
use crate::evidence::{class_of, environment_failed};
use crate::panel::{NoModel, Panel};
use crate::verdicts::{all_pass, prevailing_class};

/// Where a subtask stands.
#[derive(Debug)]
pub(super) enum FastLoop {
    /// R3 is at work on the next attempt.
    Executing(Ledger),
    /// Machine checks are running.
    Checking(Ledger, Trial, Pending),
    /// Models are judging what is left.
    Judging(Ledger, Trial, Panel),
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
            Self::Checking(_, _, pending) => pending.awaits(call),
            Self::Judging(_, _, panel) => panel.awaits(call),
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
                if let Some(at) = pending.take(call) {
                    note_check(&ledger.subtask, &mut trial, at, answer);
                }
                if pending.is_empty() {
                    ask_model(ledger, trial, context)
                } else {
                    Self::Checking(ledger, trial, pending)
                }
            }
            Self::Judging(ledger, mut trial, mut panel) => {
                panel.note(call, answer);
                if !panel.is_complete() {
                    return Self::Judging(ledger, trial, panel);
                }
                note_verdicts(&ledger.subtask, &mut trial, panel);
                conclude(ledger, trial, context)
            }
            unchanged @ (Self::Executing(_) | Self::Concluded) => unchanged,
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
    let about = |check: &Check| CheckRequest {
        check: check.clone(),
        tool_calls: trial.result.tool_calls.clone(),
        made: context.made.to_vec(),
        given: given.clone(),
        written: ledger.written.clone(),
    };
    let (pending, requests) = Pending::start(criteria, &trial.decided, context.next_call, about);
    let task_id = &ledger.subtask.parent_task_id;
    context
        .effects
        .extend(requests.into_iter().map(|(call, request)| Effect::Check {
            task_id: task_id.clone(),
            call,
            request,
        }));
    if pending.is_empty() {
        ask_model(ledger, trial, context)
    } else {
        FastLoop::Checking(ledger, trial, pending)
    }
}

fn note_check(subtask: &SubTask, trial: &mut Trial, at: usize, answer: Answer) {
    let class = class_of(&trial.result.tool_calls);
    let faulty = trial.decided.note_check(&subtask.success_criteria, at, answer, class);
    trial.faulty.extend(faulty);
}

/// Asks the judges about what neither rule nor check has decided.
fn ask_model(ledger: Ledger, trial: Trial, context: &mut Context<'_>) -> FastLoop {
    let criteria = &ledger.subtask.success_criteria;
    let open = trial.decided.open(criteria);
    if open.is_empty() {
        return conclude(ledger, trial, context);
    }
    let task_id: TaskId = ledger.subtask.parent_task_id.clone();
    let judges = (context.config.judges, Tier::Tool);
    let (panel, requests) = Panel::seat(judges, criteria, open, context.next_call, |tier, asked| {
        prompt::request(tier, context.prompts, &ledger.subtask, &trial.result, asked)
    });
    context
        .effects
        .extend(requests.into_iter().map(|(call, request)| Effect::Judge {
            task_id: task_id.clone(),
            call,
            request,
        }));
    FastLoop::Judging(ledger, trial, panel)
}

fn note_verdicts(subtask: &SubTask, trial: &mut Trial, panel: Panel) {
    let own = environment_failed(&trial.result.tool_calls).then_some(FailureClass::Environmental);
    let judgement = panel.decide(&subtask.success_criteria, own, &mut trial.decided);
    let words = |key: &str| {
        let said = judgement.value.get(key).and_then(Value::as_str);
        said.unwrap_or_default().to_owned()
    };
    trial.what_was_wrong = words("what_was_wrong");
    trial.what_to_do = words("what_to_do");
    trial.no_model = judgement.no_model == NoModel::Yes;
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
