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
use crate::pen::{Pen, Writer};
use crate::stats::{Depth, count, read_stats};
use crate::vocabulary::{Effect, Observed, Past};

/// Masks secrets in one JSON text before it is written.
pub type Redact = Arc<dyn Fn(String) -> String + Send + Sync>;

/// Records that may wait for the disk.
const QUEUE: usize = 8_192;
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
        let counted = count(folder, Depth::Tail)?;
        let (sender, receiver) = sync_channel(options.queue);
        let last_report = read_stats(folder).last_report.map(Box::new);
        let writer = Writer::new(log, Arc::clone(&options.redact), now, last_report);
        let thread = std::thread::Builder::new()
            .name("artoo-audit".to_owned())
            .spawn(move || writer.run(&receiver, notes))
            .map_err(at_path(folder))?;
        Ok(Self {
            auditor: Auditor::new(now, options.period, counted.past),
            pen: Pen::new(sender, thread),
            redact: options.redact,
            kept: now,
            whole: counted.whole,
        })
    }

    /// Takes what the tap shows; a report is for the operator.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Option<AuditReport> {
        let ends_task = matches!(&observed, Observed::Envelope(e) if e.payload.kind() == MessageKind::FinalResult);
        let mut report = None;
        for effect in self.auditor.observe(now, observed) {
            report = report.or(self.perform(now, effect));
        }
        if ends_task && now.since(self.kept) >= KEEP_PERIOD {
            self.keep(now, None);
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
        self.perform(now, effect)
    }

    /// A report now.
    pub fn report(&mut self, now: Timestamp) -> Option<AuditReport> {
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
        let effect = self.auditor.exit(now);
        let report = self.perform(now, effect);
        // Whoever begins anew knows nothing of the tasks that are still open, so their state is no part of what is kept.
        let past = self.whole.then(|| Box::new(self.auditor.whole().clone()));
        self.pen.finish(now, past, report.as_ref())?;
        Ok(report)
    }

    fn perform(&mut self, now: Timestamp, effect: Effect) -> Option<AuditReport> {
        match effect {
            Effect::Append { at, entry } => {
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
