//! The queue between the observer and the disk, and the thread at its end (design §16).
//!
//! Owns what happens when the disk is slow or full: nothing waits, what is lost is counted, and the count is written as soon as
//! that is possible. Must not know what an entry means.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;

use artoo_protocol::Timestamp;
use artoo_protocol::message::AuditReport;
use serde::Serialize;

use crate::files::{LogError, append_whole, replace};
use crate::log::Log;
use crate::recorder::Redact;
use crate::stats::{STATS_FORMAT, Stats};
use crate::tuning::TuningRow;
use crate::vocabulary::{Entry, Gap, Past};

/// Records that are written in one go.
const BATCH: usize = 1_024;
/// Bytes that are written in one go.
const BATCH_BYTES: usize = 1 << 20;

pub(crate) enum Job {
    Append {
        at: Timestamp,
        entry: Entry,
    },
    Row(Box<TuningRow>),
    Keep {
        past: Option<Box<Past>>,
        report: Option<Box<AuditReport>>,
    },
}

/// How many bytes wait in the queue, by estimate: a few thousand records may be a megabyte or a gigabyte.
#[derive(Debug)]
pub(crate) struct Load {
    bytes: AtomicUsize,
    most: usize,
}

impl Load {
    pub const fn new(most: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            most,
        }
    }

    /// Whether there is room; one entry always has it, however large. Only one thread takes.
    fn take(&self, bytes: usize) -> bool {
        let waiting = self.bytes.load(Ordering::Acquire);
        let fits = waiting == 0 || waiting.saturating_add(bytes) <= self.most;
        if fits {
            self.add(bytes);
        }
        fits
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// About how much memory an entry holds.
fn weight(entry: &Entry) -> usize {
    /// What a record holds beside long texts.
    const PLAIN: usize = 1_000;
    match entry {
        Entry::Envelope(envelope) => envelope.weight(),
        Entry::Deed(_) | Entry::Finding(_) | Entry::Gap(_) => PLAIN,
        Entry::Note(note) => PLAIN + note.len(),
        // Lists of a few hundred lines.
        Entry::Counts(_) => 100 * PLAIN,
    }
}

/// The feeding end of the queue.
#[derive(Debug)]
pub(crate) struct Pen {
    sender: SyncSender<Job>,
    load: Arc<Load>,
    thread: JoinHandle<Result<(), LogError>>,
    lost: Option<Gap>,
}

impl Pen {
    pub const fn new(sender: SyncSender<Job>, load: Arc<Load>, thread: JoinHandle<Result<(), LogError>>) -> Self {
        Self {
            sender,
            load,
            thread,
            lost: None,
        }
    }

    /// Whether everything so far is in the log or on its way there.
    pub const fn is_whole(&self) -> bool {
        self.lost.is_none()
    }

    /// Queues an entry, or counts it as missed. Answers with the gap that has just been closed, if there was one.
    pub fn append(&mut self, at: Timestamp, entry: Entry) -> Option<Gap> {
        let closed = self.lost.filter(|gap| self.offer(at, Entry::Gap(*gap)).is_ok());
        if closed.is_some() {
            self.lost = None;
        }
        if self.lost.is_some() {
            self.lost = merge(self.lost, &entry);
        } else if let Err(entry) = self.offer(at, entry) {
            self.lost = merge(self.lost, &entry);
        }
        closed
    }

    /// Gives the entry back when there is no room.
    fn offer(&self, at: Timestamp, entry: Entry) -> Result<(), Entry> {
        use std::sync::mpsc::TrySendError::{Disconnected, Full};
        let bytes = weight(&entry);
        if !self.load.take(bytes) {
            return Err(entry);
        }
        match self.sender.try_send(Job::Append { at, entry }) {
            Err(Full(Job::Append { entry, .. }) | Disconnected(Job::Append { entry, .. })) => {
                self.load.give(bytes);
                Err(entry)
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Adds a row to the table of tasks, or counts it as missed; the log still has everything that it was made of.
    pub fn row(&mut self, row: Box<TuningRow>) {
        if self.sender.try_send(Job::Row(row)).is_err() {
            self.lost = merge(self.lost, &Entry::Gap(Gap::rows(1)));
        }
    }

    /// Asks for the counts to be kept; when the queue is full, the next time will do.
    pub fn keep(&self, past: Option<Box<Past>>, report: Option<Box<AuditReport>>) {
        let _ = self.sender.try_send(Job::Keep { past, report });
    }

    /// Says the last words, waiting for room, and waits for the thread.
    pub fn finish(self, at: Timestamp, past: Option<Box<Past>>, report: Option<&AuditReport>) -> Result<(), LogError> {
        if let Some(gap) = self.lost {
            let entry = Entry::Gap(gap);
            self.load.add(weight(&entry));
            let _ = self.sender.send(Job::Append { at, entry });
        }
        let report = report.cloned().map(Box::new);
        let _ = self.sender.send(Job::Keep { past, report });
        drop(self.sender);
        self.thread.join().unwrap_or_else(|_| {
            Err(LogError::Io {
                path: "audit.jsonl".into(),
                source: std::io::Error::other("the thread that writes it broke; what it wrote is whole"),
            })
        })
    }
}

/// A gap made longer by an entry that is lost too.
fn merge(gap: Option<Gap>, entry: &Entry) -> Option<Gap> {
    let lost = match entry {
        Entry::Envelope(envelope) => Gap {
            from_seq: envelope.seq,
            to_seq: envelope.seq,
            count: 1,
            ..Gap::default()
        },
        Entry::Deed(_) => Gap {
            deeds: 1,
            ..Gap::default()
        },
        Entry::Gap(gap) => *gap,
        // Findings are made of messages, and those are counted.
        Entry::Finding(_) | Entry::Note(_) | Entry::Counts(_) => return gap,
    };
    let Some(gap) = gap else { return Some(lost) };
    Some(Gap {
        from_seq: if gap.count == 0 { lost.from_seq } else { gap.from_seq },
        to_seq: if lost.count == 0 { gap.to_seq } else { lost.to_seq },
        count: gap.count.saturating_add(lost.count),
        deeds: gap.deeds.saturating_add(lost.deeds),
        rows: gap.rows.saturating_add(lost.rows),
    })
}

/// The writing end of the queue.
pub(crate) struct Writer {
    log: Log,
    redact: Redact,
    load: Arc<Load>,
    now: Timestamp,
    /// Rows of closed tasks, to be written with the batch, and how many.
    rows: (String, u64),
    last_report: Option<Box<AuditReport>>,
    /// What the batch being written holds, should it be lost.
    batch: Option<Gap>,
    lost: Option<Gap>,
    trouble: Option<LogError>,
}

impl Writer {
    pub const fn new(
        log: Log,
        redact: Redact,
        load: Arc<Load>,
        now: Timestamp,
        last_report: Option<Box<AuditReport>>,
    ) -> Self {
        Self {
            log,
            redact,
            load,
            now,
            rows: (String::new(), 0),
            last_report,
            batch: None,
            lost: None,
            trouble: None,
        }
    }

    pub fn run(mut self, receiver: &Receiver<Job>, notes: Vec<String>) -> Result<(), LogError> {
        for note in notes {
            self.append(self.now, &Entry::Note(note));
        }
        self.commit();
        while let Ok(job) = receiver.recv() {
            self.take(job);
            for job in receiver.try_iter().take(BATCH) {
                self.take(job);
                if self.log.pending() > BATCH_BYTES {
                    break;
                }
            }
            self.commit();
        }
        if let Some(gap) = self.lost.take() {
            self.append(self.now, &Entry::Gap(gap));
            self.commit();
        }
        let sealed = self.log.finish(self.now);
        self.note_trouble(sealed);
        self.trouble.map_or(Ok(()), Err)
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Append { at, entry } => {
                self.load.give(weight(&entry));
                self.now = at;
                if let Some(gap) = self.lost.take() {
                    self.append(at, &Entry::Gap(gap));
                }
                self.append(at, &entry);
            }
            Job::Row(row) => {
                let row = self.masked(&*row);
                self.rows.0.push_str(&row);
                self.rows.0.push('\n');
                self.rows.1 += 1;
            }
            Job::Keep { past, report } => {
                self.last_report = report.or(self.last_report.take());
                // What was counted ends with what was queued before this job.
                self.commit();
                self.keep(past);
            }
        }
    }

    fn append(&mut self, at: Timestamp, entry: &Entry) {
        let (name, body) = match entry {
            Entry::Envelope(envelope) => ("envelope", self.masked(envelope.as_ref())),
            Entry::Deed(deed) => ("deed", self.masked(deed.as_ref())),
            Entry::Finding(finding) => ("finding", self.masked(finding)),
            Entry::Gap(gap) => ("gap", self.masked(gap)),
            Entry::Note(note) => ("note", self.masked(note)),
            Entry::Counts(past) => ("counts", self.masked(past.as_ref())),
        };
        self.log.append(at, name, &body);
        self.batch = merge(self.batch, entry);
    }

    /// The JSON of something of this crate or the protocol, none of which can fail to be written.
    fn masked(&self, value: &impl Serialize) -> String {
        (self.redact)(serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
    }

    fn commit(&mut self) {
        let batch = self.batch.take();
        let written = self.log.commit();
        if let (Err(_), Some(gap)) = (&written, batch) {
            self.lost = merge(self.lost, &Entry::Gap(gap));
        }
        self.note_trouble(written);
        let sealed = self.log.seal_if_due(self.now);
        self.note_trouble(sealed);
        let (rows, count) = std::mem::take(&mut self.rows);
        if count > 0 {
            let written = append_whole(&self.log.files().tuning(), &rows);
            if written.is_err() {
                self.lost = merge(self.lost, &Entry::Gap(Gap::rows(count)));
            }
            self.note_trouble(written);
        }
    }

    /// Replaces the kept counts; without new ones, only the report in them.
    fn keep(&mut self, past: Option<Box<Past>>) {
        let folder = self.log.files().folder().to_owned();
        let mut stats = match past {
            Some(past) => Stats::of(self.log.link(), *past, |text| (self.redact)(text)),
            None => crate::stats::read_stats(&folder),
        };
        stats.format = STATS_FORMAT;
        // Reports are masked when they are made.
        stats.last_report = self.last_report.as_deref().cloned();
        let kept = replace(&self.log.files().stats(), &stats, |text| text);
        self.note_trouble(kept);
    }

    /// The first trouble is the one to tell.
    fn note_trouble(&mut self, result: Result<(), LogError>) {
        if let (None, Err(error)) = (&self.trouble, result) {
            self.trouble = Some(error);
        }
    }
}
