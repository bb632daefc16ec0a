//! Which journals are open, which have ended, and which could not be written (design §17).
//!
//! Owns that bookkeeping by the eight digits of a run. Must not touch a file.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use artoo_protocol::TaskId;

use super::JournalError;
use super::file::TaskFile;
use crate::notice::Notice;

/// Where journals are kept.
pub(super) enum Place {
    Folder(PathBuf),
    Memory,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) open: HashMap<String, TaskFile>,
    pub(super) failed: HashMap<String, (TaskId, String)>,
    pub(super) closed: HashSet<String>,
    /// Journals kept in memory whose tasks have ended.
    pub(super) kept: HashMap<String, Vec<u8>>,
}

impl State {
    /// Nothing more is written for the task.
    pub(super) fn fail(&mut self, task: &TaskId, message: String) -> Notice {
        self.open.remove(task.suffix());
        self.failed
            .entry(task.suffix().to_owned())
            .or_insert_with(|| (task.clone(), message.clone()));
        Notice::JournalFailed {
            task_id: task.clone(),
            message,
        }
    }

    /// The first failure of the task, if there was one.
    pub(super) fn healthy(&self, task: &TaskId) -> Result<(), JournalError> {
        match self.failed.get(task.suffix()) {
            Some((task_id, message)) => Err(JournalError::Failed {
                task_id: task_id.clone(),
                message: message.clone(),
            }),
            None => Ok(()),
        }
    }
}
