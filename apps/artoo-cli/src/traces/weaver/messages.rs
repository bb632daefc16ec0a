//! What is said on the bus, as spans: plans, subtasks and their attempts, replans, questions, the end (docs/traces.md).

use artoo_protocol::message::{CorrectionSignal, DispatchManifest, PlanDirective, PlanningFailed, SubTask};
use artoo_protocol::{Envelope, Message, SubTaskId};

use super::{ROOT, Running, Weaver, told};
use crate::report::word;
use crate::traces::spans::{Kind, Value};

impl Weaver<'_> {
    pub(super) fn published(&mut self, envelope: &Envelope) {
        if let Some(subtask) = self.subject(&envelope.payload) {
            self.heard.insert(envelope.seq, subtask);
        }
        match &envelope.payload {
            Message::MemoryQuery(_) => self.planning(),
            Message::DispatchManifest(manifest) => self.planned(manifest),
            Message::PlanningFailed(failed) => self.not_planned(failed),
            Message::SubTask(subtask) => self.started(subtask),
            Message::ExecutionResult(result) => {
                let attempt = self.attempt_of(Some(&result.subtask_id));
                self.tell(attempt, "artoo.attempt.status", word(&result.status).as_str());
                self.count(attempt, "artoo.attempt.tool_calls", result.tool_calls.len());
            }
            Message::CorrectionSignal(signal) => self.corrected(signal),
            Message::SubTaskOutcome(outcome) => {
                if let Some(running) = self.running.remove(&outcome.subtask_id) {
                    told::outcome(&mut self.trace.spans, running.span, &running.attempts, outcome);
                    self.end(running.attempt);
                    self.end(running.span);
                }
            }
            Message::ReplanRequest(_) => {
                let span = self.begin(Some(ROOT), "replan".to_owned(), Kind::Internal);
                self.replan = Some(span);
            }
            Message::PlanDirective(directive) => self.directed(directive),
            Message::ConfirmationRequest(request) => {
                let parent = self.attempt_of(Some(&request.subtask_id));
                let span = self.begin(Some(parent), "confirmation".to_owned(), Kind::Internal);
                self.tell(span, "gen_ai.tool.name", request.tool.as_str());
                self.tell(span, "artoo.effect", request.effect.name());
                let asked = (span, Some(request.subtask_id.clone()));
                self.asked.insert(request.request_id.clone(), asked);
            }
            Message::ConfirmationAnswer(answer) => {
                if let Some((span, _)) = self.asked.remove(&answer.request_id) {
                    self.tell(span, "artoo.consent", word(&answer.consent).as_str());
                    self.end(span);
                }
            }
            Message::ClarificationRequest(request) => {
                let span = self.begin(Some(ROOT), "clarification".to_owned(), Kind::Internal);
                self.count(span, "artoo.questions", request.questions.len());
                self.asked.insert(round_name(request.round), (span, None));
            }
            Message::ClarificationAnswer(answer) => {
                if let Some((span, _)) = self.asked.remove(&round_name(answer.round)) {
                    self.end(span);
                }
            }
            Message::TaskResumed(_) => {
                self.resumed += 1;
                self.put(ROOT, "artoo.resumed", Value::Int(self.resumed));
            }
            Message::FinalResult(result) => told::ending(&mut self.trace.spans, ROOT, result),
            Message::UserInput(_)
            | Message::TaskSpec(_)
            | Message::DirectAnswer(_)
            | Message::MemoryReply(_)
            | Message::OutcomeSummary(_)
            | Message::PartialResultRequest(_)
            | Message::PartialResult(_)
            | Message::BudgetReached(_)
            | Message::TaskAborted(_)
            | Message::Megram(_)
            | Message::AuditQuery(_)
            | Message::AuditReport(_) => {}
        }
    }

    /// The subtask that a message is about.
    fn subject(&self, message: &Message) -> Option<SubTaskId> {
        match message {
            Message::SubTask(message) => Some(message.subtask_id.clone()),
            Message::ExecutionResult(message) => Some(message.subtask_id.clone()),
            Message::CorrectionSignal(message) => Some(message.subtask_id.clone()),
            Message::ConfirmationAnswer(message) => self.asked.get(&message.request_id)?.1.clone(),
            // Nothing else sets R3 or R4a to work on one subtask.
            _ => None,
        }
    }

    fn planning(&mut self) {
        if self.plan.is_none() {
            self.round += 1;
            let span = self.begin(Some(ROOT), "plan artoo".to_owned(), Kind::Internal);
            self.operation(span, "plan");
            self.tell(span, "gen_ai.agent.name", "artoo");
            self.put(span, "artoo.round", Value::Int(self.round));
            self.plan = Some(span);
        }
    }

    fn planned(&mut self, manifest: &DispatchManifest) {
        if let Some(span) = self.plan.take() {
            self.count(span, "artoo.plan.subtasks", manifest.subtasks.len());
            self.count(span, "artoo.plan.carried", manifest.carried.len());
            self.count(span, "artoo.plan.task_criteria", manifest.task_criteria.len());
            self.count(span, "artoo.plan.memories", manifest.rules_used.len());
            self.end(span);
        }
    }

    fn not_planned(&mut self, failed: &PlanningFailed) {
        if let Some(span) = self.plan.take() {
            let cause = word(&failed.cause);
            self.fail(span, &cause, "no valid plan was made");
            self.end(span);
        }
    }

    fn started(&mut self, subtask: &SubTask) {
        let span = self.begin(Some(ROOT), "subtask".to_owned(), Kind::Internal);
        self.tell(span, "artoo.subtask.id", subtask.subtask_id.as_str());
        self.put(span, "artoo.subtask.sequence", Value::Int(subtask.sequence.into()));
        self.put(span, "artoo.round", Value::Int(self.round));
        self.count(span, "artoo.subtask.criteria", subtask.success_criteria.len());
        let attempt = self.try_once(span, 1);
        let running = Running {
            span,
            attempt,
            attempts: vec![attempt],
        };
        self.running.insert(subtask.subtask_id.clone(), running);
    }

    fn try_once(&mut self, subtask: usize, number: u32) -> usize {
        let attempt = self.begin(Some(subtask), "attempt".to_owned(), Kind::Internal);
        self.put(attempt, "artoo.attempt", Value::Int(number.into()));
        attempt
    }

    fn corrected(&mut self, signal: &CorrectionSignal) {
        let Some(running) = self.running.get(&signal.subtask_id) else {
            return;
        };
        let (span, attempt) = (running.span, running.attempt);
        self.fail(attempt, &word(&signal.failure_class), "a criterion was not met");
        self.end(attempt);
        let next = self.try_once(span, signal.attempt_number.saturating_add(1));
        if let Some(running) = self.running.get_mut(&signal.subtask_id) {
            running.attempt = next;
            running.attempts.push(next);
        }
    }

    fn directed(&mut self, directive: &PlanDirective) {
        let span = self.replan.take();
        let span = span.unwrap_or_else(|| self.begin(Some(ROOT), String::new(), Kind::Internal));
        if let Some(span) = self.trace.spans.get_mut(span) {
            span.name = format!("replan {}", directive.directive.name());
        }
        told::directive(&mut self.trace.spans, span, directive);
        self.put(span, "artoo.round", Value::Int(self.round));
        self.end(span);
    }
}

/// Under which name a round of questions is remembered; no question of the gate has such a one.
fn round_name(round: u32) -> String {
    format!("clarification {round}")
}
