//! What each directive demands of the next plan beyond what every plan must satisfy (design §6, §13).
//!
//! Owns the rules that depend on the directive. They refuse only what certainly is not the change demanded: a plan that
//! might be is tried.

use artoo_protocol::message::Directive;

use crate::parse::Plan;
use crate::validate::{Ground, quote, unqualified};

/// Below this a plan shares so little with the one before that `refine` cannot mean it.
const LITTLE_IN_COMMON: f64 = 0.5;

/// `change_approach` and `break_symmetry`: the plan must not be a failed one in other words.
pub fn nearly_repeated(ground: &Ground<'_>, _: &Plan, found: &mut Vec<String>) {
    let Some(Directive::ChangeApproach | Directive::BreakSymmetry) = ground.directive else {
        return;
    };
    let bag = &ground.work.bag;
    let nearest = ground.failed_plans.iter().filter(|failed| bag.is_nearly(&failed.bag));
    if let Some(sameness) = nearest.map(|failed| bag.sameness(&failed.bag)).max_by(f64::total_cmp) {
        found.push(format!(
            "{:.0} % of its words are those of a plan that failed, with the same tools; change how it is done, not how it is \
             said",
            (100.0 * sameness).floor()
        ));
    }
}

/// `break_symmetry`: at least one tool, or program of the shell, that was not tried. A plan that leaves its tools or its
/// programs open may bring one.
pub fn nothing_new(ground: &Ground<'_>, plan: &Plan, found: &mut Vec<String>) {
    if ground.directive != Some(Directive::BreakSymmetry) || ground.tried.is_empty() {
        return;
    }
    let open = |tool: &str| {
        let programs = format!("{tool}:");
        ground.tried.iter().any(|tried| tried.starts_with(&programs))
    };
    let new = |tool: &String| !ground.tried.contains(tool) || open(tool);
    let mut named = plan.steps.iter().flat_map(|step| &step.tools).peekable();
    let leaves_open = plan.steps.iter().any(|step| step.tools.is_empty());
    if !leaves_open && named.peek().is_some() && !named.any(new) {
        found.push(format!(
            "every tool that it names was tried by what failed ({}); break_symmetry asks for one that was not",
            quote(&ground.tried.join(", "))
        ));
    }
}

/// `refine`: the approach stays, only its parameters change.
pub fn approach_left(ground: &Ground<'_>, _: &Plan, found: &mut Vec<String>) {
    if ground.directive != Some(Directive::Refine) {
        return;
    }
    let Some(last) = ground.failed_plans.last() else {
        return;
    };
    let (new, old) = (ground.work.bag.tools(), last.bag.tools());
    let shared = new
        .iter()
        .any(|tool| old.iter().any(|before| unqualified(before) == unqualified(tool)));
    if !new.is_empty() && !old.is_empty() && !shared && ground.work.bag.sameness(&last.bag) < LITTLE_IN_COMMON {
        found.push(format!(
            "refine keeps the approach, which used {}; change its parameters instead",
            quote(&old.join(", "))
        ));
    }
}
