//! Rules about what a plan may touch: blocked tools, blocked inputs in any spelling, the scope that the user allowed (design §6).
//!
//! Owns the reasons that a model is given for them.

use std::collections::BTreeSet;

use super::{Ground, quote, step_text, unqualified};
use crate::parse::{Plan, Step};
use crate::words::contains_whole;

pub(super) fn blocked_tool(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    for step in &plan.steps {
        for tool in &step.tools {
            let base = unqualified(tool);
            if let Some(blocked) = ground.must_not.tools.iter().find(|b| *b == tool || *b == base) {
                found.push(format!(
                    "subtask {} uses `{}`, but `{}` must not be used; take another tool",
                    step.number,
                    quote(tool),
                    quote(blocked)
                ));
            }
        }
    }
}

pub(super) fn blocked_target(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    if ground.must_not.targets.is_empty() {
        return;
    }
    let places = ground.allowed.places();
    let texts: Vec<(&Step, String)> = plan.steps.iter().map(|step| (step, step_text(step))).collect();
    let whole: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
    let whole = whole.join("\n");
    // Most targets occur in no form at all: the last part of a path stands in each of its spellings that needs no shell.
    let odd = whole.contains(['\\', '\'', '"']);
    let near: Vec<(&String, BTreeSet<String>)> = ground
        .must_not
        .targets
        .iter()
        // A full stop, or a slash alone, is no path that a plan could avoid.
        .filter(|target| target.contains(char::is_alphanumeric))
        .map(|target| (target, places.paths(target)))
        .filter(|(target, paths)| {
            let last = |path: &String| whole.contains(path.rsplit('/').next().unwrap_or_default());
            whole.contains(target.trim()) || odd || paths.iter().any(last)
        })
        .collect();
    if near.is_empty() {
        return;
    }
    for (step, text) in texts {
        let paths = places.paths_in(&text);
        for (target, forms) in &near {
            // In the words of the plan, or a path in any other spelling.
            if contains_whole(&text, target) || !paths.is_disjoint(forms) {
                found.push(format!(
                    "subtask {} names `{}`, which must not be used; take another input, and do not name this one at all",
                    step.number,
                    quote(target)
                ));
            }
        }
    }
}

pub(super) fn scope_left(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    for step in &plan.steps {
        for path in step.scope.iter().filter(|path| !ground.allowed.covers(path)) {
            found.push(format!(
                "subtask {}: its scope `{}` leaves what the user allowed ({}); narrow it or leave it out",
                step.number,
                quote(path),
                ground.allowed
            ));
        }
    }
}
