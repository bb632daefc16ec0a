//! What a span tells of a model call, a tool call, a check, a decision and an ending (design §16).
//!
//! Owns names of attributes and the words of failures. Whatever a person, a model or a tool wrote stays out; of names that come
//! from outside (a model, a tool) only the first characters are taken.

use artoo_protocol::message::{
    Attempt, Check, Ending, FinalResult, Loss, MemoryReply, OutcomeStatus, PlanDirective, SubTaskOutcome, Verdict,
};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply, Usage};
use artoo_protocol::text::one_line;
use artoo_protocol::tool::{CheckReport, Permit, ToolOutput};
use artoo_protocol::{Answer, CallId, Role};

use super::spans::{Called, Span, Value};
use crate::report::word;

/// Characters of one text.
pub const TEXT_MAX: usize = 200;

/// Text that may leave as an attribute.
pub fn bounded(text: &str) -> String {
    one_line(text, TEXT_MAX)
}

/// A count; what no collector could hold becomes the largest that it can.
pub fn int(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Sets an attribute.
pub fn put(spans: &mut [Span], at: usize, key: &'static str, value: Value) {
    let Some(span) = spans.get_mut(at) else { return };
    match span.attributes.iter_mut().find(|(known, _)| *known == key) {
        Some((_, old)) => *old = value,
        None => span.attributes.push((key, value)),
    }
}

fn tell(spans: &mut [Span], at: usize, key: &'static str, text: &str) {
    put(spans, at, key, Value::Text(bounded(text)));
}

/// Marks a span as failed: a class of few values, and why in words of artoo's own.
pub fn fail(spans: &mut [Span], at: usize, kind: &str, why: &str) {
    tell(spans, at, "error.type", kind);
    if let Some(span) = spans.get_mut(at) {
        span.error = Some(bounded(why));
    }
}

/// The name of a tool's span.
pub fn tool_span(tool: &str) -> String {
    format!("execute_tool {}", bounded(tool))
}

/// A tool call that is made.
pub fn tool(spans: &mut [Span], at: usize, (role, call): (Role, CallId), tool: &str, permit: Permit) {
    tell(spans, at, "gen_ai.tool.name", tool);
    // A tool of an MCP server is `server.tool`.
    let kind = if tool.contains('.') { "extension" } else { "function" };
    tell(spans, at, "gen_ai.tool.type", kind);
    tell(spans, at, "gen_ai.tool.call.id", &format!("{role}-{call}"));
    tell(spans, at, "artoo.effect", permit.effect.name());
    put(spans, at, "artoo.confirmed", Value::Flag(permit.confirmed));
}

/// A model that is asked.
pub fn asked(spans: &mut [Span], at: usize, called: &Called) {
    tell(spans, at, "gen_ai.provider.name", called.provider);
    if let Some(model) = &called.model {
        tell(spans, at, "gen_ai.request.model", model);
    }
    if let Some((host, port)) = &called.server {
        tell(spans, at, "server.address", host);
        put(spans, at, "server.port", Value::Int((*port).into()));
    }
}

/// What came of a call.
pub fn answer(spans: &mut [Span], at: usize, answer: &Answer) {
    match answer {
        Answer::Model(Ok(reply)) => replied(spans, at, reply),
        Answer::Model(Err(error)) => {
            let (kind, why) = model_error(error);
            fail(spans, at, kind, why);
            if let Some((model, usage)) = error.spent() {
                used(spans, at, model, usage);
            }
            if let ModelError::Rejected { status, .. } = error.bare()
                && *status > 0
            {
                put(spans, at, "http.response.status_code", Value::Int((*status).into()));
            }
        }
        Answer::Ran(output) => ran(spans, at, output),
        Answer::Checked(report) => checked(spans, at, report),
        Answer::Recalled(reply) => recalled(spans, at, reply),
        Answer::Assessed(_) => {}
    }
}

fn recalled(spans: &mut [Span], at: usize, reply: &MemoryReply) {
    let found = reply.sops.len() + reply.knowledge.len() + reply.recent.len();
    put(spans, at, "artoo.memories", int(found as u64));
    if reply.unavailable.is_some() {
        fail(spans, at, "unavailable", "memory could not be read");
    }
}

fn replied(spans: &mut [Span], at: usize, reply: &ModelReply) {
    used(spans, at, &reply.model, &reply.usage);
    if let ModelContent::ToolCalls { calls, .. } = &reply.content {
        put(spans, at, "artoo.tool_calls", int(calls.len() as u64));
    }
}

fn used(spans: &mut [Span], at: usize, model: &str, usage: &Usage) {
    tell(spans, at, "gen_ai.response.model", model);
    put(spans, at, "gen_ai.usage.input_tokens", int(usage.input_tokens));
    put(spans, at, "gen_ai.usage.output_tokens", int(usage.output_tokens));
    put(
        spans,
        at,
        "gen_ai.usage.cache_read.input_tokens",
        int(usage.cached_tokens),
    );
    put(spans, at, "artoo.requests", int(usage.requests.into()));
    if usage.estimated {
        put(spans, at, "artoo.usage_estimated", Value::Flag(true));
    }
}

const fn model_error(error: &ModelError) -> (&'static str, &'static str) {
    match error {
        ModelError::Unreachable { .. } => ("unreachable", "the model cannot be reached"),
        ModelError::Rejected { .. } => ("rejected", "the model's provider refused"),
        ModelError::Unusable { .. } => ("unusable", "the model gave no usable answer"),
        ModelError::Unreadable { .. } => ("unreadable", "the model's answer could not be read"),
        ModelError::Charged { error, .. } => model_error(error),
        ModelError::NotUnderstood { .. } => (
            "not_understood",
            "the built-in offline model does not know the sentence",
        ),
    }
}

fn ran(spans: &mut [Span], at: usize, output: &ToolOutput) {
    if let Some(exit) = output.exit {
        put(spans, at, "artoo.exit", Value::Int(exit.into()));
    }
    put(spans, at, "artoo.output.lines", int(output.lines));
    let class = output.failure_class.map(|class| word(&class));
    if output.interrupted {
        fail(spans, at, "interrupted", "it timed out, was killed or was cut short");
    } else if output.stale {
        fail(
            spans,
            at,
            "stale",
            "the world had changed since it was allowed, so nothing was done",
        );
    } else if output.error.is_some() {
        fail(
            spans,
            at,
            class.as_deref().unwrap_or("_OTHER"),
            "the tool reported an error",
        );
    } else if let Some(exit) = output.exit.filter(|exit| *exit != 0) {
        let class = class.as_deref().unwrap_or("exit_status");
        fail(spans, at, class, &format!("exit status {exit}"));
    }
}

fn checked(spans: &mut [Span], at: usize, report: &CheckReport) {
    put(spans, at, "artoo.check.passed", Value::Flag(report.passed));
    if report.faulty {
        fail(spans, at, "faulty_check", "the check itself cannot run");
    } else if !report.passed {
        let class = report.failure_class.map(|class| word(&class));
        fail(
            spans,
            at,
            class.as_deref().unwrap_or("not_met"),
            "what it checks does not hold",
        );
    }
}

/// The `kind` of a check, as in a plan.
pub fn check_kind(check: &Check) -> String {
    let value = serde_json::to_value(check).unwrap_or_default();
    let kind = value.get("kind").and_then(serde_json::Value::as_str);
    kind.unwrap_or_default().to_owned()
}

/// How a subtask ended, and each of its attempts.
pub fn outcome(spans: &mut [Span], at: usize, attempts: &[usize], outcome: &SubTaskOutcome) {
    tell(spans, at, "artoo.subtask.status", &word(&outcome.status));
    let verdicts = &outcome.criteria_verdicts;
    let passed = verdicts.iter().filter(|verdict| verdict.verdict == Verdict::Pass);
    put(spans, at, "artoo.subtask.passed", int(passed.count() as u64));
    put(spans, at, "artoo.subtask.attempts", int(attempts.len() as u64));
    for judged in &outcome.gap_trajectory {
        let place = usize::try_from(judged.attempt).ok().and_then(|n| n.checked_sub(1));
        if let Some(attempt) = place.and_then(|place| attempts.get(place)) {
            scored(spans, *attempt, judged);
        }
    }
    if outcome.status == OutcomeStatus::Failed {
        let (kind, why) = failure(outcome);
        fail(spans, at, kind, why);
        if let Some(last) = attempts.last() {
            fail(spans, *last, kind, why);
        }
    }
}

const fn failure(outcome: &SubTaskOutcome) -> (&'static str, &'static str) {
    if outcome.refused {
        ("refused", "an action that it needed was not allowed")
    } else if outcome.infrastructure {
        ("infrastructure", "it broke on a model, a time-out or a stop")
    } else if outcome.infeasible {
        ("infeasible", "the executor reported that it cannot be done")
    } else {
        ("not_met", "a criterion was not met")
    }
}

fn scored(spans: &mut [Span], at: usize, judged: &Attempt) {
    put(spans, at, "artoo.attempt.score", Value::Float(judged.score.get()));
    put(
        spans,
        at,
        "artoo.attempt.unmet",
        int(judged.unmet_criteria.len() as u64),
    );
}

/// What the controller decided, and on what.
pub fn directive(spans: &mut [Span], at: usize, directive: &PlanDirective) {
    tell(spans, at, "artoo.directive", directive.directive.name());
    tell(spans, at, "artoo.directive.previous", directive.prev_directive.name());
    tell(spans, at, "artoo.failure_class", &word(&directive.failure_class));
    tell(spans, at, "artoo.urgency", &word(&directive.urgency));
    signals(spans, at, &directive.loss, directive.grad_l.get());
}

fn signals(spans: &mut [Span], at: usize, loss: &Loss, gradient: f64) {
    for (key, value) in [
        ("artoo.loss.d", loss.d.get()),
        ("artoo.loss.p", loss.p.get()),
        ("artoo.loss.omega", loss.omega.get()),
        ("artoo.loss.l", loss.l.get()),
        ("artoo.loss.gradient", gradient),
    ] {
        put(spans, at, key, Value::Float(value));
    }
}

/// How a task ended.
pub fn ending(spans: &mut [Span], at: usize, result: &FinalResult) {
    let cause = word(&result.cause);
    tell(spans, at, "artoo.task.id", result.task_id.as_str());
    tell(spans, at, "artoo.task.slug", result.slug.as_str());
    tell(spans, at, "artoo.directive", &word(&result.directive));
    tell(spans, at, "artoo.cause", &cause);
    put(spans, at, "artoo.replans", int(result.replans.into()));
    put(spans, at, "artoo.criteria.unmet", int(result.unmet.len() as u64));
    put(
        spans,
        at,
        "artoo.criteria.unverified",
        int(result.unverified.len() as u64),
    );
    signals(spans, at, &result.loss, result.grad_l.get());
    if result.directive == Ending::Abandon {
        fail(spans, at, &cause, "the task was abandoned");
    }
}
