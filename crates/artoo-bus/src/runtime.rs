//! Putting roles on the bus and taking them off again in order (design §2, §17).
//!
//! Owns the drivers of a process and its shutdown: nothing that was said or asked for is lost without being named.
//! Generic over roles; must not know any.

use std::sync::Arc;

use artoo_protocol::ports::MemoryError;
use artoo_protocol::{Actor, Millis, TaskId};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::calls::OpenCall;
use crate::driver::{Start, drive};
use crate::hub::Hub;
use crate::journal::JournalError;
use crate::meter::Meter;
use crate::perform::{Limits, Ports, Shell};
use crate::source::Source;

/// What a shutdown found.
#[derive(Debug)]
pub struct ShutdownReport {
    /// Whether everything came to rest within the time given.
    pub at_rest: bool,
    /// Tasks that had begun and not ended; their journals can be resumed.
    pub open_tasks: Vec<TaskId>,
    /// Calls that were stopped.
    pub open_calls: Vec<OpenCall>,
    /// Drivers that had died, in words; empty unless there is a fault in this program.
    pub broken_drivers: Vec<String>,
    /// Whether memory is safely closed.
    pub memory: Result<(), MemoryError>,
    /// Whether every journal is safely closed.
    pub journal: Result<(), JournalError>,
}

/// The running roles of a process. Dropping it without [`Runtime::shutdown`] stops them at once.
pub struct Runtime {
    shell: Arc<Shell>,
    drivers: JoinSet<Vec<OpenCall>>,
    stop: watch::Sender<bool>,
}

impl Runtime {
    /// No role yet. Must be called within a tokio runtime with time enabled.
    pub fn new(hub: Hub, ports: Ports, limits: Limits, meter: Meter) -> Self {
        Self {
            shell: Arc::new(Shell::new(hub, ports, limits, meter)),
            drivers: JoinSet::new(),
            stop: watch::Sender::new(false),
        }
    }

    /// What the drivers share.
    pub const fn shell(&self) -> &Arc<Shell> {
        &self.shell
    }

    /// Starts a role on its inbox. A role whose inbox has been taken already is not started a second time.
    #[must_use]
    pub fn spawn<A: Actor>(self, actor: A) -> Self {
        self.resume(actor, Start::default())
    }

    /// Starts a role that was recovered from a journal.
    #[must_use]
    pub fn resume<A: Actor>(mut self, actor: A, start: Start) -> Self {
        if let Some(inbox) = self.shell.hub.hosted_inbox(A::ROLE) {
            self.start(actor, Source::Inbox(inbox), start);
        }
        self
    }

    /// Starts an observer: it hears everything, through a tap that holds `capacity` messages.
    #[must_use]
    pub fn observe<A: Actor>(mut self, actor: A, capacity: usize) -> Self {
        // What is addressed to it comes through the tap as well.
        self.shell.hub.retire_inbox(A::ROLE);
        let tap = self.shell.hub.tap(A::ROLE.title(), capacity);
        self.start(actor, Source::Tap(tap), Start::default());
        self
    }

    fn start<A: Actor>(&mut self, actor: A, source: Source, start: Start) {
        let driver = drive(actor, source, Arc::clone(&self.shell), start, self.stop.subscribe());
        self.drivers.spawn(async move { driver.await.open_calls });
    }

    /// Accepts no new input, lets everything under way come to rest for at most `grace`, stops the roles, closes memory,
    /// and closes the journals.
    pub async fn shutdown(mut self, grace: Millis) -> ShutdownReport {
        let hub = self.shell.hub.clone();
        hub.stop_accepting();
        let at_rest = tokio::time::timeout(grace.to_duration(), hub.at_rest()).await.is_ok();
        self.stop.send_replace(true);
        let mut open_calls = Vec::new();
        let mut broken_drivers = Vec::new();
        while let Some(ended) = self.drivers.join_next().await {
            match ended {
                Ok(calls) => open_calls.extend(calls),
                Err(error) => broken_drivers.push(error.to_string()),
            }
        }
        open_calls.sort_by(|a, b| (a.role, &a.task_id, a.call).cmp(&(b.role, &b.task_id, b.call)));
        let memory = match &self.shell.ports.memory {
            Some(memory) => memory.close().await,
            None => Ok(()),
        };
        let journal = match hub.journal() {
            Some(journal) => journal.close("the process ended").await,
            None => Ok(()),
        };
        ShutdownReport {
            at_rest,
            open_tasks: hub.open_tasks(),
            open_calls,
            broken_drivers,
            memory,
            journal,
        }
    }
}
