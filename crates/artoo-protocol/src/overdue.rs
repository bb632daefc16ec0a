//! When a subtask of a plan is overdue (design §6, §11).
//!
//! One rule for R2, which sends, and R4b, which waits: both step a clock of their own by the stamps of the messages that both
//! hear, so they come to the same moment without a word between them. Knows no plan and no outcome.

use crate::stopwatch::Stopwatch;
use crate::units::{Millis, Timestamp};

/// How long after its deadline the outcome of a subtask is waited for where nothing else is set: the attempt has ended by then,
/// and has to be judged. A setting below it makes no sense.
pub const JUDGING_TIME: Millis = Millis::from_seconds(60);

/// The last part of it, in which what was said in time arrives; what is said then counts no more.
const ARRIVAL_TIME: Millis = Millis::from_seconds(1);

/// The time of one plan. None passes while a person is asked, nor while nobody works on the task.
#[derive(Clone, Debug)]
pub struct PlanClock {
    dispatched_at: Timestamp,
    judging_time: Millis,
    watch: Stopwatch,
    /// The same without what the task lay still: a deadline is a time of day, and only a person is given time.
    asking: Stopwatch,
    /// When the present group began.
    group_since: Timestamp,
}

impl PlanClock {
    /// Of a plan that was dispatched at this moment, with its first group, where judging may take so long
    /// ([`JUDGING_TIME`] at least).
    pub fn start(dispatched_at: Timestamp, judging_time: Millis) -> Self {
        Self {
            dispatched_at,
            judging_time: judging_time.max(JUDGING_TIME),
            watch: Stopwatch::start(dispatched_at),
            asking: Stopwatch::start(dispatched_at),
            group_since: dispatched_at,
        }
    }

    /// A person was asked, or has answered.
    pub fn waiting(&mut self, request: &str, waits: bool, stamp: Timestamp) {
        for watch in [&mut self.watch, &mut self.asking] {
            if waits {
                watch.pause(request, stamp);
            } else {
                watch.resume(request, stamp);
            }
        }
    }

    /// The task lay still so long.
    pub fn away(&mut self, span: Millis) {
        self.watch.away(span);
    }

    /// The last outcome of a group came, which begins the next.
    pub fn next_group(&mut self, stamp: Timestamp) {
        self.group_since = stamp;
    }

    /// The deadline with all waiting for a person so far given back.
    pub fn moved(&self, deadline: Timestamp, now: Timestamp) -> Timestamp {
        let passed = now.since(self.dispatched_at).0;
        deadline.plus(Millis(passed.saturating_sub(self.asking.elapsed(now).0)))
    }

    /// From when on an outcome counts no more; `None` while a person is waited for. A deadline that had passed when its group
    /// began leaves the time to say so.
    pub fn due(&self, deadline: Timestamp) -> Option<Timestamp> {
        let reached = self.watch.reaches(deadline.since(self.dispatched_at))?;
        Some(
            reached
                .max(self.group_since)
                .plus(Millis(self.judging_time.0 - ARRIVAL_TIME.0)),
        )
    }

    /// Until when an outcome is waited for.
    pub fn waits_until(&self, deadline: Timestamp) -> Option<Timestamp> {
        self.due(deadline).map(|due| due.plus(ARRIVAL_TIME))
    }

    /// The latest moment of which everything that was said has arrived.
    pub fn heard_until(now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis().saturating_sub_unsigned(ARRIVAL_TIME.0))
    }

    /// Whether something of the present group with this deadline counts no more.
    pub fn is_overdue(&self, deadline: Option<Timestamp>, stamp: Timestamp) -> bool {
        deadline
            .and_then(|deadline| self.due(deadline))
            .is_some_and(|due| due <= stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_given_back_and_a_late_group_has_time_to_say_so() {
        let at = Timestamp::from_millis;
        let mut clock = PlanClock::start(at(1_000), Millis(0));
        assert_eq!(clock.due(at(5_000)), Some(at(64_000)));
        assert_eq!(clock.waits_until(at(5_000)), Some(at(65_000)));
        assert_eq!(PlanClock::heard_until(at(65_000)), at(64_000));
        assert_eq!(clock.due(at(0)), Some(at(60_000)), "past when it was planned");
        clock.waiting("q", true, at(2_000));
        assert_eq!(clock.due(at(5_000)), None);
        assert!(!clock.is_overdue(Some(at(5_000)), at(900_000)));
        assert_eq!(clock.moved(at(5_000), at(4_000)), at(7_000), "also while it lasts");
        clock.waiting("q", false, at(12_000));
        assert_eq!(clock.moved(at(5_000), at(13_000)), at(15_000));
        assert!(!clock.is_overdue(Some(at(5_000)), at(73_999)));
        assert!(clock.is_overdue(Some(at(5_000)), at(74_000)));
        assert!(!clock.is_overdue(None, at(i64::from(i32::MAX))));
        clock.next_group(at(100_000));
        assert_eq!(clock.due(at(5_000)), Some(at(159_000)));
        clock.away(Millis(1_000));
        assert_eq!(clock.due(at(200_000)), Some(at(270_000)));
        assert_eq!(
            clock.moved(at(200_000), at(150_000)),
            at(210_000),
            "being away moves none"
        );
    }
}
