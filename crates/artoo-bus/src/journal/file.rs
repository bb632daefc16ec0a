//! One open journal file: whole lines in single writes, so that a killed process leaves at most one torn line (design §17).
//!
//! Owns the bytes. Must not know what they say.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use artoo_protocol::TaskId;

use super::JournalError;
use super::read::{Contents, Found};
use super::sync::Target;

/// Where the lines go.
#[derive(Debug)]
pub(super) enum Out {
    File(Arc<File>),
    Memory(Vec<u8>),
}

/// An open journal.
#[derive(Debug)]
pub(super) struct TaskFile {
    pub(super) id: TaskId,
    /// Records in it.
    pub(super) records: u64,
    pub(super) out: Out,
    bytes: u64,
}

impl TaskFile {
    pub(super) const fn new(id: TaskId, out: Out) -> Self {
        Self {
            id,
            records: 0,
            out,
            bytes: 0,
        }
    }

    /// Opens an interrupted journal behind its last whole line.
    pub(super) fn reopen(found: &Found, contents: &Contents) -> Result<Self, JournalError> {
        let open = || {
            let file = std::fs::OpenOptions::new().append(true).mode(0o600).open(&found.path)?;
            file.set_len(contents.bytes)?;
            Ok(file)
        };
        let file = open().map_err(|source| JournalError::Io {
            what: "cannot open",
            path: found.path.clone(),
            source,
        })?;
        Ok(Self {
            id: found.task_id.clone(),
            records: contents.records.len() as u64,
            out: Out::File(Arc::new(file)),
            bytes: contents.bytes,
        })
    }

    /// What the syncer is to bring to disk.
    pub(super) fn target(&self) -> Option<Target> {
        match &self.out {
            Out::File(file) => Some(Target::File(Arc::clone(file))),
            Out::Memory(_) => None,
        }
    }

    /// Appends one line in one write. After a failure the file ends where it ended before, as far as that can be done.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        match &mut self.out {
            Out::Memory(bytes) => bytes.extend_from_slice(line),
            Out::File(file) => {
                if let Err(error) = write_once(file, line) {
                    // Best effort: if this fails too, the reader copes with the torn line.
                    let _shortened = file.set_len(self.bytes);
                    return Err(error);
                }
            }
        }
        self.bytes += line.len() as u64;
        Ok(())
    }
}

fn write_once(file: &Arc<File>, line: &[u8]) -> io::Result<()> {
    loop {
        match (&**file).write(line) {
            Ok(written) if written == line.len() => return Ok(()),
            Ok(written) => {
                let message = format!("only {written} of {} bytes could be written", line.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, message));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Where the journal of a task lies.
pub(super) fn file_path(folder: &Path, task: &TaskId) -> PathBuf {
    folder.join(format!("{task}.jsonl"))
}
