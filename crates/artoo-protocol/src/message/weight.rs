//! How much memory a message holds, by estimate, for queues that are bounded by bytes (design §3, §16).
//!
//! Owns the estimate: the texts and values that may be long are summed, everything else is taken as a constant. Cheap, because it is
//! asked for every message that an observer is offered.

use serde_json::Value;

use super::{Message, SubTaskOutcome, ToolCall};

/// What a message, an outcome or a call holds beside the texts that may be long.
const PLAIN: usize = 1_000;

impl Message {
    /// About so many bytes; never 0.
    pub fn weight(&self) -> usize {
        let long = match self {
            Self::UserInput(m) => m.text.len() + m.history.len() * PLAIN,
            Self::DirectAnswer(m) => m.answer.len(),
            Self::SubTask(m) => m.context.len() + m.intent.len(),
            Self::DispatchManifest(m) => m.subtasks.iter().map(|s| PLAIN + s.intent.len()).sum(),
            Self::ExecutionResult(m) => m.output.len() + calls(&m.tool_calls),
            Self::SubTaskOutcome(m) => outcome(m),
            Self::ReplanRequest(m) => outcomes(&m.outcomes) + value(&m.merged_output),
            Self::OutcomeSummary(m) => outcomes(&m.outcomes) + value(&m.merged_output),
            Self::PlanDirective(m) => outcomes(&m.outcomes),
            Self::PartialResultRequest(m) => outcomes(&m.outcomes),
            Self::FinalResult(m) => {
                let honesty = &m.honesty;
                let grounds = honesty.proven.len() + honesty.judged.len() + honesty.unverified.len();
                m.summary.len() + value(&m.output) + grounds * PLAIN
            }
            Self::MemoryReply(m) => (m.sops.len() + m.knowledge.len() + m.recent.len()) * PLAIN,
            Self::Megram(m) => m.content.len(),
            // A few sentences at most.
            _ => 0,
        };
        PLAIN + long
    }
}

fn outcomes(all: &[SubTaskOutcome]) -> usize {
    all.iter().map(outcome).sum()
}

fn outcome(outcome: &SubTaskOutcome) -> usize {
    let verdicts: usize = outcome.criteria_verdicts.iter().map(|v| v.evidence.len()).sum();
    let attempts = outcome.gap_trajectory.len() * PLAIN;
    PLAIN + value(&outcome.output) + calls(&outcome.tool_calls) + verdicts + attempts
}

fn calls(calls: &[ToolCall]) -> usize {
    let one = |call: &ToolCall| {
        let touched: usize = call.touched.iter().map(String::len).sum();
        PLAIN + call.output.len() + value(&call.input) + touched
    };
    calls.iter().map(one).sum()
}

/// Values are no deeper than their reader lets them be.
fn value(of: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match of {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| NODE + name.len() + value(field))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{SubTaskId, TaskId};
    use crate::message::{ExecutionResult, ExecutionStatus};
    use serde_json::json;

    #[test]
    fn what_is_long_weighs() {
        let attempt = |calls: usize, output: usize| {
            let call = |_| {
                let call = json!({"tool": "shell", "input": {"command": "x".repeat(output)}, "output": "y".repeat(output),
                    "started_at": "2026-02-27T09:30:00.000Z", "elapsed_ms": 1, "effect": "read"});
                serde_json::from_value::<ToolCall>(call).unwrap()
            };
            Message::from(ExecutionResult {
                subtask_id: SubTaskId::new("a"),
                parent_task_id: TaskId::new("count_00000001"),
                attempt: 1,
                status: ExecutionStatus::Completed,
                output: "z".repeat(output),
                reason: None,
                infrastructure: false,
                infeasible: false,
                refused: false,
                tool_calls: (0..calls).map(call).collect(),
            })
            .weight()
        };
        assert_eq!(attempt(0, 0), PLAIN);
        assert_eq!(attempt(0, 500), PLAIN + 500);
        let (few, many) = (attempt(1, 100_000), attempt(10, 100_000));
        assert!((300_000..310_000).contains(&few), "{few}");
        assert!((2_100_000..2_200_000).contains(&many), "{many}");
    }
}
