//! What R4a itself costs: `cargo bench -p artoo-validators --bench judging`.
//!
//! One attempt at a subtask with 20 criteria and 16 calls, each with 8 kB of output (what a call keeps at most in the ordinary
//! case is less). Measured is R4a's own time from the attempt to its last word: rules, questions, verdicts. Running a check is
//! the shell's work and is measured by itself, for checks on calls, which are pure.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "bench code")]

use std::fmt::Write as _;
use std::hint::black_box;

use artoo_protocol::message::{Criterion, ExecutionResult, ExecutionStatus, Message, SubTask, ToolCall};
use artoo_protocol::model::{ModelContent, ModelReply, Usage};
use artoo_protocol::tool::{CheckReport, CheckRequest};
use artoo_protocol::{Actor as _, Answer, Envelope, EnvelopeId, Event, Millis, Role, SubTaskId, TaskId, Timestamp};
use artoo_validators::AgentValidator;
use artoo_validators::agent::Effect;
use artoo_validators::checks::calls;
use criterion::{BatchSize, Criterion as Bencher, criterion_group, criterion_main};
use serde_json::json;

const CRITERIA: usize = 20;
const CALLS: usize = 16;
const OUTPUT: usize = 8_000;

fn task() -> TaskId {
    TaskId::new("bench_0123abcd")
}

fn told(message: impl Into<Message>) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: Some(task()),
        timestamp: Timestamp::from_millis(0),
        from: Role::R3,
        to: Role::R4a,
        payload: message.into(),
    })
}

/// Every criterion with a check on the output, or none with one.
fn subtask(checked: bool) -> SubTask {
    let criteria: Vec<Criterion> = (0..CRITERIA)
        .map(|n| {
            let check = checked.then(|| json!({"kind": "output_matches", "pattern": format!("^row {n}: \\d+ ok$")}));
            let criterion = json!({"criterion": format!("row {n} is ok"), "mode": "verifiable", "check": check});
            serde_json::from_value(criterion).unwrap()
        })
        .collect();
    let subtask = json!({"subtask_id": "s1", "parent_task_id": task(), "intent": "make every row ok",
        "success_criteria": criteria, "sequence": 1});
    serde_json::from_value(subtask).unwrap()
}

fn result() -> ExecutionResult {
    let calls = (0..CALLS).map(|n| {
        let mut output = String::new();
        for row in 0..CRITERIA {
            writeln!(output, "row {row}: {n} ok").unwrap();
        }
        while output.len() < OUTPUT {
            output.push_str("some other line of the same program, neither here nor there\n");
        }
        let call = json!({"tool": "shell", "input": {"command": format!("./row --number {n}")}, "output": output,
            "lines": output.lines().count(), "exit": 0, "started_at": "2026-01-01T00:00:00.000Z", "elapsed_ms": 1,
            "interrupted": false, "effect": "external", "programs": ["./row"]});
        serde_json::from_value::<ToolCall>(call).unwrap()
    });
    ExecutionResult {
        subtask_id: SubTaskId::new("s1"),
        parent_task_id: task(),
        attempt: 1,
        status: ExecutionStatus::Completed,
        output: "Every row is ok.".to_owned(),
        reason: None,
        infrastructure: false,
        infeasible: false,
        refused: false,
        tool_calls: calls.collect(),
    }
}

fn passing() -> Answer {
    Answer::Checked(CheckReport {
        passed: true,
        evidence: "call 1 (shell), line 1 of its output (8000 bytes): row 1: 0 ok".to_owned(),
        failure_class: None,
        faulty: false,
    })
}

fn verdicts() -> Answer {
    let verdicts: Vec<_> = (0..CRITERIA)
        .map(|n| json!({"criterion": format!("row {n} is ok"), "verdict": "pass", "evidence": "call 1 shows it"}))
        .collect();
    Answer::Model(Ok(ModelReply {
        content: ModelContent::Structured {
            value: json!({"verdicts": verdicts, "what_was_wrong": null, "what_to_do": null}),
        },
        model: "m".to_owned(),
        usage: Usage::default(),
        elapsed_ms: Millis(1),
    }))
}

/// R4a from the attempt to the outcome; the answers come at once. Gives how many effects there were.
fn judge(mut validator: AgentValidator, attempt: Event, check: &Answer, model: &Answer) -> usize {
    let now = Timestamp::from_millis(1);
    let mut waiting = validator.step(now, attempt);
    let mut seen = 0;
    while let Some(effect) = waiting.pop() {
        seen += 1;
        let (call, answer) = match effect {
            Effect::Check { call, .. } => (call, check.clone()),
            Effect::Judge { call, .. } => (call, model.clone()),
            Effect::Conclude(outcome) => {
                assert!(
                    outcome.criteria_verdicts.len() == CRITERIA,
                    "all criteria have a verdict"
                );
                continue;
            }
            Effect::Correct(signal) => panic!("every criterion holds: {signal:?}"),
        };
        let task_id = task();
        waiting.extend(validator.step(now, Event::Answer { task_id, call, answer }));
    }
    seen
}

fn opened(checked: bool) -> (AgentValidator, Event) {
    let mut validator = AgentValidator::default();
    let _ = validator.step(Timestamp::from_millis(0), told(subtask(checked)));
    (validator, told(result()))
}

fn bench(c: &mut Bencher) {
    let (check, model) = (passing(), verdicts());
    for (name, checked) in [
        ("R4a: 20 criteria with checks, 16 calls", true),
        ("R4a: 20 criteria for a model, 16 calls", false),
    ] {
        c.bench_function(name, |b| {
            b.iter_batched(
                || opened(checked),
                |(validator, attempt)| judge(validator, attempt, &check, &model),
                BatchSize::SmallInput,
            );
        });
    }
    let request = CheckRequest {
        check: serde_json::from_value(json!({"kind": "output_matches", "pattern": "^row 19: 15 ok$"})).unwrap(),
        tool_calls: result().tool_calls,
        made: Vec::new(),
        given: String::new(),
        written: Vec::new(),
    };
    c.bench_function("one check on output: the last of 16 calls", |b| {
        b.iter(|| calls::decide(&request.check, black_box((&request).into())));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
