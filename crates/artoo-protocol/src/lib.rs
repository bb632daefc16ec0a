//! Ids, units, messages, routes and ports that every role of artoo shares.
//!
//! Owns the vocabulary: what may be said on the bus ([`Message`]), by whom to whom ([`ROUTES`]), what a role is
//! ([`Actor`]), what a shell can perform for it ([`Command`]), and the ports through which the world is reached.
//! Knows no runtime, no files, no network and no business rule: a role crate that depends on this crate alone can be
//! tested, replayed and embedded without the rest.

pub mod actor;
pub mod deed;
pub mod envelope;
pub mod ids;
pub mod journal;
pub mod message;
pub mod model;
pub mod overdue;
pub mod places;
pub mod ports;
pub mod prompt;
pub mod role;
pub mod routes;
pub mod secret;
pub mod stopwatch;
pub mod tasks;
pub mod text;
pub mod tool;
pub mod units;

pub use actor::{Actor, Answer, Command, Event};
pub use deed::{Act, Deed};
pub use envelope::Envelope;
pub use ids::{CallId, EnvelopeId, MegramId, Slug, SubTaskId, TaskId};
pub use message::{Message, MessageKind};
pub use role::Role;
pub use routes::{ROUTES, Route, route};
pub use tasks::Tasks;
pub use units::{DecayPerDay, Finite, LocalZone, Magnitude, Millis, Timestamp, Unit01, Valence};

/// Version of everything this crate writes to disk or to the wire: envelopes and journal records.
///
/// A reader accepts this version and every earlier one; see design §17.
pub const FORMAT_VERSION: u32 = 1;
