//! The signals that mean "stop": Ctrl+C, SIGTERM, SIGHUP (design §21).

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Waits for any of them.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes over from the default, which would kill the process on the spot.
    ///
    /// # Errors
    /// [`Failure`] when the system refuses.
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one, in words.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "stopped by Ctrl+C",
            _ = self.terminate.recv() => "stopped by SIGTERM",
            _ = self.hangup.recv() => "the terminal was closed",
        }
    }
}
