//! The queue between the observer and the disk, seen by the one who feeds it (design §16).
//!
//! Owns what happens when the disk is slow or full: nothing waits, what is lost is counted, and the count is written as soon as
//! that is possible. Must not know what an entry means, nor how it is written.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use artoo_protocol::Timestamp;
use artoo_protocol::message::AuditReport;

use crate::files::LogError;
use crate::tuning::TuningRow;
use crate::vocabulary::{Entry, Gap, Past};

pub(crate) enum Job {
    Append {
        at: Timestamp,
        entry: Entry,
        /// So many losses were known when it was made; counts that know fewer than there are would hide one.
        knows: u64,
    },
    Row(Box<TuningRow>),
    Keep {
        past: Option<Box<Past>>,
        report: Option<Box<AuditReport>>,
        knows: u64,
    },
    /// Write what came before this, then drop the sender.
    Settle(SyncSender<()>),
}

/// What the disk refused, on its way from the thread that writes to the one that counts: the counts have seen messages of which the log
/// holds a gap only.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// How often something was lost.
    number: AtomicU64,
    /// What was lost and not told yet.
    untold: Mutex<Option<Gap>>,
}

impl Losses {
    pub fn add(&self, gap: Gap) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        *untold = merge(*untold, &Entry::Gap(gap));
        self.number.fetch_add(1, Ordering::AcqRel);
    }

    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// What was not told yet, and how many losses are known with it.
    pub fn take(&self) -> (u64, Option<Gap>) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        (self.number(), untold.take())
    }
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

    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    pub fn give(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// About how much memory an entry holds.
pub(crate) fn weight(entry: &Entry) -> usize {
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
    losses: Arc<Losses>,
    /// How many of the losses whoever counts has been told of.
    knows: u64,
}

impl Pen {
    pub const fn new(
        sender: SyncSender<Job>,
        load: Arc<Load>,
        losses: Arc<Losses>,
        thread: JoinHandle<Result<(), LogError>>,
    ) -> Self {
        Self {
            sender,
            load,
            thread,
            lost: None,
            losses,
            knows: 0,
        }
    }

    /// What the disk has refused since this was last asked. The log gets its gap record from the thread that writes.
    pub fn refused(&mut self) -> Option<Gap> {
        if self.losses.number() == self.knows {
            return None;
        }
        let (knows, gap) = self.losses.take();
        self.knows = knows;
        gap
    }

    /// Waits until what was queued is written or refused.
    pub fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.sender.send(Job::Settle(done)).is_ok() {
            // Nothing is ever sent: the other end goes when it is done, or with its thread.
            let _ = settled.recv();
        }
    }

    /// What found no room in the queue and is in no gap record yet; the next record to be queued is that gap.
    pub const fn missed(&self) -> Option<Gap> {
        self.lost
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
        let knows = self.knows;
        match self.sender.try_send(Job::Append { at, entry, knows }) {
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
        let knows = self.knows;
        let _ = self.sender.try_send(Job::Keep { past, report, knows });
    }

    /// Says the last words, waiting for room, and waits for the thread.
    pub fn finish(self, at: Timestamp, past: Option<Box<Past>>, report: Option<&AuditReport>) -> Result<(), LogError> {
        let knows = self.knows;
        if let Some(gap) = self.lost {
            let entry = Entry::Gap(gap);
            self.load.add(weight(&entry));
            let _ = self.sender.send(Job::Append { at, entry, knows });
        }
        let report = report.cloned().map(Box::new);
        let _ = self.sender.send(Job::Keep { past, report, knows });
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
pub(crate) fn merge(gap: Option<Gap>, entry: &Entry) -> Option<Gap> {
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
