//! The report as one page: plain HTML with drawings inside, no script, nothing from elsewhere (design §21).
//!
//! Owns the order and the words, and a bound: what does not fit any more is named and left to the journal. Everything that came over the bus
//! is escaped.

mod steps;

use std::fmt::Write as _;

use artoo_auditor::page::chart::{Chart, Series, Shape};
use artoo_auditor::page::sheet::{escaped, grouped, minute, sheet};
use artoo_protocol::message::Grounds;
use artoo_protocol::text::one_line;

use super::words::{decided, estimated, how_sure, used, written};
use super::{Round, Story, drawing, word};
use crate::progress;

/// When a page is so long, in bytes, the details of further steps are left out.
const FULL: usize = 800_000;
/// Longest text of one field, in characters.
const TEXT: usize = 400;
/// Longest result, in characters.
const RESULT: usize = 6_000;
/// Most tool calls of an attempt, and most lines of memory.
const CALLS: usize = 30;
const MEMORIES: usize = 100;

/// The page.
pub fn page(story: &Story<'_>) -> String {
    let summary = &story.summary;
    let mut html = String::new();
    let id = escaped(summary.task_id.as_str());
    let _ = write!(
        html,
        "<p><code>{id}</code>, begun {} (UTC)</p>",
        minute(summary.started_at)
    );
    figures(&mut html, story);
    html.push_str("<div class=\"grid\">");
    result(&mut html, story);
    honesty(&mut html, story);
    let _ = write!(
        html,
        "<section class=\"card wide\"><h2>Who was busy when</h2><div class=\"key\"><span><i class=\"d\"></i>models</span>\
         <span><i class=\"a\"></i>tools</span><span><i class=\"e\"></i>checks</span><span><i class=\"b\"></i>memory</span>\
         <span><i class=\"c\"></i>waiting for you</span></div>{}</section>",
        drawing::timeline(&story.spans)
    );
    for (number, round) in (1..).zip(&story.rounds) {
        plan(&mut html, number, round);
    }
    decisions(&mut html, story);
    for (number, round) in (1..).zip(&story.rounds) {
        steps::steps(&mut html, number, round);
    }
    memory(&mut html, story);
    costs(&mut html, story);
    html.push_str("</div>");
    let heading = one_line(&summary.input, 200);
    sheet(&format!("artoo: {heading}"), &heading, &html)
}

fn figures(html: &mut String, story: &Story<'_>) {
    let (summary, costs) = (&story.summary, &story.summary.costs);
    html.push_str("<div class=\"figures\">");
    for (value, name) in [
        (
            story.ended.map_or("open".to_owned(), |end| word(&end.directive)),
            "ending",
        ),
        (
            story
                .ended
                .map_or("–".to_owned(), |end| word(&end.cause).replace('_', " ")),
            "cause",
        ),
        (story.rounds.len().to_string(), "plans"),
        (summary.replans.to_string(), "replans"),
        (costs.total.to_string(), "time"),
        (
            format!("{} / {}", costs.calls.len(), costs.sequential_calls),
            "model calls / in sequence",
        ),
        (
            grouped(costs.usage.tokens()),
            if costs.usage.estimated {
                "tokens (estimated)"
            } else {
                "tokens"
            },
        ),
        (format!("{:.4}", story.cost()), "cost"),
    ] {
        let _ = write!(
            html,
            "<div class=\"figure\"><b>{}</b><span>{name}</span></div>",
            escaped(&value)
        );
    }
    html.push_str("</div>");
}

fn result(html: &mut String, story: &Story<'_>) {
    let Some(end) = story.ended else {
        html.push_str("<section class=\"card wide\"><h2>Result</h2><p>This task has not ended.</p></section>");
        return;
    };
    let whole = progress::result_text(&end.output);
    let output: String = whole.chars().take(RESULT).collect();
    let mut shown = if output.is_empty() {
        String::new()
    } else {
        format!("<pre>{}</pre>", pre(&output))
    };
    let more = whole.chars().count().saturating_sub(RESULT);
    if more > 0 {
        let _ = write!(
            shown,
            "<p>and {more} more characters: <code>artoo tasks show --json</code></p>"
        );
    }
    let _ = write!(
        html,
        "<section class=\"card wide\"><h2>Result</h2><p>{}</p>{shown}</section>",
        escaped(&end.summary)
    );
}

/// Escaped with its line breaks.
fn pre(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

fn honesty(html: &mut String, story: &Story<'_>) {
    let Some(end) = story.ended else { return };
    html.push_str("<section class=\"card wide\"><h2>How sure is that?</h2>");
    let _ = write!(html, "<p>{}</p><table>", escaped(&how_sure(end)));
    let mut rows = |grounds: &[Grounds], class: &str, how: &str| {
        for one in grounds {
            let _ = write!(
                html,
                "<tr><td class=\"{class}\">{how}</td><td>{}</td><td>{}</td></tr>",
                text(&one.criterion),
                text(&one.evidence)
            );
        }
    };
    rows(&end.honesty.proven, "improving", "proven by machine");
    rows(&end.honesty.judged, "stable", "judged by a model on evidence");
    rows(&end.honesty.unverified, "worsening", "not verified");
    for criterion in &end.unmet {
        let _ = write!(
            html,
            "<tr><td class=\"worsening\">not met</td><td colspan=\"2\">{}</td></tr>",
            text(criterion)
        );
    }
    html.push_str("</table></section>");
}

fn text(text: &str) -> String {
    escaped(&one_line(text, TEXT))
}

fn plan(html: &mut String, number: usize, round: &Round<'_>) {
    let _ = write!(
        html,
        "<section class=\"card wide\"><h2>Plan {number}</h2>{}",
        drawing::plan(round)
    );
    for carried in round
        .manifest
        .map(|manifest| manifest.carried.as_slice())
        .unwrap_or_default()
    {
        let _ = write!(
            html,
            "<p>taken over: {} ({})</p>",
            text(&carried.intent),
            text(&carried.why)
        );
    }
    if let Some(manifest) = round.manifest.filter(|manifest| !manifest.task_criteria.is_empty()) {
        html.push_str("<p>For the whole must hold:</p><ul>");
        for criterion in &manifest.task_criteria {
            let _ = write!(html, "<li>{}</li>", text(&criterion.criterion));
        }
        html.push_str("</ul>");
    }
    html.push_str("</section>");
}

/// The loss round after round, and the cell of the table in which each decision lay.
fn decisions(html: &mut String, story: &Story<'_>) {
    let losses: Vec<_> = story
        .decisions
        .iter()
        .filter_map(|one| one.measured.as_ref())
        .map(|m| m.loss)
        .collect();
    if losses.is_empty() {
        return;
    }
    let values =
        |of: &dyn Fn(&artoo_protocol::message::Loss) -> f64| losses.iter().map(|loss| Some(of(loss))).collect();
    let series = |name, class, values| Series { name, class, values };
    let chart = Chart {
        title: "Loss, decision after decision".to_owned(),
        shape: Shape::Curves,
        series: vec![
            series("L", "c", values(&|loss| loss.l.get())),
            series("D", "d", values(&|loss| loss.d.get())),
            series("P", "e", values(&|loss| loss.p.get())),
            series("Ω", "b", values(&|loss| loss.omega.get())),
        ],
        ends: ("first".to_owned(), "last".to_owned()),
    };
    html.push_str(&chart.card());
    html.push_str(
        "<section class=\"card\"><h2>Decisions of the controller</h2><div class=\"scroll\"><table><tr><th>cell</th><th>D</th><th>P</th><th>Ω</th><th>L</th><th>∇L</th><th>decision</th></tr>",
    );
    for one in &story.decisions {
        let (cell, signals, decision) = decided(one);
        let _ = write!(html, "<tr><td>{cell}</td>");
        for signal in signals {
            let _ = write!(html, "<td>{signal}</td>");
        }
        let _ = write!(html, "<td>{}</td></tr>", escaped(&decision));
    }
    html.push_str("</table></div>");
    for directive in story.rounds.iter().filter_map(|round| round.directive) {
        let _ = write!(
            html,
            "<p>{}: {}</p>",
            escaped(&word(&directive.directive)),
            text(&directive.rationale)
        );
    }
    html.push_str("</section>");
}

fn memory(html: &mut String, story: &Story<'_>) {
    let mut list = |title: &str, lines: &[String], nothing: &str| {
        let _ = write!(html, "<section class=\"card\"><h2>{title}</h2>");
        if lines.is_empty() {
            let _ = write!(html, "<p>{nothing}</p>");
        } else {
            html.push_str("<ul>");
            for line in lines.iter().take(MEMORIES) {
                let _ = write!(html, "<li>{}</li>", text(line));
            }
            html.push_str("</ul>");
            if lines.len() > MEMORIES {
                let _ = write!(html, "<p>and {} more</p>", lines.len() - MEMORIES);
            }
        }
        html.push_str("</section>");
    };
    list(
        "Memory that was used",
        &used(story),
        "Nothing was known that shaped a plan.",
    );
    list("Memory that was written", &written(story), "Nothing was learned.");
}

fn costs(html: &mut String, story: &Story<'_>) {
    let costs = &story.summary.costs;
    html.push_str("<section class=\"card wide\"><h2>Costs</h2><div class=\"scroll\"><table><tr><th>role</th><th>calls</th><th>tokens read</th><th>cached</th><th>written</th><th>time</th><th>cost</th></tr>");
    for (role, spent) in &story.spent {
        let usage = spent.usage;
        let _ = write!(
            html,
            "<tr><td>{role}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.4}</td></tr>",
            spent.calls,
            grouped(usage.input_tokens),
            grouped(usage.cached_tokens),
            format_args!("{}{}", grouped(usage.output_tokens), estimated(&usage)),
            spent.elapsed,
            spent.cost
        );
    }
    let _ = write!(
        html,
        "</table></div><p>Of {}: models {}, tools {}, you {}, artoo itself {}.</p></section>",
        costs.total, costs.model, costs.tools, costs.person, costs.own
    );
}
