//! The wording of a partial result when a task is given up (design §6, §14).
//!
//! Owns the request and the reading of its answer. Claims nothing itself: without a usable answer there is no wording, and
//! R7 has a template.

use artoo_protocol::ids::TaskId;
use artoo_protocol::message::{PartialResult, PartialResultRequest};
use artoo_protocol::model::{ModelContent, ModelRequest, Tier};
use artoo_protocol::prompt::section;
use artoo_protocol::text::{head_tail, one_line};
use serde_json::{Value, json};

use crate::prompt::{self, REASON_CHARS, REQUEST_CHARS};

/// Characters of each part, and the number and length of next steps.
const PART_CHARS: usize = 4_000;
const NEXT_STEPS: usize = 5;
const STEP_CHARS: usize = 1_000;

/// The schema `partial_result`.
pub fn partial_result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "achieved": {"type": "string"},
            "failed": {"type": "string"},
            "next_steps": {"type": ["array", "null"], "items": {"type": "string"}}
        },
        "required": ["achieved", "failed"]
    })
}

/// The request for the wording.
pub fn request(system: &str, asked: &PartialResultRequest) -> ModelRequest {
    let user = [
        section("intent", &head_tail(&asked.intent, REQUEST_CHARS)),
        section("reason", &head_tail(&asked.reason, REASON_CHARS)),
        section("outcomes", &prompt::outcomes(&asked.outcomes)),
    ];
    ModelRequest::structured(
        Tier::Brain,
        system,
        user.concat(),
        "partial_result",
        partial_result_schema(),
    )
}

/// Reads the answer; nothing when it says nothing.
pub fn read(task_id: &TaskId, answer: &ModelContent) -> Option<PartialResult> {
    let ModelContent::Structured { value } = answer else {
        return None;
    };
    let part = |name: &str| {
        let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
        head_tail(text.trim(), PART_CHARS)
    };
    let (achieved, failed) = (part("achieved"), part("failed"));
    if achieved.is_empty() && failed.is_empty() {
        return None;
    }
    let steps = value.get("next_steps").and_then(Value::as_array);
    Some(PartialResult {
        task_id: task_id.clone(),
        achieved,
        failed,
        next_steps: steps
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|step| one_line(step, STEP_CHARS))
            .filter(|step| !step.is_empty())
            .take(NEXT_STEPS)
            .collect(),
    })
}
