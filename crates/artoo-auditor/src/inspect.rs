//! Reading a log: is it what was written, and what does it tell (design §16).
//!
//! Owns verification and the report over a whole log. Reads only, so that it may be used while another process writes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use artoo_protocol::message::AuditReport;
use artoo_protocol::{Envelope, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use crate::chain::{Broken, Damage, Kind, Link, Sound, Verified, diagnose};
use crate::counts::Totals;
use crate::log::{Files, LogError};
use crate::observer::{Auditor, Gap, REPORT_PERIOD};

/// Lines with their line breaks.
struct Lines {
    reader: BufReader<File>,
    path: PathBuf,
}

impl Lines {
    /// `None` where there is no log.
    fn open(files: &Files) -> Result<Option<Self>, LogError> {
        let path = files.log();
        match File::open(&path) {
            Ok(file) => Ok(Some(Self {
                reader: BufReader::with_capacity(1 << 16, file),
                path,
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LogError::Io { path, source }),
        }
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        let mut line = Vec::new();
        self.reader
            .read_until(b'\n', &mut line)
            .map_err(|source| LogError::Io {
                path: self.path.clone(),
                source,
            })?;
        Ok((!line.is_empty()).then_some(line))
    }
}

/// Checks every record of a folder's log, and the head.
///
/// # Errors
/// [`LogError::Broken`] with the first record that is wrong; [`LogError::Io`] when it cannot be read.
pub fn verify(folder: &Path) -> Result<Verified, LogError> {
    let files = Files::new(folder);
    // The head first: a log that is being written may grow meanwhile, but never falls behind it.
    let head = files.read_head()?;
    let mut verified = Verified::default();
    let mut link = Link::genesis();
    let mut head_fits = fits(head.as_ref(), &link);
    if let Some(mut lines) = Lines::open(&files)? {
        while let Some(line) = lines.next()? {
            let Some(record) = line.strip_suffix(b"\n") else {
                verified.unfinished_bytes = u64::try_from(line.len()).unwrap_or(u64::MAX);
                break;
            };
            let Some(sound) = Sound::read(record).filter(|sound| sound.follows(&link)) else {
                let next = lines.next()?;
                let next = next.as_deref().and_then(|line| line.strip_suffix(b"\n"));
                return Err(LogError::Broken(diagnose(&link, record, next)));
            };
            verified.records += 1;
            verified.gaps += u64::from(sound.kind == Kind::Gap);
            verified.notes += u64::from(sound.kind == Kind::Note);
            link = sound.link;
            head_fits = fits(head.as_ref(), &link).or(head_fits);
        }
    }
    match (head, head_fits) {
        (None, _) if link.n == 0 => Ok(verified),
        (None, _) => Err(broken(link.n, Damage::HeadMissing, "audit.head is missing")),
        (Some(Err(message)), _) => Err(broken(link.n, Damage::HeadMissing, format!("audit.head: {message}"))),
        (Some(Ok(head)), Some(true)) => {
            verified.behind_head = link.n - head.n;
            Ok(verified)
        }
        (Some(Ok(head)), Some(false)) => Err(broken(head.n, Damage::HeadDiffers, "audit.head names another record")),
        (Some(Ok(head)), None) => Err(broken(
            link.n + 1,
            Damage::CutOff,
            format!("the log ends at record {}, audit.head names record {}", link.n, head.n),
        )),
    }
}

/// Whether the head names this record; `None` when it speaks of another number.
fn fits(head: Option<&Result<Link, String>>, link: &Link) -> Option<bool> {
    match head {
        Some(Ok(head)) if head.n == link.n => Some(head.hash == link.hash),
        Some(Ok(_) | Err(_)) | None => None,
    }
}

fn broken(record: u64, damage: Damage, detail: impl Into<String>) -> LogError {
    LogError::Broken(Broken::new(record, damage, detail))
}

#[derive(Deserialize)]
struct Record {
    at: Timestamp,
    #[serde(default)]
    envelope: Option<Value>,
    #[serde(default)]
    gap: Option<Gap>,
}

/// One report over a whole log, made by showing it to a fresh auditor. Records that this version cannot read are named as
/// anomalies by their number.
///
/// # Errors
/// [`LogError::Io`] when the log cannot be read.
pub fn report_of_log(folder: &Path, now: Timestamp) -> Result<AuditReport, LogError> {
    let mut auditor: Option<Auditor> = None;
    let mut unread = 0_u64;
    if let Some(mut lines) = Lines::open(&Files::new(folder))? {
        while let Some(line) = lines.next()? {
            let Ok(record) = serde_json::from_slice::<Record>(&line) else {
                unread += 1;
                continue;
            };
            let auditor = auditor.get_or_insert_with(|| Auditor::new(record.at, REPORT_PERIOD, Totals::default()));
            if let Some(gap) = record.gap {
                auditor.missed(gap);
            }
            match record.envelope.map(serde_json::from_value::<Envelope>) {
                // That a report was asked for then closes no window now.
                Some(Ok(envelope)) => {
                    let _ = auditor.look(&envelope);
                }
                Some(Err(_)) => unread += 1,
                None => {}
            }
        }
    }
    let mut auditor = auditor.unwrap_or_else(|| Auditor::new(now, REPORT_PERIOD, Totals::default()));
    let mut report = auditor.close_window(now, "on-demand");
    if unread > 0 {
        report.anomalies.push(format!("{unread} records could not be read"));
    }
    Ok(report)
}
