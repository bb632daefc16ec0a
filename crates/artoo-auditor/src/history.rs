//! Counts over time, in so few buckets that they always fit (design §16).
//!
//! Owns the width of a bucket: it doubles when the span does not fit any more, so that a log of ten years is drawn as well as one
//! of ten minutes.

use artoo_protocol::Timestamp;
use artoo_protocol::message::{Ending, FailureClass};
use serde::{Deserialize, Serialize};

use crate::detect::{List, Seen};
use crate::facts::{Fact, fact};

/// Most buckets.
const BUCKETS_MAX: usize = 120;
/// Width of a bucket at the beginning, in milliseconds.
const WIDTH: i64 = 60_000;

/// What happened in one span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bucket {
    /// Tasks that began.
    pub tasks: u64,
    /// Tasks that ended, by ending.
    pub accepted: u64,
    /// Tasks that ended within the threshold.
    pub succeeded: u64,
    /// Tasks that were abandoned.
    pub abandoned: u64,
    /// Sum of D at the end of tasks, for its mean.
    pub distance: f64,
    /// Corrections for logical reasons.
    pub logical: u64,
    /// Corrections for environmental reasons.
    pub environmental: u64,
    /// Directives.
    pub replans: u64,
    /// Attempts.
    pub attempts: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Calls of models that were answered.
    pub model_calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
    /// Money.
    pub cost: f64,
    /// Boundary violations.
    pub violations: u64,
    /// Anomalies.
    pub anomalies: u64,
}

impl Bucket {
    fn add(&mut self, other: &Self) {
        let Self {
            tasks,
            accepted,
            succeeded,
            abandoned,
            distance,
            logical,
            environmental,
            replans,
            attempts,
            failed_attempts,
            model_calls,
            tokens,
            cost,
            violations,
            anomalies,
        } = other;
        self.tasks += tasks;
        self.accepted += accepted;
        self.succeeded += succeeded;
        self.abandoned += abandoned;
        self.distance += distance;
        self.logical += logical;
        self.environmental += environmental;
        self.replans += replans;
        self.attempts += attempts;
        self.failed_attempts += failed_attempts;
        self.model_calls += model_calls;
        self.tokens += tokens;
        self.cost += cost;
        self.violations += violations;
        self.anomalies += anomalies;
    }

    /// Tasks that ended.
    pub const fn ended(&self) -> u64 {
        self.accepted + self.succeeded + self.abandoned
    }
}

/// All buckets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Beginning of the first bucket; absent before anything was seen.
    pub start: Option<Timestamp>,
    /// Width of a bucket, in milliseconds.
    pub width_ms: i64,
    /// From the first to the last, empty ones among them.
    pub buckets: Vec<Bucket>,
}

impl History {
    /// Counts what was seen.
    pub fn count(&mut self, now: Timestamp, seen: &Seen<'_>) {
        let Some(fact) = fact(seen) else { return };
        let change = |bucket: &mut Bucket| match fact {
            Fact::TaskBegan => bucket.tasks += 1,
            Fact::TaskEnded { how, d } => {
                bucket.distance += d.get();
                match how {
                    Ending::Accept => bucket.accepted += 1,
                    Ending::Success => bucket.succeeded += 1,
                    Ending::Abandon => bucket.abandoned += 1,
                }
            }
            Fact::Replanned => bucket.replans += 1,
            Fact::Attempted { failed, .. } => {
                bucket.attempts += 1;
                bucket.failed_attempts += u64::from(failed);
            }
            Fact::Corrected(FailureClass::Logical) => bucket.logical += 1,
            Fact::Corrected(FailureClass::Environmental) => bucket.environmental += 1,
            Fact::Answered { usage, cost } => {
                bucket.model_calls += 1;
                bucket.tokens = bucket.tokens.saturating_add(usage.tokens());
                bucket.cost += cost;
            }
            Fact::Unanswered { usage, cost } => {
                bucket.tokens = bucket.tokens.saturating_add(usage.tokens());
                bucket.cost += cost;
            }
            Fact::Concluded | Fact::Round { .. } => {}
        };
        self.at(now, change);
    }

    /// Counts a finding.
    pub fn count_finding(&mut self, now: Timestamp, list: List) {
        self.at(now, |bucket| match list {
            List::Boundary => bucket.violations += 1,
            List::Anomaly | List::Drift => bucket.anomalies += 1,
        });
    }

    /// Changes the bucket of an instant; one before the beginning (a clock that was set back) belongs to the first.
    fn at(&mut self, now: Timestamp, change: impl FnOnce(&mut Bucket)) {
        if self.width_ms <= 0 {
            self.width_ms = WIDTH;
        }
        let start = self.start.get_or_insert(now).as_millis();
        let passed = now.as_millis().saturating_sub(start).max(0);
        let index = loop {
            let index = usize::try_from(passed / self.width_ms).unwrap_or(usize::MAX);
            if index < BUCKETS_MAX {
                break index;
            }
            self.widen();
        };
        if self.buckets.len() <= index {
            self.buckets.resize(index + 1, Bucket::default());
        }
        // The index lies inside: the vector was just made long enough.
        if let Some(bucket) = self.buckets.get_mut(index) {
            change(bucket);
        }
    }

    fn widen(&mut self) {
        self.width_ms = self.width_ms.saturating_mul(2);
        let merged = self.buckets.chunks(2).map(|pair| {
            let mut sum = Bucket::default();
            for bucket in pair {
                sum.add(bucket);
            }
            sum
        });
        self.buckets = merged.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_years_fit_and_nothing_is_lost() {
        let mut history = History::default();
        let at = |minutes: i64| Timestamp::from_millis(minutes * WIDTH);
        for minute in [10, 10, 11, 5, 129, 130, 131, 5_256_000] {
            history.count_finding(at(minute), List::Anomaly);
        }
        assert!(history.buckets.len() <= BUCKETS_MAX);
        assert_eq!(history.buckets.iter().map(|b| b.anomalies).sum::<u64>(), 8);
        assert_eq!(
            history.buckets[0].anomalies, 7,
            "an earlier instant belongs to the first"
        );
        assert_eq!(history.start, Some(at(10)));
        let last = i64::try_from(history.buckets.len()).unwrap() - 1;
        let begin = at(10).as_millis() + last * history.width_ms;
        assert!((begin..begin + history.width_ms).contains(&at(5_256_000).as_millis()));
    }
}
