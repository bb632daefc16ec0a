//! What the real bus would write down for every task, kept in memory (design §17).
//!
//! Owns the records and the phase of each task, by the rules of the bus: after an abort only R7 says how it
//! ended, after the FinalResult only a memory may be written and nothing is recorded any more. Knows no role.

use std::collections::BTreeMap;

use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Command, Envelope, FORMAT_VERSION, Message, MessageKind, Role, TaskId, Timestamp};
use serde_json::Value;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Aborted,
    Finished,
}

#[derive(Debug)]
struct Book {
    phase: Phase,
    records: Vec<Record>,
    /// So many of them are on disk for sure.
    synced: usize,
}

/// What the real journal waits for: the intention of an action that cannot be taken back.
fn is_waited_for(entry: &Entry) -> bool {
    matches!(entry, Entry::Commanded { command: Command::RunTool { permit, .. }, .. } if permit.effect > EffectClass::Create)
}

/// The journals of all tasks of a world, by the eight digits that make a run unique.
#[derive(Debug, Default)]
pub struct Journals {
    books: BTreeMap<String, Book>,
}

impl Journals {
    /// The records of a task, the first one first.
    pub fn records(&self, task: &TaskId) -> &[Record] {
        self.books.get(task.suffix()).map_or(&[], |book| &book.records)
    }

    /// The suffix and the records of every task.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[Record])> {
        self.books
            .iter()
            .map(|(suffix, book)| (suffix.as_str(), book.records.as_slice()))
    }

    /// Whether nothing may be done for the task any more.
    pub fn has_ended(&self, task: &TaskId) -> bool {
        self.books
            .get(task.suffix())
            .is_some_and(|book| book.phase != Phase::Open)
    }

    /// Whether `from` may still say this.
    pub fn admits(&self, task: &TaskId, from: Role, kind: MessageKind) -> bool {
        match self.books.get(task.suffix()).map(|book| book.phase) {
            None | Some(Phase::Open) => true,
            Some(Phase::Aborted) => from == Role::R7 && kind == MessageKind::FinalResult,
            Some(Phase::Finished) => kind == MessageKind::Megram,
        }
    }

    /// Writes a message down, and follows it: it may begin or end its task.
    pub fn published(&mut self, envelope: &Envelope) {
        let Some(task) = &envelope.task_id else { return };
        let kind = envelope.payload.kind();
        if !self.books.contains_key(task.suffix()) {
            if kind == MessageKind::Megram {
                return; // The person's own memories belong to no run.
            }
            self.open(task, envelope.timestamp);
        }
        let entry = Entry::Published {
            envelope: envelope.clone(),
        };
        self.record(task, envelope.timestamp, entry);
        let Some(book) = self.books.get_mut(task.suffix()) else {
            return;
        };
        match envelope.payload {
            Message::FinalResult(_) => book.phase = Phase::Finished,
            Message::TaskAborted(_) if book.phase == Phase::Open => book.phase = Phase::Aborted,
            _ => {}
        }
    }

    /// Writes any other entry down; for a task that has no journal, or whose journal is closed, nothing happens.
    pub fn record(&mut self, task: &TaskId, at: Timestamp, entry: Entry) {
        if let Some(book) = self.books.get_mut(task.suffix())
            && book.phase != Phase::Finished
        {
            let n = book.records.len() as u64 + 1;
            let waited_for = is_waited_for(&entry);
            book.records.push(Record { n, at, entry });
            if waited_for {
                book.synced = book.records.len();
            }
        }
    }

    /// The machine lost power: of what was not brought to disk, only the first `kept` records of each task are left.
    pub fn lose(&mut self, task: &TaskId, kept: usize) {
        if let Some(book) = self.books.get_mut(task.suffix()) {
            book.records.truncate(book.synced.saturating_add(kept).max(2));
            let aborted = |record: &Record| matches!(&record.entry, Entry::Published { envelope } if envelope.payload.kind() == MessageKind::TaskAborted);
            if !book.records.iter().any(aborted) {
                book.phase = Phase::Open;
            }
        }
    }

    fn open(&mut self, task: &TaskId, at: Timestamp) {
        let opened = Entry::Opened {
            format: FORMAT_VERSION,
            artoo: "simulated".to_owned(),
            task_id: task.clone(),
            settings: Value::Null,
        };
        let book = Book {
            phase: Phase::Open,
            records: vec![Record {
                n: 1,
                at,
                entry: opened,
            }],
            synced: 0,
        };
        self.books.insert(task.suffix().to_owned(), book);
    }
}
