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

/// How much waits in the queue: entries, and bytes by estimate, for a few thousand records may be a megabyte or a gigabyte.
#[derive(Debug)]
pub(crate) struct Load {
    entries: AtomicUsize,
    most_entries: usize,
    bytes: AtomicUsize,
    most_bytes: usize,
}

impl Load {
    pub const fn new(most_entries: usize, most_bytes: usize) -> Self {
        Self {
            entries: AtomicUsize::new(0),
            most_entries,
            bytes: AtomicUsize::new(0),
            most_bytes,
        }
    }

    /// Whether there is room; one entry always has it, however large. Only one thread takes.
    fn take(&self, bytes: usize) -> bool {
        let waiting = self.bytes.load(Ordering::Acquire);
        let fits = waiting == 0 || waiting.saturating_add(bytes) <= self.most_bytes;
        if fits {
            self.add(bytes);
        }
        fits
    }

    /// Whether at most half of it is used: who has begun to lose goes on losing until then, so that one long gap is told instead of
    /// thousands of short ones, each with its own record to be written.
    fn is_half_free(&self) -> bool {
        self.entries.load(Ordering::Acquire) <= self.most_entries / 2
            && self.bytes.load(Ordering::Acquire) <= self.most_bytes / 2
    }

    pub fn add(&self, bytes: usize) {
        self.entries.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    pub fn give(&self, bytes: usize) {
        self.entries.fetch_sub(1, Ordering::AcqRel);
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
        Entry::Note(note) | Entry::Damage(note) => PLAIN + note.len(),
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
        let told = |gap: &Gap| self.load.is_half_free() && self.offer(at, Entry::Gap(*gap)).is_ok();
        let closed = self.lost.filter(told);
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
        Entry::Finding(_) => Gap {
            findings: 1,
            ..Gap::default()
        },
        Entry::Gap(gap) => *gap,
        // Notes wait until they are written, and counts are made anew.
        Entry::Note(_) | Entry::Damage(_) | Entry::Counts(_) => return gap,
    };
    let Some(gap) = gap else { return Some(lost) };
    Some(Gap {
        from_seq: if gap.count == 0 { lost.from_seq } else { gap.from_seq },
        to_seq: if lost.count == 0 { gap.to_seq } else { lost.to_seq },
        count: gap.count.saturating_add(lost.count),
        deeds: gap.deeds.saturating_add(lost.deeds),
        rows: gap.rows.saturating_add(lost.rows),
        findings: gap.findings.saturating_add(lost.findings),
        unknown: gap.unknown || lost.unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(seq: u64) -> Entry {
        Entry::Gap(Gap {
            from_seq: seq,
            to_seq: seq,
            count: 1,
            ..Gap::default()
        })
    }

    /// Each gap is a record to be written: a disk that cannot follow must not get one for every second message.
    #[test]
    fn who_has_begun_to_lose_goes_on_until_half_is_free() {
        let (sender, receiver) = sync_channel(4);
        let load = Arc::new(Load::new(4, usize::MAX));
        let thread = std::thread::spawn(|| Ok(()));
        let mut pen = Pen::new(sender, Arc::clone(&load), Arc::default(), thread);
        let write_one = || {
            let Job::Append { entry, .. } = receiver.recv().unwrap() else {
                panic!("only entries were queued")
            };
            load.give(weight(&entry));
            entry
        };
        let mut append = |seq| pen.append(Timestamp::default(), one(seq));
        for seq in 1..=5 {
            assert_eq!(append(seq), None);
        }
        write_one();
        assert_eq!(append(6), None, "there is room, but not enough");
        write_one();
        let closed = append(7).unwrap();
        assert_eq!((closed.from_seq, closed.to_seq, closed.count), (5, 6, 2));
        let rest: Vec<_> = (0..4).map(|_| write_one()).collect();
        assert_eq!(rest, [one(3), one(4), Entry::Gap(closed), one(7)]);
    }
}
