//! The shell that runs checks: files are read off the runtime's threads, commands go through the toolbox (design §7).
//!
//! Owns time limits and the rule that a check only reads: a command that could do anything else is not run, and makes
//! the check faulty. Knows no tool by its code.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use artoo_protocol::message::{Check, FailureClass};
use artoo_protocol::ports::{CheckRunner, Toolbox};
use artoo_protocol::text::{head_tail, one_line};
use artoo_protocol::tool::{CheckReport, CheckRequest, EffectClass, Invocation, Permit, Reach, ToolOutput};
use artoo_protocol::{Millis, SubTaskId, TaskId};
use async_trait::async_trait;
use serde_json::json;

use super::calls::SHELL;
use super::files::{Mask, Places};
use super::vouching::{Evidence, wrote_both_sides};
use super::{blocked, calls, defect, failed, faulty, files, passed};

/// What checks may look at and for how long.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The user's working directory, absolute.
    pub cwd: PathBuf,
    /// The folder for what the agent makes, absolute.
    pub workspace: PathBuf,
    /// What `~` stands for, if known.
    pub home: Option<PathBuf>,
    /// Longest look at files.
    pub file_limit: Millis,
    /// Longest run of a command.
    pub command_limit: Millis,
}

impl WorldConfig {
    /// The usual limits: 30 seconds for files, 120 seconds for a command.
    pub fn new(cwd: PathBuf, workspace: PathBuf, home: Option<PathBuf>) -> Self {
        Self {
            cwd,
            workspace,
            home,
            file_limit: Millis::from_seconds(30),
            command_limit: Millis::from_seconds(120),
        }
    }
}

/// Why no command can be held to reading; `None` where one can.
pub type Unheld = dyn Fn() -> Option<String> + Send + Sync;

/// Runs every kind of check against the real world.
pub struct WorldChecks {
    places: Places,
    file_limit: Duration,
    command_limit: Duration,
    tools: Arc<dyn Toolbox>,
    mask: Arc<Mask>,
    unheld: Arc<Unheld>,
}

impl WorldChecks {
    /// Commands are run by `tools`, which must offer `shell`.
    pub fn new(config: WorldConfig, tools: Arc<dyn Toolbox>) -> Self {
        Self {
            places: Places {
                cwd: config.cwd,
                workspace: config.workspace,
                home: config.home,
            },
            file_limit: config.file_limit.to_duration(),
            command_limit: config.command_limit.to_duration(),
            tools,
            mask: Arc::new(str::to_owned),
            unheld: Arc::new(|| None),
        }
    }

    /// Runs no command where `unheld` says why nothing on this machine holds one to reading. It is asked at the first
    /// check that runs a command, not before.
    #[must_use]
    pub fn unless(mut self, unheld: Arc<Unheld>) -> Self {
        self.unheld = unheld;
        self
    }

    /// Puts everything that is shown as evidence through `mask`, which replaces secrets.
    #[must_use]
    pub fn masked_by(mut self, mask: Arc<Mask>) -> Self {
        self.mask = mask;
        self
    }

    async fn look(&self, request: &CheckRequest) -> CheckReport {
        let stop = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let (flag, mask) = (Arc::clone(&stop.0), Arc::clone(&self.mask));
        let (places, request) = (self.places.clone(), request.clone());
        let looking = tokio::task::spawn_blocking(move || {
            calls::decide(&request.check, Evidence::from(&request))
                .or_else(|| files::decide(&request, &places, &*mask, &flag))
                .unwrap_or_else(|| faulty("this check is of no kind that can be run here"))
        });
        match tokio::time::timeout(self.file_limit, looking).await {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => blocked("the check was stopped"),
            Err(_) => blocked(format!("the check did not end within {} s", self.file_limit.as_secs())),
        }
    }

    async fn command_in_time(&self, command: &str, made: &[String]) -> CheckReport {
        let limit = self.command_limit;
        tokio::time::timeout(limit, self.command(command, made))
            .await
            .unwrap_or_else(|_| {
                let shown = one_line(command, 200);
                blocked(format!("`{shown}` did not end within {} s", limit.as_secs()))
            })
    }

    async fn command(&self, command: &str, made: &[String]) -> CheckReport {
        let invocation = Invocation {
            tool: SHELL.to_owned(),
            input: json!({ "command": command }),
            // A check belongs to no subtask; nothing that it may do depends on one.
            task_id: TaskId::new("check"),
            subtask_id: SubTaskId::new("check"),
            scope: Vec::new(),
            created: made.to_vec(),
        };
        let shown = one_line(command, 200);
        let assessment = self.tools.assess(&invocation).await;
        if let Some(reason) = assessment.invalid {
            return faulty(format!("`{shown}` cannot be run: {}", one_line(&reason, 300)));
        }
        if let Some(why) = (self.unheld)() {
            return blocked(format!(
                "`{shown}` is not run, because nothing on this machine holds a command to reading ({}): another kind of check would tell",
                one_line(&why, 300)
            ));
        }
        if assessment.effect != EffectClass::Read || assessment.reach != Reach::Nowhere {
            return faulty(format!(
                "`{shown}` is not run, because a check may only read and this could {}: {}",
                assessment.effect,
                one_line(&assessment.reason, 300)
            ));
        }
        let permit = Permit {
            effect: EffectClass::Read,
            confirmed: false,
            seen: 0,
        };
        judged(&shown, &self.tools.run(&invocation, permit).await)
    }
}

/// Whoever gives up on a look, by time-out or by being dropped, also ends it.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[async_trait]
impl CheckRunner for WorldChecks {
    async fn run(&self, request: &CheckRequest) -> CheckReport {
        if let Some(reason) = defect(&request.check) {
            return faulty(reason);
        }
        let mut report = match &request.check {
            Check::CommandSucceeds { command } => match wrote_both_sides(command, Evidence::from(request)) {
                Some(why) => failed(why),
                None => self.command_in_time(command, &request.made).await,
            },
            Check::ExitCode { .. }
            | Check::FileExists { .. }
            | Check::FileAbsent { .. }
            | Check::FileContains { .. }
            | Check::OutputMatches { .. }
            | Check::OutputEquals { .. }
            | Check::JsonPath { .. }
            | Check::Count { .. }
            | Check::Sha256 { .. } => self.look(request).await,
        };
        report.evidence = (self.mask)(&report.evidence);
        report
    }
}

fn judged(command: &str, output: &ToolOutput) -> CheckReport {
    let tail = one_line(&head_tail(&output.output, 300), 400);
    if output.interrupted {
        return blocked(format!("`{command}` was interrupted: {tail}"));
    }
    if let Some(error) = &output.error {
        let class = output.failure_class.unwrap_or(FailureClass::Environmental);
        return CheckReport {
            failure_class: Some(class),
            ..failed(format!("`{command}` failed: {}", one_line(error, 300)))
        };
    }
    match output.exit {
        Some(0) => passed(format!("`{command}` exited with 0: {tail}")),
        Some(code) => CheckReport {
            failure_class: output.failure_class,
            ..failed(format!("`{command}` exited with {code}: {tail}"))
        },
        None => blocked(format!("`{command}` ended without an exit status: {tail}")),
    }
}
