//! What a person sees of a running task: one plain line per event worth knowing, and the ending (design §21).
//!
//! Owns wording only. Everything shown comes from envelopes and may hold hostile text, so control characters are disarmed.

use artoo_protocol::Envelope;
use artoo_protocol::message::{
    Consent, Ending, ExecutionResult, ExecutionStatus, FinalResult, Message, OutcomeStatus, PlanDirective,
    SubTaskOutcome, Verdict,
};
use artoo_protocol::text::{one_line, printable};
use serde_json::Value;

const WIDTH: usize = 110;

/// The line for one message, if it deserves one.
pub fn line(envelope: &Envelope) -> Option<String> {
    let (what, text) = match &envelope.payload {
        Message::TaskSpec(spec) => ("task", format!("{} — {}", spec.task_id, spec.intent)),
        Message::DispatchManifest(manifest) => {
            let memories = if manifest.rules_used.is_empty() {
                String::new()
            } else {
                format!(", {} memories used", manifest.rules_used.len())
            };
            let (subtasks, criteria) = (manifest.subtasks.len(), manifest.task_criteria.len());
            (
                "plan",
                format!(
                    "{}: {subtasks} subtask(s), {criteria} task criteria{memories}",
                    manifest.round
                ),
            )
        }
        Message::SubTask(subtask) => ("start", format!("[{}] {}", subtask.sequence, subtask.intent)),
        Message::ExecutionResult(result) => ("attempt", attempt(result)),
        Message::CorrectionSignal(signal) => (
            "correct",
            format!("{} — {}", signal.failed_criterion, signal.what_was_wrong),
        ),
        Message::SubTaskOutcome(outcome) => outcome_of(outcome),
        Message::ReplanRequest(request) => ("gap", request.gap_summary.clone()),
        Message::PlanDirective(directive) => ("direct", direction(directive)),
        Message::ConfirmationAnswer(answer) => match answer.consent {
            Consent::Nobody => ("law 1", "nobody is there to be asked: refused".to_owned()),
            Consent::No => ("law 1", "refused by you".to_owned()),
            Consent::Yes | Consent::Always => return None,
        },
        Message::BudgetReached(budget) => (
            "budget",
            format!("{:?}: {} of {}", budget.budget, budget.used, budget.limit),
        ),
        Message::PlanningFailed(failed) => ("no plan", failed.reason.clone()),
        Message::UserInput(_)
        | Message::ClarificationRequest(_)
        | Message::ClarificationAnswer(_)
        | Message::DirectAnswer(_)
        | Message::MemoryQuery(_)
        | Message::MemoryReply(_)
        | Message::ConfirmationRequest(_)
        | Message::OutcomeSummary(_)
        | Message::PartialResultRequest(_)
        | Message::PartialResult(_)
        | Message::TaskAborted(_)
        | Message::TaskResumed(_)
        | Message::FinalResult(_)
        | Message::Megram(_)
        | Message::AuditQuery(_)
        | Message::AuditReport(_) => return None,
    };
    // The words in front stand in a column; everything behind them may be hostile.
    Some(format!("{what:<9} {}", one_line(&text, WIDTH)))
}

fn attempt(result: &ExecutionResult) -> String {
    let status = match result.status {
        ExecutionStatus::Completed => "completed",
        ExecutionStatus::Uncertain => "uncertain",
        ExecutionStatus::Failed => "failed",
    };
    let reason = reason(": ", result.reason.as_deref());
    format!(
        "{} {status}, {} tool call(s){reason}",
        result.attempt,
        result.tool_calls.len()
    )
}

fn outcome_of(outcome: &SubTaskOutcome) -> (&'static str, String) {
    let status = match outcome.status {
        OutcomeStatus::Matched => "matched",
        OutcomeStatus::Failed => "failed",
        OutcomeStatus::NotRun => "not run",
    };
    let verdicts = &outcome.criteria_verdicts;
    let passed = verdicts.iter().filter(|v| v.verdict == Verdict::Pass).count();
    let reason = reason(" — ", outcome.failure_reason.as_deref());
    (
        status,
        format!("{} ({passed} of {} criteria){reason}", outcome.intent, verdicts.len()),
    )
}

fn reason(joint: &str, text: Option<&str>) -> String {
    text.map(|text| format!("{joint}{text}")).unwrap_or_default()
}

fn direction(directive: &PlanDirective) -> String {
    format!(
        "{}→{}, D={:.2} P={:.2} Ω={:.2} ∇L={:+.2} — {}",
        directive.prev_directive.name(),
        directive.directive.name(),
        directive.loss.d.get(),
        directive.loss.p.get(),
        directive.loss.omega.get(),
        directive.grad_l.get(),
        directive.rationale
    )
}

/// One line per message, whatever it is, for `--verbose`.
pub fn verbose_line(envelope: &Envelope) -> String {
    let payload = serde_json::to_string(&envelope.payload).unwrap_or_default();
    one_line(
        &format!("#{} {}→{} {payload}", envelope.seq, envelope.from, envelope.to),
        4 * WIDTH,
    )
}

/// The result as it goes to standard output: text as it is, everything else as JSON.
pub fn result_text(output: &Value) -> String {
    match output {
        Value::Null => String::new(),
        Value::String(text) => text.trim_end().to_owned(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// What is said on standard error when a task has ended.
pub fn ending(result: &FinalResult, costs: &str) -> String {
    let mut lines = vec![match result.directive {
        Ending::Accept => format!("accept ({})", cause(result)),
        Ending::Success => format!("success ({}): good enough, but not complete", cause(result)),
        Ending::Abandon => format!("abandon ({})\n{}", cause(result), result.summary.trim_end()),
    }];
    if result.directive != Ending::Abandon {
        lines.extend(result.unmet.iter().map(|criterion| format!("not met: {criterion}")));
    }
    lines.extend(
        result
            .unverified
            .iter()
            .map(|criterion| format!("not verified by evidence: {criterion}")),
    );
    if !result.honesty.is_empty() {
        lines.push(format!("how sure: {}", result.honesty.summary()));
    }
    if !costs.is_empty() {
        lines.push(costs.to_owned());
    }
    printable(&lines.join("\n"))
}

fn cause(result: &FinalResult) -> String {
    serde_json::to_value(result.cause)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}
