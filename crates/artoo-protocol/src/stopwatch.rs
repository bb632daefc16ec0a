//! A task's own time: how long it has run, leaving out the time spent waiting for a person (design §19).
//!
//! Used by R4b for `elapsed_ms` and by R7 for the time budget, so that both mean the same.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::units::{Millis, Timestamp};

/// Elapsed time with pauses that may overlap; the union of the pauses is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopwatch {
    started: Timestamp,
    waiting: BTreeSet<String>,
    paused_at: Option<Timestamp>,
    paused_total: Millis,
}

impl Stopwatch {
    /// Starts at `now`.
    pub fn start(now: Timestamp) -> Self {
        Self {
            started: now,
            waiting: BTreeSet::new(),
            paused_at: None,
            paused_total: Millis(0),
        }
    }

    /// A person was asked something; `key` names the question.
    pub fn pause(&mut self, key: &str, now: Timestamp) {
        if self.waiting.is_empty() {
            self.paused_at = Some(now);
        }
        self.waiting.insert(key.to_owned());
    }

    /// The question was answered. An answer to an unknown question changes nothing.
    pub fn resume(&mut self, key: &str, now: Timestamp) {
        if self.waiting.remove(key)
            && self.waiting.is_empty()
            && let Some(since) = self.paused_at.take()
        {
            self.paused_total = self.paused_total.saturating_add(now.since(since));
        }
    }

    /// The process was away for so long. While a person is waited for, that time is left out anyway.
    pub fn away(&mut self, away: Millis) {
        if !self.is_paused() {
            self.paused_total = self.paused_total.saturating_add(away);
        }
    }

    /// Whether a person is being waited for.
    pub const fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Running time so far, pauses left out.
    pub fn elapsed(&self, now: Timestamp) -> Millis {
        let until = self.paused_at.unwrap_or(now);
        Millis(until.since(self.started).0.saturating_sub(self.paused_total.0))
    }

    /// When the running time reaches `budget` if nothing pauses it again; `None` while paused.
    pub fn reaches(&self, budget: Millis) -> Option<Timestamp> {
        (!self.is_paused()).then(|| self.started.plus(self.paused_total).plus(budget))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_waits_count_once() {
        let at = Timestamp::from_millis;
        let mut watch = Stopwatch::start(at(0));
        watch.pause("a", at(10));
        watch.pause("b", at(20));
        watch.resume("a", at(30));
        assert!(watch.is_paused());
        assert_eq!(watch.elapsed(at(35)), Millis(10));
        watch.resume("b", at(40));
        watch.resume("b", at(90));
        assert_eq!(watch.elapsed(at(50)), Millis(20));
        assert_eq!(watch.reaches(Millis(100)), Some(at(130)));
    }

    #[test]
    fn time_away_counts_for_nobody() {
        let at = Timestamp::from_millis;
        let mut watch = Stopwatch::start(at(0));
        watch.away(Millis(1_000));
        assert_eq!(watch.elapsed(at(1_010)), Millis(10));
        watch.pause("question", at(1_010));
        watch.away(Millis(500));
        watch.resume("question", at(1_600));
        assert_eq!(watch.elapsed(at(1_605)), Millis(15));
    }
}
