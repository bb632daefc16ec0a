//! Drift: a role whose latest cases go otherwise than those before (design §16).
//!
//! Owns the latest cases of each rate, over processes, so that somebody who runs one task at a time is told as well. What a case is,
//! `facts` says. Must not know a window: the same stream gives the same findings, whenever somebody asked for a report.

use artoo_protocol::Role;
use serde::{Deserialize, Serialize};

use crate::counts::{Rate, Totals};
use crate::detect::Seen;
use crate::facts::{Fact, fact};

/// So many of the latest cases are compared with all before them.
const CASES_MAX: u32 = 40;
/// Fewer of them say nothing …
const CASES_LEAST: u64 = 10;
/// … nor do fewer before them.
const BEFORE_LEAST: u64 = 50;
/// A rate that moved by so much is told …
const STEP: f64 = 0.25;
/// … and told again only after it had come back to within so much.
const BACK: f64 = STEP / 2.0;

/// The latest cases of each role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drift {
    attempts: Latest,
    judged: Latest,
    rounds: Latest,
}

impl Drift {
    /// Takes what was seen, which `totals` hold already; says so where a role has begun to drift.
    pub(crate) fn see(&mut self, seen: &Seen<'_>, totals: &Totals) -> Option<String> {
        let (role, what, latest, whole, bad) = match fact(seen)? {
            Fact::Attempted { failed, .. } => (
                Role::R3,
                "attempts that failed",
                &mut self.attempts,
                totals.attempts,
                failed,
            ),
            judged @ (Fact::Corrected(_) | Fact::Concluded) => (
                Role::R4a,
                "attempts that were corrected",
                &mut self.judged,
                totals.judged,
                judged != Fact::Concluded,
            ),
            Fact::Round { sent_back } => (
                Role::R4b,
                "rounds that were sent back",
                &mut self.rounds,
                totals.rounds,
                sent_back,
            ),
            Fact::TaskBegan
            | Fact::TaskEnded { .. }
            | Fact::Replanned
            | Fact::Answered { .. }
            | Fact::Unanswered { .. } => {
                return None;
            }
        };
        latest.add(bad);
        let (before, now) = latest.moved(whole)?;
        Some(format!(
            "{role}: {what} went from {:.0} % to {:.0} % ({} of {})",
            before.share() * 100.0,
            now.share() * 100.0,
            now.bad,
            now.of
        ))
    }
}

/// The latest cases of one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Latest {
    /// One bit for each, the latest lowest; set where it went wrong.
    bad: u64,
    /// How many there are.
    of: u32,
    /// Whether the rate has moved and not come back.
    told: bool,
}

impl Latest {
    fn add(&mut self, bad: bool) {
        self.bad = (self.bad << 1 | u64::from(bad)) & ((1 << CASES_MAX) - 1);
        self.of = (self.of + 1).min(CASES_MAX);
    }

    /// The rate before and now, when it has just moved; `whole` holds both.
    fn moved(&mut self, whole: Rate) -> Option<(Rate, Rate)> {
        let now = Rate {
            of: u64::from(self.of),
            bad: u64::from(self.bad.count_ones()),
        };
        let before = whole.minus(now);
        if now.of < CASES_LEAST || before.of < BEFORE_LEAST {
            return None;
        }
        let step = (now.share() - before.share()).abs();
        if self.told {
            self.told = step > BACK;
            return None;
        }
        self.told = step >= STEP;
        self.told.then_some((before, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows cases one by one, and says after which of them the rate had moved.
    fn moved(past: Rate, cases: impl IntoIterator<Item = bool>) -> Vec<usize> {
        let (mut latest, mut whole) = (Latest::default(), past);
        let shown = cases.into_iter().enumerate();
        let mut found = Vec::new();
        for (at, bad) in shown {
            whole.of += 1;
            whole.bad += u64::from(bad);
            latest.add(bad);
            found.extend(latest.moved(whole).map(|_| at + 1));
        }
        found
    }

    #[test]
    fn a_rate_that_moves_is_told_once_until_it_has_come_back() {
        let past = Rate { of: 100, bad: 10 };
        assert_eq!(moved(past, vec![true; 30]), [10]);
        assert_eq!(moved(past, vec![false; 100]), [0; 0], "ten points are no drift");
        assert_eq!(moved(Rate { of: 39, bad: 4 }, vec![true; 10]), [0; 0], "too few before");
        let back = [vec![true; 10], vec![false; 80], vec![true; 20]].concat();
        // After 80 good ones, the latest 40 are good; then 13 of 40 are 25 points away again.
        let found = moved(past, back);
        assert_eq!((found.len(), found[0]), (2, 10), "{found:?}");
        assert!(found[1] > 90, "{found:?}");
    }

    #[test]
    fn only_the_latest_cases_count_as_latest() {
        let mut latest = Latest::default();
        for _ in 0..100 {
            latest.add(true);
        }
        assert_eq!((latest.of, latest.bad.count_ones()), (CASES_MAX, CASES_MAX));
        for _ in 0..CASES_MAX {
            latest.add(false);
        }
        assert_eq!((latest.of, latest.bad), (CASES_MAX, 0));
    }
}
