//! One task as a trace: the finished spans of its journal, named after OpenTelemetry's conventions for GenAI (docs/traces.md).
//!
//! Owns what a span is and which ids it has. Pure: ids and times come from the journal, so that the same journal gives the same trace.
//! How spans hang together is `weaver`'s, what they tell `told`'s.

use artoo_bus::journal::read;
use artoo_protocol::Timestamp;
use artoo_protocol::journal::{Entry, Record};
use artoo_protocol::model::Tier;
use uuid::Uuid;

use super::weaver::Weaver;

/// A task, seen from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The id of the envelope with the person's words, which is a `UUIDv7`.
    pub id: u128,
    /// The first one is the task itself; each stands behind its parent.
    pub spans: Vec<Span>,
}

/// A stretch of time and what was done in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Unique in its trace, never 0.
    pub id: u64,
    /// None for the task itself.
    pub parent: Option<u64>,
    /// Of few different values, as the conventions want it.
    pub name: String,
    /// Whether somebody else's server did it.
    pub kind: Kind,
    /// Begin.
    pub start: Timestamp,
    /// End; not before the begin.
    pub end: Timestamp,
    /// What is told of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, in words of artoo's own.
    pub error: Option<String>,
}

/// Where something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In this process.
    Internal,
    /// By a server that was asked.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text of at most [`TEXT_MAX`](super::told::TEXT_MAX) characters.
    Text(String),
    /// A count.
    Int(i64),
    /// A measure.
    Float(f64),
    /// Yes or no.
    Flag(bool),
}

/// The model of a tier as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// `gen_ai.provider.name`.
    pub provider: &'static str,
    /// Its name; none where nobody knows which one answers.
    pub model: Option<String>,
    /// Host and port of its server.
    pub server: Option<(String, u16)>,
}

/// What a journal does not tell.
pub struct About<'a> {
    /// The conversation that the task belongs to, where it has a name.
    pub conversation: Option<&'a str>,
    /// Who answers.
    pub models: &'a dyn Fn(Tier) -> Called,
}

/// The trace of a journal; `None` without a first record. What was not over when the journal ends lasts until then.
pub fn trace(records: &[Record], about: &About<'_>) -> Option<Trace> {
    let mut weaver = Weaver::new(about, records, records.first()?.at);
    for record in records {
        weaver.follow(record);
    }
    Some(weaver.finish())
}

/// The id of the first envelope; where it is none, something made from the task's id, which is as good for a single task.
pub(super) fn trace_id(records: &[Record]) -> u128 {
    let first = records.iter().find_map(|record| match &record.entry {
        Entry::Published { envelope } => Uuid::parse_str(envelope.id.as_str()).ok(),
        Entry::Opened { .. }
        | Entry::Commanded { .. }
        | Entry::Answered { .. }
        | Entry::Stepped { .. }
        | Entry::Closed { .. } => None,
    });
    let made = || {
        let task = read::task_id(records).map_or("", |task| task.as_str());
        let began = records.first().map_or(0, |record| record.at.as_millis());
        // FNV-1a, 128 bits.
        let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let bytes = task.bytes().chain(began.to_be_bytes());
        bytes.fold(start, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
    };
    first.map_or_else(made, |id| id.as_u128()).max(1)
}

/// Different for every place in a trace, and the same for the same place: the finaliser of `SplitMix64` maps no two numbers to one.
pub(super) fn span_id(trace: u128, at: usize) -> u64 {
    let seed = u64::try_from(trace & u128::from(u64::MAX)).unwrap_or_default();
    let mut z = seed.wrapping_add((at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).max(1)
}

#[cfg(test)]
mod tests;
