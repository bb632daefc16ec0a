//! What is kept of the counts, so that neither a report nor a start has to read the whole log (design §16).
//!
//! Owns `audit_stats.json` and the way from it to the present: it says up to which record it counts, and what was written
//! later, also by a process that was killed, is counted from the log itself.

use std::fs;
use std::path::Path;

use artoo_protocol::message::AuditReport;
use serde::{Deserialize, Serialize};

use crate::chain::{Frame, Link};
use crate::counting::{Counted, Counting, count_all};
use crate::files::{Files, LogError, replace};
use crate::lines::{Backwards, Lines};
use crate::parse::Parsed;
use crate::vocabulary::Past;

/// Version of `audit_stats.json`.
pub(crate) const STATS_FORMAT: u32 = 2;
/// So many records behind the kept counts are looked at one by one; behind more, the log is read from its beginning.
pub(crate) const TAIL_MAX: usize = 50_000;

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
            counting.take(Parsed::of(line));
        }
        return Ok(counting.end());
    }
    let most = match depth {
        Depth::Whole => u64::MAX,
        // More is too much for a start; `artoo audit report` reads it all.
        Depth::Tail => TAIL_MAX as u64,
    };
    let whole = count_all(&mut Lines::open(&files)?, most)?;
    Ok(whole.unwrap_or(Counted {
        whole: false,
        ..Counting::new(stats.past).end()
    }))
}

/// Keeps what was counted up to the end of the log, for whoever goes on; nobody may be writing to it.
pub(crate) fn keep(folder: &Path, counted: &Counted) -> Result<(), LogError> {
    let files = Files::new(folder);
    let last = Backwards::open(&files)?.next()?;
    let stats = Stats {
        format: STATS_FORMAT,
        upto: last.as_deref().and_then(Frame::read).map(|frame| frame.link()),
        past: counted.past.clone(),
        ..read_stats(folder)
    };
    // What stands there came from the log, whose secrets were masked before they were written.
    replace(&files.stats(), &stats, |text| text)
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
