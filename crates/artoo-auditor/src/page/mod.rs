//! The report as one page: plain HTML with drawings inside, no script, nothing from elsewhere (design §16).
//!
//! Owns the order and the words of the page. Paper and pens are [`sheet`](mod@sheet) and [`chart`], with which the report about one task is
//! made too. Everything that came over the bus is escaped.

pub mod chart;
pub mod sheet;

use std::fmt::Write as _;

use artoo_protocol::message::Trend;
use artoo_protocol::{Millis, Timestamp};

use crate::detect::row;
use crate::history::{Bucket, History};
use crate::overview::Overview;
use chart::{Chart, Series, Shape};
use sheet::{escaped, grouped, minute, sheet};

/// Findings that are shown of each list.
const SHOWN: usize = 100;
/// Tasks whose trend is shown: the latest.
const TRENDS: usize = 12;

/// The page.
pub fn page(seen: &Overview) -> String {
    let mut html = String::new();
    let report = &seen.report;
    let (start, end) = (minute(report.window_start), minute(report.window_end));
    let _ = write!(html, "<p>{start} to {end} (UTC)</p>");
    figures(&mut html, seen);
    html.push_str("<div class=\"grid\">");
    for chart in charts(&seen.history) {
        html.push_str(&chart.card());
    }
    trends(&mut html, seen);
    findings(&mut html, seen);
    list(&mut html, "Boundary violations", &report.boundary_violations);
    list(&mut html, "Drift", &report.drift_alerts);
    list(&mut html, "Anomalies", &report.anomalies);
    html.push_str("</div>");
    sheet("artoo: audit", "What the auditor saw", &html)
}

fn figures(html: &mut String, seen: &Overview) {
    let totals = &seen.totals;
    html.push_str("<div class=\"figures\">");
    let share = |part: u64, of: u64| match of {
        0 => "–".to_owned(),
        of => format!("{:.0} %", part as f64 * 100.0 / of as f64),
    };
    for (value, name) in [
        (totals.tasks.to_string(), "tasks"),
        (share(totals.accepted + totals.succeeded, totals.ended), "ended well"),
        (totals.corrections.to_string(), "corrections"),
        (totals.replans.to_string(), "replans"),
        (share(totals.attempts.bad, totals.attempts.of), "attempts failed"),
        (totals.model_calls.of.to_string(), "model calls"),
        (grouped(totals.input_tokens + totals.output_tokens), "tokens"),
        (format!("{:.2}", totals.cost), "cost"),
        ((seen.findings.values().sum::<u64>()).to_string(), "findings"),
    ] {
        let _ = write!(html, "<div class=\"figure\"><b>{value}</b><span>{name}</span></div>");
    }
    html.push_str("</div>");
}

/// What is drawn of one bucket: a name, a colour, and a value where there is something to measure.
type Of = (&'static str, &'static str, fn(&Bucket) -> Option<f64>);

fn charts(history: &History) -> Vec<Chart> {
    let of: [(&'static str, Shape, Vec<Of>); 6] = [
        (
            "Tasks",
            Shape::Stacked,
            vec![
                ("accepted", "a", |b| Some(b.accepted as f64)),
                ("within the threshold", "b", |b| Some(b.succeeded as f64)),
                ("abandoned", "c", |b| Some(b.abandoned as f64)),
            ],
        ),
        (
            "Corrections and replans",
            Shape::Stacked,
            vec![
                ("logical corrections", "d", |b| Some(b.logical as f64)),
                ("environmental corrections", "b", |b| Some(b.environmental as f64)),
                ("replans", "e", |b| Some(b.replans as f64)),
            ],
        ),
        (
            "Trend: distance left at the end (mean D)",
            Shape::Curves,
            vec![("mean D", "c", |b| {
                (b.ended() > 0).then(|| b.distance / b.ended() as f64)
            })],
        ),
        (
            "Tool health",
            Shape::Stacked,
            vec![
                ("attempts that held", "a", |b| {
                    Some(b.attempts.saturating_sub(b.failed_attempts) as f64)
                }),
                ("attempts that failed", "c", |b| Some(b.failed_attempts as f64)),
            ],
        ),
        (
            "Tokens",
            Shape::Stacked,
            vec![("tokens read and written", "d", |b| Some(b.tokens as f64))],
        ),
        (
            "Cost since the beginning",
            Shape::Sums,
            vec![("cost", "e", |b| Some(b.cost))],
        ),
    ];
    let ends = ends(history);
    let chart = |(title, shape, series): (&str, Shape, Vec<Of>)| Chart {
        title: title.to_owned(),
        shape,
        series: series
            .into_iter()
            .map(|(name, class, of)| Series {
                name,
                class,
                values: history.buckets.iter().map(of).collect(),
            })
            .collect(),
        ends: ends.clone(),
    };
    of.into_iter().map(chart).collect()
}

/// The words at both ends of the axis: the day, or the minute where all is of about one day.
fn ends(history: &History) -> (String, String) {
    let start = history.start.unwrap_or_default();
    let count = i64::try_from(history.buckets.len()).unwrap_or(0);
    let span = Millis(u64::try_from(history.width_ms.saturating_mul(count)).unwrap_or(0));
    let length = if span.0 > 86_400_000 { 10 } else { 16 };
    let words = |at: Timestamp| at.to_string().get(..length).unwrap_or_default().replace('T', " ");
    (words(start), words(start.plus(span)))
}

fn trends(html: &mut String, seen: &Overview) {
    let all = &seen.report.gap_trends;
    if all.is_empty() {
        return;
    }
    let count = |trend| all.iter().filter(|t| t.trend == trend).count();
    let _ = write!(
        html,
        "<section class=\"card\"><h2>Trends of tasks</h2><p>{} improving, {} stable, {} worsening; the latest:</p><table>",
        count(Trend::Improving),
        count(Trend::Stable),
        count(Trend::Worsening)
    );
    for trend in all.iter().rev().take(TRENDS) {
        let word = match trend.trend {
            Trend::Improving => "improving",
            Trend::Stable => "stable",
            Trend::Worsening => "worsening",
        };
        let task = escaped(trend.task_id.as_str());
        let _ = write!(
            html,
            "<tr><td><code>{task}</code></td><td class=\"word {word}\">{word}</td></tr>"
        );
    }
    html.push_str("</table></section>");
}

fn findings(html: &mut String, seen: &Overview) {
    html.push_str("<section class=\"card\"><h2>Findings by detector</h2>");
    if seen.findings.is_empty() {
        html.push_str("<p>None.</p>");
    } else {
        html.push_str("<table>");
        for (name, count) in &seen.findings {
            let title = row(name).map_or("", |row| row.title);
            let name = escaped(name);
            let _ = write!(
                html,
                "<tr><td><code>{name}</code></td><td>{title}</td><td class=\"n\">{count}</td></tr>"
            );
        }
        html.push_str("</table>");
    }
    html.push_str("</section>");
}

fn list(html: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(html, "<section class=\"card wide\"><h2>{title}</h2><ul>");
    for line in lines.iter().take(SHOWN + 1) {
        let _ = write!(html, "<li>{}</li>", escaped(line));
    }
    html.push_str("</ul></section>");
}
