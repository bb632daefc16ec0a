//! Replay and recovery: the steps of a journal fed to fresh roles (design §17).
//!
//! Owns the comparison of what a role wants now with what it wanted then, and what of it was still to come when the
//! process was killed. Must not perform anything.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use artoo_protocol::journal::{Entry, Record, StepCause};
use artoo_protocol::message::FailureClass;
use artoo_protocol::tool::{EffectClass, Invocation, Permit, ToolOutput};
use artoo_protocol::{Actor, Answer, CallId, Command, Envelope, Event, Message, Role, TaskId, Timestamp, route};
use thiserror::Error;

use crate::driver::Start;

/// The first place where a replayed role does not do what the journal says.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("record {n}: {role} {what}")]
pub struct Difference {
    /// The record.
    pub n: u64,
    /// The role.
    pub role: Role,
    /// What is different, for people.
    pub what: String,
    /// What the journal holds.
    pub recorded: Option<Box<Command>>,
    /// What the role gave now.
    pub produced: Option<Box<Command>>,
}

/// A role as it was when its process ended.
#[derive(Debug)]
pub struct Recovered<A> {
    /// The role with its state.
    pub actor: A,
    /// The task.
    pub task: Option<TaskId>,
    /// Whether the person had stopped it.
    pub aborted: bool,
    /// Messages and answers that the journal holds and that it has not taken.
    pub events: Vec<Event>,
    /// Commands that it gave and that were not begun.
    pub commands: Vec<Command>,
    /// Commands that were begun and not answered. Performing one again is for the caller to decide: reading may be
    /// repeated, what cannot be taken back may not.
    pub unanswered: Vec<Command>,
    /// Answers that stand for results that nobody knows, see [`Recovered::settle`].
    pub unknown: Vec<(CallId, Answer)>,
}

/// The action in a command, if it is one that leaves something behind.
fn lasting(command: &Command) -> Option<(CallId, &Invocation, Permit)> {
    match command {
        Command::RunTool {
            call,
            invocation,
            permit,
            ..
        } if permit.effect >= EffectClass::Create => Some((*call, invocation, *permit)),
        Command::RunTool { .. }
        | Command::Publish { .. }
        | Command::CallModel { .. }
        | Command::Assess { .. }
        | Command::RunCheck { .. }
        | Command::Recall { .. }
        | Command::Cancel { .. }
        | Command::Keep { .. }
        | Command::Store { .. } => None,
    }
}

/// What the executor hears of an action that was cut off with its process.
const UNKNOWN: &str =
    "artoo was stopped while this ran; whether it took effect is not known. Look at the state before doing it again.";

impl<A> Recovered<A> {
    /// The unanswered actions that leave something behind. Nobody knows whether they took effect; even what was new once (a line that
    /// is appended) may be wrong twice.
    pub fn unsettled(&self) -> impl Iterator<Item = (CallId, &Invocation, Permit)> {
        self.unanswered.iter().filter_map(lasting)
    }

    /// Leaves undone every action that leaves something behind, except those in `again`: their answer is that nobody knows.
    pub fn settle(&mut self, again: &BTreeSet<CallId>) {
        let left: Vec<CallId> = self
            .unsettled()
            .map(|(call, _, _)| call)
            .filter(|call| !again.contains(call))
            .collect();
        self.unanswered
            .retain(|command| lasting(command).is_none_or(|(call, _, _)| !left.contains(&call)));
        self.unknown.extend(left.into_iter().map(|call| {
            let output = ToolOutput {
                interrupted: true,
                error: Some(UNKNOWN.to_owned()),
                failure_class: Some(FailureClass::Environmental),
                ..ToolOutput::default()
            };
            (call, Answer::Ran(output))
        }));
    }

    /// The role, and what its driver begins with when everything unanswered is performed again.
    pub fn into_start(self) -> (A, Start) {
        let start = Start {
            task: self.task,
            aborted: self.aborted,
            events: self.events,
            commands: self.commands,
            again: self.unanswered,
            answers: self.unknown,
        };
        (self.actor, start)
    }
}

/// Feeds the steps of one task's journal to a fresh role and compares every command with the recorded one.
///
/// What its last step wants and the journal does not hold is a difference too, unless the journal ends right there, as that of a killed
/// process may, or the task does: what an end or the person cuts off is not done.
///
/// # Errors
/// The first [`Difference`].
pub fn replay_role<A: Actor>(actor: A, records: &[Record]) -> Result<(), Difference> {
    let recovered = recover_role(actor, records)?;
    let Some(missing) = recovered.commands.into_iter().next().filter(|_| !recovered.aborted) else {
        return Ok(());
    };
    let did = records.iter().rev().find(|record| is_deed_of(A::ROLE, &record.entry));
    let n = did.map_or(0, |record| record.n);
    let goes_on = |record: &&Record| record.n > n && !is_end(&record.entry) && !is_nothing_done(A::ROLE, &record.entry);
    match records.iter().find(goes_on) {
        Some(_) => Err(difference::<A>(
            n,
            "wants something that was not done",
            None,
            Some(missing),
        )),
        None => Ok(()),
    }
}

/// Whether a role took a step here, or what it wanted was done.
fn is_deed_of(role: Role, entry: &Entry) -> bool {
    match entry {
        Entry::Published { envelope } => envelope.from == role,
        Entry::Commanded { role: by, .. } | Entry::Stepped { role: by, .. } => *by == role,
        Entry::Opened { .. } | Entry::Answered { .. } | Entry::Closed { .. } => false,
    }
}

/// Whether others only woke up here, or a process took the task up: neither comes after what this role wanted, or tells of it.
fn is_nothing_done(role: Role, entry: &Entry) -> bool {
    match entry {
        Entry::Stepped { role: by, .. } => *by != role,
        Entry::Published { envelope } => matches!(envelope.payload, Message::TaskResumed(_)),
        Entry::Opened { .. } | Entry::Commanded { .. } | Entry::Answered { .. } | Entry::Closed { .. } => false,
    }
}

fn is_end(entry: &Entry) -> bool {
    match entry {
        Entry::Published { envelope } => matches!(envelope.payload, Message::FinalResult(_)),
        Entry::Closed { .. } => true,
        Entry::Opened { .. } | Entry::Commanded { .. } | Entry::Answered { .. } | Entry::Stepped { .. } => false,
    }
}

/// Like [`replay_role`], and gives what is needed to go on from the end of the journal.
///
/// # Errors
/// The first [`Difference`]: a role that decides differently now cannot go on.
pub fn recover_role<A: Actor>(actor: A, records: &[Record]) -> Result<Recovered<A>, Difference> {
    let mut replay = Replay::new(actor);
    for record in records {
        match &record.entry {
            Entry::Published { envelope } => replay.published(record.n, envelope)?,
            Entry::Commanded { role, command } if *role == A::ROLE => {
                replay.expect(record.n, command)?;
                replay.begun(command);
            }
            Entry::Answered { role, call, answer } if *role == A::ROLE => replay.answered(*call, answer),
            Entry::Stepped { role, now, cause } if *role == A::ROLE => replay.stepped(record.n, *now, *cause)?,
            Entry::Opened { .. }
            | Entry::Commanded { .. }
            | Entry::Answered { .. }
            | Entry::Stepped { .. }
            | Entry::Closed { .. } => {}
        }
    }
    Ok(replay.finish())
}

struct Replay<'a, A> {
    actor: A,
    task: Option<TaskId>,
    aborted: bool,
    messages: HashMap<u64, &'a Envelope>,
    answers: HashMap<CallId, &'a Answer>,
    /// Messages by sequence number and answers by call that were not taken yet, in the order of the journal.
    waiting: Vec<Waiting>,
    /// What the last steps gave and the journal has not shown yet.
    produced: VecDeque<Command>,
    running: Vec<(CallId, &'a Command)>,
    cancelled: HashSet<CallId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Message(u64),
    Answer(CallId),
}

impl<'a, A: Actor> Replay<'a, A> {
    fn new(actor: A) -> Self {
        Self {
            actor,
            task: None,
            aborted: false,
            messages: HashMap::new(),
            answers: HashMap::new(),
            waiting: Vec::new(),
            produced: VecDeque::new(),
            running: Vec::new(),
            cancelled: HashSet::new(),
        }
    }

    fn published(&mut self, n: u64, envelope: &'a Envelope) -> Result<(), Difference> {
        // The person and the runtime may go on using the provisional id; the roles do not.
        if self.task.is_none() || !envelope.task_id.as_ref().is_some_and(TaskId::is_provisional) {
            self.task.clone_from(&envelope.task_id);
        }
        self.aborted |= matches!(envelope.payload, Message::TaskAborted(_));
        if envelope.from == A::ROLE {
            let said = Command::Publish {
                task_id: envelope.task_id.clone(),
                message: Box::new(envelope.payload.clone()),
            };
            self.expect(n, &said)?;
        }
        let heard = envelope.to == A::ROLE
            || route(envelope.payload.kind(), envelope.from).is_some_and(|route| route.copies.contains(&A::ROLE));
        if heard {
            self.messages.insert(envelope.seq, envelope);
            self.waiting.push(Waiting::Message(envelope.seq));
        }
        Ok(())
    }

    fn begun(&mut self, command: &'a Command) {
        match command {
            Command::CallModel { call, .. }
            | Command::Assess { call, .. }
            | Command::RunTool { call, .. }
            | Command::RunCheck { call, .. }
            | Command::Recall { call, .. } => self.running.push((*call, command)),
            Command::Cancel { call, .. } => {
                self.running.retain(|(running, _)| running != call);
                self.cancelled.insert(*call);
            }
            Command::Publish { .. } | Command::Keep { .. } | Command::Store { .. } => {}
        }
    }

    fn answered(&mut self, call: CallId, answer: &'a Answer) {
        self.running.retain(|(running, _)| *running != call);
        if self.answers.insert(call, answer).is_none() {
            self.waiting.push(Waiting::Answer(call));
        }
    }

    fn stepped(&mut self, n: u64, now: Timestamp, cause: StepCause) -> Result<(), Difference> {
        // A role that was overtaken by an abort gave commands that were not carried out.
        if let Some(missing) = self.produced.pop_front()
            && !self.aborted
        {
            return Err(difference::<A>(
                n,
                "wants something that was not done",
                None,
                Some(missing),
            ));
        }
        self.produced.clear();
        let event = match cause {
            StepCause::Message { seq } => {
                self.waiting.retain(|waiting| *waiting != Waiting::Message(seq));
                let envelope = self.messages.get(&seq);
                envelope.map(|envelope| Event::from((*envelope).clone()))
            }
            StepCause::Answer { call } => {
                self.waiting.retain(|waiting| *waiting != Waiting::Answer(call));
                self.answer_event(call)
            }
            StepCause::Wake => Some(Event::Wake),
        };
        let Some(event) = event else {
            return Err(difference::<A>(
                n,
                "took an event that the journal does not hold",
                None,
                None,
            ));
        };
        let actor = &mut self.actor;
        // A step that panicked then gave nothing, and does so again.
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            actor.step(now, event).into_iter().map(Into::into).collect()
        }));
        self.produced = stepped.unwrap_or_default();
        Ok(())
    }

    fn answer_event(&self, call: CallId) -> Option<Event> {
        Some(Event::Answer {
            task_id: self.task.clone()?,
            call,
            answer: (*self.answers.get(&call)?).clone(),
        })
    }

    fn expect(&mut self, n: u64, recorded: &Command) -> Result<(), Difference> {
        loop {
            let Some(produced) = self.produced.pop_front() else {
                let recorded = Some(recorded.clone());
                return Err(difference::<A>(n, "does not want this any more", recorded, None));
            };
            if same(&produced, recorded) {
                return Ok(());
            }
            if !self.aborted {
                let recorded = Some(recorded.clone());
                return Err(difference::<A>(n, "wants something else", recorded, Some(produced)));
            }
        }
    }

    fn finish(mut self) -> Recovered<A> {
        // What was away is heard first: whatever waits behind it happens at a time that the task's clock must know of.
        let messages = &self.messages;
        self.waiting.sort_by_key(|waiting| match waiting {
            Waiting::Message(seq) => !messages
                .get(seq)
                .is_some_and(|envelope| matches!(envelope.payload, Message::TaskResumed(_))),
            Waiting::Answer(_) => true,
        });
        let events = self
            .waiting
            .iter()
            .filter_map(|waiting| match waiting {
                Waiting::Message(seq) => self.messages.get(seq).map(|envelope| Event::from((*envelope).clone())),
                Waiting::Answer(call) if self.cancelled.contains(call) => None,
                Waiting::Answer(call) => self.answer_event(*call),
            })
            .collect();
        Recovered {
            actor: self.actor,
            task: self.task,
            aborted: self.aborted,
            events,
            commands: self.produced.into(),
            unanswered: self.running.into_iter().map(|(_, command)| command.clone()).collect(),
            unknown: Vec::new(),
        }
    }
}

fn difference<A: Actor>(n: u64, what: &str, recorded: Option<Command>, produced: Option<Command>) -> Difference {
    Difference {
        n,
        role: A::ROLE,
        what: what.to_owned(),
        recorded: recorded.map(Box::new),
        produced: produced.map(Box::new),
    }
}

/// Whether a command is the recorded one. One that differs makes the way through JSON first, as the recorded one did.
fn same(produced: &Command, recorded: &Command) -> bool {
    if produced == recorded {
        return true;
    }
    let written = serde_json::to_string(produced);
    let read = written.and_then(|text| serde_json::from_str::<Command>(&text));
    read.is_ok_and(|read| read == *recorded)
}
