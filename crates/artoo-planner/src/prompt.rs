//! What R2 shows its model, and the schemas of the answers (design §6, §18).
//!
//! Owns the words and their bounds: the fixed part, the same for every call so that providers can cache it, and the
//! sections of the variable part. Decides nothing.

use std::fmt::Write as _;

use artoo_protocol::message::{
    Directive, FailureMix, MustNot, OutcomeStatus, PlanDirective, SubTaskOutcome, TaskSpec, Urgency, Verdict,
};
use artoo_protocol::model::{ModelRequest, Tier};
use artoo_protocol::prompt::{PromptError, section, with_laws};
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::tool::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use crate::carry::Kept;
use crate::denied::Denied;
use crate::dispatch::output_text;
use crate::words::normalised;

/// Characters of the request and of the intent.
pub const REQUEST_CHARS: usize = 20_000;
/// Characters of a tool's description, of which a plan needs the first sentence; the whole of it goes to R3.
const TOOL_CHARS: usize = 160;
/// Characters of a call in an outcome.
const CALL_CHARS: usize = 480;
/// Outcomes shown, and characters of one output, of a reason, and of all of them.
const OUTCOMES: usize = 40;
const OUTPUT_CHARS: usize = 1_500;
pub const REASON_CHARS: usize = 400;
const OUTCOMES_CHARS: usize = 24_000;
/// Characters of a rejected plan.
const REJECTED_CHARS: usize = 6_000;
/// Blocked inputs shown, newest last; the validator knows them all.
const TARGETS: usize = 50;

/// The fixed texts of R2; by default those of the repository's `prompts` folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// Instructions for a plan, with the placeholder `{{laws}}`.
    pub plan: String,
    /// Instructions for a partial result, with the placeholder `{{laws}}`.
    pub partial_result: String,
    /// The laws that fill it.
    pub laws: String,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            plan: include_str!("../prompts/planner.md").to_owned(),
            partial_result: include_str!("../prompts/partial_result.md").to_owned(),
            laws: include_str!("../prompts/laws.md").to_owned(),
        }
    }
}

impl Prompts {
    /// The system message for a plan.
    ///
    /// # Errors
    /// [`PromptError`] when the text has other placeholders than `{{laws}}`.
    pub fn plan_text(&self) -> Result<String, PromptError> {
        with_laws(&self.plan, &self.laws)
    }

    /// The system message for a partial result.
    ///
    /// # Errors
    /// [`PromptError`] when the text has other placeholders than `{{laws}}`.
    pub fn partial_result_text(&self) -> Result<String, PromptError> {
        with_laws(&self.partial_result, &self.laws)
    }
}

/// The schema `plan`. It demands only what a plan cannot be without: the rest has a meaning when it is missing, and what
/// is wrong is told better by the validator than by a schema error.
pub fn plan_schema() -> Value {
    let criterion = json!({"anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "criterion": {"type": "string"},
                "mode": {"type": ["string", "null"]},
                "check": {"type": ["object", "null"]}
            },
            "required": ["criterion"]
        }
    ]});
    json!({
        "type": "object",
        "properties": {
            "task_criteria": {"type": ["array", "null"], "items": criterion.clone()},
            "subtasks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "sequence": {"type": ["integer", "number", "string", "null"]},
                        "intent": {"type": "string"},
                        "context": {"type": ["string", "object", "array", "null"]},
                        "success_criteria": {"type": ["array", "null"], "items": criterion},
                        "tools": {"type": ["array", "null"], "items": {"type": "string"}},
                        "deadline": {"type": ["string", "null"]}
                    },
                    "required": ["intent"]
                }
            }
        },
        "required": ["subtasks"]
    })
}

/// A plan that the validator refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// What is wrong with it.
    pub reasons: Vec<String>,
    /// The answer.
    pub plan: Value,
}

/// What the variable part of a plan request is made of.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Standing instructions of the folder, framed; empty without any.
    pub standing: &'a str,
    /// Date and zone in words.
    pub now: &'a str,
    /// R3's tools.
    pub tools: &'a [ToolSpec],
    /// Memory's lines.
    pub memory: &'a [String],
    /// Everything that must not be used.
    pub must_not: &'a MustNot,
    /// The last directive, unless this is the first plan.
    pub directive: Option<&'a PlanDirective>,
    /// Matched work, and what of it still counts.
    pub kept: &'a Kept,
    /// Task criteria that stay in force.
    pub denied: &'a Denied,
    /// The last refused answer.
    pub rejected: Option<&'a Rejection>,
    /// The task.
    pub spec: &'a TaskSpec,
}

/// The request for a plan.
pub fn plan_request(system: &str, situation: &Situation<'_>) -> ModelRequest {
    let directive = situation.directive;
    let user = [
        // First, for it stays the same while everything below changes.
        situation.standing.to_owned(),
        section("now", situation.now),
        section("tools", &tools(situation.tools)),
        section("memory", &situation.memory.join("\n")),
        section("must_not", &must_not(situation.must_not)),
        section("directive", &directive.map(directive_text).unwrap_or_default()),
        section(
            "previous_outcomes",
            &directive
                .map(|d| previous(&d.outcomes, &d.gap_summary, situation.kept) + &denied(situation.denied))
                .unwrap_or_default(),
        ),
        section("rejected", &situation.rejected.map(rejected).unwrap_or_default()),
        section("constraints", &constraints(situation.spec)),
        section("request", &request(situation.spec)),
        section("intent", &head_tail(&situation.spec.intent, REQUEST_CHARS)),
    ];
    ModelRequest::structured(Tier::Brain, system, user.concat(), "plan", plan_schema())
}

/// The person's own words; nothing where the intent, which is shown anyway, has the same ones.
fn request(spec: &TaskSpec) -> String {
    if normalised(&spec.raw_input) == normalised(&spec.intent) {
        String::new()
    } else {
        head_tail(&spec.raw_input, REQUEST_CHARS)
    }
}

fn tools(specs: &[ToolSpec]) -> String {
    if specs.is_empty() {
        return "(none: only answers in words are possible)".to_owned();
    }
    let lines = specs
        .iter()
        .map(|spec| format!("{} — {}", spec.name, first_sentence(&spec.description)));
    lines.collect::<Vec<_>>().join("\n")
}

fn first_sentence(description: &str) -> String {
    let line = one_line(description, 4 * TOOL_CHARS);
    let sentence = line.unicode_sentences().next().unwrap_or_default().trim_end();
    // A sentence that begins with a name in backticks is not seen as one.
    let sentence = sentence
        .split_once(". `")
        .map_or_else(|| sentence.to_owned(), |(first, _)| format!("{first}."));
    one_line(&sentence, TOOL_CHARS)
}

fn must_not(blocked: &MustNot) -> String {
    let mut lines = Vec::new();
    if !blocked.tools.is_empty() {
        lines.push(format!("tools: {}", blocked.tools.join(", ")));
    }
    let hidden = blocked.targets.len().saturating_sub(TARGETS);
    for target in blocked.targets.iter().skip(hidden) {
        lines.push(format!("target: {}", one_line(target, REASON_CHARS)));
    }
    lines.join("\n")
}

fn constraints(spec: &TaskSpec) -> String {
    let mut lines = Vec::new();
    if let Some(scope) = &spec.constraints.scope {
        lines.push(format!("scope stated by the user: {scope}"));
    }
    if !spec.scope.is_empty() {
        lines.push(format!("changes are allowed below: {}", spec.scope.join(", ")));
    }
    if let Some(deadline) = spec.constraints.deadline {
        lines.push(format!("deadline: {deadline}"));
    }
    lines.join("\n")
}

fn rejected(rejection: &Rejection) -> String {
    let reasons: Vec<String> = rejection.reasons.iter().map(|reason| format!("- {reason}")).collect();
    format!(
        "{}\nThe rejected plan:\n{}",
        reasons.join("\n"),
        head_tail(&rejection.plan.to_string(), REJECTED_CHARS)
    )
}

/// What each directive asks of the next plan.
const fn demand(directive: Directive) -> &'static str {
    match directive {
        Directive::Refine => "keep the approach, and change its parameters: other inputs, tighter steps",
        Directive::ChangePath => "keep the approach, and go to another target: other paths, queries, sources",
        Directive::ChangeApproach => "take another method; the one used gave wrong results",
        Directive::BreakSymmetry => "take a kind of tool that was not tried yet; nothing so far has helped",
    }
}

fn directive_text(directive: &PlanDirective) -> String {
    let urgency = match directive.urgency {
        Urgency::Lower => "the gap is closing: change as little as needed",
        Urgency::Neutral => "no clear trend",
        Urgency::Higher => "the gap is growing: change clearly",
    };
    let class = match directive.failure_class {
        FailureMix::Logical => "the approach was wrong (logical)",
        FailureMix::Environmental => "the surroundings prevented it (environmental)",
        FailureMix::Mixed => "partly the approach, partly the surroundings (mixed)",
    };
    let mut lines = vec![
        format!("{}: {}", directive.directive.name(), demand(directive.directive)),
        format!("urgency: {urgency}"),
        format!("cause: {class}"),
    ];
    for (label, text) in [
        ("criterion that failed", &directive.failed_criterion),
        ("why", &directive.rationale),
    ] {
        if !text.trim().is_empty() {
            lines.push(format!("{label}: {}", one_line(text, 2 * REASON_CHARS)));
        }
    }
    if !directive.blocked_tools.is_empty() {
        lines.push(format!("blocked tools: {}", directive.blocked_tools.join(", ")));
    }
    if !directive.blocked_targets.is_empty() {
        let targets: Vec<String> = directive
            .blocked_targets
            .iter()
            .take(TARGETS)
            .map(|t| one_line(t, 100))
            .collect();
        lines.push(format!("blocked targets: {}", targets.join(" · ")));
    }
    lines.join("\n")
}

fn previous(list: &[SubTaskOutcome], gap: &str, kept: &Kept) -> String {
    let mut text = listed(list, |outcome| {
        let id = &outcome.subtask_id;
        let dropped = kept.dropped.iter().find(|(dropped, _)| dropped == id);
        let number = kept.work.iter().position(|work| work.subtask_id == *id);
        match (outcome.status, number, dropped) {
            (OutcomeStatus::Matched, Some(at), _) => format!("matched, kept as {}", at + 1),
            (OutcomeStatus::Matched, None, Some((_, why))) => format!("matched, but does not count: {why}"),
            (status, _, _) => plain_status(status).to_owned(),
        }
    });
    if !gap.trim().is_empty() {
        let _ = writeln!(text, "Gap: {}", one_line(gap, 2 * REASON_CHARS));
    }
    if !kept.work.is_empty() {
        text.push_str(KEPT);
    }
    text
}

/// What the model is told of kept work; only where there is some, so that it costs nothing else.
const KEPT: &str = "What is kept counts as done, and every new subtask gets its output: plan only what is missing. To keep less, \
                    add \"keep\": [numbers] to the answer.\n";

/// What the model is told of task criteria that stay in force; nothing where there is none.
fn denied(denied: &Denied) -> String {
    let lines = denied.lines();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "A check denied these criteria of the task; they are kept for the new plan. Where a check measures the wrong thing, state the same \
         words with a right one:\n- {}\n",
        lines.join("\n- ")
    )
}

/// Outcomes in words, bounded.
pub fn outcomes(list: &[SubTaskOutcome]) -> String {
    listed(list, |outcome| plain_status(outcome.status).to_owned())
}

fn listed(list: &[SubTaskOutcome], status: impl Fn(&SubTaskOutcome) -> String) -> String {
    let mut text = String::new();
    for (index, outcome) in list.iter().take(OUTCOMES).enumerate() {
        let _ = write!(text, "{}. {}", index + 1, outcome_text(outcome, &status(outcome)));
    }
    let more = list.len().saturating_sub(OUTCOMES);
    if more > 0 {
        let _ = writeln!(text, "… and {more} more");
    }
    head_tail(&text, OUTCOMES_CHARS)
}

const fn plain_status(status: OutcomeStatus) -> &'static str {
    match status {
        OutcomeStatus::Matched => "matched",
        OutcomeStatus::Failed => "failed",
        OutcomeStatus::NotRun => "not run",
    }
}

fn outcome_text(outcome: &SubTaskOutcome, status: &str) -> String {
    let mut text = format!("[{status}] {}\n", one_line(&outcome.intent, REASON_CHARS));
    if outcome.status == OutcomeStatus::NotRun {
        return text;
    }
    if let Some(reason) = &outcome.failure_reason {
        let _ = writeln!(text, "   reason: {}", one_line(reason, REASON_CHARS));
    }
    for verdict in outcome.criteria_verdicts.iter().filter(|v| v.verdict == Verdict::Fail) {
        let criterion = one_line(&verdict.criterion, 200);
        // What the executor itself reported is the evidence against every criterion; it is said once.
        let evidence = Some(&verdict.evidence).filter(|evidence| outcome.failure_reason.as_ref() != Some(*evidence));
        let evidence = evidence.map_or_else(String::new, |evidence| {
            format!(" ({})", one_line(evidence, REASON_CHARS))
        });
        let _ = writeln!(text, "   not met: {criterion}{evidence}");
    }
    for call in outcome.tool_calls.iter().rev().take(5).rev() {
        let how = call.exit.map_or_else(String::new, |code| format!(" exit {code}"));
        let error = call
            .error
            .as_deref()
            .map_or_else(String::new, |error| format!(" error: {error}"));
        let line = format!("{} {}{how}{error}", call.tool, one_line(&call.target(), 160));
        let _ = writeln!(text, "   call: {}", one_line(&line, CALL_CHARS));
    }
    let output = head_tail(&output_text(&outcome.output), OUTPUT_CHARS);
    let _ = writeln!(text, "   output: {}", output.replace('\n', "\n   "));
    text
}
