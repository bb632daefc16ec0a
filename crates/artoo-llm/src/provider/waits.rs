//! How long to wait before a request is sent again (design §18).
//!
//! Owns the lengths of the waits of one request and their sum. Must not wait itself.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use super::config::Retries;
use super::failure::Pause;

/// The longest wait between two attempts, before jitter, where nobody says how long.
const LONGEST_PLANNED: Duration = Duration::from_secs(45);

/// The waits of one request.
pub(super) struct Waits {
    attempts: u32,
    /// What may still be waited, all waits together.
    left: Duration,
    /// The number of the attempt that is under way, from 1.
    pub attempt: u32,
    moments: ExponentialBackoff,
    limits: ExponentialBackoff,
}

impl Waits {
    pub fn of(retries: &Retries) -> Self {
        let growing = |first: Duration, factor| {
            ExponentialBuilder::default()
                .with_min_delay(first)
                .with_factor(factor)
                .with_max_delay(LONGEST_PLANNED)
                .with_max_times(retries.attempts.saturating_sub(1) as usize)
                .with_jitter()
                .build()
        };
        Self {
            attempts: retries.attempts,
            left: retries.longest_wait,
            attempt: 1,
            moments: growing(retries.first_wait, 2.0),
            // By default 1, 4, 16 and 45 s: a limit per second costs little time, and one per minute has passed.
            limits: growing(retries.first_wait.saturating_mul(2), 4.0),
        }
    }

    /// The wait before the next attempt, which begins with it; `None` when there is none.
    pub fn next(&mut self, pause: Pause) -> Option<Duration> {
        if self.attempt >= self.attempts {
            return None;
        }
        let wait = match pause {
            Pause::Moment => self.moments.next()?,
            Pause::Limit => self.limits.next()?,
            // Never shorter than planned: some servers ask for 0 s and mean nothing by it.
            Pause::Asked(asked) => self.moments.next()?.max(asked),
        };
        self.left = self.left.checked_sub(wait)?;
        self.attempt += 1;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(retries: &Retries, pause: Pause) -> Vec<Duration> {
        let mut waits = Waits::of(retries);
        std::iter::from_fn(|| waits.next(pause)).collect()
    }

    #[test]
    fn a_limit_per_minute_is_outlasted_and_a_moment_is_short() {
        let retries = Retries::default();
        for _ in 0..50 {
            let limits = all(&retries, Pause::Limit);
            let sum: Duration = limits.iter().sum();
            assert_eq!(limits.len(), 4);
            assert!(limits[0] < Duration::from_secs(3), "{limits:?}");
            assert!(
                sum > Duration::from_secs(61) && sum < Duration::from_secs(140),
                "{limits:?}"
            );
            let moments: Duration = all(&retries, Pause::Moment).iter().sum();
            assert!(moments < Duration::from_secs(16), "{moments:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_waited_as_long_as_all_waits_together_fit() {
        let minutes = |n: u64| Pause::Asked(Duration::from_secs(60 * n));
        let retries = Retries {
            longest_wait: Duration::from_secs(300),
            ..Retries::default()
        };
        assert_eq!(all(&retries, minutes(1)), [Duration::from_secs(60); 4]);
        assert_eq!(all(&retries, minutes(2)), [Duration::from_secs(120); 2]);
        assert_eq!(all(&retries, minutes(6)), []);
        assert_eq!(all(&retries, Pause::Asked(Duration::MAX)), []);
        assert!(all(&retries, Pause::Asked(Duration::ZERO))[0] >= retries.first_wait);
        let once = Retries { attempts: 1, ..retries };
        assert_eq!(all(&once, minutes(1)), []);
    }
}
