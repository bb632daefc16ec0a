//! R4b, the Meta-Validator: the fan-in gate, the merge, and the verdict on the task as a whole (design §11).
//!
//! Owns which task an event is about. One failed subtask is a gap and no model is asked about it; whatever is unclear is
//! a gap too. Reports to the controller only. Must not know plans beyond the manifest, memory, or what a gap leads to.

mod judging;
mod merge;
mod prompt;
mod round;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use artoo_protocol::message::{OutcomeSummary, ReplanRequest};
use artoo_protocol::model::{ModelRequest, Tier};
use artoo_protocol::overdue::JUDGING_TIME;
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Actor, CallId, Command, Event, Message, Millis, Role, TaskId, Tasks, Timestamp};

use serde::{Deserialize, Serialize};

use crate::panel::Judges;
use judging::{Context, TaskState};

pub use prompt::{Prompts, schema};

/// R4b's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// After so many replans it recommends to stop.
    pub max_replans: u32,
    /// Which model merges and judges: the planner's own ([`Tier::Brain`]) or one that the operator ranks at least as high
    /// ([`Tier::Judge`]).
    pub judge: Tier,
    /// Who judges a verifiable criterion without a check.
    pub judges: Judges,
    /// How long the judgement of an attempt may take, at least [`JUDGING_TIME`]: a missing outcome is waited for so long after
    /// its subtask's deadline. R2 is set to the same.
    pub judging_time: Millis,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_replans: 3,
            judge: Tier::Brain,
            judges: Judges::One,
            judging_time: JUDGING_TIME,
        }
    }
}

/// What R4b may want done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Tell the controller that the task is done.
    Accept(Box<OutcomeSummary>),
    /// Tell the controller what is missing.
    Replan(Box<ReplanRequest>),
    /// Run a machine check on a task criterion.
    Check {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The check.
        request: CheckRequest,
    },
    /// Ask a model to merge and to judge.
    Merge {
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
            Effect::Accept(summary) => {
                let task = summary.task_id.clone();
                Self::publish(&task, *summary)
            }
            Effect::Replan(request) => {
                let task = request.task_id.clone();
                Self::publish(&task, *request)
            }
            Effect::Check { task_id, call, request } => Self::RunCheck { task_id, call, request },
            Effect::Merge { task_id, call, request } => Self::CallModel { task_id, call, request },
        }
    }
}

/// R4b as a pure state machine.
#[derive(Debug, Default)]
pub struct MetaValidator {
    config: Config,
    prompts: Prompts,
    tasks: Tasks<TaskState>,
}

impl MetaValidator {
    /// With these limits and this fixed text.
    pub fn new(config: Config, prompts: Prompts) -> Self {
        Self {
            config,
            prompts,
            tasks: Tasks::default(),
        }
    }

    /// A message, heard now and stamped when it was said.
    fn told(&mut self, now: Timestamp, stamp: Timestamp, message: Message) -> Vec<Effect> {
        let context = Context {
            config: &self.config,
            prompts: &self.prompts,
            now,
        };
        match message {
            Message::DispatchManifest(manifest) => {
                let first = || TaskState::new(manifest.clone(), &self.config);
                let task = self.tasks.open(&manifest.task_id, first);
                task.map(|task| task.dispatched(manifest.clone(), &context))
            }
            Message::SubTaskOutcome(outcome) => {
                let task = self.tasks.get_mut(&outcome.parent_task_id);
                task.map(|task| task.concluded(outcome, stamp, &context))
            }
            Message::ConfirmationRequest(asked) => {
                if let Some(task) = self.tasks.get_mut(&asked.task_id) {
                    task.waiting(&asked.request_id, true, stamp);
                }
                None
            }
            Message::ConfirmationAnswer(answer) => {
                if let Some(task) = self.tasks.get_mut(&answer.task_id) {
                    task.waiting(&answer.request_id, false, stamp);
                }
                None
            }
            Message::TaskResumed(resumed) => {
                if let Some(task) = self.tasks.get_mut(&resumed.task_id) {
                    task.away(resumed.away_ms);
                }
                None
            }
            // Everything else is said to others.
            other => {
                other.ends().into_iter().for_each(|task| self.tasks.close(task));
                None
            }
        }
        .unwrap_or_default()
    }
}

impl Actor for MetaValidator {
    type Effect = Effect;

    const ROLE: Role = Role::R4b;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Effect> {
        match event {
            Event::Message { envelope } => self.told(now, envelope.timestamp, envelope.payload),
            Event::Answer { task_id, call, answer } => {
                let context = Context {
                    config: &self.config,
                    prompts: &self.prompts,
                    now,
                };
                let task = self.tasks.get_mut(&task_id);
                task.map(|task| task.answered(call, answer, &context))
                    .unwrap_or_default()
            }
            Event::Wake => {
                let context = Context {
                    config: &self.config,
                    prompts: &self.prompts,
                    now,
                };
                let tasks = self.tasks.states_mut();
                tasks.flat_map(|task| task.woken(&context)).collect()
            }
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.tasks.states().filter_map(TaskState::deadline).min()
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}
