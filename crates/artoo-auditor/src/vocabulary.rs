//! What an observer is shown and what it wants done (design §16).
//!
//! Owns the vocabulary around the auditor. Among its [`Effect`]s there is none by which it could reach a role.

use std::sync::Arc;

use artoo_protocol::message::AuditReport;
use artoo_protocol::{Deed, Envelope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::counts::Ledger;
use crate::detect::Finding;
use crate::drift::Drift;
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
    /// Findings that were not written; whoever counts the log finds them again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub findings: u64,
    /// Whether the process before did not end as it should: what it saw last may be missing, and nobody knows how much.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
}

impl Gap {
    /// Only rows of the table of tasks.
    pub(crate) fn rows(rows: u64) -> Self {
        Self {
            rows,
            ..Self::default()
        }
    }

    /// What a process that was killed may have taken along.
    pub(crate) fn unknown() -> Self {
        Self {
            unknown: true,
            ..Self::default()
        }
    }

    /// Whether something of a task is missing, or may be: a row or a finding that is missing hides nothing of one.
    pub(crate) const fn hides(&self) -> bool {
        self.count > 0 || self.deeds > 0 || self.unknown
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
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
        for (n, what) in [
            (self.deeds, "deeds"),
            (self.rows, "rows of tuning.jsonl"),
            (self.findings, "findings"),
        ] {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        }
        let counted = parts.join(", ");
        if !parts.is_empty() {
            write!(f, "{counted} were not recorded")?;
        }
        if self.unknown {
            let and = if parts.is_empty() { "" } else { "; " };
            write!(
                f,
                "{and}the process before did not end as it should: what it saw last may not be recorded"
            )?;
        }
        Ok(())
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
    /// Something was done to the log which the chain alone would not show: it is no whole log ever after.
    Damage(String),
    /// What was counted up to here, so that whoever counts later need not begin at the beginning.
    Counts(Box<Past>),
}

impl From<Observed> for Entry {
    fn from(observed: Observed) -> Self {
        match observed {
            Observed::Envelope(envelope) => Self::Envelope(envelope),
            Observed::Deed(deed) => Self::Deed(deed),
            Observed::Gap(gap) => Self::Gap(gap),
        }
    }
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
    /// What its numbers mean: those of another version are made anew from the log.
    pub format: u32,
    /// The counts.
    pub ledger: Ledger,
    /// The same over time.
    pub history: History,
    /// The latest cases of each role, for drift.
    pub drift: Drift,
}
