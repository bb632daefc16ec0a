//! Carrying out what roles want: the surroundings answer, and every action that leaves something behind is counted (design §9).
//!
//! Owns the rules of the real shell as far as they matter to a run: an action that leaves something behind needs a journal that
//! can be written, and what a model used is charged before its role hears the answer.

use artoo_protocol::message::FailureClass;
use artoo_protocol::model::{ModelContent, ModelReply};
use artoo_protocol::tool::{EffectClass, Invocation, ToolOutput};
use artoo_protocol::{Answer, CallId, Command, Event, Message, Millis, Role, TaskId};

use super::{Due, World};
use crate::sabotage::Saboteur;
use crate::surroundings::Surroundings;

/// How often an action happened.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) times: u32,
    /// Whether its intention was on disk for sure: else lost power may have made the journal forget it.
    pub(super) surely_known: bool,
    /// What was done, whatever the call.
    pub(super) deed: String,
}

/// How often a thing was done in a task, and how often it was wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deed {
    pub(super) done: u32,
    /// By a model's answer, or by the person after a crash.
    pub(super) wanted: u32,
}

/// What an action does: all of its arguments, in one task.
fn deed(task: &TaskId, tool: &str, input: &serde_json::Value) -> String {
    format!("{} {tool} {input}", task.suffix())
}

impl<S: Surroundings> World<S> {
    pub(super) fn perform(&mut self, role: Role, command: Command) {
        match command {
            Command::Publish { task_id, message } => self.publish(role, task_id, *message),
            Command::CallModel { task_id, call, request } => {
                let reply = self.surroundings.model(role, &request);
                if let (Role::R3, Ok(reply)) = (role, &reply.value) {
                    self.want(&task_id, reply);
                }
                self.answer(role, task_id, call, reply.after, Answer::Model(reply.value));
            }
            Command::Assess {
                task_id,
                call,
                invocation,
            } => {
                let assessment = self.surroundings.assess(&invocation);
                self.answer(role, task_id, call, Millis(0), Answer::Assessed(assessment));
            }
            Command::RunTool {
                task_id,
                call,
                invocation,
                permit,
            } => {
                let least = match &self.saboteur {
                    Some(saboteur) if saboteur.makes_unwritten() => EffectClass::Modify,
                    Some(_) | None => EffectClass::Create,
                };
                if permit.effect >= least && self.journals.has_failed(&task_id) {
                    let refused = refused("the journal cannot be written");
                    return self.answer(role, task_id, call, Millis(0), Answer::Ran(refused));
                }
                let reply = self.surroundings.run(&invocation, permit);
                if permit.effect >= EffectClass::Create {
                    self.count(&task_id, call, permit.effect, &invocation, reply.value.stale);
                }
                self.answer(role, task_id, call, reply.after, Answer::Ran(reply.value));
            }
            Command::RunCheck { task_id, call, request } => {
                let reply = self.surroundings.check(&request);
                self.answer(role, task_id, call, reply.after, Answer::Checked(reply.value));
            }
            Command::Recall { task_id, call, query } => {
                let reply = self.surroundings.recall(self.now, &query);
                self.answer(role, task_id, call, reply.after, Answer::Recalled(reply.value));
            }
            Command::Keep { path, text, .. } => self.surroundings.keep(&path, &text),
            Command::Store { megram } => self.surroundings.store(megram),
            Command::Cancel { task_id, call } => self.queue.retain(|_, due| {
                !matches!(due, Due::Deliver { role: r, event: Event::Answer { task_id: t, call: c, .. } } if *r == role && *t == task_id && *c == call)
            }),
        }
    }

    /// A model asks the executor for calls.
    pub(super) fn want(&mut self, task: &TaskId, reply: &ModelReply) {
        if let ModelContent::ToolCalls { calls, .. } = &reply.content {
            for call in calls {
                let deed = deed(task, &call.name, &call.arguments);
                self.deeds.entry(deed).or_default().wanted += 1;
            }
        }
    }

    /// An action happens. No call may be made twice, unless the person said so; nor may the same be done under another call unless a
    /// model asked for it once more. One that found the world changed did nothing; that it was wanted counts for its next try.
    fn count(&mut self, task: &TaskId, call: CallId, effect: EffectClass, invocation: &Invocation, stale: bool) {
        let key = (task.suffix().to_owned(), call);
        let wanted = self.again.remove(&key);
        let name = deed(task, &invocation.tool, &invocation.input);
        let deed = self.deeds.entry(name.clone()).or_default();
        deed.wanted += u32::from(wanted);
        if stale {
            return;
        }
        deed.done += 1;
        if deed.done > deed.wanted {
            self.faults.push(format!(
                "task {}: an action of class {effect} was done more often than a model asked for it: {name}",
                task.suffix()
            ));
        }
        let done = self.performed.entry(key).or_insert(Done {
            times: 0,
            surely_known: effect > EffectClass::Create,
            deed: name,
        });
        if done.times > 0 && !wanted {
            self.faults.push(format!(
                "task {}: an action of class {effect} was done twice: call {call}",
                task.suffix()
            ));
        }
        done.times += 1;
    }

    fn answer(&mut self, role: Role, task_id: TaskId, call: CallId, after: Millis, answer: Answer) {
        let at = self.now.plus(after.saturating_add(self.delay()));
        let event = Event::Answer { task_id, call, answer };
        self.enqueue(at, Due::Deliver { role, event });
    }

    /// What an answer cost is counted before its role hears of it.
    pub(super) fn charge(&mut self, task: &TaskId, answer: &Answer) {
        if self.journals.is_dead() || self.journals.has_ended(task) {
            return;
        }
        let spent = answer.spent();
        let reached = spent.and_then(|(model, usage)| self.meter.charge(task, model, usage));
        let silent = self.saboteur.as_ref().is_some_and(Saboteur::never_tells);
        if let Some(reached) = reached.filter(|_| !silent) {
            self.publish(Role::Runtime, Some(task.clone()), Message::from(reached));
        }
    }
}

/// The task in whose journal a command is written; what is published is written down as the message.
pub(super) fn subject(command: &Command, step_task: Option<&TaskId>) -> Option<TaskId> {
    match command {
        Command::Publish { .. } => None,
        Command::CallModel { task_id, .. }
        | Command::Assess { task_id, .. }
        | Command::RunTool { task_id, .. }
        | Command::RunCheck { task_id, .. }
        | Command::Recall { task_id, .. }
        | Command::Keep { task_id, .. }
        | Command::Cancel { task_id, .. } => Some(task_id.clone()),
        Command::Store { .. } => step_task.cloned(),
    }
}

fn refused(why: &str) -> ToolOutput {
    ToolOutput {
        error: Some(format!("not run, because {why}")),
        failure_class: Some(FailureClass::Environmental),
        ..ToolOutput::default()
    }
}
