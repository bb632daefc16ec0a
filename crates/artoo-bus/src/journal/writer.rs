//! Writing journals: what is written, when the disk has to have it, and what becomes of a failure (design §17).
//!
//! Owns the way of every record into the file of its task. Must not decide anything by what a record says, beyond when a task
//! begins, gets its name and ends.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::{Answer, Envelope, MessageKind, TaskId};

use super::books::{Place, State};
use super::file::{Out, TaskFile, file_path};
use super::resumed::{Resumption, resumed};
use super::sync::Syncer;
use super::{ENDED, JournalError, JournalOptions, LINE_MAX, NESTING_MAX, read};
use crate::locked;
use crate::notice::Notice;

/// The journals of a process; clones are the same. Appending never waits for the disk.
#[derive(Clone)]
pub struct Journal {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) options: JournalOptions,
    pub(super) place: Place,
    pub(super) syncer: Syncer,
    state: Mutex<State>,
}

impl Journal {
    /// Journals as files in a folder, which is made (0700) if it is missing.
    ///
    /// # Errors
    /// [`JournalError::Io`] when the folder cannot be made.
    pub fn in_folder(folder: &Path, options: JournalOptions) -> Result<Self, JournalError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| JournalError::Io {
                what: "cannot make the folder",
                path: folder.to_owned(),
                source,
            })?;
        Ok(Self::with(Place::Folder(folder.to_owned()), options))
    }

    /// Journals kept in memory, for simulations; read them with [`Journal::text`].
    pub fn in_memory(options: JournalOptions) -> Self {
        Self::with(Place::Memory, options)
    }

    fn with(place: Place, options: JournalOptions) -> Self {
        let shared = Arc::new(Shared {
            options,
            place,
            syncer: Syncer::default(),
            state: Mutex::default(),
        });
        Self { shared }
    }

    /// Opens the journal of an interrupted task again, cuts off a torn last line, and writes down that the task goes on
    /// after so long, and what was settled with the person before. Gives all records, those included.
    ///
    /// # Errors
    /// [`JournalError`] when there is none, when it has a defect before its end, when it does not hold what the task would go on
    /// from ([`JournalError::Masked`]), or when it cannot be opened.
    pub fn resume(&self, task: &TaskId, with: &Resumption) -> Result<Vec<Record>, JournalError> {
        let Place::Folder(folder) = &self.shared.place else {
            return Err(JournalError::NotOpen(task.clone()));
        };
        let found = read::find(folder, task)?.ok_or_else(|| JournalError::NotOpen(task.clone()))?;
        let contents = read::read_file(&found.path)?;
        let failed = |message| JournalError::Failed {
            task_id: task.clone(),
            message,
        };
        if read::has_ended(&contents.records) {
            return Err(failed("it has ended meanwhile".to_owned()));
        }
        if let Some(record) = read::lost_secret(&contents.records) {
            let task_id = task.clone();
            return Err(JournalError::Masked { task_id, record });
        }
        let mut file = TaskFile::reopen(&found, &contents)?;
        let mut records = contents.records;
        let id = read::task_id(&records).unwrap_or(task).clone();
        for envelope in resumed(&records, &id, self.shared.options.clock.now(), with) {
            records.push(self.write(&mut file, Entry::Published { envelope }).map_err(failed)?);
        }
        let mut state = locked(&self.shared.state);
        state.open.insert(task.suffix().to_owned(), file);
        // The process may have ended between R1's word and the new name of the file.
        self.name(&mut state, &id).map_err(failed)?;
        Ok(records)
    }

    /// Writes a message down, and opens, names or closes its task's journal where the message calls for it. Tells the
    /// first failure of a task; later ones change nothing any more.
    #[must_use]
    pub(crate) fn published(&self, envelope: &Envelope) -> Option<Notice> {
        let task = envelope.task_id.as_ref()?;
        let kind = envelope.payload.kind();
        let mut guard = locked(&self.shared.state);
        let state = &mut *guard;
        let key = task.suffix();
        if state.closed.contains(key) || state.failed.contains_key(key) {
            return None;
        }
        if !state.open.contains_key(key) {
            if kind == MessageKind::Megram {
                return None; // The person's own memories belong to no run.
            }
            match self.create(task) {
                Ok(file) => state.open.insert(key.to_owned(), file),
                Err(message) => return Some(state.fail(task, message)),
            };
        }
        let entry = Entry::Published {
            envelope: envelope.clone(),
        };
        let written = self.append(state, task, entry).and_then(|()| match kind {
            MessageKind::TaskSpec | MessageKind::DirectAnswer => self.name(state, task),
            MessageKind::FinalResult => self.finish(state, task, ENDED),
            MessageKind::DispatchManifest | MessageKind::SubTaskOutcome | MessageKind::PlanDirective => {
                self.sync_soon(state, task);
                Ok(())
            }
            _ => Ok(()),
        });
        written.err().map(|message| state.fail(task, message))
    }

    /// Writes any other entry down; for a task without an open journal nothing happens.
    #[must_use]
    pub(crate) fn record(&self, task: &TaskId, entry: Entry) -> Option<Notice> {
        let mut state = locked(&self.shared.state);
        if !state.open.contains_key(task.suffix()) {
            return None;
        }
        // What a tool did is brought to disk soon: with the intention there and the result not, a resumed task has to ask.
        let did = matches!(
            &entry,
            Entry::Answered {
                answer: Answer::Ran(_),
                ..
            }
        );
        let appended = self.append(&mut state, task, entry);
        if did {
            self.sync_soon(&state, task);
        }
        appended.err().map(|message| state.fail(task, message))
    }

    /// Whether everything said and wanted so far for the task is in its journal, though perhaps not on disk yet.
    ///
    /// # Errors
    /// [`JournalError::Failed`] and [`JournalError::NotOpen`]: then nothing may be done that leaves something behind.
    pub fn holds(&self, task: &TaskId) -> Result<(), JournalError> {
        let state = locked(&self.shared.state);
        state.healthy(task)?;
        let open = state.open.contains_key(task.suffix());
        open.then_some(()).ok_or_else(|| JournalError::NotOpen(task.clone()))
    }

    /// Returns when everything written so far for the task is on disk.
    ///
    /// # Errors
    /// [`JournalError::Failed`] and [`JournalError::NotOpen`]: then nothing may be done that cannot be taken back.
    pub async fn sync_now(&self, task: &TaskId) -> Result<(), JournalError> {
        let target = {
            let state = locked(&self.shared.state);
            state.healthy(task)?;
            let file = state.open.get(task.suffix());
            file.ok_or_else(|| JournalError::NotOpen(task.clone()))?.target()
        };
        let Some(target) = target else { return Ok(()) };
        let (journal, task) = (self.clone(), task.clone());
        // On a blocking thread, so that a stopped clock does not run ahead while the disk works.
        tokio::task::spawn_blocking(move || match journal.shared.syncer.wait(target) {
            Ok(()) => Ok(()),
            Err(message) => Err(journal.give_up(&task, message)),
        })
        .await
        .unwrap_or_else(|error| {
            Err(JournalError::Io {
                what: "cannot sync",
                path: PathBuf::new(),
                source: std::io::Error::other(error),
            })
        })
    }

    /// Ends every open journal with `reason`, and returns when all are on disk.
    ///
    /// # Errors
    /// The first [`JournalError::Failed`] of this process.
    pub async fn close(&self, reason: &str) -> Result<(), JournalError> {
        {
            let mut guard = locked(&self.shared.state);
            let state = &mut *guard;
            let open: Vec<TaskId> = state.open.values().map(|file| file.id.clone()).collect();
            for task in &open {
                if let Err(message) = self.finish(state, task, reason) {
                    // The caller gets it as the error below.
                    let _notice = state.fail(task, message);
                }
            }
        }
        let journal = self.clone();
        // Whatever was asked for before stands in the same queue, so one wait is enough for all of it.
        tokio::task::spawn_blocking(move || journal.shared.syncer.drain())
            .await
            .unwrap_or_default();
        let state = locked(&self.shared.state);
        match state.failed.values().next() {
            Some((task_id, message)) => Err(JournalError::Failed {
                task_id: task_id.clone(),
                message: message.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Where the open journal of a task is.
    pub fn path(&self, task: &TaskId) -> Option<PathBuf> {
        let Place::Folder(folder) = &self.shared.place else {
            return None;
        };
        let state = locked(&self.shared.state);
        state.open.get(task.suffix()).map(|file| file_path(folder, &file.id))
    }

    /// The whole text of a journal kept in memory, of a running or an ended task.
    pub fn text(&self, task: &TaskId) -> Option<Vec<u8>> {
        let state = locked(&self.shared.state);
        let open = state.open.get(task.suffix()).and_then(|file| match &file.out {
            Out::Memory(bytes) => Some(bytes.clone()),
            Out::File(_) => None,
        });
        open.or_else(|| state.kept.get(task.suffix()).cloned())
    }

    pub(super) fn append(&self, state: &mut State, task: &TaskId, entry: Entry) -> Result<(), String> {
        match state.open.get_mut(task.suffix()) {
            Some(file) => self.write(file, entry).map(|_| ()),
            None => Ok(()),
        }
    }

    pub(super) fn write(&self, file: &mut TaskFile, entry: Entry) -> Result<Record, String> {
        let options = &self.shared.options;
        let mut record = Record {
            n: file.records + 1,
            at: options.clock.now(),
            masked: false,
            entry,
        };
        let mut line = serde_json::to_string(&record).map_err(|e| e.to_string())?;
        if let Some(mut value) = options.redactor.masked(&line).map_err(|e| e.to_string())? {
            record.masked = true;
            if let Some(fields) = value.as_object_mut() {
                fields.insert("masked".to_owned(), true.into());
            }
            line = value.to_string();
        }
        line.push('\n');
        // What could not be read again must not be written: it would cost the whole journal.
        if line.len() > LINE_MAX {
            return Err(format!("a record of {} bytes is too long", line.len()));
        }
        let nesting = nesting(&line);
        if nesting > NESTING_MAX {
            return Err(format!("a record that is nested {nesting} deep cannot be read again"));
        }
        file.append(line.as_bytes()).map_err(|e| e.to_string())?;
        file.records += 1;
        Ok(record)
    }

    /// Asks for the file to be brought to disk, and does not wait.
    pub(super) fn sync_soon(&self, state: &State, task: &TaskId) {
        if let Some(target) = state.open.get(task.suffix()).and_then(TaskFile::target) {
            let journal = Arc::downgrade(&self.shared);
            let task = task.clone();
            self.shared.syncer.soon(
                target,
                Box::new(move |message| {
                    if let Some(shared) = journal.upgrade() {
                        let _error = Self { shared }.give_up(&task, message);
                    }
                }),
            );
        }
    }

    /// A sync failed: what the disk has is unknown, so nothing more is promised for this task.
    fn give_up(&self, task: &TaskId, message: String) -> JournalError {
        let notice = {
            let mut state = locked(&self.shared.state);
            let known = state.failed.contains_key(task.suffix());
            let notice = state.fail(task, message.clone());
            (!known).then_some(notice)
        };
        if let Some(notice) = notice {
            self.shared.options.observer.notice(&notice);
        }
        JournalError::Failed {
            task_id: task.clone(),
            message,
        }
    }
}

/// How deep objects and lists stand in one another in a line of JSON.
fn nesting(line: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod bounds {
    use serde_json::{Value, json};

    use super::nesting;

    #[test]
    fn a_line_is_nested_too_deep_exactly_where_it_could_not_be_read() {
        let nested = |depth: usize| {
            (0..depth).fold(json!("[{\"\\"), |inner, at| {
                if at % 2 == 0 {
                    json!([inner])
                } else {
                    json!({ "a]": inner })
                }
            })
        };
        for depth in [0, 1, 2, 96, 126, 127, 128, 200] {
            let line = nested(depth).to_string();
            assert_eq!(nesting(&line), depth);
            let read = serde_json::from_str::<Value>(&line);
            assert_eq!(read.is_ok(), depth <= super::NESTING_MAX, "{depth}");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::OpenOptions;

    use artoo_protocol::Timestamp;

    use super::*;
    use crate::clock::TokioClock;

    #[tokio::test]
    async fn a_full_disk_is_told_once_and_forbids_what_cannot_be_taken_back() {
        let clock = Arc::new(TokioClock::starting_at(Timestamp::from_millis(0)));
        let journal = Journal::in_memory(JournalOptions::new(clock));
        let task = TaskId::new("full_0000000a");
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = TaskFile::new(task.clone(), Out::File(Arc::new(full)));
        let key = task.suffix().to_owned();
        locked(&journal.shared.state).open.insert(key, file);
        let entry = || Entry::Closed { reason: String::new() };
        let Some(Notice::JournalFailed { message, .. }) = journal.record(&task, entry()) else {
            panic!("the first failure is told")
        };
        assert!(message.contains("No space left"), "{message}");
        assert_eq!(journal.record(&task, entry()), None);
        let refused = journal.sync_now(&task).await.unwrap_err().to_string();
        assert!(
            refused.contains("full_0000000a") && refused.contains("No space left"),
            "{refused}"
        );
        assert!(journal.close("end").await.is_err());
    }
}
