//! What the controller says to people: the rationale of a directive and the text of an ending (design §13, §14).
//!
//! Owns wording by code alone; a model may word an abandoned task better, and this is what stands when it does not.

use std::fmt::Write as _;

use artoo_protocol::message::{Cause, Directive, PartialResult, Urgency};
use artoo_protocol::text::{head_tail, one_line};

use crate::blocked::Blocked;
use crate::control::Round;
use crate::digest::{Digest, LINES_MAX};
use crate::signals::{Failure, Ground, Tally};

/// Longest part of a model's wording that is passed on, in characters.
const PART_MAX: usize = 4_000;

/// Which criterion drove D, what the trend was, what is asked of the planner, and why.
pub fn rationale(round: &Round, directive: Directive, tally: &Tally<'_>, blocked: &Blocked) -> String {
    let mut text = format!(
        "{} of {} criteria are not met (D = {:.2})",
        tally.failures.len(),
        tally.total,
        round.loss.d.get(),
    );
    match tally.driver() {
        Some(Failure { criterion, ground, .. }) => {
            let ground = match ground {
                Ground::Judged => "",
                Ground::Unjudged => ", whose subtask failed before it could be judged",
                Ground::NotRun => ", whose subtask was not started",
            };
            let _ = write!(
                text,
                ", most of all {} ",
                stopped(format!("“{}”{ground}", one_line(criterion, 200)))
            );
        }
        None => text.push_str("; the merged result was rejected all the same. "),
    }
    let _ = write!(text, "{} {} ", trend(round), demand(directive, round));
    let forbidden: Vec<&String> = blocked.tools.iter().chain(&blocked.targets).collect();
    if !forbidden.is_empty() {
        let shown: Vec<String> = forbidden
            .iter()
            .take(LINES_MAX)
            .map(|item| one_line(item, 80))
            .collect();
        let _ = write!(text, "Not again: {}", shown.join(", "));
        match forbidden.len().saturating_sub(LINES_MAX) {
            0 => text.push('.'),
            more => {
                let _ = write!(text, " and {more} more.");
            }
        }
    }
    text.trim_end().to_owned()
}

/// With a full stop, unless it ends a sentence already, inside quotation marks too.
pub(crate) fn stopped(mut text: String) -> String {
    let bare = text.trim_end().trim_end_matches(['”', '"', '`', ')']);
    if !bare.ends_with(['.', '!', '?', '…', '。', '！', '？']) {
        text.push('.');
    }
    text
}

fn trend(round: &Round) -> String {
    let size = round.grad_l.get().abs();
    let apart = format!(
        "(∇L = {:+.2}, of which the task {:+.2})",
        round.grad_l.get(),
        round.grad_task.get()
    );
    match (round.number, round.urgency) {
        (1, _) => "This is the first round, so there is no trend yet.".to_owned(),
        (_, Urgency::Lower) => format!("The loss fell by {size:.2} {apart}."),
        (_, Urgency::Higher) => format!("The loss rose by {size:.2} {apart}."),
        (_, Urgency::Neutral) => format!("The loss hardly moved {apart}."),
    }
}

fn demand(directive: Directive, round: &Round) -> String {
    let p = round.loss.p.get();
    match directive {
        Directive::Refine => format!(
            "The environment stood in the way, not the approach (P = {p:.2}), and there is movement: keep the method, tighten its parameters."
        ),
        Directive::ChangePath => format!(
            "The environment stood in the way, not the approach (P = {p:.2}), and nothing moves: keep the method, take another target."
        ),
        Directive::ChangeApproach => {
            format!("The approach itself is wrong (P = {p:.2}), whatever the trend: take another method.")
        }
        Directive::BreakSymmetry => format!(
            "The approach itself is wrong (P = {p:.2}) and nothing moves: take a class of tools that was not tried before."
        ),
    }
}

/// Why a task ended, as a sentence without its full stop.
pub fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Met => "every criterion was met",
        Cause::WithinThreshold => "what is missing is small enough to stop here",
        Cause::Answered => "it was answered directly",
        Cause::Budget => "its budget is used up",
        Cause::Resources => "the rounds and the time that it may take are used up",
        Cause::Divergence => "the result got worse twice in a row",
        Cause::ReplansExhausted => "every allowed change of plan was tried and failed",
        Cause::Infeasible => "every failing step reported that it cannot be done",
        Cause::PlanningFailed => "no valid plan could be made",
        Cause::Refused => "an action that it needs was not allowed",
        Cause::NoModel => "no language model could be reached or understood it",
        Cause::Aborted => "it was stopped",
    }
}

/// The summary of a success: what is there, and by name what is not.
pub fn success(summary: &str, digest: &Digest) -> String {
    let mut text = if summary.trim().is_empty() {
        "Done, except for what follows.".to_owned()
    } else {
        format!("Done, except for what follows. {}", one_line(summary, 600))
    };
    list(&mut text, "Not met", &digest.unmet);
    list(&mut text, "Not verified", &digest.unverified);
    text
}

/// The text of an abandoned task by code: why, what was achieved, what failed, what was tried, what to try next.
pub fn abandoned(cause: Cause, detail: &str, digest: &Digest) -> String {
    let mut text = opening(cause, detail);
    list(&mut text, "Achieved", &digest.achieved);
    list(&mut text, "Failed", &digest.failed);
    list(&mut text, "Tried", &digest.tried);
    list(&mut text, "To try next", &next_steps(cause, digest));
    text
}

/// The same in the words of a model, which were asked for beforehand.
pub fn abandoned_in_words(cause: Cause, detail: &str, words: &PartialResult, digest: &Digest) -> String {
    let part = |text: &str, else_: &[String]| {
        if text.trim().is_empty() {
            else_.to_vec()
        } else {
            vec![head_tail(text.trim(), PART_MAX)]
        }
    };
    let steps: Vec<String> = words
        .next_steps
        .iter()
        .filter(|step| !step.trim().is_empty())
        .map(|step| one_line(step, 400))
        .collect();
    let mut text = opening(cause, detail);
    list(&mut text, "Achieved", &part(&words.achieved, &digest.achieved));
    list(&mut text, "Failed", &part(&words.failed, &digest.failed));
    list(
        &mut text,
        "To try next",
        &if steps.is_empty() {
            next_steps(cause, digest)
        } else {
            steps
        },
    );
    text
}

fn opening(cause: Cause, detail: &str) -> String {
    let detail = one_line(detail, 600);
    if detail.is_empty() {
        format!("Not achieved: {}.", why(cause))
    } else {
        stopped(format!("Not achieved: {}. {detail}", why(cause)))
    }
}

fn list(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:");
    for line in lines.iter().take(LINES_MAX) {
        let _ = write!(text, "\n- {line}");
    }
    if let more @ 1.. = lines.len().saturating_sub(LINES_MAX) {
        let _ = write!(text, "\n- … and {more} more");
    }
}

fn next_steps(cause: Cause, digest: &Digest) -> Vec<String> {
    if cause == Cause::Refused && !digest.grants.is_empty() {
        let flags: Vec<String> = digest.grants.iter().map(|grant| flag(grant)).collect();
        return vec![format!(
            "Allow the action when asked, or grant it beforehand: {}",
            flags.join(" ")
        )];
    }
    let first = match cause {
        Cause::Budget | Cause::Resources => "Allow more time or a larger budget, or ask for a smaller part of it.",
        Cause::Divergence | Cause::ReplansExhausted => {
            "Name the method or the place to be used, or ask for it in smaller steps."
        }
        Cause::Infeasible => "Check whether what it needs exists and can be reached, then ask again.",
        Cause::PlanningFailed => "Say it in other words, or in smaller steps.",
        Cause::Refused => "Allow the action when asked, or grant it beforehand.",
        Cause::NoModel => "Configure a model that can be reached, and run it again.",
        Cause::Aborted | Cause::Met | Cause::WithinThreshold | Cause::Answered => return Vec::new(),
    };
    let mut steps = vec![first.to_owned()];
    // Where a step could not or must not be done, nobody looked whether its criteria hold: the file that is to exist may be there.
    let was_judged = matches!(
        cause,
        Cause::Budget | Cause::Resources | Cause::Divergence | Cause::ReplansExhausted
    );
    if let Some(unmet) = digest.unmet.first().filter(|_| was_judged) {
        steps.push(format!("Begin with what was not met: {}", one_line(unmet, 200)));
    }
    steps
}

/// As it is written on a command line.
fn flag(grant: &str) -> String {
    format!("--allow '{}'", grant.replace('\'', "'\\''"))
}

/// The lesson of an ending for memory: what worked or failed, with which calls, and why.
pub fn lesson(cause: Cause, intent: &str, detail: &str, digest: &Digest) -> String {
    let tried = if digest.tried.is_empty() {
        "without any tool".to_owned()
    } else {
        digest.tried.iter().take(5).cloned().collect::<Vec<_>>().join("; ")
    };
    let intent = one_line(intent, 120);
    match cause {
        Cause::Met | Cause::Answered => stopped(format!("Worked for “{intent}”: {tried}")),
        Cause::WithinThreshold => format!(
            "Worked nearly for “{intent}”: {} Left open: {}",
            stopped(tried),
            stopped(digest.unmet.join("; "))
        ),
        Cause::Budget
        | Cause::Resources
        | Cause::Divergence
        | Cause::ReplansExhausted
        | Cause::Infeasible
        | Cause::PlanningFailed
        | Cause::Refused
        | Cause::NoModel
        | Cause::Aborted => {
            let failed = if digest.failed.is_empty() {
                one_line(detail, 240)
            } else {
                digest.failed.join("; ")
            };
            format!(
                "Did not work for “{intent}”, because {}. Tried: {} Failed: {}",
                why(cause),
                stopped(tried),
                stopped(failed)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_looked_at_is_not_called_missing() {
        let digest = Digest {
            unmet: vec!["the file notes.txt exists".into()],
            ..Digest::default()
        };
        for (cause, names) in [
            (Cause::Refused, false),
            (Cause::Infeasible, false),
            (Cause::PlanningFailed, false),
            (Cause::ReplansExhausted, true),
            (Cause::Resources, true),
        ] {
            let text = abandoned(cause, "", &digest);
            assert_eq!(text.contains("notes.txt"), names, "{cause:?}: {text}");
            assert!(text.contains("To try next"), "{text}");
        }
    }
}
