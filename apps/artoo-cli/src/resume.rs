//! Taking up a task that another process left unfinished (design §17).
//!
//! Owns what has to be settled before its roles go on: where it ran, what it may still spend, which questions are open, and
//! what becomes of an action that cannot be taken back and whose result nobody wrote down.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use artoo_bus::SystemClock;
use artoo_bus::journal::Resumption;
use artoo_bus::journal::read::{self, Found};
use artoo_bus::journal::summary::{Status, TaskSummary};
use artoo_executor::Grant;
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
use crate::roles::RoleSettings;
use crate::settings::Settings;
use crate::{complain, output};

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

/// What the person decided before a task goes on.
#[derive(Debug)]
pub struct Settled {
    /// The actions that are done again.
    pub again: BTreeSet<CallId>,
    /// What the journal is to hold of it.
    pub told: Resumption,
}

/// Takes the data folder for going on with a task, before anything about it is asked, and reads the task again: another process may
/// have gone on with it meanwhile, and what a person then allows must be about what is left.
///
/// # Errors
/// [`Failure`] when another process has the folder, or the task has ended meanwhile.
pub fn take(settings: &Settings, task: &Interrupted) -> Result<(DataFolder, Interrupted), Failure> {
    let data = DataFolder::open(&settings.data_dir, SystemClock.now())?;
    // Whoever had it until now may have given its file the name of the run, or dropped it.
    let id = &task.found.task_id;
    let found = read::find(&settings.data_dir.join("tasks"), id).map_err(|e| Failure::failed(e.to_string()))?;
    let found = found.ok_or_else(|| {
        Failure::usage(format!("{id} is gone: somebody dropped it meanwhile"))
            .hint("artoo tasks list shows what there is")
    })?;
    Ok((data, read_interrupted(found)?))
}

/// Tasks that did not end and can be gone on with, newest first. Of those that have ended only the last line is read.
///
/// # Errors
/// [`Failure`] when the folder cannot be read; a journal that cannot, or that does not hold what its task would go on from, is named
/// and passed over.
pub fn interrupted(data: &Path) -> Result<Vec<(Found, TaskSummary)>, Failure> {
    let Open { tasks, lost } = unfinished(data)?;
    lost.iter().for_each(complain);
    Ok(tasks)
}

/// The tasks that did not end.
struct Open {
    /// Those that can go on, newest first.
    tasks: Vec<(Found, TaskSummary)>,
    /// Why others cannot.
    lost: Vec<Failure>,
}

fn unfinished(data: &Path) -> Result<Open, Failure> {
    let (mut tasks, mut lost) = (Vec::new(), Vec::new());
    for found in read::list(&data.join("tasks")).map_err(|e| Failure::failed(e.to_string()))? {
        // What cannot be opened is named below.
        if read::closes_with_its_end(&found.path).unwrap_or(false) {
            continue;
        }
        let records = match read::read_file(&found.path) {
            Ok(contents) => contents.records,
            Err(error) => {
                output::note(&format!("{}: {error}", found.path.display()));
                continue;
            }
        };
        let summary = TaskSummary::of(&records);
        let Some(summary) = summary.filter(|s| s.status == Status::Interrupted && has_task(&records)) else {
            continue;
        };
        match read::lost_secret(&records) {
            Some(record) => lost.push(without_its_secret(&found.task_id, record)),
            None => tasks.push((found, summary)),
        }
    }
    tasks.sort_by_key(|(_, summary)| std::cmp::Reverse(summary.started_at));
    Ok(Open { tasks, lost })
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
/// [`Failure`] when the named one, or the only one that there is, does not exist, has ended, or cannot be gone on with.
pub fn choose(data: &Path, named: Option<&str>) -> Result<Option<Interrupted>, Failure> {
    let found = if let Some(named) = named {
        tasks::pick(&data.join("tasks"), named)?
    } else {
        let Open { tasks: open, mut lost } = unfinished(data)?;
        if open.is_empty()
            && let Some(only) = lost.pop()
        {
            lost.iter().for_each(complain);
            return Err(only);
        }
        lost.iter().for_each(complain);
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
    if let Some(record) = read::lost_secret(&records) {
        return Err(without_its_secret(&found.task_id, record));
    }
    let roles = RoleSettings::of_journal(&records)
        .map_err(|why| Failure::failed(format!("{} cannot go on: its journal {why}", found.task_id)))?;
    Ok(Interrupted { found, records, roles })
}

/// Secrets are masked before anything is written down, so that a task that goes on would write, send or look for the mask.
fn without_its_secret(task: &TaskId, record: u64) -> Failure {
    Failure::failed(format!(
        "{task} cannot go on: a secret in this task was not kept in its journal (record {record})"
    ))
    .hint(format!(
        "give the task again; `artoo undo {task}` puts back what it changed, and `artoo tasks rm {task}` drops it"
    ))
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

    /// Lets the task go on where it ran, with what it was allowed then, the time it was given, and what it may still spend (the
    /// stricter of then and now); which model answers is today's choice.
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
        // What R3 decides by: a grant that only one of it and its tools knew of would loosen what confines a command.
        settings.allow = self.grants().into_iter().map(String::from).collect();
        let scope = recorded.and_then(|r| r.get("scope")).and_then(Value::as_array);
        settings.scope = scope.map_or_else(Vec::new, |scope| {
            scope.iter().filter_map(Value::as_str).map(PathBuf::from).collect()
        });
        settings.time_budget = self.roles.controller.time_budget_ms;
        let number = |name: &str| recorded.and_then(|r| r.get(name));
        let tokens = number("max_tokens").and_then(Value::as_u64);
        settings.max_tokens = settings.max_tokens.into_iter().chain(tokens).min();
        let cost = number("max_cost").and_then(Value::as_f64);
        settings.max_cost = settings.max_cost.into_iter().chain(cost).reduce(f64::min);
        settings.no_memory |= number("memory").and_then(Value::as_bool) == Some(false);
        Ok(())
    }

    /// What the person had allowed before the task began.
    pub fn grants(&self) -> Vec<Grant> {
        self.roles.executor.grants.clone()
    }

    /// Asks about every action that cannot be taken back and may or may not have happened. Gives those to be done again, and what was
    /// asked and answered, for the journal.
    ///
    /// # Errors
    /// [`Failure`] when the journal does not fit the roles.
    pub async fn settle(&self, confirm: &dyn Confirm) -> Result<Settled, Failure> {
        let mut again = BTreeSet::new();
        let mut told = Resumption {
            person_present: Some(confirm.person_present()),
            settled: Vec::new(),
        };
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
            let consent = confirm.confirm(&request).await;
            told.settled.push((request, consent));
            match consent {
                Consent::Yes | Consent::Always => {
                    again.insert(unfinished.call);
                }
                Consent::No => {}
                Consent::Nobody => output::note("artoo: nobody is there to be asked: it is not done again"),
            }
        }
        Ok(Settled { again, told })
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

#[cfg(test)]
mod tests {
    use artoo_protocol::{Millis, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::args::Options;
    use crate::settings::{self, Environment};

    #[test]
    fn a_task_is_allowed_what_it_was_allowed_whatever_is_allowed_today() {
        let dir = tempfile::tempdir().unwrap();
        let task_id = TaskId::new("x_0000000a");
        let mut roles = RoleSettings::default();
        roles.executor.grants = vec![Grant::parse("modify:/srv/site/*").unwrap()];
        roles.controller.time_budget_ms = Millis(60_000);
        let opened = Entry::Opened {
            format: 1,
            artoo: "0".into(),
            task_id: task_id.clone(),
            settings: json!({"cwd": dir.path(), "scope": ["/srv/site"], "allow": ["modify:/srv/site/*"]}),
        };
        let task = Interrupted {
            found: Found {
                task_id,
                path: dir.path().join("x_0000000a.jsonl"),
            },
            records: vec![Record {
                n: 1,
                at: Timestamp::from_millis(0),
                masked: false,
                entry: opened,
            }],
            roles,
        };
        let options = Options {
            data_dir: Some(dir.path().to_owned()),
            ..Options::default()
        };
        for today in [&[][..], &["modify:*", "destroy:*"]] {
            let env = Environment::from([("HOME".to_owned(), dir.path().display().to_string())]);
            let mut settings = settings::load(&options, &env).unwrap();
            settings.allow = today.iter().map(|&grant| grant.to_owned()).collect();
            settings.scope = vec!["/elsewhere".into()];
            task.apply_to(&mut settings).unwrap();
            assert_eq!(settings.allow, ["modify:/srv/site/*"]);
            assert_eq!(settings.scope, [PathBuf::from("/srv/site")]);
            assert_eq!(settings.time_budget, Millis(60_000));
        }
    }
}
