//! Taking up a task that another process left unfinished (design §17).
//!
//! Owns what has to be settled before its roles go on: where it ran, what it may still spend, which questions are open, and
//! what becomes of an action that cannot be taken back and whose result nobody wrote down.

use std::collections::BTreeSet;
use std::path::Path;

use artoo_bus::SystemClock;
use artoo_bus::journal::read::{self, Found};
use artoo_bus::journal::summary::{Status, TaskSummary};
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::message::{ConfirmationRequest, Consent, Message};
use artoo_protocol::ports::{Clock, Confirm};
use artoo_protocol::text::{one_line, printable};
use artoo_protocol::tool::{Invocation, Permit};
use artoo_protocol::{CallId, TaskId};
use serde_json::Value;

use crate::commands::tasks;
use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::output;
use crate::roles::RoleSettings;
use crate::settings::Settings;

/// An interrupted task, read from its journal.
pub struct Interrupted {
    /// Its journal.
    pub found: Found,
    /// What is in it.
    pub records: Vec<Record>,
    /// What its roles were built from.
    pub roles: RoleSettings,
}

/// An action above `create` that was begun and whose result is not in the journal.
pub struct Unfinished {
    /// The executor's name for it.
    pub call: CallId,
    /// What it was.
    pub invocation: Invocation,
    /// What it was allowed.
    pub permit: Permit,
}

/// Takes the data folder for going on with a task, before anything about it is asked, and reads the task again: another process may
/// have gone on with it meanwhile, and what a person then allows must be about what is left.
///
/// # Errors
/// [`Failure`] when another process has the folder, or the task has ended meanwhile.
pub fn take(settings: &Settings, task: &Interrupted) -> Result<(DataFolder, Interrupted), Failure> {
    let data = DataFolder::open(&settings.data_dir, SystemClock.now())?;
    Ok((data, read_interrupted(task.found.clone())?))
}

/// Tasks that did not end, newest first.
///
/// # Errors
/// [`Failure`] when the folder cannot be read; a journal that cannot is named and passed over.
pub fn interrupted(data: &Path) -> Result<Vec<(Found, TaskSummary)>, Failure> {
    let mut open = Vec::new();
    for found in read::list(&data.join("tasks")).map_err(|e| Failure::failed(e.to_string()))? {
        match read::read_file(&found.path) {
            Ok(contents) => open.extend(
                TaskSummary::of(&contents.records)
                    .filter(|summary| summary.status == Status::Interrupted && has_task(&contents.records))
                    .map(|summary| (found, summary)),
            ),
            Err(error) => output::note(&format!("{}: {error}", found.path.display())),
        }
    }
    open.sort_by_key(|(_, summary)| std::cmp::Reverse(summary.started_at));
    Ok(open)
}

/// Whether the journal got as far as the person's words; without them there is nothing that could go on.
fn has_task(records: &[Record]) -> bool {
    tasks::envelopes(records).any(|envelope| matches!(envelope.payload, Message::UserInput(_)))
}

/// One interrupted task in a line.
pub fn line(summary: &TaskSummary) -> String {
    printable(&format!(
        "{}  {}  {}",
        summary.started_at,
        summary.task_id,
        one_line(&summary.input, 80)
    ))
}

/// The named task, or the newest that did not end; `None` when there is none.
///
/// # Errors
/// [`Failure`] when the named one does not exist, has ended, or cannot be gone on with.
pub fn choose(data: &Path, named: Option<&str>) -> Result<Option<Interrupted>, Failure> {
    let found = if let Some(named) = named {
        tasks::pick(&data.join("tasks"), named)?
    } else {
        let open = interrupted(data)?;
        for (_, summary) in &open {
            output::note(&line(summary));
        }
        match open.into_iter().next() {
            Some((found, _)) => found,
            None => return Ok(None),
        }
    };
    read_interrupted(found).map(Some)
}

fn read_interrupted(found: Found) -> Result<Interrupted, Failure> {
    let records = tasks::contents(&found)?.records;
    let summary =
        TaskSummary::of(&records).ok_or_else(|| Failure::failed(format!("{} holds no task", found.path.display())))?;
    if summary.status == Status::Finished {
        return Err(
            Failure::usage(format!("{} has ended; there is nothing to go on with", found.task_id))
                .hint(format!("artoo tasks show {} tells how", found.task_id)),
        );
    }
    if !has_task(&records) {
        let message = format!("{} was stopped before its task was written down", found.task_id);
        return Err(Failure::usage(message).hint("give the task again"));
    }
    let roles = RoleSettings::of_journal(&records)
        .map_err(|why| Failure::failed(format!("{} cannot go on: its journal {why}", found.task_id)))?;
    Ok(Interrupted { found, records, roles })
}

impl Interrupted {
    /// The task's id.
    pub fn task_id(&self) -> &TaskId {
        read::task_id(&self.records).unwrap_or(&self.found.task_id)
    }

    /// What the person had written.
    pub fn input(&self) -> String {
        TaskSummary::of(&self.records).map_or_else(String::new, |summary| summary.input)
    }

    /// Lets the task go on where it ran, with what it was allowed and may still spend (the stricter
    /// of then and now); which model answers is today's choice.
    ///
    /// # Errors
    /// [`Failure`] (exit 2) when its working directory is gone.
    pub fn apply_to(&self, settings: &mut Settings) -> Result<(), Failure> {
        let recorded = self.records.first().and_then(|record| match &record.entry {
            Entry::Opened { settings, .. } => Some(settings),
            Entry::Published { .. }
            | Entry::Commanded { .. }
            | Entry::Answered { .. }
            | Entry::Stepped { .. }
            | Entry::Closed { .. } => None,
        });
        let text = |name: &str| recorded.and_then(|r| r.get(name)).and_then(Value::as_str);
        if let Some(cwd) = text("cwd") {
            settings.cwd = cwd.into();
        }
        if let Some(workspace) = text("workspace") {
            settings.workspace = workspace.into();
        }
        if !settings.cwd.is_dir() {
            let message = format!(
                "{} ran in {}, which is gone",
                self.found.task_id,
                settings.cwd.display()
            );
            return Err(Failure::usage(message));
        }
        let number = |name: &str| recorded.and_then(|r| r.get(name));
        let tokens = number("max_tokens").and_then(Value::as_u64);
        settings.max_tokens = settings.max_tokens.into_iter().chain(tokens).min();
        let cost = number("max_cost").and_then(Value::as_f64);
        settings.max_cost = settings.max_cost.into_iter().chain(cost).reduce(f64::min);
        settings.no_memory |= number("memory").and_then(Value::as_bool) == Some(false);
        Ok(())
    }

    /// Asks about every action that cannot be taken back and may or may not have happened. Gives those to be done again.
    ///
    /// # Errors
    /// [`Failure`] when the journal does not fit the roles.
    pub async fn settle(&self, confirm: &dyn Confirm) -> Result<BTreeSet<CallId>, Failure> {
        let mut again = BTreeSet::new();
        for unfinished in self.roles.unfinished(&self.records)? {
            let action = action(&unfinished.invocation);
            output::note(&printable(&format!(
                "artoo: this was begun and its result is not known; it may have happened:\n  {action}"
            )));
            let request = ConfirmationRequest {
                request_id: format!("resume-{}", unfinished.call),
                task_id: self.task_id().clone(),
                subtask_id: unfinished.invocation.subtask_id.clone(),
                tool: unfinished.invocation.tool.clone(),
                effect: unfinished.permit.effect,
                action,
                reason: "it was interrupted; yes does it again, no leaves it as it is and tells the executor"
                    .to_owned(),
                grant: None,
            };
            match confirm.confirm(&request).await {
                Consent::Yes | Consent::Always => {
                    again.insert(unfinished.call);
                }
                Consent::No => {}
                Consent::Nobody => output::note("artoo: nobody is there to be asked: it is not done again"),
            }
        }
        Ok(again)
    }

    /// Questions that were put to the person and not answered.
    pub fn open_questions(&self) -> Vec<Message> {
        read::open_questions(&self.records)
    }
}

/// The exact action: the command, or the tool with its input.
fn action(invocation: &Invocation) -> String {
    match invocation.input.get("command").and_then(Value::as_str) {
        Some(command) => command.to_owned(),
        None => format!("{} {}", invocation.tool, invocation.input),
    }
}
