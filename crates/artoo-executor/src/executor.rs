//! The actor R3: from a subtask to an execution result (design §8, §9).
//!
//! Owns the tool loop: prompt, model, gate, tools, result. Pure: the model, the tools and the person are reached by
//! effects. Must not judge its own output against the criteria, retry on its own, or read memory; its effect type has no
//! way to do so.

use std::collections::{BTreeMap, VecDeque};

use artoo_protocol::actor::{Actor, Answer, Command, Event};
use artoo_protocol::message::{
    ConfirmationAnswer, ConfirmationRequest, CorrectionSignal, ExecutionResult, Message, SubTask,
};
use artoo_protocol::model::{ModelRequest, ModelToolCall};
use artoo_protocol::places::Places;
use artoo_protocol::tool::{Invocation, Permit, ToolSpec};
use artoo_protocol::units::{LocalZone, Timestamp};
use artoo_protocol::{CallId, Role, SubTaskId, TaskId};
use serde::{Deserialize, Serialize};

use crate::attempt::{Pending, Phase, Stage, Work};
use crate::conversation;
use crate::gate::{Answers, Grant};
use crate::tool_loop::{LATE, Run};

/// Ended tasks that are remembered so that what arrives late for them is ignored.
const REMEMBERED_ENDS: usize = 256;

/// What an executor is set up with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The fixed part of the prompt; see [`conversation::system_prompt`].
    pub system: String,
    /// What the model should know of the machine: folders, system.
    pub facts: String,
    /// The user's zone, for "today".
    pub zone: LocalZone,
    /// Places that paths in a call may mean.
    pub places: Places,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// What the person allowed beforehand.
    pub grants: Vec<Grant>,
    /// Tool calls that one attempt may make.
    pub max_steps: u32,
    /// Characters of a tool's output that the model sees.
    pub shown_characters: usize,
    /// Tokens that the conversation of one attempt may have, by estimate; the oldest outputs of tools are left out first.
    pub max_context_tokens: usize,
}

impl Settings {
    /// The usual limits, for these tools.
    pub fn new(tools: Vec<ToolSpec>) -> Self {
        Self {
            system: conversation::system_prompt(),
            facts: String::new(),
            zone: LocalZone::default(),
            places: Places::default(),
            tools,
            grants: Vec::new(),
            max_steps: 16,
            shown_characters: 4000,
            max_context_tokens: 32_000,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Everything that R3 may want done.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum ExecutorEffect {
    /// The end of an attempt, to R4a.
    Finish(ExecutionResult),
    /// A question to the person.
    Confirm(ConfirmationRequest),
    /// Ask the model.
    CallModel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The request.
        request: ModelRequest,
    },
    /// Find out what a call would do.
    Assess {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The call.
        invocation: Invocation,
    },
    /// Make a call that the gate let through.
    RunTool {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The call.
        invocation: Invocation,
        /// What it may do.
        permit: Permit,
    },
    /// Stop something that was asked for.
    Cancel {
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
    },
}

impl From<ExecutorEffect> for Command {
    fn from(effect: ExecutorEffect) -> Self {
        match effect {
            ExecutorEffect::Finish(result) => Self::publish(&result.parent_task_id.clone(), result),
            ExecutorEffect::Confirm(request) => Self::publish(&request.task_id.clone(), request),
            ExecutorEffect::CallModel { task_id, call, request } => Self::CallModel { task_id, call, request },
            ExecutorEffect::Assess {
                task_id,
                call,
                invocation,
            } => Self::Assess {
                task_id,
                call,
                invocation,
            },
            ExecutorEffect::RunTool {
                task_id,
                call,
                invocation,
                permit,
            } => Self::RunTool {
                task_id,
                call,
                invocation,
                permit,
            },
            ExecutorEffect::Cancel { task_id, call } => Self::Cancel { task_id, call },
        }
    }
}

/// R3 for any number of tasks.
#[derive(Debug)]
pub struct Executor {
    settings: Settings,
    tasks: BTreeMap<TaskId, Task>,
    ended: VecDeque<TaskId>,
}

/// What is kept of one task.
#[derive(Debug)]
pub(crate) struct Task {
    works: BTreeMap<SubTaskId, Work>,
    next_call: CallId,
    /// What the person said to exact actions.
    pub answers: Answers,
    /// Absolute paths that this task made.
    pub created: Vec<String>,
}

impl Task {
    fn new() -> Self {
        Self {
            works: BTreeMap::new(),
            next_call: CallId(1),
            answers: Answers::default(),
            created: Vec::new(),
        }
    }

    /// A correlation id that this task has not used yet.
    pub fn take_call(&mut self) -> CallId {
        self.next_call.take()
    }

    /// A call of the model, with an id of our own: a model may leave its ids out or repeat them.
    pub fn pending(&mut self, mut asked: ModelToolCall) -> Pending {
        asked.id = format!("call_{}", self.take_call());
        Pending {
            asked,
            stage: Stage::New,
            warned: false,
            stale: 0,
        }
    }
}

impl Actor for Executor {
    type Effect = ExecutorEffect;

    const ROLE: Role = Role::R3;

    fn step(&mut self, now: Timestamp, event: Event) -> Vec<ExecutorEffect> {
        let mut effects = match event {
            Event::Message { envelope } => match (envelope.from, envelope.payload) {
                (Role::R2, Message::SubTask(subtask)) => self.begin(now, subtask),
                (Role::R4a, Message::CorrectionSignal(signal)) => self.correct(now, &signal),
                (Role::User, Message::ConfirmationAnswer(answer)) => self.confirmed(now, &answer),
                (_, Message::TaskAborted(message)) => self.end(&message.task_id),
                (_, Message::FinalResult(message)) => self.end(&message.task_id),
                // Everything else is not for R3.
                _ => Vec::new(),
            },
            Event::Answer { task_id, call, answer } => self.answered(now, &task_id, call, answer),
            Event::Wake => Vec::new(),
        };
        effects.extend(self.expire(now));
        effects
    }

    fn deadline(&self) -> Option<Timestamp> {
        let works = self.tasks.values().flat_map(|task| task.works.values());
        works
            .filter(|work| !matches!(work.phase, Phase::Ended))
            .filter_map(Work::deadline)
            .min()
    }

    fn open_tasks(&self) -> usize {
        self.tasks.len()
    }
}

impl Executor {
    /// An executor without tasks.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            tasks: BTreeMap::new(),
            ended: VecDeque::new(),
        }
    }

    fn begin(&mut self, now: Timestamp, subtask: SubTask) -> Vec<ExecutorEffect> {
        let (task_id, id) = (subtask.parent_task_id.clone(), subtask.subtask_id.clone());
        if self.ended.contains(&task_id) {
            return Vec::new();
        }
        let task = self.tasks.entry(task_id.clone()).or_insert_with(Task::new);
        if task.works.contains_key(&id) {
            return Vec::new();
        }
        let mut attempt = Run {
            settings: &self.settings,
            task_id,
            now,
            effects: Vec::new(),
        };
        let mut work = Work::new(subtask, now);
        attempt.open(task, &mut work, None);
        task.works.insert(id, work);
        attempt.effects
    }

    fn correct(&mut self, now: Timestamp, signal: &CorrectionSignal) -> Vec<ExecutorEffect> {
        self.with_work(now, &signal.parent_task_id, &signal.subtask_id, |run, task, work| {
            if matches!(work.phase, Phase::Ended) && work.attempt == signal.attempt_number {
                work.restart(signal.attempt_number.saturating_add(1));
                run.open(task, work, Some(signal));
            }
        })
    }

    fn confirmed(&mut self, now: Timestamp, answer: &ConfirmationAnswer) -> Vec<ExecutorEffect> {
        let asked = |work: &Work| matches!(&work.phase, Phase::Acting { calls, .. } if calls.iter().any(|p| p.asks(&answer.request_id)));
        let Some(id) = self.find(&answer.task_id, asked) else {
            return Vec::new();
        };
        self.with_work(now, &answer.task_id, &id, |run, task, work| {
            run.consent(task, work, answer);
        })
    }

    fn answered(&mut self, now: Timestamp, task_id: &TaskId, call: CallId, answer: Answer) -> Vec<ExecutorEffect> {
        let Some(id) = self.find(task_id, |work| work.outstanding().contains(&call)) else {
            return Vec::new();
        };
        self.with_work(now, task_id, &id, |run, task, work| match answer {
            Answer::Model(reply) => run.replied(task, work, call, reply),
            Answer::Assessed(assessment) => run.assessed(task, work, call, assessment),
            Answer::Ran(output) => run.ran(task, work, call, output),
            // R3 asks for neither.
            Answer::Checked(_) | Answer::Recalled(_) => {}
        })
    }

    fn end(&mut self, task_id: &TaskId) -> Vec<ExecutorEffect> {
        if !self.ended.contains(task_id) {
            self.ended.push_back(task_id.clone());
            if self.ended.len() > REMEMBERED_ENDS {
                self.ended.pop_front();
            }
        }
        let works = self.tasks.remove(task_id).map(|task| task.works).unwrap_or_default();
        let calls = works.values().flat_map(Work::outstanding);
        calls
            .map(|call| ExecutorEffect::Cancel {
                task_id: task_id.clone(),
                call,
            })
            .collect()
    }

    /// Ends the attempts whose time is up.
    fn expire(&mut self, now: Timestamp) -> Vec<ExecutorEffect> {
        let mut effects = Vec::new();
        for (task_id, task) in &mut self.tasks {
            for work in task.works.values_mut() {
                let mut run = Run {
                    settings: &self.settings,
                    task_id: task_id.clone(),
                    now,
                    effects: Vec::new(),
                };
                if !matches!(work.phase, Phase::Ended) && run.is_late(work) {
                    run.broke(work, LATE);
                    effects.append(&mut run.effects);
                }
            }
        }
        effects
    }

    fn find(&self, task_id: &TaskId, wanted: impl Fn(&Work) -> bool) -> Option<SubTaskId> {
        let works = &self.tasks.get(task_id)?.works;
        works.iter().find(|(_, work)| wanted(work)).map(|(id, _)| id.clone())
    }

    fn with_work(
        &mut self,
        now: Timestamp,
        task_id: &TaskId,
        id: &SubTaskId,
        act: impl FnOnce(&mut Run<'_>, &mut Task, &mut Work),
    ) -> Vec<ExecutorEffect> {
        let Some(task) = self.tasks.get_mut(task_id) else {
            return Vec::new();
        };
        let Some(mut work) = task.works.remove(id) else {
            return Vec::new();
        };
        let mut run = Run {
            settings: &self.settings,
            task_id: task_id.clone(),
            now,
            effects: Vec::new(),
        };
        act(&mut run, task, &mut work);
        task.works.insert(id.clone(), work);
        run.effects
    }
}
