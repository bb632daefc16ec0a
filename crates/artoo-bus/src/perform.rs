//! Performing what roles want done: calls of the ports, bounded, timed, and safe to stop (design §2, §8, §9).
//!
//! Owns the way from a command to its answer. An answer always comes unless the task ended: a missing port, a journal
//! that cannot be written and a panic are answers too. Must not decide whether something may be done; the permit says so.

use std::sync::Arc;

use artoo_protocol::message::{FailureClass, MemoryQuery, MemoryReply};
use artoo_protocol::model::{ModelError, ModelRequest};
use artoo_protocol::ports::{CheckRunner, LanguageModel, MemoryService, Shelf, Toolbox};
use artoo_protocol::tool::{Assessment, CheckReport, CheckRequest, EffectClass, Invocation, Permit, Reach, ToolOutput};
use artoo_protocol::{Answer, Command, TaskId};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::clock::elapsed_since;
use crate::hub::Hub;
use crate::meter::Meter;

/// The ports that a process offers; what is missing is answered with an error that says so.
#[derive(Clone, Default)]
pub struct Ports {
    /// Language models.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Tools.
    pub toolbox: Option<Arc<dyn Toolbox>>,
    /// Machine checks.
    pub checks: Option<Arc<dyn CheckRunner>>,
    /// Memory.
    pub memory: Option<Arc<dyn MemoryService>>,
    /// Where long outputs are kept.
    pub shelf: Option<Arc<dyn Shelf>>,
}

/// How much is done at the same time in the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model calls.
    pub model_calls: usize,
    /// Tool calls and machine checks together.
    pub tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            model_calls: 8,
            tools: 8,
        }
    }
}

/// What all drivers of a process share.
pub struct Shell {
    pub(crate) hub: Hub,
    pub(crate) ports: Ports,
    pub(crate) meter: Meter,
    model_slots: Semaphore,
    tool_slots: Semaphore,
}

impl Shell {
    /// Puts the parts together. Limits of 0 count as 1.
    pub fn new(hub: Hub, ports: Ports, limits: Limits, meter: Meter) -> Self {
        Self {
            hub,
            ports,
            meter,
            model_slots: Semaphore::new(limits.model_calls.clamp(1, Semaphore::MAX_PERMITS)),
            tool_slots: Semaphore::new(limits.tools.clamp(1, Semaphore::MAX_PERMITS)),
        }
    }

    /// The bus.
    pub const fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The budget meter.
    pub const fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// A command that has an answer.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Model(ModelRequest),
    Assess(Invocation),
    Run(Invocation, Permit),
    Check(CheckRequest),
    Recall(MemoryQuery),
}

impl Work {
    /// What it is, in a word.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Model(_) => "model call",
            Self::Assess(_) => "assessment",
            Self::Run(..) => "tool call",
            Self::Check(_) => "check",
            Self::Recall(_) => "recall",
        }
    }

    /// The answer of the right kind that says that it could not be done.
    pub(crate) fn failure(&self, message: &str) -> Answer {
        match self {
            Self::Model(_) => Answer::Model(Err(ModelError::Unusable {
                message: message.to_owned(),
            })),
            Self::Assess(_) => Answer::Assessed(Assessment {
                effect: EffectClass::External,
                reach: Reach::Elsewhere,
                action: String::new(),
                reason: message.to_owned(),
                programs: Vec::new(),
                targets: Vec::new(),
                invalid: Some(message.to_owned()),
                fingerprint: 0,
            }),
            Self::Run(..) => Answer::Ran(ToolOutput {
                error: Some(message.to_owned()),
                failure_class: Some(FailureClass::Environmental),
                ..ToolOutput::default()
            }),
            Self::Check(_) => Answer::Checked(CheckReport {
                passed: false,
                evidence: message.to_owned(),
                failure_class: Some(FailureClass::Environmental),
                faulty: false,
            }),
            Self::Recall(query) => Answer::Recalled(no_memory(query, message.to_owned())),
        }
    }

    /// Does it.
    pub(crate) async fn perform(self, shell: Arc<Shell>, task: TaskId) -> Answer {
        let done = match &self {
            Self::Model(request) => ask(&shell, request).await,
            Self::Assess(invocation) => assess(&shell, invocation).await,
            Self::Run(invocation, permit) => run(&shell, &task, invocation, *permit).await,
            Self::Check(request) => check(&shell, request).await,
            Self::Recall(query) => recall(&shell, query).await,
        };
        done.unwrap_or_else(|message| self.failure(&message))
    }
}

async fn ask(shell: &Shell, request: &ModelRequest) -> Result<Answer, String> {
    let Some(model) = &shell.ports.model else {
        // Not `failure`: without a model no second try makes sense, and roles ask `is_no_model` for that.
        return Ok(Answer::Model(Err(ModelError::Unreachable {
            message: "no model is configured in this process".to_owned(),
        })));
    };
    let _slot = shell.model_slots.acquire().await.map_err(|e| e.to_string())?;
    Ok(Answer::Model(model.complete(request).await))
}

async fn assess(shell: &Shell, invocation: &Invocation) -> Result<Answer, String> {
    let toolbox = shell.ports.toolbox.as_ref().ok_or(NO_TOOLS)?;
    Ok(Answer::Assessed(toolbox.assess(invocation).await))
}

async fn run(shell: &Shell, task: &TaskId, invocation: &Invocation, permit: Permit) -> Result<Answer, String> {
    let toolbox = shell.ports.toolbox.as_ref().ok_or(NO_TOOLS)?;
    let _slot = shell.tool_slots.acquire().await.map_err(|e| e.to_string())?;
    if let Some(journal) = shell.hub.journal() {
        // What leaves something behind needs its intention in the journal: else whoever goes on after a crash would do it once
        // more. What cannot be taken back waits until the disk has it.
        let written = match permit.effect {
            EffectClass::Read | EffectClass::Fetch => Ok(()),
            EffectClass::Create => journal.holds(task),
            EffectClass::Modify | EffectClass::Destroy | EffectClass::External => journal.sync_now(task).await,
        };
        written.map_err(|e| {
            format!(
                "not run, because an action of class `{}` needs the journal: {e}",
                permit.effect
            )
        })?;
    }
    // The last look before the effect: the task may have ended while this waited.
    if shell.hub.phase(task).is_ended() {
        return Err("not run: the task has ended".to_owned());
    }
    let begun = Instant::now();
    let mut output = toolbox.run(invocation, permit).await;
    output.elapsed_ms = elapsed_since(begun);
    Ok(Answer::Ran(output))
}

async fn check(shell: &Shell, request: &CheckRequest) -> Result<Answer, String> {
    let checks = shell
        .ports
        .checks
        .as_ref()
        .ok_or("machine checks are not available in this process")?;
    let _slot = shell.tool_slots.acquire().await.map_err(|e| e.to_string())?;
    Ok(Answer::Checked(checks.run(request).await))
}

async fn recall(shell: &Shell, query: &MemoryQuery) -> Result<Answer, String> {
    let memory = shell
        .ports
        .memory
        .as_ref()
        .ok_or("memory is not available in this process")?;
    memory
        .recall(query, shell.hub.now())
        .await
        .map(Answer::Recalled)
        .map_err(|e| e.to_string())
}

const NO_TOOLS: &str = "tools are not available in this process";

fn no_memory(query: &MemoryQuery, message: String) -> MemoryReply {
    MemoryReply {
        unavailable: Some(message),
        ..MemoryReply::empty(query.task_id.clone(), query.query)
    }
}

/// The task in whose journal a command is written.
pub(crate) fn subject(command: &Command, step_task: Option<&TaskId>) -> Option<TaskId> {
    match command {
        Command::Publish { task_id, .. } => task_id.clone(),
        Command::CallModel { task_id, .. }
        | Command::Assess { task_id, .. }
        | Command::RunTool { task_id, .. }
        | Command::RunCheck { task_id, .. }
        | Command::Recall { task_id, .. }
        | Command::Keep { task_id, .. }
        | Command::Cancel { task_id, .. } => Some(task_id.clone()),
        Command::Store { .. } => step_task.cloned(),
    }
}
