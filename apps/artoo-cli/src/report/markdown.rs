//! The report as Markdown, for a terminal, a ticket, a mail (design §21).
//!
//! Owns order and words. What came over the bus cannot become a mark of its own.

use std::fmt::Write as _;

use artoo_protocol::message::{Grounds, SubTaskOutcome};
use artoo_protocol::text::one_line;

use super::words::{decided, estimated, how_sure, used, written};
use super::{Round, Story, UNFINISHED, word};
use crate::progress;

/// Longest text of one field, in characters.
const TEXT: usize = 300;
/// Most steps of a plan.
const STEPS: usize = 200;
/// Lines of the result that are shown.
const RESULT: usize = 100;

/// The report.
pub fn markdown(story: &Story<'_>) -> String {
    let (summary, costs) = (&story.summary, &story.summary.costs);
    let mut page = format!(
        "# {}\n\n`{}`, begun {}\n\n",
        text(&summary.input),
        summary.task_id,
        summary.started_at
    );
    match story.ended {
        None => page.push_str("This task has not ended.\n"),
        Some(end) => {
            let _ = writeln!(
                page,
                "**{}** ({}): {}",
                word(&end.directive),
                word(&end.cause),
                text(&end.summary)
            );
            let output = progress::result_text(&end.output);
            if !output.is_empty() {
                // Indented, because what was found may hold fences.
                let lines = output.lines().take(RESULT).map(|line| format!("\n    {line}"));
                let _ = writeln!(page, "{}", lines.collect::<String>());
                let more = output.lines().count().saturating_sub(RESULT);
                if more > 0 {
                    let _ = writeln!(page, "\nand {more} more lines: `artoo tasks show --json`");
                }
            }
            let _ = writeln!(page, "\n## How sure is that?\n\n{}\n", how_sure(end));
            let mut list = |grounds: &[Grounds], how: &str| {
                for one in grounds {
                    let _ = writeln!(page, "- {how}: {} — {}", text(&one.criterion), text(&one.evidence));
                }
            };
            list(&end.honesty.proven, "proven by machine");
            list(&end.honesty.judged, "judged by a model on evidence");
            list(&end.honesty.unverified, "not verified");
            for criterion in &end.unmet {
                let _ = writeln!(page, "- **not met**: {}", text(criterion));
            }
        }
    }
    for (number, round) in (1..).zip(&story.rounds) {
        plan(&mut page, number, round);
    }
    page.push_str(
        "\n## Decisions of the controller\n\n| cell | D | P | Ω | L | ∇L | decision |\n|---|---|---|---|---|---|---|\n",
    );
    for one in &story.decisions {
        let (cell, signals, decision) = decided(one);
        let _ = writeln!(page, "| {cell} | {} | {} |", signals.join(" | "), text(&decision));
    }
    let mut memory = |title: &str, lines: Vec<String>| {
        let _ = writeln!(page, "\n## {title}\n");
        for line in lines.iter().take(STEPS) {
            let _ = writeln!(page, "- {}", text(line));
        }
        if lines.is_empty() {
            page.push_str("nothing\n");
        }
        if lines.len() > STEPS {
            let _ = writeln!(page, "\nand {} more", lines.len() - STEPS);
        }
    };
    memory("Memory that was used", used(story));
    memory("Memory that was written", written(story));
    page.push_str("\n## Costs\n\n| role | calls | tokens read | written | time | cost |\n|---|---|---|---|---|---|\n");
    for (role, spent) in &story.spent {
        let (usage, cost) = (spent.usage, spent.cost);
        let (read, wrote) = (usage.input_tokens, usage.output_tokens);
        let _ = writeln!(
            page,
            "| {role} | {} | {read} | {wrote}{} | {} | {cost:.4} |",
            spent.calls,
            estimated(&usage),
            spent.elapsed
        );
    }
    let _ = write!(
        page,
        "\nOf {}: models {}, tools {}, you {}, artoo itself {}.",
        costs.total, costs.model, costs.tools, costs.person, costs.own
    );
    page
}

fn plan(page: &mut String, number: usize, round: &Round<'_>) {
    let _ = writeln!(page, "\n## Plan {number}\n");
    for (id, intent, group) in round.steps().take(STEPS) {
        let _ = writeln!(
            page,
            "{group}. {} — **{}**",
            text(intent),
            round
                .status(id)
                .map_or_else(|| UNFINISHED.to_owned(), |status| word(&status).replace('_', " "))
        );
        let of = |outcome: &&&SubTaskOutcome| outcome.subtask_id == *id;
        let attempts = round.attempts.iter().filter(|attempt| attempt.result.subtask_id == *id);
        for attempt in attempts {
            let _ = writeln!(
                page,
                "   - attempt {}: {}",
                attempt.result.attempt,
                word(&attempt.result.status)
            );
            for call in &attempt.result.tool_calls {
                let _ = writeln!(page, "     - {}", text(&call.to_string()));
            }
            if let Some(correction) = attempt.correction {
                let _ = writeln!(page, "     - sent back: {}", text(&correction.what_was_wrong));
            }
        }
        for verdict in round
            .outcomes
            .iter()
            .find(of)
            .map(|o| o.criteria_verdicts.as_slice())
            .unwrap_or_default()
        {
            let (how, by) = (word(&verdict.verdict), word(&verdict.source));
            let _ = writeln!(
                page,
                "   - {how} ({by}): {} — {}",
                text(&verdict.criterion),
                text(&verdict.evidence)
            );
        }
    }
    for verdict in round.verdicts {
        let (how, by) = (word(&verdict.verdict), word(&verdict.source));
        let _ = writeln!(
            page,
            "- the whole, {how} ({by}): {} — {}",
            text(&verdict.criterion),
            text(&verdict.evidence)
        );
    }
    let more = round.steps().count().saturating_sub(STEPS);
    if more > 0 {
        let _ = writeln!(page, "\nand {more} more steps");
    }
    if !round.gap.is_empty() {
        let _ = writeln!(page, "\nWhat was missing: {}", text(round.gap));
    }
    if let Some(directive) = round.directive {
        let (what, why) = (word(&directive.directive), text(&directive.rationale));
        let _ = writeln!(page, "\nThe controller demanded `{what}`: {why}");
    }
}

/// One line in which nothing is a mark of Markdown or of HTML.
fn text(text: &str) -> String {
    let mut safe = String::new();
    for c in one_line(text, TEXT).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}
