//! What an observer is shown and what it wants done (design §16).
//!
//! Owns the vocabulary around the auditor. Among its [`Effect`]s there is none by which it could reach a role.

use std::sync::Arc;

use artoo_protocol::message::AuditReport;
use artoo_protocol::{Deed, Envelope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::counts::Ledger;
use crate::detect::Finding;
use crate::history::History;
use crate::tuning::TuningRow;

/// Messages that were not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Sequence number of the first; 0 when only deeds are missing.
    pub from_seq: u64,
    /// Sequence number of the last.
    pub to_seq: u64,
    /// How many.
    pub count: u64,
    /// Deeds that are missing beside them.
    #[serde(default)]
    pub deeds: u64,
    /// Rows of `tuning.jsonl` that were not written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows: u64,
}

impl Gap {
    /// Only rows of the table of tasks.
    pub(crate) fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl std::fmt::Display for Gap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if self.count > 0 {
            parts.push(format!(
                "{} messages ({} to {})",
                self.count, self.from_seq, self.to_seq
            ));
        }
        for (n, what) in [(self.deeds, "deeds"), (self.rows, "rows of tuning.jsonl")] {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        }
        f.write_str(&parts.join(", "))
    }
}

/// What an observer is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A message.
    Envelope(Arc<Envelope>),
    /// What a role did beside speaking.
    Deed(Arc<Deed>),
    /// Messages are missing here.
    Gap(Gap),
}

/// What goes into the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A message.
    Envelope(Arc<Envelope>),
    /// What a role did beside speaking.
    Deed(Arc<Deed>),
    /// What a detector found.
    Finding(Finding),
    /// Messages are missing here.
    Gap(Gap),
    /// Something about the log itself.
    Note(String),
    /// What was counted up to here, so that whoever counts later need not begin at the beginning.
    Counts(Box<Past>),
}

/// Everything that the auditor may do.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Effect {
    /// Append to its own log.
    Append {
        /// When it was seen.
        at: Timestamp,
        /// What.
        entry: Entry,
    },
    /// Append to its own table of closed tasks.
    Row(Box<TuningRow>),
    /// Tell the operator.
    Report(Box<AuditReport>),
}

/// What is known since the beginning of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    /// The counts.
    pub ledger: Ledger,
    /// The same over time.
    pub history: History,
}
