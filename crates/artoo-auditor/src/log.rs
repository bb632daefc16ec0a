//! The auditor's files: `audit.jsonl`, `audit.head` and `audit_stats.json` (design §16, §20).
//!
//! Owns opening, continuing, appending and reading them. The head is replaced atomically after each batch, so that a
//! shortened log is found too. A half-written last record is set aside and noted; nothing is ever silently dropped.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use artoo_protocol::message::AuditReport;
use artoo_protocol::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::chain::{Broken, Link, Sound};
use crate::counts::Totals;

/// Version of `audit_stats.json`.
const STATS_FORMAT: u32 = 1;
/// Bytes that are read from the end to find the last record; a longer record is found by reading the whole log.
const TAIL: u64 = 1 << 20;
/// How old a head may be while the log grows.
const HEAD_PERIOD: Millis = Millis(1_000);

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
    #[error("record {} is wrong: {} ({:?})", .0.record, .0.detail, .0.damage)]
    Broken(Broken),
}

/// What `audit_stats.json` keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Version of the file.
    pub format: u32,
    /// Everything counted since the beginning.
    pub totals: Totals,
    /// The last report.
    #[serde(default)]
    pub last_report: Option<AuditReport>,
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

    pub fn log(&self) -> PathBuf {
        self.folder.join("audit.jsonl")
    }

    fn head(&self) -> PathBuf {
        self.folder.join("audit.head")
    }

    fn torn(&self) -> PathBuf {
        self.folder.join("audit.torn")
    }

    fn stats(&self) -> PathBuf {
        self.folder.join("audit_stats.json")
    }

    /// The head, or `None` where there is none.
    pub fn read_head(&self) -> Result<Option<Result<Link, String>>, LogError> {
        let path = self.head();
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|e| e.to_string()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LogError::Io { path, source }),
        }
    }

    pub fn write_stats(&self, totals: Totals, last_report: Option<&AuditReport>) -> Result<(), LogError> {
        let stats = Stats {
            format: STATS_FORMAT,
            totals,
            last_report: last_report.cloned(),
        };
        replace(&self.stats(), &stats)
    }
}

/// Writes a file as a whole or not at all.
fn replace(path: &Path, value: &impl Serialize) -> Result<(), LogError> {
    let error = |source| LogError::Io {
        path: path.to_owned(),
        source,
    };
    let mut text = serde_json::to_string(value).map_err(|e| error(e.into()))?;
    text.push('\n');
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(error)
}

/// The persisted totals; a missing or foreign file counts from zero.
pub fn read_stats(folder: &Path) -> Stats {
    fs::read(Files::new(folder).stats())
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Stats>(&bytes).ok())
        .filter(|stats| stats.format <= STATS_FORMAT)
        .unwrap_or_default()
}

/// An open log at its end.
#[derive(Debug)]
pub(crate) struct Log {
    files: Files,
    file: File,
    /// Bytes that are known to be whole records.
    good: u64,
    link: Link,
    pending: Vec<u8>,
    pending_link: Link,
    /// When the head was last written.
    headed: Option<Timestamp>,
}

impl Log {
    /// Continues the log of a folder, and says what was found wrong with its end.
    pub fn open(folder: &Path) -> Result<(Self, Vec<String>), LogError> {
        let files = Files::new(folder);
        let path = files.log();
        let error = |source| LogError::Io {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(folder).map_err(error)?;
        let head = files.read_head()?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(error)?;
        let mut notes = Vec::new();
        let good = set_torn_aside(&files, &mut file, &mut notes).map_err(error)?;
        let last = last_link(&mut file, good).map_err(error)?;
        let link = resume(last.as_ref(), good, head, &mut notes);
        let log = Self {
            files,
            file,
            good,
            pending: Vec::new(),
            pending_link: link.clone(),
            headed: None,
            link,
        };
        Ok((log, notes))
    }

    /// Prepares one record; nothing is on disk before [`Log::commit`].
    pub fn append(&mut self, at: Timestamp, body: &str) {
        let (line, after) = self.pending_link.follow(at, body);
        self.pending.extend_from_slice(line.as_bytes());
        self.pending_link = after;
    }

    /// Writes what was prepared. When the log cannot be written, it stays as it was.
    pub fn commit(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.pending);
        let bytes = u64::try_from(self.pending.len()).unwrap_or(u64::MAX);
        self.pending.clear();
        if let Err(source) = written {
            self.pending_link = self.link.clone();
            // What did get written of it is no record; if it cannot be removed now, it is set aside at the next start.
            let _ = self.file.set_len(self.good);
            let path = self.files.log();
            return Err(LogError::Io { path, source });
        }
        self.good = self.good.saturating_add(bytes);
        self.link = self.pending_link.clone();
        Ok(())
    }

    /// Writes the head if the last one is old.
    pub fn seal_if_due(&mut self, now: Timestamp) -> Result<(), LogError> {
        match self.headed {
            Some(headed) if now.since(headed) < HEAD_PERIOD => Ok(()),
            Some(_) | None => self.seal(now),
        }
    }

    /// Forces the log to the disk and then writes the head, which therefore never names a record that can be lost.
    pub fn seal(&mut self, now: Timestamp) -> Result<(), LogError> {
        self.file.sync_data().map_err(|source| LogError::Io {
            path: self.files.log(),
            source,
        })?;
        self.headed = Some(now);
        replace(&self.files.head(), &self.link)
    }

    pub const fn files(&self) -> &Files {
        &self.files
    }
}

/// Where the chain goes on. Where the head knows better than the log, it goes on from the head, so that what was done to the
/// log stays visible for ever.
fn resume(last: Option<&Link>, length: u64, head: Option<Result<Link, String>>, notes: &mut Vec<String>) -> Link {
    let logged = last.cloned().unwrap_or_else(Link::genesis);
    if last.is_none() && length > 0 {
        notes.push("the last record does not fit its hash: the log was changed".to_owned());
    }
    match head {
        Some(Ok(head)) if head.n > logged.n => {
            notes.push(format!(
                "the head names record {}, but the log ended at record {}: records are missing",
                head.n, logged.n
            ));
            head
        }
        Some(Ok(head)) if head.n == logged.n && head.hash != logged.hash => {
            notes.push(format!("the head names another record {}: the log was changed", head.n));
            head
        }
        Some(Ok(_)) => logged,
        Some(Err(message)) => {
            notes.push(format!("the head could not be read: {message}"));
            logged
        }
        None => {
            if length > 0 {
                notes.push("the head was missing".to_owned());
            }
            logged
        }
    }
}

/// Moves an unfinished last line, as a crash leaves it, out of the log; says how long the rest is.
fn set_torn_aside(files: &Files, file: &mut File, notes: &mut Vec<String>) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let start = last_line_start(file, length)?;
    file.seek(SeekFrom::Start(start))?;
    let mut last = Vec::new();
    file.take(length - start).read_to_end(&mut last)?;
    if last.is_empty() || last.ends_with(b"\n") {
        return Ok(length);
    }
    let mut torn = OpenOptions::new().append(true).create(true).open(files.torn())?;
    torn.write_all(&last)?;
    torn.write_all(b"\n")?;
    torn.sync_all()?;
    file.set_len(start)?;
    notes.push(format!(
        "a torn last record of {} bytes was set aside in audit.torn",
        last.len()
    ));
    Ok(start)
}

/// Where the last line begins, finished or not.
fn last_line_start(file: &mut File, length: u64) -> io::Result<u64> {
    let mut window = TAIL;
    loop {
        let from = length.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        file.take(length - from).read_to_end(&mut tail)?;
        // The line break that ends the file belongs to the last line.
        let inner = tail.strip_suffix(b"\n").unwrap_or(&tail);
        if let Some(at) = inner.iter().rposition(|&byte| byte == b'\n') {
            return Ok(from + u64::try_from(at).unwrap_or(0) + 1);
        }
        if from == 0 {
            return Ok(0);
        }
        window = window.saturating_mul(8);
    }
}

fn last_link(file: &mut File, length: u64) -> io::Result<Option<Link>> {
    let start = last_line_start(file, length)?;
    file.seek(SeekFrom::Start(start))?;
    let mut last = Vec::new();
    file.take(length - start).read_to_end(&mut last)?;
    let line = last.strip_suffix(b"\n").unwrap_or(&last);
    Ok(Sound::read(line).map(|sound| sound.link))
}
