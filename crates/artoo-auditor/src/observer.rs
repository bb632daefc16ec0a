//! The auditor as a pure observer: what it is shown, what it counts, what it wants done (design §16).
//!
//! Owns the order of things; what a number means is in `counts`, what is suspicious in `watch`. It has no clock and no
//! file, and no effect by which it could reach a role.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use artoo_protocol::message::{AuditReport, FinalResult, Message};
use artoo_protocol::{Envelope, Millis, SubTaskId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::counts::{Totals, Window};
use crate::watch::{Watched, boundary_violation};

/// Time between periodic reports.
pub const REPORT_PERIOD: Millis = Millis::from_seconds(300);
/// Most tasks that are watched at once; of more, those that never end are forgotten.
const TASKS_MAX: usize = 100_000;
/// How many ended tasks are remembered, for a second ending.
const ENDED_MAX: usize = 100_000;

/// Messages that were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Sequence number of the first.
    pub from_seq: u64,
    /// Sequence number of the last.
    pub to_seq: u64,
    /// How many.
    pub count: u64,
}

/// What an observer is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A message.
    Envelope(Arc<Envelope>),
    /// Messages are missing here.
    Gap(Gap),
}

/// What goes into the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A message.
    Envelope(Arc<Envelope>),
    /// Messages are missing here.
    Gap(Gap),
    /// Something about the log itself.
    Note(String),
}

/// Everything that the auditor may do.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Append to its own log.
    Append {
        /// When it was seen.
        at: Timestamp,
        /// What.
        entry: Entry,
    },
    /// Tell the operator.
    Report(Box<AuditReport>),
}

/// The pure part of R6.
#[derive(Clone, Debug)]
pub struct Auditor {
    period: Millis,
    past: Totals,
    window: Window,
    last_seq: Option<u64>,
    tasks: BTreeMap<String, Watched>,
    subtasks: BTreeSet<SubTaskId>,
    ended: BTreeSet<String>,
    ended_order: VecDeque<String>,
}

impl Auditor {
    /// Begins a window at `now`; `past` are the totals of earlier processes.
    pub fn new(now: Timestamp, period: Millis, past: Totals) -> Self {
        Self {
            period,
            past,
            window: Window::new(now),
            last_seq: None,
            tasks: BTreeMap::new(),
            subtasks: BTreeSet::new(),
            ended: BTreeSet::new(),
            ended_order: VecDeque::new(),
        }
    }

    /// Takes what the tap shows.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Vec<Effect> {
        match observed {
            Observed::Envelope(envelope) => {
                let asked = self.look(&envelope);
                let entry = Entry::Envelope(envelope);
                let mut effects = vec![Effect::Append { at: now, entry }];
                if asked {
                    effects.push(self.on_demand(now));
                }
                effects
            }
            Observed::Gap(gap) => {
                self.missed(gap);
                let entry = Entry::Gap(gap);
                vec![Effect::Append { at: now, entry }]
            }
        }
    }

    /// Messages that never reached the log, for whatever reason.
    pub fn missed(&mut self, gap: Gap) {
        let Gap {
            from_seq,
            to_seq,
            count,
        } = gap;
        self.window.anomalies.push(format!(
            "gap: {count} messages were not recorded ({from_seq} to {to_seq})"
        ));
        self.last_seq = self.last_seq.max(Some(to_seq));
    }

    /// Counts a message; says whether it is the operator asking for a report.
    pub fn look(&mut self, envelope: &Envelope) -> bool {
        let seq = envelope.seq;
        // Every process counts from 1.
        if let Some(last) = self.last_seq.filter(|last| seq != 1 && seq != last + 1) {
            self.window
                .anomalies
                .push(format!("order: message {seq} came after {last}"));
        }
        self.last_seq = Some(seq);
        let violation = boundary_violation(envelope);
        let asked = violation.is_none() && matches!(envelope.payload, Message::AuditQuery(_));
        self.window.violations.extend(violation);
        self.window.count(&envelope.payload);
        // What the operator asks belongs to no task.
        if let Some(task_id) = &envelope.task_id {
            self.watch(task_id, &envelope.payload);
        }
        asked
    }

    /// When the next periodic report is due.
    pub fn deadline(&self) -> Timestamp {
        self.window.start.plus(self.period)
    }

    /// Reports if the time has come.
    pub fn wake(&mut self, now: Timestamp) -> Option<Effect> {
        (now >= self.deadline()).then(|| self.report(now, "periodic"))
    }

    /// The last report of a process.
    pub fn exit(&mut self, now: Timestamp) -> Effect {
        self.report(now, "exit")
    }

    /// The operator asks, in this process and not over the bus.
    pub fn on_demand(&mut self, now: Timestamp) -> Effect {
        self.report(now, "on-demand")
    }

    /// Everything counted since the beginning, this window included.
    pub fn totals(&self) -> Totals {
        self.past.plus(self.window.sums)
    }

    /// Tasks that have begun and not ended.
    pub fn open_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The report of the window, after which the next begins.
    pub(crate) fn close_window(&mut self, now: Timestamp, trigger: &str) -> AuditReport {
        let report = self.window.report(trigger, now, &self.past);
        self.past = self.totals();
        self.window = Window::new(now);
        report
    }

    fn report(&mut self, now: Timestamp, trigger: &str) -> Effect {
        Effect::Report(Box::new(self.close_window(now, trigger)))
    }

    fn watch(&mut self, task_id: &TaskId, message: &Message) {
        let key = key(task_id);
        match message {
            Message::FinalResult(result) => return self.end(&key, task_id, result),
            Message::AuditQuery(_) | Message::AuditReport(_) => return,
            _ if self.ended.contains(&key) => return,
            _ => {}
        }
        self.make_room(&key);
        let watched = self
            .tasks
            .entry(key.clone())
            .or_insert_with(|| Watched::new(task_id.clone()));
        if watched.task_id.is_provisional() {
            watched.task_id = task_id.clone();
        }
        match message {
            Message::PlanDirective(directive) => {
                let (trend, thrashing) = watched.directed(directive);
                self.window.trend(&key, &watched.task_id, trend);
                self.window.anomalies.extend(thrashing);
            }
            Message::CorrectionSignal(signal) => {
                self.window.anomalies.extend(watched.corrected(signal));
            }
            Message::SubTask(subtask) => {
                let id = subtask.subtask_id.clone();
                if self.subtasks.insert(id.clone()) {
                    watched.subtasks.push(id);
                } else {
                    self.window.anomalies.push(format!(
                        "duplicate_subtask: {task_id}: subtask {id} was dispatched twice"
                    ));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, key: &str, task_id: &TaskId, result: &FinalResult) {
        if self.ended.contains(key) {
            self.window
                .anomalies
                .push(format!("second_final_result: {task_id} has ended twice"));
            return;
        }
        let mut watched = self.tasks.remove(key).unwrap_or_else(|| Watched::new(task_id.clone()));
        let trend = watched.ended(result);
        self.window.trend(key, task_id, trend);
        self.forget_subtasks(&watched);
        self.ended.insert(key.to_owned());
        self.ended_order.push_back(key.to_owned());
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    fn make_room(&mut self, for_key: &str) {
        if self.tasks.len() >= TASKS_MAX
            && !self.tasks.contains_key(for_key)
            && let Some((_, forgotten)) = self.tasks.pop_first()
        {
            self.forget_subtasks(&forgotten);
        }
    }

    fn forget_subtasks(&mut self, of: &Watched) {
        for id in &of.subtasks {
            self.subtasks.remove(id);
        }
    }
}

/// One key for both names of a run.
fn key(task_id: &TaskId) -> String {
    match TaskId::parse(task_id.as_str()) {
        Ok(_) => task_id.suffix().to_owned(),
        Err(_) => task_id.to_string(),
    }
}
