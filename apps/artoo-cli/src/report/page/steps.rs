//! Attempts and verdicts of a plan, as part of the page (design §21).
//!
//! Owns what is said of each step, also of one that came to no end, and how much of it fits.

use std::fmt::Write as _;

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{CriterionVerdict, OutcomeStatus, SubTaskOutcome, Verdict};

use super::{CALLS, FULL, text};
use crate::report::{Attempt, Round, UNFINISHED, word};

pub(super) fn steps(html: &mut String, number: usize, round: &Round<'_>) {
    let _ = write!(
        html,
        "<section class=\"card wide\"><h2>Attempts and verdicts of plan {number}</h2>"
    );
    let mut left_out = 0;
    for outcome in &round.outcomes {
        if html.len() > FULL {
            left_out += 1;
            continue;
        }
        step(html, round, outcome);
    }
    // A task may end in the middle of a step; what was tried until then was done.
    let mut has_begun = !round.outcomes.is_empty();
    for (id, intent, _) in round.steps().filter(|(id, ..)| round.status(id).is_none()) {
        if round.attempts.iter().all(|attempt| attempt.result.subtask_id != *id) {
            continue;
        }
        has_begun = true;
        if html.len() > FULL {
            left_out += 1;
            continue;
        }
        let _ = write!(html, "<details open><summary>{} ({UNFINISHED})</summary>", text(intent));
        attempts(html, round, id);
        html.push_str("</details>");
    }
    if !has_begun {
        html.push_str("<p>No step was tried to its end.</p>");
    }
    if left_out > 0 {
        let _ = write!(
            html,
            "<p>{left_out} more steps are in the journal: <code>artoo tasks show</code></p>"
        );
    }
    if !round.verdicts.is_empty() {
        html.push_str("<p>The whole:</p><table>");
        for verdict in round.verdicts {
            judged(html, verdict);
        }
        html.push_str("</table>");
    }
    if !round.gap.is_empty() {
        let _ = write!(html, "<p>What was missing: {}</p>", text(round.gap));
    }
    html.push_str("</section>");
}

fn step(html: &mut String, round: &Round<'_>, outcome: &SubTaskOutcome) {
    let (class, open) = match outcome.status {
        OutcomeStatus::Matched => ("improving", ""),
        OutcomeStatus::Failed => ("worsening", " open"),
        OutcomeStatus::NotRun => ("stable", ""),
    };
    let _ = write!(
        html,
        "<details{open}><summary><span class=\"{class}\">{}</span> {}</summary>",
        word(&outcome.status).replace('_', " "),
        text(&outcome.intent)
    );
    attempts(html, round, &outcome.subtask_id);
    if !outcome.criteria_verdicts.is_empty() {
        html.push_str("<table>");
        for verdict in &outcome.criteria_verdicts {
            judged(html, verdict);
        }
        html.push_str("</table>");
    }
    if let Some(reason) = &outcome.failure_reason {
        let _ = write!(html, "<p>{}</p>", text(reason));
    }
    html.push_str("</details>");
}

fn attempts(html: &mut String, round: &Round<'_>, of: &SubTaskId) {
    for attempt in round.attempts.iter().filter(|attempt| attempt.result.subtask_id == *of) {
        tried(html, attempt);
    }
}

fn tried(html: &mut String, attempt: &Attempt<'_>) {
    let result = attempt.result;
    let _ = write!(html, "<p>attempt {}: {}</p><ul>", result.attempt, word(&result.status));
    for call in result.tool_calls.iter().take(CALLS) {
        let not_run = if call.not_run { " (not run)" } else { "" };
        let _ = write!(
            html,
            "<li><code>{}</code>{not_run}, {}</li>",
            text(&call.to_string()),
            call.elapsed_ms
        );
    }
    if result.tool_calls.len() > CALLS {
        let _ = write!(html, "<li>and {} more calls</li>", result.tool_calls.len() - CALLS);
    }
    html.push_str("</ul>");
    if let Some(correction) = attempt.correction {
        let _ = write!(
            html,
            "<p>sent back ({}): {} {}</p>",
            word(&correction.failure_class),
            text(&correction.what_was_wrong),
            text(&correction.what_to_do)
        );
    }
}

fn judged(html: &mut String, verdict: &CriterionVerdict) {
    let class = match verdict.verdict {
        Verdict::Pass => "improving",
        Verdict::Fail => "worsening",
    };
    let _ = write!(
        html,
        "<tr><td class=\"{class}\">{}</td><td>{}</td><td>{}: {}</td></tr>",
        word(&verdict.verdict),
        text(&verdict.criterion),
        word(&verdict.source),
        text(&verdict.evidence)
    );
}
