//! What R4a asks its model, and the form of the answer (design §10).

use artoo_protocol::message::{Criterion, ExecutionResult, ExecutionStatus, SubTask};
use artoo_protocol::model::{ModelRequest, Tier};
use artoo_protocol::prompt::section;
use artoo_protocol::text::head_tail;
use serde_json::{Value, json};

use crate::{evidence, verdicts};

crate::prompts::fixed_text!("R4a", "../../prompts/agent_validator.md");

/// Characters of all tool calls together.
const CALLS_BUDGET: usize = 24_000;

/// Characters of what the executor was given: criteria speak of limits, formats and outputs of earlier steps in it.
const CONTEXT_BUDGET: usize = 6_000;

/// Characters of the executor's own words.
const CLAIM_BUDGET: usize = 4_000;

/// The request for verdicts on the criteria that are left.
pub(super) fn request(
    tier: Tier,
    prompts: &Prompts,
    subtask: &SubTask,
    result: &ExecutionResult,
    asked: &[&Criterion],
) -> ModelRequest {
    let mut claim = head_tail(&result.output, CLAIM_BUDGET);
    if result.status == ExecutionStatus::Uncertain {
        let reason = result.reason.as_deref().unwrap_or("no reason given");
        claim = format!("(the executor is not sure: {})\n{claim}", head_tail(reason, 500));
    }
    let calls = if result.tool_calls.is_empty() {
        "(no tool ran)".to_owned()
    } else {
        evidence::render(&result.tool_calls, CALLS_BUDGET)
    };
    let user = [
        section("subtask", &head_tail(&subtask.intent, 2_000)),
        section("context", &head_tail(&subtask.context, CONTEXT_BUDGET)),
        section("claim", &claim),
        section("tool_calls", &calls),
        section("verifiable", &verdicts::verifiable_numbers(asked)),
        section("criteria", &verdicts::numbered(asked)),
    ]
    .concat();
    ModelRequest::structured(tier, &prompts.system, user, "criterion_verdicts", schema())
}

/// Schema `criterion_verdicts`.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdicts": verdicts::schema(),
            "what_was_wrong": {"type": ["string", "null"]},
            "what_to_do": {"type": ["string", "null"]}
        },
        "required": ["verdicts"]
    })
}
