//! The tool loop of one attempt (design §8).
//!
//! Owns how an attempt moves on: model answer → calls → gate → results → model, and how it ends. Must not know other
//! subtasks or how effects are performed.

use artoo_protocol::message::{CorrectionSignal, ExecutionResult, ExecutionStatus, FailureClass, ToolCall};
use artoo_protocol::model::{
    AnswerForm, ChatMessage, ModelContent, ModelError, ModelReply, ModelRequest, ModelToolCall, Tier,
};
use artoo_protocol::tool::{Assessment, EffectClass, Invocation, ToolOutput};
use artoo_protocol::units::{Millis, Timestamp};
use artoo_protocol::{CallId, TaskId};
use serde_json::Value;

use crate::attempt::{Pending, Phase, Stage, Turn, Work, next_turn};
use crate::context;
use crate::conversation::{self, REPORT, Report};
use crate::executor::{ExecutorEffect, Settings, Task};
use crate::gate;

/// The same call this often in a row ends the attempt; one time fewer warns.
const REPEATS_TO_FAIL: u32 = 3;
/// How often a call is looked at, and where needed asked about, again because the world changed before it ran.
const MAX_STALE: u32 = 3;
/// Why an attempt ends whose time is up.
pub const LATE: &str = "the subtask's deadline has passed";
/// Longest text of a model kept in a result, in characters.
const MAX_OUTPUT_CHARACTERS: usize = 60_000;

/// One step at one subtask.
pub(crate) struct Run<'a> {
    pub settings: &'a Settings,
    pub task_id: TaskId,
    pub now: Timestamp,
    pub effects: Vec<ExecutorEffect>,
}

impl Run<'_> {
    /// Begins an attempt.
    pub fn open(&mut self, task: &mut Task, work: &mut Work, correction: Option<&CorrectionSignal>) {
        if self.is_late(work) {
            // A step that waited in the plan for longer than it had: nothing of it is begun.
            return self.broke(work, LATE);
        }
        let settings = self.settings;
        let now = settings.zone.describe(self.now);
        work.conversation = conversation::opening(&settings.system, &settings.facts, &now, &work.subtask, correction);
        self.ask_model(task, work);
    }

    /// Whether the time of a subtask is up.
    pub fn is_late(&self, work: &Work) -> bool {
        work.deadline().is_some_and(|deadline| deadline <= self.now)
    }

    fn ask_model(&mut self, task: &mut Task, work: &mut Work) {
        let most = self.settings.max_context_tokens;
        // What a subtask begins with is for its plan to bound.
        if !context::shorten(&mut work.conversation, most) && work.steps > 0 {
            let reason = format!("the conversation is longer than the {most} tokens that it may have");
            return self.finish(work, ExecutionStatus::Uncertain, "", Some(reason));
        }
        let call = task.take_call();
        let exhausted = self.exhausted(work);
        let offered = self
            .settings
            .tools
            .iter()
            .filter(|tool| !exhausted && !gate::is_blocked_tool(&tool.name, &work.subtask.must_not));
        let tools = offered.cloned().chain([conversation::report_spec()]).collect();
        let request = ModelRequest {
            tier: Tier::Tool,
            messages: work.conversation.clone(),
            form: AnswerForm::Tools { tools },
            max_output_tokens: None,
        };
        work.phase = Phase::Asking { call };
        self.effects.push(ExecutorEffect::CallModel {
            task_id: self.task_id.clone(),
            call,
            request,
        });
    }

    /// Whether the attempt has made all the calls that it may make.
    fn exhausted(&self, work: &Work) -> bool {
        work.steps >= self.settings.max_steps
    }

    /// The model answered.
    pub fn replied(&mut self, task: &mut Task, work: &mut Work, call: CallId, reply: Result<ModelReply, ModelError>) {
        if !matches!(work.phase, Phase::Asking { call: asked } if asked == call) {
            return;
        }
        work.phase = Phase::Ended;
        match reply.map(|reply| reply.content) {
            Err(error) => self.broke(work, &error.to_string()),
            Ok(ModelContent::Text { text }) => self.finish(work, ExecutionStatus::Completed, &text, None),
            Ok(ModelContent::Structured { value }) => {
                self.finish(work, ExecutionStatus::Completed, &value.to_string(), None);
            }
            Ok(ModelContent::ToolCalls { text, calls }) if calls.is_empty() => match text {
                Some(text) => self.finish(work, ExecutionStatus::Completed, &text, None),
                None => self.broke(work, "the model's answer holds neither text nor a call"),
            },
            Ok(ModelContent::ToolCalls { calls, .. })
                if self.exhausted(work) && !calls.iter().any(|call| call.name == REPORT) =>
            {
                let reason = format!("the limit of {} tool calls was reached", self.settings.max_steps);
                self.finish(work, ExecutionStatus::Uncertain, "", Some(reason));
            }
            Ok(ModelContent::ToolCalls { text, calls }) => {
                let calls = calls.into_iter().map(|asked| task.pending(asked)).collect();
                work.phase = Phase::Acting { text, calls };
                work.recorded.clear();
                self.advance(task, work);
            }
        }
    }

    /// Moves the calls of the present answer on as far as possible.
    pub fn advance(&mut self, task: &mut Task, work: &mut Work) {
        loop {
            let Phase::Acting { calls, .. } = &work.phase else {
                return;
            };
            match next_turn(calls) {
                Turn::Wait => return,
                Turn::Assess(at) => self.look_at(task, work, at),
                Turn::Gate(at) => self.pass_gate(task, work, at),
                Turn::Done => return self.continue_conversation(task, work),
            }
        }
    }

    /// Every call is settled: the results go to the model.
    fn continue_conversation(&mut self, task: &mut Task, work: &mut Work) {
        if let Some(reason) = work.doomed.take() {
            return self.finish(work, ExecutionStatus::Failed, "", Some(reason));
        }
        let Phase::Acting { text, calls } = std::mem::replace(&mut work.phase, Phase::Ended) else {
            return;
        };
        let tool_calls = calls.iter().map(|pending| pending.asked.clone()).collect();
        work.conversation.push(ChatMessage::Assistant {
            content: text,
            tool_calls,
        });
        for pending in calls {
            if let Stage::Settled { result } = pending.stage {
                work.conversation.push(ChatMessage::Tool {
                    tool_call_id: pending.asked.id,
                    content: result,
                });
            }
        }
        if self.exhausted(work) {
            let content = "The limit of tool calls is reached. Report now what the results above show.".to_owned();
            work.conversation.push(ChatMessage::User { content });
        }
        self.ask_model(task, work);
    }

    /// A call is looked at for the first time: the report ends the attempt, everything else is to be assessed.
    fn look_at(&mut self, task: &mut Task, work: &mut Work, at: usize) {
        let Some(asked) = work.pending(at).map(|pending| pending.asked.clone()) else {
            return;
        };
        if asked.name == REPORT {
            return self.report(work, at, asked.arguments);
        }
        if work.doomed.is_some() || self.exhausted(work) {
            return work.settle(at, "not run: the limit of tool calls is reached".to_owned());
        }
        work.steps = work.steps.saturating_add(1);
        let times = work.repeated(conversation::normalised(&asked.name, &asked.arguments));
        if times >= REPEATS_TO_FAIL {
            let reason = format!("the same call was made {times} times in a row");
            self.refuse(work, at, EffectClass::Read, &reason, FailureClass::Logical);
            work.doomed = Some(reason);
            return;
        }
        // A tool blocked by name is refused without even looking at what the call would do.
        if gate::is_blocked_tool(&asked.name, &work.subtask.must_not) {
            return self.refuse(
                work,
                at,
                EffectClass::Read,
                "this tool must not be used here: choose another",
                FailureClass::Logical,
            );
        }
        if let Some(pending) = work.pending(at) {
            pending.warned = times > 1;
        }
        self.find_out(task, work, at, &asked);
    }

    /// Finds out what a call would do: before it is judged, and once more when the world changed under a question.
    fn find_out(&mut self, task: &mut Task, work: &mut Work, at: usize, asked: &ModelToolCall) {
        let call = task.take_call();
        let invocation = self.invocation(task, work, asked);
        if let Some(pending) = work.pending(at) {
            pending.stage = Stage::Assessing { call };
        }
        self.effects.push(ExecutorEffect::Assess {
            task_id: self.task_id.clone(),
            call,
            invocation,
        });
    }

    fn report(&mut self, work: &mut Work, at: usize, arguments: Value) {
        match serde_json::from_value::<Report>(arguments) {
            Ok(report) => {
                let mut result = self.result(work, report.status, &report.output, report.reason);
                result.infeasible = report.status == ExecutionStatus::Failed;
                self.close(work, result);
            }
            Err(error) => {
                if self.exhausted(work) {
                    let reason = format!("its report could not be read: {error}");
                    return self.finish(work, ExecutionStatus::Uncertain, "", Some(reason));
                }
                work.steps = work.steps.saturating_add(1);
                work.settle(
                    at,
                    format!("error: `report` needs status (completed, uncertain or failed) and output: {error}"),
                );
            }
        }
    }

    /// The effect of a call is known.
    pub fn assessed(&mut self, task: &mut Task, work: &mut Work, call: CallId, assessment: Assessment) {
        let Some(pending) = work.find(|stage| matches!(stage, Stage::Assessing { call: asked } if *asked == call))
        else {
            return;
        };
        pending.stage = match assessment.invalid {
            Some(error) => Stage::Settled {
                result: format!("error: {error}"),
            },
            None => Stage::Assessed { assessment },
        };
        self.advance(task, work);
    }

    /// A tool has run.
    pub fn ran(&mut self, task: &mut Task, work: &mut Work, call: CallId, output: ToolOutput) {
        let running = |p: &Pending| matches!(&p.stage, Stage::Running { call: asked, .. } if *asked == call);
        let Some((at, pending)) = work.position(running).and_then(|at| Some((at, work.pending(at)?))) else {
            return;
        };
        let Stage::Running {
            assessment, started_at, ..
        } = &pending.stage
        else {
            return;
        };
        let (assessment, started_at) = (assessment.clone(), *started_at);
        if output.stale && pending.stale < MAX_STALE {
            pending.stale += 1;
            let asked = pending.asked.clone();
            self.find_out(task, work, at, &asked);
            return;
        }
        let mut result = conversation::result_text(&output, self.settings.shown_characters);
        if pending.warned {
            result.push_str(
                "Warning: this was the same call as before. A third time ends the attempt; do something else.\n",
            );
        }
        pending.stage = Stage::Settled { result };
        let asked = pending.asked.clone();
        // Only what did not exist before is the task's own.
        if assessment.effect == EffectClass::Create && output.error.is_none() {
            task.created.extend(output.touched.iter().cloned());
        }
        let elapsed_ms = if output.elapsed_ms == Millis(0) {
            self.now.since(started_at)
        } else {
            output.elapsed_ms
        };
        let record = ToolCall {
            tool: asked.name,
            input: asked.arguments,
            output: output.output,
            truncated: output.truncated,
            lines: output.lines,
            exit: output.exit,
            error: output.error,
            failure_class: output.failure_class,
            started_at,
            elapsed_ms,
            interrupted: output.interrupted,
            effect: assessment.effect,
            programs: if output.programs.is_empty() {
                assessment.programs
            } else {
                output.programs
            },
            touched: output.touched,
            not_run: false,
        };
        work.record(at, record);
        self.advance(task, work);
    }

    pub fn invocation(&self, task: &Task, work: &Work, asked: &ModelToolCall) -> Invocation {
        Invocation {
            tool: asked.name.clone(),
            input: asked.arguments.clone(),
            task_id: self.task_id.clone(),
            subtask_id: work.subtask.subtask_id.clone(),
            scope: work.subtask.scope.clone(),
            created: task.created.clone(),
        }
    }

    /// Ends the attempt because something under it broke: no retry makes sense.
    pub fn broke(&mut self, work: &mut Work, reason: &str) {
        let mut result = self.result(work, ExecutionStatus::Failed, "", Some(reason.to_owned()));
        result.infrastructure = true;
        self.close(work, result);
    }

    fn finish(&mut self, work: &mut Work, status: ExecutionStatus, output: &str, reason: Option<String>) {
        let result = self.result(work, status, output, reason);
        self.close(work, result);
    }

    fn result(&self, work: &Work, status: ExecutionStatus, output: &str, reason: Option<String>) -> ExecutionResult {
        ExecutionResult {
            subtask_id: work.subtask.subtask_id.clone(),
            parent_task_id: self.task_id.clone(),
            attempt: work.attempt,
            status,
            output: artoo_protocol::text::head_tail(output, MAX_OUTPUT_CHARACTERS),
            reason,
            infrastructure: false,
            infeasible: false,
            refused: work.refused,
            tool_calls: Vec::new(),
        }
    }

    /// Stops what still runs, hands over the evidence and waits for a correction.
    fn close(&mut self, work: &mut Work, mut result: ExecutionResult) {
        for call in work.outstanding() {
            self.effects.push(ExecutorEffect::Cancel {
                task_id: self.task_id.clone(),
                call,
            });
        }
        result.tool_calls = std::mem::take(&mut work.calls);
        work.conversation.clear();
        work.phase = Phase::Ended;
        self.effects.push(ExecutorEffect::Finish(result));
    }
}
