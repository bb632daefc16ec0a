//! What the next plan must not use: the calls that are implicated in a failure, as tools or as targets (design §13).
//!
//! Only calls that failed themselves, or whose output a failed verdict cites, are implicated; a read that worked is not, and
//! neither is a call that the gate refused: it shows nothing about its tool, and the gate itself keeps refusing it.
//! A shell is never blocked as a whole, only with the program that it ran, and of a pipeline not with those that merely
//! pass on. Owns the choice of what is blocked; the gate
//! that refuses it is the executor's.

use artoo_protocol::message::{CriterionVerdict, Directive, OutcomeStatus, SubTaskOutcome, ToolCall, Urgency, Verdict};
use artoo_protocol::tool::EffectClass;

use crate::params::BlockedTargets;

/// Most tools that are kept blocked for one task; the oldest go first.
const TOOLS_MAX: usize = 64;
/// Most targets that are kept blocked for one task; the oldest go first.
const TARGETS_MAX: usize = 256;
/// Longest target that is blocked, in bytes: a longer input is a document, not a place.
const TARGET_BYTES_MAX: usize = 4_096;
/// A line of output shorter than this, in characters, is found in any evidence by chance.
const LINE_MIN: usize = 6;
/// A quoted fragment of evidence shorter than this, in characters, is found in any output by chance.
const QUOTE_MIN: usize = 3;
/// Lines of one output that are compared with the evidence.
const LINES_MAX: usize = 200;
/// Most implicated calls of one round that are looked at.
const CALLS_MAX: usize = 256;

/// Whether a subtask failed by its own doing: not for lack of a model, and not because a person said no.
pub fn failed_by_itself(outcome: &SubTaskOutcome) -> bool {
    outcome.status == OutcomeStatus::Failed && !outcome.infrastructure && !outcome.refused
}

/// The calls that are implicated in the failures of a round, in order.
pub fn implicated<'a>(outcomes: &'a [SubTaskOutcome], task_verdicts: &[CriterionVerdict]) -> Vec<&'a ToolCall> {
    let cited = |verdicts: &[CriterionVerdict], call: &ToolCall| {
        verdicts
            .iter()
            .any(|verdict| verdict.verdict == Verdict::Fail && cites(&verdict.evidence, &call.output))
    };
    outcomes
        .iter()
        .flat_map(|outcome| {
            let failing = failed_by_itself(outcome);
            let ran = outcome.tool_calls.iter().filter(|call| !call.not_run);
            ran.filter(move |call| {
                failing && (call.failed() || cited(&outcome.criteria_verdicts, call)) || cited(task_verdicts, call)
            })
        })
        .take(CALLS_MAX)
        .collect()
}

/// Whether a verdict's evidence quotes an output: one contains the other, a whole line, or a quoted fragment of it.
pub fn cites(evidence: &str, output: &str) -> bool {
    let (evidence, output) = (evidence.trim(), output.trim());
    if evidence.is_empty() || output.is_empty() {
        return false;
    }
    let long = |text: &str, least: usize| text.chars().nth(least - 1).is_some();
    if long(evidence, LINE_MIN) && output.contains(evidence) {
        return true;
    }
    let line_quoted = output
        .lines()
        .take(LINES_MAX)
        .map(str::trim)
        .any(|line| long(line, LINE_MIN) && evidence.contains(line));
    // Every second piece between quotation marks stands inside them.
    line_quoted
        || ['"', '`']
            .into_iter()
            .flat_map(|mark| evidence.split(mark).skip(1).step_by(2))
            .map(str::trim)
            .any(|quote| long(quote, QUOTE_MIN) && output.contains(quote))
}

/// The names under which a call is blocked: the tool, or for a shell each program that it ran (`shell:curl`).
pub fn tool_names(call: &ToolCall) -> Vec<String> {
    if call.programs.is_empty() {
        return match (
            call.tool.as_str(),
            call.input.get("command").and_then(serde_json::Value::as_str),
        ) {
            ("shell", command) => command
                .and_then(first_program)
                .map(|program| format!("shell:{program}"))
                .into_iter()
                .collect(),
            (tool, _) => vec![tool.to_owned()],
        };
    }
    call.programs
        .iter()
        .map(|program| format!("{}:{program}", call.tool))
        .collect()
}

/// Programs that only pass on what others give them. In a pipeline it is the others that were the wrong idea.
const PASSERS: &[&str] = &[
    "[", "cat", "cd", "column", "cut", "echo", "false", "fold", "head", "less", "more", "nl", "paste", "printf", "pwd",
    "rev", "sort", "tac", "tail", "tee", "test", "tr", "true", "uniq", "wc", "xargs",
];

/// The names under which an implicated call is blocked.
///
/// Of several programs those that a failing call's output names as its complainer (`curl: (6) …`); else those that do
/// more than pass on; all of them where there is no other.
pub fn blamed(call: &ToolCall) -> Vec<String> {
    let names = |programs: Vec<&String>| programs.iter().map(|p| format!("{}:{p}", call.tool)).collect();
    if call.programs.len() > 1 {
        let complaining = programs_where(call, |program| call.failed() && complains(program, &call.output));
        let working = programs_where(call, |program| !PASSERS.contains(&program));
        for some in [complaining, working] {
            if !some.is_empty() {
                return names(some);
            }
        }
    }
    tool_names(call)
}

fn programs_where(call: &ToolCall, holds: impl Fn(&str) -> bool) -> Vec<&String> {
    call.programs.iter().filter(|program| holds(program)).collect()
}

/// Whether a line of the output begins as this program's complaints do: `sort: …`, `bash: line 1: curl: …`.
fn complains(program: &str, output: &str) -> bool {
    output.lines().take(LINES_MAX).any(|line| {
        let mut parts = line.split(": ").collect::<Vec<_>>();
        // What comes last is the complaint itself.
        parts.pop();
        parts
            .iter()
            .take(3)
            .any(|part| part.trim().rsplit('/').next() == Some(program))
    })
}

/// The first word of a command that is no assignment, without its folder: for records that carry no parsed programs.
fn first_program(command: &str) -> Option<&str> {
    let word = command.split_whitespace().find(|word| !word.contains('='))?;
    word.rsplit('/').next().filter(|name| !name.is_empty())
}

/// The target of a call if it can be blocked.
pub fn blockable_target(call: &ToolCall) -> Option<String> {
    let target = call.target().trim().to_owned();
    (!target.is_empty() && target.len() <= TARGET_BYTES_MAX).then_some(target)
}

/// What one directive forbids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// Tools, plain or qualified by program.
    pub tools: Vec<String>,
    /// Inputs.
    pub targets: Vec<String>,
}

/// Everything that was implicated so far in one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    tools: Vec<String>,
    targets: Vec<String>,
}

impl History {
    /// Adds a round and says what its directive forbids.
    ///
    /// A wrong approach blocks tools, an obstacle blocks targets; both stay in the history, whatever the directive of this
    /// round uses. Worsening widens: to every tool of the failing subtasks. Improving narrows: to this round alone, and to
    /// tools whose calls failed themselves. `offered` are the tools that exist; should all of them be blocked, the oldest
    /// becomes free again (an empty list means that they are not known).
    pub fn block(
        &mut self,
        rule: BlockedTargets,
        directive: Directive,
        urgency: Urgency,
        outcomes: &[SubTaskOutcome],
        implicated: &[&ToolCall],
        offered: &[String],
    ) -> Blocked {
        let to_blame = |call: &&&ToolCall| match rule {
            BlockedTargets::Implicated => true,
            BlockedTargets::Failed => call.failed(),
        };
        let latest_targets = distinct(
            implicated
                .iter()
                .filter(to_blame)
                .filter_map(|call| blockable_target(call)),
        );
        extend(&mut self.targets, latest_targets.iter().cloned(), TARGETS_MAX);
        match directive {
            Directive::ChangePath | Directive::Refine => Blocked {
                tools: Vec::new(),
                targets: match urgency {
                    Urgency::Lower => latest_targets,
                    Urgency::Neutral | Urgency::Higher => self.targets.clone(),
                },
            },
            Directive::ChangeApproach | Directive::BreakSymmetry => Blocked {
                tools: leave_one(self.block_tools(urgency, outcomes, implicated), offered),
                targets: Vec::new(),
            },
        }
    }

    fn block_tools(&mut self, urgency: Urgency, outcomes: &[SubTaskOutcome], implicated: &[&ToolCall]) -> Vec<String> {
        let names = |calls: &[&ToolCall]| distinct(calls.iter().flat_map(|call| blamed(call)));
        let latest = match urgency {
            Urgency::Lower => {
                let failed: Vec<&ToolCall> = implicated.iter().copied().filter(|call| call.failed()).collect();
                names(&failed)
            }
            Urgency::Neutral => names(implicated),
            Urgency::Higher => {
                let mut calls = implicated.to_vec();
                calls.extend(
                    outcomes
                        .iter()
                        .filter(|outcome| failed_by_itself(outcome))
                        .flat_map(|outcome| &outcome.tool_calls)
                        .filter(|call| !call.not_run && call.effect != EffectClass::Read),
                );
                names(&calls)
            }
        };
        extend(&mut self.tools, latest.iter().cloned(), TOOLS_MAX);
        match urgency {
            Urgency::Lower => latest,
            Urgency::Neutral | Urgency::Higher => self.tools.clone(),
        }
    }
}

/// Frees the oldest blocked tool when all that are offered are blocked.
fn leave_one(mut blocked: Vec<String>, offered: &[String]) -> Vec<String> {
    if offered.iter().all(|tool| blocked.contains(tool))
        && let Some(oldest) = blocked.iter().position(|tool| offered.contains(tool))
    {
        blocked.remove(oldest);
    }
    blocked
}

fn distinct(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn extend(list: &mut Vec<String>, items: impl Iterator<Item = String>, most: usize) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
    let surplus = list.len().saturating_sub(most);
    list.drain(..surplus);
}
