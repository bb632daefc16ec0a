//! Every criterion that did not pass is named in the ending (design §14).
//!
//! Owns its own reading of plans, outcomes and verdicts; shares no code with the controller that has to name them. R7 answers for what
//! it was told: of a plan that nobody reported on yet, everything that is not known to have passed.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::message::{
    Cause, CriterionVerdict, DispatchManifest, Ending, FinalResult, OutcomeStatus, SubTaskOutcome, Verdict,
};
use artoo_protocol::{Envelope, Message, SubTaskId};

/// More than a result can name; see the controller's digest.
const NAMES_MAX: usize = 1_000;

/// What R7 knows to have failed, or not to have been judged.
#[derive(Clone, Default)]
pub(super) struct Naming {
    /// What was said and R7 has not taken yet, by sequence number.
    said: BTreeMap<u64, Said>,
    /// What the plan that R7 took last declares.
    plan: Declared,
    /// What of the last round that R7 heard of did not pass; none while it has not heard of the present plan's.
    open: Option<BTreeSet<String>>,
    /// What passed, by subtask: R7 need not know it.
    passed: BTreeMap<SubTaskId, BTreeSet<String>>,
}

#[derive(Clone)]
enum Said {
    Plan(Declared),
    Round(Round),
}

/// Everything that a plan declares.
#[derive(Clone, Default)]
struct Declared {
    subtasks: Vec<(SubTaskId, Vec<String>)>,
    task: Vec<String>,
}

/// What came of a round.
#[derive(Clone, Default)]
struct Round {
    /// Declared by an outcome or judged, and without a pass.
    open: BTreeSet<String>,
    passed: BTreeMap<SubTaskId, BTreeSet<String>>,
    task_passed: BTreeSet<String>,
}

impl Naming {
    /// Something is said.
    pub(super) fn said(&mut self, envelope: &Envelope) {
        let said = match &envelope.payload {
            Message::DispatchManifest(manifest) => Said::Plan(Declared::by(manifest)),
            Message::ReplanRequest(request) => Said::Round(Round::of(&request.outcomes, &request.task_verdicts)),
            Message::OutcomeSummary(summary) => Said::Round(Round::of(&summary.outcomes, &summary.task_verdicts)),
            Message::SubTaskOutcome(outcome) => {
                self.passed.insert(outcome.subtask_id.clone(), passed(outcome));
                return;
            }
            _ => return,
        };
        self.said.insert(envelope.seq, said);
    }

    /// R7 takes a message.
    pub(super) fn r7_took(&mut self, seq: u64) {
        match self.said.remove(&seq) {
            Some(Said::Plan(plan)) => {
                self.plan = plan;
                self.open = None;
            }
            Some(Said::Round(round)) => {
                let unjudged = self.plan.without(&round.passed, &round.task_passed);
                self.open = Some(round.open.into_iter().chain(unjudged).collect());
            }
            None => {}
        }
    }

    /// The task ends: what is missing in the lists.
    pub(super) fn ended(&self, result: &FinalResult) -> Vec<String> {
        let named: BTreeSet<&String> = result.unmet.iter().chain(&result.unverified).collect();
        let (why, open) = match &self.open {
            Some(open) => ("did not pass", open.clone()),
            None => (
                "of the plan was not judged",
                self.plan.without(&self.passed, &BTreeSet::new()),
            ),
        };
        let mut wrongs: Vec<String> = open
            .iter()
            .filter(|criterion| !named.contains(criterion) && named.len() < NAMES_MAX)
            .map(|criterion| format!("`{criterion}` {why} and is not named ({:?})", result.cause))
            .collect();
        if result.directive == Ending::Accept && result.cause == Cause::Met && !result.unmet.is_empty() {
            wrongs.push("accepted with something unmet".to_owned());
        }
        wrongs
    }
}

impl Declared {
    fn by(manifest: &DispatchManifest) -> Self {
        let words = |criteria: &[artoo_protocol::message::Criterion]| {
            criteria.iter().map(|criterion| criterion.criterion.clone()).collect()
        };
        let subtasks = manifest.subtasks.iter();
        Self {
            subtasks: subtasks
                .map(|subtask| (subtask.subtask_id.clone(), words(&subtask.success_criteria)))
                .collect(),
            task: words(&manifest.task_criteria),
        }
    }

    /// What of it has no pass.
    fn without(&self, passed: &BTreeMap<SubTaskId, BTreeSet<String>>, task: &BTreeSet<String>) -> BTreeSet<String> {
        let of_subtasks = self.subtasks.iter().flat_map(|(id, declared)| {
            let passed = passed.get(id);
            declared
                .iter()
                .filter(move |criterion| !passed.is_some_and(|passed| passed.contains(*criterion)))
        });
        let of_task = self.task.iter().filter(|criterion| !task.contains(*criterion));
        of_subtasks.chain(of_task).cloned().collect()
    }
}

impl Round {
    fn of(outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict]) -> Self {
        let mut round = Self::default();
        for outcome in outcomes {
            let passed = passed(outcome);
            let declared = outcome.success_criteria.iter().map(|criterion| &criterion.criterion);
            round
                .open
                .extend(declared.filter(|criterion| !passed.contains(*criterion)).cloned());
            round.passed.insert(outcome.subtask_id.clone(), passed);
        }
        for verdict in task_verdicts {
            let list = match verdict.verdict {
                Verdict::Pass => &mut round.task_passed,
                Verdict::Fail => &mut round.open,
            };
            list.insert(verdict.criterion.clone());
        }
        round
    }
}

/// What passed in a subtask that was run.
fn passed(outcome: &SubTaskOutcome) -> BTreeSet<String> {
    let passes = |verdict: &&CriterionVerdict| verdict.verdict == Verdict::Pass;
    let run = outcome.status != OutcomeStatus::NotRun;
    let verdicts = outcome.criteria_verdicts.iter().filter(passes);
    verdicts
        .filter(|_| run)
        .map(|verdict| verdict.criterion.clone())
        .collect()
}
