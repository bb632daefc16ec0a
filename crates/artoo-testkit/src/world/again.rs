//! A world whose process dies, and another one that goes on (design §17).
//!
//! Owns what is lost with a process and in which order resumed roles begin; follows the rules of the real driver. A process takes up
//! one task; the other ones lie still until one is there for them.

use std::collections::{BTreeMap, BTreeSet};

use artoo_bus::journal::read;
use artoo_bus::{Meter, Recovered};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{ConfirmationAnswer, ConfirmationRequest, Consent, TaskResumed};
use artoo_protocol::{Actor, Answer, CallId, Envelope, EnvelopeId, Event, Message, Role, TaskId, Timestamp, route};

use super::seat::Seat;
use super::{Due, World, Written, message_task};
use crate::sabotage::Saboteur;
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

    /// What the disk did not take is gone with its process.
    pub fn forget_unwritten(&mut self, task: &TaskId) {
        self.journals.forget_unwritten(task);
        self.till.forget(task.suffix(), self.journals.records(task));
    }

    /// With the power goes what was not waited for: the journal may not know of an action any more, and it happens once more.
    pub fn lose_power(&mut self, task: &TaskId, kept: usize) {
        self.journals.lose(task, kept);
        self.till.forget(task.suffix(), self.journals.records(task));
        let deeds = &mut self.deeds;
        self.performed.retain(|_, done| {
            if !done.surely_known
                && let Some(deed) = deeds.get_mut(&done.deed)
            {
                deed.done = deed.done.saturating_sub(done.times);
            }
            done.surely_known
        });
    }

    /// The person wants these actions done again though they may have happened.
    pub fn allow_again(&mut self, task: &TaskId, calls: &BTreeSet<CallId>) {
        self.again
            .extend(calls.iter().map(|call| (task.suffix().to_owned(), *call)));
    }

    /// A journal as another world left it: what a model asked for in it may still be done here.
    pub fn put(&mut self, task: &TaskId, records: &[Record]) {
        self.journals.put(task, records);
        for record in records {
            if let Entry::Answered {
                role: Role::R3,
                answer: Answer::Model(Ok(reply)),
                ..
            } = &record.entry
            {
                self.want(task, reply);
            }
        }
    }

    /// What models used before counts on.
    pub fn restore(&mut self, meter: Meter, records: &[Record]) {
        self.meter = meter;
        for record in records {
            if let Entry::Answered { answer, .. } = &record.entry
                && let Some((model, usage)) = answer.spent()
                && let Some(task) = read::task_id(records)
            {
                self.meter.restore(task, model, usage);
            }
        }
    }

    /// The process ends: the roles and everything on its way is gone, also what the person was about to answer. What the person
    /// will say by themselves comes all the same; about a task that has begun, when it is taken up.
    pub fn crash(&mut self) {
        self.journals.revive();
        self.seats.clear();
        self.starting.clear();
        for (at, due) in std::mem::take(&mut self.queue) {
            let Due::Say { message, .. } = &due else { continue };
            if matches!(
                message,
                Message::ConfirmationAnswer(_) | Message::ClarificationAnswer(_)
            ) {
                continue;
            }
            if message_task(message).is_some_and(|task| self.journals.has_begun(&task)) {
                self.held.push((at, due));
            } else {
                self.queue.insert(at, due);
            }
        }
    }

    /// Whether the person has something to say to whatever process there will be.
    pub fn is_spoken_to(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Another process begins at `now`, with nothing to go on with: its roles are still to be seated.
    pub fn begin_anew(&mut self, now: Timestamp, meter: Meter) {
        self.crash();
        self.now = now;
        self.seq = 1;
        self.meter = meter;
        self.log = self.said_so_far();
    }

    /// What no journal holds was not said.
    fn said_so_far(&self) -> Vec<Envelope> {
        let records = self.journals.all().flat_map(|(_, records)| records);
        let said = records.filter_map(|record| match &record.entry {
            Entry::Published { envelope } => Some(envelope.clone()),
            _ => None,
        });
        said.collect()
    }

    /// What the person has to say about a task is heard again.
    fn release(&mut self, task: &TaskId) {
        for (at, due) in std::mem::take(&mut self.held) {
            let about = match &due {
                Due::Say { message, .. } => message_task(message),
                Due::Deliver { .. } => None,
            };
            if about.is_some_and(|about| about.suffix() == task.suffix()) {
                self.queue.insert(at, due);
            } else {
                self.held.push((at, due));
            }
        }
    }

    /// Another process takes the task up at `now`, which may also lie before the crash: somebody set the clock. Gives the journal with
    /// the messages that say so and what was `settled` with the person before, and puts the questions again that are open in it.
    pub fn take_up(
        &mut self,
        task: &TaskId,
        now: Timestamp,
        settled: &[(ConfirmationRequest, Consent)],
    ) -> Vec<Record> {
        self.now = now;
        self.release(task);
        let records = self.journals.records(task);
        let last = records.last().map_or(now, |record| record.at);
        let seq = read::last_seq(records) + 1;
        self.log = self.said_so_far();
        self.seq = seq;
        let id = read::task_id(self.journals.records(task)).unwrap_or(task).clone();
        let resumed = TaskResumed {
            task_id: id.clone(),
            away_ms: now.since(last),
            person_present: None,
        };
        self.write_down(&id, Role::Runtime, resumed.into());
        for (request, consent) in settled {
            let answer = ConfirmationAnswer {
                request_id: request.request_id.clone(),
                task_id: id.clone(),
                consent: *consent,
            };
            self.write_down(&id, Role::Runtime, request.clone().into());
            self.write_down(&id, Role::User, answer.into());
        }
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

    /// Writes a message that is there before there is a bus: whoever hears it finds it in the journal.
    fn write_down(&mut self, task: &TaskId, from: Role, payload: Message) {
        let kind = payload.kind();
        let Some(route) = route(kind, from) else {
            return self.faults.push(format!("{from} may not send {}", kind.name()));
        };
        let envelope = Envelope {
            id: EnvelopeId::new(format!("e{}", self.seq)),
            seq: self.seq,
            task_id: Some(task.clone()),
            timestamp: self.now,
            from,
            to: route.to,
            payload,
        };
        self.seq += 1;
        self.journals.published(&envelope);
        self.log.push(envelope);
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
            let unwritten = self.saboteur.as_ref().is_some_and(Saboteur::stores_unwritten);
            let task = start.task.as_ref().filter(|_| !unwritten);
            for command in start.again {
                self.perform(role, command);
            }
            for command in start.commands {
                self.begin(role, command, task);
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
