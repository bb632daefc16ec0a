//! Looking into a log: the latest records that fit a filter (design §16).
//!
//! Owns filters, which look at bytes and parse nothing (docs/performance.md says how many records that passes in a second), and
//! the words in which a record is shown.

use std::path::Path;

use artoo_protocol::text::one_line;
use artoo_protocol::{Act, MessageKind, Role, TaskId, Timestamp};
use serde_json::Value;

use crate::chain::{Frame, Kind};
use crate::files::{Files, LogError};
use crate::lines::Backwards;

/// Longest summary of a record, in characters.
const SUMMARY_MAX: usize = 160;

/// Which anomalies are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomalies {
    /// Findings, gaps, notes and what was done to the log.
    All,
    /// The findings of one detector.
    Of(String),
}

/// What [`Filter::kind`] may be: what a record holds, the type of a message, the act of a deed.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    let records = ["envelope", "deed", "finding", "gap", "note", "damage", "counts"];
    let messages = MessageKind::ALL.iter().map(|kind| kind.name());
    records.into_iter().chain(messages).chain(Act::NAMES)
}

/// Which records are wanted; without anything, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A task's id, or the beginning or end of one.
    pub task: Option<String>,
    /// Sender, receiver or doer.
    pub role: Option<Role>,
    /// One of [`kinds`], whatever its case.
    pub kind: Option<String>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Not after.
    pub until: Option<Timestamp>,
    /// Only what should not be.
    pub anomalies: Option<Anomalies>,
}

/// A filter that is ready to look at bytes.
#[derive(Clone, Debug)]
pub struct Sieve {
    task: Option<Vec<u8>>,
    roles: Option<[Vec<u8>; 3]>,
    kind: Option<String>,
    since: Option<String>,
    until: Option<String>,
    anomalies: Option<Anomalies>,
}

impl Sieve {
    /// Prepares a filter.
    pub fn new(filter: &Filter) -> Self {
        let task = filter.task.as_ref().map(|task| match TaskId::parse(task) {
            // Both names of a run end in the same digits.
            Ok(id) => id.suffix().as_bytes().to_vec(),
            Err(_) => task.as_bytes().to_vec(),
        });
        let roles = filter
            .role
            .map(|role| ["from", "to", "role"].map(|field| format!("\"{field}\":\"{role}\"").into_bytes()));
        Self {
            task,
            roles,
            kind: filter.kind.as_ref().map(|wanted| {
                let known = kinds().find(|kind| kind.eq_ignore_ascii_case(wanted));
                known.unwrap_or(wanted).to_owned()
            }),
            since: filter.since.map(|at| at.to_string()),
            until: filter.until.map(|at| at.to_string()),
            anomalies: filter.anomalies.clone(),
        }
    }

    /// Whether a line, without its line break, is wanted. What is no record is shown where nothing is asked for.
    pub fn admits(&self, line: &[u8]) -> bool {
        let Some(frame) = Frame::read(line) else {
            return self.task.is_none()
                && self.roles.is_none()
                && self.kind.is_none()
                && self.since.is_none()
                && self.until.is_none()
                && self.anomalies.is_none();
        };
        // All times are written in the same way, so that they sort like texts.
        self.since.as_deref().is_none_or(|since| frame.at >= since)
            && self.until.as_deref().is_none_or(|until| frame.at <= until)
            && self.anomalies.as_ref().is_none_or(|wanted| is_anomaly(&frame, wanted))
            && self.kind.as_deref().is_none_or(|kind| is_kind(&frame, kind))
            && (self.task.is_none() && self.roles.is_none() || self.heads(header(&frame)))
    }

    fn heads(&self, header: &[u8]) -> bool {
        let has = |text: &[u8]| memchr::memmem::find(header, text).is_some();
        let fits = |task: &Vec<u8>| {
            value_of(header, b"\"task_id\":\"").is_some_and(|id| id.starts_with(task) || id.ends_with(task))
        };
        self.task.as_ref().is_none_or(fits)
            && self
                .roles
                .as_ref()
                .is_none_or(|roles| roles.iter().any(|role| has(role)))
    }
}

/// The part of a record's body before a message's content: a content may hold anything.
fn header<'a>(frame: &Frame<'a>) -> &'a [u8] {
    if frame.kind != Kind::Envelope {
        return frame.body;
    }
    let end = memchr::memmem::find(frame.body, b",\"payload\":{").unwrap_or(frame.body.len());
    frame.body.get(..end).unwrap_or_default()
}

/// The string that follows a mark.
fn value_of<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    let begin = memchr::memmem::find(bytes, mark)? + mark.len();
    let rest = bytes.get(begin..)?;
    rest.get(..memchr::memchr(b'"', rest)?)
}

fn is_anomaly(frame: &Frame<'_>, wanted: &Anomalies) -> bool {
    match (wanted, frame.kind) {
        (Anomalies::All, Kind::Finding | Kind::Gap | Kind::Note | Kind::Damage) => true,
        (Anomalies::Of(name), Kind::Finding) => value_of(frame.body, b"\"detector\":\"") == Some(name.as_bytes()),
        (Anomalies::Of(name), Kind::Gap) => name == "gap",
        (Anomalies::All, Kind::Envelope | Kind::Deed | Kind::Counts | Kind::Other)
        | (Anomalies::Of(_), Kind::Envelope | Kind::Deed | Kind::Note | Kind::Damage | Kind::Counts | Kind::Other) => {
            false
        }
    }
}

fn is_kind(frame: &Frame<'_>, kind: &str) -> bool {
    let named = |mark: &[u8]| value_of(frame.body, mark) == Some(kind.as_bytes());
    match frame.kind {
        Kind::Envelope => kind == "envelope" || named(b",\"payload\":{\"type\":\""),
        Kind::Deed => kind == "deed" || named(b"\"act\":\""),
        Kind::Finding => kind == "finding",
        Kind::Gap => kind == "gap",
        Kind::Note => kind == "note",
        Kind::Damage => kind == "damage",
        Kind::Counts => kind == "counts",
        Kind::Other => false,
    }
}

/// The latest records that a filter admits, oldest first.
///
/// # Errors
/// [`LogError::Io`] when the log cannot be read.
pub fn last(folder: &Path, sieve: &Sieve, count: usize) -> Result<Vec<Vec<u8>>, LogError> {
    let mut backwards = Backwards::open(&Files::new(folder))?;
    let mut found = Vec::new();
    while found.len() < count
        && let Some(line) = backwards.next()?
    {
        if sieve.admits(&line) {
            found.push(line);
        }
    }
    found.reverse();
    Ok(found)
}

/// A record in one line of words.
pub fn describe(line: &[u8]) -> String {
    let Some(frame) = Frame::read(line) else {
        return format!("no record: {}", one_line(&String::from_utf8_lossy(line), SUMMARY_MAX));
    };
    let body: Value = serde_json::from_slice(frame.body).unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let task = text(&body, "task_id");
    let what = match frame.kind {
        Kind::Envelope => {
            let payload = body.get("payload").cloned().unwrap_or_default();
            let (from, to, kind) = (text(&body, "from"), text(&body, "to"), text(&payload, "type"));
            format!("{from} → {to} {kind} {}", summary(&payload))
        }
        Kind::Deed => {
            let details = body.as_object().map(|fields| {
                let extra = fields
                    .iter()
                    .filter(|(name, _)| !["role", "task_id", "at", "act", "call"].contains(&name.as_str()));
                extra
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            });
            format!(
                "{} {} {}",
                text(&body, "role"),
                text(&body, "act"),
                details.unwrap_or_default()
            )
        }
        Kind::Finding => format!("FOUND {}: {}", text(&body, "detector"), text(&body, "detail")),
        Kind::Gap => format!("GAP {body}"),
        Kind::Note => format!("NOTE {}", body.as_str().unwrap_or_default()),
        Kind::Damage => format!("DAMAGE {}", body.as_str().unwrap_or_default()),
        Kind::Counts => "COUNTS so far".to_owned(),
        Kind::Other => one_line(&body.to_string(), SUMMARY_MAX),
    };
    one_line(&format!("{} #{} {task} {}", frame.at, frame.n, what.trim()), 400)
}

/// What a message says, by the first of its fields that says something.
fn summary(payload: &Value) -> String {
    let fields = [
        "directive",
        "status",
        "consent",
        "recommendation",
        "cause",
        "text",
        "summary",
        "gap_summary",
        "action",
        "what_was_wrong",
        "intent",
        "content",
        "reason",
    ];
    let parts = fields
        .iter()
        .filter_map(|field| payload.get(field)?.as_str())
        .filter(|text| !text.is_empty());
    one_line(&parts.take(2).collect::<Vec<_>>().join(": "), SUMMARY_MAX)
}
