//! The trace of a kept journal, and what holds for the trace of every journal.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use artoo_bus::journal::read;
use artoo_protocol::model::ModelError;
use artoo_protocol::tool::ToolOutput;
use artoo_protocol::{Answer, Command, Millis, Role, TaskId};

use super::*;
use crate::traces::told;
use crate::traces::weaver::{ROOT, SPANS_MAX};

fn records() -> Vec<Record> {
    let text = include_bytes!("../../../../../fixtures/journals/replanned.jsonl");
    read::read(text.as_slice()).unwrap().records
}

fn called(tier: Tier) -> Called {
    match tier {
        Tier::Brain | Tier::Judge | Tier::SecondJudge => Called {
            provider: "anthropic",
            model: Some("big".into()),
            server: Some(("api.example".into(), 443)),
        },
        Tier::Tool => Called {
            provider: "artoo",
            ..Called::default()
        },
    }
}

fn traced(records: &[Record]) -> Trace {
    let about = About {
        conversation: None,
        models: &called,
    };
    trace(records, &about).unwrap()
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:.4}"),
        Value::Flag(flag) => flag.to_string(),
    }
}

/// As a tree, without what a journal that is made anew has differently.
fn tree(trace: &Trace) -> String {
    let mut depths: HashMap<u64, usize> = HashMap::new();
    let mut text = String::new();
    for span in &trace.spans {
        let depth = span.parent.map_or(0, |parent| depths[&parent] + 1);
        depths.insert(span.id, depth);
        let indent = "  ".repeat(depth);
        let error = span
            .error
            .as_ref()
            .map_or_else(String::new, |why| format!("  ERROR {why}"));
        writeln!(text, "{indent}{} ({:?}){error}", span.name, span.kind).unwrap();
        for (key, value) in &span.attributes {
            let made = ["gen_ai.conversation.id", "artoo.task.id", "artoo.subtask.id"];
            if !made.contains(key) {
                writeln!(text, "{indent}  · {key} = {}", shown(value)).unwrap();
            }
        }
    }
    text
}

#[test]
fn a_task_that_was_replanned() {
    let trace = traced(&records());
    insta::assert_snapshot!("replanned", tree(&trace));
    let of = |key: &str| {
        let found = trace.spans[ROOT].attributes.iter().find(|(known, _)| *known == key);
        found.map(|(_, value)| shown(value)).unwrap_or_default()
    };
    assert_eq!(
        of("gen_ai.conversation.id"),
        of("artoo.task.id"),
        "a conversation without a name is one task"
    );
    assert!(TaskId::parse(&of("artoo.task.id")).is_ok());
}

/// What holds for every trace.
fn well_formed(trace: &Trace, records: &[Record]) {
    let (first, last) = (records.first().unwrap().at, records.last().unwrap().at);
    let mut known = HashSet::new();
    for (at, span) in trace.spans.iter().enumerate() {
        assert_eq!(span.parent.is_none(), at == ROOT, "{span:?}");
        assert!(span.parent.is_none_or(|parent| known.contains(&parent)), "{span:?}");
        assert!(span.id != 0 && known.insert(span.id), "{span:?}");
        assert!(
            first <= span.start && span.start <= span.end && span.end <= last,
            "{span:?}"
        );
        let keys: HashSet<_> = span.attributes.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), span.attributes.len(), "{span:?}");
    }
}

#[test]
fn every_beginning_of_a_journal_gives_a_whole_trace_of_the_same_ids() {
    let records = records();
    let whole = traced(&records);
    assert_eq!(whole.id >> 76 & 0xf, 7, "a UUIDv7");
    well_formed(&whole, &records);
    for length in 1..records.len() {
        let part = traced(&records[..length]);
        well_formed(&part, &records[..length]);
        if length > 1 {
            let same = part
                .spans
                .iter()
                .zip(&whole.spans)
                .all(|(a, b)| (a.id, a.parent) == (b.id, b.parent));
            assert!(part.id == whole.id && same);
        }
        let unfinished = part
            .spans
            .iter()
            .filter(|span| span.attributes.iter().any(|(key, _)| *key == "artoo.unfinished"));
        assert!(length > 3 || unfinished.count() == 0);
    }
    assert_eq!(
        traced(&records[..1]),
        traced(&records[..1]),
        "also without an id to start from"
    );
    assert_eq!(
        trace(
            &[],
            &About {
                conversation: None,
                models: &called
            }
        ),
        None
    );
}

/// Every text of some length in what people, models and tools wrote.
fn written(records: &[Record]) -> Vec<String> {
    fn texts(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => found.push(text.clone()),
            serde_json::Value::Array(list) => list.iter().for_each(|item| texts(item, found)),
            serde_json::Value::Object(fields) => fields.values().for_each(|item| texts(item, found)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
    fn walk(value: &serde_json::Value, content: &[&str], found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, inner) in fields {
                    if content.contains(&name.as_str()) {
                        texts(inner, found);
                    }
                    walk(inner, content, found);
                }
            }
            serde_json::Value::Array(list) => list.iter().for_each(|item| walk(item, content, found)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }
    let content = [
        "text",
        "intent",
        "context",
        "criterion",
        "content",
        "input",
        "output",
        "command",
        "reason",
        "evidence",
        "summary",
        "gap_summary",
        "merged_output",
        "raw_input",
        "rationale",
        "failed_criterion",
        "what_was_wrong",
        "what_to_do",
        "value",
    ];
    let mut found = Vec::new();
    for record in &records[1..] {
        walk(&serde_json::to_value(record).unwrap(), &content, &mut found);
    }
    found.retain(|text| text.chars().count() > 16 && text.contains(' '));
    found
}

#[test]
fn nothing_that_somebody_wrote_is_in_it() {
    let records = records();
    let text = tree(&traced(&records));
    let written = written(&records);
    assert!(written.len() > 50, "{}", written.len());
    for words in written {
        assert!(!text.contains(&words), "`{words}` left the machine");
    }
}

#[test]
fn failures_are_told_by_their_class_alone() {
    let mut records = records();
    let mut models = 0;
    for record in &mut records {
        if let Entry::Answered {
            answer, role: Role::R3, ..
        } = &mut record.entry
        {
            match answer {
                Answer::Model(reply) if models == 0 => {
                    models += 1;
                    *reply = Err(ModelError::Rejected {
                        status: 429,
                        message: "hush".into(),
                    });
                }
                Answer::Ran(output) => {
                    *output = ToolOutput {
                        exit: Some(2),
                        error: Some("hush".into()),
                        output: "hush".into(),
                        elapsed_ms: Millis(1),
                        ..ToolOutput::default()
                    };
                }
                Answer::Model(_) | Answer::Assessed(_) | Answer::Checked(_) | Answer::Recalled(_) => {}
            }
        }
    }
    let trace = traced(&records);
    let text = tree(&trace);
    assert!(!text.contains("hush"), "{text}");
    for said in [
        "ERROR the model's provider refused",
        "error.type = rejected",
        "http.response.status_code = 429",
        "ERROR the tool reported an error",
        "artoo.exit = 2",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn what_a_model_calls_itself_is_bounded() {
    let mut records = records();
    for record in &mut records {
        if let Entry::Answered {
            answer: Answer::Model(Ok(reply)),
            ..
        } = &mut record.entry
        {
            reply.model = "m\n".repeat(10_000);
        }
    }
    for span in traced(&records).spans {
        for (key, value) in span.attributes {
            assert!(shown(&value).chars().count() <= told::TEXT_MAX, "{key}");
        }
    }
}

#[test]
fn a_trace_has_an_end() {
    let mut records = records();
    let at = records.iter().position(|record| {
        matches!(
            &record.entry,
            Entry::Commanded {
                command: Command::Recall { .. },
                ..
            }
        )
    });
    let again = vec![records[at.unwrap()].clone(); SPANS_MAX + 5];
    let end = records.pop().unwrap();
    records.extend(again);
    records.push(end);
    let trace = traced(&records);
    assert_eq!(trace.spans.len(), SPANS_MAX);
    well_formed(&trace, &records);
    let left_out = trace.spans[ROOT]
        .attributes
        .iter()
        .find(|(key, _)| *key == "artoo.spans.left_out");
    assert!(left_out.is_some_and(|(_, count)| shown(count).parse::<usize>().unwrap() >= 5));
}
