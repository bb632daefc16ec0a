//! Subtasks, attempts and answers as R4a's tests build them.

use artoo_protocol::message::{Criterion, ExecutionResult, ExecutionStatus, Mode, SubTask, ToolCall};
use artoo_protocol::{SubTaskId, TaskId};

pub(crate) fn criterion(text: &str, mode: Mode, check: Option<&str>) -> Criterion {
    Criterion {
        criterion: text.to_owned(),
        mode,
        check: check.map(|json| serde_json::from_str(json).unwrap()),
    }
}

pub(crate) fn task() -> TaskId {
    TaskId::new("count_lines_0123abcd")
}

pub(crate) fn subtask(criteria: Vec<Criterion>) -> SubTask {
    SubTask {
        subtask_id: SubTaskId::new("s1"),
        parent_task_id: task(),
        intent: "Count the lines of a.txt".to_owned(),
        context: String::new(),
        success_criteria: criteria,
        sequence: 1,
        tools: Vec::new(),
        deadline: None,
        must_not: artoo_protocol::message::MustNot::default(),
        caution: None,
        scope: Vec::new(),
    }
}

pub(crate) fn result(attempt: u32, tool_calls: Vec<ToolCall>) -> ExecutionResult {
    ExecutionResult {
        subtask_id: SubTaskId::new("s1"),
        parent_task_id: task(),
        attempt,
        status: ExecutionStatus::Completed,
        output: "a.txt has 5 lines.".to_owned(),
        reason: None,
        infrastructure: false,
        infeasible: false,
        refused: false,
        tool_calls,
    }
}
