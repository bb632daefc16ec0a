//! The record of the log, and how a change to it is found (design §16).
//!
//! A line is `{"hash":"…","prev":"…","n":1,"at":"…","envelope":{…}}`; instead of `envelope` there may be a `deed`, a
//! `finding`, a `gap`, a `note`, a `damage` or the `counts` up to there. `hash` is the SHA-256 of everything after `{"hash":"…",`, in which the hash of the record
//! before stands as `prev`. Checking looks at bytes and not at parsed JSON, so that there is no second way to write the same
//! record. Owns the format; files are [`files`](crate::files)'s matter.

use std::io::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const HASH_OPEN: &[u8] = b"{\"hash\":\"";
const HASH_CLOSE: &[u8] = b"\",";
const PREV_OPEN: &[u8] = b"\"prev\":\"";
const PREV_CLOSE: &[u8] = b"\",\"n\":";
const AT_OPEN: &[u8] = b",\"at\":\"";
const HEX: usize = 64;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A SHA-256 in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hash([u8; HEX]);

impl Hash {
    /// `prev` of the first record.
    pub const GENESIS: Self = Self([b'0'; HEX]);

    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hex = [0; HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha256::digest(bytes)) {
            let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        Self(hex)
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let hex: [u8; HEX] = text.try_into().ok()?;
        let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        hex.iter().all(digit).then_some(Self(hex))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| serde::de::Error::custom("not 64 hex digits"))
    }
}

/// Where a chain stands: the number and hash of its last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// 0 before the first record.
    pub n: u64,
    /// Lower-case hex.
    pub hash: Hash,
}

impl Default for Link {
    fn default() -> Self {
        Self::genesis()
    }
}

impl Link {
    /// Before the first record.
    pub const fn genesis() -> Self {
        Self {
            n: 0,
            hash: Hash::GENESIS,
        }
    }

    /// Appends the line of the record that follows, with its line break, and says where the chain stands then.
    ///
    /// `at` is RFC 3339, `name` the name of the last field and `body` its value as JSON.
    #[must_use]
    pub fn follow(&self, at: &str, name: &str, body: &str, lines: &mut Vec<u8>) -> Self {
        let n = self.n + 1;
        lines.extend_from_slice(HASH_OPEN);
        let place = lines.len();
        lines.extend_from_slice(&[b'0'; HEX]);
        lines.extend_from_slice(HASH_CLOSE);
        let begin = lines.len();
        lines.extend_from_slice(PREV_OPEN);
        lines.extend_from_slice(&self.hash.0);
        lines.extend_from_slice(PREV_CLOSE);
        // Writing into memory cannot fail.
        let _ = write!(lines, "{n}");
        lines.extend_from_slice(AT_OPEN);
        lines.extend_from_slice(at.as_bytes());
        lines.extend_from_slice(b"\",\"");
        lines.extend_from_slice(name.as_bytes());
        lines.extend_from_slice(b"\":");
        lines.extend_from_slice(body.as_bytes());
        lines.push(b'}');
        let hash = Hash::of(lines.get(begin..).unwrap_or_default());
        if let Some(hex) = lines.get_mut(place..place + HEX) {
            hex.copy_from_slice(&hash.0);
        }
        lines.push(b'\n');
        Self { n, hash }
    }
}

/// What kind of record a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A message.
    Envelope,
    /// What a role did beside speaking.
    Deed,
    /// What a detector found.
    Finding,
    /// Messages are missing.
    Gap,
    /// About the log itself.
    Note,
    /// That something was done to the log which the chain alone would not show.
    Damage,
    /// What was counted up to here.
    Counts,
    /// Something that this version does not know.
    Other,
}

impl Kind {
    const NAMES: [(Self, &'static [u8]); 7] = [
        (Self::Envelope, b"envelope"),
        (Self::Deed, b"deed"),
        (Self::Finding, b"finding"),
        (Self::Gap, b"gap"),
        (Self::Note, b"note"),
        (Self::Damage, b"damage"),
        (Self::Counts, b"counts"),
    ];
}

/// The frame of a line, read without looking at what it holds; whether the hash fits is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The hash that the line states.
    pub hash: Hash,
    /// What the hash is of.
    hashed: &'a [u8],
    /// The hash of the record before it.
    pub prev: Hash,
    /// Its number.
    pub n: u64,
    /// When it was written, RFC 3339.
    pub at: &'a str,
    /// What it is.
    pub kind: Kind,
    /// The value of its last field, JSON.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a line without its line break.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let (hash, hashed) = line.strip_prefix(HASH_OPEN)?.split_at_checked(HEX)?;
        let hashed = hashed.strip_prefix(HASH_CLOSE)?;
        let (prev, after) = hashed.strip_prefix(PREV_OPEN)?.split_at_checked(HEX)?;
        let after = after.strip_prefix(PREV_CLOSE)?;
        let digits = after.iter().position(|byte| !byte.is_ascii_digit())?;
        let (n, after) = after.split_at_checked(digits)?;
        let after = after.strip_prefix(AT_OPEN)?;
        let end = after.iter().position(|&byte| byte == b'"')?;
        let (at, after) = after.split_at_checked(end)?;
        let after = after.strip_prefix(b"\",\"")?;
        let end = after.iter().position(|&byte| byte == b'"')?;
        let (name, after) = after.split_at_checked(end)?;
        let kind = Kind::NAMES.iter().find(|(_, known)| *known == name);
        Some(Self {
            hash: Hash::parse(hash)?,
            hashed,
            prev: Hash::parse(prev)?,
            n: std::str::from_utf8(n).ok()?.parse().ok()?,
            at: std::str::from_utf8(at).ok()?,
            kind: kind.map_or(Kind::Other, |(kind, _)| *kind),
            body: after.strip_prefix(b"\":")?.strip_suffix(b"}")?,
        })
    }

    /// Reads a line whose hash fits its bytes.
    pub fn sound(line: &'a [u8]) -> Option<Self> {
        Self::read(line).filter(|frame| Hash::of(frame.hashed) == frame.hash)
    }

    /// Where the chain stands after it.
    pub const fn link(&self) -> Link {
        Link {
            n: self.n,
            hash: self.hash,
        }
    }

    /// Whether it is the record after `link`.
    pub fn follows(&self, link: &Link) -> bool {
        self.n == link.n + 1 && self.prev == link.hash
    }
}

/// How a log was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// A record is not what was written.
    Edited,
    /// Records are missing before this one.
    Removed,
    /// A record stands here that belongs elsewhere, or was put in.
    Inserted,
    /// Records changed places.
    Reordered,
    /// The chain fits in itself and is not the one that was written: a checkpoint, or the beginning, says another hash.
    Rewritten,
    /// The end is missing.
    CutOff,
    /// `audit.head` is missing or cannot be read, or was when the log was opened.
    HeadMissing,
    /// `audit.head` names another record than the log holds.
    HeadDiffers,
}

impl Damage {
    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Rewritten => "rewritten",
            Self::CutOff => "cut_off",
            Self::HeadMissing => "head_missing",
            Self::HeadDiffers => "head_differs",
        }
    }
}

/// The first place where a log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Number of the record that is wrong, or that should stand there.
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
