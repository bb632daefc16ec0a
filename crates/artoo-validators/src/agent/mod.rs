//! R4a, the Agent-Validator: judges attempts by what the tools did and drives the fast loop (design §10).
//!
//! Owns which subtask an event is about. The order of judging is code: rules, then machine checks, then, for what is
//! left, a model; and code alone says "matched". Must not know other subtasks' results, task criteria or memory.

mod correction;
mod fast_loop;
mod prompt;
mod rules;
mod trial;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use artoo_protocol::message::{CorrectionSignal, ExecutionResult, SubTask, SubTaskOutcome};
use artoo_protocol::model::ModelRequest;
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Actor, Answer, CallId, Command, Event, Message, Role, SubTaskId, TaskId, Tasks, Timestamp};

use serde::{Deserialize, Serialize};

use crate::panel::Judges;
use fast_loop::{Context, FastLoop};

pub use prompt::{Prompts, schema};

/// At most so many paths that a task made are remembered.
const MADE_MAX: usize = 2_000;

/// R4a's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Attempts at a subtask, the first among them; at least 1.
    pub max_attempts: u32,
    /// Who judges a verifiable criterion without a check.
    pub judges: Judges,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            judges: Judges::One,
        }
    }
}

/// What R4a may want done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Tell R3 what to do differently.
    Correct(Box<CorrectionSignal>),
    /// Say the last word on a subtask.
    Conclude(Box<SubTaskOutcome>),
    /// Run a machine check.
    Check {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The check.
        request: CheckRequest,
    },
    /// Ask a model for verdicts.
    Judge {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The request.
        request: ModelRequest,
    },
}

impl From<Effect> for Command {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Correct(signal) => {
                let task = signal.parent_task_id.clone();
                Self::publish(&task, *signal)
            }
            Effect::Conclude(outcome) => {
                let task = outcome.parent_task_id.clone();
                Self::publish(&task, *outcome)
            }
            Effect::Check { task_id, call, request } => Self::RunCheck { task_id, call, request },
            Effect::Judge { task_id, call, request } => Self::CallModel { task_id, call, request },
        }
    }
}

/// R4a as a pure state machine.
#[derive(Debug, Default)]
pub struct AgentValidator {
    config: Config,
    prompts: Prompts,
    tasks: Tasks<TaskState>,
}

#[derive(Debug)]
struct TaskState {
    next_call: CallId,
    /// Absolute paths that attempts of this task created or changed.
    made: Vec<String>,
    subtasks: BTreeMap<SubTaskId, FastLoop>,
}

impl TaskState {
    fn new() -> Self {
        Self {
            next_call: CallId(1),
            made: Vec::new(),
            subtasks: BTreeMap::new(),
        }
    }
}

impl AgentValidator {
    /// With these limits and this fixed text.
    pub fn new(config: Config, prompts: Prompts) -> Self {
        Self {
            config,
            prompts,
            tasks: Tasks::default(),
        }
    }

    fn told(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::SubTask(subtask) => self.dispatched(&subtask),
            Message::ExecutionResult(result) => return self.attempted(result),
            // Everything else is said to others.
            other => other.ends().into_iter().for_each(|task| self.tasks.close(task)),
        }
        Vec::new()
    }

    fn dispatched(&mut self, subtask: &SubTask) {
        if let Some(task) = self.tasks.open(&subtask.parent_task_id, TaskState::new) {
            task.subtasks
                .entry(subtask.subtask_id.clone())
                .or_insert_with(|| FastLoop::new(subtask.clone()));
        }
    }

    fn attempted(&mut self, result: ExecutionResult) -> Vec<Effect> {
        let Some(task) = self.tasks.get_mut(&result.parent_task_id) else {
            return Vec::new();
        };
        let touched: Vec<_> = result.tool_calls.iter().flat_map(|call| call.touched.clone()).collect();
        let subtask = result.subtask_id.clone();
        let effects = task.advance(self.config, &self.prompts, &subtask, |state, context| {
            state.attempted(result, context)
        });
        if task.subtasks.contains_key(&subtask) {
            task.remember(touched);
        }
        effects
    }

    fn answered(&mut self, task_id: &TaskId, call: CallId, answer: Answer) -> Vec<Effect> {
        let Some(task) = self.tasks.get_mut(task_id) else {
            return Vec::new();
        };
        let waiting = task.subtasks.iter().find(|(_, state)| state.awaits(call));
        let Some(subtask) = waiting.map(|(id, _)| id.clone()) else {
            return Vec::new();
        };
        task.advance(self.config, &self.prompts, &subtask, |state, context| {
            state.answered(call, answer, context)
        })
    }
}

impl TaskState {
    /// Puts one subtask through a transition.
    fn advance(
        &mut self,
        config: Config,
        prompts: &Prompts,
        subtask: &SubTaskId,
        transition: impl FnOnce(FastLoop, &mut Context<'_>) -> FastLoop,
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(slot) = self.subtasks.get_mut(subtask) {
            let mut context = Context {
                config,
                prompts,
                next_call: &mut self.next_call,
                made: &self.made,
                effects: &mut effects,
            };
            let present = std::mem::replace(slot, FastLoop::Concluded);
            *slot = transition(present, &mut context);
        }
        effects
    }

    fn remember(&mut self, touched: Vec<String>) {
        for path in touched {
            if self.made.len() < MADE_MAX && !self.made.contains(&path) {
                self.made.push(path);
            }
        }
    }
}

impl Actor for AgentValidator {
    type Effect = Effect;

    const ROLE: Role = Role::R4a;

    fn step(&mut self, _now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => self.told(envelope.payload),
            Event::Answer { task_id, call, answer } => self.answered(&task_id, call, answer),
            Event::Wake => Vec::new(),
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}
