//! Identities: every id is a type of its own and is made by code, never taken from a model's answer (design §4).
//!
//! Owns how ids are formed. Must not read a clock or a random source: what is fresh comes in as an argument.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::units::Timestamp;

/// Longest slug in bytes; longer ones are cut by [`Slug::repair`].
pub const SLUG_MAX: usize = 48;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps text that already is such an id, as read from a journal or a message.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id! {
    /// One run of one task: `<slug>_<8 hex>`; unique, readable and safe as a file name.
    TaskId
}
string_id! {
    /// One subtask: a `UUIDv7` in its usual form.
    SubTaskId
}
string_id! {
    /// One envelope on the bus: a `UUIDv7` in its usual form.
    EnvelopeId
}
string_id! {
    /// One memory record.
    MegramId
}

/// The class of a task in snake_case ASCII, such as `count_rust_files`.
///
/// Invariant: 1 to [`SLUG_MAX`] characters of `a-z`, `0-9` and `_`, starting and ending with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Slug(String);

impl Slug {
    /// Makes a valid slug out of whatever a model proposed; never fails.
    ///
    /// Letters are lower-cased, every run of other characters becomes one `_`, the rest is cut at [`SLUG_MAX`], and
    /// nothing usable at all becomes `task`.
    pub fn repair(proposed: &str) -> Self {
        let mut slug = String::new();
        for c in proposed.chars() {
            if slug.len() >= SLUG_MAX {
                break;
            }
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('_') {
                slug.push('_');
            }
        }
        let trimmed = slug.trim_end_matches('_');
        Self(if trimmed.is_empty() {
            "task".to_owned()
        } else {
            trimmed.to_owned()
        })
    }

    /// The slug as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Slug {
    fn from(text: String) -> Self {
        Self::repair(&text)
    }
}

impl From<Slug> for String {
    fn from(slug: Slug) -> Self {
        slug.0
    }
}

impl std::fmt::Display for Slug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no task id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a task id: expected `<slug>_<8 hex digits>`")]
pub struct NotATaskId(String);

impl TaskId {
    /// The id of a task whose slug is not known yet: `input_<8 hex>`; see [`TaskId::with_slug`].
    ///
    /// `fresh` is the `UUIDv7` that the entry point made for the user's input; its last 32 bits, which are random, are used.
    pub fn provisional(fresh: Uuid) -> Self {
        let low = u32::try_from(fresh.as_u128() & 0xffff_ffff).unwrap_or_default();
        Self(format!("input_{low:08x}"))
    }

    /// The same run under its final name: the slug is replaced, the eight hex digits stay.
    #[must_use]
    pub fn with_slug(&self, slug: &Slug) -> Self {
        Self(format!("{slug}_{}", self.suffix()))
    }

    /// Whether R1 has not committed to a slug yet.
    pub fn is_provisional(&self) -> bool {
        self.0.strip_prefix("input_").is_some_and(is_suffix)
    }

    /// The eight hex digits that make the run unique (the whole id if it has none).
    pub fn suffix(&self) -> &str {
        self.0.rsplit_once('_').map_or(self.0.as_str(), |(_, suffix)| suffix)
    }

    /// Checks a task id that a person typed or a file name held.
    ///
    /// # Errors
    /// [`NotATaskId`] when the text is not `<slug>_<8 hex>`, so that it can never be used to leave the task folder.
    pub fn parse(text: &str) -> Result<Self, NotATaskId> {
        let valid = text.rsplit_once('_').is_some_and(|(slug, suffix)| {
            !slug.is_empty()
                && slug.len() <= SLUG_MAX
                && slug
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                && is_suffix(suffix)
        });
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotATaskId(text.to_owned()))
        }
    }
}

fn is_suffix(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

impl SubTaskId {
    /// The id of the `index`-th subtask that a task ever had.
    ///
    /// Deterministic, so that a replayed planner gives the same ids: time from `now`, the random part from a hash of the
    /// task id and the index. Two subtasks of one machine never share an id because no two tasks share theirs.
    pub fn derive(now: Timestamp, task: &TaskId, index: u64) -> Self {
        Self(derived_v7(now, task.as_str(), index).to_string())
    }
}

impl MegramId {
    /// The id of the `index`-th memory that a task gave rise to; deterministic like [`SubTaskId::derive`].
    pub fn derive(now: Timestamp, task: &TaskId, index: u64) -> Self {
        Self(derived_v7(now, task.as_str(), index ^ (1 << 63)).to_string())
    }
}

fn derived_v7(now: Timestamp, seed: &str, index: u64) -> Uuid {
    let high = mix(fnv(seed), index);
    let low = mix(high, index.rotate_left(32));
    let mut random = [0_u8; 10];
    for (byte, source) in random
        .iter_mut()
        .zip(high.to_be_bytes().into_iter().chain(low.to_be_bytes()))
    {
        *byte = source;
    }
    uuid::Builder::from_unix_timestamp_millis(now.as_millis().unsigned_abs(), &random).into_uuid()
}

/// FNV-1a, 64 bits: stable across platforms and releases, which the journal needs and `Hasher` does not promise.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The finaliser of `SplitMix64`: spreads every input bit over the whole word.
fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Correlates a [`Command`](crate::Command) with its [`Answer`](crate::Answer): unique per (role, task), counted by the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u32);

impl CallId {
    /// Hands out the present value and moves on to the next.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let present = *self;
        self.0 = self.0.wrapping_add(1);
        present
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slugs_are_repaired_never_refused() {
        for (proposed, expect) in [
            ("count_rust_files", "count_rust_files"),
            ("Count Rust-Files!", "count_rust_files"),
            ("", "task"),
            ("数一数", "task"),
            ("../../etc/passwd", "etc_passwd"),
            ("__a__", "a"),
        ] {
            assert_eq!(Slug::repair(proposed).as_str(), expect, "{proposed:?}");
        }
        assert!(Slug::repair(&"x".repeat(500)).as_str().len() <= SLUG_MAX);
    }

    #[test]
    fn a_task_keeps_its_suffix_when_it_gets_its_slug() {
        let provisional = TaskId::provisional(Uuid::from_u128(0xdead_beef));
        assert_eq!(provisional.as_str(), "input_deadbeef");
        assert!(provisional.is_provisional());
        let named = provisional.with_slug(&Slug::repair("find it"));
        assert_eq!(named.as_str(), "find_it_deadbeef");
        assert!(!named.is_provisional());
        assert_eq!(TaskId::parse(named.as_str()), Ok(named));
    }

    #[test]
    fn ids_that_could_leave_the_folder_are_refused() {
        for bad in [
            "",
            "a",
            "../x_deadbeef",
            "a/b_deadbeef",
            "x_deadbee",
            "x_DEADBEEF",
            "_deadbeef",
        ] {
            assert!(TaskId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn derived_ids_are_version_7_and_differ() {
        let task = TaskId::new("t_00000001");
        let now = Timestamp::from_millis(1_700_000_000_000);
        let ids: std::collections::BTreeSet<_> = (0..10_000).map(|i| SubTaskId::derive(now, &task, i)).collect();
        assert_eq!(ids.len(), 10_000);
        let one = Uuid::parse_str(SubTaskId::derive(now, &task, 1).as_str()).unwrap();
        assert_eq!(one.get_version_num(), 7);
        assert_ne!(
            SubTaskId::derive(now, &task, 1).as_str(),
            MegramId::derive(now, &task, 1).as_str()
        );
    }

    proptest! {
        #[test]
        fn a_repaired_slug_always_makes_a_valid_task_id(text in any::<String>(), n in any::<u128>()) {
            let id = TaskId::provisional(Uuid::from_u128(n)).with_slug(&Slug::repair(&text));
            prop_assert!(TaskId::parse(id.as_str()).is_ok());
        }
    }
}
