//! All roles in one thread: a queue of events ordered by virtual time, and surroundings that answer (design §2).
//!
//! Deterministic: the same roles, surroundings and input give the same run. It follows the rules of the real bus and
//! driver — routes, copies, delivery order, cancellation when a task ends — without runtime, files or network.

use std::collections::BTreeMap;

use artoo_protocol::message::{Megram, MemoryQuery, MemoryReply};
use artoo_protocol::model::{ModelError, ModelReply, ModelRequest};
use artoo_protocol::tool::{Assessment, CheckReport, CheckRequest, Invocation, Permit, ToolOutput};
use artoo_protocol::{
    Actor, Answer, CallId, Command, Envelope, EnvelopeId, Event, Message, Millis, Role, TaskId, Timestamp, route,
};

/// Something with the virtual time that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply<T> {
    /// How long it takes.
    pub after: Millis,
    /// What comes of it.
    pub value: T,
}

impl<T> Reply<T> {
    /// At once.
    pub const fn now(value: T) -> Self {
        Self {
            after: Millis(0),
            value,
        }
    }
}

/// Everything outside the roles.
pub trait Surroundings {
    /// A language model.
    fn model(&mut self, role: Role, request: &ModelRequest) -> Reply<Result<ModelReply, ModelError>>;
    /// What a tool call would do.
    fn assess(&mut self, invocation: &Invocation) -> Assessment;
    /// A tool call.
    fn run(&mut self, invocation: &Invocation, permit: Permit) -> Reply<ToolOutput>;
    /// A machine check.
    fn check(&mut self, request: &CheckRequest) -> Reply<CheckReport>;
    /// Memory, reading.
    fn recall(&mut self, query: &MemoryQuery) -> Reply<MemoryReply>;
    /// Memory, writing.
    fn store(&mut self, megram: Megram);
    /// The person, who sees everything addressed to them and may answer.
    fn person(&mut self, message: &Message) -> Option<Reply<Message>>;
}

/// A role of any kind, as the world needs it.
trait Stepping {
    fn role(&self) -> Role;
    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Command>;
    fn deadline(&self) -> Option<Timestamp>;
    fn open_tasks(&self) -> usize;
}

impl<A: Actor> Stepping for A {
    fn role(&self) -> Role {
        A::ROLE
    }
    fn step(&mut self, now: Timestamp, event: Event) -> Vec<Command> {
        Actor::step(self, now, event).into_iter().map(Into::into).collect()
    }
    fn deadline(&self) -> Option<Timestamp> {
        Actor::deadline(self)
    }
    fn open_tasks(&self) -> usize {
        Actor::open_tasks(self)
    }
}

enum Due {
    Deliver { role: Role, event: Event },
    Say { from: Role, message: Message },
}

/// The whole system on virtual time.
pub struct World<S> {
    /// Everything outside the roles.
    pub surroundings: S,
    /// Every envelope published, in order.
    pub log: Vec<Envelope>,
    now: Timestamp,
    roles: Vec<Box<dyn Stepping>>,
    queue: BTreeMap<(Timestamp, u64), Due>,
    order: u64,
}

impl<S: Surroundings> World<S> {
    /// An empty world at `now`.
    pub fn new(now: Timestamp, surroundings: S) -> Self {
        Self {
            surroundings,
            log: Vec::new(),
            now,
            roles: Vec::new(),
            queue: BTreeMap::new(),
            order: 0,
        }
    }

    /// Adds a role.
    #[must_use]
    pub fn with(mut self, actor: impl Actor) -> Self {
        self.roles.push(Box::new(actor));
        self
    }

    /// Virtual time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The person or the runtime says something, now or later.
    pub fn say(&mut self, from: Role, after: Millis, message: impl Into<Message>) {
        let message = message.into();
        self.enqueue(after, Due::Say { from, message });
    }

    /// State that roles still hold; zero after every task has ended.
    pub fn open_tasks(&self) -> usize {
        self.roles.iter().map(|role| role.open_tasks()).sum()
    }

    /// Runs until nothing is left to happen, or `steps` events have; says whether it came to rest.
    pub fn run(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            if !self.advance() {
                return true;
            }
        }
        false
    }

    /// Takes the next event; `false` when there is none.
    fn advance(&mut self) -> bool {
        let wake = self
            .roles
            .iter()
            .enumerate()
            .filter_map(|(index, role)| role.deadline().map(|at| (at, index)))
            .min();
        let due = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (due, wake) {
            (None, None) => return false,
            (Some(at), Some((deadline, index))) if deadline < at => self.wake(deadline, index),
            (None, Some((deadline, index))) => self.wake(deadline, index),
            (Some(_), _) => {
                let Some(((at, _), due)) = self.queue.pop_first() else {
                    return false;
                };
                self.now = self.now.max(at);
                match due {
                    Due::Say { from, message } => self.publish(from, message_task(&message), message),
                    Due::Deliver { role, event } => {
                        let Some(index) = self.roles.iter().position(|r| r.role() == role) else {
                            return true;
                        };
                        self.step(index, event);
                    }
                }
            }
        }
        true
    }

    fn wake(&mut self, deadline: Timestamp, index: usize) {
        self.now = self.now.max(deadline);
        self.step(index, Event::Wake);
    }

    fn step(&mut self, index: usize, event: Event) {
        let now = self.now;
        let Some(actor) = self.roles.get_mut(index) else { return };
        let role = actor.role();
        for command in actor.step(now, event) {
            self.perform(role, command);
        }
    }

    fn perform(&mut self, role: Role, command: Command) {
        match command {
            Command::Publish { task_id, message } => self.publish(role, task_id, *message),
            Command::CallModel { task_id, call, request } => {
                let reply = self.surroundings.model(role, &request);
                self.answer(role, task_id, call, reply.after, Answer::Model(reply.value));
            }
            Command::Assess { task_id, call, invocation } => {
                let assessment = self.surroundings.assess(&invocation);
                self.answer(role, task_id, call, Millis(0), Answer::Assessed(assessment));
            }
            Command::RunTool { task_id, call, invocation, permit } => {
                let reply = self.surroundings.run(&invocation, permit);
                self.answer(role, task_id, call, reply.after, Answer::Ran(reply.value));
            }
            Command::RunCheck { task_id, call, request } => {
                let reply = self.surroundings.check(&request);
                self.answer(role, task_id, call, reply.after, Answer::Checked(reply.value));
            }
            Command::Recall { task_id, call, query } => {
                let reply = self.surroundings.recall(&query);
                self.answer(role, task_id, call, reply.after, Answer::Recalled(reply.value));
            }
            Command::Store { megram } => self.surroundings.store(megram),
            Command::Cancel { task_id, call } => self.queue.retain(|_, due| {
                !matches!(due, Due::Deliver { role: r, event: Event::Answer { task_id: t, call: c, .. } } if *r == role && *t == task_id && *c == call)
            }),
        }
    }

    fn answer(&mut self, role: Role, task_id: TaskId, call: CallId, after: Millis, answer: Answer) {
        self.enqueue(
            after,
            Due::Deliver {
                role,
                event: Event::Answer { task_id, call, answer },
            },
        );
    }

    fn enqueue(&mut self, after: Millis, due: Due) {
        self.order += 1;
        self.queue.insert((self.now.plus(after), self.order), due);
    }

    fn publish(&mut self, from: Role, task_id: Option<TaskId>, message: Message) {
        let Some(route) = route(message.kind(), from) else {
            return;
        };
        let seq = self.log.len() as u64 + 1;
        let envelope = Envelope {
            id: EnvelopeId::new(format!("e{seq}")),
            seq,
            task_id,
            timestamp: self.now,
            from,
            to: route.to,
            payload: message,
        };
        if matches!(envelope.payload, Message::FinalResult(_) | Message::TaskAborted(_)) {
            self.drop_answers(envelope.task_id.as_ref());
        }
        if route.to == Role::User
            && let Some(reply) = self.surroundings.person(&envelope.payload)
        {
            self.enqueue(
                reply.after,
                Due::Say {
                    from: Role::User,
                    message: reply.value,
                },
            );
        }
        for &role in std::iter::once(&route.to).chain(route.copies) {
            self.enqueue(
                Millis(0),
                Due::Deliver {
                    role,
                    event: Event::Message {
                        envelope: envelope.clone(),
                    },
                },
            );
        }
        self.log.push(envelope);
    }

    /// What was in flight for a task that ended is stopped, as the driver does.
    fn drop_answers(&mut self, task_id: Option<&TaskId>) {
        let Some(ended) = task_id else { return };
        self.queue.retain(
            |_, due| !matches!(due, Due::Deliver { event: Event::Answer { task_id, .. }, .. } if task_id.suffix() == ended.suffix()),
        );
    }
}

/// The task that a message from outside the roles is about.
fn message_task(message: &Message) -> Option<TaskId> {
    match message {
        Message::UserInput(m) => Some(m.task_id.clone()),
        Message::ClarificationAnswer(m) => Some(m.task_id.clone()),
        Message::ConfirmationAnswer(m) => Some(m.task_id.clone()),
        Message::TaskAborted(m) => Some(m.task_id.clone()),
        Message::BudgetReached(m) => Some(m.task_id.clone()),
        other => serde_json::to_value(other)
            .ok()
            .and_then(|v| v.get("task_id")?.as_str().map(TaskId::new)),
    }
}
