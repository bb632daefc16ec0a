//! A round that is closed before everything has come in, or with results that nobody gave (design §11).

use std::collections::BTreeSet;

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{Ending, Message, OutcomeStatus, SubTaskOutcome, VerdictSource};

use super::{Seen, TaskDetector};

/// What R4b has to wait for, and what came.
#[derive(Clone, Debug, Default)]
pub struct FanIn {
    /// Whether everything of the task was seen in this process; else an outcome may have come before.
    from_start: bool,
    /// Subtasks of the round; empty before the first plan and after the round was closed.
    planned: BTreeSet<SubTaskId>,
    /// Those of them that had a deadline: only these can be overdue.
    timed: BTreeSet<SubTaskId>,
    /// Subtasks that R4a spoke the last word on, of all rounds.
    concluded: BTreeSet<SubTaskId>,
    /// Those of them that matched.
    matched: BTreeSet<SubTaskId>,
}

impl FanIn {
    fn close(&mut self, outcomes: &[SubTaskOutcome]) -> Option<String> {
        let planned = std::mem::take(&mut self.planned);
        if planned.is_empty() {
            return None;
        }
        let given = |id: &SubTaskId| outcomes.iter().any(|outcome| outcome.subtask_id == *id);
        let missing = planned.iter().filter(|id| !given(id)).count();
        if missing > 0 {
            return Some(format!(
                "the round was closed without the outcome of {missing} of {} subtasks",
                planned.len()
            ));
        }
        if !self.from_start {
            return None;
        }
        outcomes.iter().find_map(|outcome| {
            let id = &outcome.subtask_id;
            match outcome.status {
                OutcomeStatus::Matched if !self.matched.contains(id) => {
                    Some(format!("R4b counts subtask {id} as matched, R4a never said so"))
                }
                OutcomeStatus::Failed if self.timed.contains(id) && is_overdue(outcome) => None,
                OutcomeStatus::Failed if !self.concluded.contains(id) => {
                    Some(format!("R4b counts subtask {id} as failed, R4a never said so"))
                }
                OutcomeStatus::Matched | OutcomeStatus::Failed | OutcomeStatus::NotRun => None,
            }
        })
    }
}

/// Whether R4b gave this outcome itself, because none had come in time (design §11): nothing was done, and code says so.
fn is_overdue(outcome: &SubTaskOutcome) -> bool {
    let by_rule = |verdict: &artoo_protocol::message::CriterionVerdict| verdict.source == VerdictSource::Rule;
    outcome.infrastructure
        && outcome.gap_trajectory.is_empty()
        && outcome.tool_calls.is_empty()
        && outcome.made.is_empty()
        && outcome.criteria_verdicts.iter().all(by_rule)
}

impl TaskDetector for FanIn {
    const NAME: &'static str = "fan_in_incomplete";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if matches!(envelope.payload, Message::UserInput(_)) {
            self.from_start = true;
        } else if let Message::DispatchManifest(manifest) = &envelope.payload {
            self.planned = manifest.subtask_ids.iter().cloned().collect();
            let timed = manifest.subtasks.iter().filter(|planned| planned.deadline.is_some());
            self.timed = timed.map(|planned| planned.subtask_id.clone()).collect();
        } else if let Message::SubTaskOutcome(outcome) = &envelope.payload {
            self.concluded.insert(outcome.subtask_id.clone());
            if outcome.status == OutcomeStatus::Matched {
                self.matched.insert(outcome.subtask_id.clone());
            }
        } else if let Message::ReplanRequest(request) = &envelope.payload {
            return self.close(&request.outcomes);
        } else if let Message::OutcomeSummary(summary) = &envelope.payload {
            return self.close(&summary.outcomes);
        } else if let Message::FinalResult(result) = &envelope.payload {
            let open = std::mem::take(&mut self.planned).len();
            let good = matches!(result.directive, Ending::Accept | Ending::Success);
            return (open > 0 && good)
                .then(|| format!("the task ended well while a round of {open} subtasks was not closed"));
        }
        None
    }
}
