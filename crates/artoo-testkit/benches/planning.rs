//! What planning and dispatch cost beside the models. Run with `cargo bench -p artoo-testkit --bench planning`.
//!
//! Measures artoo's own part of a plan of 50 subtasks with 100 lines of memory — calibration, prompt, reading, validation,
//! dispatch, also after a directive — and 1,000 subtasks sent by R2 and gathered by R4b.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "bench code"
)]

use std::hint::black_box;

use artoo_planner::{Config, Effect, Limits, Planner};
use artoo_protocol::actor::{Actor, Answer, Event};
use artoo_protocol::message::{
    DispatchManifest, MemoryReply, Message, OutcomeStatus, PlanDirective, SubTask, SubTaskOutcome, TaskSpec,
};
use artoo_protocol::model::{ModelContent, ModelReply, Usage};
use artoo_protocol::{CallId, Envelope, EnvelopeId, Millis, Role, TaskId, Timestamp};
use artoo_testkit::machine;
use artoo_validators::{MetaValidator, meta};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

const TASK: &str = "sort_my_photos_0a1b2c3d";

fn said(from: Role, payload: impl Into<Message>) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("e"),
        seq: 1,
        task_id: None,
        timestamp: Timestamp::default(),
        from,
        to: Role::R2,
        payload: payload.into(),
    })
}

fn planner() -> Planner {
    Planner::new(Config {
        tools: machine::tools(),
        limits: Limits {
            parallel: 8,
            ..Limits::default()
        },
        ..Config::default()
    })
    .unwrap()
}

fn spec() -> TaskSpec {
    serde_json::from_value(
        json!({"task_id": TASK, "slug": "sort_my_photos", "raw_input": "sort my photos by year and place",
        "intent": "Sort the photos in ~/photos by year and place, and list what could not be placed"}),
    )
    .unwrap()
}

fn memory(lines: usize) -> MemoryReply {
    let each = |make: &dyn Fn(usize) -> Value| (0..lines / 4).map(make).collect::<Vec<_>>();
    let lesson = |level: &'static str, n: usize| {
        json!({"id": format!("{level}{n}"), "level": level, "space": format!("tool:{}", ["shell", "read_file"][n % 2]),
            "entity": format!("path:/data/{n}"), "created_at": "2026-02-27T09:30:00Z", "state": "accept", "sigma": 0.5,
            "content": format!("exiftool read the year of folder {n}; names alone had misled before.")})
    };
    serde_json::from_value(json!({"task_id": TASK, "query": 1,
        "sops": each(&|n| json!({"id": format!("c{n}"), "space": "tool:shell", "entity": "env:local", "sigma": 0.9,
            "content": format!("Use a dry run before moving folder {n}; show what would happen.")})),
        "knowledge": each(&|n| lesson("K", n)),
        "recent": each(&|n| lesson("M", n)),
        "potentials": each(&|n| json!({"space": "tool:shell", "entity": format!("path:/data/{n}"),
            "potentials": {"attention": 1.0, "decision": 0.5, "action": action(n)}}))}))
    .unwrap()
}

fn action(n: usize) -> &'static str {
    ["exploit", "avoid", "caution"][n % 3]
}

fn plan(steps: usize, word: &str) -> Value {
    let steps: Vec<Value> = (0..steps)
        .map(|n| {
            json!({"sequence": 1 + n / 10, "intent": format!("Sort the photos of folder {n} {word}"), "tools": ["shell"],
                "context": format!("Folder {n} is /photos/{n}; keep names, write a list of what has no date into rest_{n}.txt."),
                "success_criteria": [
                    {"criterion": format!("rest_{n}.txt exists"), "mode": "verifiable",
                        "check": {"kind": "file_exists", "path": format!("rest_{n}.txt")}},
                    {"criterion": format!("folder {n} holds folders of years only"), "mode": "verifiable",
                        "check": {"kind": "count", "of": "files", "path": format!("/photos/{n}"), "pattern": "^\\d{4}$", "op": "ge", "value": 1}}]})
        })
        .collect();
    json!({"task_criteria": [], "subtasks": steps})
}

fn answer(call: CallId, value: Value) -> Event {
    Event::Answer {
        task_id: TaskId::new(TASK),
        call,
        answer: Answer::Model(Ok(ModelReply {
            content: ModelContent::Structured { value },
            model: "m".into(),
            usage: Usage::default(),
            elapsed_ms: Millis(1),
        })),
    }
}

fn call_of(effects: &[Effect]) -> CallId {
    match effects {
        [Effect::CallModel { call, .. }] => *call,
        other => panic!("{other:?}"),
    }
}

/// From the task to the first subtasks: every step of R2's own.
fn planned(value: Value, reply: MemoryReply) -> (Planner, Vec<Effect>) {
    let mut r2 = planner();
    let now = Timestamp::default();
    let _ = r2.step(now, said(Role::R1, spec()));
    let call = call_of(&r2.step(now, said(Role::R5, reply)));
    let sent = r2.step(now, answer(call, value));
    (r2, sent)
}

fn matched(subtask: &SubTask) -> SubTaskOutcome {
    serde_json::from_value(
        json!({"subtask_id": subtask.subtask_id, "parent_task_id": TASK, "intent": subtask.intent,
        "status": "matched", "output": "12 photos in 3 years"}),
    )
    .unwrap()
}

fn parts(effects: Vec<Effect>) -> (Option<DispatchManifest>, Vec<SubTask>) {
    let (mut manifest, mut subtasks) = (None, Vec::new());
    for effect in effects {
        match effect {
            Effect::Announce(announced) => manifest = Some(announced),
            Effect::Dispatch(subtask) => subtasks.push(subtask),
            _ => {}
        }
    }
    (manifest, subtasks)
}

/// R2 sends and R4b gathers until the task is done.
fn gathered(value: Value) {
    let (mut r2, effects) = planned(value, MemoryReply::empty(TaskId::new(TASK), 1));
    let mut r4b = MetaValidator::new(meta::Config::default(), meta::Prompts::default());
    let now = Timestamp::default();
    let (manifest, mut open) = parts(effects);
    let _ = r4b.step(now, said(Role::R2, manifest.unwrap()));
    let mut accepted = false;
    while let Some(subtask) = open.pop() {
        let outcome = matched(&subtask);
        accepted |= !r4b.step(now, said(Role::R4a, outcome.clone())).is_empty();
        open.extend(parts(r2.step(now, said(Role::R4a, outcome))).1);
    }
    assert!(accepted);
}

/// R2 after a first group of which one step failed, the directive for it, and a plan that is neither a repetition nor done.
fn directed() -> (Planner, PlanDirective, Value, MemoryReply) {
    let (mut r2, effects) = planned(plan(50, "by year"), memory(100));
    let (_, mut open) = parts(effects);
    let mut outcomes = Vec::new();
    while let Some(subtask) = open.pop() {
        let mut outcome = matched(&subtask);
        if outcomes.is_empty() {
            outcome.status = OutcomeStatus::Failed;
        }
        open.extend(parts(r2.step(Timestamp::default(), said(Role::R4a, outcome.clone()))).1);
        outcomes.push(outcome);
    }
    let mut directive: PlanDirective = serde_json::from_value(
        json!({"task_id": TASK, "loss": {"D": 1.0, "P": 1.0, "Omega": 0.2, "L": 0.9}, "prev_directive": "init",
            "directive": "break_symmetry", "blocked_tools": ["shell:mv"], "blocked_targets": [], "failed_criterion": "x",
            "failure_class": "logical", "budget_pressure": 0.2, "grad_l": 0.0, "rationale": "x"}),
    )
    .unwrap();
    directive.outcomes = outcomes;
    let reply = MemoryReply {
        query: 2,
        ..memory(100)
    };
    let value = plan(50, "by the place in their metadata, with another program");
    (r2, directive, value, reply)
}

fn bench(c: &mut Criterion) {
    let (value, reply) = (plan(50, "by year"), memory(100));
    c.bench_function("a plan of 50 subtasks with 100 lines of memory", |b| {
        b.iter_batched(
            || (value.clone(), reply.clone()),
            |(value, reply)| black_box(planned(value, reply)),
            BatchSize::SmallInput,
        );
    });
    c.bench_function("the same after a directive", |b| {
        b.iter_batched(
            directed,
            |(mut r2, directive, value, reply)| {
                let now = Timestamp::default();
                let _ = r2.step(now, said(Role::R7, directive));
                let call = call_of(&r2.step(now, said(Role::R5, reply)));
                (r2.step(now, answer(call, value)), r2)
            },
            BatchSize::SmallInput,
        );
    });
    let thousand = plan(1_000, "by year");
    c.bench_function("1,000 subtasks dispatched and gathered", |b| {
        b.iter_batched(|| thousand.clone(), gathered, BatchSize::LargeInput);
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = bench
}
criterion_main!(benches);
