//! Carrying out what roles want: the surroundings answer, and every action that leaves something behind is counted (design §9).
//!
//! Owns the rules of the real shell as far as they matter to a run: an action that leaves something behind needs a journal that
//! can be written, and what a model used is charged before its role hears the answer.

use artoo_protocol::message::FailureClass;
use artoo_protocol::model::Usage;
use artoo_protocol::tool::{EffectClass, ToolOutput};
use artoo_protocol::{Answer, CallId, Command, Event, Message, Millis, Role, TaskId};

use super::{Due, World};
use crate::surroundings::Surroundings;

/// How often an action happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) times: u32,
    /// Whether its intention was on disk for sure: else lost power may have made the journal forget it.
    pub(super) surely_known: bool,
}

impl<S: Surroundings> World<S> {
    pub(super) fn perform(&mut self, role: Role, command: Command) {
        match command {
            Command::Publish { task_id, message } => self.publish(role, task_id, *message),
            Command::CallModel { task_id, call, request } => {
                let reply = self.surroundings.model(role, &request);
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
                if permit.effect >= EffectClass::Create {
                    self.count(&task_id, call, permit.effect);
                }
                let reply = self.surroundings.run(&invocation, permit);
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

    /// An action happens. None may happen twice, unless the person said so.
    fn count(&mut self, task: &TaskId, call: CallId, effect: EffectClass) {
        let key = (task.suffix().to_owned(), call);
        let wanted = self.again.remove(&key);
        let done = self.performed.entry(key).or_insert(Done {
            times: 0,
            surely_known: effect > EffectClass::Create,
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
    pub(super) fn charge(&mut self, task: &TaskId, used: Option<Usage>) {
        if self.journals.is_dead() || self.journals.has_ended(task) {
            return;
        }
        let reached = used.and_then(|usage| self.meter.charge(task, "simulated", &usage));
        if let Some(reached) = reached {
            self.publish(Role::Runtime, Some(task.clone()), Message::from(reached));
        }
    }
}

/// What a model used for this answer.
pub(super) const fn model_use(answer: &Answer) -> Option<Usage> {
    match answer {
        Answer::Model(Ok(reply)) => Some(reply.usage),
        Answer::Model(Err(_)) | Answer::Assessed(_) | Answer::Ran(_) | Answer::Checked(_) | Answer::Recalled(_) => None,
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
