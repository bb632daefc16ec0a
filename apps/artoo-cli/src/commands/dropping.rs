//! `artoo tasks rm`: everything that is kept of a task is dropped (design §8, §17).
//!
//! Owns what belongs to a task in the data folder. Must not touch memory or the audit log, which are about more than one task.

use std::io::ErrorKind;
use std::path::Path;

use artoo_bus::SystemClock;
use artoo_bus::journal::read::Found;
use artoo_protocol::ports::Clock;

use crate::data_folder::DataFolder;
use crate::failure::Failure;
use crate::output;
use crate::system::OUTPUTS;

/// Drops a journal, what was kept to undo the task, and its long outputs, and says how much was kept.
///
/// # Errors
/// [`Failure`] when another process has the folder, or something cannot be removed.
pub fn run(data: &Path, found: &Found) -> Result<(), Failure> {
    let _held = DataFolder::open(data, SystemClock.now())?;
    let undo = data.join("undo");
    let bytes = artoo_executor::undo::size(&undo, &found.task_id);
    let failed = |e: std::io::Error| Failure::failed(format!("{} could not be dropped: {e}", found.task_id));
    artoo_executor::undo::drop_kept(&undo, &found.task_id).map_err(failed)?;
    let outputs = data.join(OUTPUTS).join(found.task_id.as_str());
    match std::fs::remove_dir_all(outputs) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    // Last, so that what is left after a failure still has its name in the list.
    std::fs::remove_file(&found.path).map_err(failed)?;
    output::note(&format!(
        "dropped {}, its long outputs, and the {bytes} bytes that were kept to undo it",
        found.task_id
    ));
    Ok(())
}
