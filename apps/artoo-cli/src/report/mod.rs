//! The story of one task, gathered from its journal: rounds, attempts, decisions, times, memory, costs (design §17, §21).
//!
//! Owns what belongs together; how it is shown is [`page`]'s and [`markdown`]'s matter. Reads only.

mod drawing;
pub mod markdown;
pub mod page;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use artoo_bus::Price;
use artoo_bus::journal::summary::TaskSummary;
use artoo_ggs::{Explained, Params, explain};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{
    CorrectionSignal, CriterionVerdict, DispatchManifest, ExecutionResult, FinalResult, Megram, MemoryReply,
    OutcomeStatus, PlanDirective, SubTask, SubTaskOutcome,
};
use artoo_protocol::model::Usage;
use artoo_protocol::{CallId, Command, Envelope, MegramId, Message, Millis, Role, SubTaskId, Timestamp};

/// Everything that a report tells.
#[derive(Debug)]
pub struct Story<'a> {
    /// At a glance.
    pub summary: TaskSummary,
    /// The end; absent while it runs or was interrupted.
    pub ended: Option<&'a FinalResult>,
    /// Plan after plan.
    pub rounds: Vec<Round<'a>>,
    /// What the controller decided, with the cells of its table.
    pub decisions: Vec<Explained>,
    /// Who was busy when.
    pub spans: Vec<Span>,
    /// What memory told the planner.
    pub replies: Vec<&'a MemoryReply>,
    /// What of it shaped a plan.
    pub used: BTreeSet<&'a MegramId>,
    /// What was learned.
    pub written: Vec<&'a Megram>,
    /// What each role's calls cost.
    pub spent: BTreeMap<Role, Spent>,
}

/// One plan and what became of it.
#[derive(Debug, Default)]
pub struct Round<'a> {
    /// What R4b waited for.
    pub manifest: Option<&'a DispatchManifest>,
    /// What was dispatched.
    pub subtasks: Vec<&'a SubTask>,
    /// In the order of their ends.
    pub attempts: Vec<Attempt<'a>>,
    /// The last words on subtasks.
    pub outcomes: Vec<&'a SubTaskOutcome>,
    /// What was missing, in R4b's words; empty when nothing was.
    pub gap: &'a str,
    /// What R4b found of the criteria of the whole.
    pub verdicts: &'a [CriterionVerdict],
    /// What came of that.
    pub directive: Option<&'a PlanDirective>,
}

/// One attempt.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// What R3 said.
    pub result: &'a ExecutionResult,
    /// What R4a wanted changed.
    pub correction: Option<&'a CorrectionSignal>,
}

/// A stretch of time that somebody spent on one thing.
#[derive(Clone, Debug)]
pub struct Span {
    /// Who waited for it.
    pub role: Role,
    /// What it was.
    pub what: String,
    /// Its kind.
    pub kind: Kind,
    /// Begin.
    pub from: Timestamp,
    /// End.
    pub to: Timestamp,
}

/// What a span was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A model.
    Model,
    /// A tool.
    Tool,
    /// A machine check.
    Check,
    /// Memory.
    Memory,
    /// A person's answer.
    Person,
}

/// What the model calls of a role took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// How many.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// Time; of calls at the same time, both.
    pub elapsed: Millis,
    /// Money, in the currency of the price table.
    pub cost: f64,
}

impl<'a> Story<'a> {
    /// Gathers it; `None` without a first record.
    pub fn of(records: &'a [Record], params: &Params, price: &Price) -> Option<Self> {
        let summary = TaskSummary::of(records)?;
        let envelopes = || records.iter().filter_map(|record| published(record));
        let mut story = Self {
            ended: None,
            rounds: Vec::new(),
            decisions: explain(params, envelopes()),
            spans: spans(records),
            replies: Vec::new(),
            used: BTreeSet::new(),
            written: Vec::new(),
            spent: BTreeMap::new(),
            summary,
        };
        for envelope in envelopes() {
            story.follow(envelope);
        }
        for call in &story.summary.costs.calls {
            let spent = story.spent.entry(call.role).or_default();
            spent.calls += 1;
            spent.usage = spent.usage.plus(call.usage);
            spent.elapsed = Millis(spent.elapsed.0.saturating_add(call.elapsed.0));
            spent.cost += price(&call.model, &call.usage);
        }
        Some(story)
    }

    /// Money in all.
    pub fn cost(&self) -> f64 {
        self.spent.values().map(|spent| spent.cost).sum()
    }

    fn follow(&mut self, envelope: &'a Envelope) {
        if let Message::DispatchManifest(manifest) = &envelope.payload {
            self.used.extend(&manifest.rules_used);
            self.rounds.push(Round {
                manifest: Some(manifest),
                ..Round::default()
            });
        } else if let Message::MemoryReply(reply) = &envelope.payload {
            self.replies.push(reply);
        } else if let Message::Megram(megram) = &envelope.payload {
            self.written.push(megram);
        } else if let Message::FinalResult(result) = &envelope.payload {
            self.ended = self.ended.or(Some(result));
        } else if let Some(round) = self.rounds.last_mut() {
            round.follow(&envelope.payload);
        }
    }
}

impl<'a> Round<'a> {
    fn follow(&mut self, message: &'a Message) {
        if let Message::SubTask(subtask) = message {
            self.subtasks.push(subtask);
        } else if let Message::ExecutionResult(result) = message {
            self.attempts.push(Attempt {
                result,
                correction: None,
            });
        } else if let Message::CorrectionSignal(signal) = message {
            let of = |attempt: &&mut Attempt<'_>| attempt.result.subtask_id == signal.subtask_id;
            if let Some(attempt) = self.attempts.iter_mut().rev().find(of) {
                attempt.correction = Some(signal);
            }
        } else if let Message::SubTaskOutcome(outcome) = message {
            self.outcomes.push(outcome);
        } else if let Message::ReplanRequest(request) = message {
            self.gap = &request.gap_summary;
            self.verdicts = &request.task_verdicts;
        } else if let Message::OutcomeSummary(summary) = message {
            self.verdicts = &summary.task_verdicts;
        } else if let Message::PlanDirective(directive) = message {
            self.directive = Some(directive);
        }
    }

    /// How a subtask ended in this round; `None` when nothing says so, because the task ended before it did.
    pub fn status(&self, id: &SubTaskId) -> Option<OutcomeStatus> {
        let of = |outcome: &&&SubTaskOutcome| outcome.subtask_id == *id;
        self.outcomes.iter().find(of).map(|outcome| outcome.status)
    }

    /// Its plan: number, intent and group of each step.
    pub fn steps(&self) -> impl Iterator<Item = (&'a SubTaskId, &'a str, u32)> {
        let planned = self
            .manifest
            .map(|manifest| manifest.subtasks.as_slice())
            .unwrap_or_default();
        planned
            .iter()
            .map(|step| (&step.subtask_id, step.intent.as_str(), step.sequence))
    }
}

fn published(record: &Record) -> Option<&Envelope> {
    match &record.entry {
        Entry::Published { envelope } => Some(envelope),
        Entry::Opened { .. }
        | Entry::Commanded { .. }
        | Entry::Answered { .. }
        | Entry::Stepped { .. }
        | Entry::Closed { .. } => None,
    }
}

/// What is said of a step without an outcome: it may have done something all the same.
const UNFINISHED: &str = "no outcome: waiting or begun when the task ended";

/// A word of this program's JSON.
pub fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or("–").to_owned()
}

/// What was waited for, from the command to its answer. What was never answered lasts until the end.
fn spans(records: &[Record]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut open: HashMap<(Role, CallId), usize> = HashMap::new();
    let mut asked: HashMap<&str, usize> = HashMap::new();
    let end = records.last().map_or_else(Timestamp::default, |record| record.at);
    for record in records {
        match &record.entry {
            Entry::Commanded { role, command } => {
                if let Some((call, kind, what)) = waited_for(command) {
                    open.insert((*role, call), spans.len());
                    let (from, to) = (record.at, end);
                    spans.push(Span {
                        role: *role,
                        what,
                        kind,
                        from,
                        to,
                    });
                }
            }
            Entry::Answered { role, call, .. } => {
                if let Some(span) = open.remove(&(*role, *call)).and_then(|at| spans.get_mut(at)) {
                    span.to = record.at;
                }
            }
            Entry::Published { envelope } => match &envelope.payload {
                Message::ConfirmationRequest(request) => {
                    asked.insert(&request.request_id, spans.len());
                    spans.push(Span {
                        role: Role::User,
                        what: format!("may {} be done?", request.action),
                        kind: Kind::Person,
                        from: record.at,
                        to: end,
                    });
                }
                Message::ConfirmationAnswer(answer) => {
                    if let Some(span) = asked
                        .remove(answer.request_id.as_str())
                        .and_then(|at| spans.get_mut(at))
                    {
                        span.to = record.at;
                    }
                }
                _ => {}
            },
            Entry::Opened { .. } | Entry::Stepped { .. } | Entry::Closed { .. } => {}
        }
    }
    spans
}

fn waited_for(command: &Command) -> Option<(CallId, Kind, String)> {
    match command {
        Command::CallModel { call, .. } => Some((*call, Kind::Model, "a model".to_owned())),
        Command::RunTool { call, invocation, .. } => Some((*call, Kind::Tool, invocation.tool.clone())),
        Command::RunCheck { call, .. } => Some((*call, Kind::Check, "a check".to_owned())),
        Command::Recall { call, .. } => Some((*call, Kind::Memory, "memory".to_owned())),
        Command::Assess { .. }
        | Command::Publish { .. }
        | Command::Cancel { .. }
        | Command::Keep { .. }
        | Command::Store { .. } => None,
    }
}
