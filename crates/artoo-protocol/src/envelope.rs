//! The one envelope in which every message travels (design §3).

use serde::{Deserialize, Serialize};

use crate::ids::{EnvelopeId, TaskId};
use crate::message::Message;
use crate::role::Role;
use crate::units::Timestamp;

/// One message on the bus, with who sent it to whom and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Unique.
    pub id: EnvelopeId,
    /// Position on this process's bus, from 1, without gaps.
    pub seq: u64,
    /// The task; absent only for the operator's audit messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// When it was published.
    pub timestamp: Timestamp,
    /// Sender.
    pub from: Role,
    /// Principal receiver; the route may name others that get a copy.
    pub to: Role,
    /// The message.
    pub payload: Message,
}

impl Envelope {
    /// About so many bytes of memory; never 0.
    pub fn weight(&self) -> usize {
        self.payload.weight()
    }
}
