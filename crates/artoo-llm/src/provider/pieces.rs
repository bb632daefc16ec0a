//! The body of an answer, piece by piece, with its time-outs (design §18).
//!
//! Owns the waiting. Must not know what is in the pieces.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::transport::{Body, Broken};

/// The body of an answer, with its time-outs.
pub(super) struct Pieces {
    body: Box<dyn Body>,
    deadline: Instant,
    /// When it is over at the latest, however much comes.
    end: Option<Instant>,
    wait: Duration,
    idle: Duration,
    total: usize,
}

/// Why there was no next piece.
pub(super) enum Gap {
    Stalled(Duration),
    Broken(Broken),
}

impl Pieces {
    /// A body whose first piece has to be there at `deadline`, after a wait of `wait`; each further one within `idle`.
    pub fn new(body: Box<dyn Body>, deadline: Instant, wait: Duration, idle: Duration) -> Self {
        Self {
            body,
            deadline,
            end: None,
            wait,
            idle,
            total: 0,
        }
    }

    /// Bytes so far.
    pub const fn total(&self) -> usize {
        self.total
    }

    /// From now on no more than so much time is left for everything that may still come.
    pub fn end_within(&mut self, rest: Duration) {
        self.end = Some(Instant::now() + rest);
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Gap> {
        let deadline = self.end.map_or(self.deadline, |end| end.min(self.deadline));
        let piece = timeout_at(deadline, self.body.chunk()).await;
        let piece = piece.map_err(|_| Gap::Stalled(self.wait))?.map_err(Gap::Broken)?;
        self.deadline = Instant::now() + self.idle;
        self.wait = self.idle;
        self.total += piece.as_ref().map_or(0, Vec::len);
        Ok(piece)
    }
}
