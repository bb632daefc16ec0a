//! How a task is told to a client: as data after the schemas, and in the words of the terminal (design §21).
//!
//! Owns wording only, and where a task of an earlier process is looked up.

use std::path::Path;

use artoo_bus::journal::summary::{Costs, Status, TaskSummary};
use artoo_protocol::message::{Consent, Ending, FinalResult, Message};
use artoo_protocol::text::printable;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::Value;

use super::tools::{CostsView, EndingView, RefusedView, TaskState, TaskView, word};
use crate::commands::tasks;
use crate::failure::Failure;
use crate::progress;
use crate::serve::desk::{Refusals, Refused, Standing, lasting};

/// Lines of progress that a client is told of a task.
const LINES: usize = 20;

/// A task of this process.
pub fn view(standing: &Standing, costs: Option<&Costs>) -> TaskView {
    let state = match (&standing.ending, standing.is_asking) {
        (Some(_), _) => TaskState::Ended,
        (None, true) => TaskState::WaitingForPerson,
        (None, false) => TaskState::Running,
    };
    let skipped = standing.lines.len().saturating_sub(LINES);
    let ending = standing.ending.as_deref();
    TaskView {
        task_id: standing.task_id.to_string(),
        state,
        text: standing.text.clone(),
        progress: standing.lines.iter().skip(skipped).cloned().collect(),
        ending: ending.map(|result| ending_view(result, &standing.refused, costs)),
    }
}

/// A task whose journal is in the data folder.
///
/// # Errors
/// [`Failure`] when there is none of this name, or it cannot be read.
pub fn past(data: &Path, name: &str) -> Result<CallToolResult, Failure> {
    let found = tasks::pick(&data.join("tasks"), lasting(name))?;
    let records = tasks::contents(&found)?.records;
    let summary =
        TaskSummary::of(&records).ok_or_else(|| Failure::failed(format!("{} holds no task", found.task_id)))?;
    let ending = tasks::envelopes(&records).find_map(|envelope| match &envelope.payload {
        Message::FinalResult(result) => Some(result),
        _ => None,
    });
    let refused = Refusals::of(tasks::envelopes(&records).map(|envelope| &envelope.payload));
    let lines: Vec<String> = tasks::envelopes(&records).filter_map(progress::line).collect();
    let skipped = lines.len().saturating_sub(LINES);
    let view = TaskView {
        task_id: summary.task_id.to_string(),
        state: match summary.status {
            Status::Finished => TaskState::Ended,
            Status::Interrupted => TaskState::Interrupted,
        },
        text: summary.input.clone(),
        progress: lines.into_iter().skip(skipped).collect(),
        ending: ending.map(|result| ending_view(result, &refused, Some(&summary.costs))),
    };
    let words = match ending {
        Some(result) => in_words(result, &refused, Some(&summary.costs)),
        None => format!(
            "{0} was interrupted; `artoo resume {0}` finishes it once this server has ended",
            summary.task_id
        ),
    };
    Ok(told(&words, &view, ending.map(|result| result.directive)))
}

/// The answer about a task of this process.
pub fn answer(standing: &Standing, costs: Option<&Costs>) -> CallToolResult {
    let view = view(standing, costs);
    let words = match &standing.ending {
        Some(result) => in_words(result, &standing.refused, costs),
        None if standing.is_asking => format!(
            "{0} waits for the user's answer to a question. `result` with task_id {0} gives its end.",
            view.task_id
        ),
        None => format!(
            "{0} is running. `result` with task_id {0} gives its end, `status` its progress, `abort` stops it.",
            view.task_id
        ),
    };
    let directive = standing.ending.as_ref().map(|result| result.directive);
    told(&words, &view, directive)
}

/// Data with the words for it; what was not achieved is marked as an error.
fn told(words: &str, view: &TaskView, directive: Option<Ending>) -> CallToolResult {
    let mut result = structured(words, view);
    result.is_error = Some(directive == Some(Ending::Abandon));
    result
}

/// Data with the words for it.
pub fn structured(words: &str, value: &impl Serialize) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(printable(words))]);
    result.structured_content = serde_json::to_value(value).ok().filter(Value::is_object);
    result
}

/// What went wrong with a call, and what to do about it.
pub fn failed(failure: &Failure) -> CallToolResult {
    let hint = failure.hint.as_ref().map(|hint| format!("\n→ {hint}"));
    let words = format!("{}{}", failure.message, hint.unwrap_or_default());
    CallToolResult::error(vec![ContentBlock::text(printable(&words))])
}

fn ending_view(result: &FinalResult, refused: &Refusals, costs: Option<&Costs>) -> EndingView {
    EndingView {
        directive: word(&result.directive),
        cause: word(&result.cause),
        summary: result.summary.clone(),
        output: result.output.clone(),
        unmet: result.unmet.clone(),
        unverified: result.unverified.clone(),
        how_sure: result.honesty.summary(),
        refused: refused.listed.iter().map(refused_view).collect(),
        refused_more: refused.more,
        costs: costs.map(|costs| CostsView {
            model_calls: costs.calls.len(),
            input_tokens: costs.usage.input_tokens,
            output_tokens: costs.usage.output_tokens,
            total_ms: costs.total.0,
            person_ms: costs.person.0,
        }),
    }
}

fn refused_view(refused: &Refused) -> RefusedView {
    RefusedView {
        action: refused.action.clone(),
        by: match refused.consent {
            Consent::Nobody => "nobody",
            Consent::No | Consent::Yes | Consent::Always => "person",
        }
        .to_owned(),
        allow: refused.grant.clone(),
    }
}

/// As a terminal shows it: the result, and everything about it.
fn in_words(result: &FinalResult, refused: &Refusals, costs: Option<&Costs>) -> String {
    let output = progress::result_text(&result.output);
    let mut parts = Vec::new();
    if result.directive != Ending::Abandon && !output.is_empty() {
        parts.push(output);
    }
    let costs = costs.map(tasks::costs_line).unwrap_or_default();
    parts.push(progress::ending(result, &costs));
    if refused.more > 0 {
        parts.push(format!(
            "{} actions were refused, and {} more.",
            refused.listed.len(),
            refused.more
        ));
    }
    if refused.listed.iter().any(|refused| refused.consent == Consent::Nobody) {
        parts.push(
            "No person answered: the client offers no forms (elicitation), or nobody was there. The user can allow such an action beforehand, \
             with the --allow that is named above, when they start this server."
                .to_owned(),
        );
    }
    parts.join("\n\n")
}
