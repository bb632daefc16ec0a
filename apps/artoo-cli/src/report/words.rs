//! What both forms of the report say in the same words (design §21).
//!
//! Owns single lines; must not know marks of HTML or Markdown.

use artoo_ggs::Explained;
use artoo_protocol::message::FinalResult;
use artoo_protocol::model::Usage;

use super::{Story, word};

/// Cell, the five signals, and the decision with how hard it is meant.
pub fn decided(one: &Explained) -> (String, [String; 5], String) {
    let none = || "–".to_owned();
    let measured = one.measured.as_ref();
    let cell = measured
        .and_then(|m| m.table.as_ref())
        .map_or_else(none, |asked| asked.cell.to_string());
    let signals = measured.map_or_else(
        || [none(), none(), none(), none(), none()],
        |m| {
            let two = |value: f64| format!("{value:.2}");
            let loss = m.loss;
            [
                two(loss.d.get()),
                two(loss.p.get()),
                two(loss.omega.get()),
                two(loss.l.get()),
                format!("{:+.2}", m.grad_l.get()),
            ]
        },
    );
    let decision = one.recorded.map_or_else(none, |recorded| match recorded.decision {
        artoo_ggs::explain::Decided::Direct(directive) => word(&directive),
        artoo_ggs::explain::Decided::End(ending, cause) => format!("{} ({})", word(&ending), word(&cause)),
    });
    (cell, signals, decision)
}

/// What is said behind tokens that no provider reported.
pub const fn estimated(usage: &Usage) -> &'static str {
    if usage.estimated { " (estimated)" } else { "" }
}

/// What memory told the planner, those that shaped a plan marked.
pub fn used(story: &Story<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for reply in &story.replies {
        let rules = reply
            .sops
            .iter()
            .map(|rule| (&rule.id, format!("rule: {}", rule.content)));
        let lessons = reply.knowledge.iter().chain(&reply.recent);
        let lessons = lessons.map(|lesson| (&lesson.id, format!("{}: {}", lesson.level.letter(), lesson.content)));
        for (id, line) in rules.chain(lessons) {
            let mark = if story.used.contains(id) {
                "shaped the plan, "
            } else {
                ""
            };
            let line = format!("{mark}{line}");
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.extend(
            reply
                .unavailable
                .iter()
                .map(|why| format!("memory was not there: {why}")),
        );
    }
    lines
}

/// What was learned, with its weight.
pub fn written(story: &Story<'_>) -> Vec<String> {
    let line = |megram: &&artoo_protocol::message::Megram| {
        format!(
            "{} {} ({}, f {:.2}, σ {:+.1}): {}",
            megram.space,
            megram.entity,
            word(&megram.state),
            megram.f.get(),
            megram.sigma.get(),
            megram.content
        )
    };
    story.written.iter().map(line).collect()
}

/// What stands behind the result, in one line.
pub fn how_sure(end: &FinalResult) -> String {
    if end.honesty.is_empty() {
        "The journal does not say what stands behind the result.".to_owned()
    } else {
        end.honesty.summary()
    }
}
