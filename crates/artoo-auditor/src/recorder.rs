//! The auditor in a process: the pure observer, and a thread of its own that writes (design §16).
//!
//! Owns the bounded queue between them. Whoever feeds it never waits: when the disk cannot follow, messages are counted as
//! missed and the log gets a gap record as soon as there is room again.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use artoo_protocol::message::{AuditReport, MessageKind};
use artoo_protocol::{Millis, Timestamp};

use crate::files::{LogError, at_path};
use crate::log::Log;
use crate::observer::{Auditor, REPORT_PERIOD};
use crate::pen::{Load, Losses, Pen};
use crate::stats::{Depth, count, read_stats};
use crate::vocabulary::{Effect, Entry, Observed, Past};
use crate::writer::Writer;

/// Masks secrets in one JSON text before it is written.
pub type Redact = Arc<dyn Fn(String) -> String + Send + Sync>;

/// Records that may wait for the disk …
const QUEUE: usize = 8_192;
/// … and bytes of memory that they may hold meanwhile, by estimate.
const QUEUE_BYTES: usize = 16 << 20;
/// After so many records the log gets a record of what was counted up to there.
const COUNTS_EVERY: u64 = 20_000;
/// Size at which a file of the log is full.
const FULL_AT: u64 = 64 << 20;
/// How old the kept counts may be while nothing is under way.
const KEEP_PERIOD: Millis = Millis(1_000);

/// How a recorder is set up.
#[derive(Clone)]
pub struct Options {
    /// Time between periodic reports.
    pub period: Millis,
    /// Records that may wait for the disk.
    pub queue: usize,
    /// Bytes of memory that they may hold, by estimate.
    pub queue_bytes: usize,
    /// After so many records the log gets a record of what was counted up to there, as soon as no task is under way.
    pub counts_every: u64,
    /// Size in bytes at which a file of the log is full.
    pub full_at: u64,
    /// Masks secrets.
    pub redact: Redact,
}

impl Options {
    /// The usual sizes.
    pub fn new(redact: Redact) -> Self {
        Self {
            period: REPORT_PERIOD,
            queue: QUEUE,
            queue_bytes: QUEUE_BYTES,
            counts_every: COUNTS_EVERY,
            full_at: FULL_AT,
            redact,
        }
    }
}

/// R6 as a process runs it.
pub struct Recorder {
    auditor: Auditor,
    pen: Pen,
    redact: Redact,
    kept: Timestamp,
    counts_every: u64,
    /// Records since the last one that holds counts.
    since_counts: u64,
    /// Whether what is counted begins with the log. Where it does not, it is not kept: that would hide for ever what is missing.
    whole: bool,
}

impl Recorder {
    /// Continues the log and the counts of a folder.
    ///
    /// # Errors
    /// [`LogError`] when the log cannot be opened.
    pub fn start(folder: &Path, now: Timestamp, options: Options) -> Result<Self, LogError> {
        let (log, notes) = Log::open(folder, options.full_at)?;
        let begun_at = log.link().n;
        let counted = count(folder, Depth::Tail)?;
        let (sender, receiver) = sync_channel(options.queue);
        let last_report = read_stats(folder).last_report.map(Box::new);
        let load = Arc::new(Load::new(options.queue, options.queue_bytes));
        let losses = Arc::new(Losses::default());
        let redact = Arc::clone(&options.redact);
        let writer = Writer::new(log, redact, Arc::clone(&load), Arc::clone(&losses), now, last_report);
        let thread = std::thread::Builder::new()
            .name("artoo-audit".to_owned())
            .spawn(move || writer.run(&receiver, notes))
            .map_err(at_path(folder))?;
        Ok(Self {
            auditor: Auditor::new(now, options.period, counted.past),
            pen: Pen::new(sender, load, losses, thread),
            redact: options.redact,
            kept: now,
            counts_every: options.counts_every,
            // Counted from the record's number, so that many short processes come to a record of counts as well as one long one.
            since_counts: begun_at % options.counts_every.max(1),
            whole: counted.whole,
        })
    }

    /// Takes what the tap shows; a report is for the operator.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Option<AuditReport> {
        self.learn(now);
        let ends_task = matches!(&observed, Observed::Envelope(e) if e.payload.kind() == MessageKind::FinalResult);
        let mut report = None;
        for effect in self.auditor.observe(now, observed) {
            report = report.or(self.perform(now, effect));
        }
        if ends_task && now.since(self.kept) >= KEEP_PERIOD {
            self.keep(now, None);
        }
        if ends_task && self.since_counts >= self.counts_every {
            self.write_counts(now);
        }
        report
    }

    /// When [`Recorder::wake`] has something to say.
    pub fn deadline(&self) -> Timestamp {
        self.auditor.deadline()
    }

    /// The periodic report, when its time has come.
    pub fn wake(&mut self, now: Timestamp) -> Option<AuditReport> {
        self.learn(now);
        let effect = self.auditor.wake(now)?;
        self.perform(now, effect)
    }

    /// A report now.
    pub fn report(&mut self, now: Timestamp) -> Option<AuditReport> {
        self.learn(now);
        let effect = self.auditor.on_demand(now);
        self.perform(now, effect)
    }

    /// What was counted since the beginning of the log.
    pub const fn whole(&self) -> &Past {
        self.auditor.whole()
    }

    /// Writes everything and ends; waits for the disk.
    ///
    /// # Errors
    /// The first [`LogError`] that kept something from being written.
    pub fn finish(mut self, now: Timestamp) -> Result<Option<AuditReport>, LogError> {
        // What is counted last must know what became of everything.
        self.pen.settle();
        self.learn(now);
        if let Some(gap) = self.pen.missed() {
            self.auditor.missed(now, gap);
        }
        let effect = self.auditor.exit(now);
        let report = self.perform(now, effect);
        // Whoever begins anew knows nothing of the tasks that are still open, so their state is no part of what is kept.
        let past = self.whole.then(|| Box::new(self.auditor.whole().clone()));
        self.pen.finish(now, past, report.as_ref())?;
        Ok(report)
    }

    /// Counts what the disk has refused meanwhile; the log says so as soon as it can be written.
    fn learn(&mut self, now: Timestamp) {
        if let Some(gap) = self.pen.refused() {
            self.auditor.missed(now, gap);
        }
    }

    fn perform(&mut self, now: Timestamp, effect: Effect) -> Option<AuditReport> {
        match effect {
            Effect::Append { at, entry } => {
                self.since_counts = self.since_counts.saturating_add(1);
                if let Some(gap) = self.pen.append(at, entry) {
                    self.auditor.missed(now, gap);
                }
                None
            }
            Effect::Row(row) => {
                self.pen.row(row);
                None
            }
            Effect::Report(report) => {
                let report = self.masked(*report);
                self.keep(now, Some(report.clone()));
                Some(report)
            }
        }
    }

    /// A finding names tools and targets, and those may hold anything.
    fn masked(&self, report: AuditReport) -> AuditReport {
        let text = serde_json::to_string(&report).unwrap_or_default();
        serde_json::from_str(&(self.redact)(text)).unwrap_or(report)
    }

    fn keep(&mut self, now: Timestamp, report: Option<AuditReport>) {
        self.kept = now;
        let past = self.at_rest();
        self.pen.keep(past, report.map(Box::new));
    }

    /// Puts the counts into the log itself, where the chain protects them: a report need not read what came before.
    fn write_counts(&mut self, now: Timestamp) {
        if let Some(past) = self.at_rest().filter(|_| self.pen.is_whole()) {
            // Where it is lost, the next one will do; nothing is missing then.
            let _ = self.pen.append(now, Entry::Counts(past));
            self.since_counts = 0;
        }
    }

    /// What was counted, if no task is under way: whoever goes on from there has missed no beginning.
    fn at_rest(&self) -> Option<Box<Past>> {
        (self.whole && self.auditor.open_tasks() == 0).then(|| Box::new(self.auditor.whole().clone()))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("auditor", &self.auditor)
            .finish_non_exhaustive()
    }
}
