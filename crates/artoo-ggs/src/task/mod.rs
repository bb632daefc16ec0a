//! One task as the controller sees it: running, or waiting for the wording of an ending already decided (design §12, §14).
//!
//! Owns the transitions of a single task; which task a message belongs to is the [`actor`](crate::actor)'s matter. A task
//! that ends is consumed, so nothing of it can be left behind.

mod ending;
mod gap;

use artoo_protocol::message::{
    BudgetKind, BudgetReached, Cause, ClarificationAnswer, ClarificationRequest, ConfirmationAnswer,
    ConfirmationRequest, Consent, CriterionVerdict, DispatchManifest, Honesty, Loss, PartialResult, PreviousDirective,
    SubTaskOutcome, TaskAborted, TaskResumed, TaskSpec, UserInput,
};
use artoo_protocol::stopwatch::Stopwatch;
use artoo_protocol::text::first_n;
use artoo_protocol::{Finite, Millis, Slug, TaskId, Timestamp};
use serde_json::Value;

pub(crate) use self::ending::accepted_signals;
pub(crate) use self::gap::observation;

use self::ending::Closing;
use crate::actor::Effect;
use crate::blocked::History;
use crate::control::Control;
use crate::criteria::Criteria;
use crate::digest::Digest;
use crate::honesty::honesty;
use crate::packing::Packed;
use crate::params::Params;
use crate::signals::Tally;

/// How long the wording of a partial result is waited for.
pub const WORDING_WAIT: Millis = Millis::from_seconds(20);
/// Longest goal that is kept, in characters: until R1 has spoken it is the person's raw input.
const INTENT_MAX: usize = 2_000;

/// Most questions of a task whose grants are remembered.
const ASKED_MAX: usize = 8;

/// A question to the person, as long as it is open, or when the answer was no.
#[derive(Clone, Debug)]
struct Asked {
    request: String,
    grant: String,
    refused: bool,
}

/// What a transition may look at.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The task.
    pub task_id: &'a TaskId,
    /// When.
    pub now: Timestamp,
    /// The parameters in force.
    pub params: &'a Params,
    /// Tools that exist, if known.
    pub offered: &'a [String],
}

/// Where a task stands.
#[derive(Clone, Debug)]
pub enum State {
    /// It runs.
    Running(Box<Running>),
    /// It is abandoned; the planner words what was achieved.
    Closing(Box<Closing>),
}

/// What follows from an event.
#[derive(Debug)]
pub struct Next {
    /// The state after it; `None` when the task has ended.
    pub state: Option<State>,
    /// What is to be done.
    pub effects: Vec<Effect>,
}

impl State {
    /// When the task wants to be woken.
    pub fn alarm(&self, params: &Params) -> Option<Timestamp> {
        match self {
            Self::Running(running) => running.watch.reaches(params.time_budget_ms),
            Self::Closing(closing) => Some(closing.until),
        }
    }

    /// Its alarm has rung.
    pub fn wake(self, at: Frame<'_>) -> Next {
        match self {
            Self::Running(running) => {
                let detail = format!("It may run for {}.", at.params.time_budget_ms);
                running.stop(at, Cause::Budget, &detail, Teaches::Yes)
            }
            Self::Closing(closing) => closing.end(None),
        }
    }

    /// The person stopped it; this also cuts short the waiting for words.
    pub fn abort(self, at: Frame<'_>, message: &TaskAborted) -> Next {
        match self {
            Self::Running(running) => running.stop(at, Cause::Aborted, &message.reason, Teaches::No),
            Self::Closing(closing) => closing.abort(&message.reason),
        }
    }

    /// No tokens or money are left; the ending that was decided before stands.
    pub fn budget(self, at: Frame<'_>, message: &BudgetReached) -> Next {
        match self {
            Self::Running(running) => {
                let what = match message.budget {
                    BudgetKind::Tokens => "tokens",
                    BudgetKind::Cost => "money",
                };
                let detail = format!("It used {} of {} ({what}).", message.used, message.limit);
                running.stop(at, Cause::Budget, &detail, Teaches::No)
            }
            Self::Closing(closing) => closing.end(None),
        }
    }

    /// The wording has come.
    pub fn worded(self, message: &PartialResult) -> Next {
        match self {
            Self::Running(_) => self.stay(),
            Self::Closing(closing) => closing.end(Some(message)),
        }
    }

    /// A message that only a running task heeds; for a decided one it comes too late.
    pub fn run(self, transition: impl FnOnce(Box<Running>) -> Next) -> Next {
        match self {
            Self::Running(running) => transition(running),
            Self::Closing(_) => self.stay(),
        }
    }

    fn stay(self) -> Next {
        Next {
            state: Some(self),
            effects: Vec::new(),
        }
    }
}

/// Whether an ending is worth remembering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Teaches {
    Yes,
    No,
}

/// The last gap that was seen, for an ending that comes from outside.
#[derive(Clone, Debug)]
struct Seen {
    loss: Loss,
    grad_l: Finite,
    round: Packed,
    merged_output: Value,
}

/// A task that runs.
#[derive(Clone, Debug)]
pub struct Running {
    slug: Slug,
    intent: Box<str>,
    watch: Stopwatch,
    control: Control,
    directives: u32,
    previous: PreviousDirective,
    history: History,
    /// What was blocked when the symmetry was broken in the round before.
    broken: Option<Vec<String>>,
    criteria: Criteria,
    megrams: u64,
    seen: Option<Box<Seen>>,
    asked: Vec<Asked>,
}

impl Running {
    /// Starts with the person's words.
    pub fn open(now: Timestamp, input: &UserInput) -> Self {
        Self {
            slug: Slug::repair(""),
            intent: first_n(&input.text, INTENT_MAX).into(),
            watch: Stopwatch::start(now),
            control: Control::default(),
            directives: 0,
            previous: PreviousDirective::Init,
            history: History::default(),
            broken: None,
            criteria: Criteria::default(),
            megrams: 0,
            seen: None,
            asked: Vec::new(),
        }
    }

    /// R1 has understood the task.
    pub fn specified(mut self: Box<Self>, message: &TaskSpec) -> Next {
        self.adopt(&message.slug, &message.intent);
        self.go_on(Vec::new())
    }

    /// R2 has planned: these are the criteria now.
    pub fn planned(mut self: Box<Self>, message: &DispatchManifest) -> Next {
        self.criteria.planned(message);
        self.adopt(&message.slug, &message.intent);
        self.go_on(Vec::new())
    }

    /// A person is asked to confirm: the clock stands still.
    pub fn confirming(mut self: Box<Self>, at: Frame<'_>, message: &ConfirmationRequest) -> Next {
        self.watch.pause(&confirmation(&message.request_id), at.now);
        if let Some(grant) = message.grant.as_ref().filter(|_| self.asked.len() < ASKED_MAX) {
            self.asked.push(Asked {
                request: message.request_id.clone(),
                grant: grant.clone(),
                refused: false,
            });
        }
        self.go_on(Vec::new())
    }

    /// The person has answered.
    pub fn confirmed(mut self: Box<Self>, at: Frame<'_>, message: &ConfirmationAnswer) -> Next {
        self.watch.resume(&confirmation(&message.request_id), at.now);
        let refused = matches!(message.consent, Consent::No | Consent::Nobody);
        self.asked
            .retain(|asked| refused || asked.request != message.request_id);
        for asked in &mut self.asked {
            asked.refused |= asked.request == message.request_id;
        }
        self.go_on(Vec::new())
    }

    /// A person is asked what is meant: the clock stands still.
    pub fn clarifying(mut self: Box<Self>, at: Frame<'_>, message: &ClarificationRequest) -> Next {
        self.watch.pause(&clarification(message.round), at.now);
        self.go_on(Vec::new())
    }

    /// The person has answered.
    pub fn clarified(mut self: Box<Self>, at: Frame<'_>, message: &ClarificationAnswer) -> Next {
        self.watch.resume(&clarification(message.round), at.now);
        self.go_on(Vec::new())
    }

    /// Another process has taken the task up; the time in between is not the task's.
    pub fn resumed(mut self: Box<Self>, message: &TaskResumed) -> Next {
        self.watch.away(message.away_ms);
        self.go_on(Vec::new())
    }

    fn go_on(self: Box<Self>, effects: Vec<Effect>) -> Next {
        Next {
            state: Some(State::Running(self)),
            effects,
        }
    }

    /// Later messages know the goal better; one that does not tell it changes nothing.
    fn adopt(&mut self, slug: &Slug, intent: &str) {
        if *slug != Slug::repair("") {
            self.slug = slug.clone();
        }
        if !intent.trim().is_empty() {
            self.intent = first_n(intent, INTENT_MAX).into();
        }
    }

    /// The round in short lines; task criteria without a verdict are unverified.
    fn digest(&self, outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict], tally: &Tally<'_>) -> Digest {
        let mut digest = Digest::of(outcomes, task_verdicts, tally);
        for asked in self.asked.iter().filter(|asked| asked.refused) {
            if !digest.grants.contains(&asked.grant) {
                digest.grants.push(asked.grant.clone());
            }
        }
        for criterion in self.criteria.of_task() {
            let judged = task_verdicts.iter().any(|verdict| verdict.criterion == criterion);
            if !judged && !digest.unverified.contains(&criterion) {
                digest.unverified.push(criterion);
            }
        }
        digest
    }

    /// The honesty report of an ending with this round; what earlier rounds left open is named in both.
    fn honesty(&self, outcomes: &[SubTaskOutcome], task_verdicts: &[CriterionVerdict], digest: &mut Digest) -> Honesty {
        let mut report = honesty(outcomes, task_verdicts, &self.criteria.of_task());
        self.criteria.name_dropped(digest, &mut report);
        report
    }
}

fn confirmation(request_id: &str) -> String {
    format!("confirmation {request_id}")
}

fn clarification(round: u32) -> String {
    format!("clarification {round}")
}
