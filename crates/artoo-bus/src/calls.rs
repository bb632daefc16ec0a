//! The calls of one role that are in flight (design §2).
//!
//! Owns their futures from the command to the answer, and their end when they are cancelled or their task ends. Must
//! not know what the role does with an answer.

use std::collections::HashMap;
use std::sync::Arc;

use artoo_protocol::{Answer, CallId, Role, TaskId};
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::inbox::Pending;
use crate::perform::{Shell, Work};

/// A call that was in flight when its driver ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Who asked for it.
    pub role: Role,
    /// For which task.
    pub task_id: TaskId,
    /// Correlation.
    pub call: CallId,
    /// `model call`, `assessment`, `tool call`, `check` or `recall`.
    pub what: &'static str,
}

/// A call that is over.
pub(crate) struct Finished {
    pub(crate) task: TaskId,
    pub(crate) call: CallId,
    /// `None` when nobody waits for it any more.
    pub(crate) answer: Option<Answer>,
    /// Words of the panic in which it ended.
    pub(crate) broke: Option<String>,
    /// The system is not at rest before this is dealt with.
    _counted: Counted,
}

/// The calls in flight. Dropping it stops them.
pub(crate) struct Calls {
    shell: Arc<Shell>,
    set: JoinSet<Answer>,
    running: HashMap<Id, Running>,
}

struct Running {
    task: TaskId,
    call: CallId,
    work: Work,
    handle: AbortHandle,
    cancelled: bool,
    counted: Counted,
}

impl Calls {
    pub(crate) fn new(shell: Arc<Shell>) -> Self {
        Self {
            shell,
            set: JoinSet::new(),
            running: HashMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    pub(crate) fn begin(&mut self, task: TaskId, call: CallId, work: Work) {
        let counted = Counted::new(self.shell.hub.pending());
        let future = work.clone().perform(Arc::clone(&self.shell), task.clone());
        let handle = self.set.spawn(future);
        self.shell.hub.tie(&task, handle.clone());
        let running = Running {
            task,
            call,
            work,
            handle: handle.clone(),
            cancelled: false,
            counted,
        };
        self.running.insert(handle.id(), running);
    }

    /// Stops a call; its answer will not come, even if it is there already.
    pub(crate) fn cancel(&mut self, task: &TaskId, call: CallId) {
        for running in self.running.values_mut() {
            if running.call == call && running.task.suffix() == task.suffix() {
                running.cancelled = true;
                running.handle.abort();
            }
        }
    }

    /// The next call that is over; `None` when none is in flight. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Finished> {
        loop {
            let done = self.set.join_next_with_id().await?;
            let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            if let Some(running) = self.running.remove(&id) {
                return Some(self.finish(running, done.map(|(_, answer)| answer)));
            }
        }
    }

    fn finish(&self, running: Running, done: Result<Answer, JoinError>) -> Finished {
        let (answer, broke) = match done {
            Ok(answer) => (Some(answer), None),
            Err(error) if error.is_panic() => {
                let words = panic_words(error.into_panic().as_ref());
                (
                    Some(running.work.failure(&format!("internal error: {words}"))),
                    Some(words),
                )
            }
            Err(_) => (None, None),
        };
        let wanted = !running.cancelled && !self.shell.hub.phase(&running.task).is_ended();
        Finished {
            task: running.task,
            call: running.call,
            answer: answer.filter(|_| wanted),
            broke,
            _counted: running.counted,
        }
    }

    /// Stops everything, waits until it has stopped, and names what somebody still waited for.
    pub(crate) async fn stop(mut self, role: Role) -> Vec<OpenCall> {
        self.set.shutdown().await;
        let mut open: Vec<OpenCall> = self
            .running
            .into_values()
            .filter(|running| !running.cancelled && !self.shell.hub.phase(&running.task).is_ended())
            .map(|running| OpenCall {
                role,
                task_id: running.task,
                call: running.call,
                what: running.work.name(),
            })
            .collect();
        open.sort_by(|a, b| (&a.task_id, a.call).cmp(&(&b.task_id, b.call)));
        open
    }
}

/// Counts as pending for as long as it lives.
struct Counted(Pending);

impl Counted {
    fn new(pending: &Pending) -> Self {
        pending.raise(1);
        Self(pending.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lower(1);
    }
}

/// What a panic said.
pub(crate) fn panic_words(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
