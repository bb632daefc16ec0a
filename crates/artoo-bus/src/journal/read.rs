//! Reading journals back, also those of killed processes and of older versions (design §17).
//!
//! Owns tolerance: a torn last line is left out and reported, unknown fields are ignored, lines are bounded, and any
//! other defect is an error that names its line. Must not write.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::{FORMAT_VERSION, Message, TaskId};
use thiserror::Error;

use super::{ENDED, FILE_MAX, JournalError, LINE_MAX};

/// How much of a journal's end is looked at for its last record, which is short when the task has ended.
const TAIL: u64 = 4 << 10;

/// A journal that cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file.
    #[error("cannot read the journal: {0}")]
    Io(#[from] io::Error),
    /// A line that is no record, before the last one.
    #[error("line {line} of the journal is damaged: {message}")]
    Damaged {
        /// From 1.
        line: u64,
        /// What is wrong with it.
        message: String,
    },
    /// Written by a later version of the program.
    #[error("the journal has format {found}; this program reads up to {FORMAT_VERSION}")]
    TooNew {
        /// The format found.
        found: u32,
    },
    /// More than is read into memory.
    #[error("the journal is longer than the {FILE_MAX} bytes that are read of one")]
    TooLong,
}

/// Reads one record after the other. After an error nothing more comes.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    line: u64,
    bytes: u64,
    torn: bool,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from the beginning of a journal.
    pub const fn new(source: R) -> Self {
        Self {
            source,
            line: 0,
            bytes: 0,
            torn: false,
            ended: false,
        }
    }

    /// Goes on behind that many whole lines, where an earlier reader of the same journal came to its end.
    pub const fn after(source: R, lines: u64) -> Self {
        let mut reader = Self::new(source);
        reader.line = lines;
        reader
    }

    /// Whether the last line was torn, which is how a killed process leaves it.
    pub const fn torn(&self) -> bool {
        self.torn
    }

    /// Length of everything that this reader has read so far, without a torn line.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        let mut line = Vec::new();
        let limit = LINE_MAX as u64 + 1;
        (&mut self.source).take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if line.last() != Some(&b'\n') {
            if line.len() > LINE_MAX {
                return Err(self.damaged(format!("longer than {LINE_MAX} bytes")));
            }
            self.torn = true;
            return Ok(None);
        }
        let record: Record = serde_json::from_slice(&line).map_err(|e| self.damaged(e.to_string()))?;
        if record.n != self.line {
            return Err(self.damaged(format!("it says that it is record {}", record.n)));
        }
        match (&record.entry, self.line) {
            (Entry::Opened { format, .. }, 1) if *format > FORMAT_VERSION => {
                return Err(ReadError::TooNew { found: *format });
            }
            (Entry::Opened { .. }, 1) => {}
            (_, 1) => return Err(self.damaged("the first record is not `opened`".to_owned())),
            (_, _) => {}
        }
        self.bytes += line.len() as u64;
        Ok(Some(record))
    }

    const fn damaged(&self, message: String) -> ReadError {
        ReadError::Damaged {
            line: self.line,
            message,
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.read().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}

/// A journal read whole.
#[derive(Debug)]
pub struct Contents {
    /// The records.
    pub records: Vec<Record>,
    /// Whether a torn last line was left out.
    pub torn: bool,
    /// Length of the whole lines.
    pub bytes: u64,
}

/// A journal of which perhaps only the beginning can be read.
#[derive(Debug)]
pub struct Salvaged {
    /// Everything before the damage.
    pub contents: Contents,
    /// What is wrong behind it; a torn last line is no damage.
    pub damage: Option<ReadError>,
}

/// Reads a journal up to its end or to the first thing that is wrong with it, and at most [`FILE_MAX`] bytes of it.
pub fn salvage(source: impl BufRead) -> Salvaged {
    salvage_within(source, FILE_MAX)
}

fn salvage_within(source: impl BufRead, most: u64) -> Salvaged {
    let mut reader = Reader::new(source);
    let (mut records, mut damage) = (Vec::new(), None);
    while let Some(record) = reader.next() {
        match record {
            Ok(_) if reader.bytes() > most => {
                damage = Some(ReadError::TooLong);
                break;
            }
            Ok(record) => records.push(record),
            Err(error) => damage = Some(error),
        }
    }
    let contents = Contents {
        records,
        torn: reader.torn(),
        bytes: reader.bytes(),
    };
    Salvaged { contents, damage }
}

/// Reads what can be read of a file.
pub fn salvage_file(path: &Path) -> Salvaged {
    match File::open(path) {
        Ok(file) => salvage(BufReader::new(file)),
        Err(error) => Salvaged {
            contents: Contents {
                records: Vec::new(),
                torn: false,
                bytes: 0,
            },
            damage: Some(error.into()),
        },
    }
}

/// Reads a journal from bytes.
///
/// # Errors
/// [`ReadError`] for a defect anywhere but in the last line.
pub fn read(source: impl BufRead) -> Result<Contents, ReadError> {
    let Salvaged { contents, damage } = salvage(source);
    damage.map_or(Ok(contents), Err)
}

/// Reads a journal from a file.
///
/// # Errors
/// [`ReadError`], see [`read`]; one that is too long is not begun.
pub fn read_file(path: &Path) -> Result<Contents, ReadError> {
    let file = File::open(path)?;
    if file.metadata()?.len() > FILE_MAX {
        return Err(ReadError::TooLong);
    }
    read(BufReader::new(file))
}

/// Whether the last record says that the task came to its end; nothing else is read. Where it does not, the journal has to be read to
/// know: a process may have died between an ending and that record.
///
/// # Errors
/// When the file cannot be read.
pub fn closes_with_its_end(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    let lines = tail.strip_suffix(b"\n").unwrap_or_default();
    let last = lines.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let record = serde_json::from_slice::<Record>(last);
    Ok(record.is_ok_and(|record| matches!(record.entry, Entry::Closed { reason } if reason == ENDED)))
}

/// A journal in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The task, as the file's name says.
    pub task_id: TaskId,
    /// The file.
    pub path: PathBuf,
}

/// The journals of a folder, by name; none where there is no folder. Files of other names are passed over.
///
/// # Errors
/// [`JournalError::Io`] when the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Found>, JournalError> {
    let unreadable = |source| JournalError::Io {
        what: "cannot read",
        path: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(Ok(task_id)) = name.strip_suffix(".jsonl").map(TaskId::parse) {
            found.push(Found { task_id, path });
        }
    }
    found.sort_by(|a, b| a.task_id.cmp(&b.task_id));
    Ok(found)
}

/// The journal of a run, whether its file has the provisional or the final name.
///
/// # Errors
/// [`JournalError::Io`] when the folder cannot be read.
pub fn find(folder: &Path, task: &TaskId) -> Result<Option<Found>, JournalError> {
    let all = list(folder)?;
    let exact = all.iter().find(|found| found.task_id == *task);
    let same_run = || all.iter().find(|found| found.task_id.suffix() == task.suffix());
    Ok(exact.or_else(same_run).cloned())
}

/// The id of the run: the one that R1 committed to, else the one that the journal was opened with.
pub fn task_id(records: &[Record]) -> Option<&TaskId> {
    let committed = records.iter().find_map(|record| match &record.entry {
        Entry::Published { envelope } => match &envelope.payload {
            Message::TaskSpec(spec) => Some(&spec.task_id),
            Message::DirectAnswer(answer) => Some(&answer.task_id),
            _ => None,
        },
        _ => None,
    });
    committed.or_else(|| {
        records.iter().find_map(|record| match &record.entry {
            Entry::Opened { task_id, .. } => Some(task_id),
            _ => None,
        })
    })
}

/// Sequence number of the last message; 0 without one. A resumed bus goes on behind it.
pub fn last_seq(records: &[Record]) -> u64 {
    let seqs = records.iter().filter_map(|record| match &record.entry {
        Entry::Published { envelope } => Some(envelope.seq),
        _ => None,
    });
    seqs.max().unwrap_or(0)
}

/// Whether the task has its ending.
pub fn has_ended(records: &[Record]) -> bool {
    records.iter().any(
        |record| matches!(&record.entry, Entry::Published { envelope } if matches!(envelope.payload, Message::FinalResult(_))),
    )
}

/// Whether the person stopped the task.
pub fn was_stopped(records: &[Record]) -> bool {
    records.iter().any(
        |record| matches!(&record.entry, Entry::Published { envelope } if matches!(envelope.payload, Message::TaskAborted(_))),
    )
}

/// The first record in which a secret was masked, where that stands in the way of going on: what is decided from there on could rest
/// on the mask, and be done with it. A task that was stopped does nothing any more, so it can be ended.
pub fn lost_secret(records: &[Record]) -> Option<u64> {
    let masked = records.iter().find(|record| record.masked)?;
    (!was_stopped(records)).then_some(masked.n)
}

/// Questions that were put to the person and not answered, in their order.
pub fn open_questions(records: &[Record]) -> Vec<Message> {
    let mut open: Vec<Message> = Vec::new();
    for record in records {
        let Entry::Published { envelope } = &record.entry else {
            continue;
        };
        match &envelope.payload {
            Message::ConfirmationRequest(_) | Message::ClarificationRequest(_) => open.push(envelope.payload.clone()),
            Message::ConfirmationAnswer(answer) => {
                let asked =
                    |m: &Message| matches!(m, Message::ConfirmationRequest(r) if r.request_id == answer.request_id);
                open.retain(|message| !asked(message));
            }
            Message::ClarificationAnswer(answer) => {
                let asked = |m: &Message| matches!(m, Message::ClarificationRequest(r) if r.round == answer.round);
                open.retain(|message| !asked(message));
            }
            _ => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(closed: &str) -> String {
        let opened = r#"{"n":1,"at":"2026-02-27T09:30:00Z","entry":"opened","format":1,"artoo":"0","task_id":"input_0000000a","settings":null}"#;
        format!("{opened}\n{{\"n\":2,\"at\":\"2026-02-27T09:30:00Z\",\"entry\":\"closed\",\"reason\":\"{closed}\"}}\n")
    }

    #[test]
    fn no_more_is_read_than_the_bound_and_what_is_missing_is_said() {
        let text = journal(ENDED);
        let whole = salvage_within(text.as_bytes(), text.len() as u64);
        assert_eq!((whole.contents.records.len(), whole.damage.is_none()), (2, true));
        let bounded = salvage_within(text.as_bytes(), text.len() as u64 - 1);
        assert_eq!(bounded.contents.records.len(), 1);
        assert!(matches!(bounded.damage, Some(ReadError::TooLong)));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        // Holes: a file that is long and takes no room.
        File::create(&path).unwrap().set_len(FILE_MAX + 1).unwrap();
        assert!(matches!(read_file(&path), Err(ReadError::TooLong)));
    }

    #[test]
    fn an_end_is_seen_in_the_last_line_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        let ends = |text: &str| {
            std::fs::write(&path, text).unwrap();
            closes_with_its_end(&path).unwrap()
        };
        assert!(ends(&journal(ENDED)));
        let long = "x".repeat(100_000);
        assert!(ends(&format!("{long}\n{}", journal(ENDED))));
        assert!(!ends(&journal("the process ended")));
        assert!(!ends(journal(ENDED).trim_end()), "a torn line says nothing");
        assert!(!ends(&journal(&long)));
        assert!(!ends("") && !ends("\n") && !ends("\n\n"));
    }
}
