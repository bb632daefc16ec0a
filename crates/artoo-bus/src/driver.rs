//! The one driver: receive, step, perform (design §2).
//!
//! Owns the life of a role around its pure core: which event comes next, the records of it in the journal, the calls in
//! flight and their end. Must not know which role it drives, and never lets a panic of a core or an adapter end it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use artoo_protocol::journal::{Entry, StepCause};
use artoo_protocol::message::{Cause, PlanningFailed};
use artoo_protocol::{
    Act, Actor, Answer, CallId, Command, Envelope, Event, Message, MessageKind, Millis, Role, Slug, TaskId, Timestamp,
};
use tokio::sync::watch;

use crate::beside::beside;
use crate::calls::{Calls, Finished, OpenCall, panic_words};
use crate::hub::Refusal;
use crate::lives::Phase;
use crate::notice::Notice;
use crate::perform::{Shell, Work, subject};
use crate::source::Source;
use crate::tap::TapItem;

/// Longest sleep at a stretch: a deadline is an instant of the clock, which may jump (a set clock, a suspended machine).
const NAP: Millis = Millis(60_000);

/// What a resumed role begins with, see [`Recovered`](crate::Recovered); empty for a fresh one.
#[derive(Debug, Default)]
pub struct Start {
    /// The task that is resumed.
    pub task: Option<TaskId>,
    /// Whether the person had stopped it.
    pub aborted: bool,
    /// Events that it had not taken yet.
    pub events: Vec<Event>,
    /// Commands that it had given and that were not begun.
    pub commands: Vec<Command>,
    /// Commands that were begun, are journaled, and are to be performed again.
    pub again: Vec<Command>,
    /// Answers that are in no journal yet.
    pub answers: Vec<(CallId, Answer)>,
}

/// What is left when a driver has ended.
#[derive(Debug)]
pub struct Ended<A> {
    /// The role with its state.
    pub actor: A,
    /// Calls that were stopped; the journal holds them as begun and not answered.
    pub open_calls: Vec<OpenCall>,
}

/// Drives a role until `stop` becomes true or its sender is dropped.
///
/// At any moment the order is: a deadline that has come, answers, messages; but what was said before a deadline was noticed is
/// heard before it, so that a task which the person stopped is not ended by its clock instead. Everything is journaled before it
/// takes effect; what belongs to a task that has ended is not performed, and its answers are not handed over.
pub async fn drive<A: Actor>(
    actor: A,
    mut source: Source,
    shell: Arc<Shell>,
    start: Start,
    mut stop: watch::Receiver<bool>,
) -> Ended<A> {
    let calls = Calls::new(Arc::clone(&shell));
    let mut driver = Driver {
        actor,
        shell,
        journaled: matches!(source, Source::Inbox(_)),
        calls,
        tasks: BTreeMap::new(),
        stuck: None,
    };
    driver.begin(start);
    loop {
        let now = driver.shell.hub.now();
        let deadline = driver.actor.deadline().filter(|due| driver.stuck != Some(*due));
        if let Some(due) = deadline
            && due <= now
        {
            // Only what waits now: a role that is spoken to without end is still woken.
            for item in source.waiting() {
                driver.hear_item(item);
            }
            if driver.actor.deadline() == Some(due) {
                driver.wake(driver.shell.hub.now(), due);
            }
            tokio::task::yield_now().await;
            if *stop.borrow() {
                break;
            }
            continue;
        }
        let nap = deadline.map_or(NAP, |due| due.since(now).min(NAP));
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            Some(done) = driver.calls.next(), if !driver.calls.is_empty() => driver.finished(done),
            heard = source.recv() => match heard {
                Some(item) => driver.hear_item(item),
                None => break,
            },
            () = tokio::time::sleep(nap.to_duration()), if deadline.is_some() => {}
        }
    }
    // An observer reads what it already has; what waits in an inbox is in the journal and can be resumed.
    if let Source::Tap(tap) = &mut source {
        while let Some(item) = tap.try_recv() {
            driver.hear_item(item);
        }
    }
    Ended {
        open_calls: driver.calls.stop(A::ROLE).await,
        actor: driver.actor,
    }
}

struct Driver<A> {
    actor: A,
    shell: Arc<Shell>,
    journaled: bool,
    calls: Calls,
    /// Tasks that the role has had events of, by suffix: a wake is recorded in the journal of each.
    tasks: BTreeMap<String, TaskId>,
    /// A deadline that a wake did not move.
    stuck: Option<Timestamp>,
}

/// Whether a command goes into the journal: all but those that already are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Now,
    Before,
}

impl<A: Actor> Driver<A> {
    fn begin(&mut self, start: Start) {
        if let Some(task) = &start.task {
            self.shell.hub.adopt(task, start.aborted);
            self.tasks.insert(task.suffix().to_owned(), task.clone());
        }
        for command in start.again {
            self.perform(command, None, Recorded::Before);
        }
        for command in start.commands {
            self.perform(command, start.task.as_ref(), Recorded::Now);
        }
        for event in start.events {
            match event {
                Event::Message { envelope } => self.hear(&envelope),
                Event::Answer { task_id, call, answer } => {
                    // It is in the journal, and was paid for, already.
                    let event = Event::Answer {
                        task_id: task_id.clone(),
                        call,
                        answer,
                    };
                    self.step(Some(&task_id), StepCause::Answer { call }, event);
                }
                Event::Wake => {}
            }
        }
        for (call, answer) in start.answers {
            if let Some(task) = &start.task {
                self.take_answer(task, call, answer);
            }
        }
    }

    fn hear_item(&mut self, item: TapItem) {
        match item {
            TapItem::Envelope(envelope) => self.hear(&envelope),
            TapItem::Deed(_) => {}
            TapItem::Gap(gap) => self.shell.hub.notice(&Notice::Missed { role: A::ROLE, gap }),
        }
    }

    fn hear(&mut self, envelope: &Envelope) {
        let event = Event::from(envelope.clone());
        let cause = StepCause::Message { seq: envelope.seq };
        self.step(envelope.task_id.as_ref(), cause, event);
        if envelope.payload.kind() == MessageKind::FinalResult
            && let Some(task) = &envelope.task_id
        {
            self.tasks.remove(task.suffix());
            self.shell.meter.forget(task);
        }
    }

    fn finished(&mut self, mut done: Finished) {
        let Some(answer) = done.answer.take() else { return };
        if let Some(message) = done.broke.take() {
            self.shell.hub.notice(&Notice::PerformanceBroke {
                role: A::ROLE,
                task_id: done.task.clone(),
                call: done.call,
                message,
            });
        }
        self.take_answer(&done.task, done.call, answer);
    }

    fn take_answer(&mut self, task: &TaskId, call: CallId, answer: Answer) {
        self.record(
            task,
            Entry::Answered {
                role: A::ROLE,
                call,
                answer: answer.clone(),
            },
        );
        let cost = self.shell.meter.cost_of(&answer);
        let act = Act::of_answer(call, &answer, cost);
        self.shell.hub.did(A::ROLE, Some(task), act);
        if let Some((model, usage)) = answer.spent()
            && let Some(reached) = self.shell.meter.charge(task, model, usage)
        {
            self.publish(Role::Runtime, Some(task), reached.into());
        }
        let event = Event::Answer {
            task_id: task.clone(),
            call,
            answer,
        };
        self.step(Some(task), StepCause::Answer { call }, event);
    }

    fn wake(&mut self, now: Timestamp, due: Timestamp) {
        self.note_wake(now);
        self.take_step(now, None, Event::Wake);
        if self.actor.deadline() == Some(due) {
            self.stuck = Some(due);
            self.shell.hub.notice(&Notice::DeadlineStuck { role: A::ROLE });
        }
    }

    /// Writes a wake into the journals of the role's tasks.
    fn note_wake(&mut self, now: Timestamp) {
        let (hub, role, cause) = (&self.shell.hub, A::ROLE, StepCause::Wake);
        // A task that was stopped is still R7's to end, so its journal has to hold why R7 spoke.
        self.tasks.retain(|_, task| hub.phase(task) != Phase::Finished);
        for task in self.tasks.values() {
            self.record(task, Entry::Stepped { role, now, cause });
        }
    }

    fn step(&mut self, task: Option<&TaskId>, cause: StepCause, event: Event) {
        self.stuck = None;
        let now = self.shell.hub.now();
        if let Some(task) = task {
            self.tasks.insert(task.suffix().to_owned(), task.clone());
            let role = A::ROLE;
            self.record(task, Entry::Stepped { role, now, cause });
        }
        self.take_step(now, task, event);
    }

    fn take_step(&mut self, now: Timestamp, task: Option<&TaskId>, event: Event) {
        let actor = &mut self.actor;
        let stepped = catch_unwind(AssertUnwindSafe(|| -> Vec<Command> {
            actor.step(now, event).into_iter().map(Into::into).collect()
        }));
        match stepped {
            Ok(commands) => {
                let (role, cause) = (A::ROLE, StepCause::Wake);
                for other in task.into_iter().flat_map(|task| beside(task, &commands)) {
                    self.record(other, Entry::Stepped { role, now, cause });
                }
                for command in commands {
                    self.perform(command, task, Recorded::Now);
                }
            }
            Err(panic) => self.broke(task, &panic_words(panic.as_ref())),
        }
    }

    /// A step panicked: nothing of what it wanted is done, and R7 is asked to end its task instead of leaving it to
    /// hang. A wake names no task, so it is all of the role's.
    fn broke(&mut self, task: Option<&TaskId>, message: &str) {
        self.shell.hub.notice(&Notice::RoleBroke {
            role: A::ROLE,
            task_id: task.cloned(),
            message: message.to_owned(),
        });
        let works_on_tasks = match A::ROLE {
            Role::R1 | Role::R2 | Role::R3 | Role::R4a | Role::R4b => true,
            Role::R5 | Role::R6 | Role::R7 | Role::User | Role::Runtime => false,
        };
        if !works_on_tasks {
            return;
        }
        match task {
            Some(task) => self.fail(task, message),
            None => self.tasks.values().for_each(|task| self.fail(task, message)),
        }
    }

    fn fail(&self, task: &TaskId, message: &str) {
        let slug = task.as_str().rsplit_once('_').map_or("", |(slug, _)| slug);
        let failed = PlanningFailed {
            task_id: task.clone(),
            slug: Slug::repair(slug),
            intent: String::new(),
            reason: format!("internal error in the {} ({}): {message}", A::ROLE.title(), A::ROLE),
            cause: Cause::PlanningFailed,
        };
        self.publish(Role::Runtime, Some(task), failed.into());
    }

    fn perform(&mut self, command: Command, step_task: Option<&TaskId>, recorded: Recorded) {
        if recorded == Recorded::Now && !matches!(command, Command::Publish { .. }) {
            let Some(task) = subject(&command, step_task) else {
                return self.carry_out(command);
            };
            if !matches!(command, Command::Store { .. }) && self.shell.hub.phase(&task).is_ended() {
                return;
            }
            let entry = Entry::Commanded {
                role: A::ROLE,
                command: command.clone(),
            };
            self.record(&task, entry);
        }
        self.carry_out(command);
    }

    fn carry_out(&mut self, command: Command) {
        let task = subject(&command, None);
        self.shell.hub.did(A::ROLE, task.as_ref(), Act::of(&command));
        match command {
            Command::Publish { task_id, message } => self.publish(A::ROLE, task_id.as_ref(), *message),
            Command::CallModel { task_id, call, request } => self.calls.begin(task_id, call, Work::Model(request)),
            Command::Assess {
                task_id,
                call,
                invocation,
            } => self.calls.begin(task_id, call, Work::Assess(invocation)),
            Command::RunTool {
                task_id,
                call,
                invocation,
                permit,
            } => self.calls.begin(task_id, call, Work::Run(invocation, permit)),
            Command::RunCheck { task_id, call, request } => self.calls.begin(task_id, call, Work::Check(request)),
            Command::Recall { task_id, call, query } => self.calls.begin(task_id, call, Work::Recall(query)),
            Command::Cancel { task_id, call } => self.calls.cancel(&task_id, call),
            Command::Keep { task_id, path, text } => self.keep(&task_id, &path, &text),
            Command::Store { megram } => {
                let memory = self.shell.ports.memory.clone();
                let stored = catch_unwind(AssertUnwindSafe(|| memory.map(|memory| memory.write(megram))));
                if let Err(panic) = stored {
                    self.shell.hub.notice(&Notice::RoleBroke {
                        role: A::ROLE,
                        task_id: None,
                        message: format!("memory: {}", panic_words(panic.as_ref())),
                    });
                }
            }
        }
    }

    /// Writes at once, so that the file is there before a message that names it is sent.
    fn keep(&self, task: &TaskId, path: &str, text: &str) {
        let kept = match &self.shell.ports.shelf {
            Some(place) => place.keep(path, text).map_err(|error| error.to_string()),
            None => Err("no place for it in this process".to_owned()),
        };
        if let Err(message) = kept {
            let (task_id, path) = (task.clone(), path.to_owned());
            self.shell.hub.notice(&Notice::NotKept { task_id, path, message });
        }
    }

    fn publish(&self, from: Role, task: Option<&TaskId>, message: Message) {
        match self.shell.hub.publish_if_alive(from, task, message) {
            // What is said for a task that has ended goes unsaid; the person hears nothing after an abort.
            Ok(_) | Err(Refusal::Ended) => {}
            Err(Refusal::NoRoute(error)) => self.shell.hub.notice(&Notice::Unroutable(error)),
        }
    }

    fn record(&self, task: &TaskId, entry: Entry) {
        if self.journaled
            && let Some(journal) = self.shell.hub.journal()
            && let Some(notice) = journal.record(task, entry)
        {
            self.shell.hub.notice(&notice);
        }
    }
}
