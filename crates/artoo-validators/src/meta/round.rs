//! One round: a plan and its outcomes, until the gate opens (design §11).
//!
//! Owns when a round is complete and what counts as failed. The gate is code: one failed subtask, and no model is asked. An
//! outcome that is overdue counts as failed: nothing is waited for in vain.

use std::collections::BTreeMap;

use artoo_protocol::message::{
    DispatchManifest, FailureClass, OutcomeStatus, PlannedSubTask, ReplanRequest, SubTaskOutcome, ToolCall, Verdict,
    VerdictSource,
};
use artoo_protocol::overdue::PlanClock;
use artoo_protocol::text::one_line;
use artoo_protocol::{Millis, SubTaskId, Timestamp, message::Recommendation};
use serde_json::Value;

use crate::verdicts;

/// A plan with the outcomes so far.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) manifest: DispatchManifest,
    /// When what is missing is overdue; R2 keeps the same.
    pub(super) clock: PlanClock,
    outcomes: BTreeMap<SubTaskId, SubTaskOutcome>,
    /// The group of each planned subtask.
    groups: BTreeMap<SubTaskId, u32>,
    /// How many outcomes are missing, of the groups that miss one. A count of its own, because a plan may have a thousand.
    missing: BTreeMap<u32, usize>,
    /// The first group that holds a failure.
    failed_group: Option<u32>,
    /// Matched outcomes of earlier rounds that count in this one, in the order of the manifest.
    carried: Vec<SubTaskOutcome>,
}

/// What the gate says about a complete round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Every subtask matched.
    AllMatched,
    /// Some did not; a model has nothing to say about that.
    SomeFailed,
}

impl Round {
    pub(super) fn new(manifest: DispatchManifest, judging_time: Millis) -> Self {
        Self {
            clock: PlanClock::start(manifest.dispatched_at, judging_time),
            groups: groups(&manifest),
            missing: missing(&manifest),
            failed_group: None,
            manifest,
            outcomes: BTreeMap::new(),
            carried: Vec::new(),
        }
    }

    /// The next round. What its plan carries over is taken from what was seen to match here, never from the plan's word.
    pub(super) fn followed_by(&self, manifest: DispatchManifest, judging_time: Millis) -> Self {
        let matched = |id: &SubTaskId| {
            let own = self.outcomes.get(id).into_iter().chain(&self.carried);
            own.into_iter()
                .find(|outcome| outcome.subtask_id == *id && outcome.status == OutcomeStatus::Matched)
                .cloned()
        };
        let mut carried: Vec<SubTaskOutcome> = Vec::new();
        for named in &manifest.carried {
            if let Some(outcome) = matched(&named.subtask_id)
                && !carried.iter().any(|there| there.subtask_id == outcome.subtask_id)
            {
                carried.push(SubTaskOutcome {
                    carried_from: outcome.carried_from.or(Some(self.manifest.round)),
                    ..outcome
                });
            }
        }
        Self {
            carried,
            ..Self::new(manifest, judging_time)
        }
    }

    /// Whether this is the plan that the round was opened with.
    pub(super) fn is_of(&self, manifest: &DispatchManifest) -> bool {
        self.manifest.round == manifest.round && self.manifest.subtask_ids == manifest.subtask_ids
    }

    /// Notes an outcome that was said at this moment; the first one of each planned subtask counts, any other changes nothing.
    pub(super) fn note(&mut self, mut outcome: SubTaskOutcome, stamp: Timestamp) {
        let id = outcome.subtask_id.clone();
        let Some(&group) = self.groups.get(&id) else {
            return;
        };
        if self.outcomes.contains_key(&id) {
            return;
        }
        if outcome.status == OutcomeStatus::Matched
            && let Some(failing) = outcome.criteria_verdicts.iter().find(|v| v.verdict == Verdict::Fail)
        {
            let reason = format!("called matched although this criterion failed: {}", failing.criterion);
            outcome.status = OutcomeStatus::Failed;
            outcome.failure_reason = Some(reason);
        }
        if outcome.status != OutcomeStatus::Matched {
            self.failed_group = Some(self.failed_group.map_or(group, |before| before.min(group)));
        }
        self.outcomes.insert(id, outcome);
        let before = self.present();
        if let Some(left) = self.missing.get_mut(&group) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.missing.remove(&group);
            }
        }
        if self.present() != before {
            self.clock.next_group(stamp);
        }
    }

    /// The group that is awaited: the first one with a missing outcome.
    fn present(&self) -> Option<u32> {
        self.missing.keys().next().copied()
    }

    fn is_missing(&self, planned: &PlannedSubTask) -> bool {
        !self.outcomes.contains_key(&planned.subtask_id)
    }

    /// The missing outcomes of the present group that have a deadline.
    fn awaited(&self) -> impl Iterator<Item = &PlannedSubTask> {
        let present = self.present();
        let planned = self.manifest.subtasks.iter();
        planned.filter(move |planned| {
            planned.deadline.is_some() && Some(planned.sequence) == present && self.is_missing(planned)
        })
    }

    /// When the next missing outcome is overdue; `None` while a person is waited for, and where no deadline was stated: then
    /// the time budget of the task, which the controller keeps, is the end.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let stated = self.awaited().filter_map(|planned| planned.deadline);
        stated.filter_map(|deadline| self.clock.waits_until(deadline)).min()
    }

    /// Gives every subtask that was overdue at this moment an outcome that says so. What comes for it later is a duplicate.
    pub(super) fn give_up_overdue(&mut self, stamp: Timestamp) {
        let overdue: Vec<_> = self
            .awaited()
            .filter(|planned| self.clock.is_overdue(planned.deadline, stamp))
            .map(|planned| overdue(planned, &self.manifest))
            .collect();
        for outcome in overdue {
            self.note(outcome, stamp);
        }
    }

    /// Opens when every subtask matched, or when a group is complete and one of it did not match. Then the subtasks of
    /// later groups, which R2 will not start any more, are given outcomes that say so.
    pub(super) fn gate(&mut self) -> Option<Gate> {
        let present = self.present();
        if let Some(failed) = self.failed_group
            && present.is_none_or(|present| failed < present)
        {
            self.fill_not_run(failed);
            return Some(Gate::SomeFailed);
        }
        // A plan without subtasks has shown nothing.
        let shown = if self.outcomes.is_empty() {
            Gate::SomeFailed
        } else {
            Gate::AllMatched
        };
        present.is_none().then_some(shown)
    }

    fn fill_not_run(&mut self, failed_sequence: u32) {
        self.missing.clear();
        for planned in &self.manifest.subtasks {
            self.outcomes
                .entry(planned.subtask_id.clone())
                .or_insert_with(|| not_run(planned, &self.manifest, failed_sequence));
        }
    }

    /// All outcomes: those carried over, then those of the plan's groups in their order, within a group in the order of
    /// the plan.
    pub(super) fn outcomes(&self) -> Vec<SubTaskOutcome> {
        let mut planned: Vec<_> = self.manifest.subtasks.iter().collect();
        planned.sort_by_key(|planned| planned.sequence);
        let own = planned
            .iter()
            .filter_map(|planned| self.outcomes.get(&planned.subtask_id).cloned());
        self.carried.iter().cloned().chain(own).collect()
    }

    /// The calls of the matched subtasks, in that order.
    pub(super) fn matched_calls(&self) -> Vec<ToolCall> {
        self.outcomes()
            .into_iter()
            .filter(|outcome| outcome.status == OutcomeStatus::Matched)
            .flat_map(|outcome| outcome.tool_calls)
            .collect()
    }
}

fn groups(manifest: &DispatchManifest) -> BTreeMap<SubTaskId, u32> {
    let planned = manifest.subtasks.iter();
    planned
        .map(|planned| (planned.subtask_id.clone(), planned.sequence))
        .collect()
}

fn missing(manifest: &DispatchManifest) -> BTreeMap<u32, usize> {
    let mut missing = BTreeMap::new();
    for group in groups(manifest).into_values() {
        *missing.entry(group).or_default() += 1;
    }
    missing
}

fn not_run(planned: &PlannedSubTask, manifest: &DispatchManifest, failed_sequence: u32) -> SubTaskOutcome {
    SubTaskOutcome {
        failure_reason: Some(format!("not started, because step {failed_sequence} failed")),
        ..without_work(planned, manifest, OutcomeStatus::NotRun)
    }
}

/// Nobody heard of the subtask in time: a failure of the environment, since nothing says that the approach was wrong.
fn overdue(planned: &PlannedSubTask, manifest: &DispatchManifest) -> SubTaskOutcome {
    let reason = "no outcome came by its deadline, so nothing shows that it was done";
    let fail = |c| verdicts::fail(c, FailureClass::Environmental, VerdictSource::Rule, reason);
    SubTaskOutcome {
        failure_reason: Some(reason.to_owned()),
        criteria_verdicts: planned.success_criteria.iter().map(fail).collect(),
        infrastructure: true,
        ..without_work(planned, manifest, OutcomeStatus::Failed)
    }
}

/// An outcome that only names its subtask.
fn without_work(planned: &PlannedSubTask, manifest: &DispatchManifest, status: OutcomeStatus) -> SubTaskOutcome {
    SubTaskOutcome {
        subtask_id: planned.subtask_id.clone(),
        parent_task_id: manifest.task_id.clone(),
        intent: planned.intent.clone(),
        status,
        output: Value::Null,
        failure_reason: None,
        success_criteria: planned.success_criteria.clone(),
        criteria_verdicts: Vec::new(),
        gap_trajectory: Vec::new(),
        tool_calls: Vec::new(),
        made: Vec::new(),
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

/// Corrections that R4a issued in the round of these outcomes.
pub(super) fn corrections(outcomes: &[SubTaskOutcome]) -> u32 {
    let own = outcomes.iter().filter(|outcome| outcome.carried_from.is_none());
    let count: usize = own.map(|o| o.gap_trajectory.len().saturating_sub(1)).sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// R4b's advice: to stop when enough replans have failed, or when every failing subtask cannot be done at all.
pub(super) fn recommendation(outcomes: &[SubTaskOutcome], replans_used_up: bool) -> Recommendation {
    let mut failed = failed(outcomes).peekable();
    let hopeless = failed.peek().is_some() && failed.all(|outcome| outcome.infeasible);
    if replans_used_up || hopeless {
        Recommendation::Abandon
    } else {
        Recommendation::Replan
    }
}

/// Those that ran and did not match.
pub(super) fn failed(outcomes: &[SubTaskOutcome]) -> impl Iterator<Item = &SubTaskOutcome> {
    outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Failed)
}

/// The gap in words: failed subtasks with their reasons, what was not started, and task criteria that do not hold.
pub(super) fn gap_words(request: &ReplanRequest) -> String {
    let mut lines = Vec::new();
    for outcome in failed(&request.outcomes) {
        let reason = outcome.failure_reason.as_deref().unwrap_or("no reason given");
        lines.push(format!(
            "failed: {} — {}",
            one_line(&outcome.intent, 200).trim_end_matches('.'),
            one_line(reason, 600)
        ));
    }
    for outcome in &request.outcomes {
        if outcome.status == OutcomeStatus::NotRun {
            lines.push(format!("not started: {}", one_line(&outcome.intent, 200)));
        }
    }
    for verdict in crate::verdicts::failing(&request.task_verdicts) {
        lines.push(format!(
            "the task as a whole does not meet `{}`: {}",
            one_line(&verdict.criterion, 200),
            one_line(&verdict.evidence, 400)
        ));
    }
    if lines.is_empty() {
        lines.push("the plan had no subtasks, so nothing was done".to_owned());
    }
    artoo_protocol::text::head_tail(&lines.join("\n"), 4_000)
}
