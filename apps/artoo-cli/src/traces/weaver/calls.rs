//! What roles have done for them, as spans: model calls, tool calls, checks, looks into memory (docs/traces.md).

use artoo_protocol::model::{AnswerForm, ModelRequest};
use artoo_protocol::tool::CheckRequest;
use artoo_protocol::{Answer, CallId, Command, Role, SubTaskId};

use super::{ROOT, Waiting, Weaver, told};
use crate::report::word;
use crate::traces::spans::{Kind, Value};

impl Weaver<'_> {
    pub(super) fn commanded(&mut self, role: Role, command: &Command) {
        let (call, span, subtask) = match command {
            Command::CallModel { call, request, .. } => {
                let subtask = self.turn.get(&role).cloned().flatten();
                (*call, Some(self.chat(role, request, subtask.as_ref())), subtask)
            }
            Command::RunTool {
                call,
                invocation,
                permit,
                ..
            } => {
                let parent = self.attempt_of(Some(&invocation.subtask_id));
                let span = self.begin(Some(parent), told::tool_span(&invocation.tool), Kind::Internal);
                self.operation(span, "execute_tool");
                told::tool(&mut self.trace.spans, span, (role, *call), &invocation.tool, *permit);
                (*call, Some(span), Some(invocation.subtask_id.clone()))
            }
            Command::RunCheck { call, request, .. } => {
                let subtask = self.turn.get(&role).cloned().flatten();
                (*call, Some(self.check(role, request, subtask.as_ref())), subtask)
            }
            Command::Recall { call, .. } => {
                let span = self.begin(
                    Some(self.plan.unwrap_or(ROOT)),
                    "search_memory".to_owned(),
                    Kind::Internal,
                );
                self.operation(span, "search_memory");
                (*call, Some(span), None)
            }
            Command::Assess { call, invocation, .. } => (*call, None, Some(invocation.subtask_id.clone())),
            Command::Cancel { call, .. } => {
                let stopped = self.waiting.remove(&(role, *call)).and_then(|stopped| stopped.span);
                if let Some(span) = stopped {
                    self.put(span, "artoo.cancelled", Value::Flag(true));
                    self.end(span);
                }
                return;
            }
            Command::Publish { .. } | Command::Keep { .. } | Command::Store { .. } => return,
        };
        self.waiting.insert((role, call), Waiting { span, subtask });
    }

    fn chat(&mut self, role: Role, request: &ModelRequest, subtask: Option<&SubTaskId>) -> usize {
        let called = (self.about.models)(request.tier);
        let name = called
            .model
            .as_ref()
            .map_or_else(|| "chat".to_owned(), |model| format!("chat {}", told::bounded(model)));
        let parent = match role {
            Role::R2 => self.plan.unwrap_or(ROOT),
            Role::R3 | Role::R4a => self.attempt_of(subtask),
            Role::R1 | Role::R4b | Role::R5 | Role::R6 | Role::R7 | Role::User | Role::Runtime => ROOT,
        };
        let span = self.begin(Some(parent), name, Kind::Client);
        self.operation(span, "chat");
        told::asked(&mut self.trace.spans, span, &called);
        self.tell(span, "artoo.role", role.to_string().as_str());
        self.tell(span, "artoo.tier", word(&request.tier).as_str());
        if let AnswerForm::Structured { name, .. } = &request.form {
            self.tell(span, "gen_ai.output.type", "json");
            self.tell(span, "artoo.form", name.as_str());
        }
        span
    }

    fn check(&mut self, role: Role, request: &CheckRequest, subtask: Option<&SubTaskId>) -> usize {
        let kind = told::check_kind(&request.check);
        let parent = self.attempt_of(subtask);
        let span = self.begin(Some(parent), format!("check {kind}"), Kind::Internal);
        self.tell(span, "artoo.check.kind", kind.as_str());
        self.tell(span, "artoo.role", role.to_string().as_str());
        span
    }

    pub(super) fn answered(&mut self, role: Role, call: CallId, answer: &Answer) {
        // What its role does next is still about the same subtask, so the call itself stays until the step.
        let span = self
            .waiting
            .get_mut(&(role, call))
            .and_then(|waited| waited.span.take());
        if let Some(span) = span {
            told::answer(&mut self.trace.spans, span, answer);
            self.end(span);
        }
    }
}
