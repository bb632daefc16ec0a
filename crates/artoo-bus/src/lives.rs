//! Which tasks are alive, and what is being done for them: the place where work is stopped when a task ends (design §2, §14).
//!
//! Owns the phase of every task by its suffix (an input and the task made of it are the same run) and the handles of
//! its calls in flight. Must not decide when a task ends: that is told by the messages that pass.

use std::collections::{HashMap, HashSet};

use artoo_protocol::{Envelope, MessageKind, Role, TaskId};
use tokio::task::AbortHandle;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No message of it has passed yet.
    Unknown,
    /// Work goes on.
    Open,
    /// The person stopped it; R7 has still to say so.
    Aborted,
    /// Its FinalResult has passed.
    Finished,
}

impl Phase {
    /// Whether nothing may be done for the task any more.
    pub const fn is_ended(self) -> bool {
        match self {
            Self::Unknown | Self::Open => false,
            Self::Aborted | Self::Finished => true,
        }
    }

    /// Whether a role may still say this: after an abort only R7 says how it ended, after the end only what is to be
    /// remembered.
    pub(crate) fn admits(self, from: Role, kind: MessageKind) -> bool {
        match self {
            Self::Unknown | Self::Open => true,
            Self::Aborted => from == Role::R7 && kind == MessageKind::FinalResult,
            Self::Finished => kind == MessageKind::Megram,
        }
    }
}

#[derive(Debug)]
struct Life {
    id: TaskId,
    aborted: bool,
    calls: Vec<AbortHandle>,
}

/// All tasks of a process. A finished one leaves only its eight digits behind.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    living: HashMap<String, Life>,
    finished: HashSet<String>,
}

impl Lives {
    pub(crate) fn phase(&self, task: &TaskId) -> Phase {
        match self.living.get(task.suffix()) {
            Some(life) if life.aborted => Phase::Aborted,
            Some(_) => Phase::Open,
            None if self.finished.contains(task.suffix()) => Phase::Finished,
            None => Phase::Unknown,
        }
    }

    /// Follows a message that passes; calls of a task that it ends are stopped here and now.
    pub(crate) fn follow(&mut self, envelope: &Envelope) {
        let Some(task) = &envelope.task_id else { return };
        let kind = envelope.payload.kind();
        if kind == MessageKind::FinalResult {
            if let Some(life) = self.living.remove(task.suffix()) {
                life.stop();
            }
            self.finished.insert(task.suffix().to_owned());
            return;
        }
        if kind == MessageKind::Megram || self.finished.contains(task.suffix()) {
            return;
        }
        let life = self.life(task);
        if life.id.is_provisional() {
            life.id = task.clone();
        }
        if kind == MessageKind::TaskAborted {
            life.aborted = true;
            life.stop();
            life.calls.clear();
        }
    }

    /// Ties a call in flight to its task, so that it ends with it.
    pub(crate) fn tie(&mut self, task: &TaskId, call: AbortHandle) {
        if self.phase(task).is_ended() {
            return call.abort();
        }
        let life = self.life(task);
        if life.calls.len() >= 64 {
            life.calls.retain(|call| !call.is_finished());
        }
        life.calls.push(call);
    }

    /// Takes up a task that another process began.
    pub(crate) fn adopt(&mut self, task: &TaskId, aborted: bool) {
        if self.phase(task) != Phase::Finished {
            self.life(task).aborted |= aborted;
        }
    }

    fn life(&mut self, task: &TaskId) -> &mut Life {
        self.living.entry(task.suffix().to_owned()).or_insert_with(|| Life {
            id: task.clone(),
            aborted: false,
            calls: Vec::new(),
        })
    }

    /// Tasks that have begun and not ended, by their latest id.
    pub(crate) fn open(&self) -> Vec<TaskId> {
        let mut open: Vec<TaskId> = self.living.values().map(|life| life.id.clone()).collect();
        open.sort();
        open
    }
}

impl Life {
    fn stop(&self) {
        for call in &self.calls {
            call.abort();
        }
    }
}
