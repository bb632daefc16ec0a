//! R6, the Auditor: a hash-chained log of everything on the bus, and reports for the operator (design §16).
//!
//! It sees every envelope through a tap and addresses nobody but the operator: its [`Effect`] can append to its own log and
//! make a report, and nothing else. [`observer`] is the pure part, fed with what was seen and when; [`chain`] says what a
//! record is and finds the first one that was changed; `log` and `inspect` own the files; [`recorder`] puts them together for a process,
//! with a thread of its own, so that neither a slow disk nor a full one ever delays whoever feeds it.

pub mod chain;
mod counts;
mod inspect;
mod log;
pub mod observer;
pub mod recorder;
mod watch;

pub use chain::{Broken, Damage, Verified};
pub use counts::{Rate, Totals};
pub use inspect::{report_of_log, verify};
pub use log::{LogError, Stats, read_stats};
pub use observer::{Auditor, Effect, Entry, Gap, Observed, REPORT_PERIOD};
pub use recorder::{Recorder, Redact};
