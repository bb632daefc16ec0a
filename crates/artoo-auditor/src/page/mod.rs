//! The report as one page: plain HTML with drawings inside, no script, nothing from elsewhere (design §16).
//!
//! Owns the order and the words of the page; the drawings are [`chart`]'s matter. Everything that came over the bus is escaped.

mod chart;

use std::fmt::Write as _;

use artoo_protocol::message::Trend;

use crate::detect::row;
use crate::history::Bucket;
use crate::overview::Overview;
use chart::{Chart, Series, Shape};

/// Findings that are shown of each list.
const SHOWN: usize = 100;
/// Tasks whose trend is shown: the latest.
const TRENDS: usize = 20;

const STYLE: &str = "
:root{--bg:#fbfaf7;--card:#fff;--ink:#1d2530;--soft:#68727f;--line:#e3e0d8;--a:#2f7d6b;--b:#d9a441;--c:#c4553b;--d:#3d6fa5;--e:#8a64a8}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--card:#1c2229;--ink:#e7e9ec;--soft:#97a1ad;--line:#2f3740;--a:#4fb39b;--b:#e0b45c;--c:#e07a5f;--d:#6fa3db;--e:#b592d6}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 60px}h1{font-size:26px;margin:0}h2{font-size:16px;margin:0 0 2px}
p{margin:4px 0;color:var(--soft)}.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(470px,1fr));gap:16px;margin-top:16px}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;min-width:0}
.wide{grid-column:1/-1}.figures{display:flex;flex-wrap:wrap;gap:12px;margin-top:20px}
.figure{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 18px;min-width:120px}
.figure b{display:block;font-size:24px;line-height:1.2;font-variant-numeric:tabular-nums}.figure span{color:var(--soft);font-size:13px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.axis{stroke:var(--line)}.a{fill:var(--a);stroke:var(--a)}.b{fill:var(--b);stroke:var(--b)}.c{fill:var(--c);stroke:var(--c)}.d{fill:var(--d);stroke:var(--d)}.e{fill:var(--e);stroke:var(--e)}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.bar{stroke:none}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;margin:2px 0 6px;color:var(--soft);font-size:13px}.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.key .a{background:var(--a)}.key .b{background:var(--b)}.key .c{background:var(--c)}.key .d{background:var(--d)}.key .e{background:var(--e)}
table{border-collapse:collapse;width:100%;font-size:14px}td,th{text-align:left;padding:5px 10px 5px 0;border-top:1px solid var(--line);vertical-align:top}th{color:var(--soft);font-weight:500;border:0}
td.n{text-align:right;font-variant-numeric:tabular-nums}ul{margin:6px 0 0;padding-left:18px}li{overflow-wrap:anywhere}
.improving{color:var(--a)}.worsening{color:var(--c)}.stable{color:var(--soft)}code{font-size:13px}
";

/// The page.
pub fn page(seen: &Overview) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>artoo: audit</title>");
    let _ = write!(
        html,
        "<style>{STYLE}</style></head><body><main><h1>What the auditor saw</h1>"
    );
    let report = &seen.report;
    let _ = write!(html, "<p>{} to {}</p>", report.window_start, report.window_end);
    figures(&mut html, seen);
    html.push_str("<div class=\"grid\">");
    for chart in charts() {
        let _ = write!(html, "<section class=\"card\"><h2>{}</h2>{}", chart.title, chart.key());
        html.push_str(&chart.draw(&seen.history));
        html.push_str("</section>");
    }
    trends(&mut html, seen);
    findings(&mut html, seen);
    list(&mut html, "Boundary violations", &report.boundary_violations);
    list(&mut html, "Drift", &report.drift_alerts);
    list(&mut html, "Anomalies", &report.anomalies);
    html.push_str("</div></main></body></html>\n");
    html
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
        ((totals.input_tokens + totals.output_tokens).to_string(), "tokens"),
        (format!("{:.2}", totals.cost), "cost"),
        ((seen.findings.values().sum::<u64>()).to_string(), "findings"),
    ] {
        let _ = write!(html, "<div class=\"figure\"><b>{value}</b><span>{name}</span></div>");
    }
    html.push_str("</div>");
}

const fn series(name: &'static str, class: &'static str, of: fn(&Bucket) -> Option<f64>) -> Series {
    Series { name, class, of }
}

fn charts() -> [Chart; 6] {
    [
        Chart {
            title: "Tasks",
            shape: Shape::Stacked,
            series: vec![
                series("accepted", "a", |b| Some(b.accepted as f64)),
                series("within the threshold", "b", |b| Some(b.succeeded as f64)),
                series("abandoned", "c", |b| Some(b.abandoned as f64)),
            ],
        },
        Chart {
            title: "Corrections and replans",
            shape: Shape::Stacked,
            series: vec![
                series("logical corrections", "d", |b| Some(b.logical as f64)),
                series("environmental corrections", "b", |b| Some(b.environmental as f64)),
                series("replans", "e", |b| Some(b.replans as f64)),
            ],
        },
        Chart {
            title: "Trend: distance left at the end (mean D)",
            shape: Shape::Curves,
            series: vec![series("mean D", "c", |b| {
                (b.ended() > 0).then(|| b.distance / b.ended() as f64)
            })],
        },
        Chart {
            title: "Tool health",
            shape: Shape::Stacked,
            series: vec![
                series("attempts that held", "a", |b| {
                    Some(b.attempts.saturating_sub(b.failed_attempts) as f64)
                }),
                series("attempts that failed", "c", |b| Some(b.failed_attempts as f64)),
            ],
        },
        Chart {
            title: "Tokens",
            shape: Shape::Stacked,
            series: vec![series("tokens read and written", "d", |b| Some(b.tokens as f64))],
        },
        Chart {
            title: "Cost since the beginning",
            shape: Shape::Sums,
            series: vec![series("cost", "e", |b| Some(b.cost))],
        },
    ]
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
            "<tr><td><code>{task}</code></td><td class=\"{word}\">{word}</td></tr>"
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

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
