//! What must hold in every journal, whatever models, tools and people do: the laws as a function of the records.
//!
//! Owns an independent reading of the rules; it shares no code with the roles that have to keep them.

mod actions;
mod costs;
mod naming;

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::journal::{Entry, Record, StepCause};
use artoo_protocol::message::{
    Cause, DispatchManifest, Ending, FinalResult, OutcomeStatus, PlanDirective, ReplanRequest, SubTask, SubTaskOutcome,
    Verdict,
};
use artoo_protocol::tool::{Invocation, Permit};
use artoo_protocol::{Answer, CallId, Command, Envelope, Message, MessageKind, Role, SubTaskId, route};

use actions::Actions;
use costs::Costs;
use naming::Naming;

/// Whether the task has its FinalResult.
pub fn has_end(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(&record.entry, Entry::Published { envelope } if envelope.payload.kind() == MessageKind::FinalResult))
}

/// Every law that the journal of one task breaks, in words. `offered` are the tools that exist.
pub fn broken(records: &[Record], offered: &[String]) -> Vec<String> {
    let mut watch = Watch::new(offered);
    for record in records {
        watch.see(record);
    }
    watch.wrongs
}

/// Looks at the records of one task as they are written, so that a broken law is known with the step that broke it.
#[derive(Clone, Default)]
pub struct Watch<'a> {
    offered: &'a [String],
    seen: usize,
    wrongs: Vec<String>,
    ends: u32,
    aborted: bool,
    /// What R7 has still to take, and whether there was something when the person stopped the task.
    before_r7: BTreeSet<u64>,
    overtook: bool,
    seq: u64,
    directives: u32,
    /// What R4b said last in this round, if it was a gap: whether it rejected a complete result.
    gap: Option<bool>,
    summary_sound: bool,
    manifest: Option<DispatchManifest>,
    subtasks: BTreeMap<SubTaskId, SubTask>,
    outcomes: BTreeMap<SubTaskId, OutcomeStatus>,
    corrections: BTreeMap<SubTaskId, u32>,
    actions: Actions,
    costs: Costs,
    naming: Naming,
}

impl<'a> Watch<'a> {
    /// Of a task of which nothing is written yet. `offered` are the tools that exist.
    pub fn new(offered: &'a [String]) -> Self {
        Self {
            offered,
            ..Self::default()
        }
    }

    /// The next record.
    pub fn see(&mut self, record: &Record) {
        self.seen += 1;
        if record.n != self.seen as u64 {
            self.wrong(format!("record {} has the number {}", self.seen, record.n));
        }
        match &record.entry {
            Entry::Published { envelope } => self.published(envelope),
            Entry::Commanded { role, command } => self.commanded(*role, command),
            Entry::Answered { role, call, answer } => self.answered(*role, *call, answer),
            Entry::Stepped {
                role: Role::R7,
                cause: StepCause::Message { seq },
                ..
            } => {
                self.before_r7.remove(seq);
                self.naming.r7_took(*seq);
            }
            Entry::Stepped {
                role,
                cause: StepCause::Answer { call },
                ..
            } => {
                let wrong = self.costs.heard(*role, *call);
                self.wrongs.extend(wrong);
            }
            Entry::Opened { settings, .. } => self.costs.opened(settings),
            Entry::Stepped { .. } | Entry::Closed { .. } => {}
        }
    }

    /// How many records it has seen.
    pub const fn seen(&self) -> usize {
        self.seen
    }

    /// Every law that was broken so far, in words.
    pub fn wrongs(&self) -> &[String] {
        &self.wrongs
    }

    fn wrong(&mut self, what: impl Into<String>) {
        self.wrongs.push(what.into());
    }

    fn published(&mut self, envelope: &Envelope) {
        let (from, kind) = (envelope.from, envelope.payload.kind());
        if route(kind, from).is_none_or(|route| route.to != envelope.to) {
            self.wrong(format!(
                "{from} sent {} to {}, which no route allows",
                kind.name(),
                envelope.to
            ));
        }
        if envelope.seq <= self.seq {
            self.wrong("the sequence of envelopes does not rise");
        }
        self.seq = envelope.seq;
        let outside = matches!(from, Role::User | Role::Runtime);
        if self.aborted && !outside && kind != MessageKind::FinalResult {
            self.wrong(format!("{from} sent {} after the abort", kind.name()));
        }
        if kind == MessageKind::TaskAborted {
            self.overtook |= !self.before_r7.is_empty();
        }
        if route(kind, from).is_some_and(|route| route.to == Role::R7 || route.copies.contains(&Role::R7)) {
            self.before_r7.insert(envelope.seq);
        }
        self.naming.said(envelope);
        self.heard(from, &envelope.payload);
    }

    fn heard(&mut self, from: Role, message: &Message) {
        match message {
            Message::DispatchManifest(manifest) => self.planned(manifest),
            Message::SubTask(subtask) => self.dispatched(subtask),
            Message::CorrectionSignal(signal) => {
                let count = self.corrections.entry(signal.subtask_id.clone()).or_default();
                *count += 1;
                if *count > 2 {
                    self.wrong("a subtask was corrected more than twice");
                }
            }
            Message::SubTaskOutcome(outcome) => self.concluded(outcome),
            Message::OutcomeSummary(summary) => {
                self.gap = None;
                self.summary_sound = summary.outcomes.iter().all(is_sound_match)
                    && summary.task_verdicts.iter().all(|v| v.verdict == Verdict::Pass);
                if !self.summary_sound {
                    self.wrong("R4b accepted what did not match");
                }
            }
            Message::ReplanRequest(request) => self.gap(request),
            Message::PlanDirective(directive) => self.directed(directive),
            // Whether something cut off is done again is asked by who resumes, and is no yes to a new action.
            Message::ConfirmationRequest(_) if from == Role::Runtime => {}
            Message::ConfirmationRequest(request) => {
                let wrong = self.actions.asked(request);
                self.wrongs.extend(wrong);
            }
            Message::ConfirmationAnswer(answer) => self.actions.decided(answer),
            Message::BudgetReached(reached) => {
                let wrongs = self.costs.told(reached);
                self.wrongs.extend(wrongs);
            }
            Message::TaskResumed(_) => self.costs.resumed(),
            Message::TaskAborted(_) => {
                self.aborted = true;
                self.costs.over();
            }
            Message::FinalResult(result) => self.ended(result),
            // Nothing to be said about the rest.
            _ => {}
        }
    }

    fn planned(&mut self, manifest: &DispatchManifest) {
        let known: BTreeSet<_> = manifest.subtask_ids.iter().collect();
        if known.len() != manifest.subtask_ids.len() || manifest.subtasks.len() != known.len() {
            self.wrong("a manifest names a subtask twice, or other ones than it describes");
        }
        if known.iter().any(|id| self.subtasks.contains_key(id)) {
            self.wrong("a plan reuses the id of an earlier subtask");
        }
        if manifest
            .subtasks
            .iter()
            .any(|subtask| subtask.success_criteria.is_empty())
        {
            self.wrong("a subtask has no success criterion");
        }
        self.manifest = Some(manifest.clone());
    }

    fn dispatched(&mut self, subtask: &SubTask) {
        let planned = self.manifest.iter().flat_map(|manifest| &manifest.subtasks);
        let mut earlier_open = false;
        let mut known = false;
        for other in planned {
            known |= other.subtask_id == subtask.subtask_id;
            let matched = self.outcomes.get(&other.subtask_id) == Some(&OutcomeStatus::Matched);
            earlier_open |= other.sequence < subtask.sequence && !matched;
        }
        if !known {
            self.wrong("a subtask was dispatched that the manifest does not name");
        }
        if earlier_open {
            self.wrong("a group was started before every subtask of the earlier ones had matched");
        }
        if self
            .subtasks
            .insert(subtask.subtask_id.clone(), subtask.clone())
            .is_some()
        {
            self.wrong("a subtask was dispatched twice");
        }
    }

    fn concluded(&mut self, outcome: &SubTaskOutcome) {
        if !self.subtasks.contains_key(&outcome.subtask_id) {
            self.wrong("an outcome of a subtask that was never dispatched");
        }
        if self
            .outcomes
            .insert(outcome.subtask_id.clone(), outcome.status)
            .is_some()
        {
            self.wrong("a subtask has two outcomes");
        }
        if outcome.status == OutcomeStatus::Matched && !is_sound_match(outcome) {
            self.wrong(format!(
                "matched without a pass for every criterion: {}",
                outcome.intent
            ));
        }
    }

    fn gap(&mut self, request: &ReplanRequest) {
        let planned = self.manifest.as_ref().map_or(0, |manifest| manifest.subtasks.len());
        let carried: Vec<_> = request.outcomes.iter().filter(|o| o.carried_from.is_some()).collect();
        let seen = request.outcomes.len() - carried.len();
        for outcome in carried {
            let named = self.manifest.as_ref().is_some_and(|manifest| {
                let mut ids = manifest.carried.iter().map(|carried| &carried.subtask_id);
                ids.any(|id| *id == outcome.subtask_id)
            });
            if !named || self.outcomes.get(&outcome.subtask_id) != Some(&OutcomeStatus::Matched) {
                self.wrong(
                    "a gap counts work of an earlier round that did not match or that the plan does not carry over",
                );
            }
        }
        if seen != planned {
            self.wrong(format!("a gap counts {seen} outcomes of {planned} subtasks"));
        }
        let all_matched = request.outcomes.iter().all(|o| o.status == OutcomeStatus::Matched);
        self.gap = Some(all_matched);
    }

    fn directed(&mut self, directive: &PlanDirective) {
        self.directives += 1;
        if self.gap.is_none() {
            self.wrong("a directive without a gap");
        }
        self.actions.directed(directive, self.offered);
    }

    fn commanded(&mut self, role: Role, command: &Command) {
        if self.aborted && !matches!(command, Command::Store { .. }) {
            self.wrong(format!("{role} had something done after the abort"));
        }
        if self.ends > 0 && !matches!(command, Command::Store { .. }) {
            self.wrong(format!("{role} had something done after the end"));
        }
        self.costs.commanded(role, command);
        match command {
            Command::Assess { call, invocation, .. } => self.actions.assessing(*call, invocation),
            Command::RunTool {
                call,
                invocation,
                permit,
                ..
            } => self.runs(role, *call, invocation, *permit),
            Command::CallModel { .. } if matches!(role, Role::R5 | Role::R6 | Role::R7) => {
                self.wrong(format!("{role} asked a model"));
            }
            Command::CallModel { .. }
            | Command::Publish { .. }
            | Command::RunCheck { .. }
            | Command::Cancel { .. }
            | Command::Keep { .. }
            | Command::Store { .. }
            | Command::Recall { .. } => {}
        }
    }

    fn answered(&mut self, role: Role, call: CallId, answer: &Answer) {
        match (role, answer) {
            (Role::R3, Answer::Assessed(assessment)) => self.actions.assessed(call, assessment),
            (Role::R3, Answer::Ran(output)) => self.actions.ran(call, output),
            (Role::R3, Answer::Model(Ok(reply))) => self.actions.replied(reply),
            (_, Answer::Assessed(_) | Answer::Ran(_) | Answer::Model(_) | Answer::Checked(_) | Answer::Recalled(_)) => {
            }
        }
        let wrong = self.costs.answered(role, call, answer);
        self.wrongs.extend(wrong);
    }

    fn runs(&mut self, role: Role, call: CallId, invocation: &Invocation, permit: Permit) {
        if role != Role::R3 {
            self.wrong(format!("{role} ran a tool"));
        }
        let subtask = self.subtasks.get(&invocation.subtask_id);
        let wrongs = self
            .actions
            .runs(call, invocation, permit, subtask.map(|subtask| &subtask.must_not));
        self.wrongs.extend(wrongs);
    }

    fn ended(&mut self, result: &FinalResult) {
        self.ends += 1;
        self.costs.over();
        if self.ends > 1 {
            self.wrong("a second FinalResult");
        }
        // An ending that was under way when the person stopped the task is an ending all the same.
        let other_end = self.aborted && result.cause != Cause::Aborted && !self.overtook;
        if other_end || (!self.aborted && result.cause == Cause::Aborted) {
            self.wrong(format!(
                "aborted: {}, and the cause is {:?}",
                self.aborted, result.cause
            ));
        }
        if result.replans != self.directives && !self.overtook {
            self.wrong(format!(
                "{} directives are counted as {} replans",
                self.directives, result.replans
            ));
        }
        let expected = match result.cause {
            Cause::Met | Cause::Answered => Ending::Accept,
            Cause::WithinThreshold => Ending::Success,
            _ => Ending::Abandon,
        };
        if result.directive != expected {
            self.wrong(format!("{:?} because of {:?}", result.directive, result.cause));
        }
        match result.cause {
            Cause::Met if !self.summary_sound || self.gap.is_some() || !result.unmet.is_empty() => {
                self.wrong("accepted without R4b's acceptance");
            }
            Cause::WithinThreshold if self.gap == Some(true) => self.wrong("a rejected result was called a success"),
            Cause::WithinThreshold if result.unmet.is_empty() => self.wrong("a success does not name what is unmet"),
            _ => {}
        }
        if result.summary.trim().is_empty() {
            self.wrong("a task ended without a word");
        }
        let wrongs = self.naming.ended(result);
        self.wrongs.extend(wrongs);
    }
}

fn is_sound_match(outcome: &SubTaskOutcome) -> bool {
    outcome.status == OutcomeStatus::Matched
        && !outcome.criteria_verdicts.is_empty()
        && outcome.criteria_verdicts.len() == outcome.success_criteria.len()
        && outcome
            .criteria_verdicts
            .iter()
            .zip(&outcome.success_criteria)
            .all(|(verdict, criterion)| verdict.verdict == Verdict::Pass && verdict.criterion == criterion.criterion)
}
