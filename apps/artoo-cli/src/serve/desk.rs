//! One running system for any number of front ends: takes tasks in, keeps what is asked of the person, what happens and how tasks
//! ended (design §21).
//!
//! Owns the conversation between front ends and bus, and how much of it there may be at once. Knows no role and no protocol; a
//! question is answered once, by whoever is first, and by nobody where no person can be reached.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use artoo_bus::{Hub, Inbox, Tap, TapItem};
use artoo_protocol::message::{FinalResult, Message, TaskAborted, UserInput};
use artoo_protocol::ports::Bus;
use artoo_protocol::{Role, TaskId};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::question::Asked;
pub use super::question::{Question, QuestionKind, Refusals, Refused, Reply, Unanswerable};
use super::state::State;
pub use super::state::{NotRunning, Person, Standing};
use crate::commands::naming::{self, Meant};
use crate::failure::Failure;
use crate::late_memory::LateMemory;
use crate::output;
use crate::past::Past;
use crate::session;
use crate::system::System;

/// Messages that this may lag behind.
const TAP: usize = 100_000;
/// Time between two looks for questions to which nobody came.
const LOOK: Duration = Duration::from_secs(30);
/// How long aborted tasks may take to say how they ended.
const ENDING: Duration = Duration::from_secs(1);

/// The desk; clones are the same desk.
#[derive(Clone)]
pub struct Desk {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Hub,
    scope: Vec<String>,
    data: PathBuf,
    memory: Option<Arc<LateMemory>>,
    /// Whether a front end shows every question to a person, whoever put the task in.
    overlooked: Person,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    closing: watch::Sender<bool>,
}

impl Desk {
    /// Sits down at a running system. With `overlooked`, a person sees the questions of all tasks.
    ///
    /// # Errors
    /// [`Failure`] when somebody else already sits there.
    pub fn open(
        system: &System,
        data: &Path,
        past: Option<Past>,
        overlooked: Person,
    ) -> Result<(Self, JoinHandle<()>), Failure> {
        Self::seated(Shared {
            hub: system.hub().clone(),
            scope: system.scope(),
            data: data.to_owned(),
            memory: system.memory(),
            overlooked,
            state: Mutex::new(State::new(past)),
            changed: watch::Sender::new(0),
            closing: watch::Sender::new(false),
        })
    }

    fn seated(shared: Shared) -> Result<(Self, JoinHandle<()>), Failure> {
        let inbox = shared
            .hub
            .inbox(Role::User)
            .ok_or_else(|| Failure::failed("the system already has a front end"))?;
        let tap = shared.hub.tap("desk", TAP);
        let desk = Self {
            shared: Arc::new(shared),
        };
        let clerk = tokio::spawn(attend(desk.clone(), inbox, tap));
        Ok((desk, clerk))
    }

    /// At a bus without a system, whose questions are on no page.
    #[cfg(test)]
    pub fn alone(hub: Hub) -> Self {
        let shared = Shared {
            hub,
            scope: Vec::new(),
            data: PathBuf::new(),
            memory: None,
            overlooked: Person::Absent,
            state: Mutex::new(State::new(None)),
            changed: watch::Sender::new(0),
            closing: watch::Sender::new(false),
        };
        Self::seated(shared)
            .unwrap_or_else(|failure| panic!("{}", failure.message))
            .0
    }

    /// Puts a task in; its id is provisional until R1 has named it, and both mean the same run.
    ///
    /// # Errors
    /// [`Failure`] for text that is no task, when too many run already, and at the end of the process.
    pub fn begin(&self, text: &str, person: Person) -> Result<TaskId, Failure> {
        session::check(text)?;
        let task_id = TaskId::provisional(Uuid::now_v7());
        let person = if self.shared.overlooked == Person::There {
            Person::There
        } else {
            person
        };
        if *self.shared.closing.borrow() {
            return Err(Failure::failed("artoo is ending and takes no more tasks"));
        }
        let history = self.locked().begin(task_id.clone(), text, person)?;
        let input = UserInput {
            task_id: task_id.clone(),
            text: text.to_owned(),
            history,
            person_present: person == Person::There,
            scope: self.shared.scope.clone(),
        };
        if let Err(failure) = self.say(Some(&task_id), input) {
            self.locked().never_began(&task_id);
            return Err(failure);
        }
        self.change();
        Ok(task_id)
    }

    /// What the person is asked and has not answered, oldest first.
    pub fn questions(&self) -> Vec<Question> {
        self.locked().questions()
    }

    /// Gives a person's answer; the first one counts.
    ///
    /// # Errors
    /// [`Unanswerable`] when the question is gone, or the answer does not fit it.
    pub fn answer(&self, id: &str, reply: Reply) -> Result<(), Unanswerable> {
        self.settle(id, |asked| asked.answered(reply))
    }

    /// Whoever was to put the question to a person could not. Where nobody else shows it, nobody is there.
    pub fn unasked(&self, id: &str) {
        if self.shared.overlooked == Person::Absent {
            let _ = self.settle(id, |asked| Ok(asked.by_nobody()));
        }
    }

    /// Whether a question waits for its answer.
    pub fn is_open(&self, id: &str) -> bool {
        self.locked().is_open(id)
    }

    /// A question stands before a person now. From then on they have an hour.
    pub fn shown(&self, id: &str) {
        self.locked().shown(id, self.shared.hub.now());
    }

    /// Tasks that run, in the order in which they began.
    pub fn running(&self) -> Vec<TaskId> {
        self.locked().running()
    }

    /// All tasks that are remembered, in the order in which they began.
    pub fn tasks(&self) -> Vec<TaskId> {
        self.locked().tasks()
    }

    /// The one task of this process that a text names, as on the command line; the provisional id of a task names it for ever.
    pub fn named(&self, text: &str) -> Option<TaskId> {
        match naming::meant(&self.tasks(), |id| id, lasting(text)) {
            Meant::One(id) => Some(id.clone()),
            Meant::None | Meant::Several(_) => None,
        }
    }

    /// Where a task of this process stands; `None` for one that is not remembered.
    pub fn standing(&self, task: &TaskId) -> Option<Standing> {
        self.locked().standing(task)
    }

    /// The lines of a task's progress from the `from`-th on, and the number of the next; those that are forgotten are left out.
    pub fn lines(&self, task: &TaskId, from: u64) -> (Vec<String>, u64) {
        self.locked().lines(task, from)
    }

    /// How a task of this process ended.
    pub fn ending(&self, task: &TaskId) -> Option<Arc<FinalResult>> {
        self.locked().ending(task)
    }

    /// Stops a task. Its ending follows.
    ///
    /// # Errors
    /// [`NotRunning`].
    pub fn abort(&self, task: &TaskId) -> Result<(), NotRunning> {
        self.abort_because(task, "stopped on request")
    }

    /// Stops a task and says why in its journal.
    ///
    /// # Errors
    /// [`NotRunning`].
    pub fn abort_because(&self, task: &TaskId, why: &str) -> Result<(), NotRunning> {
        // Who is stopped already is not stopped again.
        let Some(aborted) = self.locked().abort(task)? else {
            return Ok(());
        };
        let message = TaskAborted {
            task_id: aborted.clone(),
            reason: why.to_owned(),
        };
        self.say(Some(&aborted), message)
            .map_err(|_| NotRunning(task.to_string()))?;
        self.change();
        Ok(())
    }

    /// Changes whenever something that can be asked here has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    /// Returns when the process begins to end.
    pub async fn until_closing(&self) {
        // The sender lives as long as the desk.
        let _ = self.shared.closing.subscribe().wait_for(|closing| *closing).await;
    }

    /// Returns when a question is no longer open.
    pub async fn until_settled(&self, id: &str) {
        let is_settled = |_: &u64| !self.is_open(id);
        let _ = self.changes().wait_for(is_settled).await;
    }

    /// The memory, unless artoo runs without.
    pub fn memory(&self) -> Option<Arc<LateMemory>> {
        self.shared.memory.clone()
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        &self.shared.data
    }

    /// Takes no more tasks, stops those that run, and waits a moment for what they have to say.
    pub async fn close(&self, why: &str) {
        self.shared.closing.send_replace(true);
        for task in self.running() {
            let _ = self.abort_because(&task, why);
        }
        let mut changes = self.changes();
        let ended = changes.wait_for(|_| self.locked().running().is_empty());
        let _ = tokio::time::timeout(ENDING, ended).await;
    }

    fn settle(
        &self,
        id: &str,
        answer: impl FnOnce(&Asked) -> Result<Message, Unanswerable>,
    ) -> Result<(), Unanswerable> {
        let (task, message) = self.locked().settle(id, answer)?;
        let said = self.say(Some(&task), message).map_err(|_| Unanswerable::Gone);
        self.change();
        said
    }

    /// Takes a question in, or says at once that nobody is there.
    fn ask(&self, asked: Asked) {
        let at_once = self.locked().ask(asked, self.shared.overlooked, self.shared.hub.now());
        if let Some((task, message)) = at_once {
            let _ = self.say(Some(&task), message);
        }
        self.change();
    }

    /// Deals with what is addressed to the person.
    fn addressed(&self, message: &Message) {
        match message {
            Message::FinalResult(result) => {
                self.locked().end(result);
                self.change();
            }
            Message::ConfirmationRequest(request) => self.ask(Asked::Confirmation(request.clone())),
            Message::ClarificationRequest(request) => self.ask(Asked::Clarification(request.clone())),
            _ => {}
        }
    }

    /// Follows what passes on the bus.
    fn hear(&self, item: &TapItem) {
        match item {
            TapItem::Envelope(envelope) => {
                let is_news = self.locked().hear(envelope);
                if is_news {
                    self.change();
                }
            }
            TapItem::Gap(gap) => output::note(&format!("artoo: the progress of tasks lacks {gap}")),
            TapItem::Deed(_) => {}
        }
    }

    /// Answers for a person who did not come, and stops what nobody could be asked about.
    fn expire(&self) {
        let now = self.shared.hub.now();
        let (overdue, unheard) = {
            let state = self.locked();
            (state.overdue(now), state.unheard(now))
        };
        for task in unheard {
            let _ = self.abort_because(&task, "for a day, its question was put to nobody");
        }
        for id in overdue {
            let _ = self.settle(&id, |asked| Ok(asked.by_nobody()));
        }
    }

    fn say(&self, task_id: Option<&TaskId>, message: impl Into<Message>) -> Result<(), Failure> {
        let said = self.shared.hub.publish(Role::User, task_id, message.into());
        said.map(|_| ()).map_err(|e| Failure::failed(e.to_string()))
    }

    fn change(&self) {
        self.shared.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a task's id that stays when R1 names the task; whatever else names one stays as it is.
pub fn lasting(name: &str) -> &str {
    match TaskId::parse(name) {
        Ok(_) => name.rsplit_once('_').map_or(name, |(_, digits)| digits),
        Err(_) => name,
    }
}

/// Serves the desk until the system is gone.
async fn attend(desk: Desk, mut inbox: Inbox, mut tap: Tap) {
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            heard = inbox.recv() => {
                let Some(envelope) = heard else { return };
                // What was said before it is heard before it.
                while let Some(item) = tap.try_recv() {
                    desk.hear(&item);
                    if matches!(&item, TapItem::Envelope(seen) if seen.seq >= envelope.seq) {
                        break;
                    }
                }
                desk.addressed(&envelope.payload);
            }
            seen = tap.recv() => match seen {
                Some(item) => desk.hear(&item),
                None => return,
            },
            _ = look.tick() => desk.expire(),
        }
    }
}
