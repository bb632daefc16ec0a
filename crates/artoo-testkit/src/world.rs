//! All roles in one thread: a queue of events ordered by virtual time, and surroundings that answer (design §2).
//!
//! Deterministic: the same roles, surroundings and input give the same run. It follows the rules of the real bus and
//! driver — routes, copies, delivery order, the journal, cancellation when a task ends — without runtime, files or
//! network.

mod again;
mod perform;
mod seat;
mod till;
mod waking;

use std::collections::{BTreeMap, BTreeSet};

use artoo_bus::{Meter, Start, beside};
use artoo_protocol::journal::{Entry, StepCause};
use artoo_protocol::{
    Actor, Answer, CallId, Command, Envelope, EnvelopeId, Event, Message, MessageKind, Millis, Role, TaskId, Timestamp,
    route,
};

use crate::journal::Journals;
use crate::random::Random;
use crate::sabotage::Saboteur;
use crate::surroundings::Surroundings;
use seat::Seat;
use till::Till;

pub use till::Paid;

enum Due {
    Deliver { role: Role, event: Event },
    Say { from: Role, message: Message },
}

/// When an answer was written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Now,
    Before,
}

/// The whole system on virtual time.
pub struct World<S> {
    /// Everything outside the roles.
    pub surroundings: S,
    /// Every envelope published, in order.
    pub log: Vec<Envelope>,
    /// What the bus would have written down.
    pub journals: Journals,
    /// What went wrong in the world itself: a message without a route, a deadline that a wake does not move.
    pub faults: Vec<String>,
    now: Timestamp,
    seats: Vec<Seat>,
    queue: BTreeMap<(Timestamp, u64), Due>,
    order: u64,
    /// Of the next message.
    seq: u64,
    pace: Option<(Random, u64)>,
    /// Resumed roles that have not begun yet.
    starting: Vec<(Role, Start)>,
    /// Counts tokens and ends what uses too many.
    meter: Meter,
    /// Actions that leave something behind, by task and call, that really happened: how often, and whether a lost journal may
    /// have forgotten them.
    performed: BTreeMap<(String, CallId), perform::Done>,
    /// The same by what was done, whatever the call.
    deeds: BTreeMap<String, perform::Deed>,
    /// What models were paid.
    till: Till,
    /// What the person will say about tasks that lie still since their process ended.
    held: Vec<((Timestamp, u64), Due)>,
    /// Those that the person wants done once more after a crash.
    again: BTreeSet<(String, CallId)>,
    /// The last action still happens though the process dies with its intention.
    last_deed: bool,
    /// Makes a role do wrong.
    pub(crate) saboteur: Option<Saboteur>,
}

impl<S: Surroundings> World<S> {
    /// An empty world at `now`.
    pub fn new(now: Timestamp, surroundings: S) -> Self {
        Self {
            surroundings,
            log: Vec::new(),
            journals: Journals::default(),
            faults: Vec::new(),
            now,
            seats: Vec::new(),
            queue: BTreeMap::new(),
            order: 0,
            seq: 1,
            pace: None,
            starting: Vec::new(),
            meter: Meter::unlimited(),
            performed: BTreeMap::new(),
            deeds: BTreeMap::new(),
            till: Till::default(),
            held: Vec::new(),
            again: BTreeSet::new(),
            last_deed: false,
            saboteur: None,
        }
    }

    /// Counts what models use with this meter.
    #[must_use]
    pub fn metered(mut self, meter: Meter) -> Self {
        self.meter = meter;
        self
    }

    /// Adds a role.
    #[must_use]
    pub fn with(mut self, actor: impl Actor) -> Self {
        self.seat(actor);
        self
    }

    /// Adds a role that knows no task.
    pub fn seat(&mut self, actor: impl Actor) {
        self.seats.push(Seat::new(actor, BTreeMap::new(), self.now));
    }

    /// Lets every message and answer take up to `most` on its way, so that roles interleave differently for every seed.
    #[must_use]
    pub fn paced(mut self, seed: u64, most: Millis) -> Self {
        self.pace = Some((Random::new(seed), most.0));
        self
    }

    /// Lets a role do wrong, to see whether anybody notices.
    #[must_use]
    pub fn sabotaged(mut self, saboteur: Option<Saboteur>) -> Self {
        self.saboteur = saboteur;
        self
    }

    /// Virtual time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// The person or the runtime says something, now or later.
    pub fn say(&mut self, from: Role, after: Millis, message: impl Into<Message>) {
        let message = message.into();
        self.enqueue(self.now.plus(after), Due::Say { from, message });
    }

    /// Actions for a task that really happened and leave something behind.
    pub fn deeds(&self, task: &TaskId) -> usize {
        let of_task = |(suffix, _): &&(String, CallId)| suffix == task.suffix();
        self.performed.keys().filter(of_task).count()
    }

    /// What models were paid for a task, by its suffix.
    pub fn paid(&self, suffix: &str) -> Paid {
        self.till.paid(suffix)
    }

    /// State that roles still hold; zero after every task has ended.
    pub fn open_tasks(&self) -> usize {
        self.seats.iter().map(|seat| seat.actor.open_tasks()).sum()
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

    /// Takes the next event; `false` when there is none, or nobody to take it.
    pub fn advance(&mut self) -> bool {
        if self.journals.is_dead() {
            return false;
        }
        let wake = self
            .seats
            .iter()
            .enumerate()
            .filter_map(|(index, seat)| seat.actor.deadline().map(|at| (at, index, seat.stuck)))
            .filter(|(at, _, stuck)| *stuck != Some(*at))
            .map(|(at, index, _)| (at, index))
            .min();
        let due = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (due, wake) {
            (None, None) => return false,
            (Some(at), Some((deadline, index))) if deadline <= at => self.time_is_up(deadline, index),
            (None, Some((deadline, index))) => self.time_is_up(deadline, index),
            (Some(_), _) => {
                let Some(((at, _), due)) = self.queue.pop_first() else {
                    return false;
                };
                self.now = self.now.max(at);
                match due {
                    Due::Say { from, message } => self.publish(from, message_task(&message), message),
                    Due::Deliver { role, event } => self.deliver(role, event, Written::Now),
                }
            }
        }
        true
    }

    fn deliver(&mut self, role: Role, event: Event, written: Written) {
        let Some(index) = self.seats.iter().position(|seat| seat.actor.role() == role) else {
            return;
        };
        let (task, cause) = match &event {
            Event::Message { envelope } => (envelope.task_id.clone(), StepCause::Message { seq: envelope.seq }),
            Event::Answer { task_id, call, answer } => {
                let (call, answer) = (*call, answer.clone());
                if written == Written::Now {
                    self.take_answer(role, task_id, call, &answer);
                }
                (Some(task_id.clone()), StepCause::Answer { call })
            }
            Event::Wake => (None, StepCause::Wake),
        };
        let now = self.now;
        if let Some(task) = &task {
            self.journals.record(task, now, Entry::Stepped { role, now, cause });
        }
        if self.journals.is_dead() {
            return;
        }
        let Some(seat) = self.seats.get_mut(index) else { return };
        seat.stuck = None;
        if let Some(task) = &task {
            seat.tasks.insert(task.suffix().to_owned(), task.clone());
        }
        self.step(index, event, task.as_ref());
    }

    /// Writes an answer down and counts what it cost.
    fn take_answer(&mut self, role: Role, task: &TaskId, call: CallId, answer: &Answer) {
        let before = self.journals.written();
        let mut booked = answer.clone();
        if let Some(saboteur) = &self.saboteur {
            saboteur.books(&mut booked);
        }
        let answered = Entry::Answered {
            role,
            call,
            answer: booked,
        };
        self.journals.record(task, self.now, answered);
        if self.journals.written() > before {
            self.till.pay(task.suffix(), role, call, answer);
        }
        self.charge(task, answer);
    }

    fn step(&mut self, index: usize, mut event: Event, task: Option<&TaskId>) {
        let now = self.now;
        let Some(seat) = self.seats.get_mut(index) else { return };
        let role = seat.actor.role();
        if let Some(saboteur) = &mut self.saboteur
            && !saboteur.hears(role, &mut event)
        {
            return;
        }
        let mut commands = seat.actor.step(now, event);
        if let Some(saboteur) = &mut self.saboteur {
            saboteur.wants(role, &mut commands);
        }
        let cause = StepCause::Wake;
        let task_of_step = task.filter(|_| !self.saboteur.as_ref().is_some_and(Saboteur::explains_nothing));
        for other in task_of_step.into_iter().flat_map(|task| beside(task, &commands)) {
            self.journals.record(other, now, Entry::Stepped { role, now, cause });
        }
        for command in commands {
            self.begin(role, command, task);
        }
    }

    /// Writes a command down and carries it out, unless its task has ended.
    fn begin(&mut self, role: Role, command: Command, task: Option<&TaskId>) {
        let was_dead = self.journals.is_dead();
        if let Some(about) = perform::subject(&command, task) {
            let store = matches!(command, Command::Store { .. });
            if !store && self.journals.has_ended(&about) {
                return;
            }
            let command = command.clone();
            self.journals
                .record(&about, self.now, Entry::Commanded { role, command });
        }
        if !self.journals.is_dead() || (!was_dead && self.last_deed) {
            self.perform(role, command);
        }
    }

    fn delay(&mut self) -> Millis {
        let pace = self.pace.as_mut();
        pace.map_or(Millis(0), |(random, most)| Millis(random.below(*most + 1)))
    }

    fn enqueue(&mut self, at: Timestamp, due: Due) {
        self.order += 1;
        self.queue.insert((at, self.order), due);
    }

    fn publish(&mut self, from: Role, task_id: Option<TaskId>, message: Message) {
        if self.journals.is_dead() {
            return;
        }
        let kind = message.kind();
        let Some(route) = route(kind, from) else {
            self.faults.push(format!("{from} may not send {}", kind.name()));
            return;
        };
        let outside = matches!(from, Role::User | Role::Runtime);
        if !outside
            && task_id
                .as_ref()
                .is_some_and(|task| !self.journals.admits(task, from, kind))
        {
            return;
        }
        let seq = self.seq;
        self.seq += 1;
        let envelope = Envelope {
            id: EnvelopeId::new(format!("e{seq}")),
            seq,
            task_id,
            timestamp: self.now,
            from,
            to: route.to,
            payload: message,
        };
        self.journals.published(&envelope);
        if self.journals.is_dead() {
            return;
        }
        if matches!(kind, MessageKind::FinalResult | MessageKind::TaskAborted) {
            self.drop_answers(envelope.task_id.as_ref());
        }
        if route.to == Role::User
            && let Some(reply) = self.surroundings.person(&envelope.payload)
        {
            let said = Due::Say {
                from: Role::User,
                message: reply.value,
            };
            self.enqueue(self.now.plus(reply.after), said);
        }
        for &role in std::iter::once(&route.to).chain(route.copies) {
            self.post(role, envelope.clone());
        }
        self.log.push(envelope);
    }

    /// Puts a message on its way to a role; it arrives after everything that was sent to that role before.
    fn post(&mut self, role: Role, envelope: Envelope) {
        let earliest = self.now.plus(self.delay());
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.actor.role() == role) else {
            return;
        };
        seat.last_message = seat.last_message.max(earliest);
        let at = seat.last_message;
        let event = Event::from(envelope);
        self.enqueue(at, Due::Deliver { role, event });
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
