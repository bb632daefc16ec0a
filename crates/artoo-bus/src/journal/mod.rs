//! The journal: one file per task, in which everything stands before it takes effect (design §17).
//!
//! Owns the format on disk: names, numbers, order, masking, and when the disk has to have it. The format of a record is
//! the protocol's. Must not know any role.

pub mod read;
pub mod redact;
pub mod summary;

mod books;
mod file;
mod opening;
mod resumed;
mod sync;
mod writer;

pub use redact::Redactor;
pub use resumed::Resumption;
pub use writer::Journal;

use std::path::PathBuf;
use std::sync::Arc;

use artoo_protocol::TaskId;
use artoo_protocol::ports::Clock;
use serde_json::Value;
use thiserror::Error;

use crate::notice::{Observer, Silent};

/// Longest line, in bytes, that is written or read: 64 MiB.
pub const LINE_MAX: usize = 64 << 20;
/// Longest journal, in bytes, that is read whole: 512 MiB. One that is longer is written all the same.
pub const FILE_MAX: u64 = 512 << 20;
/// Deepest nesting of objects and lists in a line that is written: what [`read`] takes, which is the bound of its parser.
pub const NESTING_MAX: usize = 127;

/// The reason in the last record of a task that came to its end.
const ENDED: &str = "the task has ended";

/// How journals are written.
pub struct JournalOptions {
    /// Version of the program, for the first record.
    pub program: String,
    /// Settings that decisions depend on, for the first record. Secrets in it are masked.
    pub settings: Value,
    /// What is masked.
    pub redactor: Redactor,
    /// Who hears of failures of the background sync.
    pub observer: Arc<dyn Observer>,
    /// Stamps the records.
    pub clock: Arc<dyn Clock>,
}

impl JournalOptions {
    /// No settings, no exact secrets, nobody who listens.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            settings: Value::Null,
            redactor: Redactor::default(),
            observer: Arc::new(Silent),
            clock,
        }
    }
}

/// Why a journal cannot be written.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The folder or a file in it.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The journal of a task failed before; nothing more is written to it.
    #[error("the journal of {task_id} cannot be written: {message}")]
    Failed {
        /// The task.
        task_id: TaskId,
        /// The first failure.
        message: String,
    },
    /// What an interrupted task held was masked: whoever went on would act on the mask instead of on it.
    #[error("a secret in {task_id} was not kept in its journal (record {record}), so nobody can go on with it")]
    Masked {
        /// The task.
        task_id: TaskId,
        /// The first record that does not hold what was said or done.
        record: u64,
    },
    /// No journal is open for the task.
    #[error("no journal is open for {0}")]
    NotOpen(TaskId),
    /// An interrupted journal cannot be read back.
    #[error(transparent)]
    Unreadable(#[from] read::ReadError),
}
