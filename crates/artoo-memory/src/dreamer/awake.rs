//! Whether the clock can be trusted to say what is old (design §15).
//!
//! What is forgotten is gone, and a clock that is a year ahead for an hour makes everything old. So after a leap of the clock, or a
//! long absence, which looks the same, nothing is forgotten for a day: by then a wrong clock was noticed, and a set-back one is a leap
//! of its own. Potentials need no such care; they are right again with the clock.
//!
//! Owns that judgement and its stored form. Must not know what forgetting is.

use crate::keys;
use crate::kv::{Batch, Kv, KvError};
use artoo_protocol::{Millis, Timestamp};

/// Two passes that lie further apart than this have a leap between them.
const LEAP: Millis = Millis::from_seconds(30 * 24 * 3600);
/// For so long after a leap nothing is forgotten.
const WARY: Millis = Millis::from_seconds(24 * 3600);

/// Since when time has gone on without a leap, and when that was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awake {
    since: Timestamp,
    seen: Timestamp,
}

impl Awake {
    /// As it is at `now`.
    fn at(before: Option<Self>, now: Timestamp) -> Self {
        let goes_on = |awake: &Self| awake.seen <= now && now.since(awake.seen) <= LEAP;
        Self {
            since: before.filter(goes_on).map_or(now, |awake| awake.since),
            seen: now,
        }
    }

    fn may_forget(self) -> bool {
        self.seen.since(self.since) >= WARY
    }

    fn read(text: &str) -> Option<Self> {
        let (since, seen) = text.split_once(' ')?;
        Some(Self {
            since: Timestamp::parse(since).ok()?,
            seen: Timestamp::parse(seen).ok()?,
        })
    }
}

/// Notes that it is `now`; whether what is old at this moment may be forgotten.
pub(super) fn may_forget(kv: &dyn Kv, now: Timestamp) -> Result<bool, KvError> {
    let before = kv.get(keys::AWAKE.as_bytes())?;
    let before = before.and_then(|text| Awake::read(std::str::from_utf8(&text).ok()?));
    let awake = Awake::at(before, now);
    let mut batch = Batch::new();
    batch.put(keys::AWAKE, format!("{} {}", awake.since, awake.seen));
    kv.apply(batch)?;
    Ok(awake.may_forget())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::InMemoryKv;
    use crate::testing::at;

    #[test]
    fn after_a_leap_of_the_clock_nothing_is_forgotten_for_a_day() {
        let kv = InMemoryKv::new();
        let hours = |hours: i64| Timestamp::from_millis(at().as_millis() + hours * 3_600_000);
        let year = 365 * 24;
        for (hour, expect, why) in [
            (0, false, "nothing is known of the time before"),
            (23, false, "not yet a day"),
            (24, true, "a day"),
            (24 + 29 * 24, true, "a holiday"),
            (24 + 60 * 24, false, "longer than a month"),
            (24 + 61 * 24, true, "and a day"),
            (year * 2, false, "a year ahead"),
            (year * 2 + 5, false, "five hours later"),
            (62 * 24 + 1, false, "the clock was set right"),
            (62 * 24 + 20, false, "not yet a day"),
            (63 * 24 + 1, true, "as ever"),
            (-year, false, "a year back"),
        ] {
            assert_eq!(may_forget(&kv, hours(hour)).unwrap(), expect, "{why}");
        }
    }
}
