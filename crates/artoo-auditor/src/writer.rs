//! The thread at the end of the queue: what it takes goes to the disk, in batches (design §16).
//!
//! Owns what becomes of a batch that the disk refuses, or of a record that cannot be masked: it is a gap, written as soon as there is
//! room again, and whoever counts hears of it. Must not know what an entry means.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use artoo_protocol::Timestamp;
use artoo_protocol::message::AuditReport;
use serde::Serialize;

use crate::files::{LogError, append_whole, replace};
use crate::log::Log;
use crate::pen::{Job, Load, Losses, merge, weight};
use crate::recorder::{Redact, Tell};
use crate::stats::{STATS_FORMAT, Stats};
use crate::vocabulary::{Entry, Gap, Past};

/// Records that are written in one go.
const BATCH: usize = 1_024;
/// Bytes that are written in one go.
const BATCH_BYTES: usize = 1 << 20;

/// So often masking may break; then nothing is masked any more, and nothing written but what was lost.
const BREAKS_MAX: u32 = 3;

/// The writing end of the queue.
pub(crate) struct Writer {
    log: Log,
    redact: Redact,
    /// How often that broke.
    breaks: u32,
    tell: Tell,
    /// What is to be said about the log itself, until it is written; so many of them are in the batch.
    notes: Vec<Entry>,
    noted: usize,
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
    pub fn new(
        log: Log,
        (redact, tell): (Redact, Tell),
        load: Arc<Load>,
        losses: Arc<Losses>,
        now: Timestamp,
        last_report: Option<Box<AuditReport>>,
    ) -> Self {
        Self {
            log,
            redact,
            breaks: 0,
            tell,
            notes: Vec::new(),
            noted: 0,
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

    /// Writes `first`, then what comes.
    pub fn run(mut self, receiver: &Receiver<Job>, first: Vec<Entry>) -> Result<(), LogError> {
        for entry in first {
            match entry {
                Entry::Gap(_) => self.lost = merge(self.lost, &entry),
                note => self.notes.push(note),
            }
        }
        self.tell_notes(self.now);
        self.tell_gap(self.now);
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
        self.close();
        self.trouble.map_or(Ok(()), Err)
    }

    /// Writes the last head.
    fn close(&mut self) {
        if self.may_seal() {
            // What could not be told is then told by the next process.
            let whole = self.lost.is_none() && self.notes.is_empty();
            let sealed = self.log.finish(self.now, whole);
            self.note_trouble(sealed);
        }
    }

    /// Whether a head may be written: never before a damage that it would hide.
    fn may_seal(&self) -> bool {
        !self.notes.iter().any(|note| matches!(note, Entry::Damage(_)))
    }

    /// Whether masking broke so often that it is left alone.
    const fn is_mute(&self) -> bool {
        self.breaks >= BREAKS_MAX
    }

    /// Now a gap is written or never will be: counts that hold it are true either way.
    fn say_last(&mut self) {
        self.tell_notes(self.now);
        self.tell_gap(self.now);
        self.commit();
        if self.notes.len() > self.noted {
            // The last batch itself had something to say.
            self.tell_notes(self.now);
            self.commit();
        }
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
                self.tell_notes(at);
                if !self.is_mute() {
                    self.tell_gap(at);
                }
                if matches!(entry, Entry::Note(_) | Entry::Damage(_)) {
                    self.notes.push(entry);
                    return self.tell_notes(at);
                }
                // Counts that do not know of a gap before them would hide it from whoever goes on from them. The next ones will do.
                if !matches!(entry, Entry::Counts(_)) || knows == self.losses.number() {
                    self.append(at, &entry);
                }
            }
            Job::Row(row) => {
                if let Some(row) = self.masked(&*row) {
                    self.rows.0.push_str(&row);
                    self.rows.0.push('\n');
                    self.rows.1 += 1;
                } else {
                    self.lose(&Entry::Gap(Gap::rows(1)));
                }
            }
            Job::Keep { past, report, knows } => {
                self.last_report = report.or(self.last_report.take());
                // What was counted ends with what was queued before this job, a gap included.
                if !self.is_mute() {
                    self.tell_gap(self.now);
                }
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

    /// Prepares what is to be said about the log itself and was not written yet.
    fn tell_notes(&mut self, at: Timestamp) {
        for note in self.notes.split_off(self.noted) {
            self.append(at, &note);
            self.notes.push(note);
        }
        self.noted = self.notes.len();
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
            Entry::Counts(past) => ("counts", self.masked(past.as_ref())),
            // Numbers, and words of this crate: there is nothing to hide, and they are written whatever breaks.
            Entry::Gap(gap) => ("gap", Some(json(gap))),
            Entry::Note(note) => ("note", Some(json(note))),
            Entry::Damage(words) => ("damage", Some(json(words))),
        };
        let Some(body) = body else {
            return self.lose(entry);
        };
        self.log.append(at, name, &body);
        self.batch = merge(self.batch, entry);
        // Whoever counts has been told of a gap already.
        if !matches!(entry, Entry::Gap(_)) {
            self.news = merge(self.news, entry);
        }
    }

    /// The JSON of something without its secrets, or nothing where masking broke: better lost than shown. It is not this crate's.
    fn masked(&mut self, value: &impl Serialize) -> Option<String> {
        if self.is_mute() {
            return None;
        }
        let (text, redact) = (json(value), &self.redact);
        let masked = catch_unwind(AssertUnwindSafe(|| redact(text))).ok();
        if masked.is_none() {
            self.breaks += 1;
            if self.breaks == 1 {
                (self.tell)("the audit log lacks what could not be masked; it says so as a gap");
            }
        }
        masked
    }

    /// Counts what will not be written.
    fn lose(&mut self, entry: &Entry) {
        self.lost = merge(self.lost, entry);
        if let Some(gap) = merge(None, entry) {
            self.losses.add(gap);
        }
    }

    fn commit(&mut self) {
        let (batch, news) = (self.batch.take(), self.news.take());
        let written = self.log.commit();
        if written.is_ok() {
            self.notes.drain(..self.noted);
        }
        self.noted = 0;
        self.notes.extend(self.log.take_notes().into_iter().map(Entry::Note));
        if written.is_err() {
            self.lost = batch.map_or(self.lost, |gap| merge(self.lost, &Entry::Gap(gap)));
            if let Some(gap) = news {
                self.losses.add(gap);
            }
        }
        self.note_trouble(written);
        if self.may_seal() {
            let sealed = self.log.seal_if_due(self.now);
            self.note_trouble(sealed);
        }
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
        let masked = past.and_then(|past| Some((self.masked(&*past)?, past)));
        let mut stats = match masked {
            Some((masked, past)) => Stats::of(self.log.link(), *past, |_| masked),
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

/// Of something of this crate or the protocol, none of which can fail to be written.
fn json(value: &impl Serialize) -> String {
    // Most records fit, so that none grows step by step: that alone was a quarter of this thread's time.
    let mut json = Vec::with_capacity(2_048);
    let written = serde_json::to_writer(&mut json, value).ok();
    let json = written.and_then(|()| String::from_utf8(json).ok());
    json.unwrap_or_else(|| "null".to_owned())
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
            person_present: None,
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
        let plain: Redact = Arc::new(|text| text);
        Writer::new(log, (plain, Arc::new(|_| {})), load, Arc::clone(losses), now(), None)
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

    /// The head says that all is written only where it is; else the next process tells that something is missing.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_gap_that_finds_no_room_to_the_end_is_told_by_the_next_process() {
        for full in [true, false] {
            let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
            let mut writer = writer(&folder, &losses);
            let disk = writer.log.write_to(full_disk());
            writer.take(message(1));
            writer.commit();
            if full {
                writer.say_last();
            }
            // There is room again, for a head at least.
            let _ = writer.log.write_to(disk);
            if !full {
                writer.say_last();
            }
            writer.close();
            let (_, first) = Log::open(folder.path(), u64::MAX).unwrap();
            let told = matches!(first[..], [Entry::Gap(gap)] if gap.unknown);
            assert_eq!(told, full, "{first:?}");
        }
    }

    /// A note that the disk refuses is written when there is room.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_note_waits_until_it_is_written_and_is_written_once() {
        let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
        let mut writer = writer(&folder, &losses);
        let disk = writer.log.write_to(full_disk());
        for _ in 0..3 {
            writer.take(append(Entry::Note("x".to_owned()), 0));
            writer.commit();
        }
        let _ = writer.log.write_to(disk);
        writer.take(message(1));
        writer.commit();
        writer.take(message(2));
        writer.commit();
        writer.close();
        let verified = crate::verify(folder.path(), &[]).unwrap();
        assert_eq!((verified.notes, verified.envelopes), (3, 2));
    }

    /// A finding that was lost is counted like what showed it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_finding_that_was_lost_is_in_the_gap() {
        let (folder, losses) = (TempDir::new().unwrap(), Arc::new(Losses::default()));
        let mut writer = writer(&folder, &losses);
        let disk = writer.log.write_to(full_disk());
        writer.take(append(Entry::Finding(crate::Finding::new("order", None, 1, "x")), 0));
        writer.commit();
        let _ = writer.log.write_to(disk);
        writer.say_last();
        let (_, gap) = losses.take();
        assert_eq!(
            gap.map(|gap| gap.to_string()),
            Some("1 findings were not recorded".to_owned())
        );
        assert_eq!(kinds(&folder), ["gap"]);
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
