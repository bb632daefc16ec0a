//! R2 as a state machine: recall → plan → validate → dispatch, and again for every directive (design §2, §6).
//!
//! Owns the life of a plan. Which plans are acceptable is `validate`'s, what runs when is `dispatch`'s, what memory means
//! is `calibration`'s. A plan that arrives after the end of its task finds no state and is not run.

use artoo_protocol::actor::{Actor, Answer, Command, Event};
use artoo_protocol::ids::{CallId, TaskId};
use artoo_protocol::message::{
    DispatchManifest, MemoryQuery, MemoryReply, Message, PartialResult, PartialResultRequest, PlanDirective,
    PlanningFailed, SubTask, SubTaskOutcome, TaskSpec,
};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::role::Role;
use artoo_protocol::tasks::Tasks;
use artoo_protocol::units::Timestamp;

use crate::Config;
use crate::desk::Desk;
use crate::dispatch::LongOutput;
use crate::task::Task;

/// What R2 may want done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Ask memory.
    Query(MemoryQuery),
    /// Have a plan made or a partial result worded.
    CallModel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The request.
        request: ModelRequest,
    },
    /// Tell R4b what to wait for.
    Announce(DispatchManifest),
    /// Give a subtask to R3.
    Dispatch(SubTask),
    /// Keep an output that is too long to be handed on whole.
    Keep {
        /// The task.
        task_id: TaskId,
        /// The output and where it goes.
        output: LongOutput,
    },
    /// Let R7 end the task: there is no valid plan.
    Fail(PlanningFailed),
    /// Give R7 the wording that it asked for.
    Report(PartialResult),
}

impl From<Effect> for Command {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Query(message) => Self::publish(&message.task_id.clone(), message),
            Effect::CallModel { task_id, call, request } => Self::CallModel { task_id, call, request },
            Effect::Announce(message) => Self::publish(&message.task_id.clone(), message),
            Effect::Dispatch(message) => Self::publish(&message.parent_task_id.clone(), message),
            Effect::Keep { task_id, output } => Self::Keep {
                task_id,
                path: output.path,
                text: output.text,
            },
            Effect::Fail(message) => Self::publish(&message.task_id.clone(), message),
            Effect::Report(message) => Self::publish(&message.task_id.clone(), message),
        }
    }
}

/// R2.
#[derive(Debug)]
pub struct Planner {
    desk: Desk,
    /// One whose abort overtook it is not begun.
    tasks: Tasks<Task>,
}

impl Planner {
    /// A planner without tasks.
    ///
    /// # Errors
    /// [`PromptError`] when a configured prompt has other placeholders than `{{laws}}`.
    pub fn new(config: Config) -> Result<Self, PromptError> {
        Ok(Self {
            desk: Desk::new(config)?,
            tasks: Tasks::default(),
        })
    }

    fn opened(&mut self, now: Timestamp, spec: TaskSpec) -> Vec<Effect> {
        let desk = &self.desk;
        let task_id = spec.task_id.clone();
        let begun = self.tasks.begin(&task_id, || Task::open(desk, now, spec));
        begun.into_iter().collect()
    }

    fn recalled(&mut self, now: Timestamp, reply: &MemoryReply) -> Vec<Effect> {
        self.with(&reply.task_id, |task, desk| task.recalled(desk, now, reply))
    }

    fn directed(&mut self, now: Timestamp, directive: PlanDirective) -> Vec<Effect> {
        let task_id = directive.task_id.clone();
        self.with(&task_id, |task, desk| task.directed(desk, now, directive))
    }

    fn settled(&mut self, stamp: Timestamp, outcome: &SubTaskOutcome) -> Vec<Effect> {
        self.with(&outcome.parent_task_id, |task, _| task.settled(stamp, outcome))
    }

    fn waiting(&mut self, task_id: &TaskId, request: &str, waits: bool, stamp: Timestamp) -> Vec<Effect> {
        self.with(task_id, |task, _| {
            task.waiting(request, waits, stamp);
            Vec::new()
        })
    }

    fn asked(&mut self, request: &PartialResultRequest) -> Vec<Effect> {
        self.with(&request.task_id, |task, desk| task.asked(desk, request))
    }

    fn answered(
        &mut self,
        now: Timestamp,
        task_id: &TaskId,
        call: CallId,
        answer: Result<ModelReply, ModelError>,
    ) -> Vec<Effect> {
        self.with(task_id, |task, desk| task.answered(desk, now, call, answer))
    }

    fn woken(&mut self, now: Timestamp) -> Vec<Effect> {
        let desk = &self.desk;
        self.tasks.states_mut().flat_map(|task| task.woken(desk, now)).collect()
    }

    fn with(&mut self, task_id: &TaskId, act: impl FnOnce(&mut Task, &Desk) -> Vec<Effect>) -> Vec<Effect> {
        self.tasks
            .get_mut(task_id)
            .map_or_else(Vec::new, |task| act(task, &self.desk))
    }
}

impl Actor for Planner {
    type Effect = Effect;

    const ROLE: Role = Role::R2;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => match envelope.payload {
                Message::TaskSpec(spec) => self.opened(now, spec),
                Message::MemoryReply(reply) => self.recalled(now, &reply),
                Message::SubTaskOutcome(outcome) => self.settled(envelope.timestamp, &outcome),
                Message::PlanDirective(directive) => self.directed(now, directive),
                Message::ConfirmationRequest(asked) => {
                    self.waiting(&asked.task_id, &asked.request_id, true, envelope.timestamp)
                }
                Message::ConfirmationAnswer(answer) => {
                    self.waiting(&answer.task_id, &answer.request_id, false, envelope.timestamp)
                }
                Message::PartialResultRequest(request) => self.asked(&request),
                Message::TaskResumed(resumed) => self.with(&resumed.task_id, |task, _| {
                    task.away(resumed.away_ms);
                    Vec::new()
                }),
                // The rest is not R2's, whatever it will ever be.
                other => {
                    other.ends().into_iter().for_each(|task| self.tasks.close(task));
                    Vec::new()
                }
            },
            Event::Answer {
                task_id,
                call,
                answer: Answer::Model(answer),
            } => self.answered(now, &task_id, call, answer),
            Event::Answer { .. } => Vec::new(),
            Event::Wake => self.woken(now),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.tasks.states().filter_map(Task::deadline).min()
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}
