//! What the bus has to say about itself: alarms that belong to no task and must not be lost in silence (design §3).
//!
//! Owns the vocabulary and the callback. Where notices go (a log, the terminal) is the application's business.

use artoo_protocol::ports::NoRoute;
use artoo_protocol::{CallId, Role, TaskId};

use crate::tap::Gap;

/// Something that whoever runs the system should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// An inbox grew past its alarm mark; told once per crossing.
    InboxAlarm {
        /// Whose.
        role: Role,
        /// Messages waiting.
        waiting: usize,
    },
    /// A message was addressed to a role whose driver has ended; told once per role.
    RoleGone {
        /// Which.
        role: Role,
        /// The first message that nobody will read.
        seq: u64,
    },
    /// An observer began to miss messages; told once per gap. The observer itself gets the exact range.
    TapDropping {
        /// The tap's name.
        tap: String,
        /// The first message that it misses.
        from_seq: u64,
    },
    /// A role that listens through a tap missed messages.
    Missed {
        /// Which.
        role: Role,
        /// What it missed.
        gap: Gap,
    },
    /// A role wanted to say something that no route allows; it was not said.
    Unroutable(NoRoute),
    /// A role panicked while taking a step. Its task ends as failed; without R7 the front end has to end it.
    RoleBroke {
        /// Which.
        role: Role,
        /// The task of the event, if it had one.
        task_id: Option<TaskId>,
        /// The panic's words.
        message: String,
    },
    /// An adapter panicked while performing; the role got an error as its answer.
    PerformanceBroke {
        /// For whom.
        role: Role,
        /// The task.
        task_id: TaskId,
        /// Correlation.
        call: CallId,
        /// The panic's words.
        message: String,
    },
    /// A role did not move its deadline when it was woken; that deadline is passed over from now on.
    DeadlineStuck {
        /// Which.
        role: Role,
    },
    /// A long output could not be kept; later steps of its task have its head and tail only.
    NotKept {
        /// The task.
        task_id: TaskId,
        /// Where it should have gone.
        path: String,
        /// Cause.
        message: String,
    },
    /// A task's journal cannot be written any more; told once per task. Nothing worse than `create` runs for it now.
    JournalFailed {
        /// The task.
        task_id: TaskId,
        /// Cause.
        message: String,
    },
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InboxAlarm { role, waiting } => write!(f, "{waiting} messages are waiting for {role}"),
            Self::RoleGone { role, seq } => write!(f, "{role} has ended; message {seq} was not read"),
            Self::TapDropping { tap, from_seq } => write!(f, "observer `{tap}` is too slow: misses from {from_seq} on"),
            Self::Missed { role, gap } => write!(f, "{role} missed {gap}"),
            Self::Unroutable(error) => write!(f, "not sent: {error}"),
            Self::RoleBroke { role, task_id, message } => {
                let task = task_id.as_ref().map_or("no task", TaskId::as_str);
                write!(f, "{role} broke at {task}: {message}")
            }
            Self::PerformanceBroke {
                role,
                task_id,
                call,
                message,
            } => write!(f, "call {call} of {role} for {task_id} broke: {message}"),
            Self::DeadlineStuck { role } => write!(f, "{role} does not move its deadline"),
            Self::NotKept { task_id, path, message } => {
                write!(f, "an output of {task_id} was not kept in {path}: {message}")
            }
            Self::JournalFailed { task_id, message } => {
                write!(f, "the journal of {task_id} cannot be written: {message}")
            }
        }
    }
}

/// Receives notices. Called from any thread and never under a lock of the bus; must not block.
pub trait Observer: Send + Sync {
    /// Takes one notice.
    fn notice(&self, notice: &Notice);
}

/// Ignores every notice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn notice(&self, _notice: &Notice) {}
}

impl<F: Fn(&Notice) + Send + Sync> Observer for F {
    fn notice(&self, notice: &Notice) {
        self(notice);
    }
}
