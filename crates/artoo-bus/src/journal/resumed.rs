//! The message with which an interrupted task goes on (design §17).
//!
//! Owns how long the task lay still, by its own journal. Must not write.

use artoo_protocol::journal::Record;
use artoo_protocol::message::TaskResumed;
use artoo_protocol::{Envelope, EnvelopeId, Millis, Role, TaskId, Timestamp};
use uuid::Uuid;

use super::read;

/// The first message behind these records: the task goes on at `now`.
pub(super) fn resumed(records: &[Record], task: &TaskId, now: Timestamp) -> Envelope {
    let away_ms = records.last().map_or(Millis(0), |record| now.since(record.at));
    let message = TaskResumed {
        task_id: task.clone(),
        away_ms,
    };
    Envelope {
        id: EnvelopeId::new(Uuid::now_v7().to_string()),
        seq: read::last_seq(records) + 1,
        task_id: Some(task.clone()),
        timestamp: now,
        from: Role::Runtime,
        to: Role::R7,
        payload: message.into(),
    }
}
