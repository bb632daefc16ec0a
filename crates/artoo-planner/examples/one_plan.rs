//! The planner on its own: a task in, a plan asked for, a bad plan refused with its reason, a good one dispatched.
//!
//! `cargo run -p artoo-planner --example one_plan`
//!
//! The model's part is played by two scripted answers. The first is of the kind that models give: a step whose success nobody
//! could check. The planner refuses it, in code, and asks again with the reason.

use std::error::Error;

use artoo_planner::{Config, Planner};
use artoo_protocol::message::{Constraints, MemoryReply, Message, TaskSpec};
use artoo_protocol::model::{ChatMessage, ModelContent, ModelReply, Usage};
use artoo_protocol::tool::ToolSpec;
use artoo_protocol::{Actor, Answer, Command, Envelope, EnvelopeId, Event, Millis, Role, Slug, TaskId, Timestamp};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("the tool {name}"),
        input_schema: json!({}),
    };
    let mut planner = Planner::new(Config {
        tools: vec![tool("shell"), tool("write_file")],
        ..Config::default()
    })?;
    // Time is an argument, so the same events give the same plan and the same ids.
    let now = Timestamp::parse("2026-02-27T09:30:00Z")?;
    let mut answers = vec![plan(true), plan(false)];
    let mut events = vec![heard(task().into(), now)];
    while let Some(event) = events.pop() {
        for effect in planner.step(now, event) {
            match Command::from(effect) {
                Command::CallModel { task_id, call, request } => {
                    // What is new in a second request is why the first answer was no plan.
                    if let Some(ChatMessage::User { content }) = request.messages.last() {
                        let reason = content.lines().find(|line| line.starts_with("- "));
                        println!("asks for a plan; told the model: {}", reason.unwrap_or("nothing yet"));
                    }
                    let value = answers.pop().ok_or("the planner asked more often than foreseen")?;
                    events.push(Event::Answer {
                        task_id,
                        call,
                        answer: Answer::Model(Ok(reply(value))),
                    });
                }
                Command::Publish { message, .. } => match *message {
                    Message::MemoryQuery(query) => {
                        println!("asks memory about {}", query.space);
                        events.push(heard(MemoryReply::empty(query.task_id, query.query).into(), now));
                    }
                    Message::SubTask(step) => println!("dispatches: {}", serde_json::to_string_pretty(&step)?),
                    other => println!("says {}", other.kind().name()),
                },
                other => println!("wants {other:?}"),
            }
        }
    }
    Ok(())
}

fn task() -> TaskSpec {
    TaskSpec {
        task_id: TaskId::new("count_rust_files_0a1b2c3d"),
        slug: Slug::repair("count_rust_files"),
        intent: "Count the Rust files in src and write the number to count.txt".into(),
        constraints: Constraints::default(),
        raw_input: "how many rust files are in src? into count.txt please".into(),
        scope: Vec::new(),
    }
}

/// What a model answers: a step that can be checked, or one whose criterion says no more than that it was done.
fn plan(checkable: bool) -> Value {
    let criteria = if checkable {
        json!([{"criterion": "count.txt holds one number", "mode": "verifiable",
            "check": {"kind": "file_contains", "path": "count.txt", "pattern": "^[0-9]+$"}}])
    } else {
        json!([])
    };
    json!({"task_criteria": [], "subtasks": [{"sequence": 1, "context": "", "tools": ["shell"], "success_criteria": criteria,
        "intent": "Count the files named *.rs below src and write the number to count.txt"}]})
}

fn reply(value: Value) -> ModelReply {
    ModelReply {
        content: ModelContent::Structured { value },
        model: "by hand".into(),
        usage: Usage::default(),
        elapsed_ms: Millis(0),
    }
}

fn heard(payload: Message, timestamp: Timestamp) -> Event {
    Event::from(Envelope {
        id: EnvelopeId::new("1"),
        seq: 1,
        task_id: None,
        timestamp,
        from: Role::R1,
        to: Role::R2,
        payload,
    })
}
