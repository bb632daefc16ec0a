//! What a decision costs. Run with `cargo bench -p artoo-ggs`.
//!
//! Owns the load: one point of the table, one gap of 8 outcomes with 10 criteria and 3 attempts each, and 100,000 open tasks.
#![allow(missing_docs, clippy::unwrap_used, reason = "bench code")]

use std::hint::black_box;

use artoo_ggs::{Controller, Params, decide, quantise};
use artoo_protocol::message::{
    Attempt, Criterion, CriterionVerdict, FailureClass, Loss, Message, Mode, OutcomeStatus, Recommendation,
    ReplanRequest, SubTaskOutcome, UserInput, Verdict, VerdictSource,
};
use artoo_protocol::{
    Actor as _, Envelope, EnvelopeId, Event, Finite, Millis, Role, Slug, SubTaskId, TaskId, Timestamp, Unit01,
};
use criterion::{BatchSize, Criterion as Bencher, criterion_group, criterion_main};

fn event(message: impl Into<Message>) -> Event {
    Event::Message {
        envelope: Envelope {
            id: EnvelopeId::new("e"),
            seq: 1,
            task_id: None,
            timestamp: Timestamp::default(),
            from: Role::R4b,
            to: Role::R7,
            payload: message.into(),
        },
    }
}

fn outcome(n: usize) -> SubTaskOutcome {
    let texts: Vec<String> = (0..10)
        .map(|i| format!("file {n}/{i} holds the number of its lines"))
        .collect();
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
        infeasible: false,
        refused: false,
        infrastructure: false,
    }
}

fn gap(task_id: &TaskId) -> ReplanRequest {
    ReplanRequest {
        task_id: task_id.clone(),
        slug: Slug::repair("count"),
        intent: "count the lines of eight files".into(),
        gap_summary: "eight files hold sentences".into(),
        failed_subtasks: (0..8).map(|n| SubTaskId::new(n.to_string())).collect(),
        correction_count: 16,
        elapsed_ms: Millis(10_000),
        outcomes: (0..8).map(outcome).collect(),
        task_verdicts: Vec::new(),
        merged_output: serde_json::Value::Null,
        recommendation: Recommendation::Replan,
    }
}

fn open(controller: &mut Controller, n: u32) -> TaskId {
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

fn bench(c: &mut Bencher) {
    let params = Params::default();
    let loss = Loss {
        d: Unit01::clamped(0.5),
        p: Unit01::clamped(0.8),
        omega: Unit01::clamped(0.2),
        l: Finite::ZERO,
    };
    c.bench_function("decide", |b| {
        b.iter(|| decide(quantise(black_box(&params), black_box(&loss), black_box(Finite::ZERO))));
    });

    let mut controller = Controller::new(params);
    let task_id = open(&mut controller, 1);
    let request = gap(&task_id);
    c.bench_function("step: 8 outcomes, 10 criteria, 3 attempts", |b| {
        b.iter_batched(
            || (controller.clone(), event(request.clone())),
            |(mut controller, event)| (controller.step(Timestamp::default(), event), controller),
            BatchSize::SmallInput,
        );
    });

    let mut crowd = Controller::new(params);
    for n in 0..100_000 {
        let _ = open(&mut crowd, n);
    }
    c.bench_function("next deadline among 100,000 open tasks", |b| {
        b.iter(|| black_box(&crowd).deadline());
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
