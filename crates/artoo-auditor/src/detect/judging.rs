//! Judgements that code forbids: a model asked where none may decide, a success over a rejection, a claim without evidence
//! (design §10, §11, §12).

use std::collections::BTreeSet;

use artoo_protocol::message::{
    Ending, ExecutionStatus, Message, Mode, OutcomeStatus, SubTaskOutcome, Verdict, VerdictSource,
};
use artoo_protocol::{Act, Role, SubTaskId};

use super::{Seen, TaskDetector};

/// A model call of a validator at a point where code has decided already.
#[derive(Clone, Debug, Default)]
pub struct ForbiddenModelCall {
    /// Whether everything of the task was seen in this process; else nothing can be said.
    from_start: bool,
    /// Attempts that a model may judge.
    waiting: BTreeSet<SubTaskId>,
    planned: BTreeSet<SubTaskId>,
    matched: BTreeSet<SubTaskId>,
}

impl TaskDetector for ForbiddenModelCall {
    const NAME: &'static str = "forbidden_model_call";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let envelope = match seen {
            Seen::Envelope(envelope) => envelope,
            Seen::Deed(_) if !self.from_start => return None,
            Seen::Deed(deed) => {
                return match (&deed.act, deed.role) {
                    (Act::ModelAsked { .. }, Role::R4a) if self.waiting.is_empty() => {
                        Some("R4a asked a model although no attempt was there that a model may judge".to_owned())
                    }
                    (Act::ModelAsked { .. }, Role::R4b) if !self.planned.is_subset(&self.matched) => {
                        Some("R4b asked a model although not every subtask matched".to_owned())
                    }
                    _ => None,
                };
            }
        };
        if matches!(envelope.payload, Message::UserInput(_)) {
            self.from_start = true;
        } else if let Message::DispatchManifest(manifest) = &envelope.payload {
            self.planned = manifest.subtask_ids.iter().cloned().collect();
        } else if let Message::ExecutionResult(result) = &envelope.payload {
            if result.status != ExecutionStatus::Failed && !result.infrastructure {
                self.waiting.insert(result.subtask_id.clone());
            }
        } else if let Message::CorrectionSignal(signal) = &envelope.payload {
            self.waiting.remove(&signal.subtask_id);
        } else if let Message::SubTaskOutcome(outcome) = &envelope.payload {
            self.waiting.remove(&outcome.subtask_id);
            if outcome.status == OutcomeStatus::Matched {
                self.matched.insert(outcome.subtask_id.clone());
            }
        }
        None
    }
}

/// An ending that is called good although the merged result was rejected.
#[derive(Clone, Debug, Default)]
pub struct RejectedSuccess {
    rejected: bool,
}

impl TaskDetector for RejectedSuccess {
    const NAME: &'static str = "rejected_success";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::ReplanRequest(request) = &envelope.payload {
            let all_matched = request.outcomes.iter().all(|o| o.status == OutcomeStatus::Matched);
            self.rejected = !request.outcomes.is_empty() && all_matched;
        } else if matches!(envelope.payload, Message::OutcomeSummary(_)) {
            self.rejected = false;
        } else if let Message::FinalResult(result) = &envelope.payload {
            let good = matches!(result.directive, Ending::Accept | Ending::Success);
            return (self.rejected && good)
                .then(|| "the task ended as a success although R4b had rejected the merged result".to_owned());
        }
        None
    }
}

/// A subtask called matched without what shows it.
#[derive(Clone, Debug, Default)]
pub struct ClaimWithoutEvidence;

impl TaskDetector for ClaimWithoutEvidence {
    const NAME: &'static str = "claim_without_evidence";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::SubTaskOutcome(outcome) = &envelope.payload {
            let what = unfounded(outcome)?;
            return Some(format!("subtask {} counts as matched {what}", outcome.subtask_id));
        }
        if let Message::FinalResult(result) = &envelope.payload {
            let unmet = result.unmet.len();
            return (result.directive == Ending::Accept && unmet > 0)
                .then(|| format!("the task was accepted although it names {unmet} unmet criteria"));
        }
        None
    }
}

fn unfounded(outcome: &SubTaskOutcome) -> Option<&'static str> {
    if outcome.status != OutcomeStatus::Matched {
        return None;
    }
    let verdicts = &outcome.criteria_verdicts;
    if verdicts.is_empty() || verdicts.len() < outcome.success_criteria.len() {
        return Some("without a verdict on every criterion");
    }
    if verdicts.iter().any(|verdict| verdict.verdict == Verdict::Fail) {
        return Some("although a criterion failed");
    }
    let acted = outcome.tool_calls.iter().any(|call| !call.not_run);
    let on_word = |verdict: &artoo_protocol::message::CriterionVerdict| {
        verdict.mode == Mode::Verifiable && verdict.source == VerdictSource::Model
    };
    (!acted && verdicts.iter().any(on_word)).then_some("on a model's word: a verifiable criterion, and no tool ran")
}
