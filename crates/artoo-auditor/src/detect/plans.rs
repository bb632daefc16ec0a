//! Plans and calls that use what the controller has blocked (design §6, §13).

use std::collections::BTreeMap;
use std::sync::Arc;

use artoo_protocol::SubTaskId;
use artoo_protocol::message::{Message, MustNot, SubTask, ToolCall};

use super::{Seen, TaskDetector};

/// What was blocked when each subtask was dispatched: one of an older plan may end after a newer directive.
#[derive(Clone, Debug, Default)]
pub struct BlockedReuse {
    /// By the latest directive.
    blocked: MustNot,
    /// For the subtask that was dispatched last; those of one plan share it.
    latest: Arc<MustNot>,
    given: BTreeMap<SubTaskId, Arc<MustNot>>,
}

impl BlockedReuse {
    fn planned(&self, tool: &str) -> Option<String> {
        let blocked = self.blocked.tools.iter().any(|entry| entry.trim() == tool.trim());
        blocked.then(|| format!("the new plan names `{tool}`, which R7 had blocked"))
    }

    /// Keeps what a subtask must not use, by its own words and by the directive's, whose word R2 might not have passed on.
    fn give(&mut self, subtask: &SubTask) {
        let mut all = subtask.must_not.clone();
        add_new(&mut all.tools, &self.blocked.tools);
        add_new(&mut all.targets, &self.blocked.targets);
        if *self.latest != all {
            self.latest = Arc::new(all);
        }
        self.given.insert(subtask.subtask_id.clone(), Arc::clone(&self.latest));
    }

    fn used(blocked: &MustNot, call: &ToolCall) -> Option<String> {
        if call.not_run {
            return None;
        }
        let tool = blocked.tools.iter().find(|entry| match entry.trim().split_once(':') {
            Some((tool, program)) => tool == call.tool && call.programs.iter().any(|run| run == program),
            None => entry.trim() == call.tool,
        });
        if let Some(entry) = tool {
            return Some(format!("R3 used `{entry}`, which its subtask must not use"));
        }
        if blocked.targets.is_empty() {
            return None;
        }
        let target = normal(&call.target());
        let hit = blocked.targets.iter().find(|entry| normal(entry) == target)?;
        Some(format!(
            "R3 went for `{}`, which its subtask must not use",
            artoo_protocol::text::one_line(hit, 120)
        ))
    }
}

impl TaskDetector for BlockedReuse {
    const NAME: &'static str = "blocked_reuse";

    fn see(&mut self, seen: &Seen<'_>) -> Option<String> {
        let Seen::Envelope(envelope) = seen else { return None };
        if let Message::PlanDirective(directive) = &envelope.payload {
            self.blocked.tools.clone_from(&directive.blocked_tools);
            self.blocked.targets.clone_from(&directive.blocked_targets);
            None
        } else if let Message::SubTask(subtask) = &envelope.payload {
            self.give(subtask);
            subtask.tools.iter().find_map(|tool| self.planned(tool))
        } else if let Message::ExecutionResult(result) = &envelope.payload {
            // Of a subtask that another process dispatched, nobody here knows what it must not use.
            let blocked = self.given.get(&result.subtask_id)?;
            result.tool_calls.iter().find_map(|call| Self::used(blocked, call))
        } else {
            None
        }
    }
}

fn add_new(to: &mut Vec<String>, from: &[String]) {
    for entry in from {
        if !to.contains(entry) {
            to.push(entry.clone());
        }
    }
}

/// White space collapsed, `./` in front and `/` behind removed.
fn normal(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let path = joined.strip_prefix("./").unwrap_or(&joined);
    path.strip_suffix('/').unwrap_or(path).to_owned()
}
