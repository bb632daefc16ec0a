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
/// Hears at once, in words, that the auditor broke; called on whatever thread that was.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Records that may wait for the disk …
const QUEUE: usize = 8_192;
/// … and bytes of memory that they may hold meanwhile, by estimate.
const QUEUE_BYTES: usize = 16 << 20;
/// After so many records the log gets a record of what was counted up to there.
const COUNTS_EVERY: u64 = 20_000;
/// Size at which a file of the log is full.
const FULL_AT: u64 = 64 << 20;
/// What the log says from where on it holds no findings.
const BLIND: &str =
    "the auditor broke: from here to the end of its process messages are recorded and nobody looks for anomalies";
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
    /// Hears when the auditor breaks.
    pub tell: Tell,
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
            tell: Arc::new(|_| {}),
        }
    }
}

/// R6 as a process runs it.
pub struct Recorder {
    auditor: Auditor,
    pen: Pen,
    redact: Redact,
    tell: Tell,
    /// Whether it only records any more.
    blind: bool,
    /// What is being looked at and was not recorded yet.
    in_hand: Option<Entry>,
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
        let (log, first) = Log::open(folder, options.full_at)?;
        let begun_at = log.link().n;
        let counted = count(folder, Depth::Tail)?;
        let (sender, receiver) = sync_channel(options.queue);
        let last_report = read_stats(folder).last_report.map(Box::new);
        let load = Arc::new(Load::new(options.queue, options.queue_bytes));
        let losses = Arc::new(Losses::default());
        let redact = Arc::clone(&options.redact);
        let mut auditor = Auditor::new(now, options.period, counted.past);
        for entry in &first {
            if let Entry::Gap(gap) = entry {
                auditor.missed(now, *gap);
            }
        }
        let means = (redact, Arc::clone(&options.tell));
        let writer = Writer::new(log, means, Arc::clone(&load), Arc::clone(&losses), now, last_report);
        let alarm = Alarm(Arc::clone(&options.tell));
        let thread = std::thread::Builder::new()
            .name("artoo-audit".to_owned())
            .spawn(move || {
                let _alarm = alarm;
                writer.run(&receiver, first)
            })
            .map_err(at_path(folder))?;
        Ok(Self {
            auditor,
            pen: Pen::new(sender, load, losses, thread),
            redact: options.redact,
            tell: options.tell,
            blind: false,
            in_hand: None,
            kept: now,
            counts_every: options.counts_every,
            // Counted from the record's number, so that many short processes come to a record of counts as well as one long one.
            since_counts: begun_at % options.counts_every.max(1),
            whole: counted.whole,
        })
    }

    /// Takes what the tap shows; a report is for the operator.
    pub fn observe(&mut self, now: Timestamp, observed: Observed) -> Option<AuditReport> {
        if self.blind {
            // What found no room is a gap in the log; whoever counts that finds it there.
            let _ = self.pen.append(now, observed.into());
            return None;
        }
        self.in_hand = Some(observed.clone().into());
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

    /// Looking for anomalies broke, and whoever feeds this has caught it: from here on messages are recorded and not looked at, so that
    /// none is missing. There are no more reports, and nothing that was counted is kept; the log tells it all.
    pub fn go_blind(&mut self, now: Timestamp) {
        if std::mem::replace(&mut self.blind, true) {
            return;
        }
        (self.tell)(
            "the auditor broke: all is still recorded, but nobody looks for anomalies any more; artoo audit report does so afterwards",
        );
        for entry in self.in_hand.take().into_iter().chain([Entry::Note(BLIND.to_owned())]) {
            let _ = self.pen.append(now, entry);
        }
    }

    /// Whether it only records any more.
    pub const fn is_blind(&self) -> bool {
        self.blind
    }

    /// When [`Recorder::wake`] has something to say.
    pub fn deadline(&self) -> Timestamp {
        self.auditor.deadline()
    }

    /// The periodic report, when its time has come.
    pub fn wake(&mut self, now: Timestamp) -> Option<AuditReport> {
        if self.blind {
            return None;
        }
        self.learn(now);
        let effect = self.auditor.wake(now)?;
        self.perform(now, effect)
    }

    /// A report now.
    pub fn report(&mut self, now: Timestamp) -> Option<AuditReport> {
        if self.blind {
            return None;
        }
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
        if self.blind {
            self.pen.finish(now, None, None)?;
            return Ok(None);
        }
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
                self.in_hand = None;
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

/// Tells when the thread that writes ends by breaking.
struct Alarm(Tell);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)("the thread that writes the audit log broke: what is said from now on is missing there");
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("auditor", &self.auditor)
            .finish_non_exhaustive()
    }
}
