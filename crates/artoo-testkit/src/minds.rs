//! Random minds that err, lie and ramble, for the runs of [`chaos`](crate::chaos).
//!
//! Owns what a bad model may say; knows nothing of what must hold nevertheless.

use artoo_protocol::Millis;
use artoo_protocol::model::{ModelContent, ModelError, ModelReply, ModelRequest, ModelToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::prices;
use crate::random::Random;
use crate::scene::{Mind, NEVER};
use crate::scripted::{criteria, form_name, reply, structured, text_reply, tool_results, verdict};
use crate::surroundings::Reply;

/// How bad the mind of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Temper {
    /// Answers of 100 that are errors.
    pub errs: u64,
    /// Answers of 100 that have nothing to do with the question.
    pub rambles: u64,
    /// Attempts of 100 that go wrong, and verdicts of 200.
    pub fails: u64,
    /// Answers of 100 that never come.
    pub never: u64,
    /// Longest time of an answer, in milliseconds.
    pub slow: u64,
    /// Answers of 100 that drip in over minutes.
    pub drips: u64,
    /// Most steps of a plan.
    pub steps: u64,
}

/// A mind of this temper.
pub fn mind(mut random: Random, temper: Temper) -> Mind {
    Box::new(move |_, request| {
        let after = if random.chance(temper.never) {
            NEVER
        } else if random.chance(temper.drips) {
            Millis(60_000 + random.below(1_200_000))
        } else {
            Millis(random.below(temper.slow))
        };
        let mut value = if random.chance(temper.errs) {
            Err(error(&mut random))
        } else if random.chance(temper.rambles) {
            Ok(rambling(&mut random))
        } else {
            Ok(answer(&mut random, temper, request))
        };
        if let Ok(reply) = &mut value {
            reply.usage.input_tokens = random.below(5_000);
            reply.usage.output_tokens = random.below(1_000);
            prices::name(request.tier).clone_into(&mut reply.model);
        }
        Reply { after, value }
    })
}

fn error(random: &mut Random) -> ModelError {
    let message = || "as it happens".to_owned();
    match random.below(10) {
        0 => ModelError::Unreachable { message: message() },
        1 => ModelError::Rejected {
            status: 401,
            message: message(),
        },
        2 => ModelError::NotUnderstood { message: message() },
        3..6 => ModelError::Unusable { message: message() },
        6 => ModelError::Unreadable { message: message() },
        // What could not be read was paid for.
        paid => ModelError::Unreadable { message: message() }.charged(
            prices::DEAR,
            Usage {
                input_tokens: paid * 300,
                output_tokens: 100,
                requests: 2,
                ..Usage::default()
            },
        ),
    }
}

/// An answer that has nothing to do with the question.
fn rambling(random: &mut Random) -> ModelReply {
    let values = [
        json!(null),
        json!([]),
        json!({}),
        json!("done"),
        json!({"subtasks": [{"intent": null}, 7], "verdicts": "all good", "clarify": 3, "slug": {"a": 1}}),
        json!({"verdicts": [{"criterion": "1", "verdict": "pass"}, {"verdict": "fail"}, null], "merged_output": []}),
        json!({"subtasks": [{"intent": "", "success_criteria": [[]]}], "task_criteria": {"x": 1}}),
    ];
    match random.below(8) {
        0 => text_reply("I would rather talk about the weather."),
        1 => reply(ModelContent::ToolCalls {
            text: None,
            calls: Vec::new(),
        }),
        2 => calls(vec![call(random, "fly", json!({"to": "the moon"}))]),
        3 => calls(vec![call(random, "report", json!("{not json"))]),
        _ => structured(random.pick(&values).cloned().unwrap_or_default()),
    }
}

fn answer(random: &mut Random, temper: Temper, request: &ModelRequest) -> ModelReply {
    match form_name(request) {
        "task_spec" => structured(task_spec(random)),
        "plan" => structured(plan(random, temper.steps)),
        "criterion_verdicts" | "merge_verdict" => structured(verdicts(random, temper, request)),
        "partial_result" => structured(json!({"achieved": "a little", "failed": "the rest", "next_steps": ["rest"]})),
        _ if random.chance(temper.fails.max(20)) => act(random, temper),
        _ => work(random, request),
    }
}

fn task_spec(random: &mut Random) -> Value {
    let clarify = if random.chance(30) {
        json!(["Which notes?", "All?"])
    } else {
        json!([])
    };
    let direct = if random.chance(10) { json!("Two.") } else { json!(null) };
    let slugs = ["count_lines", "../../etc", "", "Zähle Zeilen"];
    json!({"slug": random.pick(&slugs), "intent": "Count the lines of the notes", "scope": "/", "deadline": null,
        "clarify": clarify, "direct_answer": direct})
}

fn plan(random: &mut Random, most: u64) -> Value {
    let intents = [
        "Count the lines",
        "Write the number down",
        "Read the notes",
        "Look the number up",
        "Check the number",
        "Clean up",
    ];
    let sequences = [
        json!(1),
        json!(2),
        json!(0),
        json!(-3),
        json!("2"),
        json!(null),
        json!(1.5),
        json!(99),
    ];
    let tools = [
        json!([]),
        json!(["shell"]),
        json!(["shell:wc"]),
        json!(["write_file", "read_file"]),
        json!(["search"]),
        json!(["fly"]),
    ];
    let steps: Vec<Value> = (0..=random.below(most.max(1)))
        .map(|at| {
            let intent = format!("{} ({})", random.pick(&intents).unwrap_or(&""), random.below(1_000));
            let listed = if random.chance(95) { random.below(5) } else { 5 };
            let tools = tools.get(usize::try_from(listed).unwrap_or(0));
            json!({"id": "same", "subtask_id": at, "sequence": random.pick(&sequences), "intent": intent, "context": "in the workspace",
                "success_criteria": criteria_of(random), "tools": tools, "deadline": deadline(random)})
        })
        .collect();
    let task_criteria = if random.chance(50) {
        criteria_of(random)
    } else {
        json!([])
    };
    json!({"task_criteria": task_criteria, "subtasks": steps})
}

fn deadline(random: &mut Random) -> Value {
    let deadlines = ["2026-02-27T09:01:00Z", "2020-01-01T00:00:00Z", "soon"];
    if random.chance(5) {
        json!(random.pick(&deadlines))
    } else {
        json!(null)
    }
}

fn criteria_of(random: &mut Random) -> Value {
    let known = [
        json!("the number is named"),
        json!({"criterion": "the number was really counted", "mode": "verifiable", "check": null}),
        json!({"criterion": "number.txt exists", "mode": "verifiable", "check": {"kind": "file_exists", "path": "number.txt"}}),
        json!({"criterion": "number.txt holds 2", "check": {"kind": "file_contains", "path": "number.txt", "pattern": "^2$"}}),
        json!({"criterion": "the output is a number", "check": {"kind": "output_matches", "pattern": "[0-9]+"}}),
        json!({"criterion": "nothing failed", "check": {"kind": "exit_code", "equals": 0}}),
        json!({"criterion": "the digest is right", "check": {"kind": "sha256", "path": "a", "equals": "0".repeat(64)}}),
    ];
    let most = if random.chance(3) { 0 } else { random.below(3) + 1 };
    // The last one, whose check this machine cannot run, is rare.
    let usual = known.get(..known.len() - 1).unwrap_or(&known);
    (0..most)
        .filter_map(|_| {
            if random.chance(2) {
                known.last().cloned()
            } else {
                random.pick(usual).cloned()
            }
        })
        .collect()
}

fn verdicts(random: &mut Random, temper: Temper, request: &ModelRequest) -> Value {
    let mut given: Vec<Value> = Vec::new();
    for words in criteria(request) {
        match random.below(40) {
            0 => {}
            1 => given.push(json!({"criterion": words, "verdict": "mostly"})),
            2 => given.extend([verdict(&words, true), verdict(&words, false)]),
            _ => given.push(verdict(&words, !random.chance(temper.fails / 2))),
        }
    }
    // Words that contradict the verdicts beside them.
    let summary = if random.chance(90) {
        "Merged."
    } else {
        "All of it failed."
    };
    json!({"verdicts": given, "what_was_wrong": "wrong", "what_to_do": null, "summary": summary, "merged_output": "2"})
}

/// What a good executor would do.
fn work(random: &mut Random, request: &ModelRequest) -> ModelReply {
    match tool_results(request) {
        0 => calls(vec![call(random, "shell", json!({"command": "wc notes.txt"}))]),
        1 => calls(vec![call(
            random,
            "write_file",
            json!({"path": "number.txt", "content": "2"}),
        )]),
        _ => text_reply("The number is 2."),
    }
}

fn act(random: &mut Random, temper: Temper) -> ModelReply {
    if random.chance(35) {
        let status = if random.chance(temper.fails) {
            "failed"
        } else {
            "completed"
        };
        return match random.below(4) {
            0 => calls(vec![call(
                random,
                "report",
                json!({"status": status, "output": "2", "reason": "as it is"}),
            )]),
            1 => calls(vec![call(
                random,
                "report",
                json!({"status": "uncertain", "output": "2?"}),
            )]),
            _ => text_reply("The number is 2."),
        };
    }
    let many = if random.chance(20) { 3 } else { 1 };
    let all = (0..many).map(|_| tool_call(random)).collect();
    calls(all)
}

fn tool_call(random: &mut Random) -> ModelToolCall {
    let commands = [
        "wc notes.txt",
        "cat notes.txt",
        "cat missing.txt",
        "rm old.txt",
        "rm number.txt",
        "curl http://example.org",
        "false",
        "make all",
        "touch new.txt",
        "touch /etc/passwd",
        "sleep 40",
        "ls",
        "true",
    ];
    let paths = ["number.txt", "/home/me/list", "notes.txt", "deep/er.txt", "/etc/hosts"];
    let path = random.pick(&paths).copied().unwrap_or_default();
    match random.below(10) {
        0 | 1 => {
            let content = if random.chance(60) { "2" } else { "41" };
            call(random, "write_file", json!({"path": path, "content": content}))
        }
        2 => call(random, "read_file", json!({ "path": path })),
        3 => call(random, "search", json!({"query": "how many notes"})),
        4 => call(random, "write_file", json!({"file": path})),
        5 => call(random, "shell", json!("wc notes.txt")),
        _ => {
            let command = random.pick(&commands).copied().unwrap_or_default();
            call(random, "shell", json!({ "command": command }))
        }
    }
}

fn call(random: &mut Random, name: &str, arguments: Value) -> ModelToolCall {
    // Ids are sometimes repeated, as models do.
    let id = format!("c{}", random.below(3));
    ModelToolCall {
        id,
        name: name.to_owned(),
        arguments,
    }
}

fn calls(calls: Vec<ModelToolCall>) -> ModelReply {
    reply(ModelContent::ToolCalls { text: None, calls })
}
