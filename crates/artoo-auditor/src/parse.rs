//! From the bytes of a record to what was seen, for whoever counts a million of them (design §16).
//!
//! Owns the short way: a record is written by this program, so the kind of a message and of a deed stands where it always stands, and is
//! read without asking of what kind each thing could be. What looks otherwise goes the long way, so that the result is the same.

use artoo_protocol::message::Message;
use artoo_protocol::model::Usage;
use artoo_protocol::tool::EffectClass;
use artoo_protocol::{Act, CallId, Deed, Envelope, EnvelopeId, Finite, MegramId, Millis, Role, TaskId, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::chain::{Frame, Kind};
use crate::vocabulary::Gap;

const PAYLOAD: &[u8] = b",\"payload\":";
const TYPE: &[u8] = b"{\"type\":\"";

/// What a line says.
#[derive(Debug)]
pub(crate) enum Parsed {
    Envelope(Timestamp, Box<Envelope>),
    Deed(Timestamp, Box<Deed>),
    Gap(Timestamp, Gap),
    /// A note, a damage, a finding or a sum: those are made anew from what was seen.
    Nothing,
    /// No record that this version can read.
    Unread,
}

impl Parsed {
    /// Reads a line without its line break.
    pub fn of(line: &[u8]) -> Self {
        Self::read(line).unwrap_or(Self::Unread)
    }

    fn read(line: &[u8]) -> Option<Self> {
        let frame = Frame::read(line)?;
        if matches!(frame.kind, Kind::Note | Kind::Damage | Kind::Finding | Kind::Counts) {
            return Some(Self::Nothing);
        }
        let at = Timestamp::parse(frame.at).ok()?;
        Some(match frame.kind {
            Kind::Envelope => Self::Envelope(at, Box::new(envelope(frame.body)?)),
            Kind::Deed => Self::Deed(at, Box::new(deed(frame.body)?)),
            Kind::Gap => Self::Gap(at, serde_json::from_slice(frame.body).ok()?),
            Kind::Note | Kind::Damage | Kind::Finding | Kind::Counts | Kind::Other => Self::Nothing,
        })
    }
}

fn envelope(body: &[u8]) -> Option<Envelope> {
    short_envelope(body).or_else(|| serde_json::from_slice(body).ok())
}

/// An envelope without its payload.
#[derive(Deserialize)]
struct Head {
    id: EnvelopeId,
    seq: u64,
    #[serde(default)]
    task_id: Option<TaskId>,
    timestamp: Timestamp,
    from: Role,
    to: Role,
}

fn short_envelope(body: &[u8]) -> Option<Envelope> {
    // Quotes inside a text are escaped, so this stands nowhere else before the payload.
    let at = memchr::memmem::find(body, PAYLOAD)?;
    let (head, payload) = body.split_at_checked(at)?;
    let payload = payload.strip_prefix(PAYLOAD)?.strip_suffix(b"}")?;
    let head: Head = serde_json::from_slice(&[head, b"}"].concat()).ok()?;
    let name = payload.strip_prefix(TYPE)?;
    let name = name.get(..memchr::memchr(b'"', name)?)?;
    Some(Envelope {
        id: head.id,
        seq: head.seq,
        task_id: head.task_id,
        timestamp: head.timestamp,
        from: head.from,
        to: head.to,
        payload: message(name, payload)?,
    })
}

fn of<T: DeserializeOwned + Into<Message>>(payload: &[u8]) -> Option<Message> {
    serde_json::from_slice::<T>(payload).ok().map(Into::into)
}

/// The kinds that make up nearly all of a log; the others go the long way.
fn message(name: &[u8], payload: &[u8]) -> Option<Message> {
    use artoo_protocol::message as m;
    match name {
        b"UserInput" => of::<m::UserInput>(payload),
        b"TaskSpec" => of::<m::TaskSpec>(payload),
        b"MemoryQuery" => of::<m::MemoryQuery>(payload),
        b"MemoryReply" => of::<m::MemoryReply>(payload),
        b"DispatchManifest" => of::<m::DispatchManifest>(payload),
        b"SubTask" => of::<m::SubTask>(payload),
        b"ExecutionResult" => of::<m::ExecutionResult>(payload),
        b"CorrectionSignal" => of::<m::CorrectionSignal>(payload),
        b"SubTaskOutcome" => of::<m::SubTaskOutcome>(payload),
        b"ReplanRequest" => of::<m::ReplanRequest>(payload),
        b"OutcomeSummary" => of::<m::OutcomeSummary>(payload),
        b"PlanDirective" => of::<m::PlanDirective>(payload),
        b"Megram" => of::<m::Megram>(payload),
        b"FinalResult" => of::<m::FinalResult>(payload),
        _ => None,
    }
}

fn deed(body: &[u8]) -> Option<Deed> {
    short_deed(body).or_else(|| serde_json::from_slice(body).ok())
}

/// Every field that any deed has.
#[derive(Deserialize)]
struct Flat {
    role: Role,
    #[serde(default)]
    task_id: Option<TaskId>,
    at: Timestamp,
    act: String,
    call: Option<CallId>,
    form: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    elapsed_ms: Option<Millis>,
    #[serde(default)]
    cost: Finite,
    error: Option<String>,
    tool: Option<String>,
    effect: Option<EffectClass>,
    confirmed: Option<bool>,
    path: Option<String>,
    megram: Option<MegramId>,
}

fn short_deed(body: &[u8]) -> Option<Deed> {
    let flat: Flat = serde_json::from_slice(body).ok()?;
    let call = flat.call;
    let act = match flat.act.as_str() {
        "model_asked" => Act::ModelAsked {
            call: call?,
            form: flat.form?,
        },
        "model_answered" => Act::ModelAnswered {
            call: call?,
            model: flat.model?,
            usage: flat.usage?,
            elapsed_ms: flat.elapsed_ms?,
            cost: flat.cost,
        },
        "model_failed" => Act::ModelFailed {
            call: call?,
            error: flat.error?,
            usage: flat.usage.unwrap_or_default(),
            cost: flat.cost,
        },
        "assessed" => Act::Assessed {
            call: call?,
            tool: flat.tool?,
        },
        "tool_run" => Act::ToolRun {
            call: call?,
            tool: flat.tool?,
            effect: flat.effect?,
            confirmed: flat.confirmed?,
        },
        "check_run" => Act::CheckRun { call: call? },
        "kept" => Act::Kept { path: flat.path? },
        "stored" => Act::Stored { megram: flat.megram? },
        "recalled" => Act::Recalled { call: call? },
        _ => return None,
    };
    let Flat { role, task_id, at, .. } = flat;
    Some(Deed { role, task_id, at, act })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded task: 14 messages of 11 kinds, and 24 deeds.
    const TASK: &str = include_str!("../benches/day/task.jsonl");

    #[test]
    fn the_short_way_and_the_long_one_lead_to_the_same() {
        let (mut envelopes, mut deeds) = (0, 0);
        for line in TASK.lines() {
            let body = |name: &str| {
                line.strip_prefix(name)
                    .and_then(|rest| rest.strip_suffix('}'))
                    .map(str::as_bytes)
            };
            if let Some(body) = body("{\"envelope\":") {
                let long: Envelope = serde_json::from_slice(body).unwrap();
                assert_eq!(short_envelope(body), Some(long));
                envelopes += 1;
            } else if let Some(body) = body("{\"deed\":") {
                let long: Deed = serde_json::from_slice(body).unwrap();
                assert_eq!(short_deed(body), Some(long));
                deeds += 1;
            }
        }
        assert_eq!((envelopes, deeds), (14, 24));
    }

    #[test]
    fn what_is_written_in_another_order_or_is_rare_goes_the_long_way() {
        let rare = br#"{"id":"e","seq":1,"timestamp":"2026-02-27T09:30:00.000Z","from":"User","to":"R6","payload":{"type":"AuditQuery"}}"#;
        assert!(short_envelope(rare).is_none() && envelope(rare).is_some());
        let turned = br#"{"payload":{"type":"AuditQuery"},"id":"e","seq":1,"timestamp":"2026-02-27T09:30:00.000Z","from":"User","to":"R6"}"#;
        assert_eq!(envelope(turned), envelope(rare));
        assert!(envelope(b"{}").is_none() && deed(b"{}").is_none());
    }
}
