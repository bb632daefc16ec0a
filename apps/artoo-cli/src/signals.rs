//! The signals that mean "stop": Ctrl+C, SIGTERM, SIGHUP (design §21).

use std::task::{Context, Waker};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// Waits for any of them.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it was ignored when the program began, as under `nohup`.
    hangup: Option<Signal>,
    came: Option<Came>,
}

/// What came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// Meant for the task.
    Interrupt,
    /// Meant for the program.
    End(&'static str),
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
            hangup: if hangup_is_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
            came: None,
        })
    }

    /// The next one, in words.
    pub async fn next(&mut self) -> &'static str {
        let (came, why) = tokio::select! {
            _ = self.interrupt.recv() => (Came::Interrupt, "stopped by Ctrl+C"),
            why = Self::end(&mut self.terminate, &mut self.hangup) => (Came::End(why), why),
        };
        self.came = Some(came);
        why
    }

    /// The next one that is meant for the program and not for a task, or the one that stopped a task.
    pub async fn leave(&mut self) -> &'static str {
        if let Some(why) = self.ends() {
            return why;
        }
        let why = Self::end(&mut self.terminate, &mut self.hangup).await;
        self.came = Some(Came::End(why));
        why
    }

    /// Something that is no signal ends the program, and somebody waits for the end.
    pub const fn told(&mut self, why: &'static str) {
        self.came = Some(Came::End(why));
    }

    /// Why the program is to end, if it is.
    pub const fn ends(&self) -> Option<&'static str> {
        match self.came {
            Some(Came::End(why)) => Some(why),
            Some(Came::Interrupt) | None => None,
        }
    }

    /// Whether somebody wants an end, of the task or of the program, and waits for it.
    pub const fn pressing(&self) -> bool {
        self.came.is_some()
    }

    async fn end(terminate: &mut Signal, hangup: &mut Option<Signal>) -> &'static str {
        tokio::select! {
            _ = terminate.recv() => "stopped by SIGTERM",
            () = hung_up(hangup) => "the terminal was closed",
        }
    }

    /// Forgets a Ctrl+C that came too late for the task it was meant for: it must not hit the next one.
    pub fn forget_interrupts(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        while self.interrupt.poll_recv(&mut context).is_ready() {}
        if self.came == Some(Came::Interrupt) {
            self.came = None;
        }
    }
}

async fn hung_up(hangup: &mut Option<Signal>) {
    match hangup {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Whether whoever started the program wants it to outlive the terminal. Where the system does not tell, it is not so.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1))
}
