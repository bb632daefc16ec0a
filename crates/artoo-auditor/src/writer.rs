//! The thread at the end of the queue: what it takes goes to the disk, in batches (design §16).
//!
//! Owns what becomes of a batch that the disk refuses: it is a gap, written as soon as there is room again, and whoever counts hears of
//! it. Must not know what an entry means.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use artoo_protocol::Timestamp;
use artoo_protocol::message::AuditReport;
use serde::Serialize;

use crate::files::{LogError, append_whole, replace};
use crate::log::Log;
use crate::pen::{Job, Load, Losses, merge, weight};
use crate::recorder::Redact;
use crate::stats::{STATS_FORMAT, Stats};
use crate::vocabulary::{Entry, Gap, Past};

/// Records that are written in one go.
const BATCH: usize = 1_024;
/// Bytes that are written in one go.
const BATCH_BYTES: usize = 1 << 20;

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
    /// That of it which whoever counts takes for written: all but gaps.
    news: Option<Gap>,
    lost: Option<Gap>,
    /// Counts that hold a gap which still waits, where the last job brought them.
    unkept: Option<Box<Past>>,
    losses: Arc<Losses>,
    trouble: Option<LogError>,
}

impl Writer {
    pub const fn new(
        log: Log,
        redact: Redact,
        load: Arc<Load>,
        losses: Arc<Losses>,
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
            news: None,
            lost: None,
            unkept: None,
            losses,
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
        self.say_last();
        let sealed = self.log.finish(self.now);
        self.note_trouble(sealed);
        self.trouble.map_or(Ok(()), Err)
    }

    /// Now a gap is written or never will be: counts that hold it are true either way.
    fn say_last(&mut self) {
        self.tell_gap(self.now);
        self.commit();
        if let Some(past) = self.unkept.take() {
            self.keep(Some(past));
        }
    }

    fn take(&mut self, job: Job) {
        self.unkept = None;
        match job {
            Job::Append { at, entry, knows } => {
                self.load.give(weight(&entry));
                self.now = at;
                self.tell_gap(at);
                // Counts that do not know of a gap before them would hide it from whoever goes on from them. The next ones will do.
                if !matches!(entry, Entry::Counts(_)) || knows == self.losses.number() {
                    self.append(at, &entry);
                }
            }
            Job::Row(row) => {
                let row = self.masked(&*row);
                self.rows.0.push_str(&row);
                self.rows.0.push('\n');
                self.rows.1 += 1;
            }
            Job::Keep { past, report, knows } => {
                self.last_report = report.or(self.last_report.take());
                // What was counted ends with what was queued before this job, a gap included.
                self.tell_gap(self.now);
                self.commit();
                let past = past.filter(|_| knows == self.losses.number());
                // What was counted holds a gap that still waits: kept now, that would be counted once more when it is written.
                let (unkept, past) = if self.lost.is_some() {
                    (past, None)
                } else {
                    (None, past)
                };
                self.unkept = unkept;
                self.keep(past);
            }
            Job::Settle(done) => {
                self.commit();
                drop(done);
            }
        }
    }

    /// Prepares the record of what was lost.
    fn tell_gap(&mut self, at: Timestamp) {
        if let Some(gap) = self.lost.take() {
            self.append(at, &Entry::Gap(gap));
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
        // Whoever counts has been told of a gap already.
        if !matches!(entry, Entry::Gap(_)) {
            self.news = merge(self.news, entry);
        }
    }

    /// The JSON of something of this crate or the protocol, none of which can fail to be written.
    fn masked(&self, value: &impl Serialize) -> String {
        // Most records fit, so that none grows step by step: that alone was a quarter of this thread's time.
        let mut json = Vec::with_capacity(2_048);
        let written = serde_json::to_writer(&mut json, value).ok();
        let json = written.and_then(|()| String::from_utf8(json).ok());
        (self.redact)(json.unwrap_or_else(|| "null".to_owned()))
    }

    fn commit(&mut self) {
        let (batch, news) = (self.batch.take(), self.news.take());
        let written = self.log.commit();
        if written.is_err() {
            self.lost = batch.map_or(self.lost, |gap| merge(self.lost, &Entry::Gap(gap)));
            if let Some(gap) = news {
                self.losses.add(gap);
            }
        }
        self.note_trouble(written);
        let sealed = self.log.seal_if_due(self.now);
        self.note_trouble(sealed);
        let (rows, count) = std::mem::take(&mut self.rows);
        if count > 0 {
            let written = append_whole(&self.log.files().tuning(), &rows);
            if written.is_err() {
                self.lost = merge(self.lost, &Entry::Gap(Gap::rows(count)));
                self.losses.add(Gap::rows(count));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::read_stats;
    use artoo_protocol::message::TaskResumed;
    use artoo_protocol::{Envelope, EnvelopeId, Millis, Role, TaskId};
    use std::fs::File;
    use tempfile::TempDir;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }

    fn append(entry: Entry, knows: u64) -> Job {
        Job::Append {
            at: now(),
            entry,
            knows,
        }
    }

    fn message(seq: u64) -> Job {
        let task_id = TaskId::new("count_00000001");
        let resumed = TaskResumed {
            task_id: task_id.clone(),
            away_ms: Millis(0),
        };
        let envelope = Envelope {
            id: EnvelopeId::new(format!("e{seq}")),
            seq,
            task_id: Some(task_id),
            timestamp: now(),
            from: Role::Runtime,
            to: Role::R1,
            payload: resumed.into(),
        };
        append(Entry::Envelope(Arc::new(envelope)), 0)
    }

    /// A writer whose disk is full between the two; what it may not keep is looked at from without.
    fn writer(folder: &TempDir, losses: &Arc<Losses>) -> Writer {
        let (log, _) = Log::open(folder.path(), u64::MAX).unwrap();
        let load = Arc::new(Load::new(usize::MAX, usize::MAX));
        load.add(1 << 30);
        Writer::new(log, Arc::new(|text| text), load, Arc::clone(losses), now(), None)
    }

    fn full_disk() -> File {
        File::options().append(true).open("/dev/full").unwrap()
    }

    fn kinds(folder: &TempDir) -> Vec<String> {
        let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        let kind = |line: &str| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            let record = record.as_object().unwrap();
            ["envelope", "gap", "counts"]
                .iter()
                .find(|kind| record.contains_key(**kind))
                .unwrap()
                .to_string()
        };
        text.lines().map(kind).collect()
    }

    /// What was counted knows nothing of a batch that the disk refused behind its back: kept like that, it would hide the gap for ever.
    #[cfg(target_os = "linux")]
    #[test]
    fn counts_that_do_not_know_of_a_lost_batch_are_not_written() {
        let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
        let mut writer = writer(&folder, &losses);
        let counts = |knows| append(Entry::Counts(Box::default()), knows);
        let keep = |knows| Job::Keep {
            past: Some(Box::default()),
            report: None,
            knows,
        };
        writer.take(message(1));
        writer.commit();
        let disk = writer.log.write_to(full_disk());
        writer.take(message(2));
        writer.commit();
        let _ = writer.log.write_to(disk);
        writer.take(counts(0));
        writer.take(keep(0));
        assert_eq!(kinds(&folder), ["envelope", "gap"]);
        assert_eq!(read_stats(folder.path()).upto, None, "nor is it kept beside the log");
        // Whoever counts hears of it, and then what he counted is welcome.
        let (knows, gap) = losses.take();
        assert_eq!(gap.map(|gap| (gap.from_seq, gap.to_seq, gap.count)), Some((2, 2, 1)));
        writer.take(counts(knows));
        writer.take(keep(knows));
        assert_eq!(kinds(&folder), ["envelope", "gap", "counts"]);
        assert_eq!(read_stats(folder.path()).upto, Some(writer.log.link()));
        assert_eq!(crate::verify(folder.path(), &[]).unwrap().records, 3);
    }

    /// What was counted holds the gap already; kept as what ends before the gap record, it would count it again after a restart.
    #[cfg(target_os = "linux")]
    #[test]
    fn counts_are_not_kept_while_a_gap_that_they_hold_waits_for_room() {
        let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
        let mut writer = writer(&folder, &losses);
        let keep = |knows| Job::Keep {
            past: Some(Box::default()),
            report: None,
            knows,
        };
        let disk = writer.log.write_to(full_disk());
        writer.take(message(1));
        writer.commit();
        let (knows, _) = losses.take();
        // The table beside the log has room, the log has none.
        writer.take(keep(knows));
        assert_eq!(losses.number(), knows, "the gap is no new loss");
        assert_eq!(read_stats(folder.path()).upto, None);
        // They are told of no message that comes later.
        writer.take(message(2));
        writer.commit();
        writer.say_last();
        assert_eq!(read_stats(folder.path()).upto, None);
        // With the last words the gap is in the log or never will be.
        let (knows, _) = losses.take();
        writer.take(keep(knows));
        let _ = writer.log.write_to(disk);
        writer.say_last();
        assert_eq!(kinds(&folder), ["gap"]);
        assert_eq!(read_stats(folder.path()).upto, Some(writer.log.link()));
    }

    /// A gap record that the disk refuses too is no new loss, and is written when there is room again.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_gap_that_cannot_be_written_waits_and_is_told_once() {
        let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
        let mut writer = writer(&folder, &losses);
        let disk = writer.log.write_to(full_disk());
        writer.take(message(1));
        writer.commit();
        for _ in 0..3 {
            writer.tell_gap(now());
            writer.commit();
        }
        writer.take(message(2));
        writer.commit();
        assert_eq!(losses.number(), 2);
        let _ = writer.log.write_to(disk);
        writer.take(message(3));
        writer.commit();
        assert_eq!(kinds(&folder), ["gap", "envelope"]);
        let text = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
        assert!(text.contains(r#""gap":{"from_seq":1,"to_seq":2,"count":2,"#), "{text}");
    }
}
