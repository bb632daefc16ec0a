//! The structured answers of the offline model, by the names of their schemas (design §18).
//!
//! Owns the shapes. Judges nothing: where a criterion needs a model's judgement, the honest verdict is a fail that says so.

use artoo_protocol::model::{ChatMessage, ModelError};
use artoo_protocol::prompt::read_section;
use artoo_protocol::text::one_line;
use serde_json::{Value, json};

use super::command;
use super::step::Step;
use super::{NAME, SET_A_MODEL, grammar, not_understood};

/// The answer to a structured request.
pub(super) fn answer(name: &str, messages: &[ChatMessage]) -> Result<Value, ModelError> {
    let user = messages.iter().rev().find_map(|message| match message {
        ChatMessage::User { content } => Some(content.as_str()),
        ChatMessage::System { .. } | ChatMessage::Assistant { .. } | ChatMessage::Tool { .. } => None,
    });
    let user = user.unwrap_or_default();
    match name {
        "task_spec" => task_spec(user),
        "plan" => plan(user),
        "criterion_verdicts" => Ok(json!({
            "verdicts": verdicts(user),
            "what_was_wrong": NO_JUDGEMENT,
            "what_to_do": SET_A_MODEL,
        })),
        "merge_verdict" => Ok(json!({"summary": NO_JUDGEMENT, "merged_output": null, "verdicts": verdicts(user)})),
        "partial_result" => Ok(partial_result(user)),
        // `sop` among them: a rule is a generalisation, which takes a model, and an invented one would steer every later plan.
        _ => Err(not_understood()),
    }
}

const NO_JUDGEMENT: &str = "the built-in offline model judges nothing that a machine check does not decide";

fn steps(user: &str) -> Result<Vec<Step>, ModelError> {
    let read = |name: &str| grammar::read_request(&read_section(user, name)?);
    read("request").or_else(|| read("intent")).ok_or_else(not_understood)
}

fn task_spec(user: &str) -> Result<Value, ModelError> {
    let steps = steps(user)?;
    let slug = steps.first().map(Step::slug).unwrap_or_default();
    Ok(json!({
        "slug": slug,
        "intent": grammar::sentences(&steps),
        "scope": null,
        "deadline": null,
        "clarify": [],
        "direct_answer": null,
    }))
}

/// One subtask for each step, each as its canonical sentence.
fn plan(user: &str) -> Result<Value, ModelError> {
    let steps = steps(user)?;
    if read_section(user, "directive").is_some() || read_section(user, "rejected").is_some() {
        // Not a matter of words: there is a model, and it has nothing else to offer.
        return Err(ModelError::Unusable {
            message: format!("{NAME} knows one way to do this, and it did not work; {SET_A_MODEL}"),
        });
    }
    let subtasks: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            json!({
                "sequence": at + 1,
                "intent": grammar::sentence(step),
                "context": "",
                "success_criteria": command::criteria(step, &steps),
                "tools": [command::call(step, None).tool],
            })
        })
        .collect();
    // What was written still stands there when all is done.
    let task_criteria: Vec<Value> = steps
        .iter()
        .filter(|step| matches!(step, Step::Write { .. } | Step::WriteResult { .. }))
        .flat_map(|step| command::criteria(step, &steps))
        .collect();
    Ok(json!({"task_criteria": task_criteria, "subtasks": subtasks}))
}

/// One verdict for each numbered criterion.
fn verdicts(user: &str) -> Vec<Value> {
    let criteria = read_section(user, "criteria").unwrap_or_default();
    let numbered = criteria.lines().filter_map(|line| {
        let (number, words) = line.split_once(". ")?;
        number.trim().parse::<u32>().ok().map(|_| words)
    });
    numbered
        .map(|words| {
            json!({"criterion": words, "verdict": "fail", "failure_class": "environmental", "evidence": NO_JUDGEMENT})
        })
        .collect()
}

/// Sorts the outcomes by their marks; every word of them is the outcomes' own.
fn partial_result(user: &str) -> Value {
    let outcomes = read_section(user, "outcomes").unwrap_or_default();
    let (mut achieved, mut failed) = (Vec::new(), Vec::new());
    let mut matched = None;
    for line in outcomes.lines() {
        let mark = line.split_once(". [").and_then(|(number, rest)| {
            number.trim().parse::<u32>().ok()?;
            rest.split_once("] ")
        });
        if let Some((mark, intent)) = mark {
            matched = Some(mark == "matched");
            let target = if mark == "matched" { &mut achieved } else { &mut failed };
            target.push(match mark {
                "not run" => format!("{intent} (not run)"),
                _ => intent.to_owned(),
            });
            continue;
        }
        let detail = line.trim();
        match matched {
            Some(true) => {
                if let Some(output) = detail.strip_prefix("output: ") {
                    achieved.push(one_line(output, 500));
                }
            }
            Some(false) if detail.starts_with("reason: ") || detail.starts_with("not met: ") => {
                failed.push(one_line(detail, 500));
            }
            Some(false) | None => {}
        }
    }
    if failed.is_empty() {
        failed.extend(read_section(user, "reason"));
    }
    let whole = |lines: Vec<String>| {
        if lines.is_empty() {
            "nothing".to_owned()
        } else {
            lines.join("\n")
        }
    };
    json!({
        "achieved": whole(achieved),
        "failed": whole(failed),
        "next_steps": ["Check the names and places in the sentence, and give it again.", SET_A_MODEL],
    })
}
