//! A world whose process dies, and another one that goes on (design §17).
//!
//! Owns what is lost with a process and in which order resumed roles begin; follows the rules of the real driver.

use std::collections::{BTreeMap, BTreeSet};

use artoo_bus::journal::read;
use artoo_bus::{Meter, Recovered};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::TaskResumed;
use artoo_protocol::{Actor, Answer, CallId, Envelope, EnvelopeId, Event, Message, Role, TaskId, Timestamp};

use super::seat::Seat;
use super::{Due, World, Written};
use crate::surroundings::Surroundings;

impl<S: Surroundings> World<S> {
    /// Lets the process die with the `written`-th record of this world. With `last_deed` the action of which that record is the
    /// intention still happens.
    pub const fn light(&mut self, written: u64, last_deed: bool) {
        self.last_deed = last_deed;
        self.journals.light(written);
    }

    /// The clock is set, or the machine sleeps: what is under way comes as much later or earlier by the clock.
    pub fn jump(&mut self, to: Timestamp) {
        let moved = |at: Timestamp| {
            let after = at.as_millis().saturating_add(to.as_millis());
            Timestamp::from_millis(after.saturating_sub(self.now.as_millis()))
        };
        self.queue = std::mem::take(&mut self.queue)
            .into_iter()
            .map(|((at, order), due)| ((moved(at), order), due))
            .collect();
        for seat in &mut self.seats {
            seat.last_message = moved(seat.last_message);
        }
        self.now = to;
    }

    /// With the power goes what was not waited for: the journal may not know of an action any more, and it happens once more.
    pub fn lose_power(&mut self, task: &TaskId, kept: usize) {
        self.journals.lose(task, kept);
        self.performed.retain(|_, done| done.surely_known);
    }

    /// The person wants these actions done again though they may have happened.
    pub fn allow_again(&mut self, task: &TaskId, calls: &BTreeSet<CallId>) {
        self.again
            .extend(calls.iter().map(|call| (task.suffix().to_owned(), *call)));
    }

    /// What models used before counts on.
    pub fn restore(&mut self, meter: Meter, records: &[Record]) {
        self.meter = meter;
        for record in records {
            if let Entry::Answered {
                answer: Answer::Model(Ok(reply)),
                ..
            } = &record.entry
                && let Some(task) = read::task_id(records)
            {
                self.meter.restore(task, &reply.model, &reply.usage);
            }
        }
    }

    /// The process dies: the roles and everything on its way is gone, also what the person was about to answer. What the person
    /// will say by themselves comes all the same.
    pub fn crash(&mut self) {
        self.journals.revive();
        self.seats.clear();
        self.queue.retain(|_, due| match due {
            Due::Deliver { .. } => false,
            Due::Say { message, .. } => !matches!(
                message,
                Message::ConfirmationAnswer(_) | Message::ClarificationAnswer(_)
            ),
        });
    }

    /// Another process takes the task up at `now`, which may also lie before the crash: somebody set the clock. Gives the
    /// journal with the message that says so, and puts the questions again that are open in it.
    pub fn take_up(&mut self, task: &TaskId, now: Timestamp) -> Vec<Record> {
        self.now = now;
        let records = self.journals.records(task);
        let last = records.last().map_or(now, |record| record.at);
        let seq = read::last_seq(records) + 1;
        // What the journal does not hold was not said.
        let said = records.iter().filter_map(|record| match &record.entry {
            Entry::Published { envelope } => Some(envelope.clone()),
            _ => None,
        });
        self.log = said.collect();
        self.seq = seq + 1;
        let id = read::task_id(self.journals.records(task)).unwrap_or(task).clone();
        let resumed = TaskResumed {
            task_id: id.clone(),
            away_ms: now.since(last),
        };
        let envelope = Envelope {
            id: EnvelopeId::new(format!("e{seq}")),
            seq,
            task_id: Some(id),
            timestamp: now,
            from: Role::Runtime,
            to: Role::R7,
            payload: resumed.into(),
        };
        self.journals.published(&envelope);
        self.log.push(envelope);
        let records = self.journals.records(task).to_vec();
        for question in read::open_questions(&records) {
            if let Some(reply) = self.surroundings.person(&question) {
                let said = Due::Say {
                    from: Role::User,
                    message: reply.value,
                };
                self.enqueue(self.now.plus(reply.after), said);
            }
        }
        records
    }

    /// Adds a role that goes on where its journal ends, as the driver does.
    pub fn resume<A: Actor>(&mut self, recovered: Recovered<A>) {
        let (actor, start) = recovered.into_start();
        let mut tasks = BTreeMap::new();
        tasks.extend(start.task.clone().map(|task| (task.suffix().to_owned(), task)));
        self.seats.push(Seat::new(actor, tasks, self.now));
        self.starting.push((A::ROLE, start));
    }

    /// Lets the resumed roles begin, now that all of them are there to hear one another. As with the driver, what they find in
    /// the journal comes before everything else.
    pub fn begin_again(&mut self) {
        for (role, start) in std::mem::take(&mut self.starting) {
            for command in start.again {
                self.perform(role, command);
            }
            for command in start.commands {
                self.begin(role, command, start.task.as_ref());
            }
            for event in start.events {
                self.deliver(role, event, Written::Before);
            }
            for (call, answer) in start.answers {
                if let Some(task_id) = start.task.clone() {
                    self.deliver(role, Event::Answer { task_id, call, answer }, Written::Now);
                }
            }
        }
    }
}
