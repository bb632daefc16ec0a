//! What a running task looks like from outside: a fold over messages and deeds (design §21).
//!
//! Owns the state of the display and nothing of its form. Pure: the same items give the same state.

use std::collections::BTreeSet;

use artoo_bus::TapItem;
use artoo_protocol::deed::{Act, Deed};
use artoo_protocol::message::{
    Criterion, CriterionVerdict, DispatchManifest, Message, OutcomeStatus, PlanDirective, SubTaskOutcome, Verdict,
};
use artoo_protocol::{CallId, Envelope, Millis, Role, SubTaskId, Timestamp};

/// What is known of one subtask.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Which.
    pub id: SubTaskId,
    /// From 1; equal numbers run in parallel.
    pub sequence: u32,
    /// What it is to do.
    pub intent: String,
    /// Where it stands.
    pub state: State,
    /// The attempt that runs or was the last one; 0 before the first.
    pub attempt: u32,
    /// What must hold, and what was found so far.
    pub criteria: Vec<(String, Option<Verdict>)>,
    /// What went wrong last.
    pub trouble: Option<String>,
}

/// Where a subtask stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Something did not hold.
    Failed,
    /// R3 or R4a is at it.
    Running,
    /// An earlier group has to end first.
    Waiting,
    /// An earlier group failed.
    NotRun,
    /// Everything was shown to hold.
    Matched,
    /// It matched in an earlier round, and its work stands.
    Carried,
}

/// The state of the display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The goal, once R1 has understood it.
    pub intent: Option<String>,
    /// 0 before the first plan.
    pub round: u32,
    /// In the order of the plan.
    pub steps: Vec<Step>,
    /// How the last round was judged and what is to change.
    pub directive: Option<PlanDirective>,
    /// Who waits for a model, and for which call.
    pub asking: BTreeSet<(Role, CallId)>,
    /// Model calls that were made.
    pub calls: u64,
    /// Tokens that they took, both ways.
    pub tokens: u64,
    /// In the currency of the price table.
    pub cost: f64,
    pub(super) began: Option<Timestamp>,
    pub(super) questions: u32,
    pub(super) asked_since: Option<Timestamp>,
    pub(super) waited: Millis,
}

/// What a message means for what is already on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// Something in it looks different now.
    Change,
    /// A round is over: its picture stays as it is, and the next one begins.
    RoundIsOver,
}

impl View {
    /// Takes note of what happened.
    pub fn hear(&mut self, item: &TapItem) -> Heard {
        match item {
            TapItem::Envelope(envelope) => self.message(envelope),
            // What belongs to no task is a dream.
            TapItem::Deed(deed) if deed.task_id.is_some() => self.deed(deed),
            TapItem::Deed(_) | TapItem::Gap(_) => Heard::Nothing,
        }
    }

    /// Running time, with the time left out in which a person was asked.
    pub fn elapsed(&self, now: Timestamp) -> Millis {
        let Some(began) = self.began else { return Millis(0) };
        let waiting = self.asked_since.map_or(0, |since| now.since(since).0);
        Millis(now.since(began).0.saturating_sub(self.waited.0 + waiting))
    }

    /// Forgets the steps of a round that is over, so that the next one begins empty.
    pub fn turn_over(&mut self) {
        self.steps.clear();
        self.directive = None;
        self.intent = None;
    }

    fn message(&mut self, envelope: &Envelope) -> Heard {
        self.began.get_or_insert(envelope.timestamp);
        match &envelope.payload {
            Message::TaskResumed(resumed) => self.waited = Millis(self.waited.0 + resumed.away_ms.0),
            Message::TaskSpec(spec) => self.intent = Some(spec.intent.clone()),
            Message::DispatchManifest(manifest) => self.plan(manifest),
            Message::SubTask(subtask) => self.step(&subtask.subtask_id, |step| {
                step.state = State::Running;
                step.attempt = 1;
            }),
            Message::CorrectionSignal(signal) => self.step(&signal.subtask_id, |step| {
                step.attempt = signal.attempt_number + 1;
                step.trouble = Some(signal.what_was_wrong.clone());
                for (criterion, verdict) in &mut step.criteria {
                    *verdict = (*criterion == signal.failed_criterion).then_some(Verdict::Fail);
                }
            }),
            Message::SubTaskOutcome(outcome) => self.step(&outcome.subtask_id, |step| step.end(outcome)),
            Message::PlanDirective(directive) => {
                self.directive = Some(directive.clone());
                return Heard::RoundIsOver;
            }
            Message::ConfirmationRequest(_) | Message::ClarificationRequest(_) => self.question(envelope.timestamp),
            Message::ConfirmationAnswer(_) | Message::ClarificationAnswer(_) => self.answer(envelope.timestamp),
            Message::FinalResult(_) => return Heard::RoundIsOver,
            _ => return Heard::Nothing,
        }
        Heard::Change
    }

    fn plan(&mut self, manifest: &DispatchManifest) {
        self.round = manifest.round;
        let carried = manifest.carried.iter().map(|carried| Step {
            id: carried.subtask_id.clone(),
            sequence: 0,
            intent: carried.intent.clone(),
            state: State::Carried,
            attempt: 0,
            criteria: Vec::new(),
            trouble: None,
        });
        let planned = manifest.subtasks.iter().map(|subtask| Step {
            id: subtask.subtask_id.clone(),
            sequence: subtask.sequence,
            intent: subtask.intent.clone(),
            state: State::Waiting,
            attempt: 0,
            criteria: subtask.success_criteria.iter().map(unjudged).collect(),
            trouble: None,
        });
        self.steps = carried.chain(planned).collect();
    }

    fn step(&mut self, id: &SubTaskId, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self
            .steps
            .iter_mut()
            .find(|step| step.id == *id && step.state != State::Carried)
        {
            change(step);
        }
    }

    fn question(&mut self, at: Timestamp) {
        self.questions += 1;
        self.asked_since.get_or_insert(at);
    }

    fn answer(&mut self, at: Timestamp) {
        self.questions = self.questions.saturating_sub(1);
        if self.questions == 0
            && let Some(since) = self.asked_since.take()
        {
            self.waited = Millis(self.waited.0 + at.since(since).0);
        }
    }

    fn deed(&mut self, deed: &Deed) -> Heard {
        match &deed.act {
            Act::ModelAsked { call, .. } => {
                self.calls += 1;
                self.asking.insert((deed.role, *call));
            }
            Act::ModelAnswered { call, usage, cost, .. } | Act::ModelFailed { call, usage, cost, .. } => {
                self.asking.remove(&(deed.role, *call));
                self.tokens = self.tokens.saturating_add(usage.tokens());
                self.cost += cost.get();
            }
            _ => return Heard::Nothing,
        }
        Heard::Change
    }
}

impl Step {
    fn end(&mut self, outcome: &SubTaskOutcome) {
        self.state = match outcome.status {
            OutcomeStatus::Matched => State::Matched,
            OutcomeStatus::Failed => State::Failed,
            OutcomeStatus::NotRun => State::NotRun,
        };
        self.attempt = outcome.gap_trajectory.last().map_or(self.attempt, |last| last.attempt);
        self.trouble.clone_from(&outcome.failure_reason);
        if !outcome.criteria_verdicts.is_empty() {
            self.criteria = outcome.criteria_verdicts.iter().map(judged).collect();
        }
    }
}

fn unjudged(criterion: &Criterion) -> (String, Option<Verdict>) {
    (criterion.criterion.clone(), None)
}

fn judged(verdict: &CriterionVerdict) -> (String, Option<Verdict>) {
    (verdict.criterion.clone(), Some(verdict.verdict))
}
