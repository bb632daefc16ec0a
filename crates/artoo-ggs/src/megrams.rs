//! What the controller gives to memory: the quantisation matrix and the lessons written by it (design §15).
//!
//! An action writes one memory per (tool, target) that failed, an ending one for the intent, and a round that worked after
//! a broken symmetry one per tool that did. Owns what is written; how it fades and what it leads to is memory's matter.
//! Aborts, refusals, missing models and spent tokens or money say nothing about an approach and write nothing.

use artoo_protocol::message::{
    Cause, Directive, Level, MacroState, Megram, OutcomeStatus, SubTaskOutcome, ToolCall, intent_space,
};
use artoo_protocol::text::one_line;
use artoo_protocol::{DecayPerDay, Magnitude, MegramId, TaskId, Timestamp, Valence};

use crate::blocked::{blamed, blockable_target, tool_names};
use crate::words::stopped;

/// Where memories of whole tasks lie.
const HERE: &str = "env:local";
/// Most memories of single calls that one round writes.
const CALLS_MAX: usize = 32;
/// Longest lesson in characters.
const LESSON_MAX: usize = 600;
/// Longest target in an entity, in characters.
const ENTITY_MAX: usize = 512;

/// One row of the quantisation matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantum {
    /// Magnitude.
    pub f: Magnitude,
    /// Valence.
    pub sigma: Valence,
    /// Decay per day.
    pub k: DecayPerDay,
}

/// The quantisation matrix; `None` for what is not the controller's to write.
#[rustfmt::skip]
pub fn matrix(state: MacroState) -> Option<Quantum> {
    let (f, sigma, k) = match state {
        MacroState::Abandon        => (0.95, -1.0, 0.05),
        MacroState::Accept         => (0.90,  1.0, 0.05),
        MacroState::ChangeApproach => (0.85, -1.0, 0.05),
        MacroState::Success        => (0.80,  1.0, 0.05),
        MacroState::BreakSymmetry  => (0.75,  1.0, 0.05), // the breakthrough, written in the round after
        MacroState::ChangePath     => (0.30,  0.0, 0.20),
        MacroState::Refine         => (0.10,  0.5, 0.50),
        MacroState::Remember       => return None,
    };
    Some(Quantum {
        f: Magnitude::clamped(f),
        sigma: Valence::new(sigma).unwrap_or_default(),
        k: DecayPerDay::new(k).unwrap_or_default(),
    })
}

/// The row by which a directive remembers what it turns away from: breaking the symmetry blacklists like a change of
/// approach, its own row is kept for what works afterwards.
pub const fn row_of(directive: Directive) -> MacroState {
    match directive {
        Directive::Refine => MacroState::Refine,
        Directive::ChangePath => MacroState::ChangePath,
        Directive::ChangeApproach | Directive::BreakSymmetry => MacroState::ChangeApproach,
    }
}

/// Whether an ending teaches something about the approach.
pub const fn teaches(cause: Cause) -> bool {
    match cause {
        Cause::Met
        | Cause::WithinThreshold
        | Cause::Resources
        | Cause::Divergence
        | Cause::ReplansExhausted
        | Cause::Infeasible
        | Cause::PlanningFailed => true,
        // `Budget` is decided where it is known which budget it was.
        Cause::Answered | Cause::Budget | Cause::Refused | Cause::NoModel | Cause::Aborted => false,
    }
}

/// Writes the memories of one task and numbers them.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The task.
    pub task_id: &'a TaskId,
    /// Its goal.
    pub intent: &'a str,
    /// When.
    pub now: Timestamp,
}

impl Writer<'_> {
    /// One memory per failing (tool, target) of a round that ends in `directive`; `unmet` is the criterion behind it.
    pub fn failures(&self, counter: &mut u64, directive: Directive, calls: &[&ToolCall], unmet: &str) -> Vec<Megram> {
        let state = row_of(directive);
        per_pair(calls, |call, target| {
            let lesson = format!(
                "{} with `{}` {} while: {} Not met: {} Next came {}.",
                blamed(call).join(", "),
                one_line(target, 160),
                what_happened(call),
                stopped(one_line(self.intent, 100)),
                stopped(one_line(unmet, 100)),
                directive.name(),
            );
            self.write(counter, state, tool_space(call), entity(target), &lesson)
        })
    }

    /// One memory per (tool, target) that worked in the round after a broken symmetry, `blocked` ones left out.
    pub fn breakthrough(&self, counter: &mut u64, outcomes: &[SubTaskOutcome], blocked: &[String]) -> Vec<Megram> {
        let calls: Vec<&ToolCall> = outcomes
            .iter()
            // What was carried over worked before the directive, so it is not what the directive brought.
            .filter(|outcome| outcome.status == OutcomeStatus::Matched && outcome.carried_from.is_none())
            .flat_map(|outcome| &outcome.tool_calls)
            .filter(|call| !call.failed() && !tool_names(call).iter().any(|name| blocked.contains(name)))
            .collect();
        per_pair(&calls, |call, target| {
            let lesson = format!(
                "{} with `{}` worked where {} had not, for: {}",
                tool_names(call).join(", "),
                one_line(target, 160),
                if blocked.is_empty() {
                    "the plans before".to_owned()
                } else {
                    one_line(&blocked.join(", "), 100)
                },
                stopped(one_line(self.intent, 100)),
            );
            self.write(
                counter,
                MacroState::BreakSymmetry,
                tool_space(call),
                entity(target),
                &lesson,
            )
        })
    }

    /// The memory of an ending.
    pub fn ending(&self, counter: &mut u64, state: MacroState, lesson: &str) -> Option<Megram> {
        self.write(counter, state, intent_space(self.intent), HERE.to_owned(), lesson)
    }

    fn write(
        &self,
        counter: &mut u64,
        state: MacroState,
        space: String,
        entity: String,
        lesson: &str,
    ) -> Option<Megram> {
        let Quantum { f, sigma, k } = matrix(state)?;
        let id = MegramId::derive(self.now, self.task_id, *counter);
        *counter += 1;
        Some(Megram {
            id,
            level: Level::M,
            created_at: self.now,
            last_recalled_at: None,
            space,
            entity,
            content: one_line(lesson, LESSON_MAX),
            state,
            f,
            sigma,
            k,
            sources: Vec::new(),
            supersedes: None,
            origin: Some(self.task_id.to_string()),
        })
    }
}

/// Calls `write` once for each distinct (tool, target).
fn per_pair(calls: &[&ToolCall], mut write: impl FnMut(&ToolCall, &str) -> Option<Megram>) -> Vec<Megram> {
    let mut seen: Vec<(&str, String)> = Vec::new();
    let mut megrams = Vec::new();
    for call in calls {
        let Some(target) = blockable_target(call) else {
            continue;
        };
        if seen.len() >= CALLS_MAX {
            break;
        }
        if seen.iter().any(|(tool, known)| *tool == call.tool && *known == target) {
            continue;
        }
        megrams.extend(write(call, &target));
        seen.push((&call.tool, target));
    }
    megrams
}

fn tool_space(call: &ToolCall) -> String {
    format!("tool:{}", call.tool)
}

fn entity(target: &str) -> String {
    format!("path:{}", artoo_protocol::text::first_n(target, ENTITY_MAX))
}

/// What became of a call, in a few words.
pub(crate) fn what_happened(call: &ToolCall) -> String {
    match (&call.error, call.exit) {
        (Some(error), _) => format!("failed ({})", one_line(error, 160)),
        (None, _) if call.interrupted => "was interrupted".to_owned(),
        (None, Some(code)) if code != 0 => format!("exited with {code} ({})", one_line(&call.output, 120)),
        (None, Some(_) | None) => format!("gave a wrong result ({})", one_line(&call.output, 120)),
    }
}
