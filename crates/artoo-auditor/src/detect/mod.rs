//! What should not be seen on the bus: one row per detector, each with its words and its rule (design §16).
//!
//! Owns the table, from which the pages under `docs/anomalies/` are made, and the state that detectors keep about one task.
//! A detector is a pure function of what was seen so far; it has no clock, no file and no way to reach a role.

mod authority;
mod consent;
mod cost;
mod fan_in;
mod judging;
mod loops;
mod memory;
mod plans;
mod table;

use artoo_protocol::{Deed, Envelope, TaskId};
use serde::{Deserialize, Serialize};

pub(crate) use authority::{act_after_the_end, boundary, forbidden};
pub(crate) use cost::{Baseline, Spending, runaway};
pub use table::{DETECTORS, List, Row, row};

/// What a detector is shown.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A message.
    Envelope(&'a Envelope),
    /// What a role did beside speaking.
    Deed(&'a Deed),
}

impl Seen<'_> {
    /// The task that it belongs to.
    pub const fn task_id(&self) -> Option<&TaskId> {
        match self {
            Self::Envelope(envelope) => envelope.task_id.as_ref(),
            Self::Deed(deed) => deed.task_id.as_ref(),
        }
    }
}

/// Something that a detector found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the detector: a row of [`DETECTORS`].
    pub detector: String,
    /// The task, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Sequence number of the message that showed it; 0 when it was no message.
    #[serde(default)]
    pub seq: u64,
    /// In words.
    pub detail: String,
}

impl Finding {
    pub(crate) fn new(detector: &str, task_id: Option<&TaskId>, seq: u64, detail: impl Into<String>) -> Self {
        Self {
            detector: detector.to_owned(),
            task_id: task_id.cloned(),
            seq,
            detail: detail.into(),
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.detector)?;
        if let Some(task_id) = &self.task_id {
            write!(f, "{task_id}: ")?;
        }
        f.write_str(&self.detail)
    }
}

/// A detector that looks at one task.
pub(crate) trait TaskDetector {
    const NAME: &'static str;

    fn see(&mut self, seen: &Seen<'_>) -> Option<String>;
}

macro_rules! task_detectors {
    ($($field:ident: $type:ty),* $(,)?) => {
        /// Every detector's state about one task.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct TaskDetectors {
            $($field: $type,)*
        }

        impl TaskDetectors {
            /// Names of those that look at one task.
            #[cfg(test)]
            pub const NAMES: &'static [&'static str] = &[$(<$type>::NAME),*];

            /// Shows every detector what was seen.
            pub fn see(&mut self, seen: &Seen<'_>, mut found: impl FnMut(&'static str, String)) {
                $(if let Some(detail) = self.$field.see(seen) {
                    found(<$type>::NAME, detail);
                })*
            }
        }
    };
}

task_detectors! {
    thrashing: loops::Thrashing,
    endless_correction: loops::EndlessCorrection,
    fan_in: fan_in::FanIn,
    blocked_reuse: plans::BlockedReuse,
    model_call: judging::ForbiddenModelCall,
    rejected_success: judging::RejectedSuccess,
    evidence: judging::ClaimWithoutEvidence,
    memory_junk: memory::MemoryJunk,
    consent: consent::ConsentWithoutPerson,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_detector_has_one_row() {
        let mut names: Vec<_> = DETECTORS.iter().map(|row| row.name).collect();
        names.sort_unstable();
        let mut unique = names.clone();
        unique.dedup();
        assert_eq!(names, unique);
        for name in TaskDetectors::NAMES {
            assert!(row(name).is_some(), "{name} has no row");
        }
    }
}
