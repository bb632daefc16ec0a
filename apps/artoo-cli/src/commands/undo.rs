//! `artoo undo`: puts back what artoo's own tools overwrote or deleted (design §8).

use std::path::Path;
use std::sync::Arc;

use artoo_bus::journal::read::{self, ReadError};
use artoo_bus::{Journal, JournalError, JournalOptions, SystemClock};
use artoo_executor::undo::{self, Outcome, Restored, Unwilling};
use artoo_protocol::TaskId;
use artoo_protocol::text::printable;
use serde_json::json;

use super::naming::{self, Meant};
use crate::failure::Failure;
use crate::output;

/// Puts back what a task's tools overwrote or deleted, and says what came of each path. A task that had not ended is stopped with it.
/// The caller holds the data folder, and runs no task.
///
/// # Errors
/// [`Failure`]: exit 2 when there is no such task, exit 1 when something is not as it was before.
pub fn run(data: &Path, task: Option<&str>, unwilling: Unwilling, json: bool) -> Result<(), Failure> {
    let root = data.join("undo");
    let task = pick(data, task)?;
    let unreadable = |e: std::io::Error| Failure::failed(format!("what was kept of {task} cannot be read: {e}"));
    if !undo::kept(&root, &task).map_err(unreadable)?.is_empty() {
        stop(data, &task)?;
    }
    let done = undo::restore(&root, &task, unwilling).map_err(unreadable)?;
    if json {
        let rows: Vec<_> = done
            .iter()
            .map(|one| json!({"path": one.path, "outcome": word(&one.outcome), "laid_by": laid_by(&one.outcome), "kept": one.kept}))
            .collect();
        output::json(&json!({"task_id": task, "paths": rows}));
    } else if done.is_empty() {
        output::note(&format!("{task} overwrote and deleted nothing with artoo's own tools"));
    } else {
        let lines: Vec<_> = done.iter().map(line).collect();
        output::result(&printable(&lines.join("\n")));
    }
    let open = done.iter().filter(|one| {
        matches!(
            one.outcome,
            Outcome::Between | Outcome::ChangedSince | Outcome::Failed(_)
        )
    });
    match open.count() {
        0 => Ok(()),
        count => Err(
            Failure::failed(format!("{count} of {} paths are not as they were before", done.len()))
                .hint("--force puts the old ones back all the same; what is there now is kept, and it is said where"),
        ),
    }
}

/// Stops a task that was interrupted before anything of it is put back: what it had done and looked at would not be done any more, and it
/// would not look again.
fn stop(data: &Path, task: &TaskId) -> Result<(), Failure> {
    let failed = |why: String| {
        Failure::failed(format!(
            "{task} did not end and cannot be stopped, so nothing was put back: {why}"
        ))
    };
    let tasks = data.join("tasks");
    let Some(found) = read::find(&tasks, task).map_err(|e| failed(e.to_string()))? else {
        return Ok(());
    };
    match read::read_file(&found.path) {
        Ok(contents) if read::has_ended(&contents.records) || read::was_stopped(&contents.records) => return Ok(()),
        Ok(_) => {}
        // What cannot be read cannot be gone on with either.
        Err(ReadError::Damaged { .. } | ReadError::TooLong) => return Ok(()),
        Err(error @ (ReadError::Io(_) | ReadError::TooNew { .. })) => return Err(failed(error.to_string())),
    }
    let journal = Journal::in_folder(&tasks, JournalOptions::new(Arc::new(SystemClock)));
    let stopped = journal.and_then(|journal| journal.stop(&found.task_id, "undone with artoo undo"));
    stopped.map_err(|e: JournalError| failed(e.to_string()))?;
    output::note(&format!(
        "artoo: {task} had not ended; it is stopped with this, and artoo resume only ends it"
    ));
    Ok(())
}

/// The task that is meant: by its id, or a part of it at either end; without one, the newest that changed something.
fn pick(data: &Path, wanted: Option<&str>) -> Result<TaskId, Failure> {
    let mut kept: Vec<(std::time::SystemTime, String)> = std::fs::read_dir(data.join("undo"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.metadata().ok()?.modified().ok()?,
                entry.file_name().into_string().ok()?,
            ))
        })
        .collect();
    kept.sort();
    let Some(wanted) = wanted else {
        let newest = kept.pop().map(|(_, name)| TaskId::new(name));
        return newest.ok_or_else(|| Failure::usage("no task has overwritten or deleted anything"));
    };
    let kept: Vec<TaskId> = kept.into_iter().map(|(_, name)| TaskId::new(name)).collect();
    match naming::meant(&kept, |id| id, wanted) {
        Meant::One(id) => Ok(id.clone()),
        Meant::Several(several) => Err(naming::ambiguous(wanted, several.into_iter())),
        // A task that changed nothing is no error.
        Meant::None => super::tasks::pick(&data.join("tasks"), wanted).map(|found| found.task_id),
    }
}

fn line(one: &Restored) -> String {
    let path = one.path.display();
    let kept = one.kept.as_ref().map_or_else(String::new, |kept| {
        format!("; what was there before the task is kept in {}", kept.display())
    });
    match &one.outcome {
        Outcome::Restored => format!("restored  {path}"),
        Outcome::WrittenSince => format!("restored  {path} (with what was written to it after it was deleted)"),
        Outcome::Between => {
            format!("partly    {path} (as somebody else left it between two changes of the task{kept})")
        }
        Outcome::Replaced(laid_by) => {
            format!("restored  {path} (what was there is kept in {})", laid_by.display())
        }
        Outcome::AsBefore => format!("as before {path}"),
        Outcome::Made => format!("left      {path} (the task made it)"),
        Outcome::ChangedSince => format!("left      {path} (it was changed since by somebody else{kept})"),
        Outcome::Failed(why) => format!("failed    {path}: {why}{kept}"),
    }
}

/// Where the newer content lies that was put aside for the old one.
fn laid_by(outcome: &Outcome) -> Option<&Path> {
    match outcome {
        Outcome::Replaced(laid_by) => Some(laid_by),
        Outcome::Restored
        | Outcome::WrittenSince
        | Outcome::Between
        | Outcome::AsBefore
        | Outcome::Made
        | Outcome::ChangedSince
        | Outcome::Failed(_) => None,
    }
}

const fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Restored | Outcome::Replaced(_) => "restored",
        Outcome::WrittenSince => "restored_as_written_since",
        Outcome::Between => "as_left_between",
        Outcome::AsBefore => "as_before",
        Outcome::Made => "made_by_the_task",
        Outcome::ChangedSince => "changed_since",
        Outcome::Failed(_) => "failed",
    }
}
