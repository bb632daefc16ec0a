//! Plans and calls that use what the controller has blocked (design §6, §13).

use artoo_protocol::message::{Message, ToolCall};

use super::{Seen, TaskDetector};

/// The latest directive's blocked sets.
#[derive(Clone, Debug, Default)]
pub struct BlockedReuse {
    tools: Vec<String>,
    targets: Vec<String>,
}

impl BlockedReuse {
    fn planned(&self, tool: &str) -> Option<String> {
        let blocked = self.tools.iter().any(|entry| entry.trim() == tool.trim());
        blocked.then(|| format!("the new plan names `{tool}`, which R7 had blocked"))
    }

    fn used(&self, call: &ToolCall) -> Option<String> {
        if call.not_run {
            return None;
        }
        let tool = self.tools.iter().find(|entry| match entry.trim().split_once(':') {
            Some((tool, program)) => tool == call.tool && call.programs.iter().any(|run| run == program),
            None => entry.trim() == call.tool,
        });
        if let Some(entry) = tool {
            return Some(format!("R3 used `{entry}`, which R7 had blocked"));
        }
        if self.targets.is_empty() {
            return None;
        }
        let target = normal(&call.target());
        let hit = self.targets.iter().find(|entry| normal(entry) == target)?;
        Some(format!(
            "R3 went for `{}` again, which R7 had blocked",
            artoo_protocol::text::one_line(hit, 120)
        ))
    }
}

impl TaskDetector for BlockedReuse {
    const NAME: &'static str = "blocked_reuse";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::PlanDirective(directive) = &envelope.payload {
            self.tools.clone_from(&directive.blocked_tools);
            self.targets.clone_from(&directive.blocked_targets);
            None
        } else if let Message::SubTask(subtask) = &envelope.payload {
            subtask.tools.iter().find_map(|tool| self.planned(tool))
        } else if let Message::ExecutionResult(result) = &envelope.payload {
            result.tool_calls.iter().find_map(|call| self.used(call))
        } else {
            None
        }
    }
}

/// White space collapsed, `./` in front and `/` behind removed.
fn normal(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let path = joined.strip_prefix("./").unwrap_or(&joined);
    path.strip_suffix('/').unwrap_or(path).to_owned()
}
