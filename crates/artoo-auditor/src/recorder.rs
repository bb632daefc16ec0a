//! The auditor in a process: the pure observer, and a thread of its own that writes (design §16).
//!
//! Owns the bounded queue between them. Whoever feeds it never waits: when the disk cannot follow, messages are counted as
//! missed and the log gets a gap record as soon as there is room again.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use artoo_protocol::message::{AuditReport, MessageKind};
use artoo_protocol::{Millis, Timestamp};
use serde_json::Value;

use crate::counts::Totals;
use crate::log::{Log, LogError, read_stats};
use crate::observer::{Auditor, Effect, Entry, Gap, Observed};

/// Masks secrets in an envelope before it is written.
pub type Redact = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Records that may wait for the disk.
const QUEUE: usize = 16_384;
/// Records that are written in one go.
const BATCH: usize = 1_024;

/// R6 as a process runs it.
#[derive(Debug)]
pub struct Recorder {
    auditor: Auditor,
    pen: Pen,
}

impl Recorder {
    /// Continues the log and the totals of a folder.
    ///
    /// # Errors
    /// [`LogError`] when the log cannot be opened.
    pub fn start(folder: &Path, now: Timestamp, period: Millis, redact: Redact) -> Result<Self, LogError> {
        Self::with_queue(folder, now, period, redact, QUEUE)
    }

    /// The same with room for so many waiting records.
    ///
    /// # Errors
    /// [`LogError`] when the log cannot be opened.
    pub fn with_queue(
        folder: &Path,
        now: Timestamp,
        period: Millis,
        redact: Redact,
        queue: usize,
    ) -> Result<Self, LogError> {
        let stats = read_stats(folder);
        let (log, notes) = Log::open(folder)?;
        let (sender, receiver) = sync_channel(queue);
        let writer = Writer {
            log,
            redact,
            now,
            last_report: stats.last_report.map(Box::new),
            stats: None,
            batch: None,
            lost: None,
            trouble: None,
        };
        let thread = std::thread::Builder::new()
            .name("artoo-audit".to_owned())
            .spawn(move || writer.run(&receiver, notes))
            .map_err(|source| LogError::Io {
                path: folder.to_owned(),
                source,
            })?;
        let pen = Pen {
            sender,
            thread,
            lost: None,
        };
        Ok(Self {
            auditor: Auditor::new(now, period, stats.totals),
            pen,
        })
    }

    /// Takes what the tap shows; a report is for the operator.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Option<AuditReport> {
        let ends_task = matches!(&observed, Observed::Envelope(e) if e.payload.kind() == MessageKind::FinalResult);
        let mut report = None;
        for effect in self.auditor.observe(now, observed) {
            report = report.or(self.perform(effect));
        }
        if ends_task {
            self.pen.keep(self.auditor.totals(), None);
        }
        report
    }

    /// When [`Recorder::wake`] has something to say.
    pub fn deadline(&self) -> Timestamp {
        self.auditor.deadline()
    }

    /// The periodic report, when its time has come.
    pub fn wake(&mut self, now: Timestamp) -> Option<AuditReport> {
        let effect = self.auditor.wake(now)?;
        self.perform(effect)
    }

    /// A report now.
    pub fn report(&mut self, now: Timestamp) -> Option<AuditReport> {
        let effect = self.auditor.on_demand(now);
        self.perform(effect)
    }

    /// Writes everything and ends; waits for the disk.
    ///
    /// # Errors
    /// The first [`LogError`] that kept something from being written.
    pub fn finish(mut self, now: Timestamp) -> Result<Option<AuditReport>, LogError> {
        let effect = self.auditor.exit(now);
        let report = self.perform(effect);
        self.pen.finish(now, self.auditor.totals(), report.as_ref())?;
        Ok(report)
    }

    fn perform(&mut self, effect: Effect) -> Option<AuditReport> {
        match effect {
            Effect::Append { at, entry } => {
                if let Some(gap) = self.pen.append(at, &entry) {
                    self.auditor.missed(gap);
                }
                None
            }
            Effect::Report(report) => {
                self.pen.keep(self.auditor.totals(), Some(report.clone()));
                Some(*report)
            }
        }
    }
}

enum Job {
    Append {
        at: Timestamp,
        entry: Entry,
    },
    Keep {
        totals: Totals,
        report: Option<Box<AuditReport>>,
    },
}

/// The feeding end of the queue.
#[derive(Debug)]
struct Pen {
    sender: SyncSender<Job>,
    thread: JoinHandle<Result<(), LogError>>,
    lost: Option<Gap>,
}

impl Pen {
    /// Queues an entry, or counts it as missed. Answers with the gap that has just been closed, if there was one.
    fn append(&mut self, at: Timestamp, entry: &Entry) -> Option<Gap> {
        let closed = self.lost.filter(|gap| self.offer(at, &Entry::Gap(*gap)));
        if closed.is_some() {
            self.lost = None;
        }
        if self.lost.is_some() || !self.offer(at, entry) {
            self.lost = merge(self.lost, entry);
        }
        closed
    }

    fn offer(&self, at: Timestamp, entry: &Entry) -> bool {
        let entry = entry.clone();
        self.sender.try_send(Job::Append { at, entry }).is_ok()
    }

    /// Asks for the totals to be kept; when the queue is full, the next time will do.
    fn keep(&self, totals: Totals, report: Option<Box<AuditReport>>) {
        let _ = self.sender.try_send(Job::Keep { totals, report });
    }

    /// Says the last words, waiting for room, and waits for the thread.
    fn finish(self, at: Timestamp, totals: Totals, report: Option<&AuditReport>) -> Result<(), LogError> {
        if let Some(gap) = self.lost {
            let entry = Entry::Gap(gap);
            let _ = self.sender.send(Job::Append { at, entry });
        }
        let report = report.cloned().map(Box::new);
        let _ = self.sender.send(Job::Keep { totals, report });
        drop(self.sender);
        // A writer that panicked has said so on stderr; what it wrote is whole up to its last commit.
        self.thread.join().unwrap_or(Ok(()))
    }
}

/// A gap made longer by an entry that is lost too.
fn merge(gap: Option<Gap>, entry: &Entry) -> Option<Gap> {
    let (from_seq, to_seq, count) = match entry {
        Entry::Envelope(envelope) => (envelope.seq, envelope.seq, 1),
        Entry::Gap(gap) => (gap.from_seq, gap.to_seq, gap.count),
        Entry::Note(_) => return gap,
    };
    Some(gap.map_or(
        Gap {
            from_seq,
            to_seq,
            count,
        },
        |gap| Gap {
            from_seq: gap.from_seq,
            to_seq,
            count: gap.count.saturating_add(count),
        },
    ))
}

/// The writing end of the queue.
struct Writer {
    log: Log,
    redact: Redact,
    now: Timestamp,
    last_report: Option<Box<AuditReport>>,
    stats: Option<Totals>,
    /// What the batch being written holds, should it be lost.
    batch: Option<Gap>,
    lost: Option<Gap>,
    trouble: Option<LogError>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Job>, notes: Vec<String>) -> Result<(), LogError> {
        for note in notes {
            self.append(self.now, &Entry::Note(note));
        }
        self.commit();
        while let Ok(job) = receiver.recv() {
            self.take(job);
            for job in receiver.try_iter().take(BATCH) {
                self.take(job);
            }
            self.commit();
        }
        if let Some(gap) = self.lost.take() {
            self.append(self.now, &Entry::Gap(gap));
            self.commit();
        }
        let sealed = self.log.seal(self.now);
        self.note_trouble(sealed);
        self.trouble.map_or(Ok(()), Err)
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Append { at, entry } => {
                self.now = at;
                if let Some(gap) = self.lost.take() {
                    self.append(at, &Entry::Gap(gap));
                }
                self.append(at, &entry);
            }
            Job::Keep { totals, report } => {
                self.stats = Some(totals);
                self.last_report = report.or(self.last_report.take());
            }
        }
    }

    fn append(&mut self, at: Timestamp, entry: &Entry) {
        let body = match entry {
            Entry::Envelope(envelope) => {
                let mut value = serde_json::to_value(envelope.as_ref()).unwrap_or_default();
                (self.redact)(&mut value);
                format!("\"envelope\":{value}")
            }
            Entry::Gap(gap) => format!("\"gap\":{}", serde_json::to_value(gap).unwrap_or_default()),
            Entry::Note(note) => format!("\"note\":{}", Value::from(note.as_str())),
        };
        self.log.append(at, &body);
        self.batch = merge(self.batch, entry);
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
        if let Some(totals) = self.stats.take() {
            let kept = self.log.files().write_stats(totals, self.last_report.as_deref());
            self.note_trouble(kept);
        }
    }

    /// The first trouble is the one to tell.
    fn note_trouble(&mut self, result: Result<(), LogError>) {
        if let (None, Err(error)) = (&self.trouble, result) {
            self.trouble = Some(error);
        }
    }
}
