//! The life of one task at R2, from its specification to the last group of its last plan (design §6, §13).
//!
//! Owns the state of one task. Knows no other task and no message that is not about it.

use artoo_protocol::ids::CallId;
use artoo_protocol::message::{
    Cause, MemoryQuery, MemoryReply, MustNot, OutcomeStatus, PartialResultRequest, PlanDirective, PlanningFailed,
    SubTaskOutcome, TaskSpec, intent_space,
};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply};
use artoo_protocol::text::head_tail;
use artoo_protocol::units::{Millis, Timestamp};
use serde_json::Value;

use crate::actor::Effect;
use crate::calibration::{Calibration, calibrate};
use crate::carry::{self, Kept};
use crate::denied::Denied;
use crate::desk::Desk;
use crate::parse::{Step, parse};
use crate::partial;
use crate::prompt::{Rejection, Situation, plan_request};
use crate::sameness::Given;
use crate::scope::Allowed;
use crate::validate::{Ground, Work, validate};

mod sending;

use sending::Current;

/// Where the entries of this machine live in memory.
const ENTITY: &str = "env:local";
/// Characters of a failure's reason.
const REASON_CHARS: usize = 1_000;

/// Where a task stands.
#[derive(Debug)]
enum State {
    /// Memory was asked.
    Recalling { query: u32, until: Timestamp },
    /// The model makes a plan.
    Planning(Box<Draft>),
    /// A plan is carried out, or has been; R4b judges it.
    Dispatching(Box<Current>),
    /// R7 gives the task up, and the model words what was achieved; without a call that is done.
    Reporting { call: Option<CallId> },
    /// No plan could be made.
    Failed,
}

/// A plan in the making.
#[derive(Clone, Debug)]
struct Draft {
    call: CallId,
    memory: Calibration,
    must_not: MustNot,
    regenerations: u32,
}

/// One task.
#[derive(Debug)]
pub struct Task {
    spec: TaskSpec,
    started_at: Timestamp,
    calls: CallId,
    queries: u32,
    /// Subtasks that the task ever had; the next id is made from it.
    minted: u64,
    round: u32,
    /// What directives forbade so far.
    blocked: MustNot,
    failed_plans: Vec<Work>,
    /// Tools that the subtasks which failed last used.
    tried: Vec<String>,
    /// Matched work that the last directive left standing.
    kept: Kept,
    /// Task criteria that stay in force whatever a plan states.
    denied: Denied,
    directive: Option<PlanDirective>,
    /// Words that the task gives.
    given: Given,
    allowed: Allowed,
    state: State,
}

impl Task {
    /// A new task, which asks memory first.
    pub fn open(desk: &Desk, now: Timestamp, spec: TaskSpec) -> (Self, Effect) {
        let mut task = Self {
            given: Given::of(&[&spec.intent, &spec.raw_input]),
            allowed: desk.allowed(&spec),
            spec,
            started_at: now,
            calls: CallId(0),
            queries: 0,
            minted: 0,
            round: 0,
            blocked: MustNot::default(),
            failed_plans: Vec::new(),
            tried: Vec::new(),
            kept: Kept::default(),
            denied: Denied::default(),
            directive: None,
            state: State::Failed,
        };
        let effect = task.recall(desk, now);
        (task, effect)
    }

    /// When memory has had its time.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.state {
            State::Recalling { until, .. } => Some(*until),
            State::Planning(_) | State::Dispatching(_) | State::Reporting { .. } | State::Failed => None,
        }
    }

    /// The task lay still so long; that time was neither memory's nor that of a deadline.
    pub fn away(&mut self, span: Millis) {
        match &mut self.state {
            State::Recalling { until, .. } => *until = until.plus(span),
            State::Dispatching(current) => current.dispatch.clock.away(span),
            State::Planning(_) | State::Reporting { .. } | State::Failed => {}
        }
    }

    /// A person was asked, or has answered: no deadline passes meanwhile.
    pub fn waiting(&mut self, request: &str, waits: bool, stamp: Timestamp) {
        if let State::Dispatching(current) = &mut self.state {
            current.dispatch.clock.waiting(request, waits, stamp);
        }
    }

    /// Memory answered.
    pub fn recalled(&mut self, desk: &Desk, now: Timestamp, reply: &MemoryReply) -> Vec<Effect> {
        if !matches!(self.state, State::Recalling { query, .. } if query == reply.query) {
            return Vec::new();
        }
        let memory = calibrate(reply, &desk.tool_names, &self.blocked.tools);
        vec![self.begin(desk, now, memory)]
    }

    /// Time has passed.
    pub fn woken(&mut self, desk: &Desk, now: Timestamp) -> Vec<Effect> {
        if self.deadline().is_none_or(|until| until > now) {
            return Vec::new();
        }
        let late = format!("it did not answer within {}", desk.config.limits.memory_wait);
        vec![self.begin(desk, now, Calibration::without(&late))]
    }

    /// The model answered.
    pub fn answered(
        &mut self,
        desk: &Desk,
        now: Timestamp,
        call: CallId,
        answer: Result<ModelReply, ModelError>,
    ) -> Vec<Effect> {
        match &self.state {
            State::Planning(draft) if draft.call == call => {
                let draft = Draft::clone(draft);
                self.planned(desk, now, draft, answer)
            }
            State::Reporting { call: Some(expected) } if *expected == call => {
                self.state = State::Reporting { call: None };
                let wording = answer
                    .ok()
                    .and_then(|reply| partial::read(&self.spec.task_id, &reply.content));
                wording.into_iter().map(Effect::Report).collect()
            }
            State::Planning(_)
            | State::Reporting { .. }
            | State::Recalling { .. }
            | State::Dispatching(_)
            | State::Failed => Vec::new(),
        }
    }

    /// A subtask ended; its outcome was said at this moment.
    pub fn settled(&mut self, stamp: Timestamp, outcome: &SubTaskOutcome) -> Vec<Effect> {
        let State::Dispatching(current) = &mut self.state else {
            return Vec::new();
        };
        let long = current.dispatch.settle(stamp, outcome);
        let keep = long.map(|output| Effect::Keep {
            task_id: self.spec.task_id.clone(),
            output,
        });
        let due = std::iter::from_fn(|| current.dispatch.send(stamp));
        keep.into_iter().chain(due.map(Effect::Dispatch)).collect()
    }

    /// R7 demands another plan: the present one counts as failed, and memory is asked anew.
    pub fn directed(&mut self, desk: &Desk, now: Timestamp, directive: PlanDirective) -> Vec<Effect> {
        let current = match std::mem::replace(&mut self.state, State::Failed) {
            State::Dispatching(current) => current,
            unchanged @ (State::Planning(_) | State::Reporting { .. } | State::Recalling { .. } | State::Failed) => {
                self.state = unchanged;
                return Vec::new();
            }
        };
        self.failed_plans.push(current.work.clone());
        self.tried = tried(&directive.outcomes);
        if carry::is_rejected(&directive.outcomes) {
            self.denied
                .note(self.round, &current.task_criteria, &directive.task_verdicts);
        }
        self.kept = carry::sort(&directive, current.matched(self.round));
        add_new(&mut self.blocked.tools, &directive.blocked_tools);
        add_new(&mut self.blocked.targets, &directive.blocked_targets);
        let all_gone = desk.tool_names.iter().all(|name| self.blocked.tools.contains(name));
        if all_gone && !desk.tool_names.is_empty() {
            // What piles up over rounds must not leave R3 without any tool; the newest findings count.
            self.blocked.tools.clone_from(&directive.blocked_tools);
        }
        self.directive = Some(directive);
        vec![self.recall(desk, now)]
    }

    /// R7 gives up and wants words for what was achieved. Nothing more is dispatched.
    pub fn asked(&mut self, desk: &Desk, request: &PartialResultRequest) -> Vec<Effect> {
        if matches!(self.state, State::Reporting { .. }) {
            return Vec::new();
        }
        let call = self.calls.take();
        self.state = State::Reporting { call: Some(call) };
        vec![Effect::CallModel {
            task_id: self.spec.task_id.clone(),
            call,
            request: partial::request(&desk.partial_system, request),
        }]
    }

    fn recall(&mut self, desk: &Desk, now: Timestamp) -> Effect {
        self.queries = self.queries.saturating_add(1);
        self.state = State::Recalling {
            query: self.queries,
            until: now.plus(desk.config.limits.memory_wait),
        };
        Effect::Query(MemoryQuery {
            task_id: self.spec.task_id.clone(),
            query: self.queries,
            space: intent_space(&self.spec.intent),
            entity: ENTITY.to_owned(),
            intent: self.spec.intent.clone(),
            tools: desk.tool_names.clone(),
        })
    }

    fn begin(&mut self, desk: &Desk, now: Timestamp, memory: Calibration) -> Effect {
        let mut must_not = memory.must_not.clone();
        add_new(&mut must_not.tools, &self.blocked.tools);
        add_new(&mut must_not.targets, &self.blocked.targets);
        let draft = Draft {
            call: self.calls.take(),
            memory,
            must_not,
            regenerations: 0,
        };
        self.ask(desk, now, draft, None)
    }

    fn ask(&mut self, desk: &Desk, now: Timestamp, draft: Draft, rejected: Option<&Rejection>) -> Effect {
        let request = plan_request(
            &desk.plan_system,
            &Situation {
                standing: &desk.standing,
                now: &desk.config.zone.describe(now),
                tools: &desk.config.tools,
                memory: &draft.memory.lines,
                must_not: &draft.must_not,
                directive: self.directive.as_ref(),
                kept: &self.kept,
                denied: &self.denied,
                rejected,
                spec: &self.spec,
            },
        );
        let call = draft.call;
        self.state = State::Planning(Box::new(draft));
        Effect::CallModel {
            task_id: self.spec.task_id.clone(),
            call,
            request,
        }
    }

    fn planned(
        &mut self,
        desk: &Desk,
        now: Timestamp,
        mut draft: Draft,
        answer: Result<ModelReply, ModelError>,
    ) -> Vec<Effect> {
        let value = match answer.map(|reply| reply.content) {
            Ok(ModelContent::Structured { value }) => value,
            Ok(ModelContent::Text { text }) => Value::String(text),
            Ok(ModelContent::ToolCalls { .. }) => Value::Null,
            Err(error) => return vec![self.fail(error.cause(), &error.to_string())],
        };
        let limits = &desk.config.limits;
        let mut plan = parse(&value, limits.subtasks);
        let directive = self.directive.as_ref().map(|directive| directive.directive);
        let carrying = carry::carry(&mut plan, &self.kept, directive, &self.given);
        let carried: Vec<&Step> = carrying.work.iter().map(|work| &work.step).collect();
        let work = Work::of(&carried, &plan, &self.given);
        let ground = Ground {
            intent: &self.spec.intent,
            tools: &desk.tool_names,
            must_not: &draft.must_not,
            directive,
            failed_plans: &self.failed_plans,
            tried: &self.tried,
            work: &work,
            stood_for: carrying.stood_for,
            allowed: &self.allowed,
            check_fault: &desk.config.check_fault,
            subtasks: limits.subtasks,
        };
        let reasons = validate(&ground, &plan);
        if reasons.is_empty() {
            return self.dispatch(desk, now, &draft, plan, carrying, work);
        }
        if draft.regenerations >= limits.regenerations {
            let tries = draft.regenerations.saturating_add(1);
            return vec![self.fail(
                Cause::PlanningFailed,
                &format!("No valid plan after {tries} tries. {}", reasons.join("; ")),
            )];
        }
        draft.regenerations = draft.regenerations.saturating_add(1);
        draft.call = self.calls.take();
        let rejection = Rejection { reasons, plan: value };
        vec![self.ask(desk, now, draft, Some(&rejection))]
    }

    fn fail(&mut self, cause: Cause, reason: &str) -> Effect {
        self.state = State::Failed;
        Effect::Fail(PlanningFailed {
            task_id: self.spec.task_id.clone(),
            slug: self.spec.slug.clone(),
            intent: self.spec.intent.clone(),
            reason: head_tail(reason, REASON_CHARS),
            cause,
        })
    }
}

/// The tools that failing subtasks used, plain and qualified by program.
fn tried(outcomes: &[SubTaskOutcome]) -> Vec<String> {
    let failing = outcomes
        .iter()
        .filter(|outcome| outcome.status == OutcomeStatus::Failed);
    let mut names = Vec::new();
    for call in failing
        .flat_map(|outcome| &outcome.tool_calls)
        .filter(|call| !call.not_run)
    {
        let programs = call.programs.iter().map(|program| format!("{}:{program}", call.tool));
        add_new(&mut names, std::slice::from_ref(&call.tool));
        add_new(&mut names, &programs.collect::<Vec<_>>());
    }
    names
}

fn add_new(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !item.trim().is_empty() && !list.contains(item) {
            list.push(item.clone());
        }
    }
}
