//! What a task was and what it cost, read from its journal (design §19).
//!
//! Owns the accounting; pure functions of records. Must not price anything: what a token costs is the application's.

use std::collections::HashMap;

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{Cause, Ending, UserInput};
use artoo_protocol::model::{Tier, Usage};
use artoo_protocol::{Answer, CallId, Command, Envelope, Message, Millis, Role, TaskId, Timestamp};

/// How far a task got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its FinalResult is there.
    Finished,
    /// The process that ran it ended before it: it can be resumed.
    Interrupted,
}

/// A task at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSummary {
    /// The id of the run.
    pub task_id: TaskId,
    /// The person's words.
    pub input: String,
    /// The goal as R1 restated it; empty where it got no further.
    pub intent: String,
    /// How far it got.
    pub status: Status,
    /// How it ended.
    pub directive: Option<Ending>,
    /// Why it ended so.
    pub cause: Option<Cause>,
    /// What came of it, in words.
    pub summary: String,
    /// Directives that R7 issued.
    pub replans: u32,
    /// First record.
    pub started_at: Timestamp,
    /// Last record.
    pub ended_at: Timestamp,
    /// What it cost.
    pub costs: Costs,
}

/// What a task cost. Times of calls that overlap count once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Every model call, in the order in which they were begun.
    pub calls: Vec<ModelCall>,
    /// Length of the longest chain of calls of which each was begun after the one before was answered: what the person
    /// waits for.
    pub sequential_calls: usize,
    /// Everything that was used, summed.
    pub usage: Usage,
    /// Begin to end.
    pub total: Millis,
    /// Waiting for models.
    pub model: Millis,
    /// Waiting for tools and machine checks.
    pub tools: Millis,
    /// Waiting for the person.
    pub person: Millis,
    /// What is left: artoo's own time.
    pub own: Millis,
}

/// One model call.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// Who asked.
    pub role: Role,
    /// Which of the configured models was meant.
    pub tier: Tier,
    /// The model's own name; empty when nothing came that has a price.
    pub model: String,
    /// What the provider reported, or an estimate.
    pub usage: Usage,
    /// From asking to the answer.
    pub elapsed: Millis,
    /// Whether a usable answer came.
    pub answered: bool,
    /// Whether it lies on the longest chain.
    pub critical: bool,
}

impl TaskSummary {
    /// Sums a journal up; `None` without a first record.
    pub fn of(records: &[Record]) -> Option<Self> {
        let (first, last) = (records.first()?, records.last()?);
        let mut summary = Self {
            ended_at: last.at,
            costs: costs(records),
            ..Self::unreadable(super::read::task_id(records)?.clone(), first.at)
        };
        for record in records {
            if let Entry::Published { envelope } = &record.entry {
                summary.follow(envelope);
            }
        }
        Some(summary)
    }

    /// Of a task of whose journal nothing can be read: `at` is when it was written last.
    pub fn unreadable(task_id: TaskId, at: Timestamp) -> Self {
        Self {
            task_id,
            input: String::new(),
            intent: String::new(),
            status: Status::Interrupted,
            directive: None,
            cause: None,
            summary: String::new(),
            replans: 0,
            started_at: at,
            ended_at: at,
            costs: Costs::default(),
        }
    }

    fn follow(&mut self, envelope: &Envelope) {
        match &envelope.payload {
            Message::UserInput(UserInput { text, .. }) => self.input.clone_from(text),
            Message::TaskSpec(spec) => self.intent.clone_from(&spec.intent),
            Message::DirectAnswer(answer) => self.intent.clone_from(&answer.intent),
            Message::PlanDirective(_) => self.replans += 1,
            Message::FinalResult(result) => {
                self.status = Status::Finished;
                self.directive = Some(result.directive);
                self.cause = Some(result.cause);
                self.summary.clone_from(&result.summary);
            }
            _ => {}
        }
    }
}

/// What a journal says about costs. Calls that were never answered last until the end.
pub fn costs(records: &[Record]) -> Costs {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Costs::default();
    };
    let end = (last.at, u64::MAX);
    let mut open: HashMap<(Role, CallId), Begun> = HashMap::new();
    let mut waits: Vec<(String, Timestamp)> = Vec::new();
    let (mut models, mut tools, mut person) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match &record.entry {
            Entry::Commanded { role, command } => {
                if let Some((call, kind)) = kind(command) {
                    let begun = Begun {
                        at: record.at,
                        n: record.n,
                        kind,
                    };
                    open.insert((*role, call), begun);
                }
            }
            Entry::Answered { role, call, answer } => {
                if let Some(begun) = open.remove(&(*role, *call)) {
                    begun.done(*role, record, Some(answer), &mut models, &mut tools);
                }
            }
            Entry::Published { envelope } => match (question(envelope), reply(envelope)) {
                (Some(key), _) => waits.push((key, record.at)),
                (None, Some(key)) => {
                    if let Some(at) = waits.iter().position(|(open, _)| *open == key) {
                        let (_, since) = waits.swap_remove(at);
                        person.push((since, record.at));
                    }
                }
                (None, None) => {}
            },
            Entry::Opened { .. } | Entry::Stepped { .. } | Entry::Closed { .. } => {}
        }
    }
    for ((role, _), begun) in open {
        let unanswered = Record {
            n: end.1,
            at: end.0,
            masked: false,
            entry: Entry::Closed { reason: String::new() },
        };
        begun.done(role, &unanswered, None, &mut models, &mut tools);
    }
    person.extend(waits.into_iter().map(|(_, since)| (since, end.0)));
    let total = end.0.since(first.at);
    let spans = models.iter().map(|call: &Spanned| call.span).collect::<Vec<_>>();
    let all = [spans.as_slice(), &tools, &person].concat();
    let mut costs = Costs {
        total,
        model: union(spans),
        tools: union(tools),
        person: union(person),
        own: Millis(total.0.saturating_sub(union(all).0)),
        ..Costs::default()
    };
    models.sort_by_key(|call| call.from);
    costs.sequential_calls = mark_longest_chain(&mut models);
    for call in models {
        costs.usage = costs.usage.plus(call.call.usage);
        costs.calls.push(call.call);
    }
    costs
}

type Span = (Timestamp, Timestamp);

/// What kind of waiting a command causes.
enum Kind {
    Model(Tier),
    Tool,
    Other,
}

fn kind(command: &Command) -> Option<(CallId, Kind)> {
    match command {
        Command::CallModel { call, request, .. } => Some((*call, Kind::Model(request.tier))),
        Command::RunTool { call, .. } | Command::RunCheck { call, .. } => Some((*call, Kind::Tool)),
        Command::Assess { call, .. } | Command::Recall { call, .. } => Some((*call, Kind::Other)),
        Command::Publish { .. } | Command::Cancel { .. } | Command::Keep { .. } | Command::Store { .. } => None,
    }
}

struct Begun {
    at: Timestamp,
    n: u64,
    kind: Kind,
}

impl Begun {
    fn done(self, role: Role, end: &Record, answer: Option<&Answer>, models: &mut Vec<Spanned>, tools: &mut Vec<Span>) {
        let span = (self.at, end.at);
        match self.kind {
            Kind::Model(tier) => {
                let spent = answer.and_then(Answer::spent);
                models.push(Spanned {
                    from: self.n,
                    to: end.n,
                    span,
                    call: ModelCall {
                        role,
                        tier,
                        model: spent.map(|(model, _)| model.to_owned()).unwrap_or_default(),
                        usage: spent.map(|(_, usage)| *usage).unwrap_or_default(),
                        elapsed: span.1.since(span.0),
                        answered: matches!(answer, Some(Answer::Model(Ok(_)))),
                        critical: false,
                    },
                });
            }
            Kind::Tool => tools.push(span),
            Kind::Other => {}
        }
    }
}

/// A model call with its place in the journal.
struct Spanned {
    from: u64,
    to: u64,
    span: Span,
    call: ModelCall,
}

/// Marks the longest chain of calls that do not overlap, by record numbers; of equally long ones the slowest. Returns its
/// length. `calls` are in the order in which they were begun.
fn mark_longest_chain(calls: &mut [Spanned]) -> usize {
    // For each call: length and time of the best chain that ends with it, and the call before it in that chain.
    let mut best: Vec<(usize, u64, Option<usize>)> = Vec::with_capacity(calls.len());
    let mut by_end: Vec<usize> = (0..calls.len()).collect();
    by_end.sort_by_key(|&at| calls.get(at).map_or(0, |call| call.to));
    let mut next_end = by_end.into_iter().peekable();
    // The end of the best chain among the calls answered so far.
    let mut leader: Option<usize> = None;
    for call in calls.iter() {
        while let Some(&at) = next_end.peek()
            && calls.get(at).is_some_and(|other| other.to < call.from)
        {
            next_end.next();
            if leader.is_none_or(|lead| rank(&best, at) > rank(&best, lead)) {
                leader = Some(at);
            }
        }
        let (length, time) = leader.map_or((0, 0), |lead| rank(&best, lead));
        best.push((length + 1, time.saturating_add(call.call.elapsed.0), leader));
    }
    let mut at = (0..best.len()).max_by_key(|&at| rank(&best, at));
    let length = at.map_or(0, |at| rank(&best, at).0);
    while let Some(index) = at {
        if let Some(call) = calls.get_mut(index) {
            call.call.critical = true;
        }
        at = best.get(index).and_then(|(_, _, before)| *before);
    }
    length
}

fn rank(best: &[(usize, u64, Option<usize>)], at: usize) -> (usize, u64) {
    best.get(at).map_or((0, 0), |(length, time, _)| (*length, *time))
}

/// Time covered by at least one span.
fn union(mut spans: Vec<Span>) -> Millis {
    spans.sort_unstable();
    let mut covered = Millis(0);
    let mut until: Option<Timestamp> = None;
    for (from, to) in spans {
        let from = until.map_or(from, |until| until.max(from));
        covered = covered.saturating_add(to.since(from));
        until = Some(until.map_or(to, |until| until.max(to)));
    }
    covered
}

fn question(envelope: &Envelope) -> Option<String> {
    match &envelope.payload {
        Message::ConfirmationRequest(request) => Some(request.request_id.clone()),
        Message::ClarificationRequest(request) => Some(format!("round {}", request.round)),
        _ => None,
    }
}

fn reply(envelope: &Envelope) -> Option<String> {
    match &envelope.payload {
        Message::ConfirmationAnswer(answer) => Some(answer.request_id.clone()),
        Message::ClarificationAnswer(answer) => Some(format!("round {}", answer.round)),
        _ => None,
    }
}
