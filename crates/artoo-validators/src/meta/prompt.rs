//! What R4b asks its model, and the form of the answer (design §11).

use artoo_protocol::message::{Criterion, SubTaskOutcome};
use artoo_protocol::model::{ModelRequest, Tier};
use artoo_protocol::prompt::section;
use artoo_protocol::text::{head_tail, one_line};
use serde_json::{Value, json};

use super::merge::as_text;
use crate::{evidence, verdicts};

crate::prompts::fixed_text!("R4b", "../../prompts/meta_validator.md");

/// Characters of all outputs together.
const OUTPUTS_BUDGET: usize = 24_000;

/// Characters of all tool calls together.
const EVIDENCE_BUDGET: usize = 12_000;

/// The request for a merged output and for verdicts on the criteria that are left.
pub(super) fn request(
    tier: Tier,
    prompts: &Prompts,
    intent: &str,
    outcomes: &[SubTaskOutcome],
    asked: &[&Criterion],
) -> ModelRequest {
    let each = |budget: usize| budget / outcomes.len().max(1);
    let mut outputs = String::new();
    let mut shown = String::new();
    for (at, outcome) in outcomes.iter().enumerate() {
        let heading = format!("subtask {}: {}", at + 1, one_line(&outcome.intent, 300));
        let output = head_tail(&as_text(&outcome.output), each(OUTPUTS_BUDGET).max(200));
        outputs.extend([&heading, "\noutput:\n", &output, "\n\n"]);
        let calls = evidence::render(&outcome.tool_calls, each(EVIDENCE_BUDGET).max(200));
        if !calls.is_empty() {
            shown.extend([&heading, "\n", &calls, "\n"]);
        }
    }
    if shown.is_empty() {
        "(no tool ran)".clone_into(&mut shown);
    }
    let verifiable = verdicts::verifiable_numbers(asked);
    if verifiable.is_empty() {
        // What is judged by the text alone needs no calls, and they are the longest part.
        shown.clear();
    }
    let user = [
        section("intent", &head_tail(intent, 2_000)),
        section("outputs", &outputs),
        section("evidence", &shown),
        section("verifiable", &verifiable),
        section("criteria", &verdicts::numbered(asked)),
    ]
    .concat();
    ModelRequest::structured(tier, &prompts.system, user, "merge_verdict", schema())
}

/// Schema `merge_verdict`.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "summary": {"type": ["string", "null"]},
            "merged_output": {},
            "verdicts": verdicts::schema()
        },
        "required": ["merged_output", "verdicts"]
    })
}
