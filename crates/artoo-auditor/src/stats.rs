//! What is kept of the counts, so that neither a report nor a start has to read the whole log (design §16).
//!
//! Owns two places and the way from them to the present: `audit_stats.json`, which a process leaves behind, and records of counts in
//! the log itself, which the chain protects. Either says up to which record it counts, and what was written later, also by a process
//! that was killed, is counted from the log. None of them is believed unless its hash fits, and the chain from it to the end.

use std::fs;
use std::path::Path;

use artoo_protocol::message::AuditReport;
use serde::{Deserialize, Serialize};

use crate::chain::{Frame, Hash, Kind, Link};
use crate::counting::{Counted, Outcome, Start, count_from};
use crate::files::{Files, LogError, replace};
use crate::lines::{Backwards, Lines, Place};
use crate::observer::PAST_FORMAT;
use crate::vocabulary::Past;

/// Version of `audit_stats.json`.
pub(crate) const STATS_FORMAT: u32 = 4;
/// So many records behind known counts are looked at; behind more, the log is read from its beginning.
pub(crate) const TAIL_MAX: u64 = 50_000;

/// What `audit_stats.json` keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Version of the file.
    pub format: u32,
    /// The record up to which it counts; no task was open there.
    pub upto: Option<Link>,
    /// SHA-256 of `past` as JSON.
    pub sum: Option<Hash>,
    /// What was counted.
    pub past: Past,
    /// The last report.
    pub last_report: Option<AuditReport>,
}

impl Stats {
    /// What was counted up to a record; `mask` hides secrets in its JSON.
    pub(crate) fn of(upto: Link, past: Past, mask: impl FnOnce(String) -> String) -> Self {
        let text = mask(serde_json::to_string(&past).unwrap_or_default());
        // As it will be read again.
        let past = serde_json::from_str(&text).unwrap_or(past);
        Self {
            format: STATS_FORMAT,
            upto: Some(upto),
            sum: Some(sum(&past)),
            past,
            last_report: None,
        }
    }
}

fn sum(past: &Past) -> Hash {
    Hash::of(serde_json::to_string(past).unwrap_or_default().as_bytes())
}

/// The kept counts; a missing or foreign file, or one that was changed, counts from zero.
pub fn read_stats(folder: &Path) -> Stats {
    fs::read(Files::new(folder).stats())
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Stats>(&bytes).ok())
        .filter(|stats| stats.format == STATS_FORMAT)
        .filter(|stats| stats.upto.is_none() || stats.sum == Some(sum(&stats.past)))
        .unwrap_or_default()
}

/// How far back the log may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// As far as it takes.
    Whole,
    /// Only what lies behind known counts.
    Tail,
}

/// Goes on counting from what is known to the end of the log; where nothing is, or it belongs to another log, from its beginning.
pub(crate) fn count(folder: &Path, depth: Depth) -> Result<Counted, LogError> {
    let files = Files::new(folder);
    let stats = read_stats(folder);
    // A log with records always has a head; without it nothing says which counts are its own.
    if let Some(known) = known(&files, &stats)?
        && let Some(Ok(head)) = files.read_head()?
    {
        let lines = &mut Lines::open_at(&files, &known.place)?;
        let from = Start::Link(known.link, Box::new(known.past), Some(head.link));
        if let Outcome::Counted(counted) = count_from(lines, from, u64::MAX)? {
            return Ok(*counted);
        }
    }
    let most = match depth {
        Depth::Whole => u64::MAX,
        // More is too much for a start; `artoo audit report` reads it all.
        Depth::Tail => TAIL_MAX,
    };
    match count_from(&mut Lines::open(&files)?, Start::Beginning, most)? {
        Outcome::Counted(counted) => Ok(*counted),
        Outcome::TooMany | Outcome::Broken => Ok(Counted::unknown(stats.past)),
    }
}

/// Keeps what was counted up to the end of the log, for whoever goes on; nobody may be writing to it.
pub(crate) fn keep(folder: &Path, counted: &Counted) -> Result<(), LogError> {
    let files = Files::new(folder);
    let last = Backwards::open(&files)?.next()?;
    let upto = last.as_deref().and_then(Frame::read).map(|frame| frame.link());
    // What stands there came from the log, whose secrets were masked before they were written.
    let stats = Stats {
        last_report: read_stats(folder).last_report,
        ..Stats::of(upto.unwrap_or_default(), counted.past.clone(), |text| text)
    };
    replace(&files.stats(), &stats, |text| text)
}

/// What is known of the counts up to a record near the end.
struct Known {
    link: Link,
    past: Past,
    /// Behind the record.
    place: Place,
}

/// The latest record up to which counts are known, if it is among the last of the log: the one that was kept, or one that holds them.
fn known(files: &Files, stats: &Stats) -> Result<Option<Known>, LogError> {
    let mut backwards = Backwards::open(files)?;
    let mut looked_at = 0;
    while looked_at < TAIL_MAX
        && let Some(line) = backwards.next()?
    {
        looked_at += 1;
        let Some(frame) = Frame::read(&line) else { continue };
        let kept = (stats.upto == Some(frame.link())).then(|| stats.past.clone());
        // Its own hash first: what it says is used, and not only that it is there.
        let own = || {
            let sound = frame.kind == Kind::Counts && Frame::sound(&line).is_some();
            let past: Option<Past> = sound.then(|| serde_json::from_slice(frame.body).ok()).flatten();
            past.filter(|past| past.format == PAST_FORMAT)
        };
        if let Some(past) = kept.or_else(own) {
            return Ok(Some(Known {
                link: frame.link(),
                past,
                place: backwards.place(&line),
            }));
        }
    }
    Ok(None)
}
