//! Two drawings of a task: who was busy when, and how the steps of a plan hang together (design §21).
//!
//! Owns places and sizes. Everything that came over the bus is escaped.

use std::fmt::Write as _;

use artoo_auditor::page::sheet::escaped;
use artoo_protocol::Role;
use artoo_protocol::message::OutcomeStatus;
use artoo_protocol::text::one_line;

use super::{Kind, Round, Span};

const WIDTH: f64 = 960.0;
/// Place for the names of roles.
const NAMES: f64 = 64.0;
const ROW: f64 = 15.0;
/// Most rows of one role; what does not find a place is drawn upon the others.
const ROWS: usize = 8;
/// Most spans that are drawn.
const SPANS: usize = 1_500;
/// Most steps of a group, and most groups, that are drawn.
const STEPS: usize = 8;
const GROUPS: usize = 12;

impl Kind {
    const fn class(self) -> &'static str {
        match self {
            Self::Model => "d",
            Self::Tool => "a",
            Self::Check => "e",
            Self::Memory => "b",
            Self::Person => "c",
        }
    }
}

/// Bars along time, for each role those that it waited for.
pub fn timeline(spans: &[Span]) -> String {
    let Some(begin) = spans.iter().map(|span| span.from).min() else {
        return "<p>Nothing was waited for.</p>".to_owned();
    };
    let end = spans.iter().map(|span| span.to).max().unwrap_or(begin);
    let total = end.since(begin).0.max(1) as f64;
    let x = |at| NAMES + (WIDTH - NAMES - 10.0) * end_of(begin, at) / total;
    let mut body = String::new();
    let mut top = 6.0;
    for role in Role::ALL {
        let mut rows: Vec<f64> = Vec::new();
        let mut bars = String::new();
        for span in spans.iter().take(SPANS).filter(|span| span.role == role) {
            let (left, right) = (x(span.from), x(span.to).max(x(span.from) + 2.0));
            let free = rows.iter().position(|until| *until <= left);
            let row = free.unwrap_or(rows.len().min(ROWS - 1));
            if row == rows.len() {
                rows.push(right);
            } else if let Some(until) = rows.get_mut(row) {
                *until = until.max(right);
            }
            let _ = write!(
                bars,
                "<rect class=\"bar {}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.0}\" rx=\"2\"><title>{role}: {}, {}</title></rect>",
                span.kind.class(),
                top + row as f64 * ROW,
                right - left,
                ROW - 3.0,
                escaped(&one_line(&span.what, 80)),
                span.to.since(span.from)
            );
        }
        if rows.is_empty() {
            continue;
        }
        let height = rows.len() as f64 * ROW;
        let _ = write!(
            body,
            "<text x=\"0\" y=\"{:.1}\">{role}</text>{bars}<line class=\"axis\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>",
            top + 10.0,
            top + height + 2.0
        );
        top += height + 6.0;
    }
    let _ = write!(
        body,
        "<text x=\"{NAMES}\" y=\"{0:.1}\">0</text><text x=\"{1}\" y=\"{0:.1}\" text-anchor=\"end\">{2}</text>",
        top + 12.0,
        WIDTH - 10.0,
        end.since(begin)
    );
    format!(
        "<div class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"Who was busy when\">{body}</svg></div>",
        (top + 18.0).max(48.0)
    )
}

fn end_of(begin: artoo_protocol::Timestamp, at: artoo_protocol::Timestamp) -> f64 {
    at.since(begin).0 as f64
}

/// The steps of a plan, group after group from left to right.
pub fn plan(round: &Round<'_>) -> String {
    const BOX: (f64, f64) = (206.0, 46.0);
    const STEP: (f64, f64) = (246.0, 58.0);
    let mut groups: std::collections::BTreeMap<u32, Vec<_>> = std::collections::BTreeMap::new();
    for step in round.steps() {
        groups.entry(step.2).or_default().push(step);
    }
    if groups.is_empty() {
        return "<p>Every step of it was taken over from a round before.</p>".to_owned();
    }
    let shown: Vec<&Vec<_>> = groups.values().take(GROUPS).collect();
    let tallest = shown.iter().map(|group| group.len().min(STEPS + 1)).max().unwrap_or(1) as f64;
    let (width, height) = (shown.len() as f64 * STEP.0 - 30.0, tallest * STEP.1 + 4.0);
    let mut body = String::new();
    let mut before: Vec<f64> = Vec::new();
    for (column, group) in shown.iter().enumerate() {
        let left = column as f64 * STEP.0 + 2.0;
        let mut middles = Vec::new();
        for (row, (id, intent, _)) in group.iter().take(STEPS).enumerate() {
            let top = row as f64 * STEP.1 + 2.0;
            let status = round.status(id);
            let class = match status {
                Some(OutcomeStatus::Matched) => "a",
                Some(OutcomeStatus::Failed) => "c",
                Some(OutcomeStatus::NotRun) | None => "n",
            };
            let lines = two_lines(intent);
            let _ = write!(
                body,
                "<g><title>{}</title><rect class=\"box {class}\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
                 <text x=\"{3}\" y=\"{4}\">{5}</text><text x=\"{3}\" y=\"{6}\">{7}</text></g>",
                escaped(&one_line(intent, 300)),
                BOX.0,
                BOX.1,
                left + 9.0,
                top + 19.0,
                escaped(&lines.0),
                top + 35.0,
                escaped(&lines.1)
            );
            middles.push(top + BOX.1 / 2.0);
        }
        if group.len() > STEPS {
            let top = STEPS as f64 * STEP.1 + 24.0;
            let _ = write!(
                body,
                "<text x=\"{}\" y=\"{top}\">and {} more</text>",
                left + 9.0,
                group.len() - STEPS
            );
        }
        for from in &before {
            for to in &middles {
                let _ = write!(
                    body,
                    "<line class=\"edge\" x1=\"{:.0}\" y1=\"{from:.0}\" x2=\"{:.0}\" y2=\"{to:.0}\"/>",
                    left - STEP.0 + BOX.0,
                    left
                );
            }
        }
        before = middles;
    }
    let more = match groups.len() {
        n if n > GROUPS => format!("<p>and {} more groups</p>", n - GROUPS),
        _ => String::new(),
    };
    format!(
        "<div class=\"scroll plan\"><svg style=\"width:{width:.0}px;min-width:{width:.0}px\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"The plan\">{body}</svg></div>{more}"
    )
}

/// What fits into a box.
fn two_lines(text: &str) -> (String, String) {
    const FITS: usize = 29;
    let (mut first, mut second) = (String::new(), String::new());
    for word in text.split_whitespace() {
        let line = if second.is_empty() && first.chars().count() + word.chars().count() < FITS {
            &mut first
        } else {
            &mut second
        };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    (one_line(&first, FITS), one_line(&second, FITS))
}
