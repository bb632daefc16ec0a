//! The messages with which an interrupted task goes on (design §17).
//!
//! Owns how long the task lay still, by its own journal, and how that is said which the person was asked before. Must not write.

use artoo_protocol::journal::Record;
use artoo_protocol::message::{ConfirmationAnswer, ConfirmationRequest, Consent, Message, TaskResumed};
use artoo_protocol::{Envelope, EnvelopeId, Millis, Role, TaskId, Timestamp};
use uuid::Uuid;

use super::read;

/// What is to be said of a task that goes on, besides how long it lay still.
#[derive(Clone, Debug, Default)]
pub struct Resumption {
    /// Whether somebody is there to be asked; `None` where that is not known.
    pub person_present: Option<bool>,
    /// Whether actions are done again that may have happened already: what was asked, and the answer.
    pub settled: Vec<(ConfirmationRequest, Consent)>,
}

/// The first messages behind these records: the task goes on at `now`, with what was settled before. That the person was asked in the
/// time away is why these questions have no time of their own.
pub(super) fn resumed(records: &[Record], task: &TaskId, now: Timestamp, with: &Resumption) -> Vec<Envelope> {
    let resumed = TaskResumed {
        task_id: task.clone(),
        away_ms: records.last().map_or(Millis(0), |record| now.since(record.at)),
        person_present: with.person_present,
    };
    let settled = with.settled.iter().flat_map(|(request, consent)| {
        let answer = ConfirmationAnswer {
            request_id: request.request_id.clone(),
            task_id: task.clone(),
            consent: *consent,
        };
        [
            (Role::Runtime, Role::User, Message::from(request.clone())),
            (Role::User, Role::R3, Message::from(answer)),
        ]
    });
    let first = (Role::Runtime, Role::R7, Message::from(resumed));
    (read::last_seq(records) + 1..)
        .zip(std::iter::once(first).chain(settled))
        .map(|(seq, (from, to, payload))| Envelope {
            id: EnvelopeId::new(Uuid::now_v7().to_string()),
            seq,
            task_id: Some(task.clone()),
            timestamp: now,
            from,
            to,
            payload,
        })
        .collect()
}
