//! How the spans of a task hang together (docs/traces.md).
//!
//! Owns which span is open, which work belongs to which attempt, and when each ends. What messages and calls mean for it is in the
//! two files below. Must not take over what a person, a model or a tool wrote: names, numbers and words of artoo's own are all that
//! leaves the machine.

mod calls;
mod messages;

use std::collections::{BTreeSet, HashMap};

use artoo_bus::journal::read;
use artoo_protocol::journal::{Entry, Record, StepCause};
use artoo_protocol::{CallId, Role, SubTaskId, Timestamp};

use super::spans::{About, Kind, Span, Trace, Value, span_id, trace_id};
use super::told;

/// Spans of one trace; what is beyond is counted and left out. The first ones are kept, so that no span loses its parent.
pub const SPANS_MAX: usize = 10_000;

/// The task itself.
pub const ROOT: usize = 0;

/// A subtask that is being carried out.
struct Running {
    span: usize,
    attempt: usize,
    /// Spans of all its attempts, in order.
    attempts: Vec<usize>,
}

/// A call that was not answered yet.
struct Waiting {
    /// None for what is not worth a span.
    span: Option<usize>,
    subtask: Option<SubTaskId>,
}

/// A trace in the making.
pub struct Weaver<'a> {
    about: &'a About<'a>,
    trace: Trace,
    /// Those that have not ended.
    open: BTreeSet<usize>,
    now: Timestamp,
    conversation: String,
    round: i64,
    plan: Option<usize>,
    replan: Option<usize>,
    running: HashMap<SubTaskId, Running>,
    waiting: HashMap<(Role, CallId), Waiting>,
    /// Questions to the person, by their name.
    asked: HashMap<String, (usize, Option<SubTaskId>)>,
    /// Which subtask the message with this number is about.
    heard: HashMap<u64, SubTaskId>,
    /// Which subtask a role is busy with: that of the event that it took last.
    turn: HashMap<Role, Option<SubTaskId>>,
    resumed: i64,
}

impl<'a> Weaver<'a> {
    /// A trace with nothing in it but the task.
    pub fn new(about: &'a About<'a>, records: &[Record], start: Timestamp) -> Self {
        let task = read::task_id(records).map_or("", |task| task.as_str());
        let mut weaver = Self {
            about,
            trace: Trace {
                id: trace_id(records),
                spans: Vec::new(),
            },
            open: BTreeSet::new(),
            now: start,
            conversation: told::bounded(about.conversation.unwrap_or(task)),
            round: 0,
            plan: None,
            replan: None,
            running: HashMap::new(),
            waiting: HashMap::new(),
            asked: HashMap::new(),
            heard: HashMap::new(),
            turn: HashMap::new(),
            resumed: 0,
        };
        weaver.begin(None, "invoke_agent artoo".to_owned(), Kind::Internal);
        weaver.operation(ROOT, "invoke_agent");
        weaver.tell(ROOT, "gen_ai.agent.name", "artoo");
        weaver.tell(ROOT, "gen_ai.agent.version", env!("CARGO_PKG_VERSION"));
        weaver.tell(ROOT, "artoo.task.id", task);
        weaver
    }

    /// Takes in what happened next.
    pub fn follow(&mut self, record: &Record) {
        self.now = record.at;
        match &record.entry {
            Entry::Published { envelope } => self.published(envelope),
            Entry::Commanded { role, command } => self.commanded(*role, command),
            Entry::Answered { role, call, answer } => self.answered(*role, *call, answer),
            Entry::Stepped { role, cause, .. } => {
                let subtask = match cause {
                    StepCause::Message { seq } => self.heard.get(seq).cloned(),
                    StepCause::Answer { call } => {
                        let waited = self.waiting.remove(&(*role, *call));
                        waited.and_then(|waited| waited.subtask)
                    }
                    StepCause::Wake => None,
                };
                self.turn.insert(*role, subtask);
            }
            Entry::Opened { .. } | Entry::Closed { .. } => {}
        }
    }

    /// Where work on a subtask hangs: at its present attempt.
    fn attempt_of(&self, subtask: Option<&SubTaskId>) -> usize {
        subtask
            .and_then(|subtask| self.running.get(subtask))
            .map_or(ROOT, |running| running.attempt)
    }

    fn begin(&mut self, parent: Option<usize>, name: String, kind: Kind) -> usize {
        let at = self.trace.spans.len();
        let parent = parent
            .and_then(|parent| self.trace.spans.get(parent))
            .map(|span| span.id);
        self.trace.spans.push(Span {
            id: span_id(self.trace.id, at),
            parent,
            name,
            kind,
            start: self.now,
            end: self.now,
            attributes: Vec::new(),
            error: None,
        });
        self.open.insert(at);
        at
    }

    fn end(&mut self, at: usize) {
        if self.open.remove(&at)
            && let Some(span) = self.trace.spans.get_mut(at)
        {
            // The clock of the machine may have been set back meanwhile.
            span.end = self.now.max(span.start);
        }
    }

    fn operation(&mut self, at: usize, name: &str) {
        self.tell(at, "gen_ai.operation.name", name);
        let conversation = self.conversation.clone();
        self.put(at, "gen_ai.conversation.id", Value::Text(conversation));
    }

    fn tell(&mut self, at: usize, key: &'static str, text: &str) {
        self.put(at, key, Value::Text(told::bounded(text)));
    }

    fn count(&mut self, at: usize, key: &'static str, number: usize) {
        self.put(at, key, told::int(number as u64));
    }

    fn put(&mut self, at: usize, key: &'static str, value: Value) {
        told::put(&mut self.trace.spans, at, key, value);
    }

    fn fail(&mut self, at: usize, kind: &str, why: &str) {
        told::fail(&mut self.trace.spans, at, kind, why);
    }

    /// The trace; what was not over lasts until now.
    pub fn finish(mut self) -> Trace {
        self.open.remove(&ROOT);
        for at in std::mem::take(&mut self.open) {
            self.put(at, "artoo.unfinished", Value::Flag(true));
            self.open.insert(at);
            self.end(at);
        }
        self.open.insert(ROOT);
        self.end(ROOT);
        let left_out = self.trace.spans.len().saturating_sub(SPANS_MAX);
        if left_out > 0 {
            self.count(ROOT, "artoo.spans.left_out", left_out);
            self.trace.spans.truncate(SPANS_MAX);
        }
        self.trace
    }
}
