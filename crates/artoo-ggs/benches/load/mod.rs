//! The load of the bench and of the memory example: a heavy gap, and open tasks. Must not measure anything.

use artoo_ggs::Controller;
use artoo_protocol::message::{
    Attempt, Criterion, CriterionVerdict, FailureClass, Message, Mode, OutcomeStatus, Recommendation, ReplanRequest,
    SubTaskOutcome, UserInput, Verdict, VerdictSource,
};
use artoo_protocol::{
    Actor as _, Envelope, EnvelopeId, Event, Millis, Role, Slug, SubTaskId, TaskId, Timestamp, Unit01,
};

/// A message as the bus brings it.
pub fn event(message: impl Into<Message>) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: None,
        timestamp: Timestamp::default(),
        from: Role::R4b,
        to: Role::R7,
        payload: message.into(),
    })
}

/// The text of criterion `i` of subtask `n`.
pub type Words = fn(n: usize, i: usize) -> String;

/// Criteria that are much alike, as those of one plan are.
pub fn alike(n: usize, i: usize) -> String {
    format!("file {n}/{i} holds the number of its lines")
}

/// Criteria without a word in common but by chance: six syllables each, drawn by a fixed rule, as long as the others.
pub fn unlike(n: usize, i: usize) -> String {
    let mut state = (n as u64 * 1_000 + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..6)
        .map(|_| (0..6).map(|_| letter()).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

fn outcome(n: usize, criteria: usize, words: Words) -> SubTaskOutcome {
    let texts: Vec<String> = (0..criteria).map(|i| words(n, i)).collect();
    let verdict = |(i, text): (usize, &String)| CriterionVerdict {
        criterion: text.clone(),
        mode: Mode::Plausible,
        verdict: if i % 2 == 0 { Verdict::Fail } else { Verdict::Pass },
        failure_class: (i % 2 == 0).then_some(FailureClass::Logical),
        evidence: "the file holds a sentence".into(),
        source: VerdictSource::Model,
    };
    SubTaskOutcome {
        subtask_id: SubTaskId::new(n.to_string()),
        parent_task_id: TaskId::new("t_00000001"),
        intent: format!("count the lines of file {n}"),
        status: OutcomeStatus::Failed,
        output: serde_json::Value::Null,
        failure_reason: None,
        success_criteria: texts
            .iter()
            .map(|text| Criterion {
                criterion: text.clone(),
                mode: Mode::Plausible,
                check: None,
            })
            .collect(),
        criteria_verdicts: texts.iter().enumerate().map(verdict).collect(),
        gap_trajectory: (1..=3)
            .map(|attempt| Attempt {
                attempt,
                score: Unit01::ZERO,
                unmet_criteria: texts.clone(),
                failure_class: Some(FailureClass::Logical),
            })
            .collect(),
        tool_calls: Vec::new(),
        made: Vec::new(),
        carried_from: None,
        uncertain: None,
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

/// A gap of so many subtasks with so many criteria and 3 attempts each; half of the criteria fail.
pub fn gap(task_id: &TaskId, subtasks: usize, criteria: usize, words: Words) -> ReplanRequest {
    ReplanRequest {
        task_id: task_id.clone(),
        slug: Slug::repair("count"),
        intent: "count the lines of eight files".into(),
        gap_summary: "eight files hold sentences".into(),
        failed_subtasks: (0..subtasks).map(|n| SubTaskId::new(n.to_string())).collect(),
        correction_count: 16,
        elapsed_ms: Millis(10_000),
        outcomes: (0..subtasks).map(|n| outcome(n, criteria, words)).collect(),
        task_verdicts: Vec::new(),
        merged_output: serde_json::Value::Null,
        recommendation: Recommendation::Replan,
    }
}

/// Opens task number `n`.
pub fn open(controller: &mut Controller, n: u32) -> TaskId {
    let task_id = TaskId::new(format!("count_{n:08x}"));
    let input = UserInput {
        task_id: task_id.clone(),
        text: "count the lines of eight files".into(),
        history: Vec::new(),
        person_present: false,
        scope: Vec::new(),
    };
    assert!(controller.step(Timestamp::default(), event(input)).is_empty());
    task_id
}
