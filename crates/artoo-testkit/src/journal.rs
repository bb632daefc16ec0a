//! What the real bus would write down for every task, kept in memory (design §17).
//!
//! Owns the records and the phase of each task, by the rules of the bus: after an abort only R7 says how it
//! ended, after the FinalResult only a memory may be written and nothing is recorded any more. Owns also what goes wrong with
//! them: a full disk, lost power, and a process that dies with a certain record. Knows no role.

use std::collections::BTreeMap;

use artoo_bus::journal::read;
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
    /// So many were written before the disk was full; nothing is written behind them any more, not even when there is room again.
    failed: Option<usize>,
}

/// What the real journal waits for: the intention of an action that cannot be taken back.
fn is_waited_for(entry: &Entry) -> bool {
    matches!(entry, Entry::Commanded { command: Command::RunTool { permit, .. }, .. } if permit.effect > EffectClass::Create)
}

/// The journals of all tasks of a world, by the eight digits that make a run unique.
#[derive(Debug, Default)]
pub struct Journals {
    books: BTreeMap<String, Book>,
    /// Records written in this world so far.
    written: u64,
    /// The process dies with this record.
    fuse: Option<u64>,
    dead: bool,
    full: bool,
    settings: Value,
}

impl Journals {
    /// What stands as settings in the first record of every task.
    #[must_use]
    pub fn opened_with(mut self, settings: Value) -> Self {
        self.settings = settings;
        self
    }

    /// A journal as another world left it.
    pub fn put(&mut self, task: &TaskId, records: &[Record]) {
        let mut book = Book {
            phase: Phase::Open,
            records: records.to_vec(),
            synced: 0,
            failed: None,
        };
        book.cut(records.len());
        self.books.insert(task.suffix().to_owned(), book);
    }

    /// Records written so far, of all tasks.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Lets the process die when so many records are written in all: the last one is on disk, what it says is not done any more.
    pub const fn light(&mut self, fuse: u64) {
        self.fuse = Some(fuse);
    }

    /// Whether the process is dead: nothing is written, said or done any more.
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Another process begins.
    pub const fn revive(&mut self) {
        self.dead = false;
        self.fuse = None;
    }

    /// From here on the disk is full, or has room again.
    pub const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Whether the disk is full.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether the journal of the task could not be written once: nothing may be done for it that needs a journal.
    pub fn has_failed(&self, task: &TaskId) -> bool {
        self.books.get(task.suffix()).is_some_and(|book| book.failed.is_some())
    }

    /// What a reader finds on disk.
    pub fn on_disk(&self, task: &TaskId) -> &[Record] {
        self.books.get(task.suffix()).map_or(&[], Book::on_disk)
    }

    /// The records of a task, the first one first, also those that a full disk did not take.
    pub fn records(&self, task: &TaskId) -> &[Record] {
        self.books.get(task.suffix()).map_or(&[], |book| &book.records)
    }

    /// The suffix and what a reader finds on disk of every task.
    pub fn all_on_disk(&self) -> impl Iterator<Item = (&str, &[Record])> {
        self.books
            .iter()
            .map(|(suffix, book)| (suffix.as_str(), book.on_disk()))
    }

    /// The suffix and the records of every task, also those that a full disk did not take.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[Record])> {
        self.books
            .iter()
            .map(|(suffix, book)| (suffix.as_str(), book.records.as_slice()))
    }

    /// Whether anything is written of the task.
    pub fn has_begun(&self, task: &TaskId) -> bool {
        self.books.contains_key(task.suffix())
    }

    /// Whether nothing may be done for the task any more.
    pub fn has_ended(&self, task: &TaskId) -> bool {
        self.books
            .get(task.suffix())
            .is_some_and(|book| book.phase != Phase::Open)
    }

    /// Whether the task has its FinalResult.
    pub fn has_finished(&self, task: &TaskId) -> bool {
        let book = self.books.get(task.suffix());
        book.is_some_and(|book| book.phase == Phase::Finished)
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
        if self.dead {
            return;
        }
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
        // A process that died with the first record never came to the second.
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
        if self.dead {
            return;
        }
        let full = self.full;
        if let Some(book) = self.books.get_mut(task.suffix())
            && book.phase != Phase::Finished
        {
            book.push(at, entry, full);
            self.burn();
        }
    }

    /// One more record is written; it may be the last one of the process.
    fn burn(&mut self) {
        self.written += 1;
        self.dead |= self.fuse.is_some_and(|fuse| self.written >= fuse);
    }

    /// The process is gone: what the disk did not take is gone with it.
    pub fn forget_unwritten(&mut self, task: &TaskId) {
        if let Some(book) = self.books.get_mut(task.suffix()) {
            let on_disk = book.on_disk().len();
            book.cut(on_disk);
            book.failed = None;
        }
    }

    /// The machine lost power: of what was not brought to disk, only the first `kept` records of each task are left.
    pub fn lose(&mut self, task: &TaskId, kept: usize) {
        if let Some(book) = self.books.get_mut(task.suffix()) {
            let left = book.synced.saturating_add(kept).max(2).min(book.records.len());
            book.cut(left);
        }
    }

    /// Writes the records of a task as the text of a file, with the beginning of another one behind them, and reads them again. A
    /// reader that gives anything else is told in words.
    ///
    /// # Errors
    /// In words, when the text gives other records.
    pub fn reread(&mut self, task: &TaskId, torn: usize) -> Result<(), String> {
        let Some(book) = self.books.get_mut(task.suffix()) else {
            return Ok(());
        };
        let mut text = String::new();
        for record in &book.records {
            text += &serde_json::to_string(record).map_err(|error| error.to_string())?;
            text.push('\n');
        }
        let half = text.lines().next_back().unwrap_or_default().to_owned();
        let whole = text.len();
        // Never the whole of it, and no half character: the text is one.
        let torn = (0..torn.min(half.len()))
            .rev()
            .find(|at| half.is_char_boundary(*at))
            .unwrap_or_default();
        text += half.get(..torn).unwrap_or_default();
        let contents = read::read(text.as_bytes()).map_err(|error| format!("an interrupted journal: {error}"))?;
        if contents.records != book.records || contents.torn != (torn > 0) || contents.bytes != whole as u64 {
            return Err("a journal that was read again holds other records".to_owned());
        }
        book.records = contents.records;
        Ok(())
    }

    fn open(&mut self, task: &TaskId, at: Timestamp) {
        let opened = Entry::Opened {
            format: FORMAT_VERSION,
            artoo: "simulated".to_owned(),
            task_id: task.clone(),
            settings: self.settings.clone(),
        };
        let mut book = Book {
            phase: Phase::Open,
            records: Vec::new(),
            synced: 0,
            failed: None,
        };
        book.push(at, opened, self.full);
        self.books.insert(task.suffix().to_owned(), book);
        self.burn();
    }
}

impl Book {
    fn push(&mut self, at: Timestamp, entry: Entry, full: bool) {
        if full && self.failed.is_none() {
            self.failed = Some(self.records.len());
        }
        let waited_for = is_waited_for(&entry);
        let n = self.records.len() as u64 + 1;
        self.records.push(Record {
            n,
            at,
            masked: false,
            entry,
        });
        if waited_for && self.failed.is_none() {
            self.synced = self.records.len();
        }
    }

    fn on_disk(&self) -> &[Record] {
        let written = self.failed.unwrap_or(self.records.len());
        self.records.get(..written).unwrap_or(&self.records)
    }

    /// Only the first records are left, and the task stands where they say.
    fn cut(&mut self, left: usize) {
        self.records.truncate(left);
        let said = |kind| move |record: &Record| matches!(&record.entry, Entry::Published { envelope } if envelope.payload.kind() == kind);
        self.phase = if self.records.iter().any(said(MessageKind::FinalResult)) {
            Phase::Finished
        } else if self.records.iter().any(said(MessageKind::TaskAborted)) {
            Phase::Aborted
        } else {
            Phase::Open
        };
    }
}
