//! One person at one running system: puts in tasks, answers questions, shows what happens, stops on Ctrl+C (design §21).
//!
//! Owns the conversation between front end and bus. Knows no role; it hears what is addressed to the person and what a tap shows.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use artoo_bus::journal::Redactor;
use artoo_bus::{Inbox, Tap, TapItem};
use artoo_protocol::message::{
    AuditQuery, AuditReport, ClarificationAnswer, ConfirmationAnswer, FinalResult, Message, TaskAborted, Turn,
    UserInput,
};
use artoo_protocol::ports::{Bus, Confirm};
use artoo_protocol::text::head_tail;
use artoo_protocol::{Envelope, Millis, Role, TaskId};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use crate::commands::tasks::envelopes;
use crate::failure::Failure;
use crate::late_memory::LateMemory;
use crate::live::{self, Display};
use crate::past::Past;
use crate::resume::Interrupted;
use crate::signals::Signals;
use crate::system::System;
use crate::{output, progress};

/// Longest task text, in bytes; what is longer belongs into a file that the task names.
pub const TEXT_MAX: usize = 100_000;
/// Characters of a result that later turns are told.
const RESULT_KEPT: usize = 2_000;
/// How long the auditor may take for a report.
pub const AUDIT_WAIT: std::time::Duration = std::time::Duration::from_secs(3);
/// Messages that the display may lag behind.
const TAP: usize = 100_000;

/// What is shown while a task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Nothing.
    Nothing,
    /// The plan as it fills in, drawn in place on the terminal.
    Live,
    /// A line for what is worth knowing, on standard error.
    Progress,
    /// A line for every message, on standard error.
    Everything,
    /// Every message as JSON, on standard output.
    Json,
}

/// A conversation.
pub struct Session {
    system: System,
    inbox: Inbox,
    confirm: Arc<dyn Confirm>,
    show: Show,
    budget: Millis,
    past: Past,
}

type Answer = Pin<Box<dyn Future<Output = Message> + Send>>;

impl Session {
    /// Sits down at a running system.
    ///
    /// # Errors
    /// [`Failure`] when somebody else already does.
    pub fn new(system: System, confirm: Arc<dyn Confirm>, show: Show, past: Past) -> Result<Self, Failure> {
        let inbox = system
            .hub()
            .inbox(Role::User)
            .ok_or_else(|| Failure::failed("the system already has a front end"))?;
        Ok(Self {
            budget: system.time_budget(),
            system,
            inbox,
            confirm,
            show,
            past,
        })
    }

    /// Runs one task to its end.
    ///
    /// # Errors
    /// [`Failure`] for text that is no task; whatever happens to a task itself is a `FinalResult`.
    pub async fn run(&mut self, text: &str, signals: &mut Signals) -> Result<FinalResult, Failure> {
        check(text)?;
        let task_id = TaskId::provisional(Uuid::now_v7());
        let tap = self.tap();
        let input = UserInput {
            task_id: task_id.clone(),
            text: text.to_owned(),
            history: self.past.turns(),
            person_present: self.confirm.person_present(),
            scope: self.system.scope(),
        };
        self.say(&task_id, input)?;
        let live = self.live();
        self.follow(task_id, text, tap, live, VecDeque::new(), signals).await
    }

    /// Goes on with the task that the system was resumed with.
    ///
    /// # Errors
    /// [`Failure`] when the system goes down meanwhile.
    pub async fn take_up(&mut self, task: &Interrupted, signals: &mut Signals) -> Result<FinalResult, Failure> {
        let tap = self.tap();
        let questions = task.open_questions().into();
        let mut live = self.live();
        if let Some(live) = &mut live {
            envelopes(&task.records).for_each(|envelope| live.recall(envelope));
        }
        self.follow(task.task_id().clone(), &task.input(), tap, live, questions, signals)
            .await
    }

    /// Accompanies a task to its end: shows it, puts its questions, stops it on request.
    async fn follow(
        &mut self,
        mut task_id: TaskId,
        text: &str,
        mut tap: Tap,
        mut live: Option<Display>,
        mut waiting: VecDeque<Message>,
        signals: &mut Signals,
    ) -> Result<FinalResult, Failure> {
        let mut asked: Option<Answer> = None;
        let mut aborted = false;
        let mut frames = tokio::time::interval(live::FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (ending, seq) = loop {
            if asked.is_none() && !aborted {
                asked = waiting.pop_front().and_then(|message| self.question(&message));
                if let (Some(live), Some(_)) = (&mut live, &asked) {
                    live.step_aside();
                }
            }
            tokio::select! {
                biased;
                heard = self.inbox.recv() => {
                    let Some(envelope) = heard else { return Err(Failure::failed("the system went down while the task ran")) };
                    match &envelope.payload {
                        Message::FinalResult(result) if result.task_id.suffix() == task_id.suffix() => break (result.clone(), envelope.seq),
                        // Several subtasks may ask at once; the person is asked one thing after the other.
                        other => waiting.push_back(other.clone()),
                    }
                }
                message = async { match &mut asked { Some(answer) => answer.await, None => std::future::pending().await } } => {
                    asked = None;
                    if let Some(live) = &mut live {
                        live.come_back();
                    }
                    self.say(&task_id, message)?;
                }
                seen = tap.recv() => {
                    if let Some(TapItem::Envelope(envelope)) = &seen
                        && let Message::TaskSpec(spec) = &envelope.payload
                    {
                        task_id = spec.task_id.clone();
                    }
                    if let Some(item) = seen && (!aborted || self.show == Show::Json) {
                        self.display(&item, live.as_mut());
                    }
                }
                _ = frames.tick(), if live.is_some() => {
                    live.iter_mut().for_each(Display::frame);
                }
                signal = signals.next() => {
                    if aborted {
                        return Err(Failure { message: "stopped before the task could end in order".into(), hint: None, code: 130 });
                    }
                    aborted = true;
                    asked = None;
                    if let Some(mut live) = live.take() {
                        live.settle();
                    }
                    self.say(&task_id, TaskAborted { task_id: task_id.clone(), reason: signal.to_owned() })?;
                }
                // Whoever follows the messages is the one for whom the task runs.
                () = output::reader_is_gone(), if self.show == Show::Json && !aborted => {
                    aborted = true;
                    asked = None;
                    self.say(&task_id, TaskAborted { task_id: task_id.clone(), reason: "nobody reads the messages any more".to_owned() })?;
                }
            }
        };
        self.catch_up(&mut tap, seq, aborted, live.as_mut());
        self.past.note(ending.task_id.clone());
        self.past.add(Turn {
            input: text.to_owned(),
            summary: came_of(&ending),
        });
        Ok(ending)
    }

    /// Asks the auditor for a report of the window so far.
    ///
    /// # Errors
    /// [`Failure`] when none comes within three seconds.
    pub async fn audit(&mut self) -> Result<AuditReport, Failure> {
        self.system
            .hub()
            .publish(Role::User, None, AuditQuery {}.into())
            .map_err(|e| Failure::failed(e.to_string()))?;
        let answer = async {
            while let Some(envelope) = self.inbox.recv().await {
                // A periodic one may lie there from before.
                if let Message::AuditReport(report) = &envelope.payload
                    && report.trigger == "on-demand"
                {
                    return Some(report.clone());
                }
            }
            None
        };
        let report = tokio::time::timeout(AUDIT_WAIT, answer).await.ok().flatten();
        report.ok_or_else(|| Failure::failed("the auditor does not answer"))
    }

    /// Takes the system down in order: nothing that was accepted is lost. Gives what was said in the conversation.
    pub async fn close(self, signals: &mut Signals) -> Past {
        drop(self.inbox);
        self.system.shutdown(signals).await;
        self.past
    }

    /// The tasks of this conversation that ran in this process, oldest first.
    pub fn ran(&self) -> &[TaskId] {
        self.past.ran()
    }

    /// The memory of the system, unless it runs without.
    pub fn memory(&self) -> Option<Arc<LateMemory>> {
        self.system.memory()
    }

    fn live(&self) -> Option<Display> {
        (self.show == Show::Live).then(|| Display::new(self.budget))
    }

    /// What is shown comes from here.
    fn tap(&self) -> Tap {
        let hub = self.system.hub();
        match self.show {
            Show::Live => hub.tap_with_deeds("display", TAP),
            Show::Nothing | Show::Progress | Show::Everything | Show::Json => hub.tap("display", TAP),
        }
    }

    /// What masks the secrets of this conversation.
    pub const fn redactor(&self) -> &Redactor {
        self.past.redactor()
    }

    fn say(&self, task_id: &TaskId, message: impl Into<Message>) -> Result<Arc<Envelope>, Failure> {
        self.system
            .hub()
            .publish(Role::User, Some(task_id), message.into())
            .map_err(|e| Failure::failed(e.to_string()))
    }

    /// The future of the person's answer, when a message is a question.
    fn question(&self, message: &Message) -> Option<Answer> {
        let confirm = Arc::clone(&self.confirm);
        match message {
            Message::ConfirmationRequest(request) => {
                let request = request.clone();
                Some(Box::pin(async move {
                    let consent = confirm.confirm(&request).await;
                    ConfirmationAnswer {
                        request_id: request.request_id,
                        task_id: request.task_id,
                        consent,
                    }
                    .into()
                }))
            }
            Message::ClarificationRequest(request) => {
                let request = request.clone();
                Some(Box::pin(async move {
                    let text = confirm.clarify(&request).await;
                    ClarificationAnswer {
                        task_id: request.task_id,
                        round: request.round,
                        text,
                    }
                    .into()
                }))
            }
            _ => None,
        }
    }

    /// Shows what came before the ending and is still in the tap.
    fn catch_up(&self, tap: &mut Tap, seq: u64, aborted: bool, mut live: Option<&mut Display>) {
        while let Some(item) = tap.try_recv() {
            let last = matches!(&item, TapItem::Envelope(envelope) if envelope.seq >= seq);
            if !aborted || self.show == Show::Json {
                self.display(&item, live.as_deref_mut());
            }
            if last {
                break;
            }
        }
    }

    fn display(&self, item: &TapItem, live: Option<&mut Display>) {
        if let Some(live) = live {
            live.hear(item);
        }
        let envelope = match item {
            TapItem::Envelope(envelope) => envelope,
            TapItem::Deed(_) => return,
            TapItem::Gap(gap) => return output::note(&format!("the display missed {gap}")),
        };
        match self.show {
            Show::Nothing | Show::Live => {}
            Show::Progress => {
                if let Some(line) = progress::line(envelope) {
                    output::note(&line);
                }
            }
            Show::Everything => output::note(&progress::verbose_line(envelope)),
            Show::Json => output::json(envelope.as_ref()),
        }
    }
}

/// Whether a text can be a task at all.
///
/// # Errors
/// [`Failure`] (exit 2) for empty and for oversized text.
pub fn check(text: &str) -> Result<(), Failure> {
    if text.chars().all(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage("there is no task: the text is empty")
            .hint("say what to do, such as: artoo \"count the files in src\""));
    }
    if text.len() > TEXT_MAX { Err(too_long()) } else { Ok(()) }
}

/// The failure for text that is too long to be a task.
pub fn too_long() -> Failure {
    Failure::usage(format!("the task is longer than the {TEXT_MAX} bytes that are taken"))
        .hint("put long text into a file and name the file in the task")
}

/// What a later turn is told of this one: the result first, because "shorter" and "in Chinese" are about it.
pub fn came_of(ending: &FinalResult) -> String {
    let came = head_tail(&progress::result_text(&ending.output), RESULT_KEPT);
    if came.is_empty() {
        ending.summary.clone()
    } else {
        format!("{came} ({})", ending.summary)
    }
}
