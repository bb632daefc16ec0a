//! When to dream: every five minutes, and a little after the last ending (design §15).
//!
//! Owns the deadlines, as a value without a clock. Must not know what a pass does.

use crate::view::GroupKey;
use artoo_protocol::{Millis, Timestamp};
use std::collections::BTreeSet;

/// Between two passes over everything.
pub const EVERY: Millis = Millis::from_seconds(300);
/// After the last ending, so that a row of tasks is dreamt of once.
pub const SETTLE: Millis = Millis(2_000);
/// Groups that are remembered as touched; beyond that, everything is looked at.
const TOUCHED_MAX: usize = 4_096;

/// What a pass looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every group.
    Everything,
    /// Every group behind this one, in the order of the store.
    After(GroupKey),
    /// Only these.
    Touched(BTreeSet<GroupKey>),
}

/// The Dreamer's sense of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rhythm {
    next_full: Timestamp,
    settled: Option<Timestamp>,
    touched: BTreeSet<GroupKey>,
    overflowed: bool,
}

impl Rhythm {
    /// Begins at `now`; the first pass over everything is due after [`EVERY`].
    pub fn new(now: Timestamp) -> Self {
        Self {
            next_full: now.plus(EVERY),
            settled: None,
            touched: BTreeSet::new(),
            overflowed: false,
        }
    }

    /// Something was written to this group.
    pub fn touch(&mut self, group: GroupKey) {
        if self.touched.len() < TOUCHED_MAX {
            self.touched.insert(group);
        } else {
            self.overflowed |= !self.touched.contains(&group);
        }
    }

    /// A task has ended.
    pub fn ended(&mut self, now: Timestamp) {
        self.settled = Some(now.plus(SETTLE));
    }

    /// When to look again.
    pub fn deadline(&self) -> Timestamp {
        self.settled
            .map_or(self.next_full, |settled| settled.min(self.next_full))
    }

    /// What is due at `now`; once.
    pub fn due(&mut self, now: Timestamp) -> Option<Scope> {
        // A clock that was set back does not put off what is due in minutes.
        self.next_full = self.next_full.min(now.plus(EVERY));
        self.settled = self.settled.map(|settled| settled.min(now.plus(SETTLE)));
        if self.next_full <= now {
            self.next_full = now.plus(EVERY);
            self.settled = None;
            self.take();
            return Some(Scope::Everything);
        }
        if self.settled.is_some_and(|settled| settled <= now) {
            self.settled = None;
            return self.take();
        }
        None
    }

    /// What is still to be looked at when the process ends.
    pub fn last(&mut self) -> Option<Scope> {
        self.settled = None;
        self.take()
    }

    fn take(&mut self) -> Option<Scope> {
        let touched = std::mem::take(&mut self.touched);
        if std::mem::take(&mut self.overflowed) {
            return Some(Scope::Everything);
        }
        (!touched.is_empty()).then_some(Scope::Touched(touched))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn group(name: &str) -> GroupKey {
        GroupKey {
            space: name.to_owned(),
            entity: "env:local".to_owned(),
        }
    }

    fn touched(names: &[&str]) -> Scope {
        Scope::Touched(names.iter().map(|name| group(name)).collect())
    }

    #[test]
    fn a_row_of_endings_is_dreamt_of_once_shortly_after_the_last() {
        let mut rhythm = Rhythm::new(at());
        assert_eq!(rhythm.deadline(), at().plus(EVERY));
        rhythm.touch(group("a"));
        assert_eq!(rhythm.due(at().plus(SETTLE)), None, "no ending yet");
        rhythm.ended(at());
        rhythm.touch(group("b"));
        rhythm.ended(at().plus(Millis(1_500)));
        assert_eq!(rhythm.deadline(), at().plus(Millis(3_500)));
        assert_eq!(rhythm.due(at().plus(Millis(2_000))), None, "debounced");
        assert_eq!(rhythm.due(at().plus(Millis(3_500))), Some(touched(&["a", "b"])));
        assert_eq!(rhythm.due(at().plus(Millis(3_501))), None, "once");
        rhythm.ended(at().plus(Millis(4_000)));
        assert_eq!(rhythm.due(at().plus(Millis(9_000))), None, "a task that wrote nothing");
    }

    #[test]
    fn a_clock_that_is_set_back_a_year_puts_nothing_off() {
        let mut rhythm = Rhythm::new(at());
        rhythm.touch(group("a"));
        rhythm.ended(at());
        let back = Timestamp::from_millis(at().as_millis() - 365 * 86_400_000);
        assert_eq!(rhythm.due(back), None);
        assert_eq!(rhythm.deadline(), back.plus(SETTLE));
        assert_eq!(rhythm.due(back.plus(SETTLE)), Some(touched(&["a"])));
        assert_eq!(rhythm.due(back.plus(EVERY)), Some(Scope::Everything));
    }

    #[test]
    fn everything_is_looked_at_every_five_minutes_and_what_is_left_at_the_end() {
        let mut rhythm = Rhythm::new(at());
        rhythm.touch(group("a"));
        rhythm.ended(at().plus(EVERY));
        assert_eq!(rhythm.due(at().plus(EVERY)), Some(Scope::Everything));
        assert_eq!(rhythm.last(), None, "it was looked at with everything");
        assert_eq!(rhythm.deadline(), at().plus(EVERY).plus(EVERY));
        rhythm.touch(group("b"));
        assert_eq!(rhythm.last(), Some(touched(&["b"])));
        for number in 0..=TOUCHED_MAX {
            rhythm.touch(group(&number.to_string()));
        }
        assert_eq!(rhythm.last(), Some(Scope::Everything));
        assert_eq!(rhythm.last(), None);
    }
}
