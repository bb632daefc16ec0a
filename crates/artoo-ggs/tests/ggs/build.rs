//! Builders for outcomes, messages and a controller that is driven by hand. Must not decide anything.

use artoo_ggs::{Controller, Effect, Params};
use artoo_protocol::message::{
    Attempt, Criterion, CriterionVerdict, FailureClass, FinalResult, Megram, Message, Mode, OutcomeStatus,
    OutcomeSummary, PlanDirective, Recommendation, ReplanRequest, SubTaskOutcome, TaskSpec, ToolCall, UserInput,
    Verdict, VerdictSource,
};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{
    Actor as _, Envelope, EnvelopeId, Event, Millis, Role, Slug, SubTaskId, TaskId, Timestamp, Unit01,
};
use serde_json::{Value, json};

pub use FailureClass::{Environmental, Logical};

pub fn criterion(text: &str, mode: Mode) -> Criterion {
    Criterion {
        criterion: text.into(),
        mode,
        check: None,
    }
}

pub fn pass(text: &str) -> CriterionVerdict {
    CriterionVerdict {
        criterion: text.into(),
        mode: Mode::Verifiable,
        verdict: Verdict::Pass,
        failure_class: None,
        evidence: String::new(),
        source: VerdictSource::Check,
    }
}

pub fn fail(text: &str, class: FailureClass) -> CriterionVerdict {
    CriterionVerdict {
        verdict: Verdict::Fail,
        failure_class: Some(class),
        ..pass(text)
    }
}

/// A subtask whose criteria are those of its verdicts.
pub fn outcome(intent: &str, status: OutcomeStatus, verdicts: Vec<CriterionVerdict>) -> SubTaskOutcome {
    SubTaskOutcome {
        subtask_id: SubTaskId::new(intent),
        parent_task_id: TaskId::new("t"),
        intent: intent.into(),
        status,
        output: json!(format!("output of {intent}")),
        failure_reason: None,
        success_criteria: verdicts.iter().map(|v| criterion(&v.criterion, v.mode)).collect(),
        criteria_verdicts: verdicts,
        gap_trajectory: Vec::new(),
        tool_calls: Vec::new(),
        made: Vec::new(),
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

pub fn matched(intent: &str) -> SubTaskOutcome {
    outcome(intent, OutcomeStatus::Matched, vec![pass(&format!("{intent} holds"))])
}

pub fn failed(intent: &str, class: FailureClass) -> SubTaskOutcome {
    outcome(
        intent,
        OutcomeStatus::Failed,
        vec![fail(&format!("{intent} holds"), class)],
    )
}

/// `total` criteria of one subtask, the first `bad` of them failed.
pub fn partly(bad: usize, total: usize, class: FailureClass) -> SubTaskOutcome {
    let verdicts = (0..total)
        .map(|i| {
            let text = format!("criterion {i}");
            if i < bad { fail(&text, class) } else { pass(&text) }
        })
        .collect();
    outcome("partly", OutcomeStatus::Failed, verdicts)
}

pub fn attempts(outcome: SubTaskOutcome, unmet: &[&[&str]]) -> SubTaskOutcome {
    SubTaskOutcome {
        gap_trajectory: (1..)
            .zip(unmet)
            .map(|(attempt, unmet)| Attempt {
                attempt,
                score: Unit01::ZERO,
                unmet_criteria: unmet.iter().map(|&text| text.to_owned()).collect(),
                failure_class: None,
            })
            .collect(),
        ..outcome
    }
}

pub fn call(tool: &str, input: Value) -> ToolCall {
    ToolCall {
        tool: tool.into(),
        input,
        output: String::new(),
        truncated: false,
        lines: 0,
        exit: None,
        error: None,
        failure_class: None,
        started_at: Timestamp::default(),
        elapsed_ms: Millis(5),
        interrupted: false,
        effect: EffectClass::Fetch,
        programs: Vec::new(),
        touched: Vec::new(),
        not_run: false,
    }
}

pub fn shell(command: &str, programs: &[&str], exit: i32) -> ToolCall {
    ToolCall {
        exit: Some(exit),
        programs: programs.iter().map(|&p| p.to_owned()).collect(),
        ..call("shell", json!({ "command": command }))
    }
}

pub fn broken(tool: &str, path: &str) -> ToolCall {
    ToolCall {
        error: Some("no such file".into()),
        ..call(tool, json!({ "path": path }))
    }
}

pub fn with_calls(outcome: SubTaskOutcome, tool_calls: Vec<ToolCall>) -> SubTaskOutcome {
    SubTaskOutcome { tool_calls, ..outcome }
}

pub fn replan(task: &TaskId, elapsed_ms: u64, outcomes: Vec<SubTaskOutcome>) -> ReplanRequest {
    ReplanRequest {
        task_id: task.clone(),
        slug: Slug::repair("find_it"),
        intent: "Find the largest video files".into(),
        gap_summary: "something is missing".into(),
        failed_subtasks: outcomes
            .iter()
            .filter(|o| o.status == OutcomeStatus::Failed)
            .map(|o| o.subtask_id.clone())
            .collect(),
        correction_count: 0,
        elapsed_ms: Millis(elapsed_ms),
        outcomes,
        task_verdicts: Vec::new(),
        merged_output: json!("what matched"),
        recommendation: Recommendation::Replan,
    }
}

pub fn summary(task: &TaskId, outcomes: Vec<SubTaskOutcome>) -> OutcomeSummary {
    OutcomeSummary {
        task_id: task.clone(),
        slug: Slug::repair("find_it"),
        intent: "Find the largest video files".into(),
        summary: "a.mkv is the largest".into(),
        merged_output: json!("a.mkv"),
        elapsed_ms: Millis(1_000),
        outcomes,
        task_verdicts: Vec::new(),
    }
}

pub fn task(n: u32) -> TaskId {
    TaskId::new(format!("find_it_{n:08x}"))
}

pub fn provisional(n: u32) -> TaskId {
    TaskId::new(format!("input_{n:08x}"))
}

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + ms)
}

/// A controller under test.
pub struct Bench {
    pub controller: Controller,
    pub now: i64,
}

impl Bench {
    pub fn new(params: Params) -> Self {
        Self {
            controller: Controller::new(params),
            now: 0,
        }
    }

    /// One with an open task number 1.
    pub fn open() -> (Self, TaskId) {
        let mut bench = Self::new(Params::default());
        let id = bench.begin(1);
        (bench, id)
    }

    pub fn begin(&mut self, n: u32) -> TaskId {
        let input = UserInput {
            task_id: provisional(n),
            text: "find the largest video".into(),
            history: Vec::new(),
            person_present: true,
            scope: Vec::new(),
        };
        assert!(self.say(input).is_empty());
        let spec = TaskSpec {
            task_id: task(n),
            slug: Slug::repair("find_it"),
            intent: "Find the largest video files".into(),
            constraints: artoo_protocol::message::Constraints::default(),
            raw_input: "find the largest video".into(),
            scope: Vec::new(),
        };
        assert!(self.say(spec).is_empty());
        task(n)
    }

    pub fn say(&mut self, message: impl Into<Message>) -> Vec<Effect> {
        let envelope = Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: None,
            timestamp: at(self.now),
            from: Role::R4b,
            to: Role::R7,
            payload: message.into(),
        };
        self.controller.step(at(self.now), Event::from(envelope))
    }

    pub fn wake_at(&mut self, ms: i64) -> Vec<Effect> {
        self.now = ms;
        self.controller.step(at(ms), Event::Wake)
    }
}

pub fn directive(effects: &[Effect]) -> &PlanDirective {
    let found: Vec<_> = effects
        .iter()
        .filter_map(|e| match e {
            Effect::Direct(d) => Some(d.as_ref()),
            Effect::Finish(_) | Effect::Remember(_) | Effect::AskPartial(_) => None,
        })
        .collect();
    assert_eq!(found.len(), 1, "{effects:?}");
    found[0]
}

pub fn finals(effects: &[Effect]) -> Vec<&FinalResult> {
    effects
        .iter()
        .filter_map(|e| match e {
            Effect::Finish(f) => Some(f.as_ref()),
            Effect::Direct(_) | Effect::Remember(_) | Effect::AskPartial(_) => None,
        })
        .collect()
}

/// The one FinalResult, which must be the last effect.
pub fn end(effects: &[Effect]) -> &FinalResult {
    assert_eq!(finals(effects).len(), 1, "{effects:?}");
    assert!(matches!(effects.last(), Some(Effect::Finish(_))), "{effects:?}");
    finals(effects)[0]
}

pub fn megrams(effects: &[Effect]) -> Vec<&Megram> {
    effects
        .iter()
        .filter_map(|e| match e {
            Effect::Remember(m) => Some(m),
            Effect::Direct(_) | Effect::Finish(_) | Effect::AskPartial(_) => None,
        })
        .collect()
}

pub fn asks(effects: &[Effect]) -> bool {
    effects.iter().any(|e| matches!(e, Effect::AskPartial(_)))
}
