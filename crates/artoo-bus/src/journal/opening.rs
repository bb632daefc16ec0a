//! How the journal of a task begins, gets the name of its run, and ends (design §17).
//!
//! Owns the names of files. Must not decide when any of it happens: [`writer`](super::writer) does, by the messages that pass.

use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use artoo_protocol::journal::Entry;
use artoo_protocol::message::TaskAborted;
use artoo_protocol::{Envelope, EnvelopeId, FORMAT_VERSION, Role, TaskId};
use uuid::Uuid;

use super::books::{Place, State};
use super::file::{Out, TaskFile, file_path};
use super::writer::Journal;
use super::{JournalError, read};

impl Journal {
    /// A new journal with its first record.
    pub(super) fn create(&self, task: &TaskId) -> Result<TaskFile, String> {
        let id = TaskId::parse(task.as_str()).map_err(|e| e.to_string())?;
        let out = match &self.shared.place {
            Place::Memory => Out::Memory(Vec::new()),
            Place::Folder(folder) => {
                let path = file_path(folder, &id);
                let file = std::fs::OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&path)
                    .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
                self.shared.syncer.folder(folder);
                Out::File(Arc::new(file))
            }
        };
        let mut file = TaskFile::new(id.clone(), out);
        let opened = Entry::Opened {
            format: FORMAT_VERSION,
            artoo: self.shared.options.program.clone(),
            task_id: id,
            settings: self.shared.options.settings.clone(),
        };
        self.write(&mut file, opened)?;
        Ok(file)
    }

    /// R1 has committed: the file gets the name of the run. A file of that name that is there already is left alone.
    pub(super) fn name(&self, state: &mut State, task: &TaskId) -> Result<(), String> {
        let Some(file) = state.open.get_mut(task.suffix()) else {
            return Ok(());
        };
        let Ok(id) = TaskId::parse(task.as_str()) else {
            return Ok(());
        };
        if !file.id.is_provisional() || id == file.id {
            return Ok(());
        }
        if let Place::Folder(folder) = &self.shared.place {
            let (old, new) = (file_path(folder, &file.id), file_path(folder, &id));
            if new.exists() {
                return Ok(());
            }
            std::fs::rename(&old, &new).map_err(|e| format!("cannot rename {}: {e}", old.display()))?;
            self.shared.syncer.folder(folder);
        }
        file.id = id;
        Ok(())
    }

    /// Writes down that the person stopped an interrupted task, without going on with it, and returns when the disk has it: whoever takes
    /// it up afterwards ends it and does nothing more. Blocks the thread. One that has ended or was stopped is left as it is.
    ///
    /// # Errors
    /// [`JournalError`] when there is none, when it has a defect before its end, or when it cannot be written.
    pub fn stop(&self, task: &TaskId, reason: &str) -> Result<(), JournalError> {
        let Place::Folder(folder) = &self.shared.place else {
            return Err(JournalError::NotOpen(task.clone()));
        };
        let found = read::find(folder, task)?.ok_or_else(|| JournalError::NotOpen(task.clone()))?;
        let contents = read::read_file(&found.path)?;
        if read::has_ended(&contents.records) || read::was_stopped(&contents.records) {
            return Ok(());
        }
        let mut file = TaskFile::reopen(&found, &contents)?;
        let id = read::task_id(&contents.records).unwrap_or(task).clone();
        let aborted = TaskAborted {
            task_id: id.clone(),
            reason: reason.to_owned(),
        };
        let envelope = Envelope {
            id: EnvelopeId::new(Uuid::now_v7().to_string()),
            seq: read::last_seq(&contents.records) + 1,
            task_id: Some(id),
            timestamp: self.shared.options.clock.now(),
            from: Role::User,
            to: Role::R7,
            payload: aborted.into(),
        };
        let failed = |message| JournalError::Failed {
            task_id: task.clone(),
            message,
        };
        self.write(&mut file, Entry::Published { envelope }).map_err(failed)?;
        let target = file.target();
        target
            .map_or(Ok(()), |target| self.shared.syncer.wait(target))
            .map_err(failed)
    }

    /// The last record; from here on nothing is written for the task.
    pub(super) fn finish(&self, state: &mut State, task: &TaskId, reason: &str) -> Result<(), String> {
        let reason = reason.to_owned();
        self.append(state, task, Entry::Closed { reason })?;
        self.sync_soon(state, task);
        if let Some(file) = state.open.remove(task.suffix())
            && let Out::Memory(bytes) = file.out
        {
            state.kept.insert(task.suffix().to_owned(), bytes);
        }
        state.closed.insert(task.suffix().to_owned());
        Ok(())
    }
}
