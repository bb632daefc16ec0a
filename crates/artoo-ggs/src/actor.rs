//! R7 as an actor: which task a message belongs to, when to be woken, and the narrow list of what it may do (design §2, §12).
//!
//! It cannot ask a model, run a tool or read memory: its [`Effect`] has no such thing. One entry per task, taken out while
//! an event is handled and put back only if the task goes on.

use std::collections::{BTreeMap, BTreeSet};

use artoo_protocol::message::{FinalResult, Megram, Message, PartialResultRequest, PlanDirective, UserInput};
use artoo_protocol::{Actor, Command, Event, Role, TaskId, Timestamp};

use crate::params::Params;
use crate::task::{Frame, Next, Running, State};

/// Everything that R7 may do.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Demand another plan of R2.
    Direct(Box<PlanDirective>),
    /// End the task.
    Finish(Box<FinalResult>),
    /// Write a memory.
    Remember(Megram),
    /// Ask R2 to word what was achieved.
    AskPartial(PartialResultRequest),
}

impl Effect {
    /// The message that carries it.
    pub fn into_message(self) -> Message {
        match self {
            Self::Direct(directive) => (*directive).into(),
            Self::Finish(result) => (*result).into(),
            Self::Remember(megram) => megram.into(),
            Self::AskPartial(request) => request.into(),
        }
    }

    /// The task that it is about.
    pub fn task_id(&self) -> Option<TaskId> {
        match self {
            Self::Direct(directive) => Some(directive.task_id.clone()),
            Self::Finish(result) => Some(result.task_id.clone()),
            Self::Remember(megram) => megram.origin.clone().map(TaskId::new),
            Self::AskPartial(request) => Some(request.task_id.clone()),
        }
    }
}

impl From<Effect> for Command {
    fn from(effect: Effect) -> Self {
        Self::Publish {
            task_id: effect.task_id(),
            message: Box::new(effect.into_message()),
        }
    }
}

/// The Goal Gradient Solver for any number of tasks at once.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    params: Params,
    offered: Vec<String>,
    tasks: BTreeMap<TaskId, State>,
    /// Every task's alarm, so that the next one is found without looking at all tasks.
    alarms: BTreeSet<(Timestamp, TaskId)>,
}

impl Controller {
    /// A controller with these parameters that knows no task yet.
    pub fn new(params: Params) -> Self {
        Self {
            params,
            ..Self::default()
        }
    }

    /// Names the tools that exist, so that blocking never leaves none.
    #[must_use]
    pub fn with_tools(mut self, offered: Vec<String>) -> Self {
        self.offered = offered;
        self
    }

    fn message(&mut self, now: Timestamp, from: Role, message: Message) -> Vec<Effect> {
        match message {
            Message::UserInput(m) => self.open(now, &m),
            Message::TaskSpec(m) => self.with(now, &m.task_id, |_, state| state.run(|task| task.specified(&m))),
            Message::DispatchManifest(m) => {
                self.with(now, &m.task_id.clone(), |_, state| state.run(|task| task.planned(&m)))
            }
            Message::ClarificationRequest(m) => {
                self.with(now, &m.task_id, |at, state| state.run(|task| task.clarifying(at, &m)))
            }
            Message::ClarificationAnswer(m) => {
                self.with(now, &m.task_id, |at, state| state.run(|task| task.clarified(at, &m)))
            }
            Message::ConfirmationRequest(m) => {
                self.with(now, &m.task_id, |at, state| state.run(|task| task.confirming(at, &m)))
            }
            Message::ConfirmationAnswer(m) => {
                self.with(now, &m.task_id, |at, state| state.run(|task| task.confirmed(at, &m)))
            }
            Message::DirectAnswer(m) => self.with(now, &m.task_id.clone(), |at, state| {
                state.run(|task| task.answered(at, m))
            }),
            Message::PlanningFailed(m) => self.with(now, &m.task_id, |at, state| {
                state.run(|task| task.unplanned(at, from, &m))
            }),
            Message::OutcomeSummary(m) => self.with(now, &m.task_id.clone(), |at, state| {
                state.run(|task| task.accepted(at, m))
            }),
            Message::ReplanRequest(m) => {
                self.with(now, &m.task_id.clone(), |at, state| state.run(|task| task.gap(at, m)))
            }
            Message::PartialResult(m) => self.with(now, &m.task_id, |_, state| state.worded(&m)),
            Message::BudgetReached(m) => self.with(now, &m.task_id, |at, state| state.budget(at, &m)),
            Message::TaskAborted(m) => self.with(now, &m.task_id, |at, state| state.abort(at, &m)),
            Message::TaskResumed(m) => self.with(now, &m.task_id, |_, state| state.run(|task| task.resumed(&m))),
            // Not on any route to R7.
            Message::MemoryQuery(_)
            | Message::MemoryReply(_)
            | Message::SubTask(_)
            | Message::ExecutionResult(_)
            | Message::CorrectionSignal(_)
            | Message::SubTaskOutcome(_)
            | Message::PlanDirective(_)
            | Message::PartialResultRequest(_)
            | Message::FinalResult(_)
            | Message::Megram(_)
            | Message::AuditQuery(_)
            | Message::AuditReport(_) => Vec::new(),
        }
    }

    fn open(&mut self, now: Timestamp, input: &UserInput) -> Vec<Effect> {
        if self.find(&input.task_id).is_none() {
            self.put(
                input.task_id.clone(),
                State::Running(Box::new(Running::open(now, input))),
            );
        }
        Vec::new()
    }

    /// Lets one task take an event; an unknown task gives nothing.
    fn with(
        &mut self,
        now: Timestamp,
        named: &TaskId,
        transition: impl FnOnce(Frame<'_>, State) -> Next,
    ) -> Vec<Effect> {
        let Some((task_id, state)) = self.take(named) else {
            return Vec::new();
        };
        let frame = Frame {
            task_id: &task_id,
            now,
            params: &self.params,
            offered: &self.offered,
        };
        let next = transition(frame, state);
        if let Some(state) = next.state {
            self.put(task_id, state);
        }
        next.effects
    }

    fn put(&mut self, task_id: TaskId, state: State) {
        if let Some(alarm) = state.alarm(&self.params) {
            self.alarms.insert((alarm, task_id.clone()));
        }
        self.tasks.insert(task_id, state);
    }

    /// Takes a task out, under its final name as soon as anyone uses it.
    fn take(&mut self, named: &TaskId) -> Option<(TaskId, State)> {
        let known = self.find(named)?;
        let state = self.tasks.remove(&known)?;
        if let Some(alarm) = state.alarm(&self.params) {
            self.alarms.remove(&(alarm, known.clone()));
        }
        let renamed = known.is_provisional() && !named.is_provisional();
        Some((if renamed { named.clone() } else { known }, state))
    }

    /// The name under which a run is kept: the one given, or the other one of the same run.
    fn find(&self, named: &TaskId) -> Option<TaskId> {
        if self.tasks.contains_key(named) {
            return Some(named.clone());
        }
        if named.is_provisional() {
            return self
                .tasks
                .keys()
                .find(|known| known.suffix() == named.suffix())
                .cloned();
        }
        let provisional = TaskId::new(format!("input_{}", named.suffix()));
        (provisional.is_provisional() && self.tasks.contains_key(&provisional)).then_some(provisional)
    }

    fn wake(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some((alarm, task_id)) = self.alarms.first().cloned() {
            if alarm > now {
                break;
            }
            self.alarms.pop_first();
            effects.extend(self.with(now, &task_id, |at, state| state.wake(at)));
        }
        effects
    }
}

impl Actor for Controller {
    type Effect = Effect;

    const ROLE: Role = Role::R7;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => self.message(now, envelope.from, envelope.payload),
            // It asks for nothing that is answered.
            Event::Answer { .. } => Vec::new(),
            Event::Wake => self.wake(now),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(alarm, _)| *alarm)
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}
