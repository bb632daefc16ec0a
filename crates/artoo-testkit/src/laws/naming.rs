//! Every criterion that did not pass is named in the ending (design §14).
//!
//! Owns its own reading of outcomes and verdicts; shares no code with the controller that has to name them.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::message::{
    Cause, CriterionVerdict, Ending, FinalResult, OutcomeStatus, ReplanRequest, SubTaskOutcome, Verdict,
};
use artoo_protocol::{Envelope, Message};

/// More than a result can name; see the controller's digest.
const NAMES_MAX: usize = 1_000;

/// What R7 knows to have failed.
#[derive(Clone, Default)]
pub(super) struct Naming {
    /// What R4b said and R7 has not taken yet, by sequence number.
    said: BTreeMap<u64, BTreeSet<String>>,
    /// What did not pass in the last round that R7 heard of.
    open: Option<BTreeSet<String>>,
}

impl Naming {
    /// Something is said.
    pub(super) fn said(&mut self, envelope: &Envelope) {
        let open = match &envelope.payload {
            Message::ReplanRequest(ReplanRequest {
                outcomes,
                task_verdicts,
                ..
            }) => not_passed(outcomes, task_verdicts),
            Message::OutcomeSummary(summary) => not_passed(&summary.outcomes, &summary.task_verdicts),
            _ => return,
        };
        self.said.insert(envelope.seq, open);
    }

    /// R7 takes a message.
    pub(super) fn r7_took(&mut self, seq: u64) {
        if let Some(open) = self.said.remove(&seq) {
            self.open = Some(open);
        }
    }

    /// The task ends: what is missing in the lists.
    pub(super) fn ended(&self, result: &FinalResult) -> Vec<String> {
        let named: BTreeSet<&String> = result.unmet.iter().chain(&result.unverified).collect();
        let mut wrongs: Vec<String> = self
            .open
            .iter()
            .flatten()
            .filter(|criterion| !named.contains(criterion) && named.len() < NAMES_MAX)
            .map(|criterion| format!("`{criterion}` did not pass and is not named ({:?})", result.cause))
            .collect();
        if result.directive == Ending::Accept && result.cause == Cause::Met && !result.unmet.is_empty() {
            wrongs.push("accepted with something unmet".to_owned());
        }
        wrongs
    }
}

/// Everything that was declared and has no pass, and every verdict that is none.
fn not_passed(outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict]) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for outcome in outcomes {
        for criterion in &outcome.success_criteria {
            let passed = outcome.status != OutcomeStatus::NotRun
                && outcome
                    .criteria_verdicts
                    .iter()
                    .any(|verdict| verdict.criterion == criterion.criterion && verdict.verdict == Verdict::Pass);
            if !passed {
                open.insert(criterion.criterion.clone());
            }
        }
    }
    let failed = task_verdicts.iter().filter(|verdict| verdict.verdict != Verdict::Pass);
    open.extend(failed.map(|verdict| verdict.criterion.clone()));
    open
}
