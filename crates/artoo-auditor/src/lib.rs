//! R6, the Auditor: a hash-chained log of everything on the bus, and reports for the operator (design §16).
//!
//! It sees every envelope and every act of a role through a tap and addresses nobody but the operator: its [`Effect`] can
//! append to its own log and table and make a report, and nothing else. [`observer`] is the pure part, fed with what was seen
//! and when; [`detect`] is the table of what should not be seen; [`chain`] says what a record is, [`verify`](mod@verify) finds
//! the first one that was changed; [`recorder`] puts them together for a process, with a thread of its own, so that neither a
//! slow disk nor a full one ever delays whoever feeds it.

pub mod chain;
pub mod checkpoint;
mod counting;
mod counts;
pub mod detect;
mod drift;
mod facts;
mod files;
mod follow;
mod head;
mod history;
mod lines;
mod log;
pub mod observer;
mod overview;
pub mod page;
mod parse;
mod pen;
pub mod recorder;
mod stats;
pub mod tail;
mod tuning;
pub mod verify;
mod vocabulary;
mod watched;
mod writer;

pub use chain::{Broken, Damage};
pub use checkpoint::{Checkpoint, CheckpointError};
pub use counts::{Ledger, Rate, Totals};
pub use detect::{DETECTORS, Finding};
pub use files::LogError;
pub use follow::Follow;
pub use history::{Bucket, History};
pub use observer::{Auditor, REPORT_PERIOD};
pub use overview::{Overview, overview, recount};
pub use page::page;
pub use recorder::{Options, Recorder, Redact, Tell};
pub use stats::{Stats, read_stats};
pub use tuning::{ClosedBy, Decision, Effort, RoundRow, TUNING_FORMAT, TuningRow};
pub use verify::{Verified, Verifier, verify};
pub use vocabulary::{Effect, Entry, Gap, Observed, Past};
