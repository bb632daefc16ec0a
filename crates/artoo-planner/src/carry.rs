//! Work that matched before a directive: what of it still counts, and which steps of a new plan it stands for (design §6).
//!
//! Owns the invalidation. R4b has the outcomes and counts only what it saw to match itself; here it is decided what a
//! new plan need not do again. Knows no state of a task.

use artoo_protocol::ids::SubTaskId;
use artoo_protocol::message::{Carried, Criterion, Directive, OutcomeStatus, PlanDirective, SubTaskOutcome, ToolCall};

use crate::dispatch::HandedOn;
use crate::parse::{Plan, Step, renumber};
use crate::sameness::{Bag, Given, Spoken};
use crate::words::normalised;

/// A subtask that matched.
#[derive(Clone, Debug)]
pub struct Matched {
    /// Made by code.
    pub subtask_id: SubTaskId,
    /// The round in which it ran.
    pub round: u32,
    /// What it was.
    pub step: Step,
    /// What it gave.
    pub handed_on: HandedOn,
}

/// Matched work after a directive.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// What counts, in the order in which it was done.
    pub work: Vec<Matched>,
    /// What does not count any more, and why.
    pub dropped: Vec<(SubTaskId, String)>,
}

/// Whether everything matched and the whole was wrong all the same.
pub fn is_rejected(outcomes: &[SubTaskOutcome]) -> bool {
    !outcomes.is_empty() && outcomes.iter().all(|o| o.status == OutcomeStatus::Matched)
}

/// Sorts matched work by whether the directive leaves it standing.
///
/// Nothing stands after a rejection, when everything matched and the whole was wrong all the same. Else an outcome falls
/// that R4b does not count as matched, that used a tool or an input which the directive blocks, or that was built on one
/// that falls.
pub fn sort(directive: &PlanDirective, mut matched: Vec<Matched>) -> Kept {
    matched.sort_by_key(|work| (work.round, work.step.sequence));
    let outcomes = &directive.outcomes;
    let rejected = is_rejected(outcomes);
    let mut kept = Kept::default();
    let mut broken: Option<(u32, u32)> = None;
    for work in matched {
        let place = (work.round, work.step.sequence);
        let outcome = outcomes.iter().find(|outcome| outcome.subtask_id == work.subtask_id);
        let why = match outcome {
            _ if rejected => Some("the result as a whole was rejected".to_owned()),
            None => Some("it is not among the outcomes".to_owned()),
            Some(outcome) => fallen(directive, outcome),
        };
        let why = why.or_else(|| {
            let built_on = broken.is_some_and(|broken| broken < place);
            built_on.then(|| "it was built on work that does not count any more".to_owned())
        });
        match why {
            Some(why) => {
                broken = broken.or(Some(place));
                kept.dropped.push((work.subtask_id, why));
            }
            None => kept.work.push(work),
        }
    }
    kept
}

fn fallen(directive: &PlanDirective, outcome: &SubTaskOutcome) -> Option<String> {
    if outcome.status != OutcomeStatus::Matched {
        return Some("it did not match".to_owned());
    }
    let ran = || outcome.tool_calls.iter().filter(|call| !call.not_run);
    let tool = directive
        .blocked_tools
        .iter()
        .find(|blocked| ran().any(|call| uses(call, blocked)));
    let target = directive
        .blocked_targets
        .iter()
        .find(|blocked| ran().any(|call| call.target().trim() == blocked.trim()));
    tool.or(target)
        .map(|blocked| format!("it used {blocked}, which is blocked now"))
}

/// Whether a call used a tool, plain or qualified by program.
pub fn uses(call: &ToolCall, tool: &str) -> bool {
    call.tool == tool
        || tool
            .split_once(':')
            .is_some_and(|(base, program)| base == call.tool && call.programs.iter().any(|run| run == program))
}

/// A plan with the work that it carries over.
#[derive(Clone, Debug, Default)]
pub struct Carrying {
    /// The work.
    pub work: Vec<Matched>,
    /// How many steps of the answer it stands for.
    pub stood_for: usize,
    /// The same for the manifest.
    pub named: Vec<Carried>,
}

/// Takes out of a plan what kept work stands for: nearly the same step, measured by nothing more than was already shown.
/// A step that does kept work once more under other criteria replaces it.
pub fn carry(plan: &mut Plan, kept: &Kept, directive: Option<Directive>, given: &Given) -> Carrying {
    let mut carrying = Carrying::default();
    if kept.work.is_empty() {
        return carrying;
    }
    let bag = |step: &Step| Bag::of(&[Spoken::of(step)], given);
    let mut bags: Vec<Bag> = plan.steps.iter().map(bag).collect();
    for (index, work) in kept.work.iter().enumerate() {
        if plan.keep.as_ref().is_some_and(|keep| !keep.contains(&(index + 1))) {
            continue;
        }
        let done = bag(&work.step);
        let repeated = bags.iter().position(|bag| bag.is_nearly(&done));
        let stands = repeated
            .and_then(|at| plan.steps.get(at))
            .map(|step| step.criteria.iter().all(|criterion| shown(criterion, &work.step)));
        let round = work.round;
        let demanded = directive.map_or("the directive", Directive::name);
        let why = match (repeated, stands) {
            (Some(at), Some(true)) => {
                let step = plan.steps.remove(at);
                bags.remove(at);
                carrying.stood_for += 1;
                format!(
                    "it matched in round {round}, and stands for step {} of the new plan",
                    step.number
                )
            }
            (Some(_), Some(false)) => continue,
            (None, _) | (_, None) => format!("it matched in round {round}, and {demanded} leaves it standing"),
        };
        carrying.named.push(Carried {
            subtask_id: work.subtask_id.clone(),
            intent: work.step.intent.clone(),
            why,
        });
        carrying.work.push(work.clone());
    }
    renumber(&mut plan.steps);
    carrying
}

/// Whether a criterion is one of those that the step met.
fn shown(criterion: &Criterion, step: &Step) -> bool {
    let words = normalised(&criterion.criterion);
    step.criteria
        .iter()
        .any(|met| normalised(&met.criterion) == words && met.check == criterion.check)
}
