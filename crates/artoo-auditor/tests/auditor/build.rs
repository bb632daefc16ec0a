//! Envelopes for the tests. Must not decide anything.

use std::sync::Arc;

use artoo_auditor::Observed;
use artoo_protocol::message::{
    AuditQuery, Cause, CorrectionSignal, Directive, Ending, ExecutionResult, ExecutionStatus, FailureClass, FailureMix,
    FinalResult, Loss, Message, MustNot, OutcomeStatus, OutcomeSummary, PlanDirective, PreviousDirective,
    Recommendation, ReplanRequest, SubTask, SubTaskOutcome, Urgency, UserInput,
};
use artoo_protocol::{Envelope, EnvelopeId, Finite, Millis, Role, Slug, SubTaskId, TaskId, Timestamp, Unit01, route};

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + ms)
}

pub fn task(n: u32) -> TaskId {
    TaskId::new(format!("count_{n:08x}"))
}

/// Numbers messages like a bus and sends them by their route.
#[derive(Default)]
pub struct Wire {
    pub seq: u64,
}

impl Wire {
    pub fn send(&mut self, from: Role, n: u32, message: impl Into<Message>) -> Observed {
        let payload = message.into();
        let to = route(payload.kind(), from).map_or(Role::R1, |route| route.to);
        self.send_to(from, to, Some(task(n)), payload)
    }

    pub fn send_to(&mut self, from: Role, to: Role, task_id: Option<TaskId>, payload: Message) -> Observed {
        self.seq += 1;
        Observed::Envelope(Arc::new(Envelope {
            id: EnvelopeId::new(format!("e{}", self.seq)),
            seq: self.seq,
            task_id,
            timestamp: at(0),
            from,
            to,
            payload,
        }))
    }

    pub fn query(&mut self) -> Observed {
        self.send_to(Role::User, Role::R6, None, AuditQuery::default().into())
    }
}

pub fn input(n: u32, text: &str) -> UserInput {
    UserInput {
        task_id: TaskId::new(format!("input_{n:08x}")),
        text: text.into(),
        history: vec![],
        person_present: true,
        scope: vec![],
    }
}

pub fn subtask(n: u32, id: &str) -> SubTask {
    SubTask {
        subtask_id: SubTaskId::new(id),
        parent_task_id: task(n),
        intent: "count".into(),
        context: String::new(),
        success_criteria: vec![],
        sequence: 1,
        tools: vec![],
        deadline: None,
        must_not: MustNot::default(),
        caution: None,
        scope: vec![],
    }
}

pub fn attempt(n: u32, id: &str, status: ExecutionStatus) -> ExecutionResult {
    ExecutionResult {
        subtask_id: SubTaskId::new(id),
        parent_task_id: task(n),
        attempt: 1,
        status,
        output: String::new(),
        reason: None,
        infrastructure: false,
        infeasible: false,
        refused: false,
        tool_calls: vec![],
    }
}

pub fn correction(n: u32, id: &str, failure_class: FailureClass) -> CorrectionSignal {
    CorrectionSignal {
        subtask_id: SubTaskId::new(id),
        parent_task_id: task(n),
        attempt_number: 1,
        failed_criterion: "c".into(),
        failure_class,
        what_was_wrong: String::new(),
        what_to_do: String::new(),
        avoid_calls: vec![],
    }
}

pub fn outcome(n: u32, id: &str, infrastructure: bool) -> SubTaskOutcome {
    SubTaskOutcome {
        subtask_id: SubTaskId::new(id),
        parent_task_id: task(n),
        intent: "count".into(),
        status: OutcomeStatus::Failed,
        output: serde_json::Value::Null,
        failure_reason: None,
        success_criteria: vec![],
        criteria_verdicts: vec![],
        gap_trajectory: vec![],
        tool_calls: vec![],
        made: vec![],
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure,
    }
}

fn loss(d: f64) -> Loss {
    Loss {
        d: Unit01::new(d).unwrap(),
        ..Loss::default()
    }
}

pub fn directive(n: u32, directive: Directive, d: f64) -> PlanDirective {
    PlanDirective {
        task_id: task(n),
        loss: loss(d),
        prev_directive: PreviousDirective::Init,
        directive,
        blocked_tools: vec![],
        blocked_targets: vec![],
        failed_criterion: "c".into(),
        failure_class: FailureMix::Logical,
        budget_pressure: Unit01::ZERO,
        grad_l: Finite::ZERO,
        urgency: Urgency::Neutral,
        rationale: String::new(),
        outcomes: vec![],
        gap_summary: String::new(),
        task_verdicts: vec![],
    }
}

pub fn replan(n: u32) -> ReplanRequest {
    ReplanRequest {
        task_id: task(n),
        slug: Slug::repair("count"),
        intent: String::new(),
        gap_summary: String::new(),
        failed_subtasks: vec![],
        correction_count: 0,
        elapsed_ms: Millis(0),
        outcomes: vec![],
        task_verdicts: vec![],
        merged_output: serde_json::Value::Null,
        recommendation: Recommendation::Replan,
    }
}

pub fn accepted(n: u32) -> OutcomeSummary {
    OutcomeSummary {
        task_id: task(n),
        slug: Slug::repair("count"),
        intent: String::new(),
        summary: String::new(),
        merged_output: serde_json::Value::Null,
        elapsed_ms: Millis(0),
        outcomes: vec![],
        task_verdicts: vec![],
    }
}

pub fn result(n: u32, d: f64) -> FinalResult {
    FinalResult {
        task_id: task(n),
        slug: Slug::repair("count"),
        intent: String::new(),
        summary: "done".into(),
        output: serde_json::Value::Null,
        loss: loss(d),
        grad_l: Finite::ZERO,
        replans: 0,
        prev_directive: PreviousDirective::Init,
        directive: Ending::Accept,
        cause: Cause::Met,
        unmet: vec![],
        unverified: vec![],
        honesty: Box::default(),
    }
}
