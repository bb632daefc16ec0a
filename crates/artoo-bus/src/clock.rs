//! The two clocks: the machine's, and tokio's, which tests can stop (design §2).
//!
//! Owns the only places of this crate where time is read. Everything else asks a [`Clock`].

use artoo_protocol::ports::Clock;
use artoo_protocol::{Millis, Timestamp};
use tokio::time::Instant;

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock that everyone else is given")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_millis(since.map_or(0, |span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// Tokio's clock, counted from a given instant: it stands still and jumps together with paused tokio time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// A clock that shows `origin` now.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self {
            origin,
            started: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.origin.plus(elapsed_since(self.started))
    }
}

/// Whole milliseconds since `begun`, on tokio's clock.
pub(crate) fn elapsed_since(begun: Instant) -> Millis {
    Millis(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX))
}
