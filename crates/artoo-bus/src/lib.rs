//! The observable bus of artoo: lossless inboxes, lossy taps, the generic driver and the journal.
//!
//! Owns the one shell around the pure roles: the [`Hub`] carries messages in one order, [`drive`] turns a role's
//! commands into work and the work's answers into events, and the [`Journal`] writes everything down before it takes
//! effect. Knows no role: what a role decides is the role's, who may say what is the protocol's table, and how a model
//! or a tool is reached is behind the ports.
//!
//! Reading order: [`hub`], [`driver`], [`journal`], [`replay`], [`runtime`].

mod beside;
mod calls;
mod inbox;
mod lives;
mod perform;
mod source;
mod tap;

pub mod clock;
pub mod driver;
pub mod hub;
pub mod journal;
pub mod meter;
pub mod notice;
pub mod replay;
pub mod runtime;
pub mod shelf;

pub use beside::beside;
pub use calls::OpenCall;
pub use clock::{SystemClock, TokioClock};
pub use driver::{Ended, Start, drive};
pub use hub::{Hub, HubOptions};
pub use inbox::Inbox;
pub use journal::{Journal, JournalError, JournalOptions};
pub use lives::Phase;
pub use meter::{Budget, Meter, Price};
pub use notice::{Notice, Observer, Silent};
pub use perform::{Limits, Ports, Shell};
pub use replay::{Difference, Recovered, recover_role, replay_role};
pub use runtime::{Runtime, ShutdownReport};
pub use shelf::FolderShelf;
pub use source::Source;
pub use tap::{Gap, Tap, TapItem};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. A panic elsewhere must not take the whole bus down, and every critical section here leaves its data
/// whole, so poisoning is passed over.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
