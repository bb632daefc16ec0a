//! The auditor's files: names, order, and how a small one is replaced as a whole (design §16, §20).
//!
//! The log is `audit.jsonl`; when that is full it becomes `audit-<number of its first record>.jsonl` and a new one goes on.
//! Beside it lie `audit.head`, `audit_stats.json`, `tuning.jsonl` and, after a crash, `audit.torn`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::{Broken, Link};

/// What went wrong with the files.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The log is not what was written.
    #[error("record {} is wrong ({}): {}", .0.record, .0.damage.name(), .0.detail)]
    Broken(Broken),
}

/// For `map_err`.
pub(crate) fn at_path(path: &Path) -> impl FnOnce(io::Error) -> LogError + use<> {
    let path = path.to_owned();
    move |source| LogError::Io { path, source }
}

/// What `audit.head` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The last record that is on the disk for certain.
    #[serde(flatten)]
    pub link: Link,
    /// Whether whoever wrote it had not ended, or could not write down everything: behind a process that was killed it stays like that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// The log's folder.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    /// The name of a full file that begins with this record; names sort like numbers.
    pub fn full(&self, first: u64) -> PathBuf {
        self.folder.join(format!("audit-{first:016}.jsonl"))
    }

    pub fn head(&self) -> PathBuf {
        self.folder.join("audit.head")
    }

    pub fn torn(&self) -> PathBuf {
        self.folder.join("audit.torn")
    }

    pub fn stats(&self) -> PathBuf {
        self.folder.join("audit_stats.json")
    }

    pub fn tuning(&self) -> PathBuf {
        self.folder.join("tuning.jsonl")
    }

    /// The files of the log that were filled, oldest first.
    pub fn filled(&self) -> Result<Vec<PathBuf>, LogError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(at_path(&self.folder)(source)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(at_path(&self.folder))?;
            let path = entry.path();
            if number_of(&path).is_some() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Every file of the log, oldest first.
    pub fn all(&self) -> Result<Vec<PathBuf>, LogError> {
        let mut all = self.filled()?;
        let log = self.log();
        // A pipe or a device in its place has no end.
        if log.is_file() {
            all.push(log);
        }
        Ok(all)
    }

    /// The head, or `None` where there is none.
    pub fn read_head(&self) -> Result<Option<Result<Head, String>>, LogError> {
        let path = self.head();
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|e| e.to_string()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LogError::Io { path, source }),
        }
    }
}

/// With which record a full file begins, by its name; `None` where it is none.
pub(crate) fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix("audit-")?.strip_suffix(".jsonl")?;
    let fits = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| digits.parse().ok())?
}

/// Writes a file as a whole or not at all, also where the power fails.
pub(crate) fn replace(
    path: &Path,
    value: &impl Serialize,
    mask: impl FnOnce(String) -> String,
) -> Result<(), LogError> {
    let text = serde_json::to_string(value).map_err(|e| at_path(path)(e.into()))?;
    let mut text = mask(text);
    text.push('\n');
    let temporary = path.with_extension("tmp");
    File::create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_data()))
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(at_path(path))
}

/// Appends lines to a file of lines, all or none of them; what a crash left of a line is ended first, so that it spoils no other.
pub(crate) fn append_whole(path: &Path, lines: &str) -> Result<(), LogError> {
    let append = || {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let length = file.metadata()?.len();
        let mut text = lines.to_owned();
        if length > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                text.insert(0, '\n');
            }
        }
        file.write_all(text.as_bytes()).inspect_err(|_| {
            // Should this fail too, the next line is begun anew.
            let _ = file.set_len(length);
        })
    };
    append().map_err(at_path(path))
}
