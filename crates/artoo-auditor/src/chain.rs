//! The record of the log, and how a change to it is found (design §16).
//!
//! A line is `{"hash":"…","prev":"…","n":1,"at":"…","envelope":{…}}`; instead of `envelope` there may be a `gap` or a
//! `note`. `hash` is the SHA-256 of everything after `{"hash":"…",`, in which the hash of the record before stands as
//! `prev`. Checking looks at bytes and not at parsed JSON, so that there is no second way to write the same record.
//! Owns the format; files are [`log`](crate::log)'s matter.

use artoo_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// `prev` of the first record.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const HASH_OPEN: &[u8] = b"{\"hash\":\"";
const HASH_CLOSE: &[u8] = b"\",";
const PREV_OPEN: &[u8] = b"\"prev\":\"";
const PREV_CLOSE: &[u8] = b"\",\"n\":";
const AT_OPEN: &[u8] = b",\"at\":\"";
const GAP: &[u8] = b"\",\"gap\":";
const NOTE: &[u8] = b"\",\"note\":";
const HEX: usize = 64;

/// Where a chain stands: the number and hash of its last record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// 0 before the first record.
    pub n: u64,
    /// Lower-case hex.
    pub hash: String,
}

impl Link {
    /// Before the first record.
    pub fn genesis() -> Self {
        Self {
            n: 0,
            hash: GENESIS.to_owned(),
        }
    }

    /// The line of the record that follows, with its line break, and where the chain stands then.
    ///
    /// `body` is the last field as JSON without braces, such as `"note":"text"`.
    pub fn follow(&self, at: Timestamp, body: &str) -> (String, Self) {
        let n = self.n + 1;
        let rest = format!("\"prev\":\"{}\",\"n\":{n},\"at\":\"{at}\",{body}}}", self.hash);
        let hash = hex(&Sha256::digest(rest.as_bytes()));
        let line = format!("{{\"hash\":\"{hash}\",{rest}\n");
        (line, Self { n, hash })
    }
}

/// What kind of record a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message.
    Envelope,
    /// Messages are missing.
    Gap,
    /// About the log itself.
    Note,
}

/// A line whose hash fits its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// The hash of the record before it.
    pub prev: String,
    /// Where the chain stands after it.
    pub link: Link,
    /// What it is.
    pub kind: Kind,
}

impl Sound {
    /// Reads a line without its line break; `None` when its hash does not fit or its frame is none.
    pub fn read(line: &[u8]) -> Option<Self> {
        let line = line.strip_prefix(HASH_OPEN)?;
        let (hash, rest) = line.split_at_checked(HEX)?;
        let rest = rest.strip_prefix(HASH_CLOSE)?;
        if hex(&Sha256::digest(rest)).as_bytes() != hash {
            return None;
        }
        let (prev, after) = rest.strip_prefix(PREV_OPEN)?.split_at_checked(HEX)?;
        let after = after.strip_prefix(PREV_CLOSE)?;
        let digits = after.iter().position(|byte| !byte.is_ascii_digit())?;
        let (n, after) = after.split_at_checked(digits)?;
        let after = after.strip_prefix(AT_OPEN)?;
        let at_end = after.iter().position(|&byte| byte == b'"')?;
        let (_, body) = after.split_at_checked(at_end)?;
        Some(Self {
            prev: String::from_utf8(prev.to_vec()).ok()?,
            link: Link {
                n: std::str::from_utf8(n).ok()?.parse().ok()?,
                hash: String::from_utf8(hash.to_vec()).ok()?,
            },
            kind: if body.starts_with(GAP) {
                Kind::Gap
            } else if body.starts_with(NOTE) {
                Kind::Note
            } else {
                Kind::Envelope
            },
        })
    }

    /// Whether it is the record after `link`.
    pub fn follows(&self, link: &Link) -> bool {
        self.link.n == link.n + 1 && self.prev == link.hash
    }
}

/// An intact log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Records.
    pub records: u64,
    /// Gap records among them.
    pub gaps: u64,
    /// Notes about the log itself among them.
    pub notes: u64,
    /// Records behind the head: written by a process that runs or was killed.
    pub behind_head: u64,
    /// Length of a last record that is not finished, for the same reason.
    pub unfinished_bytes: u64,
}

/// How a log was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// A record does not fit its hash.
    Edited,
    /// Records are missing before this one.
    Removed,
    /// A record stands here that belongs elsewhere, or was put in.
    Inserted,
    /// Records changed places.
    Reordered,
    /// A record fits its own hash but not the one before it: the chain was rewritten from here on, or up to here.
    Rechained,
    /// The end is missing.
    CutOff,
    /// `audit.head` is missing or cannot be read.
    HeadMissing,
    /// `audit.head` names another record than the log holds.
    HeadDiffers,
}

/// The first place where a log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Number of the record that should stand there.
    pub record: u64,
    /// What happened.
    pub damage: Damage,
    /// In words.
    pub detail: String,
}

impl Broken {
    pub(crate) fn new(record: u64, damage: Damage, detail: impl Into<String>) -> Self {
        Self {
            record,
            damage,
            detail: detail.into(),
        }
    }
}

/// Says what is wrong with a line that does not follow `last`; `next` is the line after it, if there is one.
pub fn diagnose(last: &Link, line: &[u8], next: Option<&[u8]>) -> Broken {
    let expected = last.n + 1;
    let Some(found) = Sound::read(line) else {
        return Broken::new(expected, Damage::Edited, "its hash does not fit its content");
    };
    let n = found.link.n;
    let expected_is_next = next.and_then(Sound::read).is_some_and(|sound| sound.follows(last));
    if n == expected {
        let detail = "it does not continue the record before it";
        Broken::new(expected, Damage::Rechained, detail)
    } else if n < expected {
        Broken::new(expected, Damage::Inserted, format!("record {n} stands in its place"))
    } else if expected_is_next {
        let detail = format!("record {n} stands before it");
        Broken::new(expected, Damage::Reordered, detail)
    } else {
        Broken::new(expected, Damage::Removed, format!("the log goes on with record {n}"))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(HEX), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
