//! A validator on its own: an executor claims that it is done, and code finds out whether it is. No model is asked.
//!
//! `cargo run -p artoo-validators --example one_result`
//!
//! The claim is false at first: the file lacks a line. The validator sends a correction; the second attempt mends the file.

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use artoo_protocol::message::{Criterion, ExecutionResult, ExecutionStatus, Message, MustNot, SubTask, ToolCall};
use artoo_protocol::ports::{CheckRunner as _, Toolbox};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, Permit, Reach, ToolOutput, ToolSpec};
use artoo_protocol::{Actor, Answer, Command, Envelope, EnvelopeId, Event, Millis, Role, SubTaskId, TaskId, Timestamp};
use artoo_validators::checks::WorldConfig;
use artoo_validators::{AgentValidator, WorldChecks};
use async_trait::async_trait;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let at = folder.path().to_owned();
    let checks = WorldChecks::new(WorldConfig::new(at.clone(), at.clone(), None), Arc::new(NoTools));
    let mut validator = AgentValidator::default();
    // What must hold, fixed before anything is done.
    let criteria: Vec<Criterion> = serde_json::from_value(json!([
        {"criterion": "names.txt has three lines", "mode": "verifiable",
            "check": {"kind": "count", "of": "lines", "path": "names.txt", "op": "eq", "value": 3}},
        {"criterion": "Ada is among them", "mode": "verifiable",
            "check": {"kind": "file_contains", "path": "names.txt", "pattern": "^Ada$"}}
    ]))?;
    let first = attempt(&at, 1, "Ada\nGrace\n")?;
    let mut events = VecDeque::from([heard(subtask(criteria).into()), heard(first.into())]);
    while let Some(event) = events.pop_front() {
        for effect in validator.step(Timestamp::from_millis(0), event) {
            match Command::from(effect) {
                Command::RunCheck { task_id, call, request } => {
                    let report = checks.run(&request).await;
                    println!(
                        "checked: {} — {}",
                        if report.passed { "pass" } else { "FAIL" },
                        report.evidence
                    );
                    let answer = Answer::Checked(report);
                    events.push_back(Event::Answer { task_id, call, answer });
                }
                Command::Publish { message, .. } => match *message {
                    Message::CorrectionSignal(signal) => {
                        println!("correction: {}", signal.what_was_wrong);
                        events.push_back(heard(attempt(&at, 2, "Ada\nGrace\nEdsger\n")?.into()));
                    }
                    Message::SubTaskOutcome(outcome) => {
                        println!("{:?} after {} attempts", outcome.status, outcome.gap_trajectory.len());
                    }
                    other => println!("says {}", other.kind().name()),
                },
                // A criterion without a check would be put to a model here.
                other => println!("wants {other:?}"),
            }
        }
    }
    Ok(())
}

fn subtask(success_criteria: Vec<Criterion>) -> SubTask {
    SubTask {
        subtask_id: SubTaskId::new("s1"),
        parent_task_id: TaskId::new("write_names_0123abcd"),
        intent: "Write three names into names.txt, Ada among them".into(),
        context: String::new(),
        success_criteria,
        sequence: 1,
        tools: Vec::new(),
        deadline: None,
        must_not: MustNot::default(),
        caution: None,
        scope: Vec::new(),
    }
}

/// What an executor hands in: its claim, and beside it what its tools really did.
fn attempt(folder: &Path, attempt: u32, text: &str) -> std::io::Result<ExecutionResult> {
    let path = folder.join("names.txt");
    std::fs::write(&path, text)?;
    let path = path.display().to_string();
    let call = ToolCall {
        tool: "write_file".into(),
        input: json!({"path": path, "content": text}),
        output: format!("wrote {path}"),
        truncated: false,
        lines: 1,
        exit: None,
        error: None,
        failure_class: None,
        started_at: Timestamp::from_millis(0),
        elapsed_ms: Millis(1),
        interrupted: false,
        effect: EffectClass::Create,
        programs: Vec::new(),
        touched: vec![path],
        not_run: false,
    };
    Ok(ExecutionResult {
        subtask_id: SubTaskId::new("s1"),
        parent_task_id: TaskId::new("write_names_0123abcd"),
        attempt,
        status: ExecutionStatus::Completed,
        output: "names.txt holds three names.".into(),
        reason: None,
        infrastructure: false,
        infeasible: false,
        refused: false,
        tool_calls: vec![call],
    })
}

fn heard(payload: Message) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("1"),
        seq: 1,
        task_id: None,
        timestamp: Timestamp::from_millis(0),
        from: Role::R3,
        to: Role::R4a,
        payload,
    })
}

/// Checks that run commands need a tool box; these do not.
struct NoTools;

#[async_trait]
impl Toolbox for NoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    async fn assess(&self, _: &Invocation) -> Assessment {
        Assessment {
            effect: EffectClass::External,
            reach: Reach::Elsewhere,
            action: String::new(),
            reason: String::new(),
            programs: Vec::new(),
            targets: Vec::new(),
            invalid: Some("there are no tools here".into()),
            fingerprint: 0,
        }
    }

    async fn run(&self, _: &Invocation, _: Permit) -> ToolOutput {
        ToolOutput {
            error: Some("there are no tools here".into()),
            ..ToolOutput::default()
        }
    }
}
