//! The life of one task at R2, from its specification to the last group of its last plan (design §6, §13).
//!
//! Owns the state of one task. Knows no other task and no message that is not about it.

use artoo_protocol::ids::{CallId, SubTaskId};
use artoo_protocol::message::{
    Cause, DispatchManifest, MemoryQuery, MemoryReply, MustNot, PartialResultRequest, PlanDirective, PlannedSubTask,
    PlanningFailed, SubTask, SubTaskOutcome, TaskSpec,
};
use artoo_protocol::model::{ModelContent, ModelError, ModelReply};
use artoo_protocol::prompt::PromptError;
use artoo_protocol::text::head_tail;
use artoo_protocol::units::Timestamp;
use serde_json::Value;

use crate::Config;
use crate::actor::Effect;
use crate::calibration::{Calibration, calibrate};
use crate::dispatch::Dispatch;
use crate::parse::{Plan, Step, parse};
use crate::partial;
use crate::prompt::{Rejection, Situation, plan_request};
use crate::validate::{Ground, validate};
use crate::words::intent_space;

/// Where the entries of this machine live in memory.
const ENTITY: &str = "env:local";
/// Characters of a failure's reason.
const REASON_CHARS: usize = 1_000;

/// What all tasks share: the configuration and the texts made from it once.
#[derive(Debug)]
pub struct Desk {
    config: Config,
    tool_names: Vec<String>,
    plan_system: String,
    partial_system: String,
}

impl Desk {
    /// # Errors
    /// [`PromptError`] when a configured prompt has other placeholders than `{{laws}}`.
    pub fn new(config: Config) -> Result<Self, PromptError> {
        Ok(Self {
            tool_names: config.tools.iter().map(|tool| tool.name.clone()).collect(),
            plan_system: config.prompts.plan_text()?,
            partial_system: config.prompts.partial_result_text()?,
            config,
        })
    }
}

/// Where a task stands.
#[derive(Debug)]
enum State {
    /// Memory was asked.
    Recalling { query: u32, until: Timestamp },
    /// The model makes a plan.
    Planning(Draft),
    /// A plan is carried out, or has been; R4b judges it.
    Dispatching { dispatch: Dispatch, fingerprint: String },
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
    failed_plans: Vec<String>,
    directive: Option<PlanDirective>,
    state: State,
}

impl Task {
    /// A new task, which asks memory first.
    pub fn open(desk: &Desk, now: Timestamp, spec: TaskSpec) -> (Self, Effect) {
        let mut task = Self {
            spec,
            started_at: now,
            calls: CallId(0),
            queries: 0,
            minted: 0,
            round: 0,
            blocked: MustNot::default(),
            failed_plans: Vec::new(),
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
            State::Planning(_) | State::Dispatching { .. } | State::Reporting { .. } | State::Failed => None,
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
                let draft = draft.clone();
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
            | State::Dispatching { .. }
            | State::Failed => Vec::new(),
        }
    }

    /// A subtask ended.
    pub fn settled(&mut self, outcome: &SubTaskOutcome) -> Vec<Effect> {
        let State::Dispatching { dispatch, .. } = &mut self.state else {
            return Vec::new();
        };
        dispatch.settle(outcome).into_iter().map(Effect::Dispatch).collect()
    }

    /// R7 demands another plan: the present one counts as failed, and memory is asked anew.
    pub fn directed(&mut self, desk: &Desk, now: Timestamp, directive: PlanDirective) -> Vec<Effect> {
        let State::Dispatching { fingerprint, .. } = &self.state else {
            return Vec::new();
        };
        self.failed_plans.push(fingerprint.clone());
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
                now: &desk.config.zone.describe(now),
                tools: &desk.config.tools,
                memory: &draft.memory.lines,
                must_not: &draft.must_not,
                directive: self.directive.as_ref(),
                rejected,
                spec: &self.spec,
            },
        );
        let call = draft.call;
        self.state = State::Planning(draft);
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
            Err(error) => {
                let cause = if error.is_no_model() {
                    Cause::NoModel
                } else {
                    Cause::PlanningFailed
                };
                return vec![self.fail(cause, &error.to_string())];
            }
        };
        let limits = &desk.config.limits;
        let plan = parse(&value, limits.subtasks);
        let ground = Ground {
            intent: &self.spec.intent,
            tools: &desk.tool_names,
            must_not: &draft.must_not,
            failed_plans: &self.failed_plans,
            subtasks: limits.subtasks,
        };
        let reasons = validate(&ground, &plan);
        if reasons.is_empty() {
            return self.dispatch(desk, now, &draft, plan);
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

    fn dispatch(&mut self, desk: &Desk, now: Timestamp, draft: &Draft, plan: Plan) -> Vec<Effect> {
        self.round = self.round.saturating_add(1);
        let fingerprint = plan.fingerprint();
        let subtasks: Vec<SubTask> = plan
            .steps
            .into_iter()
            .map(|step| self.subtask(now, step, &draft.must_not))
            .collect();
        let manifest = DispatchManifest {
            task_id: self.spec.task_id.clone(),
            slug: self.spec.slug.clone(),
            intent: self.spec.intent.clone(),
            round: self.round,
            subtask_ids: subtasks.iter().map(|subtask| subtask.subtask_id.clone()).collect(),
            subtasks: subtasks.iter().map(planned_subtask).collect(),
            carried: Vec::new(),
            task_criteria: plan.task_criteria,
            started_at: self.started_at,
            dispatched_at: now,
            rules_used: draft.memory.rules_used.clone(),
        };
        let (dispatch, first) = Dispatch::start(subtasks, desk.config.limits.parallel);
        self.state = State::Dispatching { dispatch, fingerprint };
        let mut effects = vec![Effect::Announce(manifest)];
        effects.extend(first.into_iter().map(Effect::Dispatch));
        effects
    }

    fn subtask(&mut self, now: Timestamp, step: Step, must_not: &MustNot) -> SubTask {
        let subtask_id = SubTaskId::derive(now, &self.spec.task_id, self.minted);
        self.minted = self.minted.saturating_add(1);
        let mut scope = self.spec.scope.clone();
        scope.extend(
            self.spec
                .constraints
                .scope
                .iter()
                .filter(|scope| is_path(scope))
                .cloned(),
        );
        SubTask {
            subtask_id,
            parent_task_id: self.spec.task_id.clone(),
            intent: step.intent,
            context: step.context,
            success_criteria: step.criteria,
            sequence: step.sequence,
            tools: step.tools,
            // A model may write any date; one that has passed is no deadline.
            deadline: step
                .deadline
                .filter(|when| *when > now)
                .or(self.spec.constraints.deadline),
            must_not: must_not.clone(),
            caution: None,
            scope,
        }
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

fn planned_subtask(subtask: &SubTask) -> PlannedSubTask {
    PlannedSubTask {
        subtask_id: subtask.subtask_id.clone(),
        sequence: subtask.sequence,
        intent: subtask.intent.clone(),
        success_criteria: subtask.success_criteria.clone(),
    }
}

/// Whether a stated scope is a place on this machine, not a site or an application.
fn is_path(scope: &str) -> bool {
    !scope.contains("://") && (scope.starts_with(['/', '~', '.']) || scope.contains('/'))
}

fn add_new(list: &mut Vec<String>, more: &[String]) {
    for item in more {
        if !item.trim().is_empty() && !list.contains(item) {
            list.push(item.clone());
        }
    }
}
