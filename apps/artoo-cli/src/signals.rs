//! The signals that mean "stop": Ctrl+C, SIGTERM, SIGHUP (design §21).

use std::task::{Context, Waker};

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
            why = Self::end(&mut self.terminate, &mut self.hangup) => why,
        }
    }

    /// The next one that is meant for the program and not for a task.
    pub async fn leave(&mut self) -> &'static str {
        Self::end(&mut self.terminate, &mut self.hangup).await
    }

    async fn end(terminate: &mut Signal, hangup: &mut Signal) -> &'static str {
        tokio::select! {
            _ = terminate.recv() => "stopped by SIGTERM",
            _ = hangup.recv() => "the terminal was closed",
        }
    }

    /// Forgets a Ctrl+C that came too late for the task it was meant for: it must not hit the next one.
    pub fn forget_interrupts(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while self.interrupt.poll_recv(&mut context).is_ready() {}
    }
}
