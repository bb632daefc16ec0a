//! What is kept of the counts, so that neither a report nor a start has to read the whole log (design §16).
//!
//! Owns `audit_stats.json` and the way from it to the present: it says up to which record it counts, and what was written
//! later, also by a process that was killed, is counted from the log itself.

use std::fs;
use std::path::Path;

use artoo_protocol::message::AuditReport;
use artoo_protocol::{Deed, Envelope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::{Frame, Kind, Link};
use crate::files::{Files, LogError};
use crate::lines::{Backwards, Lines};
use crate::observer::{Auditor, Gap, Past, REPORT_PERIOD};

/// Version of `audit_stats.json`.
pub(crate) const STATS_FORMAT: u32 = 2;
/// So many records behind the kept counts are looked at one by one; behind more, the log is read from its beginning.
const TAIL_MAX: usize = 50_000;

/// What `audit_stats.json` keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Version of the file.
    pub format: u32,
    /// The record up to which it counts; no task was open there.
    pub upto: Option<Link>,
    /// What was counted.
    pub past: Past,
    /// The last report.
    pub last_report: Option<AuditReport>,
}

/// The kept counts; a missing or foreign file counts from zero.
pub fn read_stats(folder: &Path) -> Stats {
    fs::read(Files::new(folder).stats())
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Stats>(&bytes).ok())
        .filter(|stats| stats.format == STATS_FORMAT)
        .unwrap_or_default()
}

/// The counts up to the end of the log.
#[derive(Debug)]
pub(crate) struct Counted {
    pub past: Past,
    /// Records that this version cannot read.
    pub unread: u64,
    /// Records that were looked at now; the others are known from the kept counts.
    pub looked_at: u64,
}

/// How far back the log may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// As far as it takes.
    Whole,
    /// Only what lies behind the kept counts.
    Tail,
}

/// Goes on counting from the kept counts to the end of the log; without them, or where they belong to another log, from
/// its beginning.
pub(crate) fn count(folder: &Path, depth: Depth) -> Result<Counted, LogError> {
    let files = Files::new(folder);
    let stats = read_stats(folder);
    if let Some(upto) = stats.upto
        && let Some(tail) = tail_behind(&files, upto)?
    {
        let mut counting = Counting::new(stats.past);
        for line in tail.iter().rev() {
            counting.take(line);
        }
        return Ok(counting.end());
    }
    let mut counting = Counting::new(Past::default());
    let mut lines = Lines::open(&files)?;
    while let Some(line) = lines.next()?.filter(|line| line.finished || !line.last_file) {
        if depth == Depth::Tail && counting.looked_at >= TAIL_MAX as u64 {
            // Too much for a start; `artoo audit report` reads it all.
            return Ok(Counting::new(stats.past).end());
        }
        counting.take(line.bytes);
    }
    Ok(counting.end())
}

/// The records behind this one, last first; `None` where it is not found among the last of the log.
fn tail_behind(files: &Files, upto: Link) -> Result<Option<Vec<Vec<u8>>>, LogError> {
    let mut backwards = Backwards::open(files)?;
    let mut tail = Vec::new();
    while let Some(line) = backwards.next()? {
        match Frame::read(&line) {
            Some(frame) if frame.n == upto.n => return Ok((frame.hash == upto.hash).then_some(tail)),
            Some(frame) if frame.n < upto.n => return Ok(None),
            Some(_) | None if tail.len() >= TAIL_MAX => return Ok(None),
            Some(_) | None => tail.push(line),
        }
    }
    Ok((upto == Link::genesis()).then_some(tail))
}

/// A fresh auditor to which a log is shown.
struct Counting {
    auditor: Option<Auditor>,
    past: Past,
    unread: u64,
    looked_at: u64,
}

impl Counting {
    const fn new(past: Past) -> Self {
        Self {
            auditor: None,
            past,
            unread: 0,
            looked_at: 0,
        }
    }

    fn take(&mut self, line: &[u8]) {
        self.looked_at += 1;
        if self.look(line).is_none() {
            self.unread += 1;
        }
    }

    fn look(&mut self, line: &[u8]) -> Option<()> {
        let frame = Frame::read(line)?;
        if matches!(frame.kind, Kind::Note | Kind::Finding) {
            // Findings are made anew from what was seen.
            return Some(());
        }
        let at = Timestamp::parse(frame.at).ok()?;
        let past = &mut self.past;
        let auditor = self
            .auditor
            .get_or_insert_with(|| Auditor::new(at, REPORT_PERIOD, std::mem::take(past)));
        let mut found = Vec::new();
        match frame.kind {
            Kind::Envelope => {
                let envelope: Envelope = serde_json::from_slice(frame.body).ok()?;
                // That a report was asked for then closes no window now.
                auditor.look(at, &envelope, &mut found);
            }
            Kind::Deed => {
                let deed: Deed = serde_json::from_slice(frame.body).ok()?;
                auditor.look_at_deed(at, &deed, &mut found);
            }
            Kind::Gap => {
                let gap: Gap = serde_json::from_slice(frame.body).ok()?;
                auditor.missed(at, gap);
            }
            Kind::Note | Kind::Finding | Kind::Other => {}
        }
        Some(())
    }

    fn end(self) -> Counted {
        Counted {
            past: self.auditor.map_or(self.past, Auditor::into_past),
            unread: self.unread,
            looked_at: self.looked_at,
        }
    }
}
